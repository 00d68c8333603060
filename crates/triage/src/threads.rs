//! Which thread blocks on what, by looking at the stacks.

use asynctriage_async_graph::{AsyncGraph, Class, Helper};
use asynctriage_clr::{Gap, Runtime, Thread};
use asynctriage_dump::Addr;
use rustc_hash::{FxHashMap, FxHashSet};

/// Threads, and the objects of interest that stand on their stacks.
pub(crate) struct Threads {
    pub(crate) all: Vec<Thread>,
    pub(crate) gap: Option<Gap>,
    /// Index of the threads whose stack holds an object, and the slot that does.
    on_stack: FxHashMap<Addr, Vec<(usize, Option<Addr>)>>,
}

impl Threads {
    /// Reads all threads and searches their stacks for what threads block on and for requests. A conservative scan: a
    /// word that equals an object's address counts.
    pub(crate) fn read(rt: &Runtime<'_>, graph: &AsyncGraph) -> Self {
        let waits = graph
            .graph
            .node_weights()
            .filter(|n| n.class == Class::BlockingWait)
            .map(|n| n.addr);
        let wanted: FxHashSet<Addr> = waits
            .chain(graph.helpers(Helper::ServerRequest).iter().copied())
            .collect();
        let (all, gap) = rt.threads();
        let mut on_stack: FxHashMap<Addr, Vec<(usize, Option<Addr>)>> = FxHashMap::default();
        for (index, thread) in all.iter().enumerate() {
            for (slot, word) in rt.stack_words(thread).filter(|(_, w)| wanted.contains(w)) {
                let threads = on_stack.entry(word).or_default();
                if threads.last().is_none_or(|(i, _)| *i != index) {
                    threads.push((index, slot));
                }
            }
        }
        Self { all, gap, on_stack }
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

/// What a person calls a thread.
pub(crate) fn display_name(thread: &Thread) -> String {
    match thread.name.as_deref().filter(|n| !n.is_empty()) {
        Some(name) => name.to_owned(),
        None if thread.is_pool() => ".NET TP Worker".to_owned(),
        None => format!("managed thread {}", thread.managed_id),
    }
}
