//! What an event is: provider, id, name, fields.

use crate::cursor::Cursor;
use crate::field::{Field, Limits, fields_1, fields_2, fields_6};
use crate::rows::Guid;

/// What the events of one metadata row have in common.
///
/// Events of the runtime itself come with neither name nor fields; [`runtime`](crate::runtime) knows them by provider,
/// id and version.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EventKind {
    /// The number that events name it by.
    pub metadata_id: u32,
    /// Name of the provider: an EventSource or a part of the runtime.
    pub provider: String,
    /// Number of the event within its provider. The same number means different things in different providers.
    pub id: u32,
    /// Name of the event; may be empty.
    pub name: String,
    /// Version of the event; a higher one has further fields behind the same ones.
    pub version: u32,
    /// 1 critical, 2 error, 3 warning, 4 informational, 5 verbose; 0 always.
    pub level: u32,
    /// Keywords, with the bits that the session adds; [`EventKind::own_keywords`] is without them.
    pub keywords: u64,
    /// What the event does (1 start, 2 stop, ...), where the metadata says it.
    pub opcode: Option<u8>,
    /// Names and types of the payload's fields, in their order; empty where the metadata does not describe them.
    pub fields: Vec<Field>,
    /// Id of the provider; version 6 only.
    pub provider_id: Option<Guid>,
    /// Where in the file the row stands.
    pub offset: u64,
}

/// Keyword bits that EventSource sets for the sessions that listen.
const SESSIONS: u64 = 0x0000_f000_0000_0000;

impl EventKind {
    /// The keywords without those that only say which sessions listen.
    pub fn own_keywords(&self) -> u64 {
        self.keywords & !SESSIONS
    }

    /// Whether this is the event with `id` of `provider`.
    pub fn is(&self, provider: &str, id: u32) -> bool {
        self.id == id && self.provider == provider
    }
}

/// Tags behind the fields (.NET 5 and later).
const TAG_OPCODE: u8 = 1;
const TAG_FIELDS: u8 = 2;

/// A row of versions 4 and 5: the payload of an event of a metadata block.
pub(crate) fn parse_4(mut row: Cursor<'_>) -> Option<EventKind> {
    let offset = row.offset();
    let mut kind = EventKind {
        metadata_id: row.u32()?,
        provider: row.text()?.to_string(),
        id: row.u32()?,
        name: row.text()?.to_string(),
        keywords: row.u64()?,
        version: row.u32()?,
        level: row.u32()?,
        offset,
        ..EventKind::default()
    };
    let mut limits = Limits::default();
    kind.fields = fields_1(&mut row, &mut limits)?;
    while !row.is_empty() {
        let (size, tag) = (row.length()?, row.u8()?);
        let mut body = row.part(size)?;
        match tag {
            TAG_OPCODE => kind.opcode = Some(body.u8()?),
            TAG_FIELDS => kind.fields = fields_2(&mut body, &mut limits)?,
            _ => {}
        }
    }
    Some(kind)
}

/// A row of version 6.
pub(crate) fn parse_6(mut row: Cursor<'_>) -> Option<EventKind> {
    let offset = row.offset();
    let mut kind = EventKind {
        metadata_id: row.varuint32()?,
        provider: row.utf8()?,
        id: row.varuint32()?,
        name: row.utf8()?,
        fields: fields_6(&mut row, &mut Limits::default())?,
        offset,
        ..EventKind::default()
    };
    let size = usize::from(row.u16()?);
    let mut options = row.part(size)?;
    while !options.is_empty() {
        match options.u8()? {
            1 => kind.opcode = Some(options.u8()?),
            3 => kind.keywords = options.u64()?,
            // a template for messages, a description
            4 | 5 => drop(options.utf8()?),
            6 => drop((options.utf8()?, options.utf8()?)),
            7 => kind.provider_id = Some(options.array()?),
            8 => kind.level = options.u8()?.into(),
            9 => kind.version = options.u8()?.into(),
            // of unknown length, so the options behind it cannot be found
            _ => break,
        }
    }
    Some(kind)
}

/// The rows of a metadata block of version 6; a row that is no row ends them.
pub(crate) fn rows_6(mut body: Cursor<'_>) -> Option<impl Iterator<Item = Option<EventKind>>> {
    let header = usize::from(body.u16()?);
    body.take(header)?;
    Some(std::iter::from_fn(move || {
        if body.is_empty() {
            return None;
        }
        let row = body.u16().and_then(|size| body.part(size.into()));
        if row.is_none() {
            body = Cursor::new(&[], 0);
        }
        Some(row.and_then(parse_6))
    }))
}
