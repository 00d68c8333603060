//! [`Metadata`] itself: opening it, and who it is.

use crate::layout::{Layout, read_layout};
use crate::root::{MetadataError, read_streams};
use crate::source::Source;
use crate::table::Table;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

/// The metadata of a module, read piece by piece as it is asked.
pub struct Metadata<S> {
    pub(crate) source: S,
    pub(crate) layout: Layout,
    /// See [`Metadata::bad_names`].
    bad_names: AtomicU64,
}

/// Version of an assembly.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version {
    /// First part.
    pub major: u16,
    /// Second part.
    pub minor: u16,
    /// Third part.
    pub build: u16,
    /// Last part.
    pub revision: u16,
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}.{}.{}.{}",
            self.major, self.minor, self.build, self.revision
        )
    }
}

impl<S: Source> Metadata<S> {
    /// Reads the headers: root, streams, row counts. Nothing else is read before it is asked for.
    ///
    /// # Errors
    /// [`MetadataError`] when the headers are unreadable or are not those of metadata.
    pub fn parse(source: S) -> Result<Self, MetadataError> {
        let streams = read_streams(&source)?;
        let layout = read_layout(&source, streams)?;
        Ok(Self {
            source,
            layout,
            bad_names: AtomicU64::new(0),
        })
    }

    /// How often a name was asked for whose bytes are there and are none: no UTF-8, control characters, nothing at all,
    /// or behind the end of all names. No compiler writes such; they count as unknown.
    #[must_use]
    pub fn bad_names(&self) -> u64 {
        self.bad_names.load(Ordering::Relaxed)
    }

    pub(crate) fn count_bad_name(&self) {
        self.bad_names.fetch_add(1, Ordering::Relaxed);
    }

    /// How many rows a table has. Rows beyond the end of the source do not count.
    #[must_use]
    pub fn rows(&self, table: Table) -> u32 {
        self.layout.table(table).rows
    }

    /// File name of the module, such as `System.Private.CoreLib.dll`.
    #[must_use]
    pub fn module_name(&self) -> Option<String> {
        self.string(self.cell(Table::Module, 1, 1)?)
    }

    /// Identity of this build of the module, in the byte order of the file.
    #[must_use]
    pub fn mvid(&self) -> Option<[u8; 16]> {
        self.guid(self.cell(Table::Module, 1, 2)?)
    }

    /// Simple name of the assembly; `None` for modules without a manifest.
    #[must_use]
    pub fn assembly_name(&self) -> Option<String> {
        self.string(self.cell(Table::Assembly, 1, 7)?)
    }

    /// The public key that the assembly is signed with: a blob of 160 bytes, or the 16 of ECMA's own; empty where it has
    /// none, `None` where that cannot be read.
    #[must_use]
    pub fn assembly_public_key(&self) -> Option<Vec<u8>> {
        self.blob(self.cell(Table::Assembly, 1, 6)?)
    }

    /// Version of the assembly.
    #[must_use]
    pub fn assembly_version(&self) -> Option<Version> {
        let row = self.row(Table::Assembly, 1)?;
        Some(Version {
            major: row.short(1),
            minor: row.short(2),
            build: row.short(3),
            revision: row.short(4),
        })
    }
}

impl<S> fmt::Debug for Metadata<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Metadata")
            .field("streams", &self.layout.streams)
            .finish_non_exhaustive()
    }
}
