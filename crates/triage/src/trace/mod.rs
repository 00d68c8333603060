//! Recordings of the async profiler: read, followed, judged, and told in the words of the report.

mod chains;
mod figures;
mod names;
mod records;
mod time;

pub use records::records;

use asynctriage_async_trace::{
    AsyncTrace, Clock, Container, EVENT, Judgement, Outer, PREVIEW_PROVIDER, PROVIDER, Recording,
    judge,
};
use asynctriage_nettrace::runtime::{MethodRanges, Methods};
use asynctriage_nettrace::{Event, Header, Summary, Trace};
use asynctriage_report as report;
use time::Times;

#[doc(no_inline)]
pub use asynctriage_nettrace::Error as TraceError;

/// What to report.
#[derive(Clone, Debug)]
pub struct TraceOptions {
    /// Chains of a group that are listed one by one.
    pub members: usize,
}

impl Default for TraceOptions {
    fn default() -> Self {
        Self { members: 5 }
    }
}

/// What nobody may conclude from a recording of the async profiler.
const DOES_NOT_SHOW: [&str; 4] = [
    "processor time: from its resume to its next suspension a chain has a thread, whatever the thread does",
    "frames between awaits: only methods that await are in a chain, without source lines and without what was inlined",
    "operations of the application: ids are those of the runtime, whatever numbers the application uses",
    "what chains did before the recording and what was not flushed at its end",
];

/// Reads a `.nettrace` file that is in memory, unpacked.
///
/// # Errors
/// What is no such file, or is of a version that is not supported. Whatever is wrong behind the file's header is told in
/// the report.
pub fn trace(file: &[u8], options: &TraceOptions) -> Result<report::TraceReport, TraceError> {
    let trace = Trace::open(file)?;
    let mut recording = Recording::new();
    let mut methods = Methods::default();
    let mut events = trace.events();
    for event in &mut events {
        if !take(&event, &mut recording) {
            methods.add(&event);
        }
    }
    let read = Read {
        header: trace.header().clone(),
        summary: events.summary(),
        methods: methods.into_ranges(),
        bytes: trace.len(),
    };
    Ok(report(&read, recording, options))
}

/// What was read of the container.
struct Read {
    header: Header,
    summary: Summary,
    methods: MethodRanges,
    bytes: u64,
}

/// Takes an event of the async profiler; `false` when it is another.
fn take<'a>(event: &Event<'a>, recording: &mut Recording<'a>) -> bool {
    if event.kind.is(PROVIDER, EVENT) {
        recording.push(Outer {
            offset: event.payload_offset,
            time: event.timestamp,
            payload: event.payload,
        });
    } else if event.kind.provider == PREVIEW_PROVIDER {
        recording.refuse_preview(event.payload_offset);
    } else {
        return false;
    }
    true
}

fn report(read: &Read, recording: Recording<'_>, options: &TraceOptions) -> report::TraceReport {
    let trace = (!recording.is_empty()).then(|| recording.finish());
    let judgement = judge(trace.as_ref(), container(read));
    let times = times(read, trace.as_ref());
    let verdict = verdict(&judgement);
    report::TraceReport {
        bytes: read.bytes,
        verdict,
        flags: judgement
            .flags
            .iter()
            .map(|(flag, _)| flag.to_string())
            .collect(),
        completeness: completeness(&judgement, trace.as_ref(), &times),
        chains: trace.as_ref().map_or_else(Vec::new, |trace| {
            chains::groups(trace, &read.methods, &times, options)
        }),
        container: figures::container(&read.header, &read.summary),
        events_by_provider: read.summary.events_by_provider.clone(),
        methods: figures::methods(read.methods.methods()),
        async_profile: trace
            .as_ref()
            .map(|trace| figures::profile(trace, &read.methods, &times)),
        does_not_show: DOES_NOT_SHOW.map(str::to_owned).to_vec(),
        ..report::TraceReport::default()
    }
}

fn container(read: &Read) -> Container {
    Container {
        truncated: !read.summary.end_tag(),
        damages: read.summary.damages.count,
        lost: read
            .summary
            .lost
            .events
            .saturating_add(read.summary.lost.unknown),
        rundown: read.methods.methods().rundown(),
    }
}

/// The clock of the profiler's own records; that of the container when there is none.
fn times(read: &Read, trace: Option<&AsyncTrace<'_>>) -> Times {
    let known = trace.into_iter().flat_map(|trace| {
        let own = trace.metadata.iter().map(|m| m.clock);
        own.chain(trace.clocks.iter().copied())
    });
    Times::new(
        Clock::new(read.header.frequency, known.collect()),
        trace.and_then(|t| t.span),
        read.header.clone(),
    )
}

fn verdict(judgement: &Judgement) -> report::TraceVerdict {
    use asynctriage_async_trace::Verdict;
    match judgement.verdict {
        Verdict::Empty => report::TraceVerdict::Empty,
        Verdict::MetadataOnly => report::TraceVerdict::MetadataOnly,
        Verdict::Partial => report::TraceVerdict::Partial,
        Verdict::Bounded => report::TraceVerdict::Bounded,
    }
}

fn completeness(
    judgement: &Judgement,
    trace: Option<&AsyncTrace<'_>>,
    times: &Times,
) -> report::Completeness {
    let flags = judgement
        .flags
        .iter()
        .map(|(flag, count)| report::TraceFlag {
            id: flag.to_string(),
            count: *count,
            text: flag.text().to_owned(),
            remedy: flag.remedy().to_owned(),
        });
    let horizon = judgement.horizon.map(|horizon| report::TraceHorizon {
        ticks: horizon.time,
        time: times.utc(horizon.time),
        seconds_before_end: trace
            .and_then(|t| t.span)
            .and_then(|(_, end)| times.clock.seconds(horizon.time, end)),
        why: horizon.why.to_owned(),
    });
    report::Completeness {
        text: judgement.verdict.text().to_owned(),
        remedy: judgement.verdict.remedy().map(str::to_owned),
        flags: flags.collect(),
        horizon,
    }
}
