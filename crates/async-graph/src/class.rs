//! What kind of object a type's instances are, as far as waiting is concerned.
//!
//! Names are those of System.Private.CoreLib 8.0 to 11.0; a missing type means that the feature is not used (trimmed
//! applications lose unused ones).

use crate::fsharp;
use crate::own::is_own_box;
use asynctriage_clr::{Field, Runtime, Type};
use asynctriage_dump::Addr;

/// What instances of a type are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Class {
    /// The heap form of an async method that has suspended: a Task with the state machine inside.
    Box,
    /// The same for methods with a pooling builder; not a Task.
    PooledBox,
    /// The heap form of an async method whose builder is not the runtime's: the state machine itself, or an object that
    /// holds one; not a Task.
    OwnBox,
    /// A computation of F#'s `async` that waits, by its activation; not a Task.
    Computation,
    /// The Task of a chain of runtime-async frames (.NET 11).
    RuntimeAsyncTask,
    /// A combinator or continuation that is itself a Task.
    Combinator(Combinator),
    /// Any other Task.
    Task,
    /// An IValueTaskSource: whoever awaits it hangs on a field of it.
    Source,
    /// A thread blocks until this is set by a task's completion.
    BlockingWait,
    /// Not awaited itself, but tells something about what is.
    Helper(Helper),
}

impl Class {
    /// Whether instances are Tasks, with the flags and fields that every Task has.
    #[must_use]
    pub fn is_task(self) -> bool {
        !matches!(
            self,
            Self::PooledBox | Self::OwnBox | Self::Computation | Self::Source | Self::BlockingWait
        )
    }

    /// Whether instances hold the state machine of a method.
    #[must_use]
    pub fn is_machine(self) -> bool {
        matches!(self, Self::Box | Self::PooledBox | Self::OwnBox)
    }
}

/// Tasks that stand for others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Combinator {
    /// `Task.WhenAll`, and `ContinueWhenAll`.
    WhenAll,
    /// `Task.WhenAny`, and a thread in `Task.WaitAny`.
    WhenAny,
    /// `Task.WaitAsync`: a timeout or token around another task.
    WaitAsync,
    /// `Task.Unwrap`, also what `Task.Run` returns for an async delegate.
    Unwrap,
    /// A task made by `ContinueWith`.
    ContinueWith,
    /// `ValueTask.AsTask`: nothing but another face of a source.
    AsTask,
}

/// Objects that explain others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Helper {
    /// A TaskCompletionSource or a class derived from it; its `_task` is what is awaited.
    CompletionSource,
    /// The state of a `Parallel.ForEachAsync`, itself a TaskCompletionSource.
    ForEachAsync,
    /// A SemaphoreSlim: its queue of waiters.
    Semaphore,
    /// A channel.
    Channel,
    /// The pool's global queues.
    PoolQueue,
    /// A worker's own queue.
    LocalQueue,
    /// The managed thread pool.
    Pool,
    /// A pool of HTTP client connections.
    HttpPool,
    /// A request that Kestrel, IIS or HTTP.sys serves.
    ServerRequest,
    /// The object behind a pipe's reader and writer.
    Pipe,
    /// A continuation that goes to a SynchronizationContext or TaskScheduler.
    ContextContinuation,
    /// A `System.Threading.Lock` (9.0 and later).
    Lock,
    /// The cached text of Kestrel's `Date:` header.
    DateHeader,
    /// A timer in the queue of timers.
    Timer,
    /// A queue of timers.
    TimerQueue,
    /// What Kestrel knows of the time limits of a connection.
    ConnectionTimeouts,
    /// An HTTP/2 connection of HttpClient.
    Http2Connection,
    /// A BlockingCollection: its consumers block threads while it is empty.
    BlockingCollection,
    /// A ReaderWriterLockSlim, or the older ReaderWriterLock.
    ReaderWriterLock,
    /// A scheduler of tasks, the program's own ones included.
    Scheduler,
    /// A computation of F#'s `async` that has begun.
    Activation,
    /// Of a class that the caller asked for, by the caller's number for it.
    Wanted(u16),
}

/// Says by the name of a class whether the caller wants its objects and those of derived classes, and under which number:
/// they are listed as [`Helper::Wanted`]. Asked once for each type, from the class itself to its bases.
pub type Wanted = fn(&str) -> Option<u16>;

const TASK: &str = "System.Threading.Tasks.Task";
/// The box and those derived from it: for debuggers, and while the async profiler of .NET 11 listens.
const BOXES: (&str, &str) = (
    "System.Runtime.CompilerServices.AsyncTaskMethodBuilder`1+",
    "AsyncStateMachineBox`1",
);
const POOLED: &str =
    "System.Runtime.CompilerServices.PoolingAsyncValueTaskMethodBuilder`1+StateMachineBox`1";
const RUNTIME_ASYNC: &str = "System.Runtime.CompilerServices.AsyncHelpers+RuntimeAsyncTask`1";
pub(crate) const DISPATCHER: &str = "System.Runtime.CompilerServices.AsyncStateMachineDispatcher";
/// Its name before 11.0.0.
pub(crate) const OLDER_DISPATCHER: &str = "System.Runtime.CompilerServices.AsyncTaskDispatcher";
/// The structure that most sources embed.
pub(crate) const SOURCE_CORE: &str =
    "System.Threading.Tasks.Sources.ManualResetValueTaskSourceCore`1";

const COMBINATORS: [(&str, Combinator); 11] = [
    (
        "System.Threading.Tasks.Task+WhenAllPromise",
        Combinator::WhenAll,
    ),
    (
        "System.Threading.Tasks.Task+WhenAllPromise`1",
        Combinator::WhenAll,
    ),
    (
        "System.Threading.Tasks.TaskFactory+CompleteOnCountdownPromise",
        Combinator::WhenAll,
    ),
    (
        "System.Threading.Tasks.TaskFactory+CompleteOnCountdownPromise`1",
        Combinator::WhenAll,
    ),
    (
        "System.Threading.Tasks.Task+TwoTaskWhenAnyPromise`1",
        Combinator::WhenAny,
    ),
    (
        "System.Threading.Tasks.TaskFactory+CompleteOnInvokePromise",
        Combinator::WhenAny,
    ),
    (
        "System.Threading.Tasks.TaskFactory+CompleteOnInvokePromise`1",
        Combinator::WhenAny,
    ),
    (
        "System.Threading.Tasks.Task+CancellationPromise`1",
        Combinator::WaitAsync,
    ),
    ("System.Threading.Tasks.UnwrapPromise`1", Combinator::Unwrap),
    (
        "System.Threading.Tasks.ValueTask+ValueTaskSourceAsTask",
        Combinator::AsTask,
    ),
    (
        "System.Threading.Tasks.ValueTask`1+ValueTaskSourceAsTask",
        Combinator::AsTask,
    ),
];

const HELPERS: [(&str, Helper); 20] = [
    ("System.Net.Http.Http2Connection", Helper::Http2Connection),
    ("System.Threading.TimerQueueTimer", Helper::Timer),
    ("System.Threading.TimerQueue", Helper::TimerQueue),
    (
        "Microsoft.AspNetCore.Server.Kestrel.Core.Internal.Infrastructure.TimeoutControl",
        Helper::ConnectionTimeouts,
    ),
    (
        "System.Collections.Concurrent.BlockingCollection`1",
        Helper::BlockingCollection,
    ),
    (
        "System.Threading.ReaderWriterLock",
        Helper::ReaderWriterLock,
    ),
    (
        "System.Threading.ReaderWriterLockSlim",
        Helper::ReaderWriterLock,
    ),
    (
        "Microsoft.AspNetCore.Server.Kestrel.Core.Internal.Http.DateHeaderValueManager",
        Helper::DateHeader,
    ),
    ("System.Threading.Lock", Helper::Lock),
    ("System.Threading.SemaphoreSlim", Helper::Semaphore),
    ("System.Threading.ThreadPoolWorkQueue", Helper::PoolQueue),
    (
        "System.Threading.ThreadPoolWorkQueue+WorkStealingQueue",
        Helper::LocalQueue,
    ),
    ("System.Threading.PortableThreadPool", Helper::Pool),
    ("System.Net.Http.HttpConnectionPool", Helper::HttpPool),
    ("System.IO.Pipelines.Pipe", Helper::Pipe),
    (
        "System.Threading.Tasks.SynchronizationContextAwaitTaskContinuation",
        Helper::ContextContinuation,
    ),
    (
        "System.Threading.Tasks.TaskSchedulerAwaitTaskContinuation",
        Helper::ContextContinuation,
    ),
    (
        "System.Threading.Channels.BoundedChannel`1",
        Helper::Channel,
    ),
    (
        "System.Threading.Channels.UnboundedChannel`1",
        Helper::Channel,
    ),
    (
        "System.Threading.Channels.SingleConsumerUnboundedChannel`1",
        Helper::Channel,
    ),
];

/// The class of a type; `None` for the many that have nothing to do with waiting.
pub(crate) fn classify(rt: &Runtime<'_>, mt: Addr, wanted: Wanted) -> Option<Class> {
    let ty = rt.ty(mt)?;
    if ty.is_array() || rt.is_dynamic_continuation(mt) {
        return None;
    }
    let name = rt.definition_name(&ty);
    if name.starts_with(BOXES.0) && name.ends_with(BOXES.1) {
        return Some(Class::Box);
    }
    match &*name {
        POOLED => return Some(Class::PooledBox),
        // stand in front of the real box while the async profiler of .NET 11 listens; followed where they are met
        DISPATCHER | OLDER_DISPATCHER => return None,
        RUNTIME_ASYNC => return Some(Class::RuntimeAsyncTask),
        "System.Threading.Tasks.Task+SetOnInvokeMres"
        | "System.Threading.Tasks.Task+SetOnCountdownMres" => return Some(Class::BlockingWait),
        _ => {}
    }
    if let Some((_, combinator)) = COMBINATORS.iter().find(|(n, _)| *n == &*name) {
        return Some(Class::Combinator(*combinator));
    }
    by_hierarchy(rt, &ty, wanted)
        .or_else(|| fsharp::classify(rt, &ty))
        .or_else(|| is_own_box(rt, &ty).then_some(Class::OwnBox))
        .or_else(|| is_source(rt, &ty).then_some(Class::Source))
}

fn by_hierarchy(rt: &Runtime<'_>, ty: &Type, wanted: Wanted) -> Option<Class> {
    for level in rt.hierarchy(ty.mt) {
        let name = rt.definition_name(&level);
        if let Some((_, helper)) = HELPERS.iter().find(|(n, _)| *n == &*name) {
            return Some(Class::Helper(*helper));
        }
        match &*name {
            TASK => {
                let own = rt.definition_name(ty);
                let continues =
                    own.starts_with("System.Threading.Tasks.Continuation") && own.contains("From");
                return Some(if continues {
                    Class::Combinator(Combinator::ContinueWith)
                } else {
                    Class::Task
                });
            }
            "System.Threading.Tasks.Parallel+ForEachAsyncState`1" => {
                return Some(Class::Helper(Helper::ForEachAsync));
            }
            "System.Threading.Tasks.TaskCompletionSource"
            | "System.Threading.Tasks.TaskCompletionSource`1" => {
                return Some(Class::Helper(Helper::CompletionSource));
            }
            "System.Threading.Tasks.TaskScheduler" => {
                return Some(Class::Helper(Helper::Scheduler));
            }
            "Microsoft.AspNetCore.Server.Kestrel.Core.Internal.Http.HttpProtocol"
            | "Microsoft.AspNetCore.Server.IIS.Core.IISHttpContext"
            | "Microsoft.AspNetCore.Server.HttpSys.RequestContext" => {
                return Some(Class::Helper(Helper::ServerRequest));
            }
            n => {
                if let Some(number) = wanted(n) {
                    return Some(Class::Helper(Helper::Wanted(number)));
                }
            }
        }
    }
    None
}

/// Awaited through a ValueTask: it implements `IValueTaskSource` or its generic form.
fn is_source(rt: &Runtime<'_>, ty: &Type) -> bool {
    implements(rt, ty, "System.Threading.Tasks.Sources.IValueTaskSource")
}

/// Whether a type implements an interface of CoreLib whose name begins like this.
pub(crate) fn implements(rt: &Runtime<'_>, ty: &Type, interface: &str) -> bool {
    let is_it = |mt: Addr| {
        rt.ty(mt).is_some_and(|i| {
            i.module == rt.globals.core_lib && rt.definition_name(&i).starts_with(interface)
        })
    };
    rt.interfaces(ty).any(is_it)
}

/// The embedded source cores, by offset.
pub(crate) fn source_cores(rt: &Runtime<'_>, ty: &Type) -> Vec<Field> {
    let structures = rt
        .instance_fields(ty)
        .values()
        .filter(|f| f.kind == asynctriage_clr::FieldKind::ValueType);
    let mut cores: Vec<Field> = structures
        .filter(|f| rt.field_type_name(f).is_some_and(|n| n == SOURCE_CORE))
        .cloned()
        .collect();
    cores.sort_unstable_by_key(|f| f.offset);
    cores
}
