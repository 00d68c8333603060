//! One changed word of a real dump: what another word contradicts is told.

use asynctriage_dump::{Addr, Dump, Memory};
use asynctriage_report::{Confidence, FindingKind, Report};
use asynctriage_triage::{Options, analyse};
use std::io::Read;

/// The report of a dump of `testdumps` with other bytes at some place of the file.
fn report(name: &str, at: usize, new: &[u8]) -> Report {
    let mut bytes = unpacked(name);
    bytes[at..at + new.len()].copy_from_slice(new);
    let dump = Dump::from_bytes(bytes).expect("a dump");
    analyse(&dump, &Options::default()).expect("a report")
}

/// The report of a dump with other words at some addresses.
fn report_of_writes(name: &str, writes: &[(u64, u64)]) -> Report {
    let mut bytes = unpacked(name);
    let whole = Dump::from_bytes(bytes.clone()).expect("a dump");
    for (address, word) in writes {
        // words of the heap are found by what stands around them
        let around = whole.memory.slice(Addr(*address), 64).expect("it is there");
        let mut places = bytes.windows(64).enumerate().filter(|(_, w)| *w == around);
        let (at, _) = places.next().expect("the memory is in the file");
        assert!(places.next().is_none());
        bytes[at..at + 8].copy_from_slice(&word.to_le_bytes());
    }
    let dump = Dump::from_bytes(bytes).expect("a dump");
    analyse(&dump, &Options::default()).expect("a report")
}

fn unpacked(name: &str) -> Vec<u8> {
    let path = format!(
        "{}/../../testdumps/{name}.dmp.gz",
        env!("CARGO_MANIFEST_DIR")
    );
    let packed = std::fs::read(&path).unwrap_or_else(|e| panic!("{path}: {e}"));
    let mut bytes = Vec::new();
    flate2::read::GzDecoder::new(&*packed)
        .read_to_end(&mut bytes)
        .expect("a packed dump");
    bytes
}

fn has_gap(report: &Report, why: &str) -> bool {
    report.gaps.iter().any(|g| g.why.contains(why))
}

fn assert_told(name: &str, at: usize, new: u64, why: &str) {
    let whole = report(name, at, &[]);
    assert!(!has_gap(&whole, why), "{name} is whole: {:?}", whole.gaps);
    let damaged = report(name, at, &new.to_le_bytes());
    assert!(has_gap(&damaged, why), "{name}: {:?}", damaged.gaps);
}

#[test]
fn a_second_awaiter_is_denied_by_what_it_names() {
    assert_told(
        "chain-9.0.23",
        323_352,
        0x7fbf_6280_cd58,
        "denied by the other",
    );
}

#[test]
fn a_frame_has_one_task() {
    let name = "states-runtimeasync-11.0.0";
    assert_told(name, 292_848, 0x7ff3_a580_4f48, "belong to two tasks");
}

#[test]
fn who_waits_is_an_object() {
    assert_told(
        "never-10.0.15",
        307_232,
        0x1000,
        "what they name is no object",
    );
}

#[test]
fn a_copy_names_a_box_of_its_type() {
    let why = "its builder names no task of its type";
    assert_told("never-10.0.15", 307_272, 0x7ff3_9fc0_48d8, why);
}

#[test]
fn a_semaphore_has_no_more_places_than_its_limit() {
    assert_told(
        "selfcontained-9.0.5",
        292_656,
        0x7fbf_6280_8d38,
        "contradict themselves",
    );
}

#[test]
fn regions_fill_the_file() {
    // the kind of an entry of the list of segments
    assert_told("chain-9.0.23", 568, 0x6_7FFF_FFFF, "it contradicts itself");
}

#[test]
fn mapped_files_have_names() {
    assert_told(
        "locks-10.0.15",
        30_120,
        0x8000_0000,
        "the list of mapped files is wrong",
    );
}

/// Without one of its references the object is as lost as one that nobody ever kept.
#[test]
fn what_one_lost_reference_explains_is_not_certain() {
    let damaged = report("clients-10.0.15", 343_344, &[0; 8]);
    let mut never = damaged
        .findings
        .iter()
        .filter(|f| f.kind == FindingKind::NeverCompletes)
        .peekable();
    assert!(never.peek().is_some());
    assert!(never.all(|f| f.confidence < Confidence::Certain));
}

/// Where the file's own list of memory is wrong, a chain may be hidden.
#[test]
fn nothing_is_idle_in_a_file_that_contradicts_itself() {
    let is_idle = |report: &Report| report.findings.iter().any(|f| f.kind == FindingKind::Idle);
    // the rights of the last entry
    let at = 29_636;
    assert!(is_idle(&report("idle-10.0.15", at, &[])));
    let damaged = report("idle-10.0.15", at, &[0xff]);
    assert!(has_gap(&damaged, "it contradicts itself"));
    assert!(!is_idle(&damaged), "{:?}", damaged.findings);
}

#[test]
fn an_object_of_another_class_is_told() {
    // the object of a TaskCompletionSource's task, and the context of a method
    assert_told(
        "signals-10.0.15",
        282_344,
        0x7fff_ffff,
        "cannot stand there",
    );
    let task = 0x7ff3_9d80_af38;
    assert_told("signals-10.0.15", 280_456, task, "cannot stand there");
    // a TaskCompletionSource is not resumed by anything
    let source = 0x7ff3_9d80_9d48;
    assert_told("canary-10.0.15", 277_888, source, "cannot stand there");
}

#[test]
fn a_suspended_frame_leads_to_another_one() {
    let nothing = 0x7ff3_ffff_ffff;
    assert_told(
        "web-11.0.0",
        3_042_464,
        nothing,
        "what they name is no object",
    );
}

#[test]
fn who_runs_is_not_registered_to_be_resumed() {
    let running = u64::from(u32::MAX) | 1 << 32;
    assert_told(
        "bundled-packed-8.0.30",
        1_735_136,
        running,
        "cannot stand there",
    );
}

#[test]
fn managed_code_that_is_noted_has_a_method() {
    // the tree of code ranges begins on this page
    let name = "rwlock-11.0.0";
    let damaged = report(name, 126_976, &[0xA5; 4096]);
    assert!(
        has_gap(&damaged, "no method is known there"),
        "{:?}",
        damaged.gaps
    );
}

/// Both ends of a link are changed so that methods seem to await each other; what the innermost one awaited in truth still
/// names it.
#[test]
fn a_circle_of_methods_whose_links_are_denied_is_not_certain() {
    let whole = report("chain-10.0.15", 0, &[]);
    let path = |r: &Report| r.findings.iter().any(|f| f.kind == FindingKind::AwaitCycle);
    assert!(!path(&whole));
    let (inner, outer) = (0x7ff3_9d80_b078_u64, 0x7ff3_9d80_b178_u64);
    // the awaiter of the innermost method, and who the outermost one resumes
    let writes = [(0x7ff3_9d80_b0c8, outer), (outer + 32, inner)];
    let damaged = report_of_writes("chain-10.0.15", &writes);
    let cycles = damaged.findings.iter();
    let mut cycles = cycles
        .filter(|f| f.kind == FindingKind::AwaitCycle)
        .peekable();
    assert!(cycles.peek().is_some(), "{:?}", damaged.findings);
    assert!(cycles.all(|f| f.confidence < Confidence::Certain));
    assert!(has_gap(&damaged, "denied by the other"));
}
