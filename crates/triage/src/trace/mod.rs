//! Recordings of the async profiler: read, followed, judged, and told in the words of the report.

mod chains;
mod export;
mod figures;
mod join;
mod names;
mod others;
mod records;
mod session;
mod time;
mod timeline;

pub use export::{ExportFormat, export};
pub use join::DumpSide;
pub use records::{batches, records};
pub use timeline::timeline;

use asynctriage_async_trace::markers::{Key, Marker, MarkerRecording, Markers};
use asynctriage_async_trace::tpl::{Tpl, TplRecording};
use asynctriage_async_trace::{
    AsyncTrace, Clock, Container, EVENT, Horizon, Judgement, Outer, PREVIEW_PROVIDER, PROVIDER,
    Recording, judge,
};
use asynctriage_dump::Budget;
use asynctriage_nettrace::runtime::{MethodRanges, Methods};
use asynctriage_nettrace::{Event, Header, Summary, Trace};
use asynctriage_report as report;
use time::Times;

#[doc(no_inline)]
pub use asynctriage_async_trace::markers::{MarkerSpec, Stage};
#[doc(no_inline)]
pub use asynctriage_nettrace::Error as TraceError;

/// What to report.
#[derive(Clone, Debug)]
pub struct TraceOptions {
    /// Chains of a group that are listed one by one.
    pub members: usize,
    /// Which events of the application are its markers, and what they mean.
    pub markers: Option<MarkerSpec>,
    /// The stages that each operation should have.
    pub expect: Option<Vec<Stage>>,
    /// The file was packed, and fails the checks of its packing.
    pub packed_fault: bool,
    /// What reading it may take.
    pub budget: Budget,
}

impl Default for TraceOptions {
    fn default() -> Self {
        Self {
            members: 5,
            markers: None,
            expect: None,
            packed_fault: false,
            budget: Budget::new(),
        }
    }
}

/// Events between two looks at whether reading is to end.
const LOOK_EVERY: u32 = 1 << 10;

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
    read(file, options, None)
}

/// The same, joined with a dump of the recorded process.
///
/// # Errors
/// Those of [`trace()`].
pub fn joined(
    file: &[u8],
    options: &TraceOptions,
    dump: &DumpSide,
) -> Result<report::TraceReport, TraceError> {
    read(file, options, Some(dump))
}

fn read(
    file: &[u8],
    options: &TraceOptions,
    dump: Option<&DumpSide>,
) -> Result<report::TraceReport, TraceError> {
    let (read, recording) = scan(file, options, Recording::new())?;
    Ok(report(&read, recording, options, dump))
}

/// Reads all events; those of the async profiler go into the recording.
fn scan<'a>(
    file: &'a [u8],
    options: &TraceOptions,
    mut recording: Recording<'a>,
) -> Result<(Read, Recording<'a>), TraceError> {
    let trace = Trace::open(file)?;
    let mut methods = Methods::default();
    let mut tpl = TplRecording::new();
    let markers = options.markers.clone().map(MarkerRecording::new);
    let mut markers = markers.map(|m| m.expecting(options.expect.clone()));
    let (mut end, mut events) = (None, trace.events());
    let mut ends = session::Ends::default();
    let mut read_on = 0_u32;
    let mut ended_early = false;
    for event in &mut events {
        read_on = read_on.wrapping_add(1);
        if read_on.is_multiple_of(LOOK_EVERY)
            && options.budget.leaves("events of the recording", || None)
        {
            ended_early = true;
            break;
        }
        end = end.max(Some(event.timestamp));
        ends.push(&event);
        let is_taken = take(&event, &mut recording)
            || tpl.push(&event)
            || markers.as_mut().is_some_and(|m| m.push(&event));
        if !is_taken {
            methods.add(&event);
        }
    }
    let read = Read {
        header: trace.header().clone(),
        summary: events.summary(),
        methods: methods.into_ranges(),
        bytes: trace.len(),
        packed_fault: options.packed_fault,
        ended_early,
        end,
        ends,
        tpl: (!tpl.is_empty()).then(|| tpl.finish()),
        marked: markers.as_ref().map_or_else(Vec::new, marked),
        markers: markers.map(MarkerRecording::finish),
    };
    Ok((read, recording))
}

/// What was read, but for the async profiler's records.
struct Read {
    header: Header,
    summary: Summary,
    methods: MethodRanges,
    bytes: u64,
    packed_fault: bool,
    ended_early: bool,
    /// The last event, in ticks.
    end: Option<u64>,
    /// When sessions of the process ended.
    ends: session::Ends,
    tpl: Option<Tpl>,
    markers: Option<Markers>,
    /// The first of them one by one.
    marked: Vec<(Key, Marker)>,
}

/// Markers that are kept one by one, for the time line.
const MAX_MARKED: usize = 1 << 18;

fn marked(markers: &MarkerRecording) -> Vec<(Key, Marker)> {
    let all = markers.all().take(MAX_MARKED);
    let mut all: Vec<_> = all.map(|(key, marker)| (key.clone(), *marker)).collect();
    all.sort_by_key(|(_, marker)| marker.time);
    all
}

/// Takes an event of the async profiler; `false` when it is another.
fn take<'a>(event: &Event<'a>, recording: &mut Recording<'a>) -> bool {
    if event.kind.is(PROVIDER, EVENT) {
        recording.push(Outer {
            offset: event.payload_offset,
            time: event.timestamp,
            thread: event.thread,
            payload: event.payload,
        });
    } else if event.kind.provider == PREVIEW_PROVIDER {
        recording.refuse_preview(event.payload_offset);
    } else {
        return false;
    }
    true
}

fn report(
    read: &Read,
    recording: Recording<'_>,
    options: &TraceOptions,
    dump: Option<&DumpSide>,
) -> report::TraceReport {
    let trace = (!recording.is_empty()).then(|| recording.finish());
    let judgement = judge(trace.as_ref(), container(read), &session::session(read));
    let times = times(read, trace.as_ref());
    let verdict = verdict(&judgement);
    let joined = trace
        .as_ref()
        .zip(dump)
        .map(|(trace, dump)| join::join(dump, read, trace, &times, options.members));
    let mut chains = trace.as_ref().map_or_else(Vec::new, |trace| {
        chains::groups(trace, &judgement.horizons, &read.methods, &times, options)
    });
    if let Some(joined) = &joined {
        names::complete(&mut chains, &joined.names);
    }
    report::TraceReport {
        bytes: read.bytes,
        verdict,
        flags: judgement
            .flags
            .iter()
            .map(|(flag, _)| flag.to_string())
            .collect(),
        completeness: completeness(&judgement, read.ends.major(), &times),
        chains,
        container: figures::container(&read.header, &read.summary, &times),
        events_by_provider: read.summary.events_by_provider.clone(),
        methods: figures::methods(read.methods.methods()),
        async_profile: trace
            .as_ref()
            .map(|trace| figures::profile(trace, &judgement.horizons, &read.methods, &times)),
        tpl: read
            .tpl
            .as_ref()
            .map(|tpl| others::tpl(tpl, &read.methods, container(read), &times)),
        markers: read.markers.as_ref().map(others::markers),
        marker_check: (read.markers.as_ref().zip(options.markers.as_ref()))
            .map(|(markers, spec)| others::marker_check(markers, spec, options, &read.summary)),
        join: joined.map(|joined| joined.report),
        does_not_show: DOES_NOT_SHOW.map(str::to_owned).to_vec(),
        ..report::TraceReport::default()
    }
}

fn container(read: &Read) -> Container {
    Container {
        truncated: !read.summary.end_tag(),
        damages: read.summary.damages.count,
        packed_fault: read.packed_fault,
        ended_early: read.ended_early,
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
        read.end,
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

fn completeness(judgement: &Judgement, major: Option<u16>, times: &Times) -> report::Completeness {
    let flags = judgement
        .flags
        .iter()
        .map(|(flag, count)| report::TraceFlag {
            id: flag.to_string(),
            count: *count,
            text: flag.text().to_owned(),
            remedy: flag.remedy().to_owned(),
        });
    let horizons = &judgement.horizons;
    report::Completeness {
        text: words(judgement),
        remedy: remedy(judgement, major),
        flags: flags.collect(),
        horizon: horizons.proved.map(|h| horizon(h, times)),
        likely_horizon: horizons.likely.map(|h| horizon(h, times)),
        attached: judgement.attached,
    }
}

fn horizon(horizon: Horizon, times: &Times) -> report::TraceHorizon {
    report::TraceHorizon {
        ticks: horizon.time,
        time: times.utc(horizon.time),
        seconds_before_end: times.until_end(horizon.time),
        why: horizon.why.to_owned(),
        ended_by: horizon.ended_by.map(str::to_owned),
    }
}

/// The first version of the runtime with the async profiler.
const PROFILED: u16 = 11;

/// What makes the next recording say more, of this runtime.
fn remedy(judgement: &Judgement, major: Option<u16>) -> Option<String> {
    use asynctriage_async_trace::Verdict;
    match (judgement.verdict, major) {
        (Verdict::Empty, Some(major)) if major < PROFILED => Some(format!(
            "the process runs .NET {major}, which has no async profiler: take a dump (runbook capture), or record the events of \
             its tasks (collect --tpl), which cost much"
        )),
        (verdict, _) => verdict.remedy().map(str::to_owned),
    }
}

/// What the verdict means here.
fn words(judgement: &Judgement) -> String {
    use asynctriage_async_trace::Verdict;
    let text = match (judgement.verdict, judgement.horizons.proved) {
        (Verdict::Bounded, None) => {
            "nothing is known to be missing; that nothing is cannot be proved, for the threads were not asked for their buffers"
        }
        (verdict, _) => verdict.text(),
    };
    text.to_owned()
}

#[cfg(test)]
mod tests {
    use asynctriage_async_trace::{Flag, Verdict};

    #[test]
    fn the_runbook_explains_every_verdict_and_flag_and_no_other() {
        let page = include_str!("../../../../runbooks/trace.md");
        let first_cells = page.lines().filter_map(|line| line.strip_prefix("| `"));
        let explained: Vec<&str> = first_cells.filter_map(|l| l.split('`').next()).collect();
        let verdicts = Verdict::ALL.iter().map(|v| v.as_str());
        let flags = Flag::ALL.iter().map(|f| f.as_str());
        assert_eq!(explained, verdicts.chain(flags).collect::<Vec<_>>());
    }
}
