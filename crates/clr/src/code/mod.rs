//! From a code address to its method: code ranges, compiled code of the JIT, ReadyToRun images, MethodDescs.

mod entry_points;
mod method;
mod nibble;
mod range;

pub use method::{MethodKind, MethodRef};
pub use range::{Code, CodeKind};

use asynctriage_dump::Addr;
use entry_points::EntryPoints;
use rustc_hash::FxHashMap;
use std::sync::{Arc, RwLock};

/// What was looked up once.
#[derive(Default)]
pub(crate) struct CodeCache {
    /// By module.
    entry_points: RwLock<FxHashMap<Addr, Arc<EntryPoints>>>,
    /// By MethodDesc.
    names: RwLock<FxHashMap<Addr, Arc<str>>>,
}
