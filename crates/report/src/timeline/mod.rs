//! The time line of a trace: one page for a browser, with nothing to fetch.
//!
//! Above, a row for each thread with the activations that ran on it; below, a row for each operation with the times
//! at which it ran, and a line for as long as it lived. Waits are what lies between.

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
    /// The operating system's numbers of the threads, in the order in which the recording met them.
    pub threads: Vec<u64>,
    /// The operations, those that have not ended first.
    pub operations: Vec<TimelineOperation>,
    /// When who ran where, in the order of their beginnings.
    pub spans: Vec<TimelineSpan>,
    /// Activations that are not among the spans.
    pub spans_left_out: u64,
    /// Operations that are not among those listed.
    pub operations_left_out: u64,
}

/// A dispatcher: an operation, or in the classic family one suspension of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TimelineOperation {
    /// Family and number, as the report has them.
    pub name: String,
    /// Its frames at the end, innermost first.
    pub frames: Vec<String>,
    /// Its state at the end, in the report's words.
    pub state: String,
    /// Whether it still waits or runs at the end.
    pub open: bool,
    /// When it was created, or where that is not known, first seen to run.
    pub from: u64,
    /// Whether `from` is its creation.
    pub is_created: bool,
    /// When it ended; `None` when it did not.
    pub ended: Option<u64>,
}

/// One activation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TimelineSpan {
    /// Index among the threads.
    pub thread: usize,
    /// Index among the operations; `None` when that one is left out.
    pub operation: Option<usize>,
    /// When it was resumed.
    pub from: u64,
    /// When it suspended or ended; `None` when the recording does not say.
    pub to: Option<u64>,
    /// How it ended, in the report's words.
    pub outcome: String,
    /// The records that say so.
    pub evidence: String,
}
