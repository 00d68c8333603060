//! The thread pool's queues: what has been handed over and not yet run.

use crate::class::Helper;
use crate::graph::{AsyncGraph, NodeId};
use crate::resolve::work_item_targets;
use asynctriage_clr::Runtime;
use asynctriage_dump::Addr;
use rustc_hash::FxHashSet;

/// Segments of one concurrent queue.
const MAX_SEGMENTS: usize = 1 << 16;

/// Work items by the queue that they stand in.
#[derive(Clone, Debug, Default)]
pub struct Queues {
    /// The global queue, in order.
    pub global: Vec<Addr>,
    /// The queue that goes before it.
    pub high_priority: Vec<Addr>,
    /// The queue that goes after it.
    pub low_priority: Vec<Addr>,
    /// Each worker's own queue that is not empty.
    pub local: Vec<Vec<Addr>>,
    /// Nodes that a queued item will resume or run.
    pub resumes: FxHashSet<NodeId>,
}

impl Queues {
    /// All queued items.
    pub fn items(&self) -> impl Iterator<Item = Addr> + '_ {
        let shared = self
            .high_priority
            .iter()
            .chain(&self.global)
            .chain(&self.low_priority);
        shared.chain(self.local.iter().flatten()).copied()
    }

    pub(crate) fn read(rt: &Runtime<'_>, graph: &AsyncGraph) -> Self {
        let mut queues = Self::default();
        for queue in graph.helpers(Helper::PoolQueue) {
            let items = |field| {
                rt.reference(*queue, field)
                    .map(|q| concurrent_queue(rt, q))
                    .unwrap_or_default()
            };
            queues.global.extend(items("workItems"));
            queues.high_priority.extend(items("highPriorityWorkItems"));
            queues.low_priority.extend(items("lowPriorityWorkItems"));
            // 9.0 keeps one more item outside the queue
            queues
                .global
                .extend(rt.reference(*queue, "_nextWorkItemToProcess"));
        }
        queues.local = graph
            .helpers(Helper::LocalQueue)
            .iter()
            .map(|q| local_queue(rt, *q))
            .filter(|q| !q.is_empty())
            .collect();
        let items: Vec<Addr> = queues.items().collect();
        queues.resumes = items
            .into_iter()
            .flat_map(|i| work_item_targets(rt, graph, i))
            .collect();
        queues
    }
}

/// Items of a ConcurrentQueue of references, oldest first.
fn concurrent_queue(rt: &Runtime<'_>, queue: Addr) -> Vec<Addr> {
    let segments = segments(rt, queue).into_iter();
    let places = segments.flat_map(|s| full_slots(rt, s).unwrap_or_default());
    let items = places.filter_map(|at| rt.memory().ptr(at)?.non_null());
    items.collect()
}

/// How many items a ConcurrentQueue of anything has.
#[must_use]
pub fn concurrent_queue_length(rt: &Runtime<'_>, queue: Addr) -> u64 {
    let segments = segments(rt, queue).into_iter();
    let counts = segments.map(|s| full_slots(rt, s).map_or(0, |all| all.len() as u64));
    counts.fold(0, u64::saturating_add)
}

fn segments(rt: &Runtime<'_>, queue: Addr) -> Vec<Addr> {
    let mut out = Vec::new();
    let mut seen = FxHashSet::default();
    let mut segment = rt.reference(queue, "_head");
    while let Some(at) = segment.filter(|s| out.len() < MAX_SEGMENTS && seen.insert(*s)) {
        out.push(at);
        segment = rt.reference(at, "_nextSegment");
    }
    out
}

/// Where the items of a segment are, oldest first: a slot is full when its sequence number is one ahead of its position.
fn full_slots(rt: &Runtime<'_>, segment: Addr) -> Option<Vec<Addr>> {
    let slots = rt.reference(segment, "_slots")?;
    let (start, stride, len) = rt.vector(slots)?;
    let slot = rt.element_type(slots)?;
    let (item, sequence) = (
        rt.instance_field(&slot, "Item")?.offset,
        rt.instance_field(&slot, "SequenceNumber")?.offset,
    );
    let full = (0..len).filter_map(|i| {
        let at = start.element(i, stride);
        let number = u64::from(rt.memory().u32(at + sequence)?);
        (number.wrapping_sub(1).checked_rem(len)? == i).then_some((number, at + item))
    });
    let mut full: Vec<_> = full.collect();
    full.sort_unstable();
    Some(full.into_iter().map(|(_, at)| at).collect())
}

fn local_queue(rt: &Runtime<'_>, queue: Addr) -> Vec<Addr> {
    let read = || {
        let (head, tail) = (
            rt.field_i32(queue, "m_headIndex")?,
            rt.field_i32(queue, "m_tailIndex")?,
        );
        let mask = rt.field_i32(queue, "m_mask")?;
        let (start, stride, len) = rt.vector(rt.reference(queue, "m_array")?)?;
        let count = u64::try_from(tail.wrapping_sub(head)).unwrap_or(0).min(len);
        let at = |i: u64| {
            let index = i32::try_from(i).ok()?.wrapping_add(head) & mask;
            rt.memory()
                .ptr(start.element(u64::try_from(index).ok().filter(|x| *x < len)?, stride))?
                .non_null()
        };
        Some((0..count).filter_map(at).collect())
    };
    read().unwrap_or_default()
}
