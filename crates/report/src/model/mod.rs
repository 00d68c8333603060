//! What a report says, as serde types. Field names and words are a promise: fields may be added, never re-meant.

mod address;
mod brief;
mod bundle;
mod chain;
mod claims;
mod diff;
mod finding;
mod fleet;
mod horizon;
mod join;
mod kinds;
mod markers;
mod merged;
mod objects;
mod observe;
mod process;
mod profile;
mod report;
mod root;
mod runbook;
mod runtimes;
mod services;
mod trace;
mod views;
mod waits;
mod why;

pub use address::{Address, ParseAddressError};
pub use brief::{Brief, BriefChain, BriefFinding, brief};
pub use bundle::{
    BundleExtra, BundleFile, BundleModule, BundleOptions, BundleSource, BundleTrimmed, Check,
    CheckState, Manifest, VerifyReport,
};
pub use chain::{
    ChainGroup, Completer, Details, Frame, Leaf, Local, Member, Root, Verdict, Waiting,
};
pub use claims::{Claim, ClaimsReport, Place, PlaceKind, RawField};
pub use diff::{
    DiffDump, DiffFigure, DiffFinding, DiffGroup, DiffReport, DiffState, FindingStanding,
};
pub use finding::{Evidence, Finding};
pub use fleet::{FleetProblem, FleetReport, FleetSignature};
pub use horizon::{AtHorizon, ChainStanding, TraceHorizon};
pub use join::{
    ChainHistory, FrameMatch, JoinContradiction, JoinedChain, OperationHistory, TraceJoin,
};
pub use kinds::{
    CollectionStage, CompleterKind, Confidence, DumpFormat, FindingKind, FrameKind, FrameStanding,
    LeafKind, RootKind, Severity, VerdictState,
};
pub use markers::{
    MarkerCheck, MarkerEvent, MarkerGroup, MarkerReport, MarkerSequence, TplChain, TplReport,
};
pub use merged::{MergedFrame, MergedRow, MergedStacks};
pub use objects::{ElementRow, Elements, ObjectRow, ObjectsReport};
pub use observe::{
    ObserveComparison, ObserveMode, ObserveReport, ObserveResult, ObserveTimer, ObserveValue,
    ObserveVerdict,
};
pub use process::{
    ObjectRef, OutgoingCall, Pool, QueuedKind, QueuedWork, Request, Thread, ThreadFrame,
};
pub use profile::{
    AsyncProfile, Callstacks, DispatcherCounts, NotCompleted, ProfilerClock, ProfilerContext,
    ProfilerMetadata, TraceBreach, TraceRejection,
};
pub use report::{
    Collection, Dump, Gap, Heap, LayoutFact, LeftOut, Process, Rejected, Report, Runtime,
    SCHEMA_VERSION, Timing, Tool,
};
pub use root::{GcRootKind, RootHop, RootPath, RootsReport};
pub use runbook::{RunbookList, RunbookPage};
pub use runtimes::{RuntimeTable, RuntimesReport};
pub use services::{Hop, MissingServer, RequestPath, Service, ServicesReport};
pub use trace::{
    Completeness, TraceBatch, TraceChain, TraceContainer, TraceDamage, TraceFlag, TraceFrame,
    TraceMember, TraceMethods, TraceMoment, TraceRecord, TraceRecordRef, TraceReport, TraceState,
    TraceVerdict,
};
pub use views::{Decoded, FieldRow, HeapReport, ObjectReport, TaskReport, TaskRow, TypeRow};
pub use waits::{WaitEdge, WaitGraph, WaitNode, WaitNodeKind};
pub use why::{WhyEnd, WhyKind, WhyRelation, WhyReport, WhyStep};

#[cfg(test)]
mod tests;

/// For fields that are left out of the JSON when they say nothing.
fn is_zero(n: &u64) -> bool {
    *n == 0
}

/// The same for small counts.
fn is_zero_u32(n: &u32) -> bool {
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
