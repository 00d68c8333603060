//! Other events of a recording: the application's own markers, and the task library's before .NET 11.

use super::{Address, is_false, is_zero};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The application's operations by its own events. What they are called there is never an id of the runtime.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct MarkerReport {
    /// Operations.
    pub groups: u64,
    /// Those whose markers are all in order, from the beginning to the end.
    pub ordered: u64,
    /// Those with markers on more than one thread.
    pub more_than_one_thread: u64,
    /// Events.
    pub events: u64,
    /// Events that name no operation.
    #[serde(skip_serializing_if = "is_zero")]
    pub without_key: u64,
    /// Events above the limit on what is kept.
    #[serde(skip_serializing_if = "is_zero")]
    pub dropped: u64,
    /// The first operations that are not in order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub out_of_order: Vec<MarkerGroup>,
}

/// What was asked for of markers, and what the recording has.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct MarkerCheck {
    /// The provider that was asked for.
    pub provider: String,
    /// The stages that each operation should have, when they were given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expected: Option<Vec<String>>,
    /// Whether all that was asked for is there, and every operation has the stages that it should have.
    pub as_asked: bool,
    /// The sequences that operations have, the most frequent first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sequences: Vec<MarkerSequence>,
    /// Events that were asked for and are not in the recording.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub absent_events: Vec<String>,
    /// All events of the provider by name.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub seen: BTreeMap<String, u64>,
    /// The providers that the recording has, when it has no event of the one that was asked for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub providers: Vec<String>,
}

/// A sequence of stages.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct MarkerSequence {
    /// The stages in their order, the first 32.
    pub stages: Vec<String>,
    /// How many operations have it.
    pub count: u64,
}

/// An operation whose markers are not in order.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct MarkerGroup {
    /// What the application calls it; of a text only its length, as texts may be secrets.
    pub key: String,
    /// What is wrong.
    pub why: String,
    /// Its markers in the order of time.
    pub markers: Vec<MarkerEvent>,
}

/// A marker.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct MarkerEvent {
    /// `begin`, `end` or a number.
    pub stage: String,
    /// Ticks of the recording's clock.
    pub ticks: u64,
    /// Id of the thread in the operating system.
    pub os_thread: u64,
    /// Where the event stands in the file (unpacked).
    pub event: Address,
}

/// What the task library's events say of waits.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct TplReport {
    /// Events by name.
    pub by_event: BTreeMap<String, u64>,
    /// Operations that began: calls of async methods that had to wait, `Task.Delay` and the like.
    pub operations: u64,
    /// Those that ended.
    pub ended: u64,
    /// Waits that had not ended; no proof of a wait when `unproven` says so.
    pub pending_waits: u64,
    /// Why waits that look pending may have ended: the events that say so may be among those that the file lacks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unproven: Option<String>,
    /// Operations that had neither ended nor waited for a task.
    #[serde(skip_serializing_if = "is_zero")]
    pub without_wait: u64,
    /// Events whose fields could not be read.
    #[serde(skip_serializing_if = "is_zero")]
    pub undecoded: u64,
    /// The waits put together, innermost first; those that occur most often come first.
    pub pending_chains_leaf_first: Vec<TplChain>,
    /// Chains that are in no group of the list.
    #[serde(skip_serializing_if = "is_zero")]
    pub chains_left_out: u64,
}

/// Waits of the same names.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct TplChain {
    /// How many there are.
    pub count: u64,
    /// Operations, innermost first; a task that is no operation is `task`, a blocked thread `thread` with its id.
    pub names: Vec<String>,
    /// The same with the names of methods, as far as the recording has them: `Program.Load` for `Async: <Load>d__8`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub methods: Vec<String>,
    /// Operations further out that are not in `names`.
    #[serde(skip_serializing_if = "is_zero")]
    pub names_left_out: u64,
    /// Whether they wait for each other in a circle.
    #[serde(skip_serializing_if = "is_false")]
    pub cycle: bool,
    /// `Task.Id` of the innermost tasks of the first of them.
    pub leaves: Vec<i64>,
    /// Since when the oldest waits, in UTC as RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_seen: Option<String>,
    /// For how long the oldest has waited, up to the end of the recording.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub longest_seconds: Option<f64>,
    /// For how long the youngest has.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shortest_seconds: Option<f64>,
}
