//! Speedscope's file format: for each thread the stacks of methods that ran, nested strictly.

use super::{FrameListId, FrameLists, Read, Recording, Span, SpanSink, Stacks, Ticks};
use rustc_hash::FxHashMap;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::{self, Write};

/// Activations that are exported; a browser reads no more.
const MOST: usize = 1_000_000;

#[derive(Clone, Copy, Debug)]
struct Ran {
    from: u64,
    to: u64,
    frames: Option<FrameListId>,
}

#[derive(Default)]
struct Threads {
    ticks: Ticks,
    all: BTreeMap<u64, Vec<Ran>>,
    count: usize,
    left_out: u64,
}

impl SpanSink for Threads {
    fn range(&mut self, first: u64, last: u64) {
        (self.ticks.first, self.ticks.last) = (first, last);
    }

    fn span(&mut self, span: &Span, _: &FrameLists<'_>) {
        if self.count >= MOST {
            self.left_out = self.left_out.saturating_add(1);
            return;
        }
        self.count = self.count.saturating_add(1);
        let to = span.ended.map_or(self.ticks.last, |m| m.time);
        self.all.entry(span.began.os_thread).or_default().push(Ran {
            from: self.ticks.nanos(span.began.time),
            to: self.ticks.nanos(to),
            frames: span.frames,
        });
    }
}

pub(super) fn write(read: &Read, recording: Recording<'_>, out: &mut dyn Write) -> io::Result<()> {
    let mut threads = Threads {
        ticks: Ticks {
            frequency: read.header.frequency,
            ..Ticks::default()
        },
        ..Threads::default()
    };
    let trace = recording.finish_with(&mut threads);
    let mut stacks = Stacks::new(read);
    let mut names: Vec<String> = Vec::new();
    let mut places: FxHashMap<String, usize> = FxHashMap::default();
    let end = threads.ticks.nanos(threads.ticks.last);
    let mut profiles = Vec::new();
    for (thread, mut ran) in threads.all {
        // the outer one of two that begin together first
        ran.sort_by_key(|r| (r.from, std::cmp::Reverse(r.to)));
        let mut nested = Nested::default();
        for one in ran {
            let stack = stacks.get(one.frames, &trace.frames);
            let numbers = stack.names.iter().rev().map(|name| {
                *places.entry(name.clone()).or_insert_with(|| {
                    names.push(name.clone());
                    names.len().saturating_sub(1)
                })
            });
            nested.add(one.from, one.to, numbers.collect());
        }
        profiles.push(json!({
            "type": "evented",
            "name": format!("thread {thread}"),
            "unit": "nanoseconds",
            "startValue": 0,
            "endValue": end,
            "events": nested.finish(),
        }));
    }
    let left = match threads.left_out {
        0 => String::new(),
        n => format!(", {n} activations left out"),
    };
    let file = json!({
        "$schema": "https://www.speedscope.app/file-format-schema.json",
        "exporter": concat!("asynctriage ", env!("CARGO_PKG_VERSION")),
        "name": format!("async activations by thread{left}"),
        "shared": {"frames": names.iter().map(|n| json!({"name": n})).collect::<Vec<_>>()},
        "profiles": profiles,
    });
    serde_json::to_writer(&mut *out, &file).map_err(io::Error::from)?;
    writeln!(out)
}

/// Events of one thread. What is inside another thing ends with it at the latest.
#[derive(Debug, Default)]
struct Nested {
    events: Vec<Value>,
    open: Vec<(u64, Vec<usize>)>,
}

impl Nested {
    fn add(&mut self, from: u64, to: u64, frames: Vec<usize>) {
        while self.open.last().is_some_and(|(until, _)| *until <= from) {
            self.close();
        }
        let limit = self.open.last().map_or(u64::MAX, |(until, _)| *until);
        for frame in &frames {
            self.events
                .push(json!({"type": "O", "at": from, "frame": frame}));
        }
        self.open.push((to.min(limit), frames));
    }

    fn close(&mut self) {
        if let Some((at, frames)) = self.open.pop() {
            for frame in frames.iter().rev() {
                self.events
                    .push(json!({"type": "C", "at": at, "frame": frame}));
            }
        }
    }

    fn finish(mut self) -> Vec<Value> {
        while !self.open.is_empty() {
            self.close();
        }
        self.events
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_nested_strictly() {
        let mut nested = Nested::default();
        nested.add(0, 10, vec![1]);
        nested.add(2, 12, vec![2, 3]);
        nested.add(11, 20, vec![4]);
        let told: Vec<String> = nested
            .finish()
            .iter()
            .map(|e| format!("{}{}@{}", e["type"].as_str().unwrap(), e["frame"], e["at"]))
            .collect();
        assert_eq!(
            told.join(" "),
            "O1@0 O2@2 O3@2 C3@10 C2@10 C1@10 O4@11 C4@20"
        );
    }
}
