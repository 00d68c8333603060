//! A trace as a whole.

use crate::blocks::{Blocks, Framing};
use crate::cursor::Cursor;
use crate::error::Error;
use crate::events::Events;
use crate::header::{Header, Version, complaint, parse_4, parse_6};

/// A .nettrace file in memory.
#[derive(Clone, Debug)]
pub struct Trace<'a> {
    file: &'a [u8],
    header: Header,
    framing: Framing,
    /// Behind the description of the trace.
    blocks: u64,
}

const MAGIC: &[u8] = b"Nettrace";
const SERIALISATION: &[u8] = b"!FastSerialization.1";
/// How the description of the trace begins, up to its version: two tags and the tag of its type's type.
const TRACE_OBJECT: [u8; 3] = [5, 5, 1];
const TRACE_NAME: &[u8] = b"\x05\0\0\0Trace\x06";
/// What version 4 and version 5 call themselves.
const OLDEST: u32 = 4;
const NEWEST_OBJECTS: u32 = 5;
const TRACE_BLOCK: u8 = 1;
const BAD_TRACE: &str = "it is no object of type Trace";

impl<'a> Trace<'a> {
    /// Reads the header of a file; the rest is read by [`Trace::events`].
    ///
    /// # Errors
    ///
    /// What is no .nettrace file, ends inside its header, or has a version other than 4, 5 and 6.
    pub fn open(file: &'a [u8]) -> Result<Self, Error> {
        let mut cursor = Cursor::new(file, 0);
        let looks_cut = || Error::CutHeader {
            bytes: file.len() as u64,
        };
        if !file.starts_with(MAGIC) {
            let is_netperf = file
                .get(4..)
                .is_some_and(|rest| rest.starts_with(SERIALISATION));
            let is_cut = !file.is_empty() && MAGIC.starts_with(file);
            return Err(match (is_netperf, is_cut) {
                (true, _) => Error::NetPerf,
                (_, true) => looks_cut(),
                _ => Error::NotNettrace,
            });
        }
        cursor.take(MAGIC.len());
        let framing = match cursor.u32().ok_or_else(looks_cut)? {
            0 => Framing::Headers,
            _ => Framing::Objects,
        };
        let header = match framing {
            Framing::Headers => trace_block(&mut cursor),
            Framing::Objects => trace_object(&mut cursor),
        };
        let header = header.ok_or_else(looks_cut)??;
        if let Some(what) = complaint(&header) {
            let offset = MAGIC.len() as u64;
            return Err(Error::BadHeader { offset, what });
        }
        Ok(Self {
            file,
            header,
            framing,
            blocks: cursor.offset(),
        })
    }

    /// What the trace says of itself.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Length of the file in bytes.
    pub fn len(&self) -> u64 {
        self.file.len() as u64
    }

    /// Never: a file without bytes is no trace.
    pub fn is_empty(&self) -> bool {
        self.file.is_empty()
    }

    /// The events, from the first one on.
    pub fn events(&self) -> Events<'a> {
        let blocks = Blocks::new(self.file, self.blocks, self.framing);
        Events::new(blocks, self.header.pointer_size)
    }
}

/// `None` where the file ends.
type Found = Option<Result<Header, Error>>;

/// Behind the magic and the length of the serialisation's name.
fn trace_object(cursor: &mut Cursor<'_>) -> Found {
    let offset = cursor.offset();
    if cursor.take(SERIALISATION.len())? != SERIALISATION {
        let what = "it is not serialised as FastSerialization.1";
        return Some(Err(Error::BadHeader { offset, what }));
    }
    let offset = cursor.offset();
    let bad = |what| Some(Err(Error::BadHeader { offset, what }));
    if cursor.array()? != TRACE_OBJECT {
        return bad(BAD_TRACE);
    }
    let (version, min_reader) = (cursor.u32()?, cursor.u32()?);
    if cursor.take(TRACE_NAME.len())? != TRACE_NAME {
        return bad(BAD_TRACE);
    }
    if version < OLDEST || min_reader > NEWEST_OBJECTS {
        return Some(Err(Error::UnknownVersion {
            major: version,
            minor: min_reader,
        }));
    }
    let version = Version::FastSerialization {
        version,
        min_reader,
    };
    let header = parse_4(cursor, version)?;
    match cursor.u8()? {
        6 => Some(Ok(header)),
        _ => bad("it does not end where it should"),
    }
}

/// Behind the magic and the number 0.
fn trace_block(cursor: &mut Cursor<'_>) -> Found {
    let (major, minor) = (cursor.u32()?, cursor.u32()?);
    if major != 6 {
        return Some(Err(Error::UnknownVersion { major, minor }));
    }
    let offset = cursor.offset();
    let header = cursor.u32()?;
    let [.., kind] = header.to_le_bytes();
    let bad = |what| Some(Err(Error::BadHeader { offset, what }));
    if kind != TRACE_BLOCK {
        return bad("the first block is not the one that describes the trace");
    }
    let mut body = cursor.part((header & 0x00ff_ffff) as usize)?;
    match parse_6(&mut body, Version::Six { minor }) {
        Some(header) => Some(Ok(header)),
        None => bad("it ends before its last field"),
    }
}
