//! What a chain waits for in the end.

mod client;
mod io;
mod running;

use crate::libraries::{self, channels, http_client};
use crate::paths::{Analysis, Path, Shape, timers};
use crate::process::names::combinator_text;
use asynctriage_async_graph::{Class, Node, NodeId, PostedTo, task};
use asynctriage_dump::Addr;
use asynctriage_report::{Confidence, Leaf, LeafKind};
use serde_json::json;

/// What `Async.Sleep` waits for.
const TIMER: &str = "System.Threading.TimerQueueTimer";
/// Where the first request of a handler waits until its parts are made (10.0 and later).
const HANDLER_SETUP: &str =
    "System.Net.Http.SocketsHttpHandler.SendAsync.CreateHandlerAndSendAsync";

/// Detail of a chain that waits for a cycle without being part of it: the member that it waits for.
pub(crate) const OUTSIDE_CYCLE: &str = "member";

/// Kinds that a frame above may replace by what it stands for.
fn is_plumbing(kind: LeafKind) -> bool {
    use LeafKind as K;
    matches!(
        kind,
        K::SocketReceive
            | K::SocketSend
            | K::SocketConnect
            | K::TaskCompletionSource
            | K::ValueTaskSource
            | K::Unknown
            | K::PipeRead
            | K::Semaphore
    )
}

impl Analysis<'_, '_> {
    /// What a path waits for, without the evidence.
    pub(crate) fn leaf(&self, path: &Path, shape: &Shape) -> Leaf {
        if path.cycle {
            return self.cycle_leaf(path);
        }
        let Some(node) = self.graph.object(path.leaf) else {
            return Leaf::default();
        };
        if let Some(running) = self.running_leaf_of(path, node) {
            return running;
        }
        let mut found = self.own_leaf(path, node);
        if is_plumbing(found.kind) {
            self.lift(path, shape, &mut found);
            if shape.in_library {
                self.lift_to_library(path, &mut found);
            }
        } else if found.kind == LeafKind::TaskQueued && self.is_handler_setup(path) {
            self.name_unsent(path, &mut found);
        } else if found.kind == LeafKind::ChannelRead && self.is_inside_library(path) {
            self.lift_to_library(path, &mut found);
        }
        if self.is_dead(path) {
            found.text = format!(
                "nothing can complete this: no root of the garbage collector reaches it ({})",
                found.text
            );
            found.kind = LeafKind::Unreachable;
        }
        found
    }

    /// Adds what shows that a path waits for its leaf, and how sure that is.
    pub(crate) fn add_evidence(&self, path: &Path, found: &mut Leaf) {
        let Some(node) = self.graph.object(path.leaf).filter(|_| !path.cycle) else {
            return;
        };
        found.confidence = self.chain_confidence();
        let mut evidence = self.leaf_evidence(path, node);
        let machine = path.frames.first().and_then(|f| self.graph.machines.get(f));
        match machine.map(|m| m.chosen).unwrap_or_default() {
            asynctriage_async_graph::Chosen::Only => {}
            asynctriage_async_graph::Chosen::ByCode => {
                evidence.push_str("; other awaiters of the method hold old values, by its code");
            }
            asynctriage_async_graph::Chosen::Confirmed => {
                evidence.push_str("; other awaiters hold something too, but what they hold does not resume the method");
            }
            asynctriage_async_graph::Chosen::Unclear => {
                evidence.push_str(
                    "; several awaiters of the method hold something, and its code, which tells the one that counts, is not in the dump",
                );
                found.confidence = Some(Confidence::Possible);
            }
        }
        found.evidence = Some(evidence);
    }

    /// Whether a chain is garbage: nothing reaches what it begins with, and nobody alive waits for its end. Who reaches the
    /// innermost method reaches what it awaits, so one test per end is enough. Where the ends of a link disagree, what
    /// reaches what is not known either.
    fn is_dead(&self, path: &Path) -> bool {
        let mut nodes = path.frames.iter().chain([&path.leaf]);
        if nodes.any(|id| self.graph.is_contradicted(*id)) {
            return false;
        }
        let reached = |id| {
            let node = self.graph.object(id);
            node.is_some_and(|n| self.is_reachable(n.addr))
        };
        !reached(path.innermost()) && !reached(path.outermost())
    }

    /// A cycle waits for itself; others can wait for it from outside.
    fn cycle_leaf(&self, path: &Path) -> Leaf {
        let member = self.frame_name(path.leaf);
        if path.frames.contains(&path.leaf) {
            return leaf(
                LeafKind::Cycle,
                format!("cycle: {member} waits for itself in the end"),
            );
        }
        let mut out = leaf(
            LeafKind::Cycle,
            format!("a cycle, from outside: {member} waits for itself in the end"),
        );
        let object = self.graph.object(path.leaf).map(|n| n.addr.to_string());
        out.details.insert(OUTSIDE_CYCLE.into(), json!(object));
        out
    }

    fn leaf_evidence(&self, path: &Path, node: Node) -> String {
        let edge = path
            .frames
            .first()
            .and_then(|f| self.graph.awaited(*f).find(|(from, _)| *from == path.leaf));
        match edge {
            Some((_, e)) => format!(
                "{} at {} names {} ({})",
                e.field,
                e.slot,
                node.addr,
                self.type_name(node.mt)
            ),
            None => format!("object {} ({})", node.addr, self.type_name(node.mt)),
        }
    }

    /// A request whose handler is not made yet.
    fn name_unsent(&self, path: &Path, found: &mut Leaf) {
        let mut steps = self.steps(path);
        let request =
            steps.find_map(|s| http_client::request_among(self.rt, &self.captured(s), self.values));
        let Some((message, text)) = request else {
            return;
        };
        let over = std::mem::take(&mut found.text);
        found.text = format!("HttpClient: {text}, not sent yet: {over}");
        found.kind = LeafKind::HttpResponse;
        let details = &mut found.details;
        details.insert("request".into(), json!(message.to_string()));
        details.insert("over".into(), json!(over));
        details.insert(http_client::UNSENT.into(), json!(true));
    }

    /// The process whose end a method waits for.
    fn name_process(&self, path: &Path, found: &mut Leaf) {
        let mut variables = self.steps(path).flat_map(|s| self.captured(s));
        let id = variables.find_map(|v| {
            let is_process = self.rt.object_type_name(v)?.as_ref() == "System.Diagnostics.Process";
            is_process.then(|| self.rt.field_i32(v, "_processId"))?
        });
        if let Some(id) = id {
            let over = std::mem::replace(&mut found.text, format!("the end of process {id}"));
            found.details.insert("over".into(), json!(over));
            found.details.insert("process_id".into(), json!(id));
        }
    }

    /// Whether the innermost method is one of a client library: what it waits with is the library's own.
    fn is_inside_library(&self, path: &Path) -> bool {
        let innermost = self.steps(path).next();
        innermost.is_some_and(|s| matches!(self.step_owner(s), libraries::Owner::Library(_)))
    }

    fn is_handler_setup(&self, path: &Path) -> bool {
        let innermost = self.steps(path).next();
        innermost.is_some_and(|s| self.step_name(s).starts_with(HANDLER_SETUP))
    }

    /// The nearest frame above that stands for a wait of its own kind.
    fn lift(&self, path: &Path, shape: &Shape, found: &mut Leaf) {
        let mut kinds = shape.stands_for.iter();
        let passes = |kind: &&LeafKind| {
            **kind == LeafKind::HttpResponse || found.kind != LeafKind::Semaphore
        };
        let Some(kind) = kinds.find(passes) else {
            return;
        };
        let request = self
            .steps(path)
            .find_map(|s| http_client::request_among(self.rt, &self.captured(s), self.values));
        if let Some((message, text)) = request {
            found
                .details
                .insert("request".into(), json!(message.to_string()));
            found.details.insert("over".into(), json!(found.text));
            found.text = match kind {
                LeafKind::HttpResponse => format!("HttpClient: {text}, response headers"),
                _ => format!("HttpClient: {text}"),
            };
        }
        if *kind == LeafKind::ProcessExit {
            self.name_process(path, found);
        }
        found.kind = *kind;
    }

    fn own_leaf(&self, path: &Path, node: Node) -> Leaf {
        match node.class {
            Class::Box | Class::PooledBox | Class::OwnBox => self.machine_leaf(path.leaf),
            Class::RuntimeAsyncTask if self.graph.operations.contains_key(&path.leaf) => {
                self.operation_leaf(path.leaf)
            }
            Class::Source => self.source_leaf(node),
            Class::Combinator(c) if self.is_completed(node) => {
                self.completed_leaf(path, &combinator_text(c))
            }
            Class::Combinator(_) if self.has_delegate(node) => self.task_leaf(path, node),
            Class::Combinator(c) => leaf(
                LeafKind::Unknown,
                format!("{}: what it waits for is not known", combinator_text(c)),
            ),
            _ => self.task_leaf(path, node),
        }
    }

    /// A method that stands at an await of nothing that is known.
    fn machine_leaf(&self, id: NodeId) -> Leaf {
        if self.graph.queues.resumes.contains(&id) {
            return queued_leaf();
        }
        let awaits = self
            .graph
            .machines
            .get(&id)
            .map(|m| m.awaits.as_slice())
            .unwrap_or_default();
        match awaits
            .iter()
            .find_map(|(_, o)| self.rt.object_type_name(*o))
        {
            Some(name) => leaf(
                LeafKind::Unknown,
                format!("{name}: an awaitable of a kind that is not known"),
            ),
            None => leaf(
                LeafKind::Unknown,
                "Task.Yield or an awaiter without a reference".into(),
            ),
        }
    }

    /// A chain of runtime-async methods that waits for nothing that is known.
    fn operation_leaf(&self, id: NodeId) -> Leaf {
        if self.graph.queues.resumes.contains(&id) {
            return queued_leaf();
        }
        let operation = self.graph.operations.get(&id);
        if let Some(to) = operation.and_then(|o| o.goes_to) {
            return self.posted_leaf(to);
        }
        leaf(
            LeafKind::Unknown,
            "Task.Yield, or an awaiter of a kind that is not known".into(),
        )
    }

    /// A resumption that a context or a scheduler was given.
    fn posted_leaf(&self, to: PostedTo) -> Leaf {
        let (PostedTo::SyncContext(context) | PostedTo::Scheduler(context)) = to;
        let name = self.rt.object_type_name(context).unwrap_or_default();
        let mut out = leaf(
            LeafKind::SyncContextPost,
            format!("resumption posted to {name}; it has not run"),
        );
        out.details
            .insert("context".into(), json!(context.to_string()));
        out
    }

    fn completed_leaf(&self, path: &Path, what: &str) -> Leaf {
        let waiting = path.frames.first().copied();
        if waiting.is_some_and(|f| self.graph.queues.resumes.contains(&f)) {
            return leaf(
                LeafKind::Ready,
                format!("{what} is complete; the continuation stands in the thread pool's queue"),
            );
        }
        let operation = waiting.and_then(|f| self.graph.operations.get(&f));
        if let Some(to) = operation.and_then(|o| o.goes_to) {
            return self.posted_leaf(to);
        }
        let action = waiting
            .and_then(|f| self.graph.object(f))
            .and_then(|n| self.graph.task?.action(self.rt, n.addr));
        if let Some((continuation, context)) = action.and_then(|a| self.posted.get(&a).copied()) {
            let name = self.rt.object_type_name(context).unwrap_or_default();
            let mut out = leaf(
                LeafKind::SyncContextPost,
                format!("resumption posted to {name}; it has not run"),
            );
            out.details
                .insert("context".into(), json!(context.to_string()));
            out.details
                .insert("continuation".into(), json!(continuation.to_string()));
            return out;
        }
        leaf(
            LeafKind::Ready,
            format!("{what} is complete; the continuation has not run"),
        )
    }

    fn task_leaf(&self, path: &Path, node: Node) -> Leaf {
        let name = self.type_name(node.mt);
        if self.is_completed(node) {
            return self.completed_leaf(path, &name);
        }
        match self
            .rt
            .ty(node.mt)
            .map(|t| self.rt.definition_name(&t))
            .as_deref()
        {
            Some(
                "System.Threading.Tasks.Task+DelayPromise"
                | "System.Threading.Tasks.Task+DelayPromiseWithCancellation",
            ) => return self.delay_leaf(node.addr),
            Some("System.Threading.SemaphoreSlim+TaskNode") => {
                return self.semaphore_leaf(node.addr);
            }
            _ => {}
        }
        let flags = self.graph.task.map_or(0, |t| t.flags(self.rt, node.addr));
        if flags & task::flags::PROMISE != 0 {
            return self.promise_leaf(node.addr);
        }
        leaf(
            LeafKind::TaskQueued,
            format!(
                "a task that has not started{}",
                delegate_text(&self.delegate_of(node))
            ),
        )
    }

    fn promise_leaf(&self, task: Addr) -> Leaf {
        let Some(owner) = self.graph.completion_sources.get(&task).copied() else {
            return leaf(
                LeafKind::TaskCompletionSource,
                "TaskCompletionSource (its owner is not on the heap)".into(),
            );
        };
        let name = self
            .rt
            .type_of(owner)
            .map(|t| self.rt.name(&t).to_string())
            .unwrap_or_default();
        if name.contains("HttpConnectionWaiter") {
            return http_client::pool_leaf(self.http_pools.get(&owner));
        }
        let call = self.client_calls.get(&owner).copied();
        if let Some(call) = libraries::promise_leaf(self.libraries(), call, task) {
            return call;
        }
        let plain = name.starts_with("System.Threading.Tasks.TaskCompletionSource");
        let text = if plain {
            "TaskCompletionSource".to_owned()
        } else {
            format!("TaskCompletionSource {name}")
        };
        let mut out = leaf(LeafKind::TaskCompletionSource, text);
        out.details.insert("owner".into(), json!(owner.to_string()));
        out
    }

    fn delay_leaf(&self, task: Addr) -> Leaf {
        let timer = self.timer_of(task);
        let cancellable = self
            .rt
            .object_type_name(task)
            .is_some_and(|n| n.ends_with("WithCancellation"));
        let text = match (timer.map(|t| t.due), cancellable) {
            (Some(Some(ms)), _) => format!("Task.Delay({ms} ms)"),
            // an infinite delay has no timer; one that has fired is due no more, and completes the task only when its
            // callback runs
            (Some(None), _) => {
                "Task.Delay whose timer has fired: its callback has not run".to_owned()
            }
            (None, true) => "Task.Delay (infinite, cancellable)".to_owned(),
            (None, false) => "Task.Delay (infinite)".to_owned(),
        };
        let mut out = leaf(LeafKind::Delay, text);
        if let Some(timer) = timer {
            timers::note(&mut out.details, timer);
        }
        out
    }

    fn semaphore_leaf(&self, waiter: Addr) -> Leaf {
        let Some(semaphore) = self.graph.semaphores.get(&waiter).copied() else {
            return leaf(
                LeafKind::Semaphore,
                "SemaphoreSlim (the semaphore is not on the heap)".into(),
            );
        };
        let free = self.rt.field_i32(semaphore, "m_currentCount").unwrap_or(0);
        let limit = self
            .rt
            .field_i32(semaphore, "m_maxCount")
            .filter(|m| *m != i32::MAX);
        let of = limit.map(|m| format!(" of {m}")).unwrap_or_default();
        let mut out = leaf(
            LeafKind::Semaphore,
            format!("SemaphoreSlim ({free}{of} free)"),
        );
        out.details
            .insert("semaphore".into(), json!(semaphore.to_string()));
        out.details.insert("free".into(), json!(free));
        if let Some(limit) = limit {
            out.details.insert("limit".into(), json!(limit));
        }
        out
    }

    fn source_leaf(&self, node: Node) -> Leaf {
        let name = self.type_name(node.mt);
        let definition = self.rt.ty(node.mt).map(|t| self.rt.definition_name(&t));
        match definition.as_deref().unwrap_or_default() {
            "System.Threading.PeriodicTimer+State" => self.periodic_leaf(node.addr),
            "System.IO.Pipelines.Pipe+DefaultPipeReader" => {
                leaf(LeafKind::PipeRead, "a pipe's reader waits for data".into())
            }
            "System.IO.Pipelines.Pipe+DefaultPipeWriter" => leaf(
                LeafKind::PipeWrite,
                "a pipe's writer waits until the reader has caught up".into(),
            ),
            d if d.starts_with("Microsoft.FSharp.Control.") => self.fsharp_leaf(node.addr, d),
            TIMER => self.sleep_leaf(node.addr),
            d if d.starts_with("System.Threading.Channels.") => self.channel_leaf(node.addr, &name),
            d => self.io_leaf(node, d).unwrap_or_else(|| {
                leaf(
                    LeafKind::ValueTaskSource,
                    format!("IValueTaskSource {name}"),
                )
            }),
        }
    }

    /// `Async.Sleep`: a timer whose callback goes on with the computation.
    fn sleep_leaf(&self, at: Addr) -> Leaf {
        let timer = self.timer_at(at);
        let ms = timer.and_then(|t| t.due);
        let text = ms.map_or_else(
            || "Async.Sleep".into(),
            |ms| format!("Async.Sleep({ms} ms)"),
        );
        let mut out = leaf(LeafKind::Delay, text);
        if let Some(timer) = timer {
            timers::note(&mut out.details, timer);
        }
        out
    }

    /// What F#'s `async` waits for in objects of its library.
    fn fsharp_leaf(&self, at: Addr, definition: &str) -> Leaf {
        let text = if definition.contains("Mailbox") {
            let queue = self.rt.reference(at, "arrivals");
            let waiting = queue.and_then(|q| self.rt.field_u32(q, "_size"));
            match waiting {
                Some(n) => format!("MailboxProcessor: the next message ({n} arrived)"),
                None => "MailboxProcessor: the next message".to_owned(),
            }
        } else {
            "the result of another computation: the reply of a MailboxProcessor, or of a started child"
                .to_owned()
        };
        leaf(LeafKind::Unknown, text)
    }

    fn periodic_leaf(&self, state: Addr) -> Leaf {
        let owner = self.rt.reference(state, "_owner");
        let timer = owner.and_then(|o| self.timer_of(o));
        let period = timer.and_then(|t| t.period);
        let every = period.map_or_else(String::new, |ms| format!(" (every {ms} ms)"));
        let mut out = leaf(LeafKind::PeriodicTimer, format!("PeriodicTimer{every}"));
        if let Some(timer) = timer {
            timers::note(&mut out.details, timer);
        }
        out
    }

    fn channel_leaf(&self, operation: Addr, name: &str) -> Leaf {
        let wait = self.channel_waits.get(&operation);
        let writes = wait.map_or_else(
            || name.contains("Write") || name.contains("VoidAsyncOperationWithData"),
            |w| w.writes,
        );
        let fill = wait.and_then(|w| channels::fill(self.rt, w.channel));
        let state = match fill {
            Some((items, capacity)) if items >= capacity => {
                format!(" (bounded, full: {items} of {capacity})")
            }
            Some((items, capacity)) => format!(" (bounded: {items} of {capacity})"),
            None => String::new(),
        };
        let (kind, who) = if writes {
            (LeafKind::ChannelWrite, "writer")
        } else {
            (LeafKind::ChannelRead, "reader")
        };
        let mut out = leaf(kind, format!("Channel {who}{state}"));
        if let Some(w) = wait {
            out.details
                .insert("channel".into(), json!(w.channel.to_string()));
        }
        out
    }
}

fn leaf(kind: LeafKind, text: String) -> Leaf {
    Leaf {
        kind,
        text,
        ..Leaf::default()
    }
}

fn delegate_text(of: &str) -> String {
    if of.is_empty() {
        String::new()
    } else {
        format!(" (delegate{of})")
    }
}

fn queued_leaf() -> Leaf {
    leaf(
        LeafKind::Ready,
        "queued to run again (Task.Yield or a completed await)".into(),
    )
}
