//! The graph: what resumes what.

use crate::class::{Class, Combinator, Helper, classify, source_cores};
use crate::machine::{BoxState, Decoder, Machine};
use crate::queue::Queues;
use crate::resolve::{Waiter, resolve};
use crate::runtime_async::{self, Head, Operation, TaskState};
use crate::task::TaskFields;
use crate::torn::Torn;
use asynctriage_clr::{Gap, Heap, Runtime};
use asynctriage_dump::Addr;
use petgraph::graph::{DiGraph, NodeIndex};
use petgraph::visit::EdgeRef;
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::RwLock;

/// A node's number in the graph.
pub type NodeId = NodeIndex<u32>;

/// Something that is awaited, awaits, or both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Node {
    /// The object.
    pub addr: Addr,
    /// Its MethodTable.
    pub mt: Addr,
    /// What it is.
    pub class: Class,
}

/// Why one node resumes another: the slot that says so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Edge {
    /// Address of the slot.
    pub slot: Addr,
    /// Which field it is.
    pub field: &'static str,
}

/// An object that looked like a waiting method and is not taken for one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rejected {
    /// The object.
    pub addr: Addr,
    /// Its MethodTable.
    pub mt: Addr,
    /// Why not.
    pub reason: &'static str,
}

/// All that waits in a process. An edge leads from what is awaited to who awaits it.
#[derive(Debug)]
pub struct AsyncGraph {
    /// Nodes and edges.
    pub graph: DiGraph<Node, Edge, u32>,
    /// The heap that it was read from.
    pub heap: Heap,
    /// Field offsets of Task, when CoreLib's metadata is there.
    pub task: Option<TaskFields>,
    /// State machines that stand at an await.
    pub machines: FxHashMap<NodeId, Machine>,
    /// Chains of runtime-async methods, by their task (.NET 11).
    pub operations: FxHashMap<NodeId, Operation>,
    /// Boxes that run now or have not come to their first await.
    pub running: Vec<Addr>,
    /// Objects that explain others, by what they are.
    pub helpers: FxHashMap<Helper, Vec<Addr>>,
    /// The TaskCompletionSource (or a class derived from it) that owns a task.
    pub completion_sources: FxHashMap<Addr, Addr>,
    /// The semaphore in whose queue a task stands.
    pub semaphores: FxHashMap<Addr, Addr>,
    /// Tasks that a `Parallel.ForEachAsync` completes.
    pub for_each: FxHashMap<NodeId, Addr>,
    /// What the pool has yet to run.
    pub queues: Queues,
    /// Objects passed over.
    pub rejected: Vec<Rejected>,
    /// Tasks and boxes that have ended, by type.
    pub completed: Vec<Node>,
    /// Links that a collection which moved objects has torn; none in other dumps.
    pub torn: Torn,
    /// What could not be read.
    pub gaps: Vec<Gap>,
    ids: FxHashMap<Addr, NodeId>,
}

impl AsyncGraph {
    /// Walks the heap and links everything that waits.
    #[must_use]
    pub fn build(rt: &Runtime<'_>) -> Self {
        let classes: RwLock<FxHashMap<Addr, Option<Class>>> = RwLock::default();
        let class_of = |mt: Addr| {
            if let Some(known) = classes.read().ok().and_then(|c| c.get(&mt).copied()) {
                return known;
            }
            let class = classify(rt, mt);
            if let Ok(mut all) = classes.write() {
                all.insert(mt, class);
            }
            class
        };
        let heap = rt.walk_heap(&|mt| class_of(mt).is_some());
        let nodes: Vec<Node> = heap
            .wanted
            .iter()
            .filter_map(|o| {
                Some(Node {
                    addr: o.addr,
                    mt: o.mt,
                    class: class_of(o.mt)?,
                })
            })
            .collect();
        let mut builder = Builder::new(rt, heap);
        builder.add_nodes(nodes);
        builder.link();
        builder.out
    }

    /// The node of an object.
    #[must_use]
    pub fn node(&self, addr: Addr) -> Option<NodeId> {
        self.ids.get(&addr).copied()
    }

    /// The object of a node.
    #[must_use]
    pub fn object(&self, id: NodeId) -> Option<Node> {
        self.graph.node_weight(id).copied()
    }

    /// Whether a node is a task that has ended.
    #[must_use]
    pub fn is_completed(&self, rt: &Runtime<'_>, node: Node) -> bool {
        node.class.is_task() && self.task.is_some_and(|t| t.completed(rt, node.addr))
    }

    /// Helper objects of one kind.
    #[must_use]
    pub fn helpers(&self, kind: Helper) -> &[Addr] {
        self.helpers.get(&kind).map_or(&[], Vec::as_slice)
    }

    /// Who is resumed by a node.
    pub fn waiters(&self, id: NodeId) -> impl Iterator<Item = NodeId> + '_ {
        self.graph.edges(id).map(|e| e.target())
    }

    /// What resumes a node.
    pub fn awaited(&self, id: NodeId) -> impl Iterator<Item = (NodeId, Edge)> + '_ {
        self.graph
            .edges_directed(id, petgraph::Direction::Incoming)
            .map(|e| (e.source(), *e.weight()))
    }
}

pub(crate) struct Builder<'r, 'd> {
    pub(crate) rt: &'r Runtime<'d>,
    pub(crate) out: AsyncGraph,
    decoder: Decoder<'r, 'd>,
    linked: FxHashSet<(NodeId, NodeId)>,
}

impl<'r, 'd> Builder<'r, 'd> {
    fn new(rt: &'r Runtime<'d>, heap: Heap) -> Self {
        let task = TaskFields::find(rt);
        let mut gaps = heap.gaps.clone();
        if task.is_none() {
            gaps.push(Gap {
                section: "chains",
                place: "System.Private.CoreLib".into(),
                why: "the fields of System.Threading.Tasks.Task are not known: its metadata is not in the dump".into(),
                remedy: "bring the file with --module-path or --sysroot, or take a dump that includes the metadata: createdump and dotnet-dump on Linux do, on Windows only full dumps".into(),
            });
        }
        gaps.extend(crate::preview::gap(rt, &heap));
        let out = AsyncGraph {
            graph: DiGraph::default(),
            heap,
            task,
            machines: FxHashMap::default(),
            operations: FxHashMap::default(),
            running: Vec::new(),
            helpers: FxHashMap::default(),
            completion_sources: FxHashMap::default(),
            semaphores: FxHashMap::default(),
            for_each: FxHashMap::default(),
            queues: Queues::default(),
            rejected: Vec::new(),
            completed: Vec::new(),
            torn: Torn::default(),
            gaps,
            ids: FxHashMap::default(),
        };
        Self {
            rt,
            out,
            decoder: Decoder::new(rt),
            linked: FxHashSet::default(),
        }
    }

    fn add_nodes(&mut self, nodes: Vec<Node>) {
        for node in nodes {
            if let Class::Helper(kind) = node.class {
                self.out.helpers.entry(kind).or_default().push(node.addr);
            } else {
                let id = self.out.graph.add_node(node);
                self.out.ids.insert(node.addr, id);
            }
        }
    }

    pub(crate) fn completed(&self, node: Node) -> bool {
        self.out.is_completed(self.rt, node)
    }

    fn link(&mut self) {
        let ids: Vec<(NodeId, Node)> = self
            .out
            .graph
            .node_indices()
            .filter_map(|i| Some((i, self.out.object(i)?)))
            .collect();
        for (id, node) in &ids {
            if matches!(node.class, Class::Box | Class::PooledBox) {
                self.decode_box(*id, *node);
            } else if self.completed(*node) {
                self.out.completed.push(*node);
            } else if node.class == Class::RuntimeAsyncTask {
                self.decode_operation(*id, *node);
            }
        }
        let unnamed = runtime_async::unnamed(self.out.operations.values());
        self.out.gaps.extend(unnamed);
        self.link_awaiters();
        for (id, node) in &ids {
            if !self.completed(*node) {
                self.link_continuations(*id, *node);
                self.link_inner(*id, *node);
            }
        }
        if self.out.heap.shape.collection.moving {
            self.cut_torn_links();
        }
        self.link_owners();
        self.link_for_each();
        self.out.queues = Queues::read(self.rt, &self.out);
    }

    fn decode_box(&mut self, id: NodeId, node: Node) {
        let completed = self.completed(node);
        match self
            .decoder
            .decode(node.addr, node.mt, node.class, completed)
        {
            BoxState::Suspended(machine) => {
                self.out.machines.insert(id, machine);
            }
            BoxState::Running(_) => self.out.running.push(node.addr),
            BoxState::Completed => self.out.completed.push(node),
            BoxState::Parked => {}
            BoxState::Rejected(reason) => self.out.rejected.push(Rejected {
                addr: node.addr,
                mt: node.mt,
                reason,
            }),
        }
    }

    fn decode_operation(&mut self, id: NodeId, node: Node) {
        let state_object = self
            .out
            .task
            .and_then(|t| t.state_object(self.rt, node.addr));
        match runtime_async::decode(self.rt, node.addr, state_object) {
            TaskState::Suspended(operation) => {
                self.out.operations.insert(id, operation);
            }
            TaskState::Running => self.out.running.push(node.addr),
            TaskState::Rejected(reason) => self.out.rejected.push(Rejected {
                addr: node.addr,
                mt: node.mt,
                reason,
            }),
        }
    }

    fn add(&mut self, from: NodeId, to: NodeId, edge: Edge) {
        if from != to && self.linked.insert((from, to)) {
            self.out.graph.add_edge(from, to, edge);
        }
    }

    /// Downwards: what the awaiters of suspended machines and the innermost continuations hold.
    fn link_awaiters(&mut self) {
        let mut edges = Vec::new();
        for (id, machine) in &self.out.machines {
            let targets = machine
                .awaits
                .iter()
                .filter_map(|(slot, object)| Some((*slot, self.awaited_node(*object)?)));
            edges.extend(targets.map(|(slot, from)| {
                (
                    from,
                    *id,
                    Edge {
                        slot,
                        field: "awaiter",
                    },
                )
            }));
        }
        for (id, operation) in &self.out.operations {
            let (Head::Task(slot, object) | Head::Source(slot, object)) = operation.head else {
                continue;
            };
            let field = "continuation";
            let from = self.awaited_node(object);
            edges.extend(from.map(|from| (from, *id, Edge { slot, field })));
        }
        edges.sort_unstable_by_key(|(from, to, e)| (*to, e.slot, *from));
        for (from, to, edge) in edges {
            self.add(from, to, edge);
        }
    }

    /// The node that an awaited object is; an async iterator stands for its box, a custom awaiter for what it wraps.
    pub(crate) fn awaited_node(&self, object: Addr) -> Option<NodeId> {
        if let Some(id) = self.out.node(object) {
            return Some(self.iterator_box(object).unwrap_or(id));
        }
        let place = self.rt.place(object)?;
        let inner = place
            .fields(self.rt)
            .flat_map(|f| place.references_in(self.rt, f).collect::<Vec<_>>());
        inner.take(16).find_map(|o| self.out.node(o))
    }

    /// The box of an async iterator, from the iterator object, which is its own value-task source.
    pub(crate) fn iterator_box(&self, object: Addr) -> Option<NodeId> {
        let place = self.rt.place(object)?;
        let field = self.rt.instance_field(&place.ty, "<>t__builder")?;
        let found = place
            .references_in(self.rt, &field)
            .find_map(|b| self.out.node(b));
        found.filter(|id| self.out.machines.contains_key(id))
    }

    /// Where an object keeps who is registered to be resumed.
    pub(crate) fn continuation_slots(&self, node: Node) -> Vec<(Addr, &'static str)> {
        let mut slots: Vec<(Addr, &'static str)> = Vec::new();
        match node.class {
            Class::Source | Class::PooledBox => {
                let Some(ty) = self.rt.ty(node.mt) else {
                    return slots;
                };
                if let Some(field) = self.rt.instance_field(&ty, "_continuationState") {
                    slots.push((node.addr + field.offset + 8, "_continuationState"));
                }
                // the core's first two words are the callback and its state (8.0 to 11.0)
                slots.extend(
                    source_cores(self.rt, &ty)
                        .into_iter()
                        .map(|o| (node.addr + o + 16, "_continuationState")),
                );
            }
            Class::BlockingWait | Class::Helper(_) => {}
            _ => slots.extend(
                self.out
                    .task
                    .and_then(|t| t.continuation(self.rt, node.addr))
                    .map(|(slot, _)| (slot, "m_continuationObject")),
            ),
        }
        slots
    }

    /// Upwards: who is registered to be resumed.
    fn link_continuations(&mut self, id: NodeId, node: Node) {
        let from = self.iterator_box(node.addr).unwrap_or(id);
        for (slot, field) in self.continuation_slots(node) {
            let Some(value) = self.rt.memory().ptr(slot).and_then(Addr::non_null) else {
                continue;
            };
            for waiter in resolve(self.rt, &self.out, slot, value) {
                if let Waiter::Node(to, slot) = waiter
                    && self.waits(to)
                {
                    self.add(from, to, Edge { slot, field });
                }
            }
        }
    }

    /// Whether a node can still be waiting.
    pub(crate) fn waits(&self, id: NodeId) -> bool {
        self.out.object(id).is_some_and(|n| match n.class {
            Class::Box | Class::PooledBox => self.out.machines.contains_key(&id),
            Class::RuntimeAsyncTask => self.out.operations.contains_key(&id),
            _ => !self.completed(n),
        })
    }

    /// Tasks that name what they stand for.
    fn link_inner(&mut self, id: NodeId, node: Node) {
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
            self.add(from, id, Edge { slot, field });
        }
    }

    fn link_owners(&mut self) {
        let sources = [Helper::CompletionSource, Helper::ForEachAsync];
        let owners: Vec<Addr> = sources
            .iter()
            .flat_map(|k| self.out.helpers(*k).to_vec())
            .collect();
        for owner in owners {
            if let Some(task) = self.rt.reference(owner, "_task") {
                self.out.completion_sources.insert(task, owner);
            }
        }
        for semaphore in self.out.helpers(Helper::Semaphore).to_vec() {
            let mut seen = FxHashSet::default();
            let mut next = self.rt.reference(semaphore, "m_asyncHead");
            while let Some(waiter) = next.filter(|w| seen.insert(*w)) {
                self.out.semaphores.insert(waiter, semaphore);
                next = self.rt.reference(waiter, "Next");
            }
        }
    }

    /// The workers of a `Parallel.ForEachAsync` hold its state; what is awaited is the state's task.
    fn link_for_each(&mut self) {
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
            self.add(
                from,
                to,
                Edge {
                    slot,
                    field: "ForEachAsyncState",
                },
            );
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
