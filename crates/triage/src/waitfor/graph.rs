//! The wait-for graph: an edge leads from what waits to what it waits for.
//!
//! What waits for all of its targets is stuck as soon as one of them is; what waits for any of them only when all are. A
//! deadlock is a group of stuck ones that wait for each other. Whoever waits for nothing that is known can go on.

use crate::holders::Who;
use asynctriage_async_graph::NodeId;
use asynctriage_dump::{Addr, Budget};
use asynctriage_report::Confidence;
use petgraph::Direction;
use petgraph::algo::kosaraju_scc;
use petgraph::graph::{DiGraph, NodeIndex};
use petgraph::visit::EdgeRef;
use rustc_hash::{FxHashMap, FxHashSet};
use std::borrow::Cow;
use std::collections::VecDeque;

/// Nodes of one graph; what lies further away is taken to go on.
const MAX_NODES: usize = 8_000_000;

/// Something that waits, or is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Node {
    /// A thread, by its managed id.
    Thread(u32),
    /// A task or suspended method.
    Async(NodeId),
    /// A monitor or `System.Threading.Lock`.
    Lock(Addr),
    /// A reader/writer lock as one thread wants to enter it.
    ReaderWriter {
        /// The lock.
        lock: Addr,
        /// Managed id of the thread.
        waiter: u32,
    },
    /// A semaphore.
    Semaphore(Addr),
    /// An event, or a CountdownEvent.
    Event(Addr),
    /// A SynchronizationContext or TaskScheduler: what runs what is posted to it.
    Pump(Addr),
    /// A class whose constructor has not ended: its MethodTable, or where that is not known the waiting thread.
    Class(Addr),
    /// A callback of a cancellation that runs: the registrations of its source.
    Callback(Addr),
}

impl From<Who> for Node {
    fn from(who: Who) -> Self {
        match who {
            Who::Thread(id) => Self::Thread(id),
            Who::Method(id) => Self::Async(id),
        }
    }
}

/// Why something waits for something else.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Edge {
    /// Where that stands.
    pub(crate) slot: Option<Addr>,
    /// How it was read.
    pub(crate) how: Cow<'static, str>,
    /// How sure it is.
    pub(crate) confidence: Confidence,
}

/// Which of the things that something waits for must come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Needs {
    /// All of them.
    All,
    /// One of them; others than those that are known may do when it is `open`.
    Any { open: bool },
    /// None ever comes: the owner of a lock has ended.
    Never,
}

/// What something waits for.
#[derive(Clone, Debug)]
pub(crate) struct Waits {
    pub(crate) needs: Needs,
    pub(crate) on: Vec<(Node, Edge)>,
}

impl Default for Waits {
    fn default() -> Self {
        Self {
            needs: Needs::All,
            on: Vec::new(),
        }
    }
}

/// Stuck ones that wait for each other.
#[derive(Clone, Debug, Default)]
pub(crate) struct Knot {
    /// Each is followed by one that it waits for, as far as that goes.
    pub(crate) members: Vec<Node>,
    /// Every wait of a member for another, in the order of the members.
    pub(crate) edges: Vec<(Node, Node, Edge)>,
}

/// The graph.
#[derive(Debug, Default)]
pub(crate) struct WaitFor {
    graph: DiGraph<(Node, Needs), Edge>,
    ids: FxHashMap<Node, NodeIndex>,
}

impl WaitFor {
    /// Follows waits from some nodes on.
    pub(crate) fn follow(
        budget: &Budget,
        seeds: impl IntoIterator<Item = Node>,
        mut waits: impl FnMut(Node) -> Waits,
    ) -> Self {
        let mut out = Self::default();
        let mut todo: VecDeque<Node> = VecDeque::new();
        for seed in seeds {
            if !out.ids.contains_key(&seed) {
                out.add(seed);
                todo.push_back(seed);
            }
        }
        while let Some(node) = todo.pop_front() {
            // who is not followed can go on as far as is known
            if budget.leaves("waits, for circles", || Some(todo.len() as u64)) {
                break;
            }
            let Some(from) = out.ids.get(&node).copied() else {
                continue;
            };
            let found = waits(node);
            if let Some(weight) = out.graph.node_weight_mut(from) {
                weight.1 = found.needs;
            }
            for (target, edge) in found.on {
                let known = out.ids.get(&target).copied();
                let to = known.unwrap_or_else(|| {
                    if out.graph.node_count() < MAX_NODES {
                        todo.push_back(target);
                    }
                    out.add(target)
                });
                out.graph.add_edge(from, to, edge);
            }
        }
        out
    }

    fn add(&mut self, node: Node) -> NodeIndex {
        let id = self.graph.add_node((node, Needs::All));
        self.ids.insert(node, id);
        id
    }

    /// The groups that wait for each other and can never go on.
    pub(crate) fn knots(&self) -> Vec<Knot> {
        let stuck = self.stuck();
        let part = self.graph.filter_map(
            |id, (node, _)| stuck.contains(&id).then_some(*node),
            |id, _| Some(id),
        );
        // kosaraju: the recursive algorithms of petgraph overflow the stack on chains of 100,000
        let mut out: Vec<Knot> = kosaraju_scc(&part)
            .into_iter()
            .filter(|all| all.len() > 1 || all.iter().any(|n| part.contains_edge(*n, *n)))
            .map(|all| {
                let nodes = all.iter().filter_map(|n| part.node_weight(*n).copied());
                self.knot(nodes.collect())
            })
            .collect();
        out.sort_by(|a, b| a.members.cmp(&b.members));
        out
    }

    /// What can never go on: all but what waits for nothing, or for what goes on in the end.
    fn stuck(&self) -> FxHashSet<NodeIndex> {
        let mut missing: FxHashMap<NodeIndex, usize> = FxHashMap::default();
        let mut free: Vec<NodeIndex> = Vec::new();
        for id in self.graph.node_indices() {
            let targets = self.graph.edges(id).count();
            let needs = self.graph.node_weight(id).map(|(_, needs)| *needs);
            match needs {
                Some(Needs::Never) => {}
                Some(Needs::Any { open }) if !open && targets > 0 => {
                    missing.insert(id, 1);
                }
                Some(Needs::All) if targets > 0 => {
                    missing.insert(id, targets);
                }
                _ => free.push(id),
            }
        }
        let mut out: FxHashSet<NodeIndex> = self.graph.node_indices().collect();
        while let Some(id) = free.pop() {
            if !out.remove(&id) {
                continue;
            }
            for edge in self.graph.edges_directed(id, Direction::Incoming) {
                if let Some(left) = missing.get_mut(&edge.source()) {
                    *left = left.saturating_sub(1);
                    if *left == 0 {
                        free.push(edge.source());
                    }
                }
            }
        }
        out
    }

    /// Puts the members in the order in which they wait, beginning at the first thread, else at the lowest.
    fn knot(&self, mut nodes: Vec<Node>) -> Knot {
        nodes.sort_unstable();
        let inside: FxHashSet<Node> = nodes.iter().copied().collect();
        let mut seen = FxHashSet::default();
        let mut members = Vec::with_capacity(nodes.len());
        for start in &nodes {
            let mut next = Some(*start);
            while let Some(node) = next.filter(|n| seen.insert(*n)) {
                members.push(node);
                let mut targets: Vec<Node> = self.inside(node, &inside).map(|(t, _)| t).collect();
                targets.retain(|t| !seen.contains(t));
                targets.sort_unstable();
                next = targets.first().copied();
            }
        }
        let mut edges = Vec::new();
        for member in &members {
            let found = self.inside(*member, &inside);
            edges.extend(found.map(|(target, edge)| (*member, target, edge.clone())));
        }
        Knot { members, edges }
    }

    fn inside<'g>(
        &'g self,
        node: Node,
        inside: &'g FxHashSet<Node>,
    ) -> impl Iterator<Item = (Node, &'g Edge)> {
        let id = self.ids.get(&node).copied();
        let edges = id.into_iter().flat_map(|id| self.graph.edges(id));
        edges.filter_map(|e| {
            let (target, _) = self.graph.node_weight(e.target())?;
            inside.contains(target).then_some((*target, e.weight()))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edge() -> Edge {
        Edge {
            slot: None,
            how: "made".into(),
            confidence: Confidence::Certain,
        }
    }

    /// Threads by number, with what each waits for.
    fn knots(all: &[(u32, Needs, &[u32])]) -> Vec<Vec<u32>> {
        let seeds = all.iter().map(|(id, ..)| Node::Thread(*id));
        let graph = WaitFor::follow(&Budget::new(), seeds, |node| {
            let found = all.iter().find(|(id, ..)| Node::Thread(*id) == node);
            let (_, needs, on) = found.unwrap();
            Waits {
                needs: *needs,
                on: on.iter().map(|t| (Node::Thread(*t), edge())).collect(),
            }
        });
        let number = |n: &Node| match n {
            Node::Thread(id) => *id,
            _ => u32::MAX,
        };
        let knots = graph.knots();
        knots
            .iter()
            .map(|k| k.members.iter().map(number).collect())
            .collect()
    }

    const ALL: Needs = Needs::All;
    const ANY: Needs = Needs::Any { open: false };
    const OPEN: Needs = Needs::Any { open: true };

    #[test]
    fn a_circle_is_found_once_and_who_waits_for_it_is_left_out() {
        let all = [
            (0, ALL, &[1][..]),
            (1, ALL, &[0]),
            (2, ALL, &[0]),
            (3, ALL, &[4]),
            (4, ALL, &[]),
        ];
        assert_eq!(knots(&all), [[0, 1]]);
        assert!(knots(&[(0, ALL, &[1]), (1, ALL, &[])]).is_empty());
        assert!(knots(&[]).is_empty());
    }

    #[test]
    fn one_alone_is_a_circle_when_it_waits_for_itself() {
        assert_eq!(knots(&[(3, ALL, &[3])]), [[3]]);
    }

    #[test]
    fn members_stand_in_the_order_in_which_they_wait() {
        let all = [(0, ALL, &[2][..]), (1, ALL, &[0]), (2, ALL, &[1])];
        assert_eq!(knots(&all), [[0, 2, 1]]);
    }

    #[test]
    fn whoever_needs_one_of_several_is_stuck_only_with_all_of_them() {
        // 1 waits for 0 or for 2, which can go on: then so can 1 and 0
        let goes_on = [(0, ALL, &[1][..]), (1, ANY, &[0, 2]), (2, ALL, &[])];
        assert!(knots(&goes_on).is_empty());
        let stuck = [(0, ALL, &[1][..]), (1, ANY, &[0, 2]), (2, ALL, &[1])];
        assert_eq!(knots(&stuck).concat().len(), 3);
        let unknown = [(0, ALL, &[1][..]), (1, OPEN, &[0])];
        assert!(knots(&unknown).is_empty());
    }

    #[test]
    fn whoever_needs_all_is_stuck_with_one_of_them() {
        let all = [(0, ALL, &[1, 2][..]), (1, ALL, &[0]), (2, ALL, &[])];
        assert_eq!(knots(&all), [[0, 1]]);
    }

    #[test]
    fn a_lock_of_one_that_has_ended_is_no_circle_and_sets_nobody_free() {
        let all = [
            (0, ANY, &[1, 2][..]),
            (1, ALL, &[0]),
            (2, Needs::Never, &[]),
        ];
        assert_eq!(knots(&all), [[0, 1]]);
    }

    #[test]
    fn long_chains_and_circles_need_no_stack() {
        let count = 200_000_u32;
        let graph = WaitFor::follow(&Budget::new(), [Node::Thread(0)], |node| {
            let Node::Thread(id) = node else {
                return Waits::default();
            };
            Waits {
                needs: ALL,
                on: vec![(Node::Thread((id + 1) % count), edge())],
            }
        });
        let knots = graph.knots();
        assert_eq!(knots.len(), 1);
        assert_eq!(knots[0].edges.len(), 200_000);
    }
}
