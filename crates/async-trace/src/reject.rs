//! Why a batch is not believed.

use crate::Kind;
use thiserror::Error;

/// What is wrong with a batch. Such a batch gives no records at all: a reader that lost its place makes up the rest.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Rejection {
    /// The event's own length field does not fit its payload.
    #[error("the event holds {actual} bytes and says {stated}")]
    OuterLength {
        /// The length field.
        stated: i32,
        /// Bytes after it.
        actual: usize,
    },
    /// Less than a batch header.
    #[error("{actual} bytes are no batch header")]
    Short {
        /// Bytes there are.
        actual: usize,
    },
    /// A batch version that this program does not know.
    #[error("batch version {0} is not supported, only version 1 (.NET 11.0) is")]
    Version(u8),
    /// The header states another size than the event.
    #[error("the batch header says {stated} bytes, the event {actual}")]
    Size {
        /// Size in the header.
        stated: u32,
        /// Bytes there are.
        actual: usize,
    },
    /// A form that only previews of .NET 11 wrote.
    #[error(
        "the batch has the form of a preview of .NET 11 (metadata record 13), which is not supported"
    )]
    Preview,
    /// A record id that neither .NET 11.0.0 nor the process's own table has.
    #[error("record id {0} is not in the table of the process")]
    UnknownRecord(u8),
    /// A payload of a version that this program does not know.
    #[error("schema version {version} of {kind} is not supported, only version 1 (.NET 11.0) is")]
    SchemaVersion {
        /// The record.
        kind: Kind,
        /// Its version in the table of the process.
        version: u8,
    },
    /// The table of the process gives a record another length prefix than its version has.
    #[error("the process states a length prefix of {prefix} bytes for record {id}")]
    Prefix {
        /// The record id.
        id: u8,
        /// The stated size.
        prefix: u8,
    },
    /// The batch ends inside a record.
    #[error("the batch ends inside a record")]
    RecordCut,
    /// The payload of a record has another form or length than its kind has.
    #[error("the payload of {0} is not what its version has")]
    Payload(Kind),
    /// Another number of records than the header states.
    #[error("{actual} records, the batch header says {stated}")]
    RecordCount {
        /// Count in the header.
        stated: u32,
        /// Records there are.
        actual: u32,
    },
    /// The times of the records do not add up to the end that the header states.
    #[error("the records end at tick {actual}, the batch header says {stated}")]
    EndTime {
        /// End in the header.
        stated: u64,
        /// Start and all differences.
        actual: u64,
    },
}

/// A batch that gave no records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rejected {
    /// Where the payload of its event begins in the file.
    pub offset: u64,
    /// Where in the file the reading stopped.
    pub at: u64,
    /// Index of the record that stopped it; none for the batch as a whole.
    pub record: Option<u32>,
    /// What is wrong.
    pub reason: Rejection,
}
