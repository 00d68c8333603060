//! Chrome's trace events: threads with what ran on them, operations from their creation to their end, and arrows from
//! where an operation suspended to where it went on.

use super::{Family, FrameLists, Read, Recording, Span, SpanSink, Stacks, Ticks, title};
use asynctriage_async_trace::{Standing, State};
use rustc_hash::{FxHashMap, FxHashSet};
use serde_json::{Value, json};
use std::io::{self, Write};

/// Where an operation suspended.
#[derive(Clone, Copy, Debug)]
struct Stopped {
    thread: u64,
    ticks: u64,
}

struct Events<'r, 'o> {
    pid: u32,
    ticks: Ticks,
    stacks: Stacks<'r>,
    out: &'o mut dyn Write,
    /// The first error of the output; nothing is written behind it.
    failed: Option<io::Error>,
    wrote: bool,
    threads: FxHashSet<u64>,
    stopped: FxHashMap<(Family, u64), Stopped>,
    /// Operations whose beginning was written.
    begun: FxHashSet<(Family, u64)>,
    arrows: u64,
}

impl Events<'_, '_> {
    fn put(&mut self, event: &Value) {
        if self.failed.is_some() {
            return;
        }
        let comma = if self.wrote { ",\n" } else { "\n" };
        self.wrote = true;
        self.failed = write!(self.out, "{comma}{event}").err();
    }

    /// Times stand as numbers with three decimals; JSON numbers of this size keep them.
    fn at(&self, ticks: u64) -> Value {
        let text = self.ticks.micros(ticks);
        text.parse::<f64>().map_or(Value::Null, Value::from)
    }

    fn thread(&mut self, thread: u64) {
        if self.threads.insert(thread) {
            let name = json!({"ph": "M", "pid": self.pid, "tid": thread, "name": "thread_name",
                "args": {"name": format!("thread {thread}")}});
            self.put(&name);
        }
    }

    /// The beginning of an operation, once.
    fn begin(
        &mut self,
        key: (Family, u64),
        ticks: u64,
        thread: u64,
        name: &str,
        frames: &[String],
    ) {
        if self.begun.insert(key) {
            let event = json!({"ph": "b", "cat": "operation", "id": id(key), "pid": self.pid, "tid": thread,
                "ts": self.at(ticks), "name": name, "args": {"frames": frames}});
            self.put(&event);
        }
    }

    /// From the end of one activation to the beginning of the next.
    fn arrow(&mut self, from: Stopped, to: &Span) {
        self.arrows = self.arrows.saturating_add(1);
        let number = self.arrows;
        // an arrow begins inside the bar that it leaves
        let before = from.ticks.saturating_sub(1);
        let start = json!({"ph": "s", "cat": "resume", "name": "resume", "id": number, "pid": self.pid,
            "tid": from.thread, "ts": self.at(before)});
        let end = json!({"ph": "f", "bp": "e", "cat": "resume", "name": "resume", "id": number, "pid": self.pid,
            "tid": to.began.os_thread, "ts": self.at(to.began.time)});
        self.put(&start);
        self.put(&end);
    }
}

fn id((family, id): (Family, u64)) -> String {
    format!("{}-{id}", family.short())
}

impl SpanSink for Events<'_, '_> {
    fn range(&mut self, first: u64, last: u64) {
        (self.ticks.first, self.ticks.last) = (first, last);
    }

    fn span(&mut self, span: &Span, frames: &FrameLists<'_>) {
        let key = (span.family, span.dispatcher);
        let stack = self.stacks.get(span.frames, frames).clone();
        let name = title(&stack, span.family, span.dispatcher);
        let thread = span.began.os_thread;
        self.thread(thread);
        let created = span.created.unwrap_or(span.began.time);
        self.begin(key, created, thread, &name, &stack.names);
        let until = span.ended.map_or(self.ticks.last, |m| m.time);
        let nanos = self
            .ticks
            .nanos(until)
            .saturating_sub(self.ticks.nanos(span.began.time));
        let outcome = match span.state {
            State::Running => "still running",
            other => other.as_str(),
        };
        let slice = json!({"ph": "X", "cat": "activation", "pid": self.pid, "tid": thread, "name": name,
            "ts": self.at(span.began.time), "dur": nanos as f64 / 1e3,
            "args": {"operation": span.dispatcher, "outcome": outcome,
                "batch": format!("{:#x}", span.began.record.batch), "record": span.began.record.index}});
        self.put(&slice);
        if let Some(from) = self.stopped.remove(&key) {
            self.arrow(from, span);
        }
        let Some(ended) = span.ended else { return };
        if span.state.is_end() {
            self.begun.remove(&key);
            let end = json!({"ph": "e", "cat": "operation", "id": id(key), "pid": self.pid, "tid": ended.os_thread,
                "ts": self.at(ended.time), "name": name, "args": {"outcome": outcome}});
            self.put(&end);
        } else {
            let stopped = Stopped {
                thread: ended.os_thread,
                ticks: ended.time,
            };
            self.stopped.insert(key, stopped);
        }
    }
}

pub(super) fn write(read: &Read, recording: Recording<'_>, out: &mut dyn Write) -> io::Result<()> {
    write!(out, "{{\"displayTimeUnit\":\"ns\",\"traceEvents\":[")?;
    let mut events = Events {
        pid: read.header.pid.unwrap_or(0),
        ticks: Ticks {
            frequency: read.header.frequency,
            ..Ticks::default()
        },
        stacks: Stacks::new(read),
        out,
        failed: None,
        wrote: false,
        threads: FxHashSet::default(),
        stopped: FxHashMap::default(),
        begun: FxHashSet::default(),
        arrows: 0,
    };
    let process = json!({"ph": "M", "pid": events.pid, "name": "process_name",
        "args": {"name": format!("process {}", events.pid)}});
    events.put(&process);
    let trace = recording.finish_with(&mut events);
    let (horizons, open) = super::open(read, &trace);
    for d in open {
        let stack = events.stacks.get(d.frames, &trace.frames).clone();
        let name = title(&stack, d.family, d.id);
        let Some(first) = d.created.or(d.resumed).or(d.stopped) else {
            continue;
        };
        events.begin(
            (d.family, d.id),
            first.time,
            first.os_thread,
            &name,
            &stack.names,
        );
        let standing = match horizons.standing(d) {
            Standing::Proved => "proved",
            Standing::Likely => "likely",
            Standing::Unknown => "unknown",
        };
        let last = d.since().unwrap_or(first);
        let state = json!({"ph": "n", "cat": "operation", "id": id((d.family, d.id)), "pid": events.pid,
            "tid": last.os_thread, "ts": events.at(last.time), "name": d.state.as_str(),
            "args": {"last seen": d.state.as_str(), "standing": standing}});
        events.put(&state);
    }
    let marks = [
        ("horizon", horizons.proved),
        ("likely horizon", horizons.likely),
    ];
    for (name, horizon) in marks {
        if let Some(horizon) = horizon {
            let mark = json!({"ph": "i", "s": "g", "pid": events.pid, "tid": 0, "name": name,
                "ts": events.at(horizon.time), "args": {"why": horizon.why}});
            events.put(&mark);
        }
    }
    for (key, marker) in &read.marked {
        use asynctriage_async_trace::markers::Key;
        let key = match key {
            Key::Text(text) => format!("a text of {} characters", text.chars().count()),
            other => other.to_string(),
        };
        let mark = json!({"ph": "i", "s": "t", "pid": events.pid, "tid": marker.thread,
            "name": format!("{key} {}", marker.stage), "ts": events.at(marker.time), "cat": "marker"});
        events.put(&mark);
    }
    if let Some(error) = events.failed {
        return Err(error);
    }
    writeln!(out, "\n]}}")
}
