//! What a report says, as serde types. Field names and words are a promise: fields may be added, never re-meant.

mod address;
mod chain;
mod finding;
mod kinds;
mod process;
mod report;
mod runtimes;
mod views;

pub use address::{Address, ParseAddressError};
pub use chain::{ChainGroup, Details, Frame, Leaf, Local, Member, Root, Verdict, Waiting};
pub use finding::{Evidence, Finding};
pub use kinds::{
    Confidence, DumpFormat, FindingKind, FrameKind, LeafKind, RootKind, Severity, VerdictState,
};
pub use process::{ObjectRef, Pool, QueuedKind, QueuedWork, Request, Thread, ThreadFrame};
pub use report::{
    Dump, Gap, Heap, LayoutFact, LeftOut, Rejected, Report, Runtime, SCHEMA_VERSION, Timing, Tool,
};
pub use runtimes::{RuntimeTable, RuntimesReport};
pub use views::{Decoded, FieldRow, HeapReport, ObjectReport, TaskReport, TaskRow, TypeRow};

#[cfg(feature = "schema")]
mod schema;
#[cfg(feature = "schema")]
pub use schema::schema;

#[cfg(test)]
mod tests;

/// For fields that are left out of the JSON when they say nothing.
fn is_zero(n: &u64) -> bool {
    *n == 0
}

/// For flags that are left out of the JSON when they are not set.
fn is_false(flag: &bool) -> bool {
    !*flag
}

/// For repetitions: once is the usual case and goes without saying.
fn is_one(n: &u64) -> bool {
    *n == 1
}
