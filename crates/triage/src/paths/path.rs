//! Chains: every maximal path from an innermost wait to an outermost end.

use asynctriage_async_graph::{AsyncGraph, Class, Combinator, NodeId};
use petgraph::Direction;
use petgraph::algo::kosaraju_scc;
use rustc_hash::{FxHashMap, FxHashSet};

/// A path through the graph.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Path {
    /// What is waited for; for a cycle, one of its members.
    pub(crate) leaf: NodeId,
    /// Frames, innermost first.
    pub(crate) frames: Vec<NodeId>,
    /// The blocked thread's wait that the path ends at.
    pub(crate) blocked: Option<NodeId>,
    /// Whether what is waited for is the path itself.
    pub(crate) cycle: bool,
}

impl Path {
    /// The innermost method, or what is waited for when there is none.
    pub(crate) fn innermost(&self) -> NodeId {
        self.frames.first().copied().unwrap_or(self.leaf)
    }

    /// What waits for the end of all the rest: a blocked thread, else the last method.
    pub(crate) fn outermost(&self) -> NodeId {
        let last = self.blocked.or_else(|| self.frames.last().copied());
        last.unwrap_or(self.leaf)
    }
}

/// Paths from one wait above which only some are listed: where every level of a program waits for two others, paths
/// double with each level.
const MAX_FROM_ONE: u64 = 200_000;
/// How many are listed then.
const SAMPLE: usize = 100;
/// Frames of all paths together; one path can have 100,000.
const MAX_FRAMES: usize = 50_000_000;

/// All paths, as far as they can be listed.
#[derive(Debug, Default)]
pub(crate) struct Paths {
    pub(crate) paths: Vec<Path>,
    /// How many more there are; the largest number there is when they cannot be counted.
    pub(crate) unlisted: u64,
    frames: usize,
}

/// Whether a node shows as a frame. Other nodes on a path are passed through.
pub(crate) fn is_frame(graph: &AsyncGraph, id: NodeId) -> bool {
    let is_own = graph.machines.contains_key(&id)
        || graph.computations.contains_key(&id)
        || graph.running.contains_key(&id);
    if is_own || graph.for_each.contains_key(&id) {
        return true;
    }
    if let Some(operation) = graph.operations.get(&id) {
        return operation.async_frames().next().is_some();
    }
    graph
        .object(id)
        .is_some_and(|n| matches!(n.class, Class::Combinator(c) if c != Combinator::AsTask))
}

/// Members of each group of nodes that wait for one another.
struct Cycles {
    of: FxHashMap<NodeId, usize>,
    members: Vec<Vec<NodeId>>,
}

impl Cycles {
    fn find(graph: &AsyncGraph) -> Self {
        if !has_cycles(graph) {
            return Self {
                of: FxHashMap::default(),
                members: Vec::new(),
            };
        }
        // kosaraju: the recursive algorithms of petgraph overflow the stack on chains of 100,000
        let mut members: Vec<Vec<NodeId>> = kosaraju_scc(&graph.graph)
            .into_iter()
            // one that awaits itself is a cycle, too
            .filter(|c| c.len() > 1 || c.iter().any(|n| graph.graph.contains_edge(*n, *n)))
            .collect();
        for cycle in &mut members {
            in_waiting_order(graph, cycle);
        }
        members.sort_unstable_by_key(|m| m.first().copied());
        let of = members
            .iter()
            .enumerate()
            .flat_map(|(i, m)| m.iter().map(move |id| (*id, i)))
            .collect();
        Self { of, members }
    }
}

/// Whether anything is left of a graph once all that waits for nothing left is taken away, again and again.
fn has_cycles(graph: &AsyncGraph) -> bool {
    let g = &graph.graph;
    let mut open = vec![0_u32; g.node_count()];
    for edge in g.raw_edges() {
        if let Some(n) = open.get_mut(edge.target().index()) {
            *n = n.saturating_add(1);
        }
    }
    let mut todo: Vec<NodeId> = g.externals(Direction::Incoming).collect();
    let mut taken = 0_usize;
    while let Some(id) = todo.pop() {
        taken = taken.saturating_add(1);
        for waiter in graph.waiters(id) {
            if let Some(n) = open.get_mut(waiter.index()) {
                *n = n.saturating_sub(1);
                if *n == 0 {
                    todo.push(waiter);
                }
            }
        }
    }
    taken < g.node_count()
}

/// Orders a cycle's members so that each is followed by one that waits for it, beginning at the lowest address.
fn in_waiting_order(graph: &AsyncGraph, members: &mut Vec<NodeId>) {
    members.sort_unstable();
    let inside: FxHashSet<NodeId> = members.iter().copied().collect();
    let mut seen = FxHashSet::default();
    let mut ordered = Vec::with_capacity(members.len());
    for start in members.iter() {
        let mut next = Some(*start);
        while let Some(id) = next.filter(|id| seen.insert(*id)) {
            ordered.push(id);
            let mut waiters: Vec<_> = graph
                .waiters(id)
                .filter(|w| inside.contains(w) && !seen.contains(w))
                .collect();
            waiters.sort_unstable();
            next = waiters.first().copied();
        }
    }
    *members = ordered;
}

impl Paths {
    /// Lists the paths of a graph.
    pub(crate) fn find(graph: &AsyncGraph) -> Self {
        let cycles = Cycles::find(graph);
        let mut out = Self::default();
        for members in &cycles.members {
            let frames = members.iter().copied().filter(|id| is_frame(graph, *id));
            let frames: Vec<_> = frames.collect();
            if let Some(leaf) = frames.first().copied() {
                out.push(Path {
                    leaf,
                    frames,
                    blocked: None,
                    cycle: true,
                });
            }
        }
        let mut walk = Walk {
            graph,
            cycles: &cycles,
            counts: FxHashMap::default(),
        };
        for leaf in walk.starts() {
            walk.list(leaf, leaf, false, &mut out);
        }
        for (index, members) in cycles.members.iter().enumerate() {
            let outside = members
                .iter()
                .flat_map(|m| graph.waiters(*m))
                .filter(|w| cycles.of.get(w) != Some(&index));
            let outside: FxHashSet<_> = outside.collect();
            let mut outside: Vec<_> = outside.into_iter().collect();
            outside.sort_unstable();
            if let Some(leaf) = members.first() {
                for start in outside {
                    walk.list(*leaf, start, true, &mut out);
                }
            }
        }
        out
    }

    fn push(&mut self, path: Path) {
        if self.is_full() {
            self.unlisted = self.unlisted.saturating_add(1);
        } else {
            self.frames = self.frames.saturating_add(path.frames.len());
            self.paths.push(path);
        }
    }

    fn is_full(&self) -> bool {
        self.frames >= MAX_FRAMES
    }
}

struct Walk<'a> {
    graph: &'a AsyncGraph,
    cycles: &'a Cycles,
    /// Paths from a node outwards.
    counts: FxHashMap<NodeId, u64>,
}

impl Walk<'_> {
    /// Nodes that wait for nothing that is known, and are waited for or are frames themselves.
    fn starts(&self) -> Vec<NodeId> {
        let g = &self.graph.graph;
        let innermost = g
            .externals(Direction::Incoming)
            .filter(|id| g.neighbors(*id).next().is_some() || is_open_frame(self.graph, *id))
            .filter(|id| !self.graph.torn.inwards.contains(id));
        innermost.collect()
    }

    /// Whether every path ends here: in a cycle, or at a blocked thread.
    fn ends(&self, id: NodeId) -> bool {
        let blocked = self
            .graph
            .object(id)
            .is_some_and(|n| n.class == Class::BlockingWait);
        blocked || self.cycles.of.contains_key(&id)
    }

    /// Whether each node from here outwards has one waiter at most: most waits have one path.
    fn is_straight(&self, start: NodeId) -> bool {
        let mut at = start;
        loop {
            if self.ends(at) {
                return true;
            }
            let mut waiters = self.graph.waiters(at);
            match (waiters.next(), waiters.next()) {
                (None, _) => return true,
                (Some(next), None) => at = next,
                _ => return false,
            }
        }
    }

    /// The number of paths from a node outwards, found from the outside in.
    fn count(&mut self, start: NodeId) -> u64 {
        if self.is_straight(start) {
            return 1;
        }
        let mut todo = vec![start];
        while let Some(id) = todo.last().copied() {
            if self.counts.contains_key(&id) {
                todo.pop();
                continue;
            }
            let waiters: Vec<NodeId> = if self.ends(id) {
                Vec::new()
            } else {
                self.graph.waiters(id).collect()
            };
            let before = todo.len();
            todo.extend(waiters.iter().filter(|w| !self.counts.contains_key(w)));
            if todo.len() == before {
                let known = waiters.iter().filter_map(|w| self.counts.get(w).copied());
                let sum = known.fold(0, u64::saturating_add).max(1);
                self.counts.insert(id, sum);
                todo.pop();
            }
        }
        self.counts.get(&start).copied().unwrap_or(1)
    }

    /// Lists the paths from a wait, or some of them when they are too many.
    fn list(&mut self, leaf: NodeId, start: NodeId, cycle: bool, out: &mut Paths) {
        let count = self.count(start);
        if out.is_full() {
            out.unlisted = out.unlisted.saturating_add(count);
        } else if count > MAX_FROM_ONE {
            let listed = self.from(leaf, start, cycle, SAMPLE, out);
            let rest = count.saturating_sub(listed as u64);
            out.unlisted = out.unlisted.saturating_add(rest);
        } else {
            self.from(leaf, start, cycle, usize::MAX, out);
        }
    }

    /// Depth first with a stack of its own: chains can be 100,000 long. Returns how many paths were listed.
    fn from(
        &self,
        leaf: NodeId,
        start: NodeId,
        cycle: bool,
        limit: usize,
        out: &mut Paths,
    ) -> usize {
        let mut frames: Vec<NodeId> = Vec::new();
        let mut todo: Vec<(NodeId, usize)> = vec![(start, 0)];
        let mut listed = 0_usize;
        while let Some((id, depth)) = todo.pop().filter(|_| listed < limit) {
            frames.truncate(depth);
            if let Some(members) = self
                .cycles
                .of
                .get(&id)
                .and_then(|i| self.cycles.members.get(*i))
            {
                // what leads into a cycle ends there: each member once
                let rest = members.iter().copied().filter(|m| is_frame(self.graph, *m));
                let all = frames.iter().copied().chain(rest).collect();
                out.push(Path {
                    leaf,
                    frames: all,
                    blocked: None,
                    cycle,
                });
                listed = listed.saturating_add(1);
                continue;
            }
            if is_frame(self.graph, id) {
                frames.push(id);
            }
            let blocked = self.ends(id).then_some(id);
            let before = todo.len();
            if blocked.is_none() {
                todo.extend(self.graph.waiters(id).map(|w| (w, frames.len())));
            }
            let is_end = todo.len() == before && (blocked.is_some() || !frames.is_empty());
            if is_end && !self.graph.torn.outwards.contains(&id) {
                out.push(Path {
                    leaf,
                    frames: frames.clone(),
                    blocked,
                    cycle,
                });
                listed = listed.saturating_add(1);
            }
        }
        listed
    }
}

/// A frame that can still be waiting: combinators that nobody awaits are of no interest.
fn is_open_frame(graph: &AsyncGraph, id: NodeId) -> bool {
    graph.machines.contains_key(&id)
        || graph.running.contains_key(&id)
        || graph.operations.contains_key(&id) && is_frame(graph, id)
}
