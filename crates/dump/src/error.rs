//! Why a dump could not be opened, and what to do about it.

use std::io;
use std::path::{Path, PathBuf};

use crate::{CompressionFormat, Looks};

/// Why a dump could not be opened. The message says what is wrong; [`OpenError::remedy`] says what to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// No such file.
    #[error("there is no file {}", .0.display())]
    NotFound(PathBuf),
    /// The user may not read it.
    #[error("no permission to read {}", .0.display())]
    PermissionDenied(PathBuf),
    /// A directory.
    #[error("{} is a directory", .0.display())]
    IsDirectory(PathBuf),
    /// A pipe, a socket or a device: it cannot be mapped, and reading it might wait for ever.
    #[error("{} is not a regular file", .0.display())]
    NotAFile(PathBuf),
    /// Any other failure of the system.
    #[error("cannot read {}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// No bytes at all.
    #[error("the file is empty")]
    Empty,
    /// A stream that ended before its first byte.
    #[error("nothing came through the pipe")]
    NothingCame,
    /// A stream that failed before its end.
    #[error("the pipe broke: {0}")]
    Stream(io::Error),
    /// What comes through a pipe or is unpacked cannot be kept.
    #[error("what comes from a pipe or is unpacked is kept in {}, which failed after {kept} bytes", folder.display())]
    NoRoom {
        /// The folder for temporary files.
        folder: PathBuf,
        /// Bytes that were kept.
        kept: u64,
        /// What the system said.
        source: io::Error,
    },
    /// The first bytes are not those of a dump.
    #[error("this is not a memory dump; it looks like {0}")]
    NotADump(Looks),
    /// A minidump of a system other than Windows; the number is the platform of its system information.
    #[error("this is a minidump of a system that is not supported (platform {0})")]
    System(u32),
    /// A dump of a 32-bit process.
    #[error("this is a dump of a 32-bit process")]
    ThirtyTwoBit,
    /// A core of a big-endian machine.
    #[error("this is a core of a big-endian machine")]
    BigEndian,
    /// A dump of another processor; the number is the `e_machine` of an ELF core or the architecture of a minidump.
    #[error("this is a dump of a processor that is not supported (machine {0})")]
    Machine(u16),
    /// The list of what the dump holds cannot be found.
    #[error("the dump is damaged: {0}")]
    Damaged(String),
    /// A dump that holds no memory at all.
    #[error("the dump holds no memory{}", if *truncated { ": the file ends before it" } else { "" })]
    NoMemory {
        /// Whether it should: the file is cut.
        truncated: bool,
    },
    /// Unpacking went past the bound.
    #[error("the unpacked dump is larger than {limit} bytes")]
    TooLarge {
        /// The bound.
        limit: u64,
    },
    /// Not even the first bytes can be unpacked.
    #[error("the file begins like {format} but cannot be unpacked")]
    BadCompression {
        /// The compression.
        format: CompressionFormat,
    },
}

/// How to get a dump that can be read.
const TAKE_ANOTHER: &str = "take one with `dotnet-dump collect -p <pid>` or `createdump <pid>`";

impl OpenError {
    /// The error for a failed system call on `path`.
    pub(crate) fn from_io(path: &Path, source: io::Error) -> Self {
        let path = path.to_path_buf();
        match source.kind() {
            io::ErrorKind::NotFound => Self::NotFound(path),
            io::ErrorKind::PermissionDenied => Self::PermissionDenied(path),
            io::ErrorKind::IsADirectory => Self::IsDirectory(path),
            _ => Self::Io { path, source },
        }
    }

    /// What the user can do next: one sentence without a full stop.
    #[must_use]
    pub fn remedy(&self) -> String {
        match self {
            Self::NotFound(_) => "check the path".into(),
            Self::PermissionDenied(_) => {
                "dumps belong to the user of the dumped process: run as that user, or change the owner of the file".into()
            }
            Self::IsDirectory(_) => "name the dump file inside it".into(),
            Self::NotAFile(_) => {
                "save the dump to a file first, or pipe it into `asynctriage -`".into()
            }
            Self::NothingCame | Self::Stream(_) => {
                "look at what the command in front of the pipe says".into()
            }
            Self::NoRoom { .. } => {
                "set TMPDIR to a folder on a disk with more free space than the unpacked dump has bytes, or unpack it to a file and name that".into()
            }
            Self::Io { .. } => "copy the dump to a local disk and try again".into(),
            Self::Empty => format!("the disk was probably full when the dump was written; {TAKE_ANOTHER}"),
            Self::NotADump(looks) => not_a_dump(looks),
            Self::System(_) => "use a core of a Linux process".into(),
            Self::ThirtyTwoBit | Self::BigEndian | Self::Machine(_) => {
                "use a dump of a 64-bit process on x64 or arm64".into()
            }
            Self::Damaged(_) => format!("copy the file again and compare the sizes, or {TAKE_ANOTHER}"),
            Self::NoMemory { truncated: true } => "copy the file again and compare the sizes".into(),
            Self::NoMemory { truncated: false } => format!("{TAKE_ANOTHER}, or set the process's coredump_filter to 0x33"),
            Self::TooLarge { .. } => {
                "unpack the dump yourself and open the unpacked file".into()
            }
            Self::BadCompression { format } => format!("test it with `{}`, and copy the file again", format.tester()),
        }
    }
}

fn not_a_dump(looks: &Looks) -> String {
    match looks {
        Looks::Archive(name) => format!("unpack it first ({})", unpacker(name)),
        Looks::Compressed(_, inner) if **inner == Looks::NetTrace => not_a_dump(inner),
        Looks::Compressed(..) => "unpack it and open the dump inside".into(),
        Looks::Elf => {
            format!("a dump of the running process is needed, not its program file: {TAKE_ANOTHER}")
        }
        Looks::Pe => {
            format!("a dump of the running process is needed, not an assembly: {TAKE_ANOTHER}")
        }
        Looks::GcDump => format!("heap snapshots hold no field values; {TAKE_ANOTHER}"),
        Looks::NetTrace => "read it with `asynctriage trace FILE`".into(),
        Looks::Zeros => format!("the copy is broken or the disk was full; {TAKE_ANOTHER}"),
        _ => TAKE_ANOTHER.into(),
    }
}

fn unpacker(name: &str) -> &'static str {
    match name {
        "xz" => "xz -dk",
        "bzip2" => "bzip2 -dk",
        "lz4" => "lz4 -d",
        "zip" => "unzip",
        "tar" => "tar -xf",
        _ => "7z x",
    }
}
