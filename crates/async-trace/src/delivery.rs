//! When the threads handed over their buffers, and why: what a recording proves of its own completeness.
//!
//! Measured on .NET 11.0.0: a thread hands its buffer over when it is full, or when what the profiler is asked for has
//! changed (at the thread's next record). Otherwise somebody else does it: once a second the runtime takes the buffers
//! of threads that wrote nothing for 250 ms, and a program that asks for a flush takes those of all threads at once.

use crate::batch::{Header, Outer};
use std::collections::{BTreeMap, BTreeSet};

/// Bytes that the largest record needs: what is emptier than this was not full.
const LARGEST_RECORD: u32 = 2_650;
/// Milliseconds within which a pass over all threads hands over the next buffer.
const NEXT_OF_PASS: u64 = 50;
/// Milliseconds without a record before the runtime takes a buffer; with some room for its clock.
const IDLE: u64 = 200;
/// Milliseconds from the start of a session to the first time that the runtime looks.
const FIRST_LOOK: u64 = 950;

/// A batch as it was handed over.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Delivery {
    context: u32,
    /// By the thread whose records they are.
    own: bool,
    /// The thread that handed it over.
    by: u64,
    size: u32,
    records: u32,
    start: u64,
    end: u64,
    time: u64,
}

/// Every thread handed over what it had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Flush {
    /// When the first one did.
    pub(crate) first: u64,
    /// When the last one did.
    pub(crate) last: u64,
    /// Buffers of threads that were at work.
    pub(crate) young: u32,
    /// Whether it was too early for the runtime's own look at idle threads, if the profiler had not been on before.
    pub(crate) early: bool,
}

/// All batches of a session, in the order in which they were handed over.
#[derive(Clone, Debug, Default)]
pub(crate) struct Deliveries {
    all: Vec<Delivery>,
}

/// What the search for flushes has to know of the session.
#[derive(Clone, Copy, Debug)]
pub(crate) struct About<'a> {
    /// Ticks in a millisecond.
    pub(crate) millisecond: u64,
    /// When the session began.
    pub(crate) start: u64,
    /// When what the profiler is asked for changed, in order.
    pub(crate) changes: &'a [u64],
    pub(crate) buffer: u32,
}

impl Deliveries {
    pub(crate) fn add(&mut self, header: &Header, outer: &Outer<'_>) {
        self.all.push(Delivery {
            context: header.context,
            own: header.os_thread == outer.thread,
            by: outer.thread,
            size: u32::try_from(outer.payload.len()).unwrap_or(u32::MAX),
            records: header.records,
            start: header.start,
            end: header.end,
            time: outer.time,
        });
    }

    pub(crate) fn sort(&mut self) {
        self.all.sort_by_key(|d| d.time);
    }

    /// How old the oldest record of a buffer was when it was handed over, at most.
    pub(crate) fn oldest(&self) -> u64 {
        let ages = self.all.iter().map(|d| d.time.saturating_sub(d.start));
        ages.max().unwrap_or(0)
    }

    /// Up to when every thread had handed over what it wrote, by what is in the file at `time`.
    pub(crate) fn complete_at(&self, time: u64) -> u64 {
        let mut last: BTreeMap<u32, u64> = BTreeMap::new();
        for d in self.all.iter().take_while(|d| d.time <= time) {
            last.insert(d.context, d.time);
        }
        last.into_values().min().unwrap_or(0).min(time)
    }

    /// Times at which all threads handed over what they had because the program asked for it.
    pub(crate) fn flushes(&self, about: About<'_>) -> Vec<Flush> {
        let mut by_thread: BTreeMap<u64, Vec<&Delivery>> = BTreeMap::new();
        for d in &self.all {
            by_thread.entry(d.by).or_default().push(d);
        }
        let mut found = Vec::new();
        for deliveries in by_thread.values() {
            let mut pass: Vec<&Delivery> = Vec::new();
            let mut contexts = BTreeSet::new();
            for d in deliveries {
                let goes_on = pass.last().is_some_and(|last| {
                    d.time.saturating_sub(last.time) <= about.time(NEXT_OF_PASS)
                        && !contexts.contains(&d.context)
                });
                if !goes_on {
                    found.extend(about.flush(&pass));
                    pass.clear();
                    contexts.clear();
                }
                if about.may_be_of_a_flush(d) {
                    pass.push(d);
                    contexts.insert(d.context);
                } else {
                    found.extend(about.flush(&pass));
                    pass.clear();
                    contexts.clear();
                }
            }
            found.extend(about.flush(&pass));
        }
        let earliest = self.earliest_starts();
        found.retain(|flush| !self.contradict(flush, &earliest));
        found.sort_by_key(|flush| flush.first);
        found
    }

    /// Of each delivery and those behind it, the earliest start.
    fn earliest_starts(&self) -> Vec<u64> {
        let mut earliest: Vec<u64> = self.all.iter().map(|d| d.start).collect();
        let mut least = u64::MAX;
        for start in earliest.iter_mut().rev() {
            least = least.min(*start);
            *start = least;
        }
        earliest
    }

    /// Whether a buffer goes on through a flush.
    fn contradict(&self, flush: &Flush, earliest: &[u64]) -> bool {
        let behind = self.all.partition_point(|d| d.time <= flush.last);
        earliest
            .get(behind)
            .is_some_and(|start| *start < flush.first)
    }
}

impl About<'_> {
    fn time(&self, milliseconds: u64) -> u64 {
        self.millisecond.saturating_mul(milliseconds)
    }

    /// Whether it was handed over for no reason of its own thread.
    fn may_be_of_a_flush(&self, d: &Delivery) -> bool {
        if !d.own {
            return true;
        }
        let next = self.changes.partition_point(|change| *change < d.start);
        let changed = self
            .changes
            .get(next)
            .is_some_and(|change| *change <= d.time);
        d.records > 1 && d.size.saturating_add(LARGEST_RECORD) < self.buffer && !changed
    }

    fn flush(&self, pass: &[&Delivery]) -> Option<Flush> {
        let (first, last) = (pass.first()?.time, pass.last()?.time);
        let young = pass
            .iter()
            .filter(|d| d.time.saturating_sub(d.end) < self.time(IDLE));
        let young = u32::try_from(young.count()).unwrap_or(u32::MAX);
        let early = first < self.start.saturating_add(self.time(FIRST_LOOK));
        // one young buffer of another thread may be that of a thread which has just ended
        let single = young == 1 && pass.iter().all(|d| d.own);
        (young > 1 || single || early).then_some(Flush {
            first,
            last,
            young,
            early,
        })
    }
}

impl Flush {
    /// Whether the runtime cannot have done it by itself. Numbers of dispatchers that begin with 1 show that the profiler
    /// was not on before this session.
    pub(crate) fn is_asked_for(&self, first_session: bool) -> bool {
        self.young > 0 || (self.early && first_session)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000;

    fn delivery(context: u32, by: u64, times: [u64; 3]) -> Delivery {
        let [start, end, time] = times.map(|t| t * MS);
        Delivery {
            context,
            own: u64::from(context) == by,
            by,
            size: 500,
            records: 7,
            start,
            end,
            time,
        }
    }

    fn flushes(all: &[Delivery], changes: &[u64]) -> Vec<u64> {
        let mut deliveries = Deliveries { all: all.to_vec() };
        deliveries.sort();
        let about = About {
            millisecond: MS,
            start: 0,
            changes,
            buffer: 16_128,
        };
        let found = deliveries.flushes(about);
        found.iter().map(|f| f.first / MS).collect()
    }

    #[test]
    fn buffers_of_busy_threads_are_taken_by_others_only_for_a_flush() {
        let flush = [
            delivery(1, 3, [10, 1_995, 2_000]),
            delivery(2, 3, [20, 1_990, 2_001]),
            delivery(3, 3, [30, 1_000, 2_002]),
        ];
        assert_eq!(flushes(&flush, &[]), [2_000]);
        let look = [
            delivery(1, 3, [10, 1_700, 2_000]),
            delivery(2, 3, [20, 1_600, 2_001]),
        ];
        assert!(flushes(&look, &[]).is_empty(), "idle ones");
        let ended = [look[0], delivery(2, 3, [20, 1_990, 2_001])];
        assert!(flushes(&ended, &[]).is_empty(), "a thread that ended");
        let early = [delivery(1, 3, [10, 100, 400])];
        assert_eq!(flushes(&early, &[]), [400]);
    }

    #[test]
    fn a_thread_hands_over_its_own_when_full_or_when_asked_for_something_else() {
        let own = delivery(1, 1, [10, 1_999, 2_000]);
        assert_eq!(flushes(&[own], &[]), [2_000]);
        assert!(flushes(&[own], &[1_999 * MS]).is_empty());
        let full = Delivery {
            size: 16_000,
            ..own
        };
        assert!(flushes(&[full], &[]).is_empty());
        let rest = Delivery { records: 1, ..own };
        assert!(flushes(&[rest], &[]).is_empty());
    }

    #[test]
    fn a_buffer_that_goes_on_shows_that_there_was_no_flush() {
        let all = [
            delivery(1, 3, [10, 1_995, 2_000]),
            delivery(2, 3, [20, 1_990, 2_001]),
            Delivery {
                size: 16_000,
                ..delivery(4, 4, [1_900, 2_400, 2_500])
            },
        ];
        assert!(flushes(&all, &[]).is_empty());
    }

    #[test]
    fn threads_are_complete_up_to_the_one_that_is_longest_behind() {
        let mut all = Deliveries {
            all: vec![
                delivery(1, 1, [10, 20, 21]),
                delivery(2, 2, [10, 30, 31]),
                delivery(1, 1, [40, 50, 51]),
            ],
        };
        all.sort();
        assert_eq!(all.complete_at(20 * MS), 0);
        assert_eq!(all.complete_at(40 * MS), 21 * MS);
        assert_eq!(all.complete_at(60 * MS), 31 * MS);
        assert_eq!(all.oldest(), 21 * MS);
    }
}
