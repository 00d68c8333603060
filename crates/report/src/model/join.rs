//! A recording and a dump of the same process, put together.

use super::{Address, ChainGroup, FrameKind, TraceMember, Waiting, is_zero};
use serde::{Deserialize, Serialize};

/// What a dump and a recording say of each other.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct TraceJoin {
    /// The dump, as the user gave it.
    pub dump: String,
    /// Why nothing was put together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
    /// Seconds from the last record to the dump, below 0 when the recording goes on after it; left out when the dump
    /// does not tell its time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seconds_after_recording: Option<f64>,
    /// What tells the time of the dump.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub clock: String,
    /// Operations that both know.
    pub joined: u64,
    /// Those of them whose frames are equal one by one.
    pub frames_equal: u64,
    /// Those whose frames are not.
    pub frames_differ: u64,
    /// Waiting operations of the dump that the profiler has numbered and the recording does not know.
    pub only_in_dump: u64,
    /// Runtime-async operations of the dump without a number: nothing was recorded of them.
    pub unnumbered: u64,
    /// Operations that wait at the end of the recording and not in the dump.
    pub only_in_recording: u64,
    /// The chains of the dump with what the recording knows of them, the largest group first.
    pub chains: Vec<JoinedChain>,
    /// Where the two do not agree, capped.
    pub contradictions: Vec<JoinContradiction>,
    /// How many more there are.
    #[serde(skip_serializing_if = "is_zero")]
    pub contradictions_left_out: u64,
}

/// Equal chains of the dump with their history.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct JoinedChain {
    /// The group as the report of the dump has it.
    pub group: ChainGroup,
    /// How many of its chains the recording knows.
    pub joined: u64,
    /// For how long the innermost operations of these have waited at the moment of the dump; when the dump does not tell
    /// its time, at the last record.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waiting_seconds: Option<Waiting>,
    /// The chains one by one, those that wait longest first, capped.
    pub histories: Vec<ChainHistory>,
    /// How many of `joined` are not in `histories`.
    #[serde(skip_serializing_if = "is_zero")]
    pub histories_left_out: u64,
}

/// One chain in the recording.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct ChainHistory {
    /// Its operations that the recording knows, innermost first.
    pub operations: Vec<OperationHistory>,
}

/// One operation in the recording.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct OperationHistory {
    /// The form of its methods.
    pub kind: FrameKind,
    /// The task or box in the dump that holds the number.
    pub object: Address,
    /// What it does at the end of the recording.
    pub state: String,
    /// What was recorded of it.
    #[serde(flatten)]
    pub recorded: TraceMember,
    /// For how long it has waited, as `waiting_seconds` of the group.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waiting_seconds: Option<f64>,
    /// Its frames in the recording against those of the dump.
    pub frames: FrameMatch,
}

super::kinds::words! {
    /// Frames of a recording against those of a dump.
    #[derive(Default)]
    FrameMatch {
        /// The same code addresses in the same order.
        Equal = "equal",
        /// Not the same.
        Differ = "differ",
        /// The recording has none for this state.
        #[default]
        NotRecorded = "not recorded",
        /// The two cannot be compared: the operation runs in the recording, or the dump does not tell the addresses.
        NotCompared = "not compared",
    }
}

/// A place where recording and dump do not agree.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct JoinContradiction {
    /// The dispatcher.
    pub dispatcher: u64,
    /// The task or box in the dump.
    pub object: Address,
    /// What does not agree, and what may explain it.
    pub text: String,
}
