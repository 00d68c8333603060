//! What a recording of the async profiler says. The keys are those of the contract; chains use the words of dumps.

use super::{
    Address, AsyncProfile, ChainStanding, FrameKind, MarkerCheck, MarkerReport, SCHEMA_VERSION,
    Tool, TplReport, TraceHorizon, TraceJoin, Waiting, is_zero,
};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What one `.nettrace` file says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TraceReport {
    /// [`SCHEMA_VERSION`] of the writer.
    pub schema_version: String,
    /// Who wrote it.
    #[serde(default)]
    pub tool: Tool,
    /// The file, as the user gave it.
    #[serde(default)]
    pub file: String,
    /// Hash of the file as it is on the disk.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
    /// Size of the recording, after unpacking.
    #[serde(default)]
    pub bytes: u64,
    /// The level of the recording.
    #[serde(default)]
    pub verdict: TraceVerdict,
    /// What limits it; `completeness` explains each.
    #[serde(default)]
    pub flags: Vec<String>,
    /// How far the recording can be relied on, and what would make the next one better.
    #[serde(default)]
    pub completeness: Completeness,
    /// Chains that had not ended when the recording did: those whose state is proved, then those where it is likely, then
    /// those where it is unknown; the largest group first.
    #[serde(default)]
    pub chains: Vec<TraceChain>,
    /// The file as a container of events.
    #[serde(default)]
    pub container: TraceContainer,
    /// Events by the name of their provider.
    #[serde(default)]
    pub events_by_provider: BTreeMap<String, u64>,
    /// What the file knows of methods.
    #[serde(default)]
    pub methods: TraceMethods,
    /// The async profiler's records; `null` when the file has no event of it.
    #[serde(default, rename = "async")]
    pub async_profile: Option<AsyncProfile>,
    /// What the task library's events say of waits, before .NET 11; left out when the file has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tpl: Option<TplReport>,
    /// The application's operations, when markers were asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub markers: Option<MarkerReport>,
    /// What was asked for of them, and what the recording has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub marker_check: Option<MarkerCheck>,
    /// A dump of the process, put together with the recording, when one was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub join: Option<TraceJoin>,
    /// What a recording of this kind never shows.
    #[serde(default)]
    pub does_not_show: Vec<String>,
}

impl Default for TraceReport {
    fn default() -> Self {
        Self {
            schema_version: SCHEMA_VERSION.to_owned(),
            tool: Tool::default(),
            file: String::new(),
            sha256: None,
            bytes: 0,
            verdict: TraceVerdict::default(),
            flags: Vec::new(),
            completeness: Completeness::default(),
            chains: Vec::new(),
            container: TraceContainer::default(),
            events_by_provider: BTreeMap::new(),
            methods: TraceMethods::default(),
            async_profile: None,
            tpl: None,
            markers: None,
            marker_check: None,
            join: None,
            does_not_show: Vec::new(),
        }
    }
}

super::kinds::words! {
    /// How much a recording can be relied on. There is no word for complete.
    #[derive(Default)]
    TraceVerdict {
        /// No event of the async profiler.
        #[default]
        Empty = "EMPTY",
        /// Its events hold nothing about chains.
        MetadataOnly = "METADATA-ONLY",
        /// Something is missing, or cannot be read.
        Partial = "PARTIAL",
        /// Nothing is known to be missing up to the horizon.
        Bounded = "BOUNDED",
    }
}

super::kinds::words! {
    /// What a chain did last, as far as a recording shows.
    #[derive(Default)]
    TraceState {
        /// It was created and never resumed.
        SuspendedAtCreate = "suspended at create",
        /// It waited.
        Suspended = "suspended",
        /// It ran.
        Running = "running",
        /// It ended.
        Completed = "completed",
        /// It ended with an exception.
        Faulted = "faulted",
        /// The records of its thread were reset.
        #[default]
        Unknown = "unknown (reset)",
    }
}

impl TraceState {
    /// Whether it waited.
    #[must_use]
    pub fn is_suspended(self) -> bool {
        matches!(self, Self::SuspendedAtCreate | Self::Suspended)
    }
}

/// How far a recording can be relied on.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Completeness {
    /// What the verdict means here.
    pub text: String,
    /// What makes the next recording say more, when that is known from the verdict alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remedy: Option<String>,
    /// The flags one by one.
    pub flags: Vec<TraceFlag>,
    /// Up to when it is proved that nothing is missing; left out when nothing proves it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub horizon: Option<TraceHorizon>,
    /// Up to when nothing is likely to be missing, when that is later.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub likely_horizon: Option<TraceHorizon>,
    /// Whether the process ran before the recording began: chains that have waited since then are in no recording. Left
    /// out when the recording does not show it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attached: Option<bool>,
}

/// Something that limits what may be concluded.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct TraceFlag {
    /// Its word, as in `flags`.
    pub id: String,
    /// How often it was met.
    pub count: u64,
    /// What it means.
    pub text: String,
    /// What makes the next recording better.
    pub remedy: String,
}

/// Chains with the same frames in the same state.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct TraceChain {
    /// Name of the group within this report, `t1` for the first.
    pub id: String,
    /// How many chains there are.
    pub count: u64,
    /// The form of their methods.
    pub kind: FrameKind,
    /// How it was seen last: `suspended at create` (never resumed), `suspended`, `running`, `unknown (reset)`.
    pub state: TraceState,
    /// How sure it is that this is its state.
    pub standing: ChainStanding,
    /// Since when the oldest has been in that state, in UTC as RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_seen: Option<String>,
    /// For how long they have been in that state: up to the horizon where it is proved, else up to the end of the
    /// recording, its last event.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waiting_seconds: Option<Waiting>,
    /// The frames, innermost first; `null` when the recording has none for this state.
    pub frames: Option<Vec<TraceFrame>>,
    /// Why there are no frames.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub no_frames: Option<String>,
    /// The chains one by one, the oldest first, capped.
    pub members: Vec<TraceMember>,
    /// How many of `count` are not in `members`.
    #[serde(skip_serializing_if = "is_zero")]
    pub members_left_out: u64,
}

/// A frame of a recorded chain.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct TraceFrame {
    /// The method as a C# programmer would write it; the address when the file does not name it.
    pub method: String,
    /// The name in the file, with what compilers put into it; the address when the file does not name it.
    pub raw: String,
    /// The recorded address: where the method goes on (runtime-async) or begins (state machines); 0 is an awaited task or
    /// `ValueTask` source without a frame of its own.
    pub address: Address,
    /// Number of the await, from 0 (state machines only).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub await_index: Option<u32>,
    /// All names, when the file gives the address several.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub candidates: Vec<String>,
    /// Whether the name is that of the joined dump, because the file has none.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub from_dump: bool,
    /// Whether the method is code of .NET rather than of the program or of its libraries.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_framework: bool,
    /// Why there is no name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unresolved: Option<String>,
    /// `ended` before the recording did, `running`; waiting frames have none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub progress: Option<String>,
}

/// One chain of a group.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct TraceMember {
    /// Id of the dispatcher: `Task.Id` for runtime-async. Never an id of the application.
    pub dispatcher: u64,
    /// The dispatcher that ran on the creating thread; left out for none.
    #[serde(skip_serializing_if = "is_zero")]
    pub parent: u64,
    /// How often it was resumed.
    pub resumes: u64,
    /// Its create record.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub created: Option<TraceMoment>,
    /// Its last resume.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resumed: Option<TraceMoment>,
    /// Its last suspension.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub suspended: Option<TraceMoment>,
}

/// When and where something was recorded.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct TraceMoment {
    /// Ticks of the recording's clock.
    pub ticks: u64,
    /// In UTC as RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time: Option<String>,
    /// Id of the thread in the operating system.
    pub os_thread: u64,
    /// The record that says so.
    pub record: TraceRecordRef,
}

/// A record, as `--records` lists it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct TraceRecordRef {
    /// Where the batch begins in the file (unpacked): the payload of its event.
    pub batch: Address,
    /// Index in the batch, from 0.
    pub index: u32,
}

/// The file as a container of events.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct TraceContainer {
    /// Version of the format and the oldest reader: `4/4`; `6.0` and the like.
    pub trace_version: String,
    /// When the session began, in UTC as RFC 3339.
    pub start: String,
    /// When the last event was written, in UTC as RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end: Option<String>,
    /// Seconds between them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seconds: Option<f64>,
    /// Ticks in a second.
    pub frequency: u64,
    /// Bytes of a pointer in the process.
    pub pointer_size: u8,
    /// Number of the process.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    /// Processors of the machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub processors: Option<u32>,
    /// Blocks by their kind.
    pub blocks: BTreeMap<String, u64>,
    /// Whether the file ends with the mark of its end.
    pub end_tag: bool,
    /// Events that the process dropped, by their sequence numbers.
    pub lost_events: u64,
    /// Events.
    pub events: u64,
    /// Kinds of events that are declared.
    pub metadata: u64,
    /// Parts that make no sense and were skipped: where, how many bytes, why.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub damages: Vec<TraceDamage>,
    /// Where the file ends, when it is cut.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cut: Option<String>,
}

/// A part of the file that was skipped.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct TraceDamage {
    /// Where it begins in the file (unpacked).
    pub offset: Address,
    /// Its size.
    pub bytes: u64,
    /// What is wrong.
    pub what: String,
}

/// What the file knows of methods.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct TraceMethods {
    /// Events that name a method.
    pub events: u64,
    /// Ranges of code that are not the same.
    pub distinct_ranges: u64,
    /// Events of methods that were compiled during the session.
    pub live: u64,
    /// Events of the rundown at its end.
    pub rundown: u64,
    /// File names of the modules.
    pub modules: Vec<String>,
}

/// A record as it stands in the file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct TraceRecord {
    /// Where its batch begins in the file (unpacked): the payload of the event.
    pub batch: Address,
    /// Index in the batch, from 0.
    pub index: u32,
    /// Where it begins in the file.
    pub offset: Address,
    /// The profiler's number of the thread.
    pub context: u32,
    /// Id of the thread in the operating system.
    pub os_thread: u64,
    /// When it was written, in ticks.
    pub ticks: u64,
    /// The runtime's name of its kind.
    pub kind: String,
    /// The dispatcher that it names.
    #[serde(skip_serializing_if = "is_zero")]
    pub dispatcher: u64,
    /// The dispatcher that ran on the creating thread.
    #[serde(skip_serializing_if = "is_zero")]
    pub parent: u64,
    /// Frames that an exception left.
    #[serde(skip_serializing_if = "super::is_zero_u32")]
    pub unwound: u32,
    /// Addresses of its call stack, innermost first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub frames: Option<Vec<Address>>,
    /// Awaits of the frames (state machines).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub states: Vec<i32>,
    /// Why the batch is not believed; the row stands for all of it then.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rejected: Option<String>,
}

/// A batch of records as it stands in the file: what its hash is of.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct TraceBatch {
    /// Where it begins in the file (unpacked): the payload of the event.
    pub batch: Address,
    /// Its bytes.
    pub bytes: u64,
    /// Hash of these bytes.
    pub sha256: String,
    /// The profiler's number of the thread.
    pub context: u32,
    /// Id of the thread in the operating system.
    pub os_thread: u64,
    /// Its records.
    pub records: u32,
    /// Ticks that its first record counts from.
    pub start: u64,
    /// Ticks of its last record.
    pub end: u64,
    /// Why it is not believed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rejected: Option<String>,
}
