//! Portable PDB: from a method and an IL offset to a line of source (the format is metadata with tables of its own).

mod embedded;
mod points;
#[cfg(test)]
mod tests;

use crate::compressed;
use crate::metadata::Metadata;
use crate::root::MetadataError;
use crate::source::{Source, array};
use crate::table::{Coded, Table};
use crate::token::Token;
use std::fmt;

pub use embedded::{EmbeddedError, unpack_embedded};
pub use points::SequencePoint;

/// Bytes of the name of a source file at most.
const MAX_PATH: usize = 4096;
/// Parts of such a name at most.
const MAX_PARTS: usize = 256;
/// Scopes of a method that are looked at.
const MAX_SCOPES: usize = 4096;
/// Locals of a scope that are looked at.
const MAX_LOCALS: usize = 4096;

/// Kinds of custom debug information, in the byte order of the file.
mod kind {
    /// 54FD2AC5-E925-401A-9C2A-F94F171072F8.
    pub(super) const ASYNC_STEPS: [u8; 16] = [
        0xc5, 0x2a, 0xfd, 0x54, 0x25, 0xe9, 0x1a, 0x40, 0x9c, 0x2a, 0xf9, 0x4f, 0x17, 0x10, 0x72,
        0xf8,
    ];
    /// 6DA9A61E-F8C7-4874-BE62-68BC5630DF71.
    pub(super) const HOISTED_SCOPES: [u8; 16] = [
        0x1e, 0xa6, 0xa9, 0x6d, 0xc7, 0xf8, 0x74, 0x48, 0xbe, 0x62, 0x68, 0xbc, 0x56, 0x30, 0xdf,
        0x71,
    ];
    /// CC110556-A091-4D38-9FEC-25AB9A351A6A.
    pub(super) const SOURCE_LINK: [u8; 16] = [
        0x56, 0x05, 0x11, 0xcc, 0x91, 0xa0, 0x38, 0x4d, 0x9f, 0xec, 0x25, 0xab, 0x9a, 0x35, 0x1a,
        0x6a,
    ];
}

/// A portable PDB.
pub struct PortablePdb<S> {
    metadata: Metadata<S>,
    id: [u8; 20],
}

/// Why bytes are not usable as a portable PDB.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PdbError {
    /// The format of Visual Studio's native debugger, which is not read here.
    #[error("a Windows PDB, which is not read; portable PDBs are")]
    Windows,
    /// Metadata of an assembly, not of its symbols.
    #[error("metadata without a #Pdb stream")]
    NoIdentity,
    /// No metadata.
    #[error(transparent)]
    Metadata(#[from] MetadataError),
}

/// A place in a source file.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Location {
    /// The file, as the compiler was told.
    pub file: String,
    /// The line, from 1.
    pub line: u32,
}

/// Where an async method suspends and where it goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct AsyncStep {
    /// IL offset behind the instruction that stores the state number.
    pub yields_at: u32,
    /// IL offset at which the method goes on.
    pub resumes_at: u32,
}

/// How Windows PDBs begin.
const WINDOWS: &[u8; 24] = b"Microsoft C/C++ MSF 7.00";

impl<S: Source> PortablePdb<S> {
    /// Reads the headers.
    ///
    /// # Errors
    /// When the bytes are something else, or too damaged to tell.
    pub fn parse(source: S) -> Result<Self, PdbError> {
        if array(&source, 0).as_ref() == Some(WINDOWS) {
            return Err(PdbError::Windows);
        }
        let metadata = Metadata::parse(source)?;
        let stream = metadata.layout.streams.pdb.ok_or(PdbError::NoIdentity)?;
        let id = array(&metadata.source, stream.offset).ok_or(PdbError::NoIdentity)?;
        Ok(Self { metadata, id })
    }

    /// What the debug directory of the assembly calls it: the GUID, in the byte order of the file.
    #[must_use]
    pub fn guid(&self) -> [u8; 16] {
        self.id.first_chunk().copied().unwrap_or_default()
    }

    /// The visible place that an IL offset of a method belongs to: that of the last sequence point at or before it.
    #[must_use]
    pub fn location(&self, method: u32, il_offset: u32) -> Option<Location> {
        let points = self.sequence_points(method)?;
        let before = points.iter().filter(|p| p.il_offset <= il_offset);
        let point = before.rev().find(|p| p.line.is_some())?;
        Some(Location {
            file: self.document(point.document)?,
            line: point.line?,
        })
    }

    /// The sequence points of a method in the order of its IL; `None` when it has none.
    #[must_use]
    pub fn sequence_points(&self, method: u32) -> Option<Vec<SequencePoint>> {
        let table = Table::MethodDebugInformation;
        let document = self.metadata.cell(table, method, 0)?;
        let blob = self.metadata.cell(table, method, 1).filter(|b| *b != 0)?;
        points::decode(&self.metadata.blob(blob)?, document)
    }

    /// The name of a source file, by its row from 1.
    #[must_use]
    pub fn document(&self, rid: u32) -> Option<String> {
        let blob = self
            .metadata
            .blob(self.metadata.cell(Table::Document, rid, 0)?)?;
        // the name in parts: a separator, then an offset in the blob heap for each
        let (separator, mut rest) = separator(&blob)?;
        let mut name = Vec::new();
        for part in 0..MAX_PARTS {
            if rest.is_empty() {
                break;
            }
            if part > 0 {
                name.extend_from_slice(separator);
            }
            let offset = compressed::unsigned(&mut rest)?;
            if offset != 0 {
                name.extend(self.metadata.blob(offset)?);
            }
            if name.len() > MAX_PATH {
                return None;
            }
        }
        String::from_utf8(name).ok().filter(|n| !n.is_empty())
    }

    /// The suspensions of an async method's `MoveNext`, in the order of its awaits.
    #[must_use]
    pub fn async_steps(&self, move_next: u32) -> Option<Vec<AsyncStep>> {
        let blob =
            self.custom_information(Token::new(Table::MethodDef, move_next), &kind::ASYNC_STEPS)?;
        let mut rest = blob.as_slice();
        compressed::u32(&mut rest)?;
        let mut steps = Vec::new();
        while !rest.is_empty() {
            steps.push(AsyncStep {
                yields_at: compressed::u32(&mut rest)?,
                resumes_at: compressed::u32(&mut rest)?,
            });
            compressed::unsigned(&mut rest)?;
        }
        Some(steps)
    }

    /// The method in the source that a state machine's `MoveNext` was made of.
    #[must_use]
    pub fn kickoff_method(&self, move_next: u32) -> Option<u32> {
        let table = Table::StateMachineMethod;
        let row = self.metadata.rows_where(table, 0, move_next).next()?;
        self.metadata.cell(table, row, 1).filter(|rid| *rid != 0)
    }

    /// In which IL offsets of `MoveNext` the hoisted locals live, by the number in the name of their field less one:
    /// begin and length. Both are 0 for what only the compiler knows.
    #[must_use]
    pub fn hoisted_scopes(&self, move_next: u32) -> Option<Vec<(u32, u32)>> {
        let method = Token::new(Table::MethodDef, move_next);
        let blob = self.custom_information(method, &kind::HOISTED_SCOPES)?;
        let (pairs, _) = blob.as_chunks::<8>();
        let pair = |bytes: &[u8; 8]| {
            let mut rest = bytes.as_slice();
            Some((compressed::u32(&mut rest)?, compressed::u32(&mut rest)?))
        };
        pairs.iter().map(pair).collect()
    }

    /// The locals of a method that live at an IL offset: slot and name, inner scopes last.
    #[must_use]
    pub fn locals(&self, method: u32, il_offset: u32) -> Vec<(u16, String)> {
        let mut out = Vec::new();
        let scopes = self.metadata.rows_where(Table::LocalScope, 0, method);
        for scope in scopes.take(MAX_SCOPES) {
            let Some(row) = self.metadata.row(Table::LocalScope, scope) else {
                continue;
            };
            let (start, length) = (row.cell(4), row.cell(5));
            if il_offset.checked_sub(start).is_none_or(|at| at >= length) {
                continue;
            }
            let list = self
                .metadata
                .list(Table::LocalScope, scope, 2, Table::LocalVariable);
            for local in list.take(MAX_LOCALS) {
                let Some(row) = self.metadata.row(Table::LocalVariable, local) else {
                    continue;
                };
                let name = self.metadata.string(row.cell(2)).filter(|n| !n.is_empty());
                out.extend(name.map(|n| (row.short(1), n)));
            }
        }
        out
    }

    /// Where the sources are kept: a JSON text that maps files to addresses.
    #[must_use]
    pub fn source_link(&self) -> Option<String> {
        let blob = self.custom_information(Token::new(Table::Module, 1), &kind::SOURCE_LINK)?;
        String::from_utf8(blob).ok()
    }

    fn custom_information(&self, parent: Token, kind: &[u8; 16]) -> Option<Vec<u8>> {
        let table = Table::CustomDebugInformation;
        let parent = parent.encode(Coded::HasCustomDebugInformation)?;
        let row = self.metadata.rows_where(table, 0, parent).find(|row| {
            let guid = self.metadata.cell(table, *row, 1);
            guid.and_then(|g| self.metadata.guid(g)).as_ref() == Some(kind)
        })?;
        self.metadata.blob(self.metadata.cell(table, row, 2)?)
    }
}

impl<S> fmt::Debug for PortablePdb<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PortablePdb")
            .field("id", &self.id)
            .finish_non_exhaustive()
    }
}

/// The character that stands between the parts of a name (none for a 0), and what follows it.
fn separator(blob: &[u8]) -> Option<(&[u8], &[u8])> {
    let len = match *blob.first()? {
        0 => return Some((&[], blob.get(1..)?)),
        0x01..=0x7f => 1,
        0xc0..=0xdf => 2,
        0xe0..=0xef => 3,
        _ => 4,
    };
    blob.split_at_checked(len)
}
