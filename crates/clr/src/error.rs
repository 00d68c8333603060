//! Why a dump cannot be analysed.

use crate::layout::Layout;
use asynctriage_dump::{Addr, Dump, DumpKind};

/// What may have made a runtime unreadable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The dump's file is cut.
    Cut,
    /// The kernel wrote the core, and its filter may have left out where images begin.
    KernelFilter,
    /// Nothing that is known.
    Unknown,
}

impl Cause {
    /// What the file itself explains.
    pub(crate) fn of_file(dump: &Dump) -> Self {
        if dump.truncated.is_some() {
            Self::Cut
        } else {
            Self::Unknown
        }
    }

    /// What the file and its kind explain.
    pub(crate) fn of_dump(dump: &Dump) -> Self {
        match Self::of_file(dump) {
            Self::Unknown if dump.kind == DumpKind::Kernel => Self::KernelFilter,
            cause => cause,
        }
    }
}

/// Why a dump cannot be analysed although it could be opened.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RuntimeError {
    /// No module of the process is a .NET runtime.
    #[error("no .NET runtime in this dump{hint}")]
    NotFound {
        /// What was found instead, beginning with a separator; may be empty.
        hint: String,
    },
    /// A .NET runtime whose layouts are not known.
    #[error("{what} is not supported")]
    Unsupported {
        /// The runtime by name and version.
        what: String,
    },
    /// A program that is its own runtime, in a dump that lacks what that runtime is read by.
    #[error(
        "the program {program} seems to carry its .NET runtime inside, as single-file applications do ({sign}), and this dump, of kind {kind}, lacks the runtime's tables"
    )]
    SingleFile {
        /// Path of the program in the process.
        program: String,
        /// What makes it look like one.
        sign: &'static str,
        /// Kind of the dump.
        kind: String,
    },
    /// The runtime's module is there, but what stands in it contradicts every layout that is known.
    #[error("the .NET runtime at {base} cannot be read: {why}")]
    Unreadable {
        /// Load address of the runtime's module.
        base: Addr,
        /// What may have caused it.
        cause: Cause,
        /// Which check failed.
        why: String,
    },
}

impl RuntimeError {
    /// What the user can do next.
    #[must_use]
    pub fn remedy(&self) -> String {
        match self {
            Self::NotFound { .. } => {
                "take the dump of the process that runs the .NET code (in a container often the child of a shell), with `dotnet-dump collect`, createdump or gcore".into()
            }
            Self::SingleFile { .. } => {
                "take a full dump (`dotnet-dump collect --type Full`, `createdump --singlefile --full PID` with the createdump of a runtime), or a core with gcore".into()
            }
            Self::Unsupported { .. } => format!("supported are: {}", Layout::known().collect::<Vec<_>>().join(", ")),
            Self::Unreadable { cause: Cause::Cut, .. } => {
                "copy the file again and compare the sizes; if the original is as short, the disk was full or a limit was set when it was written: take another dump".into()
            }
            Self::Unreadable { cause: Cause::KernelFilter, .. } => {
                "the kernel may have left out where the images begin: write 0x33 to /proc/PID/coredump_filter before the next one, or use `dotnet-dump collect`, which needs no filter".into()
            }
            Self::Unreadable { cause: Cause::Unknown, .. } => {
                "the dump may be damaged, cut off, or of a build that differs from the released ones: take a full dump (`dotnet-dump collect --type Full`) and try again".into()
            }
        }
    }
}

/// What a cut or damaged file explains, as the end of a sentence; empty for whole files.
pub(crate) fn cut_note(dump: &Dump) -> String {
    let cut = dump.truncated.map_or_else(String::new, |cut| {
        format!(
            "; the file is cut: {} bytes of {} regions are missing",
            cut.missing_bytes, cut.regions
        )
    });
    let packing = dump.compression.and_then(|c| c.fault());
    packing.map_or_else(|| cut.clone(), |fault| format!("{cut}; {fault}"))
}
