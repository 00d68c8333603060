//! The wait-for graph as the report shows it: threads, groups of chains, and what stands between them.

mod chains;
mod words;

use crate::chains::Dependency;
use crate::facts::Awaited;
use crate::findings::{Facts, KnotNames};
use crate::holders::Holder;
use crate::threads::{ThreadFacts, Wait};
use crate::waitfor::{Edge, Knot, Node};
use asynctriage_dump::Addr;
use asynctriage_report::{
    Address, ChainGroup, Completer, CompleterKind, Confidence, LeafKind, Thread, VerdictState,
    WaitEdge, WaitGraph, WaitNode, WaitNodeKind,
};
use rustc_hash::{FxHashMap, FxHashSet};
use words::{edge_text, leaf_kind, method_of, node_kind};

/// Nodes of one graph.
const MAX_NODES: usize = 400;
/// Objects that the chains of one group wait for and that are nodes of their own.
const MAX_OBJECTS: usize = 5;
/// Completers of one leaf that are nodes.
const MAX_COMPLETERS: usize = 3;

/// What makes two nodes the same one.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Key {
    Thread(u64),
    /// Threads of one name that wait for the node at a place.
    Alike(String, usize),
    Group(String),
    Object(Addr),
    /// A method of a deadlock that is one of several chains of its group.
    Member(Node),
    Named(WaitNodeKind, String),
}

/// The graph under construction.
struct Builder<'f, 'a, 'r, 'd> {
    facts: Facts<'a, 'r, 'd>,
    threads: &'f [Thread],
    graph: WaitGraph,
    known: FxHashMap<Key, usize>,
    edges: FxHashMap<(usize, usize, String), usize>,
    /// Boxes of listed chains, by address, with the group that they are part of.
    boxes: FxHashMap<u64, usize>,
}

/// The graph of a report whose rows of threads are given.
pub(super) fn graph(facts: Facts<'_, '_, '_>, threads: &[Thread]) -> WaitGraph {
    let groups = facts.groups.groups.iter().enumerate();
    let boxes = groups.flat_map(|(index, group)| {
        let listed = group.members.iter().flat_map(|m| &m.boxes);
        listed.map(move |at| (at.0, index))
    });
    let mut builder = Builder {
        facts,
        threads,
        graph: WaitGraph::default(),
        known: FxHashMap::default(),
        edges: FxHashMap::default(),
        boxes: boxes.collect(),
    };
    for knot in &facts.deadlocks.knots {
        builder.knot(knot);
    }
    builder.all_threads();
    // what waits for work, as it should, comes last
    let idle = |g: &ChainGroup| {
        g.verdict
            .as_ref()
            .is_some_and(|v| v.state == VerdictState::Idle)
    };
    let order = facts.groups.groups.iter().enumerate();
    let (late, early): (Vec<_>, Vec<_>) = order.partition(|(_, g)| idle(g));
    for (index, group) in early.into_iter().chain(late) {
        builder.group(index, group);
    }
    builder.owners();
    builder.graph
}

impl Builder<'_, '_, '_, '_> {
    /// The place of a node, made when it is not there yet; `None` when there are too many.
    fn node(&mut self, key: Key, make: impl FnOnce(&Self) -> WaitNode) -> Option<usize> {
        if let Some(known) = self.known.get(&key) {
            return Some(*known);
        }
        let index = self.graph.nodes.len();
        if index >= MAX_NODES {
            return None;
        }
        let node = WaitNode {
            id: format!("W{}", index.saturating_add(1)),
            ..make(self)
        };
        self.graph.nodes.push(node);
        self.known.insert(key, index);
        Some(index)
    }

    /// Adds to an edge or makes it.
    fn edge(&mut self, from: usize, to: usize, edge: WaitEdge) {
        let key = (from, to, edge.text.clone());
        if let Some(known) = self
            .edges
            .get(&key)
            .and_then(|i| self.graph.edges.get_mut(*i))
        {
            if !edge.in_cycle && !known.in_cycle {
                known.count = known.count.saturating_add(edge.count);
            }
            known.in_cycle |= edge.in_cycle;
            known.confidence = known.confidence.min(edge.confidence);
            return;
        }
        let id = |at: usize| self.graph.nodes.get(at).map(|n| n.id.clone());
        let (Some(from_id), Some(to_id)) = (id(from), id(to)) else {
            return;
        };
        self.edges.insert(key, self.graph.edges.len());
        self.graph.edges.push(WaitEdge {
            from: from_id,
            to: to_id,
            ..edge
        });
    }

    fn thread(&mut self, os_id: u64) -> Option<usize> {
        self.node(Key::Thread(os_id), |b| {
            let row = b.threads.iter().find(|t| t.os_id == os_id);
            let name = row.and_then(|t| t.name.clone()).unwrap_or_default();
            WaitNode {
                kind: WaitNodeKind::Thread,
                text: format!("thread '{name}' (os id {os_id})"),
                thread: Some(os_id),
                chain: row.and_then(|t| t.chain.clone()),
                ..WaitNode::default()
            }
        })
    }

    fn managed(&self, id: u32) -> Option<&ThreadFacts> {
        let index = self.facts.hang.by_managed_id(id)?;
        self.facts.hang.threads.get(index)
    }

    fn chain(&mut self, group: &ChainGroup) -> Option<usize> {
        self.node(Key::Group(group.id.clone()), |_| WaitNode {
            kind: WaitNodeKind::Chain,
            text: method_of(group),
            count: group.count,
            chain: Some(group.id.clone()),
            address: group.frames.first().and_then(|f| f.address),
            ..WaitNode::default()
        })
    }

    fn chain_by_id(&mut self, id: &str) -> Option<usize> {
        let group = self.facts.groups.groups.iter().find(|g| g.id == id)?;
        self.chain(group)
    }

    fn object(&mut self, kind: WaitNodeKind, at: Addr, text: &str) -> Option<usize> {
        self.node(Key::Object(at), |_| WaitNode {
            kind,
            text: text.to_owned(),
            address: Some(Address(at.0)),
            ..WaitNode::default()
        })
    }

    fn named(&mut self, kind: WaitNodeKind, text: &str, scope: &str) -> Option<usize> {
        self.node(Key::Named(kind, format!("{scope}\n{text}")), |_| WaitNode {
            kind,
            text: text.to_owned(),
            ..WaitNode::default()
        })
    }

    /// A deadlock: those who act, and what they want.
    fn knot(&mut self, knot: &Knot) {
        let names = KnotNames::new(self.facts, knot);
        let mut places = FxHashMap::default();
        for member in knot.members.iter().copied() {
            if let Some(place) = self.member(&names, member) {
                places.insert(member, place);
            }
        }
        for Visible { from, to, edge } in visible_edges(knot, &places) {
            self.edge(
                from.1,
                to.1,
                WaitEdge {
                    text: match from.0 {
                        // nobody is inside: who waits for it waits for a signal
                        Node::Semaphore(at) if self.facts.deadlocks.holders.of(at).is_empty() => {
                            "to be released by".into()
                        }
                        node => edge_text(node, to.0).into(),
                    },
                    confidence: edge.confidence,
                    how: edge.how.to_string(),
                    in_cycle: true,
                    ..WaitEdge::default()
                },
            );
        }
        let mut ids: Vec<String> = Vec::new();
        for place in knot.members.iter().filter_map(|m| places.get(m)) {
            let id = self.graph.nodes.get(*place).map(|n| n.id.clone());
            ids.extend(id.filter(|id| !ids.contains(id)));
        }
        if !ids.is_empty() {
            self.graph.cycles.push(ids);
        }
    }

    /// The node of a member; tasks that only stand between others have none.
    fn member(&mut self, names: &KnotNames<'_, '_, '_, '_>, member: Node) -> Option<usize> {
        match member {
            Node::Thread(id) => {
                let os_id = self.managed(id)?.thread.os_id;
                self.thread(u64::from(os_id))
            }
            Node::Async(_) => {
                let text = names.method(member)?;
                let at = names.address(member);
                self.method(member, &text, at)
            }
            Node::Lock(at) | Node::ReaderWriter { lock: at, .. } => {
                let at = self.lock_object(at);
                self.object(WaitNodeKind::Lock, at, &names.name(member))
            }
            Node::Semaphore(at) => self.object(WaitNodeKind::Semaphore, at, &names.name(member)),
            Node::Pump(at) => self.object(WaitNodeKind::Queue, at, &names.name(member)),
            Node::Class(at) | Node::Callback(at) | Node::Event(at) => {
                self.object(WaitNodeKind::Other, at, &names.name(member))
            }
        }
    }

    /// A method: its group where that is this one chain, else a node of its own.
    fn method(&mut self, node: Node, text: &str, at: Option<Addr>) -> Option<usize> {
        let found = at.and_then(|a| self.boxes.get(&a.0)).copied();
        let group = found.and_then(|i| self.facts.groups.groups.get(i));
        if let Some(only) = group.filter(|g| g.count == 1) {
            return self.chain(only);
        }
        self.node(Key::Member(node), |_| WaitNode {
            kind: WaitNodeKind::Chain,
            text: text.to_owned(),
            chain: group.map(|g| g.id.clone()),
            address: at.map(|a| Address(a.0)),
            ..WaitNode::default()
        })
    }

    /// Locks are known by the object that is locked where there is one.
    fn lock_object(&self, at: Addr) -> Addr {
        let threads = self.facts.hang.threads.iter();
        let mut objects = threads.filter_map(|t| match &t.wait {
            Some(Wait::Lock(lock)) if lock.at == at => lock.object,
            _ => None,
        });
        objects.next().unwrap_or(at)
    }

    /// What each thread waits for.
    fn all_threads(&mut self) {
        for (facts, row) in self.facts.hang.threads.iter().zip(self.threads) {
            let (Some(wait), Some(on)) = (&facts.wait, &row.waits_on) else {
                continue;
            };
            let sure = match wait {
                Wait::Object(object) if object.is_possible => Confidence::Possible,
                _ => Confidence::Certain,
            };
            let to = match (wait, &row.chain) {
                (Wait::Task(_), Some(chain)) => self.chain_by_id(chain),
                _ => match on.address {
                    Some(at) => self.object(node_kind(wait), Addr(at.0), &on.text),
                    None => self.named(node_kind(wait), &on.text, ""),
                },
            };
            match to.and_then(|to| Some((self.waiter(row, to)?, to))) {
                Some((from, to)) => self.edge(from, to, plain("waits for", sure, &on.text)),
                None => self.graph.left_out = self.graph.left_out.saturating_add(1),
            }
        }
    }

    /// The node of a thread that waits; those of one name that wait for one thing and hold nothing are one node.
    fn waiter(&mut self, row: &Thread, to: usize) -> Option<usize> {
        let key = Key::Thread(row.os_id);
        if !row.holds.is_empty() || self.known.contains_key(&key) {
            return self.thread(row.os_id);
        }
        let alike = Key::Alike(row.name.clone().unwrap_or_default(), to);
        if let Some(known) = self.known.get(&alike).copied() {
            self.known.insert(key, known);
            if let Some(node) = self.graph.nodes.get_mut(known) {
                node.count = node.count.saturating_add(1);
                let name = row.name.as_deref().unwrap_or_default();
                node.text = format!("{} threads '{name}'", node.count);
            }
            return Some(known);
        }
        let made = self.thread(row.os_id)?;
        self.known.insert(alike, made);
        Some(made)
    }

    /// Who holds the locks and places that others wait for.
    fn owners(&mut self) {
        for row in self.threads {
            for held in &row.holds {
                let lock = held
                    .address
                    .and_then(|at| self.known.get(&Key::Object(Addr(at.0))));
                if let Some(lock) = lock.copied()
                    && let Some(thread) = self.thread(row.os_id)
                {
                    self.edge(
                        lock,
                        thread,
                        plain("held by", Confidence::Certain, &held.text),
                    );
                }
            }
        }
        let facts = self.facts;
        for semaphore in facts.deadlocks.holders.semaphores() {
            let Some(at) = self.known.get(&Key::Object(semaphore)).copied() else {
                continue;
            };
            for holder in facts.deadlocks.holders.of(semaphore) {
                self.holder(at, holder);
            }
        }
    }

    fn holder(&mut self, semaphore: usize, holder: &Holder) {
        let to = match Node::from(holder.who) {
            Node::Thread(id) => {
                let os_id = self.managed(id).map(|t| u64::from(t.thread.os_id));
                os_id.and_then(|id| self.thread(id))
            }
            node => {
                // many chains of one group are one node, their places are counted on the edge
                let group = holder.slot.and_then(|s| self.boxes.get(&s.0)).copied();
                let group = group.and_then(|i| self.facts.groups.groups.get(i));
                match group {
                    Some(group) if !self.known.contains_key(&Key::Member(node)) => {
                        self.chain(group)
                    }
                    _ => self.method(node, &holder.method, holder.slot),
                }
            }
        };
        if let Some(to) = to {
            let id = |at: usize| self.graph.nodes.get(at).map(|n| n.id.clone());
            let (from_id, to_id) = (id(semaphore), id(to));
            let is_known = self.graph.edges.iter().any(|e| {
                e.in_cycle && Some(&e.from) == from_id.as_ref() && Some(&e.to) == to_id.as_ref()
            });
            if !is_known {
                self.edge(
                    semaphore,
                    to,
                    plain("a place held by", holder.confidence, &holder.how),
                );
            }
        }
    }
}

fn plain(text: &str, confidence: Confidence, how: &str) -> WaitEdge {
    WaitEdge {
        text: text.into(),
        confidence,
        how: how.into(),
        ..WaitEdge::default()
    }
}

/// A wait between two members that have a node.
struct Visible<'k> {
    from: (Node, usize),
    to: (Node, usize),
    edge: &'k Edge,
}

/// The waits between members that have a place; what lies between two of them is passed over.
fn visible_edges<'k>(knot: &'k Knot, places: &FxHashMap<Node, usize>) -> Vec<Visible<'k>> {
    let mut next: FxHashMap<Node, Vec<(Node, &Edge)>> = FxHashMap::default();
    for (from, to, edge) in &knot.edges {
        next.entry(*from).or_default().push((*to, edge));
    }
    let mut out = Vec::new();
    for member in &knot.members {
        let Some(from) = places.get(member) else {
            continue;
        };
        let mut seen: FxHashSet<Node> = FxHashSet::default();
        let mut todo = vec![*member];
        while let Some(at) = todo.pop() {
            for (to, edge) in next.get(&at).into_iter().flatten() {
                match places.get(to) {
                    Some(place) => out.push(Visible {
                        from: (*member, *from),
                        to: (*to, *place),
                        edge,
                    }),
                    None if seen.insert(*to) => todo.push(*to),
                    None => {}
                }
            }
        }
    }
    out
}
