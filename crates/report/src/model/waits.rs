//! Who waits for whom, as nodes and edges: threads, groups of chains, and what stands between them.

use super::kinds::words;
use super::{Address, Confidence, is_false, is_one, is_zero};
use serde::{Deserialize, Serialize};

words! {
    /// What kind of thing a node of the wait-for graph is.
    #[derive(Default)]
    WaitNodeKind {
        /// A thread.
        Thread = "thread",
        /// A group of chains, or one method of a deadlock.
        Chain = "chain",
        /// A monitor or another lock.
        Lock = "lock",
        /// A `SemaphoreSlim`.
        Semaphore = "semaphore",
        /// A server that the process talks to.
        Remote = "remote",
        /// A channel or pipe.
        Channel = "channel",
        /// A timer.
        Timer = "timer",
        /// A queue of the thread pool, of a scheduler or of a context.
        Queue = "queue",
        /// A task or source that somebody has to complete.
        Source = "source",
        /// Who would complete something and is neither chain nor thread of the report.
        Completer = "completer",
        /// A class constructor, a callback, the end of a process, and what has no kind of its own.
        #[default]
        #[serde(other)]
        Other = "other",
    }
}

/// The wait-for graph: an edge leads from who waits to what it waits for, and from that to who has or completes it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct WaitGraph {
    /// The nodes, capped; those of deadlocks come first.
    pub nodes: Vec<WaitNode>,
    /// The edges between them.
    pub edges: Vec<WaitEdge>,
    /// Deadlocks: ids of the nodes that wait for each other, each deadlock by itself. Whether a time limit ends one, its
    /// finding says.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub cycles: Vec<Vec<String>>,
    /// Threads and groups of chains that wait and are no nodes, as there are too many.
    #[serde(skip_serializing_if = "is_zero")]
    pub left_out: u64,
}

impl WaitGraph {
    /// Whether nothing waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty() && self.left_out == 0
    }
}

/// Something that waits, or is waited for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct WaitNode {
    /// Name of the node within this report, `W1` for the first.
    pub id: String,
    /// What it is.
    pub kind: WaitNodeKind,
    /// What a person would call it.
    pub text: String,
    /// Chains or equal threads that it stands for; 1 when left out.
    #[serde(skip_serializing_if = "is_one")]
    pub count: u64,
    /// The group of chains that it is or is part of, by id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chain: Option<String>,
    /// Operating-system id of the thread that it is, or of the first of several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thread: Option<u64>,
    /// Its object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub address: Option<Address>,
}

impl Default for WaitNode {
    fn default() -> Self {
        Self {
            id: String::new(),
            kind: WaitNodeKind::default(),
            text: String::new(),
            count: 1,
            chain: None,
            thread: None,
            address: None,
        }
    }
}

/// One wait, or who has what is waited for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct WaitEdge {
    /// Id of the node that waits.
    pub from: String,
    /// Id of the node that it waits for.
    pub to: String,
    /// In words what leads from one to the other: `waits for`, `held by`, `runs on`.
    pub text: String,
    /// How many chains, threads or holders it stands for; 1 when left out.
    #[serde(skip_serializing_if = "is_one")]
    pub count: u64,
    /// How sure it is.
    pub confidence: Confidence,
    /// How it was read.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub how: String,
    /// Whether it is part of a deadlock.
    #[serde(skip_serializing_if = "is_false")]
    pub in_cycle: bool,
}

impl Default for WaitEdge {
    fn default() -> Self {
        Self {
            from: String::new(),
            to: String::new(),
            text: String::new(),
            count: 1,
            confidence: Confidence::default(),
            how: String::new(),
            in_cycle: false,
        }
    }
}
