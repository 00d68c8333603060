//! Folded stacks: one line for each stack, outermost method first, with microseconds.

use super::{FrameListId, FrameLists, Read, Recording, Span, SpanSink, Stacks, Ticks};
use asynctriage_async_trace::Family;
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::io::{self, Write};

/// Sums of nanoseconds by what they were spent with.
#[derive(Default)]
struct Sums {
    ticks: Ticks,
    ran: FxHashMap<(Family, Option<FrameListId>), u64>,
    waited: FxHashMap<(Family, Option<FrameListId>), u64>,
    /// When an operation stopped that has not ended.
    stopped: FxHashMap<(Family, u64), u64>,
}

impl SpanSink for Sums {
    fn range(&mut self, first: u64, last: u64) {
        (self.ticks.first, self.ticks.last) = (first, last);
    }

    fn span(&mut self, span: &Span, _: &FrameLists<'_>) {
        let began = self.ticks.nanos(span.began.time);
        let key = (span.family, span.dispatcher);
        let since = self
            .stopped
            .remove(&key)
            .or(span.created.map(|c| self.ticks.nanos(c)));
        let of = (span.family, span.frames);
        let add = |sums: &mut FxHashMap<_, u64>, nanos: u64| {
            let sum = sums.entry(of).or_default();
            *sum = sum.saturating_add(nanos);
        };
        if let Some(since) = since {
            add(&mut self.waited, began.saturating_sub(since));
        }
        if let Some(end) = span.ended {
            let end = self.ticks.nanos(end.time);
            add(&mut self.ran, end.saturating_sub(began));
            if !span.state.is_end() {
                self.stopped.insert(key, end);
            }
        }
    }
}

pub(super) fn write(read: &Read, recording: Recording<'_>, out: &mut dyn Write) -> io::Result<()> {
    let mut sums = Sums {
        ticks: Ticks {
            frequency: read.header.frequency,
            ..Ticks::default()
        },
        ..Sums::default()
    };
    let trace = recording.finish_with(&mut sums);
    let (horizons, open) = super::open(read, &trace);
    // what still waits has waited up to what is known
    let known = horizons
        .proved
        .or(horizons.likely)
        .map(|h| sums.ticks.nanos(h.time));
    for d in open {
        let since = d.since().map(|m| sums.ticks.nanos(m.time));
        if let Some((known, since)) = known
            .zip(since)
            .filter(|_| d.state != asynctriage_async_trace::State::Running)
        {
            let sum = sums.waited.entry((d.family, d.frames)).or_default();
            *sum = sum.saturating_add(known.saturating_sub(since));
        }
    }
    let mut stacks = Stacks::new(read);
    let mut lines: BTreeMap<String, u64> = BTreeMap::new();
    for (what, all) in [("[ran]", &sums.ran), ("[waited]", &sums.waited)] {
        for ((family, list), nanos) in all {
            let stack = stacks.get(*list, &trace.frames);
            let mut line = what.to_owned();
            if stack.names.is_empty() {
                line.push_str(match family {
                    Family::RuntimeAsync => ";runtime-async without frames",
                    Family::StateMachine => ";state machine without frames",
                });
            }
            for name in stack.names.iter().rev() {
                line.push(';');
                line.extend(name.chars().map(|c| match c {
                    ';' | '\n' | '\r' => ',',
                    c => c,
                }));
            }
            let sum = lines.entry(line).or_default();
            *sum = sum.saturating_add(*nanos);
        }
    }
    for (line, nanos) in lines.iter().filter(|(_, nanos)| **nanos >= 1_000) {
        writeln!(out, "{line} {}", nanos / 1_000)?;
    }
    Ok(())
}
