//! Chains: from one innermost wait to one outermost end, grouped when they are alike.

use super::{
    Address, CompleterKind, Confidence, FrameKind, LeafKind, RootKind, VerdictState, is_false,
    is_one, is_zero,
};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Facts about a leaf or a root that have no field of their own, by name; addresses are strings as everywhere.
pub type Details = BTreeMap<String, serde_json::Value>;

/// Chains with the same frames, the same kind of leaf and the same kind of root.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct ChainGroup {
    /// Name of the group within this report, `c1` for the first.
    pub id: String,
    /// Equal for equal chains of any dump of the same program: made of the frames' methods and awaits and the kinds of
    /// leaf and root.
    pub signature: String,
    /// Equal for the same wait of the same program in any version of the runtime, on any platform and in any of its builds:
    /// made of the methods of the program and its libraries, without await numbers and generic arguments, and of the kinds of
    /// leaf and root.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub app_signature: String,
    /// Whether a method of the program has no name in this dump: `app_signature` then equals those of other dumps of this kind
    /// only.
    #[serde(skip_serializing_if = "is_false")]
    pub names_incomplete: bool,
    /// How many chains there are.
    pub count: u64,
    /// When the oldest of them began, in UTC as RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_seen: Option<String>,
    /// For how long they have waited.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waiting_seconds: Option<Waiting>,
    /// The frames, innermost first.
    pub frames: Vec<Frame>,
    /// What they wait for.
    pub leaf: Leaf,
    /// What they belong to; `null` when that is not known.
    pub root: Option<Root>,
    /// Bytes that live only because of the variables of all these chains, added up, when locals are asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retained_bytes: Option<u64>,
    /// The chains one by one, capped.
    pub members: Vec<Member>,
    /// How many of `count` are not in `members`.
    #[serde(skip_serializing_if = "is_zero")]
    pub members_left_out: u64,
    /// Whether they hang.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verdict: Option<Verdict>,
}

/// For how long the chains of a group have waited, in seconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Waiting {
    /// Shortest.
    pub min: f64,
    /// Middle one.
    pub median: f64,
    /// Longest.
    pub max: f64,
    /// What in the dump tells it.
    pub how: String,
}

/// A suspended method, or what stands between two.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Frame {
    /// The method as a C# programmer would write it.
    pub method: String,
    /// What it is.
    pub kind: FrameKind,
    /// The await it stands at, counted from 0 in the order of the source.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub await_index: Option<u32>,
    /// Whether `await_index` is only the least that it can be: the code was counted, and the compiler leaves out awaits
    /// of what has always ended.
    #[serde(skip_serializing_if = "is_false")]
    pub await_index_least: bool,
    /// Offset of that await in the method's IL, in bytes, where its number is not known; that of the statement where
    /// the compiler tells no more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub il_offset: Option<u32>,
    /// What is awaited there, as in the source: `Client.SendAsync`, `_gate`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub awaits: Option<String>,
    /// How often the frame follows itself; 1 when left out.
    #[serde(skip_serializing_if = "is_one")]
    pub repeat: u64,
    /// Source file of the await.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// Line of the await in `file`, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// Where `file` is published, as the symbols say (Source Link).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source_url: Option<String>,
    /// The object of the frame in one member of the group.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub address: Option<Address>,
    /// Raw name of the object's type.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub type_name: Option<String>,
    /// Whether the method is `async void`.
    #[serde(skip_serializing_if = "is_false")]
    pub is_async_void: bool,
    /// Whether the method is code of .NET rather than of the program or of its libraries.
    #[serde(skip_serializing_if = "is_false")]
    pub is_framework: bool,
    /// The delegate behind a combinator or a `ContinueWith`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delegate: Option<String>,
    /// How the frame was found, when that is not the usual way.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub evidence: Option<String>,
    /// Bytes that live only because of the variables of this frame, in one member of the group, when locals are asked
    /// for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retained_bytes: Option<u64>,
    /// Parameters and locals that the frame keeps in one member of the group, when they are asked for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub locals: Vec<Local>,
}

/// A parameter or local of a suspended method.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Local {
    /// Its name in the source.
    pub name: String,
    /// Type of what it holds.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub type_name: Option<String>,
    /// What it holds; of texts only the length, unless values are asked for. Empty when its form is not known.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub value: String,
    /// Size of the object that it refers to, in bytes, without what that refers to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// Bytes that live only because of this variable: what it refers to, and what nothing else in the process leads to
    /// behind that. 0 when something else keeps all of it alive; left out when it was not worked out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retained_bytes: Option<u64>,
    /// The object that it refers to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub address: Option<Address>,
}

impl Default for Frame {
    fn default() -> Self {
        Self {
            method: String::new(),
            kind: FrameKind::default(),
            await_index: None,
            await_index_least: false,
            il_offset: None,
            awaits: None,
            repeat: 1,
            file: None,
            line: None,
            source_url: None,
            address: None,
            type_name: None,
            is_async_void: false,
            is_framework: false,
            delegate: None,
            evidence: None,
            retained_bytes: None,
            locals: Vec::new(),
        }
    }
}

impl Frame {
    /// Whether it is a method that stands at an await, with or without its number.
    #[must_use]
    pub fn stands_at_await(&self) -> bool {
        self.await_index.is_some() || self.il_offset.is_some()
    }

    /// `await 2`, `await 2 or later` where awaits before it may be missing, or `await at IL 0x2e` where the number is
    /// not known.
    #[must_use]
    pub fn place(&self) -> Option<String> {
        let offset = self.il_offset.map(|il| format!("await at IL {il:#x}"));
        let later = if self.await_index_least {
            " or later"
        } else {
            ""
        };
        let number = self.await_index.map(|n| format!("await {n}{later}"));
        number.or(offset)
    }
}

/// The innermost wait of a chain.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Leaf {
    /// What kind of wait it is.
    pub kind: LeafKind,
    /// What a person would call it: address of the server, count of the semaphore, due time of the timer.
    pub text: String,
    /// Facts in machine-readable form.
    pub details: Details,
    /// How it was recognised.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub evidence: Option<String>,
    /// How sure it is that this is what is waited for; left out when the dump leaves no choice.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub confidence: Option<Confidence>,
    /// Who would complete it, the surest first, capped.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub completers: Vec<Completer>,
}

/// Somebody who would complete what chains wait for, or through whom it can be reached.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Completer {
    /// What it is.
    pub kind: CompleterKind,
    /// What a person would call it, and what it does about it.
    pub text: String,
    /// How sure it is that this completes it: `certain` when the code of a waiting method does so behind its await,
    /// `likely` when such a call is in its code, `possible` when it only leads to the object.
    pub confidence: Confidence,
    /// How many chains of the group wait for it.
    pub count: u64,
    /// How many there are that are called the same: one that completes for many, or one for each; 0 in reports that did
    /// not count them.
    #[serde(skip_serializing_if = "is_zero")]
    pub alike: u64,
    /// The group of the chain that it is part of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chain: Option<String>,
    /// The thread that it runs on (id of the operating system).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thread: Option<u64>,
    /// The object that holds it, in one chain of the group.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub object: Option<Address>,
    /// The way from there to what is waited for, as C# would write it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// The references that lead there.
    pub evidence: String,
}

/// The outermost end of a chain.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Root {
    /// What kind of end it is.
    pub kind: RootKind,
    /// What a person would call it: method and path or route, the activity's name, the thread's name.
    pub text: String,
    /// Facts in machine-readable form.
    pub details: Details,
}

/// One chain of a group.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Member {
    /// Name of the chain within this report, `c1.2` for the second of the first group.
    pub id: String,
    /// The objects of its frames, innermost first.
    pub boxes: Vec<Address>,
    /// The object that is waited for in the end: a task, a source, a timer's task.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waits_on: Option<Address>,
    /// What this one waits for, when it differs from the leaf of the group.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub leaf: Option<String>,
    /// What this one belongs to, when it differs from the root of the group.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub root: Option<String>,
    /// For how long this one has waited.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waiting_seconds: Option<f64>,
    /// Bytes that live only because of the variables of this one, when locals are asked for. What it shares with other
    /// chains does not count.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retained_bytes: Option<u64>,
}

/// Whether the chains of a group hang, and why.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Verdict {
    /// The judgement.
    pub state: VerdictState,
    /// What it rests on.
    pub why: String,
}
