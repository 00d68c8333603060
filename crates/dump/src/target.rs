//! What was dumped, and how.

use std::fmt;

/// The format of the dump file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Container {
    /// An ELF core.
    ElfCore,
    /// A Windows minidump.
    Minidump,
}

/// How much of the process a dump holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DumpKind {
    /// createdump, or a minidump with full memory: everything.
    Full,
    /// createdump: all private memory and the metadata, not the code of the image files. Minidump: private memory, and
    /// what the runtime's debugger support reported; no metadata (8, 9, 10).
    Heap,
    /// createdump: stacks and what they touch. Its triage dumps are reported as this too: the two differ by less
    /// than 6 % of their pages, and in no way that a dump shows by itself (10 measured).
    Mini,
    /// A triage dump that says that it is one.
    Triage,
    /// gdb's gcore: all private memory, not the image files.
    Gcore,
    /// The kernel: private memory and the first page of each image.
    Kernel,
    /// None of the known ones, or between two of them.
    Unknown,
}

impl fmt::Display for DumpKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Full => "full",
            Self::Heap => "heap",
            Self::Mini => "mini",
            Self::Triage => "triage",
            Self::Gcore => "gcore",
            Self::Kernel => "kernel core",
            Self::Unknown => "unknown",
        })
    }
}

/// The machine that the dumped process ran on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Target {
    /// Operating system.
    pub os: Os,
    /// Processor.
    pub arch: Arch,
}

/// An operating system.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Os {
    /// Linux, with glibc or musl.
    Linux,
    /// Windows.
    Windows,
}

/// A processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Arch {
    /// AMD64.
    X64,
    /// AArch64.
    Arm64,
}
