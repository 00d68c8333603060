use std::sync::Arc;

use asynctriage_dump_synth::nettrace::{Headers, Nettrace, Row, metadata_4, utf16};

use super::*;
use crate::Trace;
use crate::runtime::{RUNDOWN, RUNTIME};

/// Metadata number, time, start, size, description, name.
type Load = (u32, u64, u64, u32, u64, &'static str);

/// 1: live load, 2: live unload, 3: rundown, 4: live load that is not verbose.
fn collect(loads: &[Load]) -> Methods {
    let kinds = [
        (RUNTIME, 143),
        (RUNTIME, 144),
        (RUNDOWN, 144),
        (RUNTIME, 141),
    ];
    let metadata: Vec<_> = kinds
        .iter()
        .zip(1..)
        .map(|((provider, event), id)| metadata_4(id, provider, *event, "", &[], &[]))
        .collect();
    let rows: Vec<_> = loads
        .iter()
        .zip(1..)
        .map(
            |((metadata, timestamp, start, size, method, name), sequence)| {
                let mut payload = Vec::new();
                for number in [*method, 0x77, *start] {
                    payload.extend(number.to_le_bytes());
                }
                for number in [*size, 1, 8] {
                    payload.extend(number.to_le_bytes());
                }
                if *metadata != 4 {
                    payload.extend([utf16("N.T"), utf16(name), utf16("")].concat());
                }
                payload.extend([0; 10]);
                Row {
                    metadata: *metadata,
                    timestamp: *timestamp,
                    sequence,
                    payload,
                    ..Row::default()
                }
            },
        )
        .collect();
    let file = Nettrace::four()
        .metadata(&metadata)
        .events(Headers::Compressed, &rows)
        .end();
    let mut methods = Methods::default();
    for event in Trace::open(&file).unwrap().events() {
        assert!(methods.add(&event), "{:?}", Arc::clone(&event.kind));
    }
    methods
}

fn names(ranges: &MethodRanges, address: u64) -> Vec<&str> {
    ranges.candidates(address).map(|m| &*m.name).collect()
}

#[test]
fn live_events_and_rundown_of_one_range_are_one() {
    let methods = collect(&[
        (4, 50, 0x1000, 0x10, 1, ""),
        (3, 90, 0x1000, 0x10, 1, "A"),
        (1, 60, 0x1000, 0x20, 1, "A"),
    ]);
    assert_eq!(
        (methods.events(), methods.live(), methods.rundown()),
        (3, 2, 1)
    );
    assert_eq!(methods.distinct_ranges(), 2);
    let first = &methods.ranges()[0];
    assert_eq!(
        (&*first.name, first.origin.loaded, first.origin.rundown),
        ("A", Some(50), true)
    );
    assert_eq!(first.full_name().as_deref(), Some("N.T.A"));
}

#[test]
fn overlapping_ranges_are_all_candidates() {
    let ranges = collect(&[
        (3, 1, 0x1000, 0x100, 1, "whole"),
        (3, 1, 0x1040, 0x10, 2, "inside"),
        (3, 1, 0x1100, 0x10, 3, "behind"),
        (3, 1, u64::MAX - 4, 0x10, 4, "last"),
        (3, 1, 0x2000, 0, 5, "empty"),
    ])
    .into_ranges();
    assert_eq!(names(&ranges, 0xfff), [""; 0]);
    assert_eq!(names(&ranges, 0x1000), ["whole"]);
    assert_eq!(names(&ranges, 0x1040), ["whole", "inside"]);
    assert_eq!(names(&ranges, 0x104f), ["whole", "inside"]);
    assert_eq!(names(&ranges, 0x1050), ["whole"]);
    assert_eq!(names(&ranges, 0x1100), ["behind"]);
    assert_eq!(names(&ranges, 0x1110), [""; 0]);
    assert_eq!(names(&ranges, 0x2000), [""; 0]);
    assert_eq!(names(&ranges, u64::MAX - 1), ["last"]);
}

#[test]
fn code_is_there_between_load_and_unload() {
    let methods = collect(&[(1, 50, 0x1000, 0x10, 1, "A"), (2, 80, 0x1000, 0x10, 1, "A")]);
    let method = &methods.ranges()[0];
    let there: Vec<_> = [49, 50, 80, 81].map(|t| method.was_there(t)).to_vec();
    assert_eq!(there, [false, true, true, false]);
}

#[test]
fn many_ranges_over_one_address_are_cut() {
    let loads: Vec<Load> = (0..100)
        .map(|i| (3, 1, 0x1000 - i, 0x1000, i, "x"))
        .collect();
    let ranges = collect(&loads).into_ranges();
    assert_eq!(ranges.candidates(0x1000).count(), 32);
    assert_eq!(ranges.candidates(0x1000 - 99).count(), 1);
}
