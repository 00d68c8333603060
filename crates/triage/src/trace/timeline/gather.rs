//! Activations as they come: counted for each operation, kept one by one as far as there is room, and added up else.

use asynctriage_async_trace::{Dispatcher, Family, FrameListId, FrameLists, Span, SpanSink, State};
use rustc_hash::FxHashMap;

/// Activations that are kept one by one: the longest when there are more.
const MAX_SPANS: usize = 80_000;
/// Equal parts of the recording for which activations are added up.
const PARTS: usize = 4_096;
/// Operations that are counted one by one.
const MAX_OPERATIONS: usize = 2_000_000;
/// Threads that are shown.
const MAX_THREADS: usize = 512;

pub(super) type Key = (Family, u64);

/// An operation as its activations show it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Operation {
    pub(super) key: Key,
    parent: u64,
    pub(super) frames: Option<FrameListId>,
    /// When it was created or first seen, and last seen, in nanoseconds.
    pub(super) from: u64,
    pub(super) to: u64,
    pub(super) is_created: bool,
    pub(super) state: State,
    pub(super) activations: u64,
    pub(super) busy: u64,
}

/// An activation that is kept.
#[derive(Clone, Copy, Debug)]
pub(super) struct Kept {
    pub(super) thread: u32,
    pub(super) operation: Option<u32>,
    pub(super) from: u64,
    pub(super) to: Option<u64>,
    pub(super) state: State,
    pub(super) batch: u64,
    pub(super) index: u32,
}

/// What the activations of a recording give.
#[derive(Debug, Default)]
pub(super) struct Gathered {
    frequency: u64,
    first: u64,
    last: u64,
    threads: FxHashMap<u64, u32>,
    /// The threads by their places: number in the operating system, nanoseconds of each part.
    rows: Vec<(u64, Vec<u64>)>,
    places: FxHashMap<Key, u32>,
    pub(super) operations: Vec<Operation>,
    pub(super) more_operations: u64,
    pub(super) spans: Vec<Kept>,
    /// Activations that were added up, and the length from which they are kept.
    pub(super) added_up: u64,
    pub(super) shortest: u64,
}

impl Gathered {
    pub(super) fn new(frequency: u64) -> Self {
        Self {
            frequency,
            ..Self::default()
        }
    }

    /// Nanoseconds since the first record; within the recording.
    pub(super) fn nanos(&self, ticks: u64) -> u64 {
        let ticks = ticks.clamp(self.first, self.last.max(self.first));
        let elapsed = u128::from(ticks.saturating_sub(self.first)).saturating_mul(1_000_000_000);
        let nanos = elapsed.checked_div(self.frequency.into());
        nanos.map_or(0, |n| u64::try_from(n).unwrap_or(u64::MAX))
    }

    pub(super) fn end(&self) -> u64 {
        self.nanos(self.last)
    }

    /// Nanoseconds of each part.
    fn part(&self) -> u64 {
        let part = self.end().checked_div(PARTS as u64);
        part.unwrap_or(0).max(1)
    }

    pub(super) fn thread(&self, os_thread: u64) -> Option<u32> {
        self.threads.get(&os_thread).copied()
    }

    /// A chain that has not ended; it may never have run.
    pub(super) fn not_ended(&mut self, d: &Dispatcher) {
        let seen = d.created.or(d.resumed).or(d.stopped);
        let from = seen.map_or(0, |m| self.nanos(m.time));
        self.operation((d.family, d.id), || Operation {
            key: (d.family, d.id),
            parent: d.parent,
            frames: d.frames,
            from,
            to: from,
            is_created: d.created.is_some(),
            state: d.state,
            activations: 0,
            busy: 0,
        });
    }

    fn operation(&mut self, key: Key, new: impl FnOnce() -> Operation) -> Option<u32> {
        if let Some(place) = self.places.get(&key) {
            return Some(*place);
        }
        if self.operations.len() >= MAX_OPERATIONS {
            self.more_operations = self.more_operations.saturating_add(1);
            return None;
        }
        let place = u32::try_from(self.operations.len()).ok()?;
        self.operations.push(new());
        self.places.insert(key, place);
        Some(place)
    }

    /// The place of the operation that created each.
    pub(super) fn parents(&self) -> Vec<Option<usize>> {
        let of = |o: &Operation| {
            // both families may use one number; the one of the same family is tried first
            let (family, _) = o.key;
            let mut families = Family::ALL;
            families.sort_by_key(|f| *f != family);
            let mut found = families
                .iter()
                .filter_map(|f| self.places.get(&(*f, o.parent)));
            let place = found.find(|_| o.parent != 0)?;
            usize::try_from(*place).ok()
        };
        self.operations.iter().map(of).collect()
    }

    /// The threads with how busy each part of them is by what was added up, up to 255.
    pub(super) fn into_threads(self) -> impl Iterator<Item = (u64, Vec<u8>)> {
        let part = self.part();
        self.rows.into_iter().map(move |(os_thread, parts)| {
            let share = |nanos: u64| match nanos {
                0 => 0,
                // what was there shows, however short
                n => {
                    let share = n.saturating_mul(255).checked_div(part).unwrap_or(0);
                    u8::try_from(share.max(8)).unwrap_or(u8::MAX)
                }
            };
            (os_thread, parts.into_iter().map(share).collect())
        })
    }

    fn row(&mut self, os_thread: u64) -> Option<u32> {
        if let Some(row) = self.threads.get(&os_thread) {
            return Some(*row);
        }
        let row = u32::try_from(self.rows.len()).ok()?;
        if self.rows.len() >= MAX_THREADS {
            return None;
        }
        self.rows.push((os_thread, vec![0; PARTS]));
        self.threads.insert(os_thread, row);
        Some(row)
    }

    fn add_up(&mut self, span: &Kept) {
        self.added_up = self.added_up.saturating_add(1);
        let part = self.part();
        let Some((_, parts)) = self.rows.get_mut(span.thread as usize) else {
            return;
        };
        let to = span
            .to
            .unwrap_or(span.from)
            .max(span.from.saturating_add(1));
        let index = |at: u64| at.checked_div(part).unwrap_or(0);
        let (first, last) = (index(span.from), index(to.saturating_sub(1)));
        let most = PARTS.saturating_sub(1) as u64;
        for index in first.min(most)..=last.min(most) {
            let (begin, end) = (
                index.saturating_mul(part),
                index.saturating_add(1).saturating_mul(part),
            );
            let covered = to.min(end).saturating_sub(span.from.max(begin)).max(1);
            if let Some(sum) = usize::try_from(index).ok().and_then(|i| parts.get_mut(i)) {
                *sum = sum.saturating_add(covered);
            }
        }
    }

    fn keep(&mut self, span: Kept) {
        let length = |s: &Kept| s.to.map_or(u64::MAX, |to| to.saturating_sub(s.from));
        if length(&span) < self.shortest {
            return self.add_up(&span);
        }
        self.spans.push(span);
        if self.spans.len() > MAX_SPANS.saturating_mul(2) {
            self.drop_short();
        }
    }

    /// Keeps the longest, as many as there is room for.
    fn drop_short(&mut self) {
        let length = |s: &Kept| s.to.map_or(u64::MAX, |to| to.saturating_sub(s.from));
        let mut lengths: Vec<u64> = self.spans.iter().map(length).collect();
        let place = lengths.len().saturating_sub(MAX_SPANS);
        if place == 0 {
            return;
        }
        let (_, shortest, _) = lengths.select_nth_unstable(place);
        self.shortest = shortest.saturating_add(1);
        let all = std::mem::take(&mut self.spans).into_iter();
        let (kept, short): (Vec<Kept>, Vec<Kept>) = all.partition(|s| length(s) >= self.shortest);
        self.spans = kept;
        for span in &short {
            self.add_up(span);
        }
    }

    /// No more come.
    pub(super) fn finish(&mut self) {
        self.drop_short();
    }
}

impl SpanSink for Gathered {
    fn range(&mut self, first: u64, last: u64) {
        (self.first, self.last) = (first, last);
    }

    fn span(&mut self, span: &Span, _: &FrameLists<'_>) {
        let Some(thread) = self.row(span.began.os_thread) else {
            self.added_up = self.added_up.saturating_add(1);
            return;
        };
        let from = self.nanos(span.began.time);
        let to = span.ended.map(|m| self.nanos(m.time));
        let created = span.created.map(|ticks| self.nanos(ticks));
        let key = (span.family, span.dispatcher);
        let operation = self.operation(key, || Operation {
            key,
            parent: span.parent,
            frames: span.frames,
            from: created.unwrap_or(from).min(from),
            to: from,
            is_created: created.is_some(),
            state: span.state,
            activations: 0,
            busy: 0,
        });
        let known = operation.and_then(|place| self.operations.get_mut(place as usize));
        if let Some(o) = known {
            o.activations = o.activations.saturating_add(1);
            let until = to.unwrap_or(from);
            o.busy = o.busy.saturating_add(until.saturating_sub(from));
            o.frames = span.frames.or(o.frames);
            if until >= o.to {
                (o.to, o.state) = (until, span.state);
            }
        }
        self.keep(Kept {
            thread,
            operation,
            from,
            to,
            state: span.state,
            batch: span.began.record.batch,
            index: span.began.record.index,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(from: u64, to: u64) -> Kept {
        Kept {
            thread: 0,
            operation: None,
            from,
            to: Some(to),
            state: State::Suspended,
            batch: 0,
            index: 0,
        }
    }

    #[test]
    fn what_has_no_room_is_added_up_where_it_was() {
        let mut all = Gathered::new(1_000_000_000);
        all.range(0, PARTS as u64 * 1_000);
        all.row(7);
        for _ in 0..=MAX_SPANS {
            all.keep(kept(2_500, 2_600));
        }
        all.keep(kept(4_000, 9_000));
        all.keep(kept(0, 100_000));
        all.finish();
        assert_eq!(
            (all.spans.len(), all.added_up, all.shortest),
            (2, MAX_SPANS as u64 + 1, 101)
        );
        let (thread, busy) = all.into_threads().next().unwrap();
        assert_eq!((thread, busy[1], busy[2], busy[3]), (7, 0, 255, 0));
    }

    #[test]
    fn times_are_within_the_recording() {
        let mut all = Gathered::new(1_000);
        all.range(100, 200);
        assert_eq!(
            (all.nanos(0), all.nanos(150), all.end()),
            (0, 50_000_000, 100_000_000)
        );
        assert_eq!(all.nanos(u64::MAX), all.end());
    }
}
