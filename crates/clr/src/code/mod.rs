//! From a code address to its method: code ranges, compiled code of the JIT, ReadyToRun images, MethodDescs.

mod blocking;
mod calls;
mod debug_info;
mod delegates;
mod dynamic;
mod entry_points;
mod exact;
mod functions;
mod image_points;
mod inlined;
mod known_points;
mod lambdas;
mod method;
mod nibble;
mod point_lists;
mod position;
mod range;
mod resume;
#[cfg(test)]
mod testing;

pub use debug_info::{AsyncPoint, AwaitNumber, Bound, DebugInfo, GENERIC_CONTEXT};
pub use image_points::ImagePoint;
pub use known_points::pack as pack_image_points;
pub use method::{MethodKind, MethodRef};
pub use point_lists::{ImageFile, PointLists};
pub use range::{Code, CodeKind};
pub use resume::{NamedBy, ResumePoint};

use asynctriage_dump::Addr;
use asynctriage_image::pe::{FunctionTable, PeImage};
use entry_points::EntryPoints;
use rustc_hash::FxHashMap;
use std::sync::{Arc, RwLock};

/// What was looked up once.
#[derive(Default)]
pub(crate) struct CodeCache {
    /// By module.
    entry_points: RwLock<FxHashMap<Addr, Arc<EntryPoints>>>,
    /// By the begin of the image.
    functions: RwLock<FxHashMap<Addr, Option<FunctionTable>>>,
    /// By MethodDesc.
    names: RwLock<FxHashMap<Addr, Arc<str>>>,
    /// By MethodDesc and exact type.
    exact_names: RwLock<FxHashMap<(Addr, Addr), Arc<str>>>,
    /// By ResumeInfo.
    points: RwLock<FxHashMap<Addr, Arc<ResumePoint>>>,
    /// By module.
    lambdas: RwLock<FxHashMap<Addr, Arc<lambdas::Lambdas>>>,
    /// By method; `None` for methods without IL.
    calls: RwLock<FxHashMap<calls::Place, Option<Arc<[calls::Called]>>>>,
    inlined: RwLock<inlined::Known>,
    bounds: RwLock<position::Known>,
    /// By module.
    pub(crate) images: RwLock<FxHashMap<Addr, Option<Arc<PeImage>>>>,
}
