//! The events of a trace, one after the other.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::blocks::{Block, BlockKind, Blocks, Framing, Step};
use crate::cursor::Cursor;
use crate::damage::Damage;
use crate::field::{Value, Values};
use crate::kind::{EventKind, parse_4, rows_6};
use crate::labels::{Label, Labels};
use crate::loss::Losses;
use crate::rows::{Guid, Rows};
use crate::stacks::{Stack, Stacks};
use crate::summary::{End, Summary};
use crate::threads::{Thread, Threads};

/// Kinds of events that are kept; a process has some hundreds.
const MAX_KINDS: usize = 1 << 20;

/// An event. The payload stays where it is in the file.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Event<'a> {
    /// Where in the file its header begins.
    pub offset: u64,
    /// What it is.
    pub kind: Arc<EventKind>,
    /// Operating system's id of the thread that it speaks of; in version 6 the thread's index where no id is known.
    pub thread: u64,
    /// The thread that wrote it, by its id (version 6: by its index). Sequence numbers are this thread's.
    pub capture_thread: u64,
    /// The processor that it was written on.
    pub processor: u32,
    /// Number of the event among those of its capture thread, from 1, modulo 2^32.
    pub sequence: u32,
    /// Time in ticks of [`Header::frequency`](crate::Header). Events of one capture thread are in the order of time;
    /// those of several threads are not.
    pub timestamp: u64,
    /// Number of its stack for [`Events::stack`]; 0 is none.
    pub stack: u32,
    /// Number of its labels for [`Events::labels`]; 0 is none. Version 6 only.
    pub labels: u32,
    /// The activity that it belongs to.
    pub activity: Option<Guid>,
    /// The activity that it leads to or comes from.
    pub related_activity: Option<Guid>,
    /// Whether no later event of the file is older.
    pub sorted: bool,
    /// How many sequence points stand before it in the file. No event of a region is older than one of the region
    /// before: whoever needs the order of time across threads sorts region by region.
    pub region: u64,
    /// What it says.
    pub payload: &'a [u8],
    /// Where in the file that begins.
    pub payload_offset: u64,
}

impl<'a> Event<'a> {
    /// The fields that the metadata describes, by name.
    pub fn values(&self) -> Values<'_, 'a> {
        Values::new(&self.kind.fields, self.payload)
    }

    /// The first field of that name.
    pub fn value(&self, name: &str) -> Option<Value<'a>> {
        self.values()
            .find_map(|(n, value)| (n == name).then_some(value))
    }
}

/// A kind and how many events it has.
#[derive(Clone, Debug)]
struct Counted {
    kind: Arc<EventKind>,
    events: u64,
}

/// Iterator over the events of a trace in the order of the file.
///
/// Memory does not grow with the number of events: kept are the kinds of events, the last sequence number of each
/// thread, and where the stacks since the last sequence point stand.
#[derive(Clone, Debug)]
pub struct Events<'a> {
    blocks: Blocks<'a>,
    rows: Option<Rows<'a>>,
    kinds: Vec<Counted>,
    by_id: FxHashMap<u32, usize>,
    stacks: Stacks<'a>,
    threads: Threads,
    labels: Labels,
    losses: Losses,
    /// All but what is derived from the other fields.
    summary: Summary,
}

impl<'a> Events<'a> {
    pub(crate) fn new(blocks: Blocks<'a>, pointer_size: u8) -> Self {
        let mut summary = Summary::default();
        summary.blocks.insert(BlockKind::Trace.name(), 1);
        Self {
            blocks,
            rows: None,
            kinds: Vec::new(),
            by_id: FxHashMap::default(),
            stacks: Stacks::new(pointer_size),
            threads: Threads::default(),
            labels: Labels::default(),
            losses: Losses::default(),
            summary,
        }
    }

    /// What was read so far; of the whole trace once the iterator has ended.
    pub fn summary(&self) -> Summary {
        let mut summary = self.summary.clone();
        summary.lost = self.losses.lost();
        summary.lost_between = self.losses.places().to_vec();
        for counted in self.kinds.iter().filter(|counted| counted.events > 0) {
            let by_provider = &mut summary.events_by_provider;
            // looked up before it is inserted, for the sake of the name's copy
            match by_provider.get_mut(&counted.kind.provider) {
                Some(events) => *events = events.saturating_add(counted.events),
                None => drop(by_provider.insert(counted.kind.provider.clone(), counted.events)),
            }
        }
        summary
    }

    /// The kinds of events that were declared so far, those without events among them.
    pub fn kinds(&self) -> impl Iterator<Item = &Arc<EventKind>> {
        self.kinds.iter().map(|counted| &counted.kind)
    }

    /// The stack of the event that was returned last. Numbers of stacks are given anew from time to time.
    pub fn stack(&self, id: u32) -> Option<Stack<'a>> {
        self.stacks.get(id)
    }

    /// The labels of the event that was returned last; version 6 only.
    pub fn labels(&self, id: u32) -> &[Label] {
        self.labels.get(id)
    }

    /// What is said of the thread with that index; version 6 only.
    pub fn thread(&self, index: u64) -> Option<&Thread> {
        self.threads.get(index)
    }

    /// Reads blocks up to the next one with events. `None` at the end.
    fn advance(&mut self) -> Option<Rows<'a>> {
        loop {
            match self.blocks.step()? {
                Step::Block(block) => {
                    if let Some(rows) = self.block(&block) {
                        return Some(rows);
                    }
                }
                Step::Damaged(damage) => self.summary.damages.push(damage),
                Step::End => self.summary.end = End::Tag,
                Step::Cut(truncation) => self.summary.end = End::Cut(truncation),
            }
        }
    }

    fn block(&mut self, block: &Block<'a>) -> Option<Rows<'a>> {
        let count = self.summary.blocks.entry(block.kind.name()).or_default();
        *count = count.saturating_add(1);
        let read = match block.kind {
            BlockKind::Event => match self.checked_rows(block.body, true) {
                Ok(rows) => return Some(rows),
                Err(what) => Err(what),
            },
            BlockKind::Metadata if self.is_six() => self.metadata_6(block),
            BlockKind::Metadata => self.metadata_4(block),
            BlockKind::Stack => self.stacks.add(block.body),
            BlockKind::SequencePoint => self.sequence_point(block.body),
            BlockKind::Thread => self.threads.add(block.body),
            BlockKind::RemoveThread => self.remove_threads(block.body),
            BlockKind::LabelList => self.labels.add(block.body),
            BlockKind::Trace => Err("a second description of the trace"),
            BlockKind::Other => Ok(()),
        };
        if let Err(what) = read {
            self.damaged(block, block.offset, block.len, what);
        }
        None
    }

    fn damaged(&mut self, block: &Block<'a>, offset: u64, bytes: u64, what: &'static str) {
        self.summary.damages.push(Damage {
            offset,
            bytes,
            block: block.kind.name(),
            what,
        });
    }

    fn is_six(&self) -> bool {
        self.blocks.framing() == Framing::Headers
    }

    /// The rows of a block all of whose rows are whole; otherwise none of them can be trusted.
    fn checked_rows(&self, body: Cursor<'a>, timed: bool) -> Result<Rows<'a>, &'static str> {
        let rows = Rows::open(body, self.is_six())?;
        rows.check(timed)?;
        Ok(rows)
    }

    fn metadata_4(&mut self, block: &Block<'a>) -> Result<(), &'static str> {
        let mut rows = self.checked_rows(block.body, false)?;
        while rows.advance() {
            let row = *rows.row();
            let body = Cursor::new(row.payload, row.payload_offset);
            match parse_4(body) {
                Some(kind) => self.declare(kind),
                None => {
                    let bytes = row.payload.len() as u64;
                    self.damaged(block, row.offset, bytes, "a row of its metadata is damaged");
                }
            }
        }
        Ok(())
    }

    fn metadata_6(&mut self, block: &Block<'a>) -> Result<(), &'static str> {
        for kind in rows_6(block.body).ok_or("its header is cut")? {
            self.declare(kind.ok_or("a row of its metadata is damaged")?);
        }
        Ok(())
    }

    fn declare(&mut self, kind: EventKind) {
        self.summary.metadata = self.summary.metadata.saturating_add(1);
        if self.kinds.len() >= MAX_KINDS {
            // its events are not those of a kind that had the number before
            self.by_id.remove(&kind.metadata_id);
            return;
        }
        self.by_id.insert(kind.metadata_id, self.kinds.len());
        self.kinds.push(Counted {
            kind: Arc::new(kind),
            events: 0,
        });
    }

    /// What a sequence point says: how far each thread has come. The numbers of stacks and labels end here.
    fn sequence_point(&mut self, body: Cursor<'a>) -> Result<(), &'static str> {
        let (time, threads, flags) = match self.is_six() {
            true => sequences_6(body),
            false => sequences_4(body).map(|(time, threads)| (time, threads, 0)),
        }
        .ok_or("its list of threads does not end at its end")?;
        for (thread, sequence) in threads {
            self.losses.reached(thread, sequence, time);
        }
        self.summary.sequence_points = self.summary.sequence_points.saturating_add(1);
        self.stacks.clear();
        self.labels.clear();
        if flags & 1 != 0 {
            self.threads.clear();
            self.losses.forget_all();
        }
        if flags & 2 != 0 {
            self.by_id.clear();
        }
        Ok(())
    }

    fn remove_threads(&mut self, mut body: Cursor<'a>) -> Result<(), &'static str> {
        while !body.is_empty() {
            let entry = body.varuint64().zip(body.varuint32());
            let (thread, sequence) = entry.ok_or("an entry of its threads is damaged")?;
            // when it ended is not told
            self.losses.reached(thread, sequence, u64::MAX);
            self.losses.forget(thread);
            self.threads.remove(thread);
        }
        Ok(())
    }

    /// The event of the row that was read last; `None` when the file does not say what it is.
    #[inline]
    fn event(&mut self) -> Option<Event<'a>> {
        let row = self.rows.as_ref()?.row();
        self.losses
            .event(row.capture_thread, row.sequence, row.timestamp);
        let index = self.by_id.get(&row.metadata);
        let Some(counted) = index.and_then(|index| self.kinds.get_mut(*index)) else {
            self.summary.without_metadata = self.summary.without_metadata.saturating_add(1);
            return None;
        };
        let mut thread = row.thread;
        let (mut activity, mut related_activity) = (row.activity, row.related_activity);
        if self.blocks.framing() == Framing::Headers {
            let Some(declared) = self.threads.get(row.thread) else {
                self.summary.without_thread = self.summary.without_thread.saturating_add(1);
                return None;
            };
            thread = declared.os_id.unwrap_or(thread);
            if let Some(list) = self.labels.list(row.labels) {
                (activity, related_activity) = (list.activity, list.related_activity);
            }
        }
        counted.events = counted.events.saturating_add(1);
        self.summary.events = self.summary.events.saturating_add(1);
        Some(Event {
            offset: row.offset,
            kind: Arc::clone(&counted.kind),
            thread,
            capture_thread: row.capture_thread,
            processor: row.processor,
            sequence: row.sequence,
            timestamp: row.timestamp,
            stack: row.stack,
            labels: row.labels,
            activity,
            related_activity,
            sorted: row.sorted,
            region: self.summary.sequence_points,
            payload: row.payload,
            payload_offset: row.payload_offset,
        })
    }
}

impl<'a> Iterator for Events<'a> {
    type Item = Event<'a>;

    #[inline]
    fn next(&mut self) -> Option<Event<'a>> {
        loop {
            if !self.rows.as_mut().is_some_and(Rows::advance) {
                self.rows = Some(self.advance()?);
                continue;
            }
            if let Some(event) = self.event() {
                return Some(event);
            }
        }
    }
}

impl std::iter::FusedIterator for Events<'_> {}

/// Threads and the numbers that they have reached.
type Sequences = Vec<(u64, u32)>;

/// Time, count, then thread and sequence of each.
fn sequences_4(mut body: Cursor<'_>) -> Option<(u64, Sequences)> {
    let time = body.u64()?;
    let mut found = Vec::new();
    for _ in 0..body.length()? {
        found.push((body.u64()?, body.u32()?));
    }
    body.is_empty().then_some((time, found))
}

/// The same with flags, and with numbers in groups of seven bits.
fn sequences_6(mut body: Cursor<'_>) -> Option<(u64, Sequences, u32)> {
    let time = body.u64()?;
    let flags = body.u32()?;
    let mut found = Vec::new();
    for _ in 0..body.length()? {
        found.push((body.varuint64()?, body.varuint32()?));
    }
    body.is_empty().then_some((time, found, flags))
}
