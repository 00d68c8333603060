//! Who waits for whom, over threads, tasks, locks, semaphores, schedulers, class constructors and callbacks; and which of
//! them can never go on.

mod graph;
mod pumps;
mod runs;
mod waits;

pub(crate) use graph::{Edge, Knot, Node};

use crate::chains::Groups;
use crate::completers::Completers;
use crate::facts::Awaited;
use crate::holders::Holders;
use crate::paths::Analysis;
use crate::threads::Hang;
use asynctriage_dump::Addr;
use graph::WaitFor;
use rustc_hash::FxHashSet;

/// What can never go on, who is inside semaphores, and who completes what others wait for.
#[derive(Debug, Default)]
pub(crate) struct Deadlocks {
    pub(crate) knots: Vec<Knot>,
    pub(crate) holders: Holders,
    pub(crate) completers: Completers,
}

/// What the graph is read from.
#[derive(Clone, Copy)]
struct Reader<'a, 'r, 'd> {
    a: &'a Analysis<'r, 'd>,
    hang: &'a Hang,
    holders: &'a Holders,
    completers: &'a Completers,
}

/// What something waits for directly, those who complete it by their code left out.
pub(crate) fn waits_of(
    a: &Analysis<'_, '_>,
    hang: &Hang,
    holders: &Holders,
    node: Node,
) -> Vec<(Node, Edge)> {
    let completers = &Completers::default();
    let reader = Reader {
        a,
        hang,
        holders,
        completers,
    };
    reader.waits(node).on
}

impl Deadlocks {
    /// Follows all waits that can be part of a circle: those of threads, of who is inside a semaphore that others wait
    /// for, and of methods that await each other.
    pub(crate) fn find(
        a: &Analysis<'_, '_>,
        groups: &Groups,
        hang: &Hang,
        holders: Holders,
        completers: Completers,
    ) -> Self {
        let reader = Reader {
            a,
            hang,
            holders: &holders,
            completers: &completers,
        };
        let threads = hang.threads.iter().filter(|t| t.wait.is_some());
        let threads = threads.map(|t| Node::Thread(t.thread.managed_id));
        let semaphores = holders.semaphores().map(Node::Semaphore);
        let cycles = groups.tallies.iter();
        let cycles = cycles
            .filter(|tally| matches!(tally.awaited, Awaited::Cycle { .. }))
            .flat_map(|tally| tally.leaves.keys().copied().map(Node::Async));
        let sources = reader.completed_sources();
        let seeds: Vec<Node> = threads
            .chain(semaphores)
            .chain(cycles)
            .chain(sources)
            .collect();
        let graph = WaitFor::follow(a.rt.budget(), seeds, |node| reader.waits(node));
        let knots = graph.knots();
        Self {
            knots,
            holders,
            completers,
        }
    }

    /// Managed ids of the threads that can never go on as they wait for each other.
    pub(crate) fn threads(&self) -> FxHashSet<u32> {
        let members = self.knots.iter().flat_map(|k| &k.members);
        let threads = members.filter_map(|node| match node {
            Node::Thread(id) => Some(*id),
            _ => None,
        });
        threads.collect()
    }

    /// The semaphores that are part of a deadlock.
    pub(crate) fn semaphores(&self) -> FxHashSet<Addr> {
        let members = self.knots.iter().flat_map(|k| &k.members);
        let semaphores = members.filter_map(|node| match node {
            Node::Semaphore(at) => Some(*at),
            _ => None,
        });
        semaphores.collect()
    }
}
