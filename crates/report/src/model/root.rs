//! The answer to `root`: what keeps an object alive.

use super::kinds::words;
use super::views::current;
use super::{Address, Confidence, Gap, is_zero};
use serde::{Deserialize, Serialize};

words! {
    /// What a way to an object begins with.
    #[derive(Default)]
    GcRootKind {
        /// A static field.
        #[default]
        Static = "static",
        /// The statics of one thread.
        ThreadStatic = "thread-static",
        /// A word of a thread's stack.
        Stack = "stack",
        /// A register of a thread.
        Register = "register",
        /// A handle that keeps its object alive.
        Handle = "handle",
        /// The queue of the finalizer thread.
        FinalizerQueue = "finalizer-queue",
        /// A variable of a suspended method. Something else keeps the method alive.
        Local = "local",
    } or Other
}

/// What keeps an object alive.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct RootsReport {
    /// [`super::SCHEMA_VERSION`] of the writer.
    #[serde(default = "current")]
    pub schema_version: String,
    /// The dump, as the user gave it.
    pub dump: String,
    /// The object.
    pub address: Address,
    /// Raw name of its type.
    #[serde(rename = "type")]
    pub type_name: String,
    /// The shortest way from each root, the shortest first.
    pub paths: Vec<RootPath>,
    /// Roots that were found and are above the limit.
    #[serde(skip_serializing_if = "is_zero")]
    pub paths_left_out: u64,
    /// Whether all ways were followed to their ends: with no path, the object is then garbage.
    pub is_complete: bool,
    /// What could not be read.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub gaps: Vec<Gap>,
}

impl Default for RootsReport {
    fn default() -> Self {
        Self {
            schema_version: current(),
            dump: String::new(),
            address: Address::default(),
            type_name: String::new(),
            paths: Vec::new(),
            paths_left_out: 0,
            is_complete: false,
            gaps: Vec::new(),
        }
    }
}

/// A way from a root to an object.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct RootPath {
    /// What it begins with.
    pub kind: GcRootKind,
    /// The root in words: `thread 4711 'main' in Program.Main`, `strong handle`.
    pub root: String,
    /// Where the reference of the root stands.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slot: Option<Address>,
    /// The thread (id of the operating system).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thread: Option<u64>,
    /// The group of chains that the suspended method is part of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chain: Option<String>,
    /// The whole way as C# would write it: `static Program.s_pending[42]._task`.
    pub path: String,
    /// The objects of the way; the last one is the object that was asked about.
    pub hops: Vec<RootHop>,
    /// Objects in the middle of a long way that are not in `hops`.
    #[serde(skip_serializing_if = "is_zero")]
    pub hops_left_out: u64,
    /// How sure the root is: a word on a stack may be a leftover.
    pub confidence: Confidence,
}

/// An object of a way.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct RootHop {
    /// Where it is.
    pub address: Address,
    /// Raw name of its type.
    #[serde(rename = "type")]
    pub type_name: String,
    /// What of it leads to the next one: `._task`, `[42]`; empty for the last.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub by: String,
}
