//! Objects with finalizers that have yet to run.

use super::Roots;
use crate::heap::Heap;
use crate::runtime::Runtime;
use asynctriage_dump::Addr;

/// Parts of the queue's array: objects of five generations, then the dead ones that wait for the finalizer thread
/// (8.0 to 11.0).
const GENERATIONS: u64 = 5;
const PARTS: u64 = 7;
/// Objects with finalizers in one heap.
const MAX_OBJECTS: u64 = 1 << 27;
/// Bit of the word in front of an object: its finalizer is not to run any more.
const SUPPRESSED: u32 = 0x4000_0000;

impl Runtime<'_> {
    pub(super) fn add_finalizable(&self, heap: &Heap, roots: &mut Roots) {
        let queues = self.finalize_queues();
        let read = |queue: &Addr| self.add_queue(*queue, heap, roots);
        if queues.is_empty() || !queues.iter().map(read).all(|whole| whole.is_some()) {
            roots.missing.push("objects with finalizers");
        }
    }

    fn add_queue(&self, queue: Addr, heap: &Heap, roots: &mut Roots) -> Option<()> {
        let (m, layout) = (self.memory, self.layout());
        let limits = queue + layout.get("FinalizeQueue", "Limits")?;
        let start = m.ptr(queue + layout.get("FinalizeQueue", "Array")?)?;
        let limit = |part: u64| m.ptr(limits.element(part.saturating_sub(1), 8));
        let mut last = start;
        for part in 1..=PARTS {
            let end = limit(part)?;
            let entries = end.since(last)?.checked_div(8)?;
            last = end;
            if entries > MAX_OBJECTS {
                return None;
            }
        }
        let dead = limit(GENERATIONS)?;
        let mut at = start;
        while at < last {
            let object = m.ptr(at)?;
            let waits = at >= dead || m.u32(object.back(4)).unwrap_or(0) & SUPPRESSED == 0;
            if waits && heap.is_object(object) {
                let counts = &mut roots.counts;
                counts.finalizable = counts.finalizable.saturating_add(1);
                counts.to_finalize = counts.to_finalize.saturating_add(u64::from(at >= dead));
                roots.strong.push(object);
                if at >= dead {
                    roots.dead.push(object);
                }
            }
            at = at + 8;
        }
        Some(())
    }
}
