//! The word lists of the contract. Kinds are open lists: a reader takes a word of a later version as `other`. Degrees, such
//! as severity and confidence, are closed.

/// Declares an enum whose variants are words of the contract: the word is what JSON and text show. The list is open where
/// it ends with `or Other`, which stands for words that this version does not know and never writes.
macro_rules! words {
    ($(#[$attr:meta])* $name:ident { $($(#[$vattr:meta])* $variant:ident = $word:literal,)* } $(or $other:ident)?) => {
        $(#[$attr])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
        pub enum $name {
            $($(#[$vattr])* #[serde(rename = $word)] $variant,)*
            $(
                /// A word of a later version.
                #[serde(other, rename = "other")]
                $other,
            )?
        }

        impl $name {
            /// All that this version writes, in the order of the contract.
            pub const ALL: &'static [Self] = &[$(Self::$variant),*];

            /// The word in the report.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)*
                    $(Self::$other => "other",)?
                }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.as_str())
            }
        }
    };
}

pub(super) use words;

words! {
    /// What kind of thing a frame of a chain is.
    #[derive(Default)]
    FrameKind {
        /// An async method as a state machine of the compiler.
        #[default]
        StateMachine = "state-machine",
        /// A suspended runtime-async method (.NET 11).
        RuntimeAsync = "runtime-async",
        /// An async iterator between two elements.
        AsyncIterator = "async-iterator",
        /// An object that stands behind a `ValueTask`.
        ValueTaskSource = "value-task-source",
        /// `Task.WhenAll`, `Task.WhenAny`, `Task.WaitAsync`, `Task.Unwrap`, `Parallel.ForEachAsync`.
        Combinator = "combinator",
        /// A `Task.ContinueWith`.
        ContinueWith = "continue-with",
        /// Work of the thread pool or of a scheduler.
        WorkItem = "work-item",
        /// A thread that waits synchronously.
        Thread = "thread",
        /// A delegate that somebody registered.
        Callback = "callback",
    } or Other
}

words! {
    /// What a chain waits for in the end.
    #[derive(Default)]
    LeafKind {
        /// A `TaskCompletionSource` that nobody has completed.
        TaskCompletionSource = "task-completion-source",
        /// `Task.Delay`.
        Delay = "delay",
        /// The next tick of a `PeriodicTimer`.
        PeriodicTimer = "periodic-timer",
        /// A time limit that is the wait itself.
        Timeout = "timeout",
        /// A `SemaphoreSlim`.
        Semaphore = "semaphore",
        /// An asynchronous lock of a library.
        AsyncLock = "async-lock",
        /// An element of a channel.
        ChannelRead = "channel-read",
        /// Space in a channel.
        ChannelWrite = "channel-write",
        /// Data of a pipe.
        PipeRead = "pipe-read",
        /// Space in a pipe.
        PipeWrite = "pipe-write",
        /// Data of a socket.
        SocketReceive = "socket-receive",
        /// Space in the send buffer of a socket.
        SocketSend = "socket-send",
        /// The next connection of a listener.
        SocketAccept = "socket-accept",
        /// A connection being made.
        SocketConnect = "socket-connect",
        /// A name being resolved.
        Dns = "dns",
        /// A TLS handshake.
        TlsHandshake = "tls-handshake",
        /// A free connection of `HttpClient`.
        HttpConnectionPool = "http-connection-pool",
        /// The response of a request of `HttpClient`.
        HttpResponse = "http-response",
        /// The body of a response of `HttpClient`.
        HttpBody = "http-body",
        /// The body of a request that the server receives.
        HttpRequestBody = "http-request-body",
        /// A database.
        Database = "database",
        /// A free connection of a database client's pool.
        DatabaseConnectionPool = "database-connection-pool",
        /// A cache server.
        Cache = "cache",
        /// A message broker.
        MessageBroker = "message-broker",
        /// A gRPC call of the client.
        Grpc = "grpc",
        /// A file.
        File = "file",
        /// The end of another process.
        ProcessExit = "process-exit",
        /// A `ValueTask` source of an unknown kind.
        ValueTaskSource = "value-task-source",
        /// A method that has gone on after its await, or a task's delegate: it runs on a thread now.
        TaskRunning = "task-running",
        /// A task that waits in a queue of the pool or of a scheduler.
        TaskQueued = "task-queued",
        /// A resumption posted to a synchronisation context.
        SyncContextPost = "sync-context-post",
        /// The awaited thing is complete, the continuation has not run.
        Ready = "ready",
        /// A method that has gone on after its await, or a task's delegate: its thread blocks or sleeps.
        ThreadBlocked = "thread-blocked",
        /// The chain waits for itself.
        Cycle = "cycle",
        /// No root of the garbage collector reaches the chain.
        Unreachable = "unreachable",
        /// None of these.
        #[default]
        Unknown = "unknown",
    } or Other
}

words! {
    /// What a chain belongs to at its outermost end.
    #[derive(Default)]
    RootKind {
        /// A request to the web server.
        HttpRequest = "http-request",
        /// A gRPC call to the server.
        GrpcCall = "grpc-call",
        /// An invocation of a SignalR hub.
        SignalrInvocation = "signalr-invocation",
        /// A hosted service.
        HostedService = "hosted-service",
        /// A callback of a timer.
        TimerCallback = "timer-callback",
        /// A consumer of a queue.
        QueueConsumer = "queue-consumer",
        /// A scheduled job.
        Job = "job",
        /// A `System.Diagnostics.Activity`.
        Activity = "activity",
        /// An `async void` method.
        AsyncVoid = "async-void",
        /// `Main`.
        Main = "main",
        /// A thread that waits synchronously.
        Thread = "thread",
        /// Nobody waits for the chain.
        #[default]
        None = "none",
    } or Other
}

words! {
    /// What a finding is about.
    FindingKind {
        /// A thread waits synchronously for a task.
        ThreadBlockedOnTask = "thread-blocked-on-task",
        /// The thread pool has no thread left for its work.
        ThreadpoolStarvation = "threadpool-starvation",
        /// Much work waits in a queue.
        QueueDepth = "queue-depth",
        /// Threads wait for each other's locks.
        LockDeadlock = "lock-deadlock",
        /// Many threads wait for one lock.
        LockContention = "lock-contention",
        /// Threads in `Monitor.Wait`.
        MonitorWait = "monitor-wait",
        /// Async methods that wait for each other.
        AwaitCycle = "await-cycle",
        /// Threads and async methods that wait for each other.
        MixedDeadlock = "mixed-deadlock",
        /// A thread waits for what is posted to itself.
        SyncContextDeadlock = "sync-context-deadlock",
        /// Methods or threads that wait for each other's semaphores.
        SemaphoreDeadlock = "semaphore-deadlock",
        /// A task waits for what is queued behind itself in its scheduler.
        SchedulerDeadlock = "scheduler-deadlock",
        /// Threads that wait for callbacks of a cancellation, which wait for them.
        CancellationDeadlock = "cancellation-deadlock",
        /// Threads that wait for a class constructor, which waits for them.
        TypeInitializerDeadlock = "type-initializer-deadlock",
        /// A semaphore with no place left and waiters.
        SemaphoreExhausted = "semaphore-exhausted",
        /// A connection pool with no connection left and waiters.
        HttpPoolExhausted = "http-pool-exhausted",
        /// A channel with no space left and writers.
        ChannelFull = "channel-full",
        /// One thing that many chains wait for.
        Bottleneck = "bottleneck",
        /// A wait that nothing can end.
        NeverCompletes = "never-completes",
        /// Continuations that could run and do not.
        ReadyNotRunning = "ready-not-running",
        /// An exception that nobody handled.
        UnhandledException = "unhandled-exception",
        /// Tasks that ended with an exception.
        FaultedTasks = "faulted-tasks",
        /// Tasks that were cancelled.
        CancelledTasks = "cancelled-tasks",
        /// Memory that suspended methods keep alive.
        RetainedByStateMachine = "retained-by-state-machine",
        /// Finished methods that are still reachable.
        CompletedNotCollected = "completed-not-collected",
        /// Nothing hangs.
        Idle = "idle",
    } or Other
}

words! {
    /// How much a finding matters to the person on call; ordered.
    #[derive(Default)]
    Severity {
        /// Good to know.
        #[default]
        Info = "info",
        /// Likely to hurt.
        Warning = "warning",
        /// Something hangs because of it.
        Critical = "critical",
    }
}

words! {
    /// How far a garbage collection had come.
    #[derive(Default)]
    CollectionStage {
        /// Beside the program: it looks for the objects that live. Nothing is moved.
        BackgroundMarking = "background-marking",
        /// Beside the program: it makes free space of the dead. Nothing is moved.
        BackgroundSweeping = "background-sweeping",
        /// All threads are stopped and living objects are marked: they are where they were.
        Marking = "marking",
        /// All threads are stopped, and objects, or the references to them, are being moved.
        #[default]
        Moving = "moving",
    }
}

words! {
    /// What kind of thing would complete what is waited for.
    #[derive(Default)]
    CompleterKind {
        /// A suspended method.
        #[default]
        Chain = "chain",
        /// A thread.
        Thread = "thread",
        /// Work that stands in the thread pool's queue.
        WorkItem = "work-item",
        /// A static field.
        Static = "static",
        /// A timer.
        Timer = "timer",
        /// What is called when a cancellation token is cancelled.
        Registration = "registration",
    } or Other
}

words! {
    /// How sure a finding is; ordered.
    #[derive(Default)]
    Confidence {
        /// One explanation among others.
        Possible = "possible",
        /// The best explanation of what the dump shows.
        #[default]
        Likely = "likely",
        /// The dump shows it.
        Certain = "certain",
    }
}

words! {
    /// How much is known of a frame of a thread's stack.
    FrameStanding {
        /// The registers, or a note of the runtime, lead to it, and the unwind information of all code between proves each
        /// step: the method runs.
        Exact = "exact",
        /// A chain of frame pointers leads to it: the method runs, and frames may be missing before it, as not all code keeps
        /// frame pointers.
        Chained = "chained",
        /// A return address that stands on the stack: the method runs, or has returned since.
        Possible = "possible",
        /// It has no frame of its own: the JIT put its code into its caller's, the next frame, or it ended with a call of
        /// the frame before it. The IL says so: of what the caller calls where it stands, this method alone calls that
        /// frame's, itself or through others of this standing. Its address is that of its caller.
        Inlined = "inlined",
    }
}

words! {
    /// The container of a dump.
    #[derive(Default)]
    DumpFormat {
        /// An ELF core file.
        #[default]
        ElfCore = "elf-core",
        /// A Windows minidump, with or without full memory.
        Minidump = "minidump",
    }
}

words! {
    /// Whether a chain hangs.
    #[derive(Default)]
    VerdictState {
        /// It does not get on.
        Stuck = "stuck",
        /// It waits for work, as it should.
        Idle = "idle",
        /// It waits for something that will come.
        Progressing = "progressing",
        /// The dump does not tell.
        #[default]
        Unknown = "unknown",
    }
}
