//! ELF and PE modules inside the address space of a dump.
//!
//! A dump holds images as the loader laid them out, with pages missing: section headers of an ELF file are never there,
//! and of a managed assembly often only the header page and the metadata are. So everything here starts from the first
//! page of an image, reads the little it needs through [`Memory`](asynctriage_dump::Memory), and says `None` where the
//! dump has nothing.
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

use asynctriage_dump::Addr;

mod bytes;
pub mod elf;
mod files;
pub mod pe;
pub mod r2r;
#[cfg(test)]
mod test_memory;
pub mod unwind;
mod version;

pub use files::ImageFiles;
pub use version::version_text;

/// Why no image could be read at an address.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ImageError {
    /// The dump does not hold the header of the image.
    #[error("the dump does not hold the image header at {0}")]
    NotDumped(Addr),
    /// The bytes are there and do not begin like such an image.
    #[error("no {1} image begins at {0}")]
    WrongMagic(Addr, &'static str),
    /// An image of another word size or byte order than the 64-bit little-endian targets of .NET.
    #[error("the image at {0} is not 64-bit little-endian")]
    Unsupported(Addr),
    /// The header contradicts itself.
    #[error("the image header at {0} is malformed: {1}")]
    Malformed(Addr, String),
}
