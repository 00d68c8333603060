//! What was in the process.
//!
//! [`Dump::open`] takes an ELF core as createdump, gdb or the kernel wrote it, or a Windows minidump, packed or not, and
//! gives one
//! [`AddressSpace`] with honest faults, the threads with their registers, the mapped files, and facts about the
//! process. Nothing here knows about .NET, except that the kinds of createdump are told apart.
//!
//! ```
//! use asynctriage_dump::{Dump, Memory, OpenOptions};
//!
//! # fn main() -> Result<(), asynctriage_dump::OpenError> {
//! # let path = std::path::Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdumps/chain-10.0.15.dmp.gz"));
//! let dump = Dump::open(path, &OpenOptions::default())?;
//! println!("{} dump of process {:?}", dump.kind, dump.process.pid);
//! let memory: &dyn Memory = &dump.memory;
//! for file in &dump.files {
//!     // `None` where the dump lacks the page
//!     println!("{} at {}: {:x?}", file.path, file.start, memory.u32(file.start));
//! }
//! # Ok(())
//! # }
//! ```
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
mod budget;
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
mod shape;
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
pub use budget::{Budget, Cut, Ended};
pub use compress::{Compression, CompressionFormat, StreamEnd};
pub use dump::{
    BrokenNotes, Dump, ExceptionFacts, ImageStamp, MappedFile, OpenOptions, ProcessFacts,
    ThreadSnapshot, Truncation,
};
pub use error::OpenError;
pub use memory::{Fault, FaultReason, Memory};
pub use plain::PlainFile;
pub use registers::{Arm64Registers, Registers, X64Registers};
pub use shape::Contradictions;
pub use sniff::Looks;
pub use space::{Access, AddressSpace, Region};
pub use target::{Arch, Container, DumpKind, Os, Target};
pub use trim::{TrimError, trim};
pub use under::{Completion, HostFile, RefusedFile, Under, UsedFile};
