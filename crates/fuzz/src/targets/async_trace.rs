//! Batches of arbitrary bytes: decoded, followed, judged, and never a panic; sums stay sums.

use asynctriage_async_trace::{Container, EVENT, Outer, PROVIDER, Recording, Session, judge};
use asynctriage_nettrace::Trace;

pub(crate) fn run(bytes: &[u8]) {
    let mut recording = Recording::new();
    let (mut rest, mut offset) = (bytes, 0_u64);
    // each batch behind its length in two bytes; what the batch says of itself stays arbitrary
    while let Some(([low, high], behind)) = rest.split_first_chunk() {
        let len = usize::from(u16::from_le_bytes([*low, *high])).min(behind.len());
        let (payload, next) = behind.split_at(len);
        recording.push(Outer {
            offset,
            time: u64::MAX,
            thread: 0,
            payload,
        });
        (rest, offset) = (next, offset + 2 + len as u64);
    }
    let trace = recording.finish();
    assert_eq!(trace.outer_events, trace.batches + trace.rejected);
    for totals in &trace.totals {
        assert_eq!(totals.total, totals.states.values().sum::<u64>());
    }
    let session = Session {
        frequency: 1_000,
        end: trace.span.map(|(_, last)| last),
        ..Session::default()
    };
    let horizons = judge(Some(&trace), Container::default(), &session).horizons;
    for horizon in horizons.proved.iter().chain(&horizons.likely) {
        assert!(trace.span.is_some_and(|(first, _)| horizon.time >= first));
    }
}

/// Batches of real recordings.
pub(crate) fn seeds() -> Vec<Vec<u8>> {
    crate::seeds::recordings()
        .iter()
        .map(|r| batches(r))
        .collect()
}

fn batches(recording: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let Ok(trace) = Trace::open(recording) else {
        return out;
    };
    for event in trace.events() {
        let len = u16::try_from(event.payload.len());
        if let Some(len) = len.ok().filter(|_| event.kind.is(PROVIDER, EVENT)) {
            out.extend(len.to_le_bytes());
            out.extend(event.payload);
        }
    }
    out
}
