//! All that is known of a process, put together once.

use super::path::is_frame;
use super::retained::Kept;
use super::shapes::Shapes;
use crate::facts::HttpPool;
use crate::libraries;
use crate::libraries::channels::{self, ChannelWait};
use crate::lines::Lines;
use crate::process::Clock;
use crate::process::names::{Names, combinator_text};
use crate::process::private::{Literals, Values};
use crate::threads::{Hang, Stacks, Threads, display_name};
use asynctriage_async_graph::{AsyncGraph, Class, Combinator, Helper, Node, NodeId, Running};
use asynctriage_clr::{Roots, Runtime, Type};
use asynctriage_dump::Addr;
use rustc_hash::{FxHashMap, FxHashSet};
use std::cell::OnceCell;
use std::sync::Arc;

/// The graph with everything that explains it.
pub struct Analysis<'r, 'd> {
    pub(crate) rt: &'r Runtime<'d>,
    pub(crate) graph: AsyncGraph,
    pub(crate) threads: Threads,
    /// Whether data of the process is shown.
    pub(crate) values: Values,
    pub(super) hang: OnceCell<Hang>,
    /// By MoveNext delegate: the continuation that posts it, and the context or scheduler it goes to.
    pub(crate) posted: FxHashMap<Addr, (Addr, Addr)>,
    pub(crate) http_pools: FxHashMap<Addr, HttpPool>,
    /// Calls of client libraries by the TaskCompletionSource that ends them.
    pub(crate) client_calls: FxHashMap<Addr, Addr>,
    pub(crate) channel_waits: FxHashMap<Addr, ChannelWait>,
    pub(crate) clock: Clock,
    names: Names,
    pub(super) shapes: Shapes,
    /// Names of the types on the heap that are looked for at every frame.
    kinds: OnceCell<Kinds>,
    pub(crate) lines: Lines,
    /// Those of the objects that chains begin and end with that a root of the garbage collector reaches.
    reachable: OnceCell<FxHashSet<Addr>>,
    roots: OnceCell<Roots>,
    /// What suspended methods keep alive.
    pub(crate) kept: OnceCell<Option<Kept>>,
    literals: OnceCell<Literals>,
}

/// Which types of objects are on the heap at all, of those that are looked for at every frame.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Kinds {
    pub(crate) activities: bool,
    pub(crate) stopwatches: bool,
}

impl std::fmt::Debug for Analysis<'_, '_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Analysis")
            .field("nodes", &self.graph.graph.node_count())
            .finish_non_exhaustive()
    }
}

impl<'r, 'd> Analysis<'r, 'd> {
    /// Reads everything that waits in the process of a runtime.
    #[must_use]
    pub fn new(rt: &'r Runtime<'d>) -> Self {
        let graph = AsyncGraph::build_with(rt, libraries::wanted);
        let threads = Threads::read(rt, &graph);
        let posted = graph
            .helpers(Helper::ContextContinuation)
            .iter()
            .filter_map(|c| {
                let context = rt
                    .reference(*c, "m_syncContext")
                    .or_else(|| rt.reference(*c, "m_scheduler"))?;
                Some((rt.reference(*c, "m_action")?, (*c, context)))
            });
        Self {
            posted: posted.collect(),
            http_pools: libraries::http_client::pools_by_waiter(rt, &graph),
            client_calls: libraries::calls(rt, &graph),
            channel_waits: channels::waits(rt, &graph),
            clock: Clock::read(rt, &graph),
            names: Names::default(),
            shapes: Shapes::default(),
            kinds: OnceCell::new(),
            lines: Lines::default(),
            reachable: OnceCell::new(),
            roots: OnceCell::new(),
            hang: OnceCell::new(),
            kept: OnceCell::new(),
            literals: OnceCell::new(),
            values: Values::Hidden,
            rt,
            graph,
            threads,
        }
    }

    /// Looks for symbol files in these folders, too: side by side, or laid out as symbol stores are.
    #[must_use]
    pub fn with_symbols(mut self, folders: Vec<std::path::PathBuf>) -> Self {
        self.lines = Lines::new(folders);
        self
    }

    /// Shows data of the process, or how much of it there is; the latter when nobody says.
    #[must_use]
    pub fn with_values(mut self, values: Values) -> Self {
        self.values = values;
        self
    }

    /// What an exception says, as far as it may be shown.
    pub(crate) fn message_text(&self, message: &str) -> String {
        let read = || Literals::read(self.rt, &self.graph.heap);
        self.values
            .message(message, self.literals.get_or_init(read))
    }

    /// What libraries look at.
    pub(crate) fn libraries(&self) -> libraries::Process<'_, 'd> {
        libraries::Process {
            rt: self.rt,
            graph: &self.graph,
        }
    }

    /// What is looked at to tell what threads do.
    pub(crate) fn stacks(&self) -> Stacks<'_, 'd> {
        Stacks {
            rt: self.rt,
            graph: &self.graph,
            threads: &self.threads,
            values: self.values,
        }
    }

    /// The graph.
    #[must_use]
    pub fn graph(&self) -> &AsyncGraph {
        &self.graph
    }

    pub(crate) fn is_completed(&self, node: Node) -> bool {
        self.graph.is_completed(self.rt, node)
    }

    /// A node in words: what a frame is called, else its type.
    pub(crate) fn node_text(&self, id: NodeId) -> String {
        if is_frame(&self.graph, id) {
            return self.frame_name(id).to_string();
        }
        match self.graph.object(id) {
            Some(n) if n.class == Class::BlockingWait => self.frame_name(id).to_string(),
            Some(n) => self.type_name(n.mt).to_string(),
            None => "?".into(),
        }
    }

    /// Whether a root of the garbage collector reaches an object that a chain begins or ends with.
    pub(crate) fn is_reachable(&self, object: Addr) -> bool {
        match self.reachable.get() {
            Some(reached) => reached.contains(&object),
            None => !self.reached([object]).is_empty(),
        }
    }

    /// Finds out once for all chains which of the objects that they begin and end with are reachable.
    pub(crate) fn find_reachable(&self, ends: impl IntoIterator<Item = Addr>) {
        self.reachable.get_or_init(|| self.reached(ends));
    }

    /// Those of the objects that a root of the garbage collector reaches; all of them while objects are being moved, since
    /// references then lead astray, and where the analysis was ended, since ways may be missing.
    pub(crate) fn reached(&self, objects: impl IntoIterator<Item = Addr>) -> FxHashSet<Addr> {
        if self.graph.heap.shape.collection.moving || !self.rt.budget().cuts().is_empty() {
            return objects.into_iter().collect();
        }
        self.rt.reached(&self.graph.heap, self.roots(), objects)
    }

    pub(crate) fn kinds(&self) -> Kinds {
        *self.kinds.get_or_init(|| {
            let mut found = Kinds::default();
            for counted in &self.graph.heap.types {
                let ty = self.rt.ty(counted.mt);
                match ty.map(|t| self.rt.definition_name(&t)).as_deref() {
                    Some("System.Diagnostics.Activity") => found.activities = true,
                    Some("System.Diagnostics.Stopwatch") => found.stopwatches = true,
                    _ => {}
                }
            }
            found
        })
    }

    /// The roots of the garbage collector, without what stacks have left over.
    pub(crate) fn roots(&self) -> &Roots {
        self.roots.get_or_init(|| {
            let mut roots = self.rt.roots(&self.graph.heap);
            roots.strong.retain(|r| !self.is_leftover(*r));
            roots
        })
    }

    /// Whether a root that names something asynchronous is a stack's leftover rather than a reference in use. Stacks name
    /// continuations only while methods suspend and resume, and places inside tasks and delegates only within their own
    /// methods; nothing waits there.
    pub(crate) fn is_leftover(&self, root: Addr) -> bool {
        let Some(object) = self.graph.heap.object_at_or_before(root) else {
            return false;
        };
        let inside = || {
            self.graph.node(object).is_some()
                || self
                    .rt
                    .type_of(object)
                    .is_some_and(|t| self.rt.is_a(t.mt, "System.Delegate"))
        };
        self.rt.is_continuation(object) || (root != object && inside())
    }

    pub(crate) fn type_name(&self, mt: Addr) -> Arc<str> {
        self.rt
            .ty(mt)
            .map_or_else(|| "?".into(), |t| self.rt.name(&t))
    }

    /// What a frame is called.
    pub(crate) fn frame_name(&self, id: NodeId) -> Arc<str> {
        if let Some(machine) = self.graph.machines.get(&id) {
            return self.names.method(self.rt, &machine.place.ty);
        }
        if let Some(running) = self.graph.running.get(&id) {
            return self.running_name(id, running);
        }
        if let Some(ty) = self.closure_type(id) {
            return self.names.method(self.rt, &ty);
        }
        if self.graph.for_each.contains_key(&id) {
            return "Parallel.ForEachAsync".into();
        }
        if let Some(method) = self.operation_method(id) {
            return method;
        }
        if let Some((_, name)) = self.continuation(id) {
            return name;
        }
        match self.graph.object(id).map(|n| n.class) {
            Some(Class::Combinator(c)) => combinator_text(c).into(),
            Some(Class::BlockingWait) => self.blocked_thread_name(id).into(),
            _ => "?".into(),
        }
    }

    /// Of a `ContinueWith` with a delegate of the program: its module, and what the frame is called.
    pub(crate) fn continuation(&self, id: NodeId) -> Option<(Addr, Arc<str>)> {
        let node = self.graph.object(id)?;
        if node.class != Class::Combinator(Combinator::ContinueWith) {
            return None;
        }
        let (rt, action) = (self.rt, self.graph.task?.action(self.rt, node.addr)?);
        let target = || Some(rt.type_of(rt.reference(action, "_target")?)?.module);
        let module = match rt.delegate_method(action) {
            Some(method) => method.module,
            None => target()?,
        };
        if rt.module(module).ships_with_dotnet {
            return None;
        }
        let name = self.delegate_text(action)?;
        let with = combinator_text(Combinator::ContinueWith);
        Some((module, format!("{with} ({name})").into()))
    }

    fn blocked_thread_name(&self, wait: NodeId) -> String {
        let thread = self
            .graph
            .object(wait)
            .and_then(|n| self.threads.holding(n.addr).next());
        thread.map_or_else(
            || "a blocked thread".into(),
            |(t, _)| format!("thread '{}'", display_name(t)),
        )
    }

    /// The type of the closure that a computation of F# goes on with.
    pub(crate) fn closure_type(&self, id: NodeId) -> Option<Arc<Type>> {
        self.rt.type_of(*self.graph.computations.get(&id)?)
    }

    /// The innermost method of what runs.
    fn running_name(&self, id: NodeId, running: &Running) -> Arc<str> {
        let on_stack = || {
            let (_, runs) = self.hang().runner(id)?;
            Some(self.rt.method_name(&runs.method?))
        };
        match running.machine() {
            Some(machine) => self.names.method(self.rt, &machine.place.ty),
            None => on_stack().unwrap_or_else(|| "a runtime-async method".into()),
        }
    }

    /// The module of the innermost method of what runs.
    pub(super) fn running_module(&self, id: NodeId, running: &Running) -> Option<Addr> {
        match running.machine() {
            Some(machine) => Some(machine.place.ty.module),
            None => Some(self.hang().runner(id)?.1.method?.module),
        }
    }

    /// The method whose call made the task of a chain of runtime-async methods: its outermost one.
    fn operation_method(&self, id: NodeId) -> Option<Arc<str>> {
        if let Some(running) = self.graph.running.get(&id) {
            let outermost = running.frames().last().map(|f| Arc::clone(&f.name));
            return Some(outermost.unwrap_or_else(|| self.running_name(id, running)));
        }
        let frame = self.graph.operations.get(&id)?.async_frames().next_back()?;
        Some(Arc::clone(&frame.name))
    }

    /// The method of a box that has no machine in use: completed ones name it by their type alone.
    pub(crate) fn box_method(&self, node: Node) -> Option<Arc<str>> {
        if node.class == Class::RuntimeAsyncTask {
            return self.operation_method(self.graph.node(node.addr)?);
        }
        let ty = self.rt.ty(node.mt)?;
        let machine = self.rt.ty(*self.rt.type_args(&ty).last()?)?;
        node.class
            .is_machine()
            .then(|| self.names.method(self.rt, &machine))
    }
}
