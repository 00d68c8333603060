//! CoreCLR without its debugger support: runtime, modules, types, heap, threads.
//!
//! Entry: [`Runtime::open`] finds the runtime in a dump and checks that the built-in layouts fit it. From there
//! [`Runtime::managed_heap`] gives objects by the names of their types, fields by name and collections by element;
//! [`Runtime::walk_heap`], [`Runtime::ty`] and the field readers are the level below. [`Runtime::threads`] lists threads. Once a runtime is found nothing fails: readers return `None` and lists of [`Gap`]s.
//!
//! ```
//! use asynctriage_clr::Runtime;
//! use asynctriage_dump::{Dump, OpenOptions};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let path = std::path::Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdumps/chain-10.0.15.dmp.gz"));
//! let dump = Dump::open(path, &OpenOptions::default())?;
//! let runtime = Runtime::open(&dump)?;
//! let wanted = |mt| runtime.is_a(mt, "System.Threading.Tasks.TaskCompletionSource");
//! for object in runtime.walk_heap(&wanted).wanted {
//!     println!("{} completes {:?}", object.addr, runtime.reference(object.addr, "_task"));
//! }
//! for gap in runtime.gaps() {
//!     println!("{}: {}", gap.place, gap.why);
//! }
//! # Ok(())
//! # }
//! ```
#![cfg_attr(
    not(test),
    deny(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic,
        clippy::indexing_slicing,
        clippy::arithmetic_side_effects
    )
)]

mod absent;
mod anchor;
mod bodies;
mod code;
mod core_names;
mod descriptor;
mod error;
mod exceptions;
mod fitted;
mod gap;
mod generics;
mod heap;
mod layout;
mod locate;
mod locks;
mod modules;
mod native;
mod objects;
mod reader;
mod roots;
mod runtime;
mod ships;
mod stack;
mod statics;
mod support;
mod threads;
mod types;
mod version;

pub use asynctriage_image::pe::CodeView;
pub use code::{
    AsyncPoint, AwaitNumber, Bound, Code, CodeKind, DebugInfo, GENERIC_CONTEXT, ImageFile,
    ImagePoint, MethodKind, MethodRef, NamedBy, PointLists, ResumePoint, pack_image_points,
};
pub use core_names::{CoreLibBuild, pack_core_names};
pub use error::{Cause, RuntimeError};
pub use exceptions::{Exception, ThrowFrame};
pub use gap::{Gap, GapKind, Section};
pub use heap::{
    Background, BadObject, Collection, Heap, HeapObject, HeapShape, Held, MAX_RETAINED, Reference,
    Referrers, Retained, Segment, SegmentKind, TypeCount,
};
pub use layout::{Layout, MissingField};
pub use locks::{Block, BlockKind, Lock};
pub use modules::{DumpSource, Module};
pub use native::{NativeFrame, StackBreak};
pub use objects::Place;
pub use reader::{CollectionKind, Item, Items, ManagedHeap, Object, Structure, Value};
pub use roots::{GcRoot, GcRootKind, HandleKind, RootCounts, Roots};
pub use runtime::{Globals, Runtime};
pub use ships::ships_with_dotnet;
pub use stack::{FrameSource, Stack, StackFrame};
pub use statics::StaticReference;
pub use support::{SELF_CHECKS, Supported, refused, supported};
pub use threads::Thread;
pub use types::{Field, FieldKind, Fields, Type};
pub use version::{Version, VersionSource};
