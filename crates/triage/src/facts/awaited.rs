//! What a chain waits for in the end.

use super::{ClientWait, HttpPool, Timer};
use asynctriage_dump::Addr;
use asynctriage_report::LeafKind;
use std::sync::Arc;

mod words;

/// What a chain waits for in the end. Those with `over` stand for what is below them: a response for the socket that it
/// comes over.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Awaited {
    /// An object that the graph lacks.
    #[default]
    Missing,
    /// The chain waits for itself, through this method.
    Cycle { member: Arc<str> },
    /// The chain waits, from outside, for a method that waits for itself.
    OutsideCycle { member: Arc<str>, at: Option<Addr> },
    /// A method that has gone on, or a delegate: what runs it.
    Running {
        what: String,
        runner: Option<Runner>,
    },
    /// A combinator that holds nothing which is known.
    Combinator { name: String },
    /// An awaitable of a kind that is not known.
    Awaitable { class: Arc<str> },
    /// `Task.Yield`, or an awaiter without a reference.
    Yield,
    /// The same of a runtime-async method, whose awaiter may be of a kind that is not known.
    RuntimeAsyncYield,
    /// The method itself stands in a queue.
    Queued,
    /// A resumption that a context or a scheduler was given.
    Posted {
        context: Addr,
        class: Arc<str>,
        continuation: Option<Addr>,
    },
    /// Something complete, whose continuation has not run.
    Completed { what: Arc<str>, is_queued: bool },
    /// A task that has not started, what its delegate is, and whether anybody has asked for it to run.
    NotStarted {
        delegate: Option<String>,
        is_scheduled: bool,
    },
    /// A promise, by the `TaskCompletionSource` that owns it; its class where it is not .NET's own.
    Promise {
        owner: Option<Addr>,
        class: Option<Arc<str>>,
    },
    /// `Task.Delay`; an infinite one has no timer.
    Delay {
        timer: Option<Timer>,
        is_cancellable: bool,
    },
    /// `Async.Sleep` of F#.
    Sleep { timer: Option<Timer> },
    /// The next tick of a `PeriodicTimer`.
    Tick { timer: Option<Timer> },
    /// A `SemaphoreSlim`.
    Semaphore {
        at: Addr,
        free: i32,
        limit: Option<i32>,
    },
    /// A `SemaphoreSlim` that is not on the heap.
    UnknownSemaphore,
    /// Data of a pipe.
    PipeReader,
    /// Space in a pipe.
    PipeWriter,
    /// The next message of a `MailboxProcessor`, and how many have arrived.
    Mailbox { arrived: Option<u32> },
    /// The result of another computation of F#.
    Computation,
    /// An element of a channel, or space in it.
    Channel {
        at: Option<Addr>,
        writes: bool,
        fill: Option<Fill>,
    },
    /// An operation of a socket.
    Socket {
        operation: Socket,
        socket: Option<Addr>,
        endpoint: Option<String>,
    },
    /// A file.
    File {
        handle: Option<Addr>,
        path: Option<String>,
    },
    /// A pipe of Windows.
    SystemPipe {
        operation: SystemPipe,
        stream: Option<Addr>,
        pipe: String,
    },
    /// A `ValueTask` source of a kind that is not known.
    ValueTaskSource { class: Arc<str> },
    /// A connection of `HttpClient`.
    HttpPool(Option<HttpPool>),
    /// A request of `HttpClient`: its response, or a part of it as `kind` says.
    Http {
        kind: LeafKind,
        message: Addr,
        request: String,
        over: Box<Awaited>,
    },
    /// A request of `HttpClient` whose handler is not made yet.
    HttpUnsent {
        message: Addr,
        request: String,
        over: Box<Awaited>,
    },
    /// The end of another process.
    Process { id: i32, over: Box<Awaited> },
    /// A frame above stands for a wait of this kind, and says no more of it.
    Kind { kind: LeafKind, over: Box<Awaited> },
    /// A server that a client library asks.
    Client(ClientWait),
    /// A wait inside the methods of a client library.
    Library {
        kind: LeafKind,
        /// The outermost of its methods.
        method: Option<Arc<str>>,
        wait: Option<ClientWait>,
        over: Box<Awaited>,
    },
    /// No root of the garbage collector reaches what could complete it.
    Unreachable(Box<Awaited>),
}

/// The thread that runs a method, and what it does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Runner {
    pub(crate) thread: String,
    pub(crate) os_id: u32,
    pub(crate) does: String,
    /// Whether it waits or sleeps.
    pub(crate) blocks: bool,
    /// Whether the method may have returned since.
    pub(crate) is_possible: bool,
}

/// How full a bounded channel is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fill {
    pub(crate) items: u64,
    pub(crate) capacity: u64,
}

/// What is done with a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Socket {
    Accept,
    Connect,
    Receive,
    Send,
}

/// What is done with a pipe of Windows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SystemPipe {
    Connect,
    Read,
    Write,
}

impl Awaited {
    pub(crate) fn kind(&self) -> LeafKind {
        use LeafKind as K;
        match self {
            Self::Missing
            | Self::Combinator { .. }
            | Self::Awaitable { .. }
            | Self::Yield
            | Self::RuntimeAsyncYield
            | Self::Mailbox { .. }
            | Self::Computation => K::Unknown,
            Self::Cycle { .. } | Self::OutsideCycle { .. } => K::Cycle,
            Self::Running { runner, .. } => match runner {
                Some(runner) if runner.blocks => K::ThreadBlocked,
                _ => K::TaskRunning,
            },
            Self::Queued | Self::Completed { .. } => K::Ready,
            Self::Posted { .. } => K::SyncContextPost,
            Self::NotStarted { .. } => K::TaskQueued,
            Self::Promise { .. } => K::TaskCompletionSource,
            Self::Delay { .. } | Self::Sleep { .. } => K::Delay,
            Self::Tick { .. } => K::PeriodicTimer,
            Self::Semaphore { .. } | Self::UnknownSemaphore => K::Semaphore,
            Self::PipeReader => K::PipeRead,
            Self::PipeWriter => K::PipeWrite,
            Self::Channel { writes: true, .. } => K::ChannelWrite,
            Self::Channel { .. } => K::ChannelRead,
            Self::Socket { operation, .. } => operation.kind(),
            Self::File { .. } => K::File,
            Self::SystemPipe { operation, .. } => operation.kind(),
            Self::ValueTaskSource { .. } => K::ValueTaskSource,
            Self::HttpPool(_) => K::HttpConnectionPool,
            Self::HttpUnsent { .. } => K::HttpResponse,
            Self::Process { .. } => K::ProcessExit,
            Self::Client(wait) => wait.kind,
            Self::Http { kind, .. } | Self::Kind { kind, .. } | Self::Library { kind, .. } => *kind,
            Self::Unreachable(_) => K::Unreachable,
        }
    }

    /// What it stands for.
    fn over(&self) -> Option<&Self> {
        match self {
            Self::Http { over, .. }
            | Self::HttpUnsent { over, .. }
            | Self::Process { over, .. }
            | Self::Kind { over, .. }
            | Self::Library { over, .. }
            | Self::Unreachable(over) => Some(over),
            _ => None,
        }
    }

    /// The timer that ends it.
    pub(crate) fn timer(&self) -> Option<Timer> {
        match self {
            Self::Delay { timer, .. } | Self::Sleep { timer } | Self::Tick { timer } => *timer,
            _ => self.over()?.timer(),
        }
    }

    /// The request of `HttpClient` whose response, or a part of it, is awaited.
    pub(crate) fn message(&self) -> Option<Addr> {
        use LeafKind as K;
        match self {
            Self::HttpUnsent { message, .. } => Some(*message),
            Self::Http { kind, message, .. } => {
                matches!(kind, K::HttpResponse | K::HttpBody | K::HttpRequestBody)
                    .then_some(*message)
            }
            _ => None,
        }
    }

    /// The server of a client library that is asked.
    pub(crate) fn server(&self) -> Option<&str> {
        match self {
            Self::Client(wait) => wait.server.as_deref(),
            Self::Library { wait, .. } => wait.as_ref()?.server.as_deref(),
            _ => None,
        }
    }

    /// The pool of connections that has none left.
    pub(crate) fn pool(&self) -> Option<Addr> {
        match self {
            Self::HttpPool(pool) => Some(pool.as_ref()?.pool),
            _ => Some(self.client_pool()?.at),
        }
    }

    /// The pool of a client library that has no connection left.
    pub(crate) fn client_pool(&self) -> Option<super::PoolUse> {
        match self {
            Self::Client(wait) => wait.pool,
            Self::Library { wait, .. } => wait.as_ref()?.pool,
            _ => None,
        }
    }
}

impl Socket {
    fn kind(self) -> LeafKind {
        match self {
            Self::Accept => LeafKind::SocketAccept,
            Self::Connect => LeafKind::SocketConnect,
            Self::Receive => LeafKind::SocketReceive,
            Self::Send => LeafKind::SocketSend,
        }
    }
}

impl SystemPipe {
    fn kind(self) -> LeafKind {
        match self {
            Self::Connect => LeafKind::SocketAccept,
            Self::Read => LeafKind::PipeRead,
            Self::Write => LeafKind::PipeWrite,
        }
    }
}
