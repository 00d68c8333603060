use asynctriage_dump_synth::nettrace::{Headers, Nettrace, Row, metadata_4, utf16};
use asynctriage_nettrace::Trace;
use proptest::prelude::*;

use super::*;

const INT: u32 = 9;
const TEXT: u32 = 18;

fn read(file: &[u8], spec: &str, expected: Option<Vec<Stage>>) -> Markers {
    let mut recording = MarkerRecording::new(spec.parse().unwrap()).expecting(expected);
    for event in Trace::open(file).unwrap().events() {
        recording.push(&event);
    }
    recording.finish()
}

fn read_plain(file: &[u8], spec: &str) -> Markers {
    read(file, spec, None)
}

/// Markers as kind, operation, stage, thread; kinds are 1 Begin, 2 Stage, 3 End. Each is one tick later.
fn tell(markers: &[(u32, i32, i32, u64)], spec: &str) -> Markers {
    expecting(markers, spec, None)
}

fn expecting(
    markers: &[(u32, i32, i32, u64)],
    spec: &str,
    expected: Option<Vec<Stage>>,
) -> Markers {
    let metadata = [
        metadata_4(1, "App", 1, "Begin", &[("op", INT)], &[]),
        metadata_4(2, "App", 2, "Stage", &[("op", INT), ("stage", INT)], &[]),
        metadata_4(3, "App", 3, "End", &[("op", INT)], &[]),
        metadata_4(4, "App", 4, "Nothing", &[], &[]),
    ];
    let rows: Vec<_> = markers
        .iter()
        .zip(1..)
        .map(|((kind, operation, stage, thread), sequence)| Row {
            metadata: *kind,
            sequence,
            thread: *thread,
            timestamp: u64::from(sequence),
            payload: [operation.to_le_bytes(), stage.to_le_bytes()].concat(),
            ..Row::default()
        })
        .collect();
    let file = Nettrace::four()
        .metadata(&metadata)
        .events(Headers::Compressed, &rows)
        .end();
    read(&file, spec, expected)
}

fn figures(markers: &Markers) -> [u64; 4] {
    [
        markers.groups,
        markers.ordered,
        markers.more_than_one_thread,
        markers.events,
    ]
}

fn complaints(markers: &Markers) -> Vec<(String, Disorder)> {
    markers
        .out_of_order
        .iter()
        .map(|o| (o.key.to_string(), o.why))
        .collect()
}

#[test]
fn the_operations_of_a_real_recording_are_in_order() {
    let mut file = Vec::new();
    let packed = include_bytes!("../../../nettrace/testdata/killed-11.0.0.nettrace.gz");
    std::io::Read::read_to_end(&mut flate2::read::GzDecoder::new(&packed[..]), &mut file).unwrap();
    let markers = read_plain(&file, "Asynctriage-Markers");
    assert_eq!(figures(&markers), [100, 100, 92, 600]);
    assert_eq!(markers.out_of_order, []);
    assert_eq!(
        figures(&read_plain(
            &file,
            "Asynctriage-Markers:Begin=begin,Stage=stage,3=end"
        )),
        [100, 100, 92, 600]
    );
    assert_eq!(
        figures(&read_plain(&file, "Asynctriage-Markers:Stage=stage")),
        [100, 100, 92, 400]
    );
    assert_eq!(figures(&read_plain(&file, "Other")), [0; 4]);
}

#[test]
fn each_disorder_is_told() {
    let markers = tell(
        &[
            (1, 1, 0, 7),
            (2, 1, 1, 7),
            (2, 1, 2, 8),
            (3, 1, 0, 8),
            (1, 2, 0, 7),
            (2, 2, 2, 7),
            (2, 2, 1, 7),
            (3, 2, 0, 7),
            (2, 3, 1, 7),
            (3, 3, 0, 7),
            (1, 4, 0, 7),
            (2, 4, 1, 7),
            (1, 5, 0, 7),
            (1, 5, 0, 7),
            (3, 5, 0, 7),
        ],
        "App",
    );
    assert_eq!(figures(&markers), [5, 1, 1, 15]);
    let expected = [
        (2, Disorder::Backwards),
        (3, Disorder::NoBegin),
        (4, Disorder::NoEnd),
        (5, Disorder::Backwards),
    ];
    assert_eq!(
        complaints(&markers),
        expected.map(|(key, why)| (key.to_string(), why))
    );
    assert_eq!(markers.out_of_order[0].markers.len(), 4);
}

#[test]
fn an_id_that_is_used_again_is_another_operation() {
    let markers = tell(
        &[(1, 1, 0, 7), (3, 1, 0, 7), (1, 1, 0, 8), (3, 1, 0, 8)],
        "App",
    );
    assert_eq!(figures(&markers), [2, 2, 0, 4]);
}

#[test]
fn events_that_name_no_operation_are_counted() {
    let markers = tell(&[(4, 0, 0, 7), (1, 1, 0, 7)], "App");
    assert_eq!((figures(&markers), markers.without_key), ([1, 1, 0, 2], 1));
}

#[test]
fn operations_may_be_named_by_text() {
    let row = |sequence: u32, text: &str| Row {
        metadata: 1,
        sequence,
        timestamp: u64::from(sequence),
        payload: utf16(text),
        ..Row::default()
    };
    let file = Nettrace::four()
        .metadata(&[metadata_4(1, "App", 1, "OrderStart", &[("id", TEXT)], &[])])
        .events(Headers::Compressed, &[row(1, "a"), row(2, "b")])
        .end();
    assert_eq!(figures(&read_plain(&file, "App")), [2, 2, 0, 2]);
}

#[test]
fn contracts_are_read_or_refused() {
    let spec: MarkerSpec = "My-App:Begin=begin,2=step,Done=9".parse().unwrap();
    let expected = [
        ("Begin".to_owned(), StageOf::Is(Stage::Begin)),
        ("2".to_owned(), StageOf::Field("step".to_owned())),
        ("Done".to_owned(), StageOf::Is(Stage::At(9))),
    ];
    assert_eq!(
        (spec.provider.as_str(), &spec.events[..]),
        ("My-App", &expected[..])
    );
    assert_eq!("".parse::<MarkerSpec>(), Err(SpecError::NoProvider));
    assert_eq!(":a=1".parse::<MarkerSpec>(), Err(SpecError::NoProvider));
    for bad in ["a", "a=", "=1"] {
        assert_eq!(
            format!("P:{bad}").parse::<MarkerSpec>(),
            Err(SpecError::BadEntry(bad.to_owned()))
        );
    }
}

proptest! {
    #[test]
    fn any_markers_are_counted_once(
        told in proptest::collection::vec((1_u32..5, 0_i32..4, 0_i32..4, 1_u64..3), 0..40),
    ) {
        let markers = tell(&told, "App");
        prop_assert_eq!(markers.events, told.len() as u64);
        prop_assert!(markers.ordered <= markers.groups && markers.more_than_one_thread <= markers.groups);
        let disordered = markers.groups - markers.ordered;
        prop_assert_eq!(markers.out_of_order.len() as u64, disordered.min(10));
        // sorting by hand: an operation whose stages grow is in order
        for group in &markers.out_of_order {
            let stages: Vec<_> = group.markers.iter().map(|m| m.stage).collect();
            let grows = stages.windows(2).all(|pair| pair[0] < pair[1]);
            prop_assert!(!grows || group.why != Disorder::Backwards);
        }
    }
}

#[test]
fn an_expected_sequence_is_compared_exactly() {
    let markers = [
        (1, 7, 0, 1),
        (2, 7, 1, 1),
        (2, 7, 2, 1),
        (3, 7, 0, 1),
        (1, 8, 0, 1),
        (2, 8, 2, 1),
        (3, 8, 0, 1),
        (1, 9, 0, 1),
        (2, 9, 1, 1),
    ];
    let read = |expected: Option<&str>| {
        let stages = expected.map(|text| text.split(',').map(|s| s.parse().unwrap()).collect());
        expecting(&markers, "App", stages)
    };
    let usual = read(None);
    assert_eq!(usual.ordered, 2, "8 skips a stage, which nobody forbids");
    let told: Vec<_> = usual
        .sequences
        .iter()
        .map(|(stages, n)| (stages.len(), *n))
        .collect();
    assert_eq!(told, [(2, 1), (4, 1), (3, 1)]);
    let exact = read(Some("begin,1,2,end"));
    assert_eq!(exact.ordered, 1);
    let (at_1, at_2) = (Stage::At(1), Stage::At(2));
    assert_eq!(
        complaints(&exact),
        [
            ("8".into(), Disorder::Missing(at_1)),
            ("9".into(), Disorder::Missing(at_2))
        ]
    );
    let other = read(Some("begin,2,end"));
    assert_eq!(
        complaints(&other)[0],
        ("7".into(), Disorder::Unexpected(at_1))
    );
}

#[test]
fn what_is_not_there_is_told() {
    let markers = [(1, 7, 0, 1), (4, 0, 0, 1)];
    let some = tell(&markers, "App:Begin=begin,Ende=end,3=end");
    assert_eq!(some.absent, ["Ende", "3"]);
    let seen: Vec<_> = some
        .seen
        .iter()
        .map(|(name, n)| (name.as_str(), *n))
        .collect();
    assert_eq!(seen, [("Begin", 1), ("Nothing", 1)]);
    assert_eq!(tell(&markers, "Apps").seen.len(), 0);
    assert!("later".parse::<Stage>().is_err());
}
