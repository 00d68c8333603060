//! The graph: what resumes what.

use crate::callee::Callees;
use crate::class::{Class, Helper, Wanted, classify};
use crate::machine::{BoxState, COPY, Decoder, Machine};
use crate::queue::Queues;
use crate::running::{Running, RunningOperation};
use crate::runtime_async::{self, Operation, TaskState};
use crate::source::Sources;
use crate::task::TaskFields;
use crate::torn::Torn;
use crate::witness::{Contradiction, End, Witness};
use asynctriage_clr::{Gap, GapKind, Heap, Runtime};
use asynctriage_dump::Addr;
use petgraph::graph::{DiGraph, EdgeIndex, NodeIndex};
use petgraph::visit::EdgeRef;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeMap;
use std::sync::RwLock;

/// Types that a gap names.
const MAX_TYPES: usize = 3;

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
    /// Which end of the link it stands at.
    pub end: End,
    /// Whether the other end says the same.
    pub witness: Witness,
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
    /// What goes on in computations of F#'s `async`: the closure that takes what they wait for.
    pub computations: FxHashMap<NodeId, Addr>,
    /// Methods that run now, by the box or the task that they complete.
    pub running: FxHashMap<NodeId, Running>,
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
    /// Links whose ends disagree.
    pub contradictions: Vec<Contradiction>,
    pub(crate) contradicted: FxHashSet<NodeId>,
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
        Self::build_with(rt, |_| None)
    }

    /// The same, and lists the objects of classes that the caller wants besides.
    #[must_use]
    pub fn build_with(rt: &Runtime<'_>, wanted: Wanted) -> Self {
        let classes: RwLock<FxHashMap<Addr, Option<Class>>> = RwLock::default();
        let class_of = |mt: Addr| {
            if let Some(known) = classes.read().ok().and_then(|c| c.get(&mt).copied()) {
                return known;
            }
            let class = classify(rt, mt, wanted);
            if let Ok(mut all) = classes.write() {
                all.insert(mt, class);
            }
            class
        };
        rt.budget().begin("walking the heap");
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
        rt.budget().begin("linking what waits");
        let mut builder = Builder::new(rt, heap);
        builder.add_nodes(nodes);
        builder.link();
        builder.out
    }

    pub(crate) fn add_node(&mut self, node: Node) -> NodeId {
        let id = self.graph.add_node(node);
        self.ids.insert(node.addr, id);
        id
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

    /// Whether a node is an end of a link that its other end denies.
    #[must_use]
    pub fn is_contradicted(&self, id: NodeId) -> bool {
        self.contradicted.contains(&id)
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
    callees: Callees,
    pub(crate) sources: Sources,
    pub(crate) linked: FxHashMap<(NodeId, NodeId), EdgeIndex<u32>>,
    /// What methods with builders of other makers will complete.
    pub(crate) promises: FxHashMap<Addr, NodeId>,
    /// Continuations of kinds that are not known: what is awaited, the slot, the object.
    pub(crate) others: Vec<(NodeId, Addr, Addr)>,
    /// Slots that should name who is resumed, or what is awaited, and name no object.
    pub(crate) dangling: Vec<Addr>,
    /// Slots that should name who is resumed, and name what nobody can be.
    pub(crate) strangers: Vec<Addr>,
    /// Links to be taken out once all are known.
    pub(crate) replaced: Vec<(NodeId, NodeId)>,
}

impl<'r, 'd> Builder<'r, 'd> {
    fn new(rt: &'r Runtime<'d>, heap: Heap) -> Self {
        let task = TaskFields::find(rt);
        let mut gaps = heap.gaps.clone();
        if task.is_none() {
            gaps.push(Gap {
                kind: GapKind::TaskFields,
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
            computations: FxHashMap::default(),
            running: FxHashMap::default(),
            helpers: FxHashMap::default(),
            completion_sources: FxHashMap::default(),
            semaphores: FxHashMap::default(),
            for_each: FxHashMap::default(),
            queues: Queues::default(),
            rejected: Vec::new(),
            completed: Vec::new(),
            contradictions: Vec::new(),
            contradicted: FxHashSet::default(),
            torn: Torn::default(),
            gaps,
            ids: FxHashMap::default(),
        };
        Self {
            rt,
            out,
            decoder: Decoder::new(rt),
            callees: Callees::default(),
            sources: Sources::default(),
            linked: FxHashMap::default(),
            promises: FxHashMap::default(),
            others: Vec::new(),
            dangling: Vec::new(),
            strangers: Vec::new(),
            replaced: Vec::new(),
        }
    }

    fn add_nodes(&mut self, nodes: Vec<Node>) {
        for node in nodes {
            if let Class::Helper(kind) = node.class {
                self.out.helpers.entry(kind).or_default().push(node.addr);
            } else {
                self.out.add_node(node);
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
        let mut impossible = Vec::new();
        let budget = self.rt.budget();
        for (id, node) in budget.each("tasks and methods, for what they are", &ids) {
            let task = self.out.task.filter(|_| node.class.is_task());
            if task.is_some_and(|t| t.is_impossible(self.rt, node.addr)) {
                impossible.push(node.addr);
            }
            if node.class.is_machine() {
                self.decode_box(*id, *node);
            } else if self.completed(*node) {
                self.out.completed.push(*node);
            } else if node.class == Class::RuntimeAsyncTask {
                self.decode_operation(*id, *node);
            }
        }
        self.out.gaps.extend(impossible_gap(&impossible));
        let shared = self.shared_gap();
        self.out.gaps.extend(shared);
        self.out.gaps.extend(self.threads_gap());
        self.link_dispatchers();
        let suspended = self.out.operations.values().flat_map(|o| &o.frames);
        let waiting = self.out.running.values().flat_map(Running::frames);
        let unnamed = runtime_async::unnamed(suspended.chain(waiting));
        self.out.gaps.extend(unnamed);
        self.link_results();
        self.link_awaiters();
        for (id, node) in budget.each("tasks and methods, for who waits for them", &ids) {
            if !self.completed(*node) {
                self.link_continuations(*id, *node);
                self.link_inner(*id, *node);
            }
        }
        self.link_for_each();
        self.link_computations();
        // takes links out, which renumbers the others
        self.linked = FxHashMap::default();
        for (from, to) in std::mem::take(&mut self.replaced) {
            self.cut_link(from, to);
        }
        self.prove_machines();
        self.compare_ends();
        self.out.gaps.extend(self.dangling_gap());
        self.out.gaps.extend(self.declared_gap());
        if self.out.heap.shape.collection.moving {
            self.cut_torn_links();
        }
        self.out
            .gaps
            .extend(rejected_gap(self.rt, &self.out.rejected));
        self.link_owners();
        self.out.gaps.extend(self.semaphores_gap());
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
            BoxState::Running(machine) => {
                self.out.running.insert(id, Running::Machine(machine));
            }
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
            TaskState::Suspended(mut operation) => {
                self.dangling.extend(operation.breaks_at);
                self.callees.check(self.rt, &mut operation.frames);
                self.out.operations.insert(id, operation);
            }
            TaskState::Running => {
                let running = Running::Operation(RunningOperation::default());
                self.out.running.insert(id, running);
            }
            TaskState::Rejected(reason) => self.out.rejected.push(Rejected {
                addr: node.addr,
                mt: node.mt,
                reason,
            }),
        }
    }

    /// Takes out all links of a node.
    pub(crate) fn cut(&mut self, id: NodeId) {
        let out: Vec<NodeId> = self.out.waiters(id).collect();
        let inwards: Vec<NodeId> = self.out.awaited(id).map(|(from, _)| from).collect();
        for to in out {
            self.cut_link(id, to);
        }
        for from in inwards {
            self.cut_link(from, id);
        }
    }

    /// Takes out a link.
    pub(crate) fn cut_link(&mut self, from: NodeId, to: NodeId) {
        if let Some(edge) = self.out.graph.find_edge(from, to) {
            self.out.graph.remove_edge(edge);
        }
    }
}

/// Methods that wait in a way that is not read. Copies that a collection left behind are none.
fn rejected_gap(rt: &Runtime<'_>, rejected: &[Rejected]) -> Option<Gap> {
    let unread = rejected.iter().filter(|r| r.reason != COPY);
    let mut types: BTreeMap<Addr, (u64, &'static str)> = BTreeMap::new();
    for r in unread {
        let of_type = types.entry(r.mt).or_insert((0, r.reason));
        of_type.0 = of_type.0.saturating_add(1);
    }
    let count = types.values().map(|(n, _)| *n).fold(0, u64::saturating_add);
    let text = |(mt, (n, reason)): (&Addr, &(u64, &str))| {
        let name = rt
            .ty(*mt)
            .map_or_else(|| mt.to_string(), |t| rt.name(&t).to_string());
        format!("{n} {name} ({reason})")
    };
    let mut all: Vec<String> = types.iter().take(MAX_TYPES).map(text).collect();
    if types.len() > MAX_TYPES {
        all.push("others".into());
    }
    (count > 0).then(|| Gap {
        kind: GapKind::RejectedMethod,
        place: "objects that look like waiting methods".into(),
        why: format!(
            "{count} are not read: {}; what they wait for and who waits for them is missing",
            all.join(", ")
        ),
        remedy: "look at them with `asynctriage show`; memory may be damaged, or their compiler is one that is not known".into(),
    })
}

/// Tasks whose state is not believed.
fn impossible_gap(tasks: &[Addr]) -> Option<Gap> {
    let first = tasks.first()?;
    Some(Gap {
        kind: GapKind::ImpossibleTask,
        place: "tasks".into(),
        why: format!(
            "{} tasks are in states that no task can have, as {first}: they have ended in more than one way, with an exception that is not there, or while somebody is still registered to be resumed; they count as if they had not ended",
            tasks.len()
        ),
        remedy: "memory is damaged: take another dump, and compare".into(),
    })
}
