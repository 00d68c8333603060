//! Roots of the garbage collector, as far as reachability needs them.

use crate::heap::{Heap, SegmentKind};
use crate::runtime::Runtime;
use asynctriage_dump::Addr;
use rustc_hash::FxHashSet;

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

/// Sizes of the map from which all handle tables hang: buckets in one map part, tables in a bucket.
const MAP_BUCKETS: u64 = 64;
const MAX_TABLES: u64 = 1024;
const MAX_MAPS: usize = 64;
const MAX_SEGMENTS: usize = 1 << 16;

impl Runtime<'_> {
    /// Everything that keeps objects alive: handles that are not weak, stacks and registers, pinned arrays (statics live
    /// in them), the frozen heap, thread statics.
    #[must_use]
    pub fn roots(&self, heap: &Heap) -> Vec<Addr> {
        let mut roots = Vec::new();
        let (threads, _) = self.threads();
        for thread in &threads {
            roots.extend(self.stack_words(thread).map(|(_, word)| word));
            roots.extend(self.thread_statics(thread.addr));
        }
        roots.extend(self.strong_handles(heap));
        let permanent = heap
            .shape
            .segments
            .iter()
            .enumerate()
            .filter(|(_, s)| matches!(s.kind, SegmentKind::Frozen | SegmentKind::Pinned));
        roots.extend(permanent.flat_map(|(i, _)| heap.objects_in(i)));
        roots
    }

    /// The array that the thread's statics live in (9.0 and later; 8.0 keeps it in a handle).
    fn thread_statics(&self, thread: Addr) -> Option<Addr> {
        let data = self
            .memory
            .ptr(thread + self.offsets.thread.tls?)?
            .non_null()?;
        self.memory
            .ptr(
                data + self
                    .layout()
                    .get("ThreadLocalData", "NonCollectibleTlsArrayData")?,
            )?
            .non_null()
    }

    /// Objects that handles hold, weak ones left out. Handle blocks whose type is unknown count as strong.
    fn strong_handles(&self, heap: &Heap) -> Vec<Addr> {
        let m = self.memory;
        let mut out = Vec::new();
        let mut seen = FxHashSet::default();
        let mut map = m.ptr(self.globals.gc_vars + self.offsets.gc_vars.handle_map);
        for _ in 0..MAX_MAPS {
            let Some(at) = map.and_then(Addr::non_null).filter(|a| seen.insert(*a)) else {
                break;
            };
            let buckets = m.ptr(at).unwrap_or_default();
            for bucket in (0..MAP_BUCKETS).filter_map(|i| m.ptr(buckets.element(i, 8))?.non_null())
            {
                let tables = m.ptr(bucket).unwrap_or_default();
                for table in (0..MAX_TABLES).map_while(|i| {
                    m.ptr(tables.element(i, 8))
                        .filter(|t| !t.is_null() && m.readable(*t, 64))
                }) {
                    self.table_handles(table, heap, &mut seen, &mut out);
                }
            }
            map = m.ptr(at + 8);
        }
        out
    }

    /// The first words of a HandleTable hold the pointer to its list of segments, which are 64 KiB aligned.
    fn table_handles(
        &self,
        table: Addr,
        heap: &Heap,
        seen: &mut FxHashSet<Addr>,
        out: &mut Vec<Addr>,
    ) {
        let m = self.memory;
        let aligned = |a: &Addr| {
            !a.is_null() && a.0 & (table::SEGMENT - 1) == 0 && m.readable(*a, table::HEADER)
        };
        let first = (0..8)
            .filter_map(|i| m.ptr(table.element(i, 8)))
            .find(aligned);
        let mut next = first;
        while let Some(segment) = next.filter(|s| seen.len() < MAX_SEGMENTS && seen.insert(*s)) {
            for block in 0..table::BLOCKS {
                let kind = m
                    .u8(segment + table::BLOCK_TYPES + block)
                    .unwrap_or(u8::MAX);
                if table::WEAK.contains(&kind) {
                    continue;
                }
                let start =
                    (segment + table::HEADER).element(block, table::BLOCK_HANDLES.wrapping_mul(8));
                let handles = (0..table::BLOCK_HANDLES).filter_map(|i| m.ptr(start.element(i, 8)));
                out.extend(handles.filter(|o| heap.is_object(*o)));
            }
            // the next segment stands in the header behind the free counts; take the only aligned pointer there
            next = (0..table::HEADER / 8)
                .filter_map(|i| m.ptr(segment.element(i, 8)))
                .find(|p| aligned(p) && !seen.contains(p));
        }
    }
}
