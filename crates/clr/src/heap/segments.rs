//! Segments and regions, found through the GC's data table.
//!
//! The same walk serves workstation and server GC, regions and segments (8.0 to 11.0): generations hold lists of
//! segments; with segments the young generations share one, so each is visited once.

use super::collection::Collection;
use crate::gap::{Gap, GapKind};
use crate::runtime::Runtime;
use asynctriage_dump::Addr;
use rustc_hash::FxHashSet;

/// Heaps of server GC: one per processor at most, and Windows ends at 1,024.
const MAX_HEAPS: u64 = 1024;
/// 0 to 2, large objects, pinned objects.
const GENERATIONS: u64 = 5;
/// A 4 MiB region each, so this is 4 TiB of heap.
const MAX_SEGMENTS: usize = 1 << 20;
const FLAG_READ_ONLY: u64 = 1;
/// Positions in the GC's array of field offsets of a server heap (8.0 to 11.0).
const HEAP_FIELD_ALLOC_ALLOCATED: u64 = 0;
const HEAP_FIELD_EPHEMERAL: u64 = 1;
const HEAP_FIELD_FINALIZE_QUEUE: u64 = 2;
const HEAP_FIELD_BACKGROUND_HIGHEST: u64 = 15;
const HEAP_FIELD_GENERATIONS: u64 = 18;

/// What a segment is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SegmentKind {
    /// Generation 0, 1 or 2 of the small-object heap.
    Small(u8),
    /// Large objects.
    Large,
    /// Pinned objects.
    Pinned,
    /// Never collected: string literals and some statics.
    Frozen,
}

/// A stretch of the heap that is filled with objects from end to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// First object.
    pub start: Addr,
    /// End of the last object.
    pub end: Addr,
    /// What it is for.
    pub kind: SegmentKind,
}

/// The heap's shape.
#[derive(Clone, Debug, Default)]
pub struct HeapShape {
    /// All segments by address; none overlaps another.
    pub segments: Vec<Segment>,
    /// Allocation contexts that may stand in the middle of a segment: first free byte and limit, by address.
    pub contexts: Vec<(Addr, Addr)>,
    /// Number of heaps: 1 for workstation GC.
    pub heaps: u32,
    /// Whether server GC is on.
    pub server: bool,
    /// Whether the generations are lists of regions rather than parts of segments.
    pub regions: bool,
    /// The garbage collection that the dump was taken in.
    pub collection: Collection,
    /// What could not be read.
    pub gaps: Vec<Gap>,
}

/// One heap: where its generations are, and where its youngest segment ends.
struct GcHeap {
    generations: Addr,
    ephemeral: Option<Addr>,
    alloc_allocated: Option<Addr>,
    finalize_queue: Option<Addr>,
    /// Behind the last object that a background collection looks at; null before there was one.
    background_end: Option<Addr>,
}

impl Runtime<'_> {
    /// Reads the list of segments.
    #[must_use]
    pub fn heap_shape(&self) -> HeapShape {
        let (m, v, o) = (self.memory, self.globals.gc_vars, &self.offsets.gc_vars);
        let mut shape = HeapShape {
            collection: self.collection(),
            regions: m.ptr(v + o.generation_fields).and_then(|p| m.i32(p + 8)) == Some(-1),
            ..HeapShape::default()
        };
        let heaps = self.gc_heaps(&mut shape);
        shape.heaps = u32::try_from(heaps.len()).unwrap_or(u32::MAX);
        let size = m.u64(v + o.generation_size).unwrap_or(0);
        let mut seen = FxHashSet::default();
        for heap in &heaps {
            for number in 0..GENERATIONS {
                self.add_generation(&mut shape, heap, number, size, &mut seen);
            }
        }
        self.add_thread_contexts(&mut shape);
        shape.contexts.sort_unstable();
        shape.contexts.dedup();
        if shape.segments.is_empty() && shape.gaps.is_empty() {
            shape.gaps.push(self.lost("the list of heap segments", v));
        }
        drop_overlaps(&mut shape);
        shape
    }

    /// One queue of objects with finalizers per heap; fewer when they cannot be found.
    pub(crate) fn finalize_queues(&self) -> Vec<Addr> {
        let heaps = self.gc_heaps(&mut HeapShape::default());
        let queues = heaps.iter().filter_map(|h| h.finalize_queue?.non_null());
        queues.collect()
    }

    /// Whether a background collection has ever set how far it goes. The state that means marking is zero, and so is
    /// memory that a dump lacks.
    pub(super) fn had_background_collection(&self) -> bool {
        let heaps = self.gc_heaps(&mut HeapShape::default());
        let ends = |h: &GcHeap| h.background_end.and_then(Addr::non_null).is_some();
        heaps.iter().any(ends)
    }

    fn gc_heaps(&self, shape: &mut HeapShape) -> Vec<GcHeap> {
        let (m, v, o) = (self.memory, self.globals.gc_vars, &self.offsets.gc_vars);
        let deref = |field: u64| {
            m.ptr(v + field)
                .and_then(Addr::non_null)
                .and_then(|p| m.ptr(p))
        };
        // workstation GC has its generations in the table itself; server GC leaves the entry null
        if let Some(generations) = m.ptr(v + o.generation_table).and_then(Addr::non_null) {
            return vec![GcHeap {
                generations,
                ephemeral: deref(o.ephemeral),
                alloc_allocated: deref(o.alloc_allocated),
                finalize_queue: o.finalize_queue.and_then(deref),
                background_end: o.background_highest.and_then(deref),
            }];
        }
        shape.server = true;
        let count = m
            .ptr(v + o.heap_count)
            .and_then(|p| m.u32(p))
            .map_or(0, u64::from)
            .min(MAX_HEAPS);
        let heaps: Option<Vec<_>> = (|| {
            let list = deref(o.heaps)?;
            let fields = m.ptr(v + o.heap_fields)?;
            let offset = |position: u64| {
                m.i32(fields.element(position, 4))
                    .and_then(|n| u64::try_from(n).ok())
            };
            let (generations, ephemeral, allocated, finalize, background) = (
                offset(HEAP_FIELD_GENERATIONS)?,
                offset(HEAP_FIELD_EPHEMERAL),
                offset(HEAP_FIELD_ALLOC_ALLOCATED),
                offset(HEAP_FIELD_FINALIZE_QUEUE),
                offset(HEAP_FIELD_BACKGROUND_HIGHEST),
            );
            let heap = |i| {
                let at = m.ptr(list.element(i, 8))?.non_null()?;
                let read = |field: Option<u64>| field.and_then(|f| m.ptr(at + f));
                Some(GcHeap {
                    generations: at + generations,
                    ephemeral: read(ephemeral),
                    alloc_allocated: read(allocated),
                    finalize_queue: read(finalize),
                    background_end: read(background),
                })
            };
            (0..count).map(heap).collect()
        })();
        heaps.unwrap_or_else(|| {
            shape.gaps.push(self.lost("the list of server heaps", v));
            Vec::new()
        })
    }

    fn add_generation(
        &self,
        shape: &mut HeapShape,
        heap: &GcHeap,
        number: u64,
        size: u64,
        seen: &mut FxHashSet<Addr>,
    ) {
        let (m, o) = (self.memory, &self.offsets);
        let generation = heap.generations.element(number, size);
        self.add_context(shape, generation + o.generation.context);
        let mut next = m.ptr(generation + o.generation.start_segment);
        if next.is_none() {
            shape.gaps.push(self.lost("a generation", generation));
        }
        while let Some(at) = next.and_then(Addr::non_null) {
            if seen.len() >= MAX_SEGMENTS || !seen.insert(at) {
                return;
            }
            let Some((segment, following)) = self.read_segment(at, heap, number) else {
                shape.gaps.push(self.lost("a heap segment", at));
                return;
            };
            if segment.end > segment.start {
                shape.segments.push(segment);
            }
            next = Some(following);
        }
    }

    fn read_segment(&self, at: Addr, heap: &GcHeap, generation: u64) -> Option<(Segment, Addr)> {
        let (m, o) = (self.memory, &self.offsets.segment);
        let allocated = m.ptr(at + o.allocated)?;
        let end = if heap.ephemeral == Some(at) {
            heap.alloc_allocated.unwrap_or(allocated)
        } else {
            allocated
        };
        let frozen = m.u64(at + o.flags)? & FLAG_READ_ONLY != 0;
        let kind = match generation {
            _ if frozen => SegmentKind::Frozen,
            3 => SegmentKind::Large,
            4 => SegmentKind::Pinned,
            n => SegmentKind::Small(u8::try_from(n).unwrap_or(2)),
        };
        Some((
            Segment {
                start: m.ptr(at + o.mem)?,
                end,
                kind,
            },
            m.ptr(at + o.next)?,
        ))
    }

    fn add_thread_contexts(&self, shape: &mut HeapShape) {
        let (m, t) = (self.memory, &self.offsets.thread);
        let pointer_in_locals = self
            .layout()
            .get("RuntimeThreadLocals", "AllocContext")
            .unwrap_or(0);
        // 10.0 put a combined limit in front of the GC's own context
        let inner = self
            .layout()
            .get("EEAllocContext", "GCAllocationContext")
            .unwrap_or(0);
        for thread in self.native_threads().threads {
            if let Some(inline) = t.alloc_context {
                self.add_context(shape, thread + inline);
            } else if let Some(locals) = t
                .locals
                .and_then(|f| m.ptr(thread + f))
                .and_then(Addr::non_null)
            {
                self.add_context(shape, locals + pointer_in_locals + inner);
            }
        }
    }

    fn add_context(&self, shape: &mut HeapShape, at: Addr) {
        let (m, o) = (self.memory, &self.offsets.alloc_context);
        if let (Some(pointer), Some(limit)) = (m.ptr(at + o.pointer), m.ptr(at + o.limit))
            && !pointer.is_null()
            && limit >= pointer
        {
            shape.contexts.push((pointer, limit));
        }
    }

    fn lost(&self, what: &str, at: Addr) -> Gap {
        let why = self.memory.why_not(at, 8).map_or_else(
            || "it contradicts the known layout".to_owned(),
            |f| f.to_string(),
        );
        Gap {
            kind: GapKind::HeapList,
            place: format!("{what} at {at}"),
            why,
            remedy:
                "take a dump that includes the heap (`dotnet-dump collect --type Heap` or Full)"
                    .into(),
        }
    }
}

/// Sorts by address and cuts what a damaged list claims twice.
fn drop_overlaps(shape: &mut HeapShape) {
    shape.segments.sort_unstable_by_key(|s| (s.start, s.end));
    let mut last = Addr::NULL;
    shape.segments.retain(|s| {
        let apart = s.start >= last;
        last = if apart { s.end } else { last };
        apart
    });
}
