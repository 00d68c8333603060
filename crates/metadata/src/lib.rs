//! ECMA-335 metadata over any byte source, and the C# names of what compilers generate.
//!
//! [`Metadata`] reads the metadata root of an assembly ("BSJB") through a [`Source`]: the bytes may come from a file or
//! from a dump in which pages are missing. Nothing but the headers is read when it is opened; every query reads the few
//! rows that it needs and answers `None` where the bytes are missing or make no sense. Caching is the caller's business.
//!
//! [`names`] turns the names that C#, Visual Basic and F# compilers give to state machines, closures, lambdas and local
//! functions back into what stands in the source.
//!
//! | module | holds |
//! | --- | --- |
//! | `source` | where the bytes come from |
//! | `root` | the root header and its streams |
//! | `table` | the schema: tables, their columns, coded indices |
//! | `layout` | where each table lies and how wide its columns are |
//! | `heap`, `row` | single strings, blobs, GUIDs, rows and cells; binary search |
//! | `types`, `members`, `refs`, `attributes` | the questions that callers ask |
//! | `signature` | types and methods written as blobs |
//! | `compressed` | the numbers inside blobs |
//! | [`il`] | method bodies: calls and awaits |
//! | [`pdb`] | portable PDB: lines, async steps, names of locals |
//! | `names` | C# names |
//!
//! The bytes are untrusted: no query panics, and the work of each is bounded by the length of the source.
//!
//! ```no_run
//! use asynctriage_metadata::{Metadata, Table};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // the metadata root of an assembly, as an image's CLI header points to it
//! let root: Vec<u8> = std::fs::read("System.Linq.metadata")?;
//! let metadata = Metadata::parse(root)?;
//! println!("{:?} {:?}", metadata.assembly_name(), metadata.assembly_version());
//! for rid in 1..=metadata.rows(Table::TypeDef) {
//!     println!("{:?}", metadata.full_name(rid));
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

mod attributes;
mod compressed;
mod heap;
pub mod il;
mod layout;
mod members;
mod metadata;
pub mod names;
pub mod pdb;
mod refs;
mod root;
mod row;
mod signature;
mod source;
mod table;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
mod token;
mod types;

pub use attributes::{AttributeArg, CustomAttribute};
pub use members::{Field, GenericParam, Method};
pub use metadata::{Metadata, Version};
pub use refs::{MemberRef, TypeRef};
pub use root::MetadataError;
pub use signature::{MethodSig, Primitive, SigType};
pub use source::Source;
pub use table::Table;
pub use token::{Token, TypeToken};
pub use types::{TypeDef, TypeIndex, TypePath};
