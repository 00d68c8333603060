//! What the recordings of the runs hold: a mode whose recordings are empty has measured nothing.

use super::run::Outcome;
use crate::recipe::ASYNC_PROFILER;
use asynctriage_report::{Gap, ObserveMode, TraceVerdict};
use asynctriage_triage::trace::{TraceOptions, trace};
use std::fs;
use std::path::Path;

/// Recordings up to this size are looked into.
const LOOKED_INTO: u64 = 1 << 30;

/// A recording in figures.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Recorded {
    pub(super) events: u64,
    pub(super) records: u64,
    pub(super) lost: u64,
    pub(super) verdict: Option<TraceVerdict>,
}

/// Reads a recording; without figures when it is too large or makes no sense.
pub(super) fn look_into(file: &Path) -> Recorded {
    let small = fs::metadata(file).is_ok_and(|m| m.len() <= LOOKED_INTO);
    let bytes = small.then(|| fs::read(file).ok()).flatten();
    let report = bytes.and_then(|bytes| trace(&bytes, &TraceOptions::default()).ok());
    report.map_or_else(Recorded::default, |r| Recorded {
        events: r.container.events,
        records: r.async_profile.as_ref().map_or(0, |a| a.records),
        lost: r.container.lost_events,
        verdict: Some(r.verdict),
    })
}

/// The figures of a mode, in the order of the rounds.
pub(super) fn count(mode: &mut ObserveMode, outcomes: &[Outcome]) {
    for recorded in outcomes.iter().filter_map(|o| o.recorded.as_ref()) {
        mode.events.push(recorded.events);
        mode.lost_events.push(recorded.lost);
        // other providers than the async profiler record no chains
        if !mode.providers.iter().any(|p| p.starts_with(ASYNC_PROFILER)) {
            continue;
        }
        mode.records.push(recorded.records);
        let verdict = recorded.verdict.map_or("unread", TraceVerdict::as_str);
        let count = mode.verdicts.entry(verdict.to_owned()).or_default();
        *count = count.saturating_add(1);
    }
}

/// Modes that a run records nothing of, and gaps that say so, and where events were lost.
pub(super) fn unrecorded<'m>(modes: &'m [ObserveMode], gaps: &mut Vec<Gap>) -> Vec<&'m str> {
    let mut found = Vec::new();
    for mode in modes {
        let lost: u64 = mode
            .lost_events
            .iter()
            .fold(0, |sum, n| sum.saturating_add(*n));
        if lost > 0 {
            gaps.push(Gap {
                id: "lost-events".into(),
                section: "runs".into(),
                why: format!(
                    "{lost} events of mode {} were lost: recording them might have cost more",
                    mode.name
                ),
                remedy: "give --buffer-mb more".into(),
                ..Gap::default()
            });
        }
        let empty = [TraceVerdict::Empty, TraceVerdict::MetadataOnly]
            .iter()
            .filter_map(|verdict| mode.verdicts.get(verdict.as_str()))
            .fold(0_u64, |sum, n| sum.saturating_add(*n));
        if empty > 0 {
            gaps.push(Gap {
                id: "nothing-recorded".into(),
                section: "runs".into(),
                why: format!(
                    "{empty} recordings of mode {} hold no chain: what they cost is not the cost of recording chains",
                    mode.name
                ),
                remedy: "let the program ask the profiler to flush, outside its timer, before it ends (see testdumps/awaits); \
                         a program that never suspends has nothing to record"
                    .into(),
                ..Gap::default()
            });
            found.push(mode.name.as_str());
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mode_without_chains_is_not_compared() {
        let mode = |verdict: &str, lost| ObserveMode {
            name: "profiler".into(),
            verdicts: [(verdict.to_owned(), 2)].into(),
            lost_events: vec![0, lost],
            ..ObserveMode::default()
        };
        let mut gaps = Vec::new();
        assert_eq!(
            unrecorded(&[mode("METADATA-ONLY", 0)], &mut gaps),
            ["profiler"]
        );
        assert_eq!(unrecorded(&[mode("BOUNDED", 3)], &mut gaps), [""; 0]);
        let ids: Vec<&str> = gaps.iter().map(|g| g.id.as_str()).collect();
        assert_eq!(ids, ["nothing-recorded", "lost-events"]);
    }
}
