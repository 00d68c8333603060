//! Cut and damaged recordings through the whole analysis: what is shown was recorded, whatever is missing.

use asynctriage_report::timeline::timeline_html;
use asynctriage_report::{TraceRecord, TraceReport, TraceVerdict};
use asynctriage_triage::trace::{ExportFormat, TraceOptions, export, records, timeline, trace};
use std::collections::HashSet;
use std::io::Read;
use std::ops::ControlFlow;
use std::path::Path;

/// Real recordings beside the test dumps.
fn recording(name: &str) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../testdumps")
        .join(format!("{name}.nettrace.gz"));
    let packed = std::fs::read(path).expect("the repository has its recordings");
    let mut bytes = Vec::new();
    flate2::read::GzDecoder::new(packed.as_slice())
        .read_to_end(&mut bytes)
        .expect("well packed");
    bytes
}

fn everything() -> TraceOptions {
    TraceOptions {
        members: usize::MAX,
        ..TraceOptions::default()
    }
}

fn rows(file: &[u8]) -> Vec<TraceRecord> {
    let mut rows = Vec::new();
    records(file, &asynctriage_dump::Budget::new(), |row| {
        rows.push(row);
        ControlFlow::Continue(())
    })
    .expect("its header is whole");
    rows
}

/// A dispatcher and its frames, as a record or a chain has them.
type Chain = (u64, Vec<u64>);

fn recorded(rows: &[TraceRecord]) -> HashSet<Chain> {
    let stacks = rows.iter().filter_map(|row| {
        let frames = row.frames.as_ref()?.iter().map(|a| a.0).collect();
        Some((row.dispatcher, frames))
    });
    stacks.collect()
}

/// Each chain of the report for each of its members.
fn shown(report: &TraceReport) -> Vec<Chain> {
    let chains = report.chains.iter().filter_map(|chain| {
        let frames: Vec<u64> = chain.frames.as_ref()?.iter().map(|f| f.address.0).collect();
        let members = chain.members.iter().map(|m| m.dispatcher);
        Some(
            members
                .map(move |id| (id, frames.clone()))
                .collect::<Vec<_>>(),
        )
    });
    chains.flatten().collect()
}

fn cut_everywhere(name: &str, step: usize) {
    let whole = recording(name);
    let all_rows = rows(&whole);
    let stacks = recorded(&all_rows);
    for len in (0..whole.len()).step_by(step) {
        let part = &whole[..len];
        let Ok(report) = trace(part, &everything()) else {
            assert!(len < 256, "{name} at {len}: refused behind its header");
            continue;
        };
        assert!(
            report.flags.iter().any(|f| f == "container-truncated"),
            "{name} at {len}: {:?}",
            report.flags
        );
        assert_ne!(report.verdict, TraceVerdict::Bounded, "{name} at {len}");
        // one chain's frames may differ between the first addresses of a group: members are checked against all stacks
        let addresses: HashSet<&Vec<u64>> = stacks.iter().map(|(_, frames)| frames).collect();
        for (id, frames) in shown(&report) {
            assert!(addresses.contains(&frames), "{name} at {len}: {frames:x?}");
            assert!(
                stacks.iter().any(|(known, _)| *known == id),
                "{name} at {len}: dispatcher {id}"
            );
        }
        let drawn = timeline(part, &everything()).expect("its header is whole");
        let open = drawn
            .operations
            .iter()
            .filter(|o| o.ended.is_none())
            .count() as u64;
        let waiting: u64 = report.chains.iter().map(|c| c.count).sum();
        assert_eq!(open, waiting, "{name} at {len}");
        assert!(
            timeline_html(&drawn).ends_with("</html>\n"),
            "{name} at {len}"
        );
        let kept = rows(part);
        assert_eq!(kept, all_rows[..kept.len()], "{name} at {len}");
        let counted = report.async_profile.map_or(0, |p| p.records);
        assert_eq!(kept.len() as u64, counted, "{name} at {len}");
    }
}

#[test]
fn a_cut_recording_of_operations_shows_only_what_was_recorded() {
    cut_everywhere("operations-runtimeasync-11.0.0", 512);
}

#[test]
fn a_cut_recording_without_rundown_shows_only_what_was_recorded() {
    cut_everywhere("norundown-runtimeasync-11.0.0", 512);
}

#[test]
fn a_cut_recording_of_waiting_chains_shows_only_what_was_recorded() {
    cut_everywhere("forever-runtimeasync-11.0.0", 512);
}

/// A small generator of numbers; the same on every machine.
fn next(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state
}

/// Flips bits; nothing panics, and the sums of the report stay sums.
fn damage(name: &str, times: usize) {
    let whole = recording(name);
    let mut state = 0x9e37_79b9_7f4a_7c15;
    for round in 0..times {
        let mut bytes = whole.clone();
        for _ in 0..=next(&mut state) % 8 {
            let at = usize::try_from(next(&mut state)).unwrap_or(0) % bytes.len();
            bytes[at] ^= 1 << (next(&mut state) % 8);
        }
        let Ok(report) = trace(&bytes, &everything()) else {
            assert!(timeline(&bytes, &everything()).is_err(), "round {round}");
            continue;
        };
        let drawn = timeline(&bytes, &everything()).expect("the same header");
        let known = |place: u32| (place as usize) < drawn.operations.len();
        assert!(drawn.spans.iter().filter_map(|s| s.operation).all(known));
        assert!(
            timeline_html(&drawn).ends_with("</html>\n"),
            "round {round}"
        );
        for format in ExportFormat::ALL {
            let mut out = Vec::new();
            let written = export(&bytes, format, &everything(), &mut out).expect("the same header");
            written.expect("memory takes all");
            let is_json = serde_json::from_slice::<serde_json::Value>(&out).is_ok();
            assert!(
                is_json || format == ExportFormat::Folded,
                "round {round} {format:?}"
            );
        }
        let Some(profile) = &report.async_profile else {
            assert_eq!(report.verdict, TraceVerdict::Empty, "round {round}");
            continue;
        };
        assert_eq!(profile.outer_events, profile.batches + profile.rejected);
        assert_eq!(profile.records, profile.by_kind.values().sum::<u64>());
        let shown: u64 = report.chains.iter().map(|c| c.count).sum();
        let listed: u64 = profile.not_completed_chains.iter().map(|c| c.count).sum();
        assert_eq!(shown, listed, "round {round}");
        if profile.rejected > 0 {
            assert_eq!(report.verdict, TraceVerdict::Partial, "round {round}");
        }
    }
}

#[test]
fn damaged_recordings_never_break_the_report() {
    damage("norundown-runtimeasync-11.0.0", 400);
    damage("operations-runtimeasync-11.0.0", 60);
    damage("http-mixed-11.0.0", 60);
}
