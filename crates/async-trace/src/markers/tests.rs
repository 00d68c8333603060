use asynctriage_dump_synth::nettrace::{Headers, Nettrace, Row, metadata_4, utf16};
use asynctriage_nettrace::Trace;
use proptest::prelude::*;

use super::*;

const INT: u32 = 9;
const TEXT: u32 = 18;

fn read(file: &[u8], spec: &str) -> Markers {
    let mut recording = MarkerRecording::new(spec.parse().unwrap());
    for event in Trace::open(file).unwrap().events() {
        recording.push(&event);
    }
    recording.finish()
}

/// Markers as kind, operation, stage, thread; kinds are 1 Begin, 2 Stage, 3 End. Each is one tick later.
fn tell(markers: &[(u32, i32, i32, u64)], spec: &str) -> Markers {
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
    read(&file, spec)
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
    let markers = read(&file, "Asynctriage-Markers");
    assert_eq!(figures(&markers), [100, 100, 92, 600]);
    assert_eq!(markers.out_of_order, []);
    assert_eq!(
        figures(&read(
            &file,
            "Asynctriage-Markers:Begin=begin,Stage=stage,3=end"
        )),
        [100, 100, 92, 600]
    );
    assert_eq!(
        figures(&read(&file, "Asynctriage-Markers:Stage=stage")),
        [100, 100, 92, 400]
    );
    assert_eq!(figures(&read(&file, "Other")), [0; 4]);
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
    assert_eq!(figures(&read(&file, "App")), [2, 2, 0, 2]);
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
