//! The async profiler's records in figures.

use super::{Address, AtHorizon, TraceRecordRef, is_zero};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The async profiler's records in figures.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct AsyncProfile {
    /// Events of the provider; each holds one batch of records.
    pub outer_events: u64,
    /// Batches that were believed.
    pub batches: u64,
    /// Batches that were not.
    pub rejected: u64,
    /// The first of those.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub rejections: Vec<TraceRejection>,
    /// Records.
    pub records: u64,
    /// Records by the runtime's name of their kind.
    pub by_kind: BTreeMap<String, u64>,
    /// The metadata records.
    pub metadata: Vec<ProfilerMetadata>,
    /// The clock records.
    pub sync_clocks: Vec<ProfilerClock>,
    /// When the first record was written, in UTC as RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_record: Option<String>,
    /// When the last record was written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_record: Option<String>,
    /// Seconds between them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seconds: Option<f64>,
    /// The profiler's thread contexts by their numbers.
    pub contexts: BTreeMap<u32, ProfilerContext>,
    /// Call stack records.
    pub callstacks: Callstacks,
    /// Frames of all call stack records by how their addresses resolve; only counts above 0.
    pub frames: BTreeMap<String, u64>,
    /// Batches of an earlier session.
    pub leftover_batches: u64,
    /// Their records.
    pub leftover_records: u64,
    /// Stretches in which a chain ran, by family and how they ended: `RA suspended`.
    pub activations: BTreeMap<String, u64>,
    /// Dispatchers by the number of parents above them; the last is that deep or deeper.
    pub fork_depths: BTreeMap<u32, u64>,
    /// By family: `RA` runtime-async, `SM` state machines.
    pub dispatchers: BTreeMap<String, DispatcherCounts>,
    /// Chains that had not ended, as they were last seen, by the names of their frames; `chains` has the rest. Those whose
    /// last records were not handed over are among them: see `at_horizon`.
    pub not_completed_chains: Vec<NotCompleted>,
    /// What is proved of them.
    pub at_horizon: AtHorizon,
    /// How often a rule of whole recordings held.
    pub identities_ok: u64,
    /// How often each did not.
    pub identities_failed: BTreeMap<String, u64>,
    /// The first records that break each rule.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub breaches: Vec<TraceBreach>,
    /// Records that mean a running chain where there is none.
    #[serde(skip_serializing_if = "is_zero")]
    pub orphans: u64,
    /// Batches that begin before the one before them in their context ends.
    #[serde(skip_serializing_if = "is_zero")]
    pub overlapping_batches: u64,
}

/// A batch that gave no records.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct TraceRejection {
    /// Where the batch begins in the file (unpacked).
    pub batch: Address,
    /// Where the reading stopped.
    pub at: Address,
    /// Index of the record there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub record: Option<u32>,
    /// What is wrong.
    pub reason: String,
}

/// A metadata record of the profiler.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct ProfilerMetadata {
    /// Ticks in a second.
    pub frequency: u64,
    /// An instant in ticks.
    pub qpc_sync: u64,
    /// The same in steps of 100 ns since 1601.
    pub utc_sync: u64,
    /// Bytes of each thread's buffer.
    pub buffer_size: u32,
    /// Frames between two wrapper resets.
    pub wrappers: u8,
    /// Record kinds of the process.
    pub entries: u8,
}

/// A clock record of the profiler.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct ProfilerClock {
    /// An instant in ticks.
    pub qpc: u64,
    /// The same in steps of 100 ns since 1601.
    pub utc: u64,
}

/// A thread context of the profiler.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct ProfilerContext {
    /// Id of the thread in the operating system.
    pub os_thread: u64,
    /// Its batches.
    pub batches: u64,
    /// Their records.
    pub records: u64,
}

/// Call stack records in figures.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Callstacks {
    /// All.
    pub total: u64,
    /// Those with frames.
    pub nonempty: u64,
    /// Frames of the largest.
    pub max_frames: u64,
}

/// Dispatchers of a family in figures.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct DispatcherCounts {
    /// All that a record names.
    pub total: u64,
    /// Those with a create record.
    pub created: u64,
    /// By what they did last.
    pub states: BTreeMap<String, u64>,
    /// Those that ran on more than one thread.
    pub more_than_one_thread: u64,
}

/// Chains that had not ended, by names.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct NotCompleted {
    /// `RA` or `SM`.
    pub family: String,
    /// As in `chains`.
    pub state: String,
    /// How many there are.
    pub count: u64,
    /// Names in the file, innermost first; addresses where it has none.
    pub frames: Option<Vec<String>>,
}

/// A record that breaks a rule of whole recordings.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct TraceBreach {
    /// The rule, as in `identities_failed`.
    pub identity: String,
    /// Its group: `I1` to `I10`.
    pub id: String,
    /// The dispatcher; left out where the rule is not of one.
    #[serde(skip_serializing_if = "is_zero")]
    pub dispatcher: u64,
    /// The record at which it was noticed; none for a sum over the file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub record: Option<TraceRecordRef>,
}
