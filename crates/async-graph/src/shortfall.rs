//! What should be there and is not: references that name no object, frames of two methods at once, semaphores whose
//! numbers contradict each other, threads whose objects are in no heap segment.

use crate::class::Helper;
use crate::graph::{Builder, NodeId};
use asynctriage_clr::{Gap, GapKind};
use asynctriage_dump::Addr;
use rustc_hash::{FxHashMap, FxHashSet};

/// The remedy for all of it.
pub(crate) const REMEDY: &str = "memory is damaged: take another dump, and compare";

impl Builder<'_, '_> {
    fn is_moving(&self) -> bool {
        self.out.heap.shape.collection.moving
    }

    /// Slots of tasks, sources and awaiters that hold something that is no object.
    pub(crate) fn dangling_gap(&self) -> Option<Gap> {
        let awaiters = self.out.machines.values().filter(|m| m.is_plain);
        let awaiters = awaiters.filter_map(|m| {
            let is_object = |(_, o): &(Addr, Addr)| self.out.heap.is_object(*o);
            let (slot, _) = m.awaits.first()?;
            (!m.awaits.iter().any(is_object)).then_some(*slot)
        });
        let mut all: Vec<Addr> = awaiters.chain(self.dangling.iter().copied()).collect();
        all.sort_unstable();
        let first = all.first().filter(|_| !self.is_moving())?;
        Some(Gap {
            kind: GapKind::LinkDangling,
            place: "links between methods and what they await".into(),
            why: format!(
                "{} places, such as {first}, should name who waits or what is awaited, and what they name is no object: chains may be cut there",
                all.len()
            ),
            remedy: REMEDY.into(),
        })
    }

    /// Suspended frames of runtime-async methods that belong to two tasks; nothing that rests on those is certain.
    pub(crate) fn shared_gap(&mut self) -> Option<Gap> {
        let mut owners: FxHashMap<Addr, NodeId> = FxHashMap::default();
        let mut shared: FxHashSet<Addr> = FxHashSet::default();
        let mut doubtful: Vec<NodeId> = Vec::new();
        for (id, operation) in &self.out.operations {
            for frame in &operation.frames {
                let owner = *owners.entry(frame.continuation).or_insert(*id);
                if owner != *id {
                    shared.insert(frame.continuation);
                    doubtful.extend([owner, *id]);
                }
            }
        }
        let first = shared.iter().min().filter(|_| !self.is_moving())?;
        self.out.contradicted.extend(doubtful);
        Some(Gap {
            kind: GapKind::SharedFrames,
            place: "frames of suspended methods".into(),
            why: format!(
                "{} of them, such as {first}, belong to two tasks: one of their chains is wrong, and nothing that rests on them is certain",
                shared.len()
            ),
            remedy: REMEDY.into(),
        })
    }

    /// Living threads whose Thread object is not on the heap that was walked: segments are missing.
    pub(crate) fn threads_gap(&self) -> Option<Gap> {
        // segments that the dump was written without are told already
        if !self.out.heap.gaps.is_empty() {
            return None;
        }
        let (threads, _) = self.rt.threads();
        let living = threads.iter().filter(|t| !t.is_dead());
        let objects: Vec<Addr> = living.filter_map(|t| t.object).collect();
        let lost = objects.iter().filter(|o| !self.out.heap.is_object(**o));
        let lost: Vec<&Addr> = lost.collect();
        let first = lost.first().filter(|_| !self.is_moving())?;
        Some(Gap {
            kind: GapKind::HeapSegments,
            place: "the list of heap segments".into(),
            why: format!(
                "the Thread objects of {} of {} threads, such as {first}, are in no segment that could be walked: parts of the heap are missing",
                lost.len(),
                objects.len()
            ),
            remedy: REMEDY.into(),
        })
    }

    /// Semaphores whose count, limit and queue cannot be true together.
    pub(crate) fn semaphores_gap(&self) -> Option<Gap> {
        let mut queued: FxHashMap<Addr, usize> = FxHashMap::default();
        for semaphore in self.out.semaphores.values() {
            let n = queued.entry(*semaphore).or_default();
            *n = n.saturating_add(1);
        }
        let all = self.out.helpers(Helper::Semaphore).iter();
        let bad = all.filter(|s| !self.is_possible(**s, queued.contains_key(s)));
        let mut bad: Vec<&Addr> = bad.collect();
        let ended = self.out.semaphores.iter().filter_map(|(waiter, s)| {
            let node = self.out.object(self.out.node(*waiter)?)?;
            self.completed(node).then_some(s)
        });
        bad.extend(ended);
        bad.sort_unstable();
        bad.dedup();
        let first = bad.first().filter(|_| !self.is_moving())?;
        Some(Gap {
            kind: GapKind::ImpossibleSemaphore,
            place: "semaphores".into(),
            why: format!(
                "{} of them, such as {first}, contradict themselves: their count, their limit and the tasks in their queue cannot be true together",
                bad.len()
            ),
            remedy: REMEDY.into(),
        })
    }

    fn is_possible(&self, semaphore: Addr, is_awaited: bool) -> bool {
        let number = |name| self.rt.field_i32(semaphore, name);
        let (Some(free), Some(limit)) = (number("m_currentCount"), number("m_maxCount")) else {
            return true;
        };
        let waiting = number("m_waitCount").unwrap_or(0);
        let head = self.rt.reference(semaphore, "m_asyncHead");
        let is_task = |o: Addr| self.out.node(o).is_some();
        (0..=limit).contains(&free)
            && limit > 0
            && (0..MAX_THREADS).contains(&waiting)
            && !(free > 0 && is_awaited && waiting == 0)
            && head.is_none_or(is_task)
    }
}

/// More threads than any process has.
const MAX_THREADS: i32 = 1 << 20;
