//! From the events of the provider to one account of what happened: batches in the order of each thread context, records
//! of all of them in the order of time, one batch of each context decoded at a time.

use crate::account::{AsyncTrace, ContextFacts};
use crate::batch::{self, Decoded, Header, Metadata, Outer, Record, SyncClock};
use crate::books::Books;
use crate::delivery::Deliveries;
use crate::dispatchers::{Left, Moment, State};
use crate::frames::{FrameLists, cut_at};
use crate::identities::{Breach, Identity, RecordRef};
use crate::reject::{Rejected, Rejection};
use crate::spans::SpanSink;
use crate::thread::Thread;
use crate::wire::{Family, Kind, Manifest};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};

/// Rejected batches that are kept one by one; all are counted.
const KEPT_REJECTED: usize = 100;

/// Takes the provider's events in the order of the file.
#[derive(Debug, Default)]
pub struct Recording<'a> {
    batches: Vec<(Header, Outer<'a>)>,
    rejected: Rejections,
    metadata: Vec<Metadata>,
    outer_events: u64,
    preview: bool,
}

#[derive(Debug, Default)]
struct Rejections {
    count: u64,
    /// When the first one was handed over.
    since: Option<u64>,
    first: Vec<Rejected>,
}

impl Rejections {
    fn add(&mut self, rejected: Rejected, time: u64) {
        self.count = self.count.saturating_add(1);
        self.since = Some(self.since.map_or(time, |since| since.min(time)));
        if self.first.len() < KEPT_REJECTED {
            self.first.push(rejected);
        }
    }
}

impl<'a> Recording<'a> {
    /// One with nothing in it.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the next event of the provider.
    pub fn push(&mut self, outer: Outer<'a>) {
        self.outer_events = self.outer_events.saturating_add(1);
        match batch::header(&outer) {
            Ok(header) => {
                self.note_metadata(&outer);
                self.batches.push((header, outer));
            }
            Err(rejected) => self.rejected.add(rejected, outer.time),
        }
    }

    /// Takes an event of a preview of .NET 11, whose form is not supported.
    pub fn refuse_preview(&mut self, offset: u64) {
        self.outer_events = self.outer_events.saturating_add(1);
        self.rejected.add(preview(offset), 0);
    }

    /// Whether there was no event at all.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.outer_events == 0
    }

    /// Metadata stands alone in its batch, and everything else is read by its table.
    fn note_metadata(&mut self, outer: &Outer<'a>) {
        if batch::first_id(outer) != Some(Kind::AsyncProfilerMetadata.id()) {
            self.preview |= self.metadata.is_empty() && batch::is_preview(outer);
            return;
        }
        let mut decoded = Decoded::default();
        let mut frames = FrameLists::default();
        if batch::records(outer, &Manifest::default(), &mut frames, &mut decoded).is_ok() {
            self.metadata.append(&mut decoded.metadata);
        }
    }

    /// Decodes everything.
    #[must_use]
    pub fn finish(self) -> AsyncTrace<'a> {
        self.follow(None)
    }

    /// Decodes everything, and gives each activation to the sink.
    #[must_use]
    pub fn finish_with(self, sink: &mut dyn SpanSink) -> AsyncTrace<'a> {
        self.follow(Some(sink))
    }

    fn follow(self, mut sink: Option<&mut dyn SpanSink>) -> AsyncTrace<'a> {
        let manifest = self
            .metadata
            .first()
            .map_or_else(Manifest::default, |m| m.manifest.clone());
        let began = self.metadata.iter().map(|m| m.time).min();
        let mut run = Run {
            manifest,
            rejected: self.rejected,
            ..Run::default()
        };
        run.books.spans.wanted = sink.is_some();
        run.books.cut_at = cut_at(self.metadata.iter().map(|m| m.buffer_size).min());
        let is_preview = self.preview && self.metadata.is_empty();
        let mut queues: BTreeMap<u32, Vec<(Header, Outer<'a>)>> = BTreeMap::new();
        for (header, outer) in self.batches {
            if is_preview {
                run.rejected.add(preview(outer.offset), outer.time);
            } else if began.is_some_and(|began| header.end < began) {
                run.leftover(&outer);
            } else {
                run.deliveries.add(&header, &outer);
                queues
                    .entry(header.context)
                    .or_default()
                    .push((header, outer));
            }
        }
        run.deliveries.sort();
        let times = queues.values().flatten().map(|(header, _)| header);
        let range = times.fold(None, |range: Option<(u64, u64)>, h| {
            let (first, last) = range.unwrap_or((h.start, h.end));
            Some((first.min(h.start), last.max(h.end)))
        });
        if let (Some(sink), Some((first, last))) = (&mut sink, range) {
            sink.range(first, last);
        }
        run.merge(queues, sink);
        run.finish(self.metadata, self.outer_events)
    }
}

fn preview(offset: u64) -> Rejected {
    Rejected {
        offset,
        at: offset,
        record: None,
        reason: Rejection::Preview,
    }
}

/// A context whose records are being merged.
#[derive(Debug, Default)]
struct Source<'a> {
    context: u32,
    waiting: VecDeque<(Header, Outer<'a>)>,
    os_thread: u64,
    batch: u64,
    records: Vec<Record>,
    next: usize,
    thread: Thread,
    end: u64,
}

/// Order of records: by time; resumes behind everything else of an instant, since what they resume was recorded before it
/// was queued; contexts by their numbers.
type Key = (u64, bool, usize);

impl Source<'_> {
    /// Time and rank of the next record; that of the batch's start when it is not decoded yet.
    fn key(&self, index: usize) -> Option<Key> {
        match self.records.get(self.next) {
            Some(record) => Some((record.time, record.kind.is_some_and(Kind::is_resume), index)),
            None => Some((self.waiting.front()?.0.start, false, index)),
        }
    }
}

#[derive(Debug, Default)]
struct Run<'a> {
    manifest: Manifest,
    books: Books<'a>,
    decoded: Decoded,
    rejected: Rejections,
    deliveries: Deliveries,
    batches: u64,
    by_id: BTreeMap<u8, u64>,
    clocks: Vec<SyncClock>,
    contexts: BTreeMap<u32, ContextFacts>,
    leftover_batches: u64,
    leftover_records: u64,
    overlapping_batches: u64,
    span: Option<(u64, u64)>,
    has_methods: bool,
}

impl<'a> Run<'a> {
    /// Reads a batch into `self.decoded` and counts it.
    fn decode(&mut self, outer: &Outer<'a>) -> Option<Header> {
        let read = batch::records(
            outer,
            &self.manifest,
            &mut self.books.frames,
            &mut self.decoded,
        );
        let header = match read {
            Ok(header) => header,
            Err(rejected) => {
                self.rejected.add(rejected, outer.time);
                return None;
            }
        };
        self.batches = self.batches.saturating_add(1);
        let mut counts = [0_u64; 256];
        for record in &self.decoded.records {
            if let Some(count) = counts.get_mut(usize::from(record.id)) {
                *count = count.saturating_add(1);
            }
        }
        for (id, count) in (0..=u8::MAX).zip(counts).filter(|(_, count)| *count > 0) {
            let sum = self.by_id.entry(id).or_default();
            *sum = sum.saturating_add(count);
        }
        let facts = self.contexts.entry(header.context).or_default();
        facts.os_thread = header.os_thread;
        facts.batches = facts.batches.saturating_add(1);
        facts.records = facts.records.saturating_add(header.records.into());
        facts.end = facts.end.max(header.end);
        Some(header)
    }

    fn leftover(&mut self, outer: &Outer<'a>) {
        if let Some(header) = self.decode(outer) {
            self.leftover_batches = self.leftover_batches.saturating_add(1);
            let records = u64::from(header.records);
            self.leftover_records = self.leftover_records.saturating_add(records);
            for id in self.decoded.records.iter().filter_map(|r| r.frames) {
                self.books.frames.used(id);
            }
        }
    }

    fn merge(
        &mut self,
        queues: BTreeMap<u32, Vec<(Header, Outer<'a>)>>,
        mut sink: Option<&mut dyn SpanSink>,
    ) {
        let mut sources: Vec<Source<'a>> = queues
            .into_iter()
            .map(|(context, mut batches)| {
                // stable: batches of the same times stay in the order of the file
                batches.sort_by_key(|(header, _)| (header.start, header.end));
                Source {
                    context,
                    waiting: batches.into(),
                    ..Source::default()
                }
            })
            .collect();
        let mut heap: BinaryHeap<Reverse<Key>> = sources
            .iter()
            .enumerate()
            .filter_map(|(index, source)| source.key(index).map(Reverse))
            .collect();
        while let Some(Reverse((_, _, index))) = heap.pop() {
            let limit = heap.peek().map(|Reverse(key)| *key);
            let Some(source) = sources.get_mut(index) else {
                continue;
            };
            self.advance(source, index, limit);
            heap.extend(source.key(index).map(Reverse));
            if let Some(sink) = &mut sink {
                self.books.spans.give(&mut **sink, &self.books.frames);
            }
        }
        for source in &mut sources {
            let facts = self.contexts.entry(source.context).or_default();
            facts.open = source.thread.open();
            source.thread.finish(&mut self.books);
        }
        if let Some(sink) = &mut sink {
            self.books.spans.give(&mut **sink, &self.books.frames);
        }
    }

    /// Follows the records of one context as long as they come before those of all others.
    fn advance(&mut self, source: &mut Source<'a>, index: usize, limit: Option<Key>) {
        loop {
            if source.next >= source.records.len() && !self.load(source) {
                return;
            }
            if source
                .key(index)
                .is_none_or(|key| limit.is_some_and(|limit| key > limit))
            {
                return;
            }
            let Some(record) = source.records.get(source.next) else {
                continue;
            };
            let at = Moment {
                time: record.time,
                record: RecordRef {
                    batch: source.batch,
                    index: u32::try_from(source.next).unwrap_or(u32::MAX),
                },
                os_thread: source.os_thread,
            };
            source.next = source.next.saturating_add(1);
            source.thread.record(record, at, &mut self.books);
        }
    }

    /// Decodes the next batch of a context; `false` when there is none.
    fn load(&mut self, source: &mut Source<'a>) -> bool {
        source.records.clear();
        source.next = 0;
        let Some((header, outer)) = source.waiting.pop_front() else {
            // nothing will come: a context that is through needs no room
            source.records = Vec::new();
            return false;
        };
        if self.decode(&outer).is_none() {
            let at = Moment {
                time: header.start,
                record: RecordRef {
                    batch: outer.offset,
                    index: 0,
                },
                os_thread: header.os_thread,
            };
            // what the batch said is not known, so neither is what runs after it
            source.thread.clear(at, &mut self.books);
            return true;
        }
        if header.start < source.end {
            self.overlapping_batches = self.overlapping_batches.saturating_add(1);
        }
        source.end = header.end;
        source.os_thread = header.os_thread;
        source.batch = outer.offset;
        std::mem::swap(&mut source.records, &mut self.decoded.records);
        self.clocks.append(&mut self.decoded.clocks);
        let (first, last) = self.span.unwrap_or((header.start, header.end));
        self.span = Some((first.min(header.start), last.max(header.end)));
        true
    }

    fn finish(mut self, metadata: Vec<Metadata>, outer_events: u64) -> AsyncTrace<'a> {
        let count = |kind: Kind| self.by_id.get(&kind.id()).copied().unwrap_or(0);
        self.has_methods = count(Kind::ResumeRuntimeAsyncMethod) > 0
            && count(Kind::CompleteRuntimeAsyncMethod) > 0;
        let (sums, pairs) = (resume_sums(&self), pairs(&self));
        let mut books = self.books;
        for (holds, family, identity) in sums.into_iter().chain(pairs) {
            let breach = Breach {
                identity,
                family,
                dispatcher: 0,
                time: None,
                record: None,
            };
            books.identities.check(holds, breach);
        }
        let has_callstacks = count(Kind::ResumeRuntimeAsyncCallstack) > 0;
        books.identities.drop_rules(|i| {
            (i.needs_methods() && !self.has_methods) || (i.needs_callstacks() && !has_callstacks)
        });
        let Left {
            dispatchers,
            ended,
            totals,
            fork_depths,
            not_followed,
        } = books.dispatchers.finish(&mut books.identities);
        AsyncTrace {
            outer_events,
            batches: self.batches,
            rejected: self.rejected.count,
            rejections: self.rejected.first,
            by_id: self.by_id,
            metadata,
            clocks: self.clocks,
            contexts: self.contexts,
            leftover_batches: self.leftover_batches,
            leftover_records: self.leftover_records,
            overlapping_batches: self.overlapping_batches,
            frames: books.frames,
            activations: books.activations.counts(),
            totals,
            fork_depths,
            dispatchers,
            ended,
            not_followed,
            orphans: books.orphans,
            gaps: books.gaps,
            deliveries: self.deliveries,
            rejected_since: self.rejected.since,
            lowest_created: books.lowest_created,
            highest_created: books.highest_created,
            identities: books.identities,
            span: self.span,
        }
    }
}

type Sum = (bool, Family, Identity);

/// Resumes against suspensions, ends and what is open, of each family that has resumes.
fn resume_sums(run: &Run<'_>) -> Vec<Sum> {
    let kinds = [
        (
            Family::RuntimeAsync,
            Kind::ResumeRuntimeAsyncContext,
            Kind::SuspendRuntimeAsyncContext,
            Kind::CompleteRuntimeAsyncContext,
        ),
        (
            Family::StateMachine,
            Kind::ResumeStateMachineAsyncContext,
            Kind::SuspendStateMachineAsyncContext,
            Kind::CompleteStateMachineAsyncContext,
        ),
    ];
    let count = |kind: Kind| run.by_id.get(&kind.id()).copied().unwrap_or(0);
    let sums = kinds
        .into_iter()
        .filter(|(_, resume, ..)| count(*resume) > 0);
    sums.map(|(family, resume, suspend, complete)| {
        let still = [State::Running, State::Unknown]
            .map(|how| run.books.activations.count(family, how))
            .into_iter()
            .fold(0_u64, u64::saturating_add);
        let ends = count(suspend)
            .saturating_add(count(complete))
            .saturating_add(still);
        (count(resume) == ends, family, Identity::ResumeSum)
    })
    .collect()
}

/// Context records against call stack records of runtime-async, where the session recorded both.
fn pairs(run: &Run<'_>) -> Vec<Sum> {
    let pairs = [
        (
            Kind::CreateRuntimeAsyncContext,
            Kind::CreateRuntimeAsyncCallstack,
        ),
        (
            Kind::ResumeRuntimeAsyncContext,
            Kind::ResumeRuntimeAsyncCallstack,
        ),
        (
            Kind::SuspendRuntimeAsyncContext,
            Kind::SuspendRuntimeAsyncCallstack,
        ),
    ];
    let count = |kind: Kind| run.by_id.get(&kind.id()).copied().unwrap_or(0);
    pairs
        .into_iter()
        .map(|(context, stack)| (count(context), count(stack)))
        .filter(|(contexts, stacks)| *contexts > 0 && *stacks > 0)
        .map(|(contexts, stacks)| {
            (
                contexts == stacks,
                Family::RuntimeAsync,
                Identity::CallstackPairs,
            )
        })
        .collect()
}
