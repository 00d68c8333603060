//! What the object at the end of a path is.

use crate::facts::{Awaited, Fill};
use crate::libraries::{self, channels, http_client};
use crate::paths::{Analysis, Path};
use crate::process::names::combinator_text;
use asynctriage_async_graph::{Class, Node, NodeId, PostedTo, task};
use asynctriage_dump::Addr;

/// What `Async.Sleep` waits for.
const TIMER: &str = "System.Threading.TimerQueueTimer";

impl Analysis<'_, '_> {
    pub(super) fn awaited_object(&self, path: &Path, node: Node) -> Awaited {
        match node.class {
            Class::Box | Class::PooledBox | Class::OwnBox => self.awaited_of_machine(path.leaf),
            Class::RuntimeAsyncTask if self.graph.operations.contains_key(&path.leaf) => {
                self.awaited_of_operation(path.leaf)
            }
            Class::Source => self.source(node),
            Class::Combinator(c) if self.is_completed(node) => {
                self.completed(path, combinator_text(c).into())
            }
            Class::Combinator(_) if self.has_delegate(node) => self.task(path, node),
            Class::Combinator(c) => Awaited::Combinator {
                name: combinator_text(c),
            },
            _ => self.task(path, node),
        }
    }

    /// A method that stands at an await of nothing that is known.
    fn awaited_of_machine(&self, id: NodeId) -> Awaited {
        if self.graph.queues.resumes.contains(&id) {
            return Awaited::Queued;
        }
        let machine = self.graph.machines.get(&id);
        let mut awaits = machine.into_iter().flat_map(|m| &m.awaits);
        match awaits.find_map(|(_, o)| self.rt.object_type_name(*o)) {
            Some(class) => Awaited::Awaitable { class },
            None => Awaited::Yield,
        }
    }

    /// A chain of runtime-async methods that waits for nothing that is known.
    fn awaited_of_operation(&self, id: NodeId) -> Awaited {
        if self.graph.queues.resumes.contains(&id) {
            return Awaited::Queued;
        }
        let operation = self.graph.operations.get(&id);
        match operation.and_then(|o| o.goes_to) {
            Some(PostedTo::SyncContext(to) | PostedTo::Scheduler(to)) => self.posted(to, None),
            None => Awaited::RuntimeAsyncYield,
        }
    }

    /// A resumption that a context or a scheduler was given.
    fn posted(&self, context: Addr, continuation: Option<Addr>) -> Awaited {
        Awaited::Posted {
            context,
            class: self.rt.object_type_name(context).unwrap_or_default(),
            continuation,
        }
    }

    fn completed(&self, path: &Path, what: std::sync::Arc<str>) -> Awaited {
        let waiting = path.frames.first().copied();
        if waiting.is_some_and(|f| self.graph.queues.resumes.contains(&f)) {
            return Awaited::Completed {
                what,
                is_queued: true,
            };
        }
        let operation = waiting.and_then(|f| self.graph.operations.get(&f));
        if let Some(PostedTo::SyncContext(to) | PostedTo::Scheduler(to)) =
            operation.and_then(|o| o.goes_to)
        {
            return self.posted(to, None);
        }
        let action = waiting
            .and_then(|f| self.graph.object(f))
            .and_then(|n| self.graph.task?.action(self.rt, n.addr));
        match action.and_then(|a| self.posted.get(&a).copied()) {
            Some((continuation, context)) => self.posted(context, Some(continuation)),
            None => Awaited::Completed {
                what,
                is_queued: false,
            },
        }
    }

    fn task(&self, path: &Path, node: Node) -> Awaited {
        if self.is_completed(node) {
            return self.completed(path, self.type_name(node.mt));
        }
        let definition = self.rt.ty(node.mt).map(|t| self.rt.definition_name(&t));
        match definition.as_deref().unwrap_or_default() {
            "System.Threading.Tasks.Task+DelayPromise" => return self.delay(node.addr, false),
            "System.Threading.Tasks.Task+DelayPromiseWithCancellation" => {
                return self.delay(node.addr, true);
            }
            "System.Threading.SemaphoreSlim+TaskNode" => return self.semaphore(node.addr),
            _ => {}
        }
        let flags = self.graph.task.map_or(0, |t| t.flags(self.rt, node.addr));
        if flags & task::flags::PROMISE != 0 {
            return self.promise(node.addr);
        }
        Awaited::NotStarted {
            delegate: self.delegate_of(node),
            is_scheduled: flags & task::flags::STARTED != 0,
        }
    }

    fn promise(&self, task: Addr) -> Awaited {
        let Some(owner) = self.graph.completion_sources.get(&task).copied() else {
            return Awaited::Promise {
                owner: None,
                class: None,
            };
        };
        let class = self.rt.type_of(owner).map(|t| self.rt.name(&t));
        let class = class.unwrap_or_default();
        if http_client::is_pool_waiter(&class) {
            return Awaited::HttpPool(self.http_pools.get(&owner).cloned());
        }
        let call = self.client_calls.get(&owner).copied();
        if let Some(call) = libraries::promise(self.libraries(), call, task) {
            return Awaited::Client(call);
        }
        let plain = class.starts_with("System.Threading.Tasks.TaskCompletionSource");
        Awaited::Promise {
            owner: Some(owner),
            class: Some(class).filter(|_| !plain),
        }
    }

    fn delay(&self, task: Addr, is_cancellable: bool) -> Awaited {
        Awaited::Delay {
            timer: self.timer_of(task),
            is_cancellable,
        }
    }

    fn semaphore(&self, waiter: Addr) -> Awaited {
        let Some(at) = self.graph.semaphores.get(&waiter).copied() else {
            return Awaited::UnknownSemaphore;
        };
        let limit = self.rt.field_i32(at, "m_maxCount");
        Awaited::Semaphore {
            at,
            free: self.rt.field_i32(at, "m_currentCount").unwrap_or(0),
            limit: limit.filter(|m| *m != i32::MAX),
        }
    }

    fn source(&self, node: Node) -> Awaited {
        let definition = self.rt.ty(node.mt).map(|t| self.rt.definition_name(&t));
        match definition.as_deref().unwrap_or_default() {
            "System.Threading.PeriodicTimer+State" => {
                let owner = self.rt.reference(node.addr, "_owner");
                Awaited::Tick {
                    timer: owner.and_then(|o| self.timer_of(o)),
                }
            }
            "System.IO.Pipelines.Pipe+DefaultPipeReader" => Awaited::PipeReader,
            "System.IO.Pipelines.Pipe+DefaultPipeWriter" => Awaited::PipeWriter,
            d if d.starts_with("Microsoft.FSharp.Control.") => self.fsharp(node.addr, d),
            // a timer whose callback goes on with the computation
            TIMER => Awaited::Sleep {
                timer: self.timer_at(node.addr),
            },
            d if d.starts_with("System.Threading.Channels.") => {
                self.channel(node.addr, &self.type_name(node.mt))
            }
            d => self
                .io(node, d)
                .unwrap_or_else(|| Awaited::ValueTaskSource {
                    class: self.type_name(node.mt),
                }),
        }
    }

    /// What F#'s `async` waits for in objects of its library.
    fn fsharp(&self, at: Addr, definition: &str) -> Awaited {
        if !definition.contains("Mailbox") {
            return Awaited::Computation;
        }
        let queue = self.rt.reference(at, "arrivals");
        Awaited::Mailbox {
            arrived: queue.and_then(|q| self.rt.field_u32(q, "_size")),
        }
    }

    fn channel(&self, operation: Addr, class: &str) -> Awaited {
        let wait = self.channel_waits.get(&operation);
        // one that no channel lists is told by its class
        let by_class = || class.contains("Write") || class.contains("VoidAsyncOperationWithData");
        let fill = wait.and_then(|w| channels::fill(self.rt, w.channel));
        Awaited::Channel {
            at: wait.map(|w| w.channel),
            writes: wait.map_or_else(by_class, |w| w.writes),
            fill: fill.map(|(items, capacity)| Fill { items, capacity }),
        }
    }
}
