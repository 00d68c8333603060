//! The payload of one event: a batch of records of one thread context. Nothing of it is used before all of it is checked.

use crate::bytes::Cursor;
use crate::frames::{FrameListId, FrameLists};
use crate::reject::{Rejected, Rejection};
use crate::wire::{Kind, Manifest};

/// Bytes of a batch header.
const HEADER: usize = 37;
/// Bytes of the event's own length field.
const OUTER_LENGTH: usize = 4;

/// An event of the async profiler's provider as the container holds it.
#[derive(Clone, Copy, Debug)]
pub struct Outer<'a> {
    /// Where the payload begins in the file.
    pub offset: u64,
    /// When it was delivered, in ticks: later than every record in it.
    pub time: u64,
    /// Id in the operating system of the thread that delivered it.
    pub thread: u64,
    /// Length field and batch.
    pub payload: &'a [u8],
}

/// The header of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Number of the thread context, from 1; never used again in a process.
    pub context: u32,
    /// Id of the thread in the operating system.
    pub os_thread: u64,
    /// How many records follow.
    pub records: u32,
    /// Ticks that the first record's difference counts from.
    pub start: u64,
    /// Ticks of the last record.
    pub end: u64,
}

/// One record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// What happened; none for an id above 23, which is framed by the process's table and skipped.
    pub kind: Option<Kind>,
    /// The id on the wire.
    pub id: u8,
    /// Where it begins in the file, relative to the payload of its event.
    pub offset: u32,
    /// When, in ticks.
    pub time: u64,
    /// The dispatcher that it names; 0 when it names none.
    pub dispatcher: u64,
    /// The dispatcher that was running on the thread which created this one; 0 for none.
    pub parent: u64,
    /// The call stack.
    pub frames: Option<FrameListId>,
    /// Frames that an exception left.
    pub unwound: u32,
}

/// A metadata record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Metadata {
    /// When it was written, in ticks; records of the session are not older.
    pub time: u64,
    /// Ticks in a second.
    pub frequency: u64,
    /// The same instant on both clocks.
    pub clock: SyncClock,
    /// Bytes of each thread's buffer.
    pub buffer_size: u32,
    /// Frames of an activation between two records 21.
    pub wrappers: u8,
    /// Record kinds of the process.
    pub entries: u8,
    /// Their table.
    pub manifest: Manifest,
}

/// The same instant on both clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SyncClock {
    /// Ticks of the records.
    pub ticks: u64,
    /// Universal time in steps of 100 ns since 1601.
    pub filetime: u64,
}

/// What a batch holds.
#[derive(Debug, Default)]
pub struct Decoded {
    /// Its records, in their order.
    pub records: Vec<Record>,
    /// The metadata among them.
    pub metadata: Vec<Metadata>,
    /// The clock records among them.
    pub clocks: Vec<SyncClock>,
}

impl Decoded {
    fn clear(&mut self) {
        self.records.clear();
        self.metadata.clear();
        self.clocks.clear();
    }
}

impl Outer<'_> {
    fn rejected(&self, at: usize, record: Option<u32>, reason: Rejection) -> Rejected {
        Rejected {
            offset: self.offset,
            at: self.offset.saturating_add(at as u64),
            record,
            reason,
        }
    }
}

/// Reads and checks a batch's header and sizes.
///
/// # Errors
/// A batch that is no batch of version 1, or whose sizes contradict each other.
pub fn header(outer: &Outer<'_>) -> Result<Header, Rejected> {
    let wrong = |at, reason| Err(outer.rejected(at, None, reason));
    let mut cursor = Cursor::new(outer.payload);
    let Some(stated) = cursor.array().map(i32::from_le_bytes) else {
        let actual = outer.payload.len();
        return wrong(0, Rejection::Short { actual });
    };
    let actual = cursor.rest().len();
    if usize::try_from(stated) != Ok(actual) {
        return wrong(0, Rejection::OuterLength { stated, actual });
    }
    match cursor.u8() {
        Some(1) => {}
        Some(version) => return wrong(OUTER_LENGTH, Rejection::Version(version)),
        None => return wrong(OUTER_LENGTH, Rejection::Short { actual }),
    }
    let fields = |cursor: &mut Cursor<'_>| {
        let size = cursor.array().map(u32::from_le_bytes)?;
        let header = Header {
            context: cursor.array().map(u32::from_le_bytes)?,
            os_thread: cursor.array().map(u64::from_le_bytes)?,
            records: cursor.array().map(u32::from_le_bytes)?,
            start: cursor.array().map(u64::from_le_bytes)?,
            end: cursor.array().map(u64::from_le_bytes)?,
        };
        Some((size, header))
    };
    let Some((stated, header)) = fields(&mut cursor) else {
        return wrong(OUTER_LENGTH, Rejection::Short { actual });
    };
    if usize::try_from(stated) != Ok(actual) {
        return wrong(OUTER_LENGTH, Rejection::Size { stated, actual });
    }
    Ok(header)
}

/// The id of the first record, without checking anything else.
pub(crate) fn first_id(outer: &Outer<'_>) -> Option<u8> {
    outer
        .payload
        .get(OUTER_LENGTH.saturating_add(HEADER))
        .copied()
}

/// Reads all records into `out`, which is emptied before and holds nothing useful after an error.
///
/// # Errors
/// The first thing about the batch that is not as it should be.
pub fn records<'a>(
    outer: &Outer<'a>,
    manifest: &Manifest,
    frames: &mut FrameLists<'a>,
    out: &mut Decoded,
) -> Result<Header, Rejected> {
    out.clear();
    let header = header(outer)?;
    let body = outer
        .payload
        .get(OUTER_LENGTH.saturating_add(HEADER)..)
        .unwrap_or_default();
    // a record has two bytes at least
    let most = usize::try_from(header.records).unwrap_or(usize::MAX);
    out.records.reserve(most.min(body.len() / 2));
    let mut cursor = Cursor::new(body);
    let mut time = header.start;
    let mut count = 0_u32;
    while !cursor.is_empty() {
        let offset = outer.payload.len().saturating_sub(cursor.rest().len());
        record(&mut cursor, &mut time, offset, manifest, frames, out)
            .map_err(|reason| outer.rejected(offset, Some(count), reason))?;
        count = count.saturating_add(1);
    }
    let end = outer.payload.len();
    if count != header.records {
        let (stated, actual) = (header.records, count);
        return Err(outer.rejected(end, None, Rejection::RecordCount { stated, actual }));
    }
    if time != header.end {
        let (stated, actual) = (header.end, time);
        return Err(outer.rejected(end, None, Rejection::EndTime { stated, actual }));
    }
    Ok(header)
}

#[inline]
fn record<'a>(
    cursor: &mut Cursor<'a>,
    time: &mut u64,
    offset: usize,
    manifest: &Manifest,
    frames: &mut FrameLists<'a>,
    out: &mut Decoded,
) -> Result<(), Rejection> {
    let id = cursor.u8().ok_or(Rejection::RecordCut)?;
    let delta = cursor.u64().ok_or(Rejection::RecordCut)?;
    // a batch whose time passes the end of the clock has an end that no sum reaches
    *time = time.checked_add(delta).ok_or(Rejection::RecordCut)?;
    let (kind, prefix) = framing(id, manifest)?;
    let len = match prefix {
        0 => 0,
        1 => usize::from(cursor.u8().ok_or(Rejection::RecordCut)?),
        _ => usize::from(u16::from_le_bytes(
            cursor.array().ok_or(Rejection::RecordCut)?,
        )),
    };
    let inside = *cursor;
    let payload = cursor.take(len).ok_or(Rejection::RecordCut)?;
    let mut record = Record {
        kind,
        id,
        offset: u32::try_from(offset).unwrap_or(u32::MAX),
        time: *time,
        dispatcher: 0,
        parent: 0,
        frames: None,
        unwound: 0,
    };
    if let Some(kind) = kind {
        fill(&mut record, kind, payload, inside, frames, out).ok_or(Rejection::Payload(kind))?;
    }
    out.records.push(record);
    Ok(())
}

/// What a record id is, and the bytes of its length prefix.
#[inline]
fn framing(id: u8, manifest: &Manifest) -> Result<(Option<Kind>, u8), Rejection> {
    let (prefix, version) = manifest.entry(id).ok_or(Rejection::UnknownRecord(id))?;
    match Kind::from_id(id) {
        Some(kind) if version != 1 => Err(Rejection::SchemaVersion { kind, version }),
        Some(kind) if prefix != kind.prefix() => Err(Rejection::Prefix { id, prefix }),
        None if prefix > 2 => Err(Rejection::Prefix { id, prefix }),
        kind => Ok((kind, prefix)),
    }
}

/// Reads the payload of a kind, which must be used up. `begin` stands where it begins and ends with the batch: numbers
/// are read faster when something stands behind them.
#[inline]
fn fill<'a>(
    record: &mut Record,
    kind: Kind,
    payload: &'a [u8],
    begin: Cursor<'a>,
    frames: &mut FrameLists<'a>,
    out: &mut Decoded,
) -> Option<()> {
    use Kind as K;
    let mut cursor = begin;
    match kind {
        K::CreateRuntimeAsyncContext | K::CreateStateMachineAsyncContext => {
            record.parent = cursor.u64()?;
            record.dispatcher = cursor.u64()?;
        }
        K::ResumeRuntimeAsyncContext | K::ResumeStateMachineAsyncContext => {
            record.dispatcher = cursor.u64()?;
        }
        K::UnwindRuntimeAsyncException | K::UnwindStateMachineAsyncException => {
            record.unwound = cursor.u32()?;
        }
        K::AsyncProfilerMetadata => out.metadata.push(metadata(&mut cursor, record.time)?),
        K::AsyncProfilerSyncClock => out.clocks.push(clock(&mut cursor)?),
        _ if kind.is_callstack() => return callstack(record, kind, payload, begin, frames),
        _ => {}
    }
    (cursor.read_since(&begin) == payload.len()).then_some(())
}

#[inline]
fn callstack<'a>(
    record: &mut Record,
    kind: Kind,
    payload: &'a [u8],
    begin: Cursor<'a>,
    frames: &mut FrameLists<'a>,
) -> Option<()> {
    let mut cursor = begin;
    let [reserved, _continuation_index, count] = cursor.array()?;
    if reserved != 0 {
        return None;
    }
    if kind == Kind::CreateRuntimeAsyncCallstack {
        record.parent = cursor.u64()?;
    }
    record.dispatcher = cursor.u64()?;
    let rest = payload.get(cursor.read_since(&begin)..)?;
    record.frames = Some(frames.intern(kind.family()?, count, rest)?);
    Some(())
}

fn clock(cursor: &mut Cursor<'_>) -> Option<SyncClock> {
    Some(SyncClock {
        ticks: cursor.u64()?,
        filetime: cursor.u64()?,
    })
}

fn metadata(cursor: &mut Cursor<'_>, time: u64) -> Option<Metadata> {
    let frequency = cursor.u64()?;
    let clock = clock(cursor)?;
    let buffer_size = cursor.u32()?;
    let wrappers = cursor.u8()?;
    let entries = cursor.u8()?;
    let triples = (0..entries)
        .map(|_| cursor.array())
        .collect::<Option<Vec<[u8; 3]>>>()?;
    Some(Metadata {
        time,
        frequency,
        clock,
        buffer_size,
        wrappers,
        entries,
        manifest: Manifest::from_triples(&triples),
    })
}

/// Whether a batch has the form that previews of .NET 11 gave to their metadata: one record 13 without a length prefix,
/// with the clock, the buffer size and a count of 32, followed by nothing or by as many addresses.
pub(crate) fn is_preview(outer: &Outer<'_>) -> bool {
    let header = header(outer);
    let body = outer.payload.get(OUTER_LENGTH.saturating_add(HEADER)..);
    let (Ok(Header { records: 1, .. }), Some(body)) = (header, body) else {
        return false;
    };
    let mut cursor = Cursor::new(body);
    let mut parse = || {
        let is_metadata = cursor.u8()? == 13;
        for _ in 0..4 {
            cursor.u64()?;
        }
        cursor.u32()?;
        let wrappers = cursor.u8()?;
        if !cursor.is_empty() {
            for _ in 0..wrappers {
                cursor.u64()?;
            }
        }
        Some(is_metadata && wrappers == 32 && cursor.is_empty())
    };
    parse().unwrap_or(false)
}

#[cfg(test)]
mod tests;
