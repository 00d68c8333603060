//! Edges of the graph: from both sides, what is awaited and who awaits it.

use crate::class::{Class, Combinator, Helper};
use crate::graph::{Builder, Edge, Node, NodeId};
use crate::resolve::{Waiter, resolve};
use crate::running::Running;
use crate::witness::{End, Witness};
use asynctriage_dump::Addr;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::hash_map::Entry;

/// References of an awaiter object that are followed to what it wraps.
const MAX_WRAPPED: usize = 16;

/// One end's word for a link.
pub(crate) struct Claim {
    pub(crate) slot: Addr,
    pub(crate) field: &'static str,
    pub(crate) end: End,
}

impl Builder<'_, '_> {
    /// Adds what one end of a link says; when the other end has said so before, the link is confirmed.
    pub(crate) fn add(&mut self, from: NodeId, to: NodeId, claim: &Claim) {
        // a task that awaits itself; of others a link to itself says nothing
        if from == to && !self.waits(from) {
            return;
        }
        match self.linked.entry((from, to)) {
            Entry::Vacant(new) => {
                let edge = Edge {
                    slot: claim.slot,
                    field: claim.field,
                    end: claim.end,
                    witness: Witness::One,
                };
                new.insert(self.out.graph.add_edge(from, to, edge));
            }
            Entry::Occupied(known) => {
                let edge = self.out.graph.edge_weight_mut(*known.get());
                if let Some(edge) = edge.filter(|e| e.end != claim.end) {
                    edge.witness = Witness::Both;
                }
            }
        }
    }

    /// Downwards: what the awaiters of suspended machines and the innermost continuations hold.
    pub(crate) fn link_awaiters(&mut self) {
        let mut edges = Vec::new();
        let budget = self.rt.budget();
        for (id, machine) in budget.each("methods, for what they wait for", &self.out.machines) {
            let targets = machine.awaits.iter();
            let targets = targets.filter_map(|(slot, o)| Some((*slot, self.awaited_node(*o)?)));
            edges.extend(targets.map(|(slot, from)| (from, *id, slot, "awaiter")));
        }
        for (id, operation) in &self.out.operations {
            if let Some((slot, object)) = operation.head.awaited() {
                let from = self.awaited_node(object);
                edges.extend(from.map(|from| (from, *id, slot, "continuation")));
            }
        }
        let by_frames = self.awaited_by_frames().into_iter();
        edges.extend(by_frames.map(|(slot, from, id)| (from, id, slot, "awaiter")));
        edges.sort_unstable_by_key(|(from, to, slot, _)| (*to, *slot, *from));
        for (from, to, slot, field) in edges {
            let end = End::Waiter;
            self.add(from, to, &Claim { slot, field, end });
        }
    }

    /// The node that an awaited object is; an async iterator stands for its box, a custom awaiter for what it wraps, what
    /// a builder of another maker completes for its method.
    pub(crate) fn awaited_node(&self, object: Addr) -> Option<NodeId> {
        if let Some(id) = self.out.node(object) {
            return Some(self.iterator_box(object).unwrap_or(id));
        }
        if let Some(id) = self.promises.get(&object) {
            return Some(*id);
        }
        let place = self.rt.place(object)?;
        let inner = place
            .fields(self.rt)
            .flat_map(|f| place.references_in(self.rt, f).collect::<Vec<_>>());
        let inner: Vec<Addr> = inner.take(MAX_WRAPPED).collect();
        let node = inner.iter().find_map(|o| self.out.node(*o));
        node.or_else(|| inner.iter().find_map(|o| self.promises.get(o).copied()))
    }

    /// The box of an async iterator, from the iterator object, which is its own value-task source.
    pub(crate) fn iterator_box(&self, object: Addr) -> Option<NodeId> {
        let place = self.rt.place(object)?;
        let field = self.rt.instance_field(&place.ty, "<>t__builder")?;
        let found = place
            .references_in(self.rt, &field)
            .find_map(|b| self.out.node(b));
        found.filter(|id| self.out.machines.contains_key(id) || self.out.running.contains_key(id))
    }

    /// Where an object keeps who is registered to be resumed; nothing for sources that have completed.
    pub(crate) fn continuation_slots(&self, node: Node) -> Vec<(Addr, &'static str)> {
        match node.class {
            Class::Source | Class::PooledBox | Class::OwnBox => {
                let slots = self.sources.waiting(self.rt, node);
                slots.map(|slot| (slot, "_continuationState")).collect()
            }
            Class::BlockingWait | Class::Helper(_) => Vec::new(),
            _ => {
                let slot = self.out.task.map(|t| t.continuation_slot(node.addr));
                slot.map(|s| (s, "m_continuationObject"))
                    .into_iter()
                    .collect()
            }
        }
    }

    /// Upwards: who is registered to be resumed.
    pub(crate) fn link_continuations(&mut self, id: NodeId, node: Node) {
        let from = self.iterator_box(node.addr).unwrap_or(id);
        for (slot, field) in self.continuation_slots(node) {
            let Some(value) = self.rt.memory().ptr(slot).and_then(Addr::non_null) else {
                continue;
            };
            for waiter in resolve(self.rt, &self.out, slot, value) {
                match waiter {
                    Waiter::Node(to, slot) if self.waits(to) => {
                        let end = End::Awaited;
                        self.add(from, to, &Claim { slot, field, end });
                    }
                    Waiter::Node(to, slot) => {
                        // whoever runs was resumed, and what resumed it has ended
                        let runs = matches!(self.out.running.get(&to), Some(Running::Machine(_)));
                        if runs && node.class.is_task() {
                            self.strangers.push(slot);
                        }
                    }
                    Waiter::Nothing(slot) => self.dangling.push(slot),
                    Waiter::Other(object) => {
                        if object == value && field == "m_continuationObject" {
                            self.note_stranger(slot, value);
                        }
                        self.others.push((from, slot, object));
                    }
                }
            }
        }
    }

    /// Whether a node can still be waiting.
    pub(crate) fn waits(&self, id: NodeId) -> bool {
        self.out.object(id).is_some_and(|n| match n.class {
            Class::Box | Class::PooledBox | Class::OwnBox => self.out.machines.contains_key(&id),
            Class::RuntimeAsyncTask => self.out.operations.contains_key(&id),
            _ => !self.completed(n),
        })
    }

    /// Tasks that name what they stand for.
    pub(crate) fn link_inner(&mut self, id: NodeId, node: Node) {
        let field = match node.class {
            Class::Combinator(Combinator::AsTask) => "_source",
            Class::Combinator(Combinator::WaitAsync) => "_task",
            _ => return,
        };
        let Some(slot) = self.rt.field_addr(node.addr, field) else {
            return;
        };
        let inner = self
            .rt
            .memory()
            .ptr(slot)
            .and_then(Addr::non_null)
            .and_then(|o| self.awaited_node(o));
        if let Some(from) = inner {
            let end = End::Waiter;
            self.add(from, id, &Claim { slot, field, end });
        }
    }

    pub(crate) fn link_owners(&mut self) {
        let sources = [Helper::CompletionSource, Helper::ForEachAsync];
        let owners: Vec<Addr> = sources
            .iter()
            .flat_map(|k| self.out.helpers(*k).to_vec())
            .collect();
        let budget = self.rt.budget();
        for owner in budget.each("sources, for their tasks", owners) {
            if let Some(task) = self.rt.reference(owner, "_task") {
                self.out.completion_sources.insert(task, owner);
            }
        }
        for semaphore in self.out.helpers(Helper::Semaphore).to_vec() {
            let mut seen = FxHashSet::default();
            let mut next = self.rt.reference(semaphore, "m_asyncHead");
            while let Some(waiter) = next.filter(|w| seen.insert(*w)) {
                if budget.leaves("queues of semaphores", || Some(1)) {
                    break;
                }
                self.out.semaphores.insert(waiter, semaphore);
                next = self.rt.reference(waiter, "Next");
            }
        }
    }

    /// The workers of a `Parallel.ForEachAsync` hold its state; what is awaited is the state's task.
    pub(crate) fn link_for_each(&mut self) {
        let mut states: FxHashMap<Addr, NodeId> = FxHashMap::default();
        for state in self.out.helpers(Helper::ForEachAsync) {
            if let Some(id) = self
                .rt
                .reference(*state, "_task")
                .and_then(|t| self.out.node(t))
            {
                states.insert(*state, id);
            }
        }
        if states.is_empty() {
            return;
        }
        let mut edges = Vec::new();
        for (id, object) in self.parallel_workers() {
            self.rt.for_each_reference(object, &mut |slot, target| {
                if let Some(to) = states.get(&target) {
                    edges.push((id, *to, slot, target));
                }
            });
        }
        edges.sort_unstable_by_key(|(from, to, slot, _)| (*from, *to, *slot));
        for (from, to, slot, state) in edges {
            self.out.for_each.insert(to, state);
            let (field, end) = ("ForEachAsyncState", End::Awaited);
            self.add(from, to, &Claim { slot, field, end });
        }
    }

    /// Methods that may be workers of `Parallel.ForEachAsync`, with the object that holds their variables.
    fn parallel_workers(&self) -> Vec<(NodeId, Addr)> {
        let machines = self.out.machines.iter().filter_map(|(id, m)| {
            let name = self.rt.definition_name(&m.place.ty);
            let object = self.out.object(*id)?.addr;
            name.starts_with("System.Threading.Tasks.Parallel+")
                .then_some((*id, object))
        });
        let frames = self
            .out
            .operations
            .iter()
            .flat_map(|(id, o)| o.frames.iter().map(move |f| (*id, f)));
        // a frame that could not be named may be one, too
        let frames = frames.filter(|(_, f)| {
            f.point.method.is_none() || f.point.name.starts_with("System.Threading.Tasks.Parallel.")
        });
        machines
            .chain(frames.map(|(id, f)| (id, f.continuation)))
            .collect()
    }
}
