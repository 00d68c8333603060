//! The managed heap: its segments, every object in them, references, and what the roots reach.

mod collection;
mod index;
mod instances;
mod mark;
mod references;
mod referrers;
mod retained;
mod segments;
mod walk;

pub use collection::{Background, Collection};
pub use index::{BadObject, Heap, HeapObject, TypeCount};
pub use referrers::{Reference, Referrers};
pub use retained::{Held, MAX_RETAINED, Retained};
pub use segments::{HeapShape, Segment, SegmentKind};
