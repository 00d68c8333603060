//! Why a process could not be talked to, and what to do about it.

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

/// Why a process could not be talked to. The message says what is wrong; [`Error::remedy`] says what to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// This system has no Unix domain sockets.
    #[error("diagnostic sockets are not supported on this system")]
    NotSupported,
    /// No process with this number.
    #[error("there is no process {0}")]
    NoProcess(u32),
    /// The process belongs to somebody else, whose sockets cannot be used.
    #[error("process {pid} belongs to another user (number {owner})")]
    OtherUser {
        /// The process.
        pid: u32,
        /// Its user.
        owner: u32,
    },
    /// The process lives and has no diagnostic socket.
    #[error("process {pid} has no diagnostic socket in {}", listed(folders))]
    NoSocket {
        /// The process.
        pid: u32,
        /// Where it was looked for.
        folders: Vec<PathBuf>,
    },
    /// The socket is there and does not take a connection.
    #[error("cannot connect to {}: {source}", path.display())]
    Connect {
        /// The socket.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The socket for processes that are started cannot be made.
    #[error("cannot listen on {}: {source}", path.display())]
    Listen {
        /// The socket.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The connection broke.
    #[error("the connection broke while {doing}: {source}")]
    Io {
        /// What was being done.
        doing: &'static str,
        /// What the system said.
        source: io::Error,
    },
    /// No answer within the limit.
    #[error("no answer within {} s while {doing}", limit.as_secs())]
    Timeout {
        /// What was being done.
        doing: &'static str,
        /// How long it was waited.
        limit: Duration,
    },
    /// The answer is not one of this protocol.
    #[error("the answer is not one of the diagnostic protocol: {0}")]
    Protocol(String),
    /// The runtime said no.
    #[error("the runtime refused {command}: {code}")]
    Refused {
        /// The command.
        command: &'static str,
        /// Why.
        code: ErrorCode,
    },
    /// The runtime's createdump did not write the dump: the HRESULT.
    #[error("the runtime could not write the dump: error 0x{0:08x}")]
    DumpFailed(u32),
    /// Another process answers on the socket of the one that was asked for.
    #[error("the socket of process {asked} is answered by process {answered}")]
    WrongProcess {
        /// The process that was asked for.
        asked: u32,
        /// The number that the answer holds.
        answered: u64,
    },
    /// A text in a command is longer than a message can hold.
    #[error("the command is longer than the {0} bytes of a message")]
    TooLong(usize),
}

impl Error {
    /// What the user can do next: one sentence without a full stop.
    #[must_use]
    pub fn remedy(&self) -> String {
        match self {
            Self::NotSupported => {
                "record with `dotnet-trace collect` there, and read the file here".into()
            }
            Self::NoProcess(_) | Self::WrongProcess { .. } => {
                "check the number with `ps`".into()
            }
            Self::OtherUser { .. } => "run as that user, or as root".into(),
            Self::NoSocket { .. } => {
                "only .NET 5 and later have one; set TMPDIR as that process has it, and see that it was not started \
                 with DOTNET_EnableDiagnostics=0"
                    .into()
            }
            Self::Connect { source, .. } if source.kind() == io::ErrorKind::PermissionDenied => {
                "run as the user of that process, or as root".into()
            }
            Self::Connect { source, .. } if source.kind() == io::ErrorKind::ConnectionRefused => {
                "the socket was left behind by a process that has ended; check the number of the process".into()
            }
            Self::Connect { .. } | Self::Io { .. } => "see whether the process still runs".into(),
            Self::Listen { .. } => {
                "set TMPDIR to a folder with a short path that you may write to".into()
            }
            Self::Timeout { .. } => {
                "see whether the process is stopped, by a debugger for example; a hung one still answers".into()
            }
            Self::Protocol(_) => "see whether the process is a .NET process".into(),
            Self::DumpFailed(_) => {
                "see that the user of the process may write to that folder, that createdump lies beside its runtime, and that \
                 ptrace is allowed (in a container: the capability SYS_PTRACE, or the same user and no seccomp profile against it)"
                    .into()
            }
            Self::Refused { code, .. } => code.remedy().into(),
            Self::TooLong(_) => "name fewer providers".into(),
        }
    }

    /// A failed read or write as an error: a limit that has passed is told apart.
    pub(crate) fn from_io(doing: &'static str, limit: Duration, source: io::Error) -> Self {
        match source.kind() {
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => Self::Timeout { doing, limit },
            _ => Self::Io { doing, source },
        }
    }

    /// Whether the runtime does not know the command, so that an older form of it may be tried.
    pub(crate) fn is_unknown_command(&self) -> bool {
        matches!(
            self,
            Self::Refused {
                code: ErrorCode::UnknownCommand,
                ..
            }
        )
    }
}

fn listed(folders: &[PathBuf]) -> String {
    let names: Vec<String> = folders.iter().map(|f| f.display().to_string()).collect();
    names.join(", ")
}

/// Why a runtime refuses a command: the HRESULT of its answer by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorCode {
    /// 0x80131384: the payload cannot be read.
    BadEncoding,
    /// 0x80131385: not a command of this runtime; newer commands are refused so by older runtimes.
    UnknownCommand,
    /// 0x80131386: not a message of this protocol.
    UnknownMagic,
    /// 0x80131387 and others that the runtime has no name for.
    Unknown(u32),
    /// 0x80131515: not on this system or in this flavour of the runtime.
    NotSupported,
    /// 0x8013135b: the runtime is not far enough in its start.
    NotYetAvailable,
    /// 0x80131371: the runtime has not started.
    NotInitialised,
    /// 0x80070057: an argument is wrong.
    BadArgument,
}

impl ErrorCode {
    pub(crate) fn new(code: u32) -> Self {
        match code {
            0x8013_1384 => Self::BadEncoding,
            0x8013_1385 => Self::UnknownCommand,
            0x8013_1386 => Self::UnknownMagic,
            0x8013_1515 => Self::NotSupported,
            0x8013_135b => Self::NotYetAvailable,
            0x8013_1371 => Self::NotInitialised,
            0x8007_0057 => Self::BadArgument,
            other => Self::Unknown(other),
        }
    }

    fn remedy(self) -> &'static str {
        match self {
            Self::UnknownCommand => "the runtime is too old for this; .NET 8 to 11 know it",
            Self::NotSupported => "this runtime was built without event recording",
            Self::NotYetAvailable | Self::NotInitialised => "try again in a moment",
            Self::BadArgument => "check the names and the keywords of the providers",
            Self::BadEncoding | Self::UnknownMagic | Self::Unknown(_) => {
                "report this as an error of asynctriage, with the version of the runtime"
            }
        }
    }
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BadEncoding => f.write_str("it cannot read the command (0x80131384)"),
            Self::UnknownCommand => f.write_str("it does not know the command (0x80131385)"),
            Self::UnknownMagic => f.write_str("it does not know the protocol (0x80131386)"),
            Self::NotSupported => f.write_str("not supported (0x80131515)"),
            Self::NotYetAvailable => f.write_str("not yet available (0x8013135b)"),
            Self::NotInitialised => f.write_str("not initialised yet (0x80131371)"),
            Self::BadArgument => f.write_str("an argument is wrong (0x80070057)"),
            Self::Unknown(code) => write!(f, "error 0x{code:08x}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_have_names() {
        assert_eq!(ErrorCode::new(0x8013_1385), ErrorCode::UnknownCommand);
        assert_eq!(ErrorCode::new(0x8000_4005).to_string(), "error 0x80004005");
        let error = Error::Refused {
            command: "CollectTracing4",
            code: ErrorCode::new(0x8013_1515),
        };
        assert_eq!(
            error.to_string(),
            "the runtime refused CollectTracing4: not supported (0x80131515)"
        );
        assert!(!error.is_unknown_command());
    }

    #[test]
    fn a_missing_socket_says_where_it_was_looked_for() {
        let folders = vec!["/tmp".into(), "/var/tmp".into()];
        let error = Error::NoSocket { pid: 7, folders };
        assert_eq!(
            error.to_string(),
            "process 7 has no diagnostic socket in /tmp, /var/tmp"
        );
        assert!(error.remedy().contains("DOTNET_EnableDiagnostics"));
    }

    #[test]
    fn a_passed_limit_is_no_broken_connection() {
        let limit = Duration::from_secs(3);
        let timeout = Error::from_io("waiting", limit, io::ErrorKind::WouldBlock.into());
        assert_eq!(timeout.to_string(), "no answer within 3 s while waiting");
        let broken = Error::from_io("waiting", limit, io::ErrorKind::BrokenPipe.into());
        assert!(matches!(broken, Error::Io { .. }));
    }
}
