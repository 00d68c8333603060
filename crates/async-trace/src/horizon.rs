//! Up to when nothing is missing, and how sure that is.

use crate::account::AsyncTrace;
use crate::delivery::About;
use crate::{Dispatcher, State};

/// Milliseconds that threads need at most to hand over what they have: busy ones do it at their next record when what
/// the profiler is asked for changes, of idle ones the runtime takes it, once a second, after 250 ms (11.0.0).
const HAND_OVER: u64 = 1_300;
/// Milliseconds within which three other sessions end when `collect` asks all threads for their buffers.
const MARK: u64 = 1_500;
/// Milliseconds that a killed process may have kept events back for.
const IN_FLIGHT: u64 = 500;

/// What the file says of the session besides the profiler's records.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Session {
    /// Ticks in a second; 0 when unknown, then nothing is proved.
    pub frequency: u64,
    /// When it began, in ticks.
    pub start: u64,
    /// When it was ended, in ticks; its last event when the file does not say.
    pub end: Option<u64>,
    /// When other sessions of the process ended, in ticks.
    pub others: Vec<u64>,
    /// The last event of a thread before one of its events is missing, in ticks; the earliest of all threads.
    pub lost_since: Option<u64>,
    /// Whether the file is cut.
    pub truncated: bool,
    /// Whether parts of it could not be read.
    pub damaged: bool,
    /// Whether the process ran before the session began; none when the file does not show it.
    pub attached: Option<bool>,
}

/// Up to when nothing is missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Horizon {
    /// Ticks.
    pub time: u64,
    /// What it rests on.
    pub why: &'static str,
    /// What ends it, when something is known to be missing behind it.
    pub ended_by: Option<&'static str>,
}

/// How sure it is what a chain did in the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Standing {
    /// The recording proves it, as of its horizon.
    Proved,
    /// Nothing hints that anything is missing, but threads were not asked for their buffers.
    Likely,
    /// Its last record lies behind the horizon: it may have gone on, and ended.
    Unknown,
}

/// What a recording proves of the state of its chains.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Horizons {
    /// Up to when it is proved that nothing is missing; none when nothing proves it.
    pub proved: Option<Horizon>,
    /// Up to when nothing is likely to be missing; none when that is not later than what is proved.
    pub likely: Option<Horizon>,
}

const ASKED: &str =
    "all threads were asked for their buffers then, and had the time to hand them over";
const FLUSHED: &str = "the program made all threads hand over their buffers then";
const QUIET: &str = "no buffer of this recording was older when it was handed over; threads were not asked for theirs";

impl Horizons {
    /// Those of a recording.
    pub(crate) fn of(trace: &AsyncTrace<'_>, session: &Session) -> Self {
        let Some((first, _)) = trace.span.filter(|_| trace.has_transitions()) else {
            return Self::default();
        };
        let bounded = |horizon: Option<Horizon>| {
            let horizon = bounded(horizon?, trace, session);
            (horizon.time >= first).then_some(horizon)
        };
        let proved = bounded(proved(trace, session));
        let likely = bounded(quiet(trace, session));
        Self {
            proved,
            likely: likely.filter(|l| proved.is_none_or(|p| p.time < l.time)),
        }
    }

    /// How sure the state of a chain is that did not end.
    #[must_use]
    pub fn standing(&self, d: &Dispatcher) -> Standing {
        let within = |h: Option<Horizon>| h.is_some_and(|h| d.last() <= h.time);
        if d.state == State::Unknown || d.renamed {
            Standing::Unknown
        } else if within(self.proved) {
            Standing::Proved
        } else if within(self.likely) {
            Standing::Likely
        } else {
            Standing::Unknown
        }
    }
}

/// The latest time at which all threads handed over what they had.
fn proved(trace: &AsyncTrace<'_>, session: &Session) -> Option<Horizon> {
    let end = session.end?;
    let millisecond = session.frequency.checked_div(1_000).filter(|n| *n > 0)?;
    let time = |n: u64| millisecond.saturating_mul(n);
    let in_time = |asked: u64| asked.saturating_add(time(HAND_OVER)) <= end;
    // what the profiler is asked for has changed; the first record of the metadata is the session's own
    let mut changes: Vec<u64> = trace.metadata.iter().map(|m| m.time).collect();
    changes.sort_unstable();
    let later = changes.iter().skip(1).copied();
    let changed = later.filter(|t| in_time(*t)).max();
    let marks = session.others.windows(3).filter_map(|ends| match ends {
        [first, .., last] if last.saturating_sub(*first) <= time(MARK) => Some(*first),
        _ => None,
    });
    let marked = marks.filter(|t| in_time(*t)).max();
    let about = About {
        millisecond,
        start: session.start,
        changes: &changes,
        buffer: trace
            .metadata
            .iter()
            .map(|m| m.buffer_size)
            .min()
            .unwrap_or(0),
    };
    let first_session = trace.lowest_created == Some(1) && trace.leftover_batches == 0;
    let flushed = trace.deliveries.flushes(about).into_iter().filter(|flush| {
        let whole = !session.truncated || flush.last.saturating_add(time(IN_FLIGHT)) <= end;
        whole && flush.is_asked_for(first_session)
    });
    let flushed = flushed.map(|flush| flush.first).max();
    let horizon = |why| {
        move |time| Horizon {
            time,
            why,
            ended_by: None,
        }
    };
    let asked = changed.max(marked).map(horizon(ASKED));
    let flushed = flushed.map(horizon(FLUSHED));
    asked.into_iter().chain(flushed).max_by_key(|h| h.time)
}

/// So long before the end that no buffer was ever kept as long.
fn quiet(trace: &AsyncTrace<'_>, session: &Session) -> Option<Horizon> {
    let millisecond = session.frequency.checked_div(1_000).filter(|n| *n > 0)?;
    let kept = trace
        .deliveries
        .oldest()
        .max(millisecond.saturating_mul(HAND_OVER));
    let time = session.end?.checked_sub(kept)?;
    Some(Horizon {
        time,
        why: QUIET,
        ended_by: None,
    })
}

/// A horizon before everything that is known to be missing.
fn bounded(mut horizon: Horizon, trace: &AsyncTrace<'_>, session: &Session) -> Horizon {
    let mut bound = |time: u64, what: &'static str| {
        if time < horizon.time {
            (horizon.time, horizon.ended_by) = (time, Some(what));
        }
    };
    if session.damaged {
        bound(0, "parts of the file could not be read");
    }
    if let Some(since) = session.lost_since {
        bound(trace.deliveries.complete_at(since), "events were lost");
    }
    if let Some(since) = trace.rejected_since {
        bound(
            trace.deliveries.complete_at(since),
            "a batch was not believed",
        );
    }
    let time = horizon.time;
    let gap = trace.gaps.bound(time);
    if gap < time {
        (horizon.time, horizon.ended_by) = (gap, Some("records of a chain are missing"));
    }
    horizon
}

#[cfg(test)]
mod tests;
