//! What a chain is for: the request, service, job or thread that waits for its end.

use super::{RequestFacts, object};
use asynctriage_dump::Addr;
use asynctriage_report::{Details, Root, RootKind};
use serde_json::json;

/// What a chain is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// A request to the web server; `thread` blocks on the chain's end while it serves the request.
    Request {
        facts: RequestFacts,
        is_grpc: bool,
        thread: Option<ThreadId>,
    },
    /// An invocation of a hub's method, by its message.
    Hub { message: Addr, method: String },
    /// A `BackgroundService`.
    Background {
        service: Option<Addr>,
        class: String,
    },
    /// What a library or the host calls the program for, and the object that knows its name.
    Service {
        kind: RootKind,
        what: &'static str,
        named: Option<(Addr, String)>,
    },
    /// A job of Hangfire that a thread blocks for.
    Job {
        job: Addr,
        id: Option<String>,
        thread: ThreadId,
    },
    /// A callback of a timer that blocks.
    Timer {
        callback: Callback,
        thread: ThreadId,
    },
    /// A `System.Diagnostics.Activity`.
    Activity { object: Addr, name: String },
    /// A thread that blocks on the chain's end, with the slot of its stack that names it.
    Thread {
        thread: ThreadId,
        managed_id: u32,
        slot: Option<Addr>,
        is_main: bool,
    },
    /// An `async void` method.
    AsyncVoid,
}

/// A thread as sentences name it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ThreadId {
    pub(crate) name: String,
    pub(crate) os_id: u32,
}

/// The method that a timer calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Callback {
    pub(crate) method: Option<String>,
    /// Whether that method may have returned.
    pub(crate) is_method_possible: bool,
    /// Whether the timer's own frame may be a leftover: then all that follows is in doubt.
    pub(crate) is_timer_possible: bool,
}

impl Callback {
    fn text(&self) -> String {
        let possibly = if self.is_timer_possible {
            "possibly "
        } else {
            ""
        };
        match &self.method {
            Some(method) if self.is_method_possible && !self.is_timer_possible => {
                format!("timer callback, possibly {method}")
            }
            Some(method) => format!("{possibly}timer callback {method}"),
            None => format!("{possibly}timer callback"),
        }
    }
}

impl Purpose {
    pub(crate) fn kind(&self) -> RootKind {
        match self {
            Self::Request { is_grpc: true, .. } => RootKind::GrpcCall,
            Self::Request { .. } => RootKind::HttpRequest,
            Self::Hub { .. } => RootKind::SignalrInvocation,
            Self::Background { .. } => RootKind::HostedService,
            Self::Service { kind, .. } => *kind,
            Self::Job { .. } => RootKind::Job,
            Self::Timer { .. } => RootKind::TimerCallback,
            Self::Activity { .. } => RootKind::Activity,
            Self::Thread { is_main: true, .. } => RootKind::Main,
            Self::Thread { .. } => RootKind::Thread,
            Self::AsyncVoid => RootKind::AsyncVoid,
        }
    }

    /// The request that it is.
    pub(crate) fn request(&self) -> Option<&RequestFacts> {
        match self {
            Self::Request { facts, .. } => Some(facts),
            _ => None,
        }
    }

    /// What a person would call it.
    pub(crate) fn text(&self) -> String {
        match self {
            Self::Request { facts, .. } => facts.title(),
            Self::Hub { method, .. } => method.clone(),
            Self::Background { class, .. } => {
                format!("BackgroundService {class}").trim_end().to_owned()
            }
            Self::Service { what, named, .. } => match named {
                Some((_, name)) => format!("{what} {name}"),
                None => what.trim_end_matches(" of").to_owned(),
            },
            Self::Job { id, .. } => {
                format!("Hangfire job {}", id.as_deref().unwrap_or("without id"))
            }
            Self::Timer { callback, .. } => callback.text(),
            Self::Activity { name, .. } => format!("Activity '{name}'"),
            Self::Thread { thread, .. } => format!("thread '{}' blocks on it", thread.name),
            Self::AsyncVoid => "async void: nobody waits for its end".into(),
        }
    }

    fn details(&self) -> Details {
        let mut out = Details::new();
        match self {
            Self::Request { facts, thread, .. } => {
                facts.note(&mut out);
                note_thread(&mut out, thread.as_ref());
            }
            Self::Hub { message, .. } => {
                out.insert("message".into(), object(*message));
            }
            Self::Background { service, .. } => {
                out.extend(service.map(|s| ("service".into(), object(s))));
            }
            Self::Service { named, .. } => {
                out.extend(named.iter().map(|(at, _)| ("object".into(), object(*at))));
            }
            Self::Job { job, thread, .. } => {
                out.insert("job".into(), object(*job));
                note_thread(&mut out, Some(thread));
            }
            Self::Timer { thread, .. } => note_thread(&mut out, Some(thread)),
            Self::Activity { object: at, .. } => {
                out.insert("activity".into(), object(*at));
            }
            Self::Thread {
                thread,
                managed_id,
                slot,
                ..
            } => {
                out.insert("os_id".into(), json!(thread.os_id));
                out.insert("managed_id".into(), json!(managed_id));
                out.extend(slot.map(|s| ("stack_slot".into(), object(s))));
            }
            Self::AsyncVoid => {}
        }
        out
    }

    /// As the report shows it.
    pub(crate) fn root(&self) -> Root {
        Root {
            kind: self.kind(),
            text: self.text(),
            details: self.details(),
        }
    }
}

fn note_thread(details: &mut Details, thread: Option<&ThreadId>) {
    if let Some(thread) = thread {
        details.insert("thread".into(), json!(thread.name));
        details.insert("thread_os_id".into(), json!(thread.os_id));
    }
}
