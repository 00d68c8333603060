//! What was in the process.
//!
//! [`Dump::open`] takes an ELF core as createdump, gdb or the kernel wrote it, or a Windows minidump, packed or not, and
//! gives one
//! [`AddressSpace`] with honest faults, the threads with their registers, the mapped files, and facts about the
//! process. Nothing here knows about .NET, except that the kinds of createdump are told apart.
#![cfg_attr(
    not(test),
    deny(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic,
        clippy::indexing_slicing,
        clippy::arithmetic_side_effects
    )
)]

mod addr;
mod backing;
mod bytes;
mod compress;
mod dump;
mod elf;
mod error;
mod kind;
mod memory;
mod minidump;
mod pieces;
mod plain;
mod record;
mod registers;
mod sniff;
mod space;
mod spool;
mod target;
#[cfg(test)]
mod testkit;
#[cfg(test)]
mod tests;
mod trim;
mod under;

pub use addr::Addr;
pub use compress::{Compression, CompressionFormat, StreamEnd};
pub use dump::{
    Dump, ExceptionFacts, ImageStamp, MappedFile, OpenOptions, ProcessFacts, ThreadSnapshot,
    Truncation,
};
pub use error::OpenError;
pub use memory::{Fault, FaultReason, Memory};
pub use plain::PlainFile;
pub use registers::{Arm64Registers, Registers, X64Registers};
pub use sniff::Looks;
pub use space::{Access, AddressSpace, Region};
pub use target::{Arch, Container, DumpKind, Os, Target};
pub use trim::{TrimError, trim};
pub use under::{Completion, HostFile, RefusedFile, Under, UsedFile};
