//! Which thread blocks on what, by looking at the stacks.

use asynctriage_async_graph::{AsyncGraph, Class, Helper, Node};
use asynctriage_clr::{Gap, Lock, Runtime, Thread};
use asynctriage_dump::Addr;
use rustc_hash::{FxHashMap, FxHashSet};

/// Threads, and the objects of interest that stand on their stacks.
pub(crate) struct Threads {
    pub(crate) all: Vec<Thread>,
    pub(crate) gaps: Vec<Gap>,
    /// Whether the runtime's list of threads is known to be whole.
    pub(crate) is_whole: bool,
    /// Index of the threads whose stack holds an object, and the slot that does.
    on_stack: FxHashMap<Addr, Vec<(usize, Option<Addr>)>>,
    /// By thread: objects on its stack that it holds by a thin lock.
    pub(crate) thin_locks: Vec<Vec<Lock>>,
}

impl Threads {
    /// Reads all threads and searches their stacks for what threads block on, for what runs on them, for requests and
    /// for thin locks: whoever holds one has the object on its stack. A conservative scan: a word that equals an object's
    /// address counts.
    pub(crate) fn read(rt: &Runtime<'_>, graph: &AsyncGraph) -> Self {
        let wanted = wanted(rt, graph);
        let (all, gap) = rt.threads();
        let mut on_stack: FxHashMap<Addr, Vec<(usize, Option<Addr>)>> = FxHashMap::default();
        let mut thin_locks = Vec::with_capacity(all.len());
        let stacks = rt.budget().each("stacks, for what waits", all.iter());
        for (index, thread) in stacks.enumerate() {
            let mut locks: Vec<Lock> = Vec::new();
            for (slot, word) in rt.stack_words(thread) {
                if wanted.contains(&word) {
                    let threads = on_stack.entry(word).or_default();
                    if threads.last().is_none_or(|(i, _)| *i != index) {
                        threads.push((index, slot));
                    }
                } else if graph.heap.is_object(word)
                    && let Some(lock) = rt.thin_lock(word)
                    && lock.owner == Some(thread.managed_id)
                    && locks.iter().all(|l| l.at != word)
                {
                    locks.push(lock);
                }
            }
            thin_locks.push(locks);
        }
        Self {
            is_whole: gap.is_none(),
            gaps: gap.cloned().into_iter().chain(rt.stack_gaps(all)).collect(),
            all: all.to_vec(),
            on_stack,
            thin_locks,
        }
    }

    /// Whether the thread of a managed id has ended, as far as that is proved: no thread of the whole list has the id and
    /// lives. Ids are given again, so one that has ended may be taken for a living one.
    pub(crate) fn has_ended(&self, managed_id: u32) -> bool {
        let living = self.all.iter().filter(|t| !t.is_dead());
        self.is_whole && !living.map(|t| t.managed_id).any(|id| id == managed_id)
    }

    /// The threads whose stack holds an object.
    pub(crate) fn holding(&self, object: Addr) -> impl Iterator<Item = (&Thread, Option<Addr>)> {
        self.on_stack
            .get(&object)
            .into_iter()
            .flatten()
            .filter_map(|(i, slot)| Some((self.all.get(*i)?, *slot)))
    }

    /// Objects of interest on one thread's stack, by address.
    pub(crate) fn on_stack_of(&self, thread: &Thread) -> Vec<Addr> {
        let holds = |threads: &[(usize, Option<Addr>)]| {
            threads
                .iter()
                .any(|(i, _)| self.all.get(*i).is_some_and(|t| t.addr == thread.addr))
        };
        let mut out: Vec<_> = self
            .on_stack
            .iter()
            .filter(|(_, t)| holds(t))
            .map(|(o, _)| *o)
            .collect();
        out.sort_unstable();
        out
    }
}

/// Objects that tell something when they stand on a stack.
fn wanted(rt: &Runtime<'_>, graph: &AsyncGraph) -> FxHashSet<Addr> {
    let running_delegate = |node: &&Node| {
        matches!(node.class, Class::Task | Class::Combinator(_))
            && graph
                .task
                .is_some_and(|t| t.status(rt, node.addr) == "Running")
    };
    let waits = graph
        .graph
        .node_weights()
        .filter(|n| n.class == Class::BlockingWait || running_delegate(n))
        .map(|n| n.addr);
    let requests = graph.helpers(Helper::ServerRequest).iter().copied();
    waits
        .chain(requests)
        .chain(
            graph
                .running
                .keys()
                .filter_map(|id| Some(graph.object(*id)?.addr)),
        )
        .collect()
}

/// What a person calls a thread.
pub(crate) fn display_name(thread: &Thread) -> String {
    match thread.name.as_deref().filter(|n| !n.is_empty()) {
        Some(name) => name.to_owned(),
        None if thread.is_main => "main".to_owned(),
        None if thread.is_pool() => ".NET TP Worker".to_owned(),
        None => format!("managed thread {}", thread.managed_id),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_has_ended_when_the_whole_list_lacks_it() {
        let thread = Thread {
            addr: Addr(0x1000),
            os_id: 7,
            managed_id: 1,
            object: None,
            name: None,
            state: 0,
            is_main: false,
            stack: None,
        };
        let mut threads = Threads {
            all: vec![thread],
            gaps: Vec::new(),
            is_whole: true,
            on_stack: FxHashMap::default(),
            thin_locks: Vec::new(),
        };
        assert!(!threads.has_ended(1));
        assert!(threads.has_ended(2));
        threads.is_whole = false;
        assert!(
            !threads.has_ended(2),
            "it may be among those that are missing"
        );
    }
}
