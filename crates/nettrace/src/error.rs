//! Why a file is not read at all.

/// Why a file cannot be read. The message says what it is; [`Error::remedy`] says what to do.
///
/// Damage behind the header is no error: it is skipped and told in the [`Summary`](crate::Summary).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The first bytes are not those of a trace.
    #[error("this is not a .nettrace file")]
    NotNettrace,
    /// A trace of .NET Core 2.x, the format before .nettrace.
    #[error("this is a .netperf file of .NET Core 2.x, not a .nettrace file")]
    NetPerf,
    /// The file ends inside its header.
    #[error("the file ends inside the header of the trace, after {bytes} bytes")]
    CutHeader {
        /// Bytes that are there.
        bytes: u64,
    },
    /// A version of the format that this crate does not know.
    #[error("this is a .nettrace file of version {major}.{minor}; versions 4, 5 and 6 are known")]
    UnknownVersion {
        /// The version that breaks readers.
        major: u32,
        /// The version that adds.
        minor: u32,
    },
    /// The object that describes the trace makes no sense.
    #[error("the description of the trace at offset {offset} is damaged: {what}")]
    BadHeader {
        /// Where in the file it stands.
        offset: u64,
        /// What is wrong with it.
        what: &'static str,
    },
}

impl Error {
    /// What to do about it.
    pub fn remedy(&self) -> &'static str {
        match self {
            Self::NotNettrace => {
                "record with `asynctriage collect`; a memory dump is read by `asynctriage FILE`, without `trace`"
            }
            Self::NetPerf => "open it with PerfView, or take a trace of .NET Core 3.0 or later",
            Self::CutHeader { .. } | Self::BadHeader { .. } => {
                "copy the file again or take another trace"
            }
            Self::UnknownVersion { .. } => {
                "take the trace with `dotnet-trace collect` (it writes version 4) or use a newer version of this program"
            }
        }
    }
}
