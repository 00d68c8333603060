//! The metadata root: signature, version, streams (ECMA-335 II.24.2.1).

use crate::source::{Source, array, u16_at, u32_at};

/// Why bytes are not usable as metadata.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MetadataError {
    /// The headers cannot be read: a hole, or the end of the source.
    #[error("metadata headers cannot be read at offset {offset:#x}")]
    Unreadable {
        /// First byte of the read that failed, counted from the metadata root.
        offset: u64,
    },
    /// The first four bytes are not "BSJB".
    #[error("not a metadata root: it begins with {found:#010x}")]
    BadSignature {
        /// What stands there instead.
        found: u32,
    },
    /// The length of the version text is out of range (0 to 255, multiples of 4).
    #[error("not a metadata root: its version text is {length} bytes long")]
    BadVersion {
        /// What the header says.
        length: u32,
    },
    /// There is neither a `#~` nor a `#-` stream.
    #[error("metadata without tables")]
    NoTables,
    /// A table has more rows than a token can count (2^24 - 1).
    #[error("metadata table {table:#04x} with {rows} rows")]
    TooManyRows {
        /// Number of the table.
        table: u8,
        /// What the header says.
        rows: u32,
    },
}

/// A stream, in bytes from the root.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Stream {
    pub(crate) offset: u64,
    pub(crate) size: u64,
}

/// The streams that this crate knows; a missing heap is an empty one.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Streams {
    /// `#~` or `#-`.
    pub(crate) tables: Stream,
    /// Whether the tables are in `#-`: neither sorted nor without pointer tables.
    pub(crate) uncompressed: bool,
    pub(crate) strings: Stream,
    pub(crate) blobs: Stream,
    pub(crate) guids: Stream,
    pub(crate) user_strings: Stream,
    /// `#Pdb`: identity and the row counts of the module that a portable PDB belongs to.
    pub(crate) pdb: Option<Stream>,
    /// `#JTD`: an edit-and-continue delta, in which all row numbers take four bytes.
    pub(crate) minimal_delta: bool,
}

const SIGNATURE: u32 = u32::from_le_bytes(*b"BSJB");
/// Far above the six that exist; the header could say 65535.
const MAX_STREAMS: u16 = 64;
const MAX_STREAM_NAME: usize = 32;

/// Reads the root header and the stream headers.
pub(crate) fn read_streams(source: &impl Source) -> Result<Streams, MetadataError> {
    let u32_here = |offset| u32_at(source, offset).ok_or(MetadataError::Unreadable { offset });
    let found = u32_here(0)?;
    if found != SIGNATURE {
        return Err(MetadataError::BadSignature { found });
    }
    let length = u32_here(12)?;
    if length > 256 || length % 4 != 0 {
        return Err(MetadataError::BadVersion { length });
    }
    let count_at = 18_u64.saturating_add(length.into());
    let count = u16_at(source, count_at).ok_or(MetadataError::Unreadable { offset: count_at })?;
    let mut streams = Streams::default();
    let mut has_tables = false;
    let mut at = count_at.saturating_add(2);
    for _ in 0..count.min(MAX_STREAMS) {
        let stream = Stream {
            offset: u32_here(at)?.into(),
            size: u32_here(at.saturating_add(4))?.into(),
        };
        let name_at = at.saturating_add(8);
        let Some((name, length)) = stream_name(source, name_at) else {
            return Err(MetadataError::Unreadable { offset: name_at });
        };
        at = name_at.saturating_add(length);
        has_tables |= streams.add(&name, stream);
    }
    if has_tables {
        Ok(streams)
    } else {
        Err(MetadataError::NoTables)
    }
}

impl Streams {
    /// Keeps a stream that is known; whether it holds the tables.
    fn add(&mut self, name: &[u8], stream: Stream) -> bool {
        match name {
            b"#~" => (self.tables, self.uncompressed) = (stream, false),
            b"#-" => (self.tables, self.uncompressed) = (stream, true),
            b"#Strings" => self.strings = stream,
            b"#Blob" => self.blobs = stream,
            b"#GUID" => self.guids = stream,
            b"#US" => self.user_strings = stream,
            b"#Pdb" => self.pdb = Some(stream),
            b"#JTD" => self.minimal_delta = true,
            _ => {}
        }
        matches!(name, b"#~" | b"#-")
    }
}

/// A stream's name, and how many bytes it takes with its padding to four.
fn stream_name(source: &impl Source, at: u64) -> Option<(Vec<u8>, u64)> {
    let mut name = Vec::new();
    while name.len() < MAX_STREAM_NAME {
        let part: [u8; 4] = array(source, at.saturating_add(name.len() as u64))?;
        name.extend_from_slice(&part);
        if let Some(end) = name.iter().position(|b| *b == 0) {
            let padded = name.len() as u64;
            name.truncate(end);
            return Some((name, padded));
        }
    }
    None
}
