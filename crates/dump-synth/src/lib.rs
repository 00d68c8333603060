//! Synthetic dumps: a tiny .NET 10.0 process of linux-x64, written as the bytes of an ELF core.
//!
//! [`Process`] describes the process in terms of what waits for what; [`Process::build`] lays out the runtime's library,
//! the native structures, two managed modules with metadata, the heap and the stacks, and writes them as createdump
//! would. Everything that readers look at stands where a real process has it; offsets are written out in this crate
//! on purpose, so that a change of the readers' tables is noticed.
//!
//! [`nettrace`] writes traces.
//!
//! For tests only: what cannot be written panics.

mod core_file;
mod heap;
mod layout;
mod library;
mod metadata;
mod module;
pub mod nettrace;
mod process;
mod space;
mod types;
mod world;

pub use process::Process;
