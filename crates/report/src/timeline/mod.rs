//! The time line of a trace: one page for a browser, with nothing to fetch.
//!
//! Above, a row for each thread with the activations that ran on it; below, a row for each operation with the times
//! at which it ran, and a line for as long as it lived. Waits are what lies between. Activations that have no room one by
//! one are added up in [`TimelineThread::busy`], so that no thread looks idle that was not.

mod encode;
mod page;

pub use page::timeline_html;

/// What the page shows. Times are nanoseconds since the beginning of the recording.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Timeline {
    /// The trace's file name.
    pub file: String,
    /// What the recording is worth, in words.
    pub verdict: String,
    /// When the recording ends.
    pub end: u64,
    /// Up to when it is proved that nothing is missing.
    pub horizon: Option<u64>,
    /// Up to when nothing is likely to be missing.
    pub likely_horizon: Option<u64>,
    /// Between when events are missing.
    pub lost: Vec<(u64, u64)>,
    /// The threads, in the order in which the recording met them.
    pub threads: Vec<TimelineThread>,
    /// Names of methods.
    pub names: Vec<String>,
    /// Call stacks, innermost first, as places in the names.
    pub stacks: Vec<Vec<u32>>,
    /// The operations, those that have not ended first.
    pub operations: Vec<TimelineOperation>,
    /// Activations one by one: all of them, or the longest.
    pub spans: Vec<TimelineSpan>,
    /// Activations that are only added up.
    pub added_up: u64,
    /// Activations that are only added up are shorter than this.
    pub shortest: u64,
    /// Markers of the application.
    pub markers: Vec<TimelineMarker>,
    /// Markers that are not among those.
    pub markers_left_out: u64,
    /// Operations that are not among those listed.
    pub operations_left_out: u64,
}

/// A thread.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TimelineThread {
    /// Its number in the operating system.
    pub os_thread: u64,
    /// How much of each of so many equal parts of the recording it was busy by activations that are only added up, up to
    /// 255 for all of it.
    pub busy: Vec<u8>,
}

/// A dispatcher: an operation, or in the classic family one suspension of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TimelineOperation {
    /// Its number, as the report has it.
    pub id: u64,
    /// Whether it is one of state machines.
    pub state_machine: bool,
    /// Its frames as they were last recorded: place among the stacks.
    pub stack: Option<u32>,
    /// How it was last seen.
    pub state: TimelineState,
    /// How sure that is, when it did not end.
    pub standing: crate::ChainStanding,
    /// When it was created, or where that is not known, first seen to run.
    pub from: u64,
    /// Whether `from` is its creation.
    pub is_created: bool,
    /// When it ended; `None` when it did not.
    pub ended: Option<u64>,
    /// Place of the operation that created it.
    pub parent: Option<u32>,
    /// How often it ran.
    pub activations: u64,
    /// For how long, in nanoseconds.
    pub busy: u64,
}

/// How an operation or an activation was last seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TimelineState {
    /// Never resumed.
    SuspendedAtCreate,
    /// It suspended.
    #[default]
    Suspended,
    /// It runs.
    Running,
    /// It ran to its end.
    Completed,
    /// It ended with an exception.
    Faulted,
    /// Not known.
    Unknown,
}

impl TimelineState {
    /// All, in the order of their numbers in the page.
    const ALL: [Self; 6] = [
        Self::SuspendedAtCreate,
        Self::Suspended,
        Self::Running,
        Self::Completed,
        Self::Faulted,
        Self::Unknown,
    ];

    /// In the report's words.
    const fn text(self) -> &'static str {
        match self {
            Self::SuspendedAtCreate => "suspended at create",
            Self::Suspended => "suspended",
            Self::Running => "running",
            Self::Completed => "completed",
            Self::Faulted => "faulted",
            Self::Unknown => "unknown",
        }
    }
}

/// One activation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TimelineSpan {
    /// Place of the thread.
    pub thread: u32,
    /// Place of the operation; `None` when that one is left out.
    pub operation: Option<u32>,
    /// When it was resumed.
    pub from: u64,
    /// When it suspended or ended; `None` when the recording does not say.
    pub to: Option<u64>,
    /// How it ended.
    pub outcome: TimelineState,
    /// Where the batch of its first record begins in the file.
    pub batch: u64,
    /// Index of that record.
    pub index: u32,
}

/// A marker of the application.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TimelineMarker {
    /// When.
    pub at: u64,
    /// Place of its thread; `None` when nothing else was recorded of that.
    pub thread: Option<u32>,
    /// Operation and stage.
    pub text: String,
}
