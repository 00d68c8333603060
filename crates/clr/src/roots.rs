//! Roots of the garbage collector, as far as reachability needs them.

use crate::heap::{Heap, SegmentKind};
use crate::runtime::Runtime;
use asynctriage_dump::Addr;

/// Handle table segment: 64 KiB, a header of one page, then blocks of 64 handles (8.0 to 11.0).
mod table {
    pub(super) const SEGMENT: u64 = 0x1_0000;
    pub(super) const HEADER: u64 = 0x1000;
    pub(super) const BLOCK_HANDLES: u64 = 64;
    pub(super) const BLOCKS: u64 = (SEGMENT - HEADER) / 8 / BLOCK_HANDLES;
    /// Header: four generation bytes and one allocation byte per block, two u32 masks, then the block types.
    pub(super) const BLOCK_TYPES: u64 = BLOCKS * 4 + BLOCKS + BLOCKS * 8;
    /// Weak, short and long; 9 is the native weak handle.
    pub(super) const WEAK: [u8; 3] = [0, 1, 9];
}

/// How many roots there are of some kinds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RootCounts {
    /// Threads whose stack and registers were taken.
    pub stacks: u64,
    /// Handles that are not weak.
    pub handles: u64,
    /// Objects with a finalizer that has yet to run.
    pub finalizable: u64,
    /// Those of them that are dead already and stand in the finalizer thread's queue.
    pub to_finalize: u64,
}

impl Runtime<'_> {
    /// Everything that keeps objects alive: handles that are not weak, stacks and registers, pinned arrays (statics live
    /// in them), the frozen heap, thread statics.
    #[must_use]
    pub fn roots(&self, heap: &Heap) -> Roots {
        let mut roots = Roots::default();
        self.add_threads(&mut roots);
        self.add_handles(heap, &mut roots);
        self.add_finalizable(heap, &mut roots);
        let permanent = heap
            .shape
            .segments
            .iter()
            .enumerate()
            .filter(|(_, s)| matches!(s.kind, SegmentKind::Frozen | SegmentKind::Pinned));
        roots
            .strong
            .extend(permanent.flat_map(|(i, _)| heap.objects_in(i)));
        roots
    }

    /// The array that the thread's statics live in (9.0 and later; 8.0 keeps it in a handle).
    fn thread_statics(&self, thread: Addr) -> Option<Addr> {
        let data = self
            .memory
            .ptr(thread + self.offsets.thread.tls?)?
    fn add_threads(&self, roots: &mut Roots) {
        let (threads, gap) = self.threads();
        let mut whole = gap.is_none();
        for thread in &threads {
            roots
                .strong
                .extend(self.stack_words(thread).map(|(_, word)| word));
            roots.strong.extend(self.thread_statics(thread.addr));
            if thread.stack.is_some() {
                roots.counts.stacks = roots.counts.stacks.saturating_add(1);
            } else if !thread.is_dead() && !thread.is_unstarted() {
                whole = false;
            }
        }
        if !whole {
            roots.missing.push("the stacks of some threads");
        }
    }

            .non_null()?;
        self.memory
            .ptr(
                data + self
                    .layout()
                    .get("ThreadLocalData", "NonCollectibleTlsArrayData")?,
            )?
            .non_null()
    }
}
