//! The figures of the report: what the container, the method events and the records say in numbers.

use super::chains;
use super::names::{Resolution, resolution};
use super::time::{self, Times};
use asynctriage_async_trace::{
    AsyncTrace, Family, Frame, Horizons, Identity, Kind, Standing, State,
};
use asynctriage_nettrace::runtime::{MethodRanges, Methods};
use asynctriage_nettrace::{Header, Summary};
use asynctriage_report as report;
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

pub(super) fn container(
    header: &Header,
    summary: &Summary,
    times: &Times,
) -> report::TraceContainer {
    report::TraceContainer {
        trace_version: header.version.to_string(),
        start: header.start.to_string(),
        end: times.end.and_then(|ticks| times.utc(ticks)),
        seconds: times
            .end
            .and_then(|ticks| times.clock.seconds(header.start_ticks, ticks)),
        frequency: header.frequency,
        pointer_size: header.pointer_size,
        pid: header.pid,
        processors: header.processors,
        blocks: summary
            .blocks
            .iter()
            .map(|(kind, n)| ((*kind).to_owned(), *n))
            .collect(),
        end_tag: summary.end_tag(),
        lost_events: summary.lost.events,
        events: summary.events,
        metadata: summary.metadata,
        damages: summary
            .damages
            .first
            .iter()
            .map(|d| report::TraceDamage {
                offset: report::Address(d.offset),
                bytes: d.bytes,
                what: format!("{}: {}", d.block, d.what),
            })
            .collect(),
        cut: summary.truncation().map(|cut| match cut.bytes {
            0 => format!("the file ends between two blocks, at byte {}", cut.offset),
            bytes => format!(
                "the file ends inside the block at byte {}, of which {bytes} bytes are there",
                cut.offset
            ),
        }),
    }
}

pub(super) fn methods(methods: &Methods) -> report::TraceMethods {
    report::TraceMethods {
        events: methods.events(),
        distinct_ranges: methods.distinct_ranges() as u64,
        live: methods.live(),
        rundown: methods.rundown(),
        modules: methods
            .module_names()
            .into_iter()
            .map(str::to_owned)
            .collect(),
    }
}

pub(super) fn profile(
    trace: &AsyncTrace<'_>,
    horizons: &Horizons,
    methods: &MethodRanges,
    times: &Times,
) -> report::AsyncProfile {
    report::AsyncProfile {
        outer_events: trace.outer_events,
        batches: trace.batches,
        rejected: trace.rejected,
        rejections: rejections(trace),
        records: trace.records(),
        by_kind: by_kind(trace),
        metadata: metadata(trace),
        sync_clocks: sync_clocks(trace),
        first_record: times.span.and_then(|(first, _)| times.utc(first)),
        last_record: times.span.and_then(|(_, last)| times.utc(last)),
        seconds: times
            .span
            .and_then(|(first, last)| times.clock.seconds(first, last)),
        contexts: contexts(trace),
        callstacks: callstacks(trace),
        frames: frames(trace, methods),
        leftover_batches: trace.leftover_batches,
        leftover_records: trace.leftover_records,
        activations: activations(trace),
        fork_depths: trace.fork_depths.clone(),
        dispatchers: dispatchers(trace),
        not_completed_chains: not_completed(chains::not_ended(trace, None, methods).iter()),
        at_horizon: at_horizon(trace, horizons, methods, times),
        identities_ok: trace.identities.held_in_all(),
        identities_failed: identities_failed(trace),
        breaches: breaches(trace),
        orphans: trace
            .orphans
            .iter()
            .fold(0, |sum, n| sum.saturating_add(*n)),
        overlapping_batches: trace.overlapping_batches,
    }
}

fn rejections(trace: &AsyncTrace<'_>) -> Vec<report::TraceRejection> {
    let all = trace.rejections.iter();
    all.map(|r| report::TraceRejection {
        batch: report::Address(r.offset),
        at: report::Address(r.at),
        record: r.record,
        reason: r.reason.to_string(),
    })
    .collect()
}

/// By the runtime's names; ids of later runtimes by number.
fn by_kind(trace: &AsyncTrace<'_>) -> BTreeMap<String, u64> {
    let name = |id: u8| Kind::from_id(id).map_or_else(|| format!("record {id}"), |k| k.to_string());
    trace.by_id.iter().map(|(id, n)| (name(*id), *n)).collect()
}

fn metadata(trace: &AsyncTrace<'_>) -> Vec<report::ProfilerMetadata> {
    let all = trace.metadata.iter();
    all.map(|m| report::ProfilerMetadata {
        frequency: m.frequency,
        qpc_sync: m.clock.ticks,
        utc_sync: m.clock.filetime,
        buffer_size: m.buffer_size,
        wrappers: m.wrappers,
        entries: m.entries,
    })
    .collect()
}

fn sync_clocks(trace: &AsyncTrace<'_>) -> Vec<report::ProfilerClock> {
    let all = trace.clocks.iter();
    all.map(|c| report::ProfilerClock {
        qpc: c.ticks,
        utc: c.filetime,
    })
    .collect()
}

fn contexts(trace: &AsyncTrace<'_>) -> BTreeMap<u32, report::ProfilerContext> {
    let all = trace.contexts.iter();
    all.map(|(id, facts)| {
        let context = report::ProfilerContext {
            os_thread: facts.os_thread,
            batches: facts.batches,
            records: facts.records,
        };
        (*id, context)
    })
    .collect()
}

fn callstacks(trace: &AsyncTrace<'_>) -> report::Callstacks {
    let used = trace.frames.iter().filter(|list| list.uses > 0);
    used.fold(report::Callstacks::default(), |sum, list| {
        let nonempty = if list.frames.is_empty() { 0 } else { list.uses };
        report::Callstacks {
            total: sum.total.saturating_add(list.uses),
            nonempty: sum.nonempty.saturating_add(nonempty),
            max_frames: sum.max_frames.max(list.frames.len() as u64),
        }
    })
}

/// How the addresses of all call stack records resolve.
fn frames(trace: &AsyncTrace<'_>, methods: &MethodRanges) -> BTreeMap<String, u64> {
    let mut known: FxHashMap<u64, Resolution> = FxHashMap::default();
    let mut counts: BTreeMap<Resolution, u64> = BTreeMap::new();
    for list in trace.frames.iter().filter(|list| list.uses > 0) {
        for Frame { address, .. } in &list.frames {
            let found = *known
                .entry(*address)
                .or_insert_with(|| resolution(methods, *address));
            let count = counts.entry(found).or_default();
            *count = count.saturating_add(list.uses);
        }
    }
    counts
        .into_iter()
        .map(|(found, n)| (found.as_str().to_owned(), n))
        .collect()
}

fn activations(trace: &AsyncTrace<'_>) -> BTreeMap<String, u64> {
    let word = |how: State| match how {
        State::Running => "open",
        State::Unknown => "reset",
        _ => how.as_str(),
    };
    let all = trace.activations.iter();
    all.map(|((family, how), n)| (format!("{} {}", family.short(), word(*how)), *n))
        .collect()
}

fn dispatchers(trace: &AsyncTrace<'_>) -> BTreeMap<String, report::DispatcherCounts> {
    let families = Family::ALL.into_iter().zip(&trace.totals);
    families
        .filter(|(_, totals)| totals.total > 0)
        .map(|(family, totals)| {
            let states = totals.states.iter();
            let counts = report::DispatcherCounts {
                total: totals.total,
                created: totals.created,
                states: states
                    .map(|(state, n)| (state.as_str().to_owned(), *n))
                    .collect(),
                more_than_one_thread: totals.more_than_one_thread,
            };
            (family.short().to_owned(), counts)
        })
        .collect()
}

fn not_completed<'g, 't: 'g>(
    groups: impl Iterator<Item = &'g chains::Group<'t>>,
) -> Vec<report::NotCompleted> {
    groups
        .map(|group| report::NotCompleted {
            family: group.family.short().to_owned(),
            state: group.state.as_str().to_owned(),
            count: group.members.len() as u64,
            frames: group.names.clone(),
        })
        .collect()
}

/// What is proved of the chains that had not ended, and of how many that is not.
fn at_horizon(
    trace: &AsyncTrace<'_>,
    horizons: &Horizons,
    methods: &MethodRanges,
    times: &Times,
) -> report::AtHorizon {
    let groups = chains::not_ended(trace, Some(horizons), methods);
    let count = |standing: Standing, passes: &dyn Fn(State) -> bool| {
        let of = groups
            .iter()
            .filter(|g| g.standing == standing && passes(g.state));
        of.map(|g| g.members.len() as u64)
            .fold(0, u64::saturating_add)
    };
    let waits = |state| matches!(state, State::Suspended | State::SuspendedAtCreate);
    let runs = |state| state == State::Running;
    report::AtHorizon {
        ticks: horizons.proved.map(|h| h.time),
        time: horizons.proved.and_then(|h| times.utc(h.time)),
        waiting: count(Standing::Proved, &waits),
        running: count(Standing::Proved, &runs),
        likely_waiting: count(Standing::Likely, &waits),
        likely_running: count(Standing::Likely, &runs),
        state_unknown: count(Standing::Unknown, &|_| true),
        chains: not_completed(groups.iter().filter(|g| g.standing == Standing::Proved)),
    }
}

fn identities_failed(trace: &AsyncTrace<'_>) -> BTreeMap<String, u64> {
    let mut failed = BTreeMap::new();
    for family in Family::ALL {
        for identity in Identity::ALL {
            let count = trace.identities.broken(family, identity);
            if count > 0 {
                failed.insert(name(family, identity), count);
            }
        }
    }
    failed
}

fn name(family: Family, identity: Identity) -> String {
    format!("{} {}", family.short(), identity.text())
}

fn breaches(trace: &AsyncTrace<'_>) -> Vec<report::TraceBreach> {
    let all = trace.identities.breaches().iter();
    all.map(|b| report::TraceBreach {
        identity: name(b.family, b.identity),
        id: b.identity.id().to_owned(),
        dispatcher: b.dispatcher,
        record: b.record.map(time::record),
    })
    .collect()
}
