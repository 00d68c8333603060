//! What was read, and what was not.

use std::collections::BTreeMap;

use crate::blocks::Truncation;
use crate::damage::Damages;
use crate::loss::Lost;

/// How a trace ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum End {
    /// Not all blocks were read yet.
    #[default]
    NotReached,
    /// By the mark of the end: the session was stopped.
    Tag,
    /// Without it: the writer was killed, or the file was cut. All whole blocks were read.
    Cut(Truncation),
}

/// What was read of a trace so far, and what was not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Whole blocks by the name of their kind, the description of the trace among them.
    pub blocks: BTreeMap<&'static str, u64>,
    /// Events.
    pub events: u64,
    /// The same by provider.
    pub events_by_provider: BTreeMap<String, u64>,
    /// Kinds of events that were declared.
    pub metadata: u64,
    /// Sequence points: up to each, stacks are numbered anew.
    pub sequence_points: u64,
    /// How it ends.
    pub end: End,
    /// Events that the process emitted and the file does not have.
    pub lost: Lost,
    /// The first places where events are missing, as ticks between which they were written; 0 is the beginning.
    pub lost_between: Vec<(u64, u64)>,
    /// What was skipped because it makes no sense.
    pub damages: Damages,
    /// Events that were skipped because the file does not say what they are.
    pub without_metadata: u64,
    /// Events that were skipped because the file does not say which thread they are of; version 6 only.
    pub without_thread: u64,
}

impl Summary {
    /// Whether the mark of the end was read.
    pub fn end_tag(&self) -> bool {
        self.end == End::Tag
    }

    /// Where the file ends before the trace does.
    pub fn truncation(&self) -> Option<Truncation> {
        match self.end {
            End::Cut(truncation) => Some(truncation),
            End::Tag | End::NotReached => None,
        }
    }
}
