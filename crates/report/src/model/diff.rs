//! Several dumps compared: what moved between them, and what did not.

use super::kinds::words;
use super::{FindingKind, LeafKind, RootKind, SCHEMA_VERSION, Severity, is_false};
use serde::{Deserialize, Serialize};

words! {
    /// What comparing dumps says of chains, or of a process.
    #[derive(Default)]
    DiffState {
        /// The same objects stand at the same awaits on the same things.
        Stuck = "stuck",
        /// They become more, and none of them ends or moves.
        Leaking = "leaking",
        /// Some moved and some did not.
        Slow = "slow",
        /// They moved on, or ended and others came.
        Progressing = "progressing",
        /// They stand still, as the framework does while it waits for work.
        Idle = "idle",
        /// The first dump has none of them.
        New = "new",
        /// The last dump has none of them.
        Gone = "gone",
        /// The dumps do not tell.
        #[default]
        Unknown = "unknown",
    }
}

words! {
    /// Whether a finding stands in the first dump, the last or both.
    FindingStanding {
        /// In both.
        Persists = "persists",
        /// In the last only.
        New = "new",
        /// In the first only.
        Gone = "gone",
    }
}

fn current() -> String {
    SCHEMA_VERSION.to_owned()
}

/// What moved between dumps.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct DiffReport {
    /// [`SCHEMA_VERSION`] of the writer.
    #[serde(default = "current")]
    pub schema_version: String,
    /// The dumps, in the order of time where all tell theirs.
    pub dumps: Vec<DiffDump>,
    /// Whether all are of one process: chains are then compared one by one, else by their `app_signature`.
    pub same_process: bool,
    /// Seconds between the first and the last; left out where their clocks do not tell.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seconds: Option<f64>,
    /// The judgement on the process.
    pub state: DiffState,
    /// What it rests on.
    pub why: String,
    /// Groups of chains, the worst first.
    pub groups: Vec<DiffGroup>,
    /// Figures of the process in each dump.
    pub figures: Vec<DiffFigure>,
    /// Findings of the first and the last dump.
    pub findings: Vec<DiffFinding>,
}

impl Default for DiffReport {
    fn default() -> Self {
        Self {
            schema_version: current(),
            dumps: Vec::new(),
            same_process: false,
            seconds: None,
            state: DiffState::default(),
            why: String::new(),
            groups: Vec::new(),
            figures: Vec::new(),
            findings: Vec::new(),
        }
    }
}

/// One of the dumps.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct DiffDump {
    /// The file.
    pub path: String,
    /// The program and its version.
    pub program: String,
    /// Version of the runtime.
    pub runtime: String,
    /// Number of the process.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub process_id: Option<u64>,
    /// When it was taken, in UTC as RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time: Option<String>,
    /// Whether it may have been taken later than `time`.
    #[serde(skip_serializing_if = "is_false")]
    pub time_is_floor: bool,
    /// Whether the file is cut, so that chains may be missing.
    #[serde(skip_serializing_if = "is_false")]
    pub incomplete: bool,
}

/// Chains with one signature.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct DiffGroup {
    /// `signature` of the group; of different processes its `app_signature`.
    pub signature: String,
    /// The judgement.
    pub state: DiffState,
    /// What it rests on.
    pub why: String,
    /// The program's innermost method, else the framework's.
    pub method: String,
    /// The await that it stands at.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub await_index: Option<u32>,
    /// What they wait for.
    pub leaf: LeafKind,
    /// The same in words, of the last dump that has them.
    pub leaf_text: String,
    /// What they belong to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub root: Option<RootKind>,
    /// How many there are, for each dump.
    pub counts: Vec<u64>,
    /// Chains of the first dump that are in the last with the same objects at the same awaits on the same thing.
    pub unmoved: u64,
    /// Chains of the last dump whose outermost object was in the first and that wait elsewhere, or for another thing.
    pub moved: u64,
    /// Chains of the last dump whose outermost object was in none of the first.
    pub new: u64,
    /// Chains of the first dump whose outermost object is in none of the last.
    pub gone: u64,
    /// How many more there are each second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub per_second: Option<f64>,
    /// Seconds that the oldest has waited, for each dump that tells.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub oldest_seconds: Vec<Option<f64>>,
}

/// A figure of the process.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct DiffFigure {
    /// What is counted: `heap objects`, `heap bytes`, `tasks` and the like.
    pub what: String,
    /// How many, for each dump.
    pub counts: Vec<u64>,
    /// How many more each second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub per_second: Option<f64>,
}

/// A finding of the first or the last dump.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DiffFinding {
    /// `signature` of the finding.
    #[serde(default)]
    pub signature: String,
    /// What it is about.
    pub kind: FindingKind,
    /// How much it matters.
    #[serde(default)]
    pub severity: Severity,
    /// Which dumps have it.
    pub standing: FindingStanding,
    /// Its title, in the last dump that has it.
    #[serde(default)]
    pub title: String,
}
