//! Whole files, made and real.

mod hostile;
mod real;
mod version6;

use asynctriage_dump_synth::nettrace::{
    Headers, Nettrace, PID, Row, START_TICKS, metadata_4, metadata_6, utf8, utf16, varuint,
};

use crate::{End, Error, Event, FieldType, Header, Label, Summary, Trace, Value, Version};

/// Events of kind 1 with an id and a text, on two threads.
fn rows() -> Vec<Row> {
    let row = |sequence: u32, thread: u64, timestamp: u64, stack: u32, text: &str| Row {
        metadata: 1,
        sequence,
        capture_thread: thread,
        processor: 1,
        thread,
        stack,
        timestamp,
        payload: [&sequence.to_le_bytes()[..], &utf16(text)].concat(),
        ..Row::default()
    };
    vec![
        row(1, 70, 5_000, 1, "a"),
        row(2, 70, 5_010, 0, "b"),
        Row {
            activity: [7; 16],
            related_activity: [8; 16],
            sorted: true,
            ..row(1, 71, 4_000, 2, "longer")
        },
        // back to the first thread: the number goes back with it
        row(3, 70, 5_020, 2, ""),
    ]
}

fn metadata_row() -> Vec<u8> {
    metadata_4(1, "App", 3, "Said", &[("id", 9), ("text", 18)], &[])
}

fn four(headers: Headers) -> Nettrace {
    Nettrace::four()
        .metadata(&[metadata_row()])
        .stacks(1, &[&[0x10, 0x20], &[0x30]])
        .events(headers, &rows())
        .sequence_point(9_000, 0, &[(70, 3), (71, 1)])
}

fn read(file: &[u8]) -> (Vec<Event<'_>>, Summary) {
    let mut events = Trace::open(file).unwrap().events();
    let found = events.by_ref().collect();
    (found, events.summary())
}

fn compare(events: &[Event<'_>], rows: &[Row]) {
    assert_eq!(events.len(), rows.len());
    for (event, row) in events.iter().zip(rows) {
        let of_event = (
            event.sequence,
            event.capture_thread,
            event.processor,
            event.thread,
            event.timestamp,
        );
        let of_row = (
            row.sequence,
            row.capture_thread,
            row.processor,
            row.thread,
            row.timestamp,
        );
        assert_eq!(of_event, of_row);
        assert_eq!((event.stack, event.sorted), (row.stack, row.sorted));
        assert_eq!(event.payload, row.payload);
    }
}

#[test]
fn both_forms_of_headers_give_the_rows_that_were_written() {
    for headers in [Headers::Compressed, Headers::Fixed] {
        let file = four(headers).end();
        let (events, summary) = read(&file);
        compare(&events, &rows());
        let [.., with_activity, _] = &events[..] else {
            panic!()
        };
        assert_eq!(with_activity.activity, Some([7; 16]));
        assert_eq!(with_activity.related_activity, Some([8; 16]));
        assert_eq!(
            (summary.end, summary.damages.count),
            (End::Tag, 0),
            "{summary:?}"
        );
        assert_eq!((summary.lost.events, summary.lost.unknown), (0, 0));
        assert_eq!((summary.events, summary.metadata), (4, 1));
        assert_eq!(summary.events_by_provider["App"], 4);
        for event in &events {
            let at = usize::try_from(event.payload_offset).unwrap();
            assert_eq!(&file[at..at + event.payload.len()], event.payload);
            assert!(event.offset < event.payload_offset);
        }
    }
}

#[test]
fn fields_are_read_by_name() {
    let file = four(Headers::Compressed).end();
    let (events, _) = read(&file);
    let kind = &events[0].kind;
    assert_eq!(
        (kind.provider.as_str(), kind.id, kind.name.as_str()),
        ("App", 3, "Said")
    );
    assert_eq!(
        (kind.version, kind.level, kind.own_keywords()),
        (2, 4, 0x10)
    );
    assert!(kind.is("App", 3) && !kind.is("App", 4));
    assert_eq!(events[2].value("id"), Some(Value::Signed(1)));
    assert!(matches!(events[2].value("text"), Some(Value::Text(text)) if text == "longer"));
    assert_eq!(events[2].value("other"), None);
    assert_eq!(events[2].values().last().unwrap().0, "text");
}

#[test]
fn stacks_are_valid_up_to_the_next_sequence_point() {
    let file = four(Headers::Compressed)
        .events(
            Headers::Compressed,
            &[Row {
                sequence: 4,
                ..rows().remove(0)
            }],
        )
        .end();
    let mut events = Trace::open(&file).unwrap().events();
    let mut stacks = Vec::new();
    while let Some(event) = events.next() {
        stacks.push(
            events
                .stack(event.stack)
                .map(|s| s.addresses().collect::<Vec<_>>()),
        );
    }
    let two = Some(vec![0x10, 0x20]);
    assert_eq!(
        stacks,
        [two, None, Some(vec![0x30]), Some(vec![0x30]), None]
    );
    assert_eq!(events.summary().sequence_points, 1);
}

#[test]
fn the_header_says_what_the_process_was() {
    let expected = |version, properties| Header {
        version,
        start: crate::DateTime {
            year: 2026,
            month: 11,
            day: 29,
            hour: 12,
            ..Default::default()
        },
        start_ticks: START_TICKS,
        frequency: 1_000_000_000,
        pointer_size: 8,
        pid: Some(PID),
        processors: Some(2),
        sampling_rate: Some(1_000_000),
        properties,
    };
    let four = Nettrace::four().end();
    let version = Version::FastSerialization {
        version: 4,
        min_reader: 4,
    };
    assert_eq!(
        *Trace::open(&four).unwrap().header(),
        expected(version, vec![])
    );
    let six = Nettrace::six().end();
    let pairs = [
        ("ProcessId", "4711"),
        ("HardwareThreadCount", "2"),
        ("Host", "x"),
    ];
    let properties = pairs.map(|(k, v)| (k.into(), v.into())).to_vec();
    let expected = Header {
        sampling_rate: None,
        ..expected(Version::Six { minor: 0 }, properties)
    };
    assert_eq!(*Trace::open(&six).unwrap().header(), expected);
}

#[test]
fn other_files_and_versions_are_refused_by_name() {
    let refused = |file: &[u8]| Trace::open(file).unwrap_err();
    assert_eq!(refused(b""), Error::NotNettrace);
    assert_eq!(refused(b"MDMP...."), Error::NotNettrace);
    assert_eq!(refused(b"Nett"), Error::CutHeader { bytes: 4 });
    assert_eq!(
        refused(b"\x14\0\0\0!FastSerialization.1rest"),
        Error::NetPerf
    );
    let whole = Nettrace::four().cut();
    for cut in 8..whole.len() {
        assert_eq!(
            refused(&whole[..cut]),
            Error::CutHeader { bytes: cut as u64 }
        );
    }
    let with = |at: usize, value: u8| {
        let mut file = Nettrace::four().cut();
        file[at] = value;
        refused(&file)
    };
    let (version, min_reader) = (35, 39);
    assert_eq!(
        with(version, 3),
        Error::UnknownVersion { major: 3, minor: 4 }
    );
    assert_eq!(
        with(min_reader, 6),
        Error::UnknownVersion { major: 4, minor: 6 }
    );
    assert!(matches!(
        with(12, b'?'),
        Error::BadHeader { offset: 12, .. }
    ));
    let mut seven = Nettrace::six().end();
    seven[12] = 7;
    assert_eq!(
        refused(&seven),
        Error::UnknownVersion { major: 7, minor: 0 }
    );
    for error in [refused(b""), refused(&seven), Error::NetPerf] {
        assert!(!error.remedy().is_empty());
    }
}

#[test]
fn tags_of_version_5_describe_fields_and_opcode() {
    let mut array = utf16("codes");
    array.extend([19, 0, 0, 0, 7, 0, 0, 0]);
    let field = [
        (array.len() as u32 + 6).to_le_bytes().to_vec(),
        array,
        vec![0, 0],
    ]
    .concat();
    let tag = |kind: u8, body: Vec<u8>| {
        [(body.len() as u32).to_le_bytes().to_vec(), vec![kind], body].concat()
    };
    let mut last = utf16("last");
    last.extend([6, 0, 0, 0]);
    let last = [(last.len() as u32 + 4).to_le_bytes().to_vec(), last].concat();
    let fields = [vec![2, 0, 0, 0], field, last].concat();
    let tags = [tag(1, vec![9]), tag(77, vec![1, 2]), tag(2, fields)].concat();
    let row = Row {
        metadata: 1,
        sequence: 1,
        timestamp: 2_000,
        payload: vec![2, 0, 0xff, 0xff, 5, 0, 42],
        ..Row::default()
    };
    let file = Nettrace::four()
        .metadata(&[metadata_4(1, "App", 1, "", &[], &tags)])
        .events(Headers::Compressed, &[row])
        .end();
    let (events, summary) = read(&file);
    assert_eq!(summary.damages.count, 0);
    assert_eq!(events[0].kind.opcode, Some(9));
    let codes = Value::Array {
        count: Some(2),
        bytes: &[0xff, 0xff, 5, 0],
    };
    let values: Vec<_> = events[0].values().collect();
    assert_eq!(values, [("codes", codes), ("last", Value::Unsigned(42))]);
}

#[test]
fn all_types_of_fields_have_values() {
    let code = |code: u8| vec![code];
    let object = [vec![1, 1, 0, 4, 0], utf8("in"), vec![9]].concat();
    let types: [(&str, Vec<u8>); 11] = [
        ("bool", code(3)),
        ("i8", code(5)),
        ("u16", code(8)),
        ("f64", code(14)),
        ("varint", code(20)),
        ("varuint", code(21)),
        ("fixed", vec![22, 6, 3, 0]),
        ("here", vec![24, 6]),
        ("there", vec![25, 6]),
        ("object", object),
        ("bool8", code(26)),
    ];
    let fields: Vec<_> = types
        .iter()
        .map(|(name, kind)| (*name, &kind[..]))
        .collect();
    let mut payload = vec![1, 0, 0, 0, 0xfe, 0x34, 0x12];
    payload.extend(1.5_f64.to_le_bytes());
    payload.extend([3, 0x80, 1, 7, 8, 9]);
    // two bytes, one behind this field; three bytes from the fourth on
    payload.extend([1, 0, 2, 0, 4, 0, 3, 0]);
    payload.extend([5, 0, 0, 0, 1]);
    let file = Nettrace::six()
        .metadata(&[metadata_6(
            1,
            "App",
            1,
            "All",
            &fields,
            &[8, 5, 3, 1, 0, 0, 0, 0, 0, 0, 0, 9, 2],
        )])
        .threads(&[(1, 100, "main")])
        .events(
            Headers::Compressed,
            &[Row {
                metadata: 1,
                sequence: 1,
                capture_thread: 1,
                thread: 1,
                timestamp: 1,
                payload,
                ..Row::default()
            }],
        )
        .end();
    let (events, summary) = read(&file);
    assert_eq!(summary.damages.count, 0, "{summary:?}");
    let kind = &events[0].kind;
    assert_eq!((kind.level, kind.keywords, kind.version), (5, 1, 2));
    let inner = crate::Field {
        name: "in".into(),
        kind: FieldType::Signed(4),
    };
    assert_eq!(kind.fields[9].kind, FieldType::Object(vec![inner]));
    let array = |count, bytes| Value::Array { count, bytes };
    let values: Vec<_> = events[0].values().map(|(_, value)| value).collect();
    let expected = [
        Value::Bool(true),
        Value::Signed(-2),
        Value::Unsigned(0x1234),
        Value::Float(1.5),
        Value::Signed(-2),
        Value::Unsigned(128),
        array(Some(3), &[7, 8, 9]),
        array(None, &[0, 3]),
        array(None, &[0xfe, 0x34, 0x12]),
        Value::Object(&[5, 0, 0, 0]),
        Value::Bool(true),
    ];
    assert_eq!(values, expected);
}

#[test]
fn values_end_before_what_cannot_be_read() {
    let file = Nettrace::four()
        .metadata(&[metadata_4(
            1,
            "App",
            1,
            "",
            &[("a", 9), ("what", 99), ("b", 9)],
            &[],
        )])
        .events(
            Headers::Compressed,
            &[Row {
                metadata: 1,
                sequence: 1,
                timestamp: 1,
                payload: vec![1, 0, 0, 0, 2, 0, 0, 0],
                ..Row::default()
            }],
        )
        .end();
    let (events, _) = read(&file);
    let mut values = events[0].values();
    assert_eq!(values.next(), Some(("a", Value::Signed(1))));
    assert_eq!((values.next(), values.next()), (None, None));
    assert_eq!(values.rest(), [2, 0, 0, 0]);
}

#[test]
fn events_without_what_they_name_are_counted() {
    let file = Nettrace::six()
        .metadata(&[metadata_6(1, "App", 3, "", &[], &[])])
        .threads(&[(70, 1070, "")])
        .events(Headers::Compressed, &rows())
        .end();
    let (events, summary) = read(&file);
    assert_eq!((events.len(), summary.without_thread), (3, 1));
    let file = Nettrace::four().events(Headers::Compressed, &rows()).end();
    let (events, summary) = read(&file);
    assert_eq!((events.len(), summary.without_metadata), (0, 4));
}

#[test]
fn lost_events_are_gaps_in_the_numbers() {
    let row = |sequence| Row {
        sequence,
        ..rows().remove(0)
    };
    let file = Nettrace::four()
        .metadata(&[metadata_row()])
        .events(Headers::Compressed, &[row(1), row(5)])
        .sequence_point(9_000, 0, &[(70, 7), (90, 100)])
        .end();
    let (_, summary) = read(&file);
    assert_eq!(
        (summary.lost.events, summary.lost.threads),
        (3 + 2 + 100, 2)
    );
}

#[test]
fn a_damaged_block_is_skipped_as_a_whole() {
    let first = four(Headers::Compressed);
    let begin = first.len();
    let whole = first.events(Headers::Compressed, &rows());
    let end = whole.len();
    let file = whole.sequence_point(9_000, 0, &[]).end();
    // the time of the first row: now outside of what the block says
    let row = file[begin..end]
        .windows(2)
        .position(|w| w == varuint(5_000))
        .unwrap();
    let mut damaged = file.clone();
    damaged[begin + row] ^= 1;
    let (events, summary) = read(&damaged);
    assert_eq!(events.len(), 4);
    let [damage] = summary.damages.first[..] else {
        panic!("{summary:?}")
    };
    assert_eq!((damage.offset, damage.block), (begin as u64, "EventBlock"));
    assert_eq!(damage.bytes, (end - begin) as u64);
    assert_eq!((summary.end, summary.sequence_points), (End::Tag, 2));
}

#[test]
fn a_broken_frame_is_skipped_up_to_the_next_whole_object() {
    let first = four(Headers::Compressed);
    let begin = first.len();
    let file = first
        .events(Headers::Compressed, &rows())
        .events(Headers::Compressed, &rows())
        .end();
    let size = begin + 15 + "EventBlock".len() + 1;
    for (at, value) in [
        (begin, 9),
        (begin + 2, 9),
        (begin + 20, b'?'),
        (size, 0xff),
        (size + 2, 0xff),
    ] {
        let mut damaged = file.clone();
        damaged[at] = value;
        let (events, summary) = read(&damaged);
        // a name that is not known is a block that is not known, and no damage
        let is_name = at == begin + 20;
        assert_eq!(events.len(), 8, "{at}");
        assert_eq!(
            summary.damages.count,
            u64::from(!is_name),
            "{at} {summary:?}"
        );
        assert_eq!(summary.end, End::Tag);
    }
}

#[test]
fn a_piece_of_a_trace_inside_a_cut_one_is_no_part_of_it() {
    let inner = four(Headers::Compressed).end();
    let row = Row {
        metadata: 1,
        sequence: 1,
        timestamp: 1,
        payload: inner,
        ..Row::default()
    };
    let file = Nettrace::four()
        .metadata(&[metadata_row()])
        .events(Headers::Compressed, &[row])
        .end();
    let cut = &file[..file.len() - 20];
    let (events, summary) = read(cut);
    assert_eq!((events.len(), summary.damages.count), (0, 0));
    assert!(summary.truncation().is_some_and(|cut| cut.bytes > 100));
}

#[test]
fn a_cut_file_keeps_its_whole_blocks() {
    let file = four(Headers::Compressed).end();
    let header = Nettrace::four().len();
    for cut in header..file.len() {
        let (events, summary) = read(&file[..cut]);
        assert!(matches!(events.len(), 0 | 4));
        let truncation = summary.truncation().unwrap();
        assert_eq!(truncation.offset + truncation.bytes, cut as u64);
        assert_eq!(summary.damages.count, 0);
    }
}
