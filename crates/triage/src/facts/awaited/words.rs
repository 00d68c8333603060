//! What a chain waits for, as the report shows it: the text, and the details for machines.

use super::{Awaited, Fill, Runner, Socket, SystemPipe};
use crate::facts::object;
use asynctriage_dump::Addr;
use asynctriage_report::{Details, Leaf, LeafKind};
use serde_json::json;

impl Awaited {
    /// As the report shows it, without the evidence.
    pub(crate) fn leaf(&self) -> Leaf {
        let mut details = Details::new();
        self.note(&mut details);
        Leaf {
            kind: self.kind(),
            text: self.text(),
            details,
            ..Leaf::default()
        }
    }

    /// What a person would call it.
    pub(crate) fn text(&self) -> String {
        match self {
            Self::Missing => String::new(),
            Self::Cycle { member } => format!("cycle: {member} waits for itself in the end"),
            Self::OutsideCycle { member, .. } => {
                format!("a cycle, from outside: {member} waits for itself in the end")
            }
            Self::Running { what, runner } => running(what, runner.as_ref()),
            Self::Combinator { name } => format!("{name}: what it waits for is not known"),
            Self::Awaitable { class } => {
                format!("{class}: an awaitable of a kind that is not known")
            }
            Self::Yield => "Task.Yield or an awaiter without a reference".into(),
            Self::RuntimeAsyncYield => {
                "Task.Yield, or an awaiter of a kind that is not known".into()
            }
            Self::Queued => "queued to run again (Task.Yield or a completed await)".into(),
            Self::Posted { class, .. } => format!("resumption posted to {class}; it has not run"),
            Self::Completed { what, is_queued } => {
                let where_it_is = if *is_queued {
                    "stands in the thread pool's queue"
                } else {
                    "has not run"
                };
                format!("{what} is complete; the continuation {where_it_is}")
            }
            Self::NotStarted {
                delegate,
                is_scheduled,
            } => {
                let of = delegate.as_ref().map(|d| format!(" ({d})"));
                let state = if *is_scheduled {
                    "a task that has not started"
                } else {
                    "a task that nobody has started: Start was not called"
                };
                format!("{state}{}", of.unwrap_or_default())
            }
            Self::Promise { owner: None, .. } => {
                "TaskCompletionSource (its owner is not on the heap)".into()
            }
            Self::Promise { class: None, .. } => "TaskCompletionSource".into(),
            Self::Promise { class: Some(c), .. } => format!("TaskCompletionSource {c}"),
            Self::Semaphore { free, limit, .. } => {
                let of = limit.map(|m| format!(" of {m}")).unwrap_or_default();
                format!("SemaphoreSlim ({free}{of} free)")
            }
            Self::UnknownSemaphore => "SemaphoreSlim (the semaphore is not on the heap)".into(),
            Self::Mailbox { arrived: Some(n) } => {
                format!("MailboxProcessor: the next message ({n} arrived)")
            }
            Self::Mailbox { arrived: None } => "MailboxProcessor: the next message".into(),
            Self::Computation => {
                "the result of another computation: the reply of a MailboxProcessor, or of a started child".into()
            }
            Self::ValueTaskSource { class } => format!("IValueTaskSource {class}"),
            Self::Delay { .. } | Self::Sleep { .. } | Self::Tick { .. } => self.timer_text(),
            Self::PipeReader
            | Self::PipeWriter
            | Self::Channel { .. }
            | Self::Socket { .. }
            | Self::File { .. }
            | Self::SystemPipe { .. } => self.io_text(),
            _ => self.client_text(),
        }
    }

    fn timer_text(&self) -> String {
        match self {
            Self::Delay {
                timer: Some(timer), ..
            } => match timer.due {
                Some(ms) => format!("Task.Delay({ms} ms)"),
                // one that has fired is due no more, and completes the task only when its callback runs
                None => "Task.Delay whose timer has fired: its callback has not run".into(),
            },
            Self::Delay {
                is_cancellable: true,
                ..
            } => "Task.Delay (infinite, cancellable)".into(),
            Self::Delay { .. } => "Task.Delay (infinite)".into(),
            Self::Sleep { timer } => match timer.and_then(|t| t.due) {
                Some(ms) => format!("Async.Sleep({ms} ms)"),
                None => "Async.Sleep".into(),
            },
            Self::Tick { timer } => match timer.and_then(|t| t.period) {
                Some(ms) => format!("PeriodicTimer (every {ms} ms)"),
                None => "PeriodicTimer".into(),
            },
            _ => String::new(),
        }
    }

    fn io_text(&self) -> String {
        match self {
            Self::PipeReader => "a pipe's reader waits for data".into(),
            Self::PipeWriter => "a pipe's writer waits until the reader has caught up".into(),
            Self::Channel { writes, fill, .. } => {
                let who = if *writes { "writer" } else { "reader" };
                let state = fill.map(Fill::text).unwrap_or_default();
                format!("Channel {who}{state}")
            }
            Self::Socket {
                operation,
                endpoint,
                ..
            } => {
                let (text, how) = operation.words();
                match endpoint {
                    Some(end) => format!("{text} {how} {end}"),
                    None => text.into(),
                }
            }
            Self::File { path, .. } => match path {
                Some(path) => format!("file {path}"),
                None => "file".into(),
            },
            Self::SystemPipe {
                operation, pipe, ..
            } => match operation {
                SystemPipe::Write => format!("space in {pipe}"),
                SystemPipe::Read => format!("data of {pipe}"),
                SystemPipe::Connect => format!("the next client of {pipe}"),
            },
            _ => String::new(),
        }
    }

    fn client_text(&self) -> String {
        match self {
            Self::HttpPool(Some(pool)) => pool.text(),
            Self::HttpPool(None) => "HttpClient: a connection of a pool".into(),
            Self::Http { kind, request, .. } => match kind {
                LeafKind::HttpResponse => format!("HttpClient: {request}, response headers"),
                _ => format!("HttpClient: {request}"),
            },
            Self::HttpUnsent { request, over, .. } => {
                format!("HttpClient: {request}, not sent yet: {}", over.text())
            }
            Self::Process { id, .. } => format!("the end of process {id}"),
            Self::Kind { over, .. } => over.text(),
            Self::Client(wait) => wait.text(),
            Self::Library {
                method, wait, over, ..
            } => {
                let server = wait.as_ref().map(|w| (w, w.text()));
                let method = method
                    .as_ref()
                    .map(|m| format!("{m}, over {}", over.text()));
                match (server, method) {
                    (Some((wait, text)), Some(method)) if wait.is_server_alone() => {
                        format!("{text}: {method}")
                    }
                    (Some((_, text)), _) => text,
                    (None, method) => method.unwrap_or_default(),
                }
            }
            Self::Unreachable(over) => format!(
                "nothing can complete this: no root of the garbage collector reaches it ({})",
                over.text()
            ),
            _ => String::new(),
        }
    }

    /// Facts in machine-readable form: those of what it stands for, and its own.
    fn note(&self, out: &mut Details) {
        if let Some(over) = self.over() {
            over.note(out);
            if !matches!(self, Self::Kind { .. } | Self::Unreachable(_)) {
                out.insert("over".into(), json!(over.text()));
            }
        }
        if let Some(timer) = self.timer() {
            timer.note(out);
        }
        let mut note_object = |key: &str, at: Option<Addr>| {
            out.extend(at.map(|at| (key.to_owned(), object(at))));
        };
        match self {
            Self::OutsideCycle { at, .. } => {
                out.insert("member".into(), json!(at.map(|a| a.to_string())));
            }
            Self::Running {
                runner: Some(runner),
                ..
            } => {
                out.insert("thread".into(), json!(runner.thread));
                out.insert("thread_os_id".into(), json!(runner.os_id));
                out.insert("does".into(), json!(runner.does));
            }
            Self::Posted {
                context,
                continuation,
                ..
            } => {
                note_object("context", Some(*context));
                note_object("continuation", *continuation);
            }
            Self::Promise { owner, .. } => note_object("owner", *owner),
            Self::Semaphore { at, free, limit } => {
                note_object("semaphore", Some(*at));
                out.insert("free".into(), json!(free));
                out.extend(limit.map(|l| ("limit".into(), json!(l))));
            }
            Self::Channel { at, .. } => note_object("channel", *at),
            Self::Socket {
                socket, endpoint, ..
            } => {
                note_object("socket", *socket);
                out.extend(endpoint.iter().map(|e| ("endpoint".into(), json!(e))));
            }
            Self::File { handle, .. } => note_object("handle", *handle),
            Self::SystemPipe { stream, .. } => note_object("stream", *stream),
            Self::HttpPool(Some(pool)) => pool.note(out),
            Self::Http { message, .. } => note_object("request", Some(*message)),
            Self::HttpUnsent { message, .. } => {
                note_object("request", Some(*message));
                out.insert("unsent".into(), json!(true));
            }
            Self::Process { id, .. } => {
                out.insert("process_id".into(), json!(id));
            }
            Self::Client(wait) => wait.note(out),
            Self::Library {
                wait: Some(wait), ..
            } => wait.note(out),
            _ => {}
        }
    }
}

fn running(what: &str, runner: Option<&Runner>) -> String {
    let Some(runner) = runner else {
        return format!("{what} has gone on, and no thread of the dump is known to run it");
    };
    let possibly = if runner.is_possible { "possibly " } else { "" };
    format!(
        "{what} runs {possibly}on thread '{}' (os id {}), which {}",
        runner.thread, runner.os_id, runner.does
    )
}

impl Fill {
    fn text(self) -> String {
        let Self { items, capacity } = self;
        if items >= capacity {
            format!(" (bounded, full: {items} of {capacity})")
        } else {
            format!(" (bounded: {items} of {capacity})")
        }
    }
}

impl Socket {
    /// What it is called, and how whom it is with is named.
    fn words(self) -> (&'static str, &'static str) {
        match self {
            Self::Accept => ("Socket accept", "on"),
            Self::Connect => ("Socket connect", "with"),
            Self::Receive => ("Socket receive", "with"),
            Self::Send => ("Socket send", "with"),
        }
    }
}
