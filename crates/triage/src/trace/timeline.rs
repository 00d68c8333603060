//! A recording as a time line.

use super::time::Times;
use super::{Read, TraceError, TraceOptions, container, names, scan, times};
use asynctriage_async_trace::{AsyncTrace, Dispatcher, Family, Recording, Span, State, judge};
use asynctriage_report::timeline::{Timeline, TimelineOperation, TimelineSpan};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

/// Activations that a page shows, the last ones; a browser draws two bars for each.
const MAX_SPANS: usize = 20_000;
/// Operations that a page shows.
const MAX_OPERATIONS: usize = 2_000;

/// The time line of a `.nettrace` file that is in memory, unpacked.
///
/// # Errors
/// Those of [`trace()`](super::trace()).
pub fn timeline(file: &[u8]) -> Result<Timeline, TraceError> {
    let recording = Recording::new().with_spans(MAX_SPANS);
    let (read, recording) = scan(file, &TraceOptions::default(), recording)?;
    let trace = (!recording.is_empty()).then(|| recording.finish());
    let judgement = judge(
        trace.as_ref(),
        container(&read),
        &super::session::session(&read),
    );
    let times = times(&read, trace.as_ref());
    let verdict = super::verdict(&judgement);
    let mut line = Timeline {
        verdict: format!("{}: {}", verdict.as_str(), judgement.verdict.text()),
        ..Timeline::default()
    };
    if let Some((trace, span)) = trace.as_ref().and_then(|t| Some((t, t.span?))) {
        let mut draw = Draw {
            read: &read,
            trace,
            times: &times,
            start: span.0,
            line: &mut line,
            operations: FxHashMap::default(),
        };
        draw.line.end = draw.at(span.1);
        draw.operations();
        draw.spans();
    }
    Ok(line)
}

type Key = (Family, u64);

struct Draw<'a, 't> {
    read: &'a Read,
    trace: &'a AsyncTrace<'t>,
    times: &'a Times,
    start: u64,
    line: &'a mut Timeline,
    operations: FxHashMap<Key, usize>,
}

impl Draw<'_, '_> {
    /// Nanoseconds since the first record.
    fn at(&self, ticks: u64) -> u64 {
        let seconds = self.times.clock.seconds(self.start, ticks);
        let nanos = seconds.map_or(0.0, |s| s.max(0.0) * 1e9);
        // saturates
        nanos as u64
    }

    /// Those that have not ended, then those that the activations name, in the order in which they were first seen.
    fn operations(&mut self) {
        let open = self.trace.dispatchers.iter().filter(|d| !d.state.is_end());
        let mut open: Vec<&Dispatcher> = open.collect();
        open.sort_by_key(|d| (d.created.or(d.resumed).map(|m| m.time), d.family, d.id));
        for d in open {
            self.list((d.family, d.id), |draw| draw.not_ended(d));
        }
        let mut ended: BTreeMap<Key, (&Span, &Span)> = BTreeMap::new();
        for span in &self.trace.spans.kept {
            let key = (span.family, span.dispatcher);
            let first_and_last = ended.entry(key).or_insert((span, span));
            first_and_last.1 = span;
        }
        let mut ended: Vec<_> = ended.into_iter().collect();
        ended.sort_by_key(|(_, (first, _))| first.began.time);
        for (key, (first, last)) in ended {
            if !self.operations.contains_key(&key) {
                self.list(key, |draw| draw.ended(key, first, last));
            }
        }
    }

    fn list(&mut self, key: Key, operation: impl FnOnce(&Self) -> TimelineOperation) {
        if self.line.operations.len() < MAX_OPERATIONS {
            let operation = operation(self);
            self.operations.insert(key, self.line.operations.len());
            self.line.operations.push(operation);
        } else {
            let more = &mut self.line.operations_left_out;
            *more = more.saturating_add(1);
        }
    }

    fn not_ended(&self, d: &Dispatcher) -> TimelineOperation {
        let list = d.frames.map(|id| self.trace.frames.frames(id));
        let frames = list.unwrap_or_default().iter();
        let from = d.created.or(d.resumed);
        TimelineOperation {
            name: name((d.family, d.id)),
            frames: frames
                .map(|f| names::frame(&self.read.methods, *f).method)
                .collect(),
            state: d.state.as_str().to_owned(),
            open: true,
            from: from.map_or(0, |m| self.at(m.time)),
            is_created: d.created.is_some(),
            ended: None,
        }
    }

    fn ended(&self, key: Key, first: &Span, last: &Span) -> TimelineOperation {
        let end = last.ended.filter(|_| last.state.is_end());
        TimelineOperation {
            name: name(key),
            state: last.state.as_str().to_owned(),
            from: self.at(first.began.time),
            ended: end.map(|m| self.at(m.time)),
            ..TimelineOperation::default()
        }
    }

    fn spans(&mut self) {
        let mut threads: FxHashMap<u64, usize> = FxHashMap::default();
        let mut spans: Vec<&Span> = self.trace.spans.kept.iter().collect();
        spans.sort_by_key(|s| (s.began.time, s.began.record.batch, s.began.record.index));
        for span in spans {
            let thread = span.began.os_thread;
            let row = *threads.entry(thread).or_insert_with(|| {
                self.line.threads.push(thread);
                self.line.threads.len().saturating_sub(1)
            });
            let drawn = TimelineSpan {
                thread: row,
                operation: self
                    .operations
                    .get(&(span.family, span.dispatcher))
                    .copied(),
                from: self.at(span.began.time),
                to: span.ended.map(|m| self.at(m.time)),
                outcome: outcome(span.state).to_owned(),
                evidence: evidence(span),
            };
            self.line.spans.push(drawn);
        }
        self.line.spans_left_out = self.trace.spans.left_out;
    }
}

fn name((family, id): Key) -> String {
    match family {
        Family::RuntimeAsync => format!("runtime-async {id}"),
        Family::StateMachine => format!("state machine {id}"),
    }
}

fn outcome(state: State) -> &'static str {
    match state {
        State::Running => "still running",
        other => other.as_str(),
    }
}

fn evidence(span: &Span) -> String {
    let record = |m: asynctriage_async_trace::Moment| {
        format!("record {} of batch {:#x}", m.record.index, m.record.batch)
    };
    match span.ended {
        Some(end) => format!("{} to {}", record(span.began), record(end)),
        None => record(span.began),
    }
}
