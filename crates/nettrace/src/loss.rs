//! Events that the writer had no room for, from the sequence numbers.

use rustc_hash::FxHashMap;

/// Threads whose sequence is kept. A file may name any number of them.
const MAX_THREADS: usize = 1 << 20;
/// Differences from here on are negative ones.
const NEGATIVE: u32 = 1 << 31;

/// Events that are not in the file although the process emitted them.
///
/// Every thread numbers its events, those included that found no room in the buffers of the session. Gaps between the
/// numbers, and between the last number and what a sequence point lists, are exact. Events of damaged blocks are
/// gaps too. That nothing is lost here says nothing of records that the program itself buffers and never emits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lost {
    /// Events in gaps.
    pub events: u64,
    /// Threads with at least one gap.
    pub threads: u64,
    /// Places where a thread's numbers go back, not to 1: something is lost, how much cannot be told.
    pub unknown: u64,
    /// When a thread wrote its last event before one that is missing, in ticks: the earliest of all; 0 when the first
    /// events of a thread are missing.
    pub since: Option<u64>,
}

/// What is known of a thread.
#[derive(Clone, Copy, Debug, Default)]
struct Sequence {
    thread: u64,
    last: u32,
    /// When its last event was written.
    time: u64,
    gaps: bool,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Losses {
    threads: FxHashMap<u64, Sequence>,
    /// The thread of the last event, which stands in the map as it was before: most events follow one of their own
    /// thread.
    current: Option<Sequence>,
    lost: Lost,
    /// The first places where events are missing, as times between which they were written.
    places: Vec<(u64, u64)>,
}

/// Places of losses that are kept.
const MAX_PLACES: usize = 1_000;

impl Losses {
    pub(crate) fn lost(&self) -> Lost {
        self.lost
    }

    pub(crate) fn places(&self) -> &[(u64, u64)] {
        &self.places
    }

    /// An event of a thread.
    pub(crate) fn event(&mut self, thread: u64, sequence: u32, time: u64) {
        // a thread that died may leave its id to a new one, which counts from 1 again
        let expected = sequence.wrapping_sub(1);
        self.follow(thread, sequence, expected, sequence == 1, time);
        if let Some(state) = &mut self.current {
            state.time = time;
        }
    }

    /// The number that a thread has reached at least, by a sequence point.
    pub(crate) fn reached(&mut self, thread: u64, sequence: u32, time: u64) {
        self.follow(thread, sequence, sequence, sequence == 0, time);
    }

    /// A thread ended; its id or index may be used again.
    pub(crate) fn forget(&mut self, thread: u64) {
        self.threads.remove(&thread);
        self.current = self.current.filter(|current| current.thread != thread);
    }

    pub(crate) fn forget_all(&mut self) {
        self.threads.clear();
        self.current = None;
    }

    #[inline]
    fn follow(
        &mut self,
        thread: u64,
        sequence: u32,
        expected_last: u32,
        may_restart: bool,
        time: u64,
    ) {
        if self.current.is_none_or(|current| current.thread != thread) {
            self.change(thread);
        }
        let Some(state) = &mut self.current else {
            return;
        };
        let gap = expected_last.wrapping_sub(state.last);
        state.last = sequence;
        if gap == 0 {
            return;
        }
        if gap < NEGATIVE || !may_restart {
            let since = self
                .lost
                .since
                .map_or(state.time, |since| since.min(state.time));
            self.lost.since = Some(since);
            if self.places.len() < MAX_PLACES {
                self.places.push((state.time, time));
            }
        }
        if gap < NEGATIVE {
            let is_first = !state.gaps;
            state.gaps = true;
            self.lost.events = self.lost.events.saturating_add(gap.into());
            self.lost.threads = self.lost.threads.saturating_add(is_first.into());
        } else if !may_restart {
            self.lost.unknown = self.lost.unknown.saturating_add(1);
        }
    }

    /// Makes `thread` the current one.
    fn change(&mut self, thread: u64) {
        if let Some(left) = self.current.take() {
            self.threads.insert(left.thread, left);
        }
        let new = || Sequence {
            thread,
            ..Sequence::default()
        };
        let known = self.threads.get(&thread).copied();
        self.current = known.or_else(|| (self.threads.len() < MAX_THREADS).then(new));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lost(of: impl FnOnce(&mut Losses)) -> (u64, u64, u64) {
        let mut losses = Losses::default();
        of(&mut losses);
        let lost = losses.lost();
        (lost.events, lost.threads, lost.unknown)
    }

    #[test]
    fn gaps_are_counted_per_thread() {
        let none = lost(|l| {
            l.event(1, 1, 7);
            l.event(2, 1, 7);
            l.event(1, 2, 7);
            l.reached(1, 2, 9);
        });
        assert_eq!(none, (0, 0, 0));
        let some = lost(|l| {
            l.event(1, 3, 7);
            l.event(1, 5, 7);
            l.event(2, 1, 7);
            l.reached(2, 10, 9);
            l.reached(3, 0, 9);
        });
        assert_eq!(some, (2 + 1 + 9, 2, 0));
    }

    #[test]
    fn numbers_wrap_and_ids_are_used_again() {
        let wrapped = lost(|l| {
            l.reached(1, u32::MAX / 2, 9);
            l.reached(1, u32::MAX - 1, 9);
            l.event(1, u32::MAX, 7);
            l.event(1, 0, 7);
            l.event(1, 1, 7);
        });
        assert_eq!(wrapped, (u64::from(u32::MAX) - 1, 1, 0));
        let again = lost(|l| {
            l.event(1, 1, 7);
            l.event(1, 2, 7);
            l.event(1, 1, 7);
            l.event(1, 2, 7);
        });
        assert_eq!(again, (0, 0, 0));
        let back = lost(|l| {
            l.event(1, 1, 7);
            l.event(1, 2, 7);
            l.event(1, 2, 7);
        });
        assert_eq!(back, (0, 0, 1));
    }

    #[test]
    fn the_last_event_before_a_gap_is_known() {
        let since = |of: &dyn Fn(&mut Losses)| {
            let mut losses = Losses::default();
            of(&mut losses);
            losses.lost().since
        };
        assert_eq!(since(&|l| l.event(1, 1, 10)), None);
        let gap = |l: &mut Losses| {
            l.event(1, 1, 30);
            l.event(2, 1, 10);
            l.event(2, 2, 20);
            l.event(2, 4, 40);
            l.reached(1, 5, 9);
        };
        assert_eq!(since(&gap), Some(20));
        assert_eq!(since(&|l| l.event(1, 2, 10)), Some(0));
    }
}
