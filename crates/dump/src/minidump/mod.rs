//! Windows minidumps.
//!
//! The directory and the small streams are read by the `minidump` crate, memory by [`memory`]: it is to be usable when
//! the file is cut, and both lists of it count.

mod memory;
mod process;

use ::minidump::system_info::{Cpu, Os as System};
use ::minidump::{Error, Minidump, MinidumpSystemInfo};

use crate::pieces::Piece;
use crate::{
    Arch, Contradictions, DumpKind, MappedFile, OpenError, Os, ProcessFacts, Region, Target,
    ThreadSnapshot, Truncation,
};

/// `MINIDUMP_TYPE` bits of the header: what the writer was asked for (dbgcore 20260109, wine 8).
mod wanted {
    pub(super) const FULL_MEMORY: u64 = 0x2;
    pub(super) const FILTER_MODULE_PATHS: u64 = 0x80;
    pub(super) const PRIVATE_READ_WRITE: u64 = 0x200;
    pub(super) const FILTER_TRIAGE: u64 = 0x10_0000;
}

/// Everything that a minidump says.
#[derive(Debug)]
pub(crate) struct Parts {
    pub(crate) target: Target,
    pub(crate) kind: DumpKind,
    pub(crate) threads: Vec<ThreadSnapshot>,
    pub(crate) files: Vec<MappedFile>,
    pub(crate) process: ProcessFacts,
    pub(crate) pieces: Vec<Piece>,
    pub(crate) regions: Vec<Region>,
    pub(crate) lost: Truncation,
    pub(crate) contradictions: Contradictions,
}

type File<'a> = Minidump<'a, &'a [u8]>;

/// Reads the minidump that `file` is.
pub(crate) fn read(file: &[u8]) -> Result<Parts, OpenError> {
    let dump = Minidump::read(file).map_err(|e| damaged(&e))?;
    let system: MinidumpSystemInfo = dump.get_stream().map_err(|e| damaged(&e))?;
    let target = target(&system)?;
    let memory = memory::Lists::read(&dump, file);
    Ok(Parts {
        target,
        kind: kind(dump.header.flags),
        threads: process::threads(&dump, &system),
        files: process::modules(&dump),
        process: process::facts(&dump, &system),
        pieces: memory.pieces,
        regions: memory.regions,
        lost: memory.lost,
        contradictions: memory.contradictions,
    })
}

fn target(system: &MinidumpSystemInfo) -> Result<Target, OpenError> {
    if system.os != System::Windows {
        return Err(OpenError::System(system.raw.platform_id));
    }
    let arch = match system.cpu {
        Cpu::X86_64 => Arch::X64,
        Cpu::Arm64 => Arch::Arm64,
        Cpu::X86 | Cpu::Arm => return Err(OpenError::ThirtyTwoBit),
        _ => return Err(OpenError::Machine(system.raw.processor_architecture)),
    };
    Ok(Target {
        os: Os::Windows,
        arch,
    })
}

fn kind(flags: u64) -> DumpKind {
    let has = |bit| flags & bit != 0;
    if has(wanted::FULL_MEMORY) {
        DumpKind::Full
    } else if has(wanted::PRIVATE_READ_WRITE) && !has(wanted::FILTER_TRIAGE) {
        DumpKind::Heap
    } else if has(wanted::FILTER_TRIAGE | wanted::FILTER_MODULE_PATHS) {
        DumpKind::Triage
    } else {
        DumpKind::Mini
    }
}

fn damaged(error: &Error) -> OpenError {
    OpenError::Damaged(match error {
        Error::MissingHeader => "the file ends inside its header".into(),
        Error::MissingDirectory => "the file ends inside its list of streams".into(),
        Error::StreamNotFound => "it does not say what system it is of".into(),
        other => other.to_string().to_lowercase(),
    })
}
