//! Threads, the thread pool and the requests of the process.

use super::{Address, Details, FrameStanding, is_false, is_zero};
use serde::{Deserialize, Serialize};

/// A thread that runs or ran managed code.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Thread {
    /// Number of the thread in the operating system.
    pub os_id: u64,
    /// Number of the thread in .NET.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub managed_id: Option<u32>,
    /// Its name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// What it does: `running`, `blocked`, `idle`, `dead` and the like; `unknown` when only possible frames tell.
    pub state: String,
    /// Its stack, innermost first, as far as it could be read.
    pub frames: Vec<ThreadFrame>,
    /// What it waits for synchronously; a thread that has this is blocked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waits_on: Option<ObjectRef>,
    /// The group of chains that it waits for or runs, by id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chain: Option<String>,
    /// What it does in the program's code while it waits for nothing: `computes, in Program.Crunch`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub runs: Option<String>,
    /// The locks that it holds.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub holds: Vec<ObjectRef>,
    /// The request that it works on, as method and path.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request: Option<String>,
}

/// One frame of a thread's stack.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct ThreadFrame {
    /// The method, or what is known of the code.
    pub method: String,
    /// Whether it is native code: the method is then `image!function+offset`, or `image!+offset` from the image's begin.
    #[serde(skip_serializing_if = "is_false")]
    pub native: bool,
    /// The instruction.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub address: Option<Address>,
    /// The file of the code.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub module: Option<String>,
    /// Source file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// Line in `file`, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// How much is known of the frame.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub standing: Option<FrameStanding>,
    /// Whether the method is code of .NET rather than of the program or of its libraries.
    #[serde(skip_serializing_if = "is_false")]
    pub is_framework: bool,
    /// How the frame was found, when that leaves a doubt, and of methods without a frame of their own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub evidence: Option<String>,
}

/// An object that something else speaks of.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct ObjectRef {
    /// What a person would call it.
    pub text: String,
    /// Where it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub address: Option<Address>,
    /// Raw name of its type.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub type_name: Option<String>,
}

/// The thread pool.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Pool {
    /// Threads it has.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workers: Option<u64>,
    /// Threads it makes without delay.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min: Option<u64>,
    /// Threads it makes at most.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max: Option<u64>,
    /// Threads without work.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle: Option<u64>,
    /// Threads that wait synchronously for tasks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub blocked: Option<u64>,
    /// Threads that it wants to have now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub goal: Option<u64>,
    /// Work that waits for a thread.
    pub queued: QueuedWork,
}

/// Work that waits for a thread of the pool.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct QueuedWork {
    /// In the queue for all threads.
    pub global: u64,
    /// In the queue that goes first.
    pub high_priority: u64,
    /// In the queues of the threads.
    pub local: u64,
    /// All of it, by what it is.
    pub by_kind: Vec<QueuedKind>,
    /// Work that was counted and is not in `by_kind`.
    #[serde(skip_serializing_if = "is_zero")]
    pub left_out: u64,
}

impl QueuedWork {
    /// The three queues together.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.global
            .saturating_add(self.high_priority)
            .saturating_add(self.local)
    }
}

/// Queued work of one kind.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct QueuedKind {
    /// What it is: a method, or the type of the work item.
    pub kind: String,
    /// How many.
    pub count: u64,
    /// The signature of the chains that it will resume.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resumes: Option<String>,
}

/// A request that the process serves.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Request {
    /// Name of the request within this report, `R1` for the first.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub id: String,
    /// `GET`, `POST` and so on.
    pub method: String,
    /// Path without the query.
    pub path: String,
    /// The route that the path matched.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub route: Option<String>,
    /// For how long it has run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub age_seconds: Option<f64>,
    /// Id of the distributed trace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trace_id: Option<String>,
    /// Id of its own span in that trace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub span_id: Option<String>,
    /// Id of the caller's span.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent_span_id: Option<String>,
    /// The calls to other servers that it waits for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<OutgoingCall>,
    /// The group of chains that serves it, by id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chain: Option<String>,
    /// The connection it came over.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub connection: Option<String>,
    /// Facts in machine-readable form: the object, the thread that serves it, the clock behind its age.
    #[serde(skip_serializing_if = "Details::is_empty")]
    pub details: Details,
}

/// A call to another server.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct OutgoingCall {
    /// Method and URL, without what looks like a value.
    pub text: String,
    /// Scheme, host and port.
    pub server: String,
    /// Id of the distributed trace that the call carries.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trace_id: Option<String>,
    /// Id of the call's span: the parent of the request that it becomes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub span_id: Option<String>,
    /// The message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub object: Option<Address>,
}
