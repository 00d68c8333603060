//! What recording a program costs: the answer of an experiment.

use super::{Gap, SCHEMA_VERSION, is_zero};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What recording a program costs, by its own timer, in fresh processes without and with a collector.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ObserveReport {
    /// [`SCHEMA_VERSION`] of the writer.
    pub schema_version: String,
    /// The command that was run.
    #[serde(default)]
    pub command: Vec<String>,
    /// Version of the .NET runtime that ran it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub runtime: String,
    /// The operating system, as the runtime calls it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub os: String,
    /// The processor's architecture, as the runtime calls it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub arch: String,
    /// Processors that the experiment could use; 0 when unknown.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub processors: u64,
    /// How often each mode was run, besides a round that does not count.
    #[serde(default)]
    pub rounds: u64,
    /// With what number the orders by chance began.
    #[serde(default)]
    pub seed: u64,
    /// What the times are.
    #[serde(default)]
    pub timer: ObserveTimer,
    /// Whether the program did the same work in every run.
    #[serde(default)]
    pub result: ObserveResult,
    /// The modes, those with fewer events first.
    #[serde(default)]
    pub modes: Vec<ObserveMode>,
    /// What follows from the times of two modes.
    #[serde(default)]
    pub comparisons: Vec<ObserveComparison>,
    /// What went wrong.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gaps: Vec<Gap>,
}

impl Default for ObserveReport {
    fn default() -> Self {
        Self {
            schema_version: SCHEMA_VERSION.to_owned(),
            command: Vec::new(),
            runtime: String::new(),
            os: String::new(),
            arch: String::new(),
            processors: 0,
            rounds: 0,
            seed: 0,
            timer: ObserveTimer::default(),
            result: ObserveResult::default(),
            modes: Vec::new(),
            comparisons: Vec::new(),
            gaps: Vec::new(),
        }
    }
}

/// What the times of an experiment are.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case", tag = "kind", content = "name")]
pub enum ObserveTimer {
    /// What the program says by this name.
    Program(String),
    /// From the moment that the process was let go to its end: start and end of the runtime are in it.
    #[default]
    Outside,
}

/// Whether the program did the same work in every run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct ObserveResult {
    /// What was compared: the name of what the program says, or `stdout`.
    pub of: String,
    /// Whether all runs say the same.
    pub same: bool,
    /// What was said, and by how many runs; a SHA-256 for `stdout`.
    pub values: Vec<ObserveValue>,
}

/// A result of some runs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct ObserveValue {
    /// The result.
    pub value: String,
    /// How many runs had it.
    pub runs: u64,
}

/// The runs of one mode.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct ObserveMode {
    /// `none`, `markers` or `profiler`.
    pub name: String,
    /// What was recorded, as `NAME:KEYWORDS:LEVEL`.
    pub providers: Vec<String>,
    /// The times in milliseconds, in the order of the rounds.
    pub milliseconds: Vec<f64>,
    /// Their median; absent without runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub median: Option<f64>,
    /// The shortest time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min: Option<f64>,
    /// The longest time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max: Option<f64>,
    /// Bytes of the recordings, in the order of the rounds.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub bytes: Vec<u64>,
    /// Events of the recordings, in the order of the rounds.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<u64>,
    /// Records of the async profiler in them (mode `profiler`).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub records: Vec<u64>,
    /// Events that were lost.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub lost_events: Vec<u64>,
    /// How many recordings have which verdict (mode `profiler`).
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub verdicts: BTreeMap<String, u64>,
}

/// What follows from the times of two modes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct ObserveComparison {
    /// The mode with fewer events.
    pub from: String,
    /// The mode with more.
    pub to: String,
    /// What can be said.
    pub verdict: ObserveVerdict,
    /// How many times as long the median of `to` is; only when the verdict allows to say it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ratio: Option<f64>,
    /// How often ranks would be as unequal if there were no difference, from 0 to 1, by the exact rank test.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub probability: Option<f64>,
}

/// What can be said of the times of two modes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum ObserveVerdict {
    /// A mode has no times, or the results differ: these are not times of the same work.
    #[default]
    NotComparable,
    /// The recordings of the second mode hold nothing: what recording costs does not follow.
    NotRecorded,
    /// The ranks are as unequal by chance too often: no difference is shown, and no percentage follows.
    NoneShown,
    /// So few runs cannot show a difference, whatever their times.
    TooFew,
    /// Runs of the second mode took longer.
    Slower,
    /// Runs of the second mode took less time.
    Faster,
}
