use super::*;
use crate::timeline::{TimelineMarker, TimelineSpan, TimelineThread};

fn sample() -> Timeline {
    Timeline {
        file: "a<b>.nettrace".into(),
        verdict: "BOUNDED".into(),
        end: 2_000_000,
        horizon: Some(1_500_000),
        threads: vec![TimelineThread {
            os_thread: 77,
            busy: vec![0, 255],
        }],
        names: vec![
            "A.B<\"&'>".into(),
            "</script><script>alert(1)</script>".into(),
        ],
        stacks: vec![vec![0, 1]],
        operations: vec![TimelineOperation {
            id: 3,
            stack: Some(0),
            from: 500_000,
            is_created: true,
            activations: 1,
            busy: 100_000,
            ..TimelineOperation::default()
        }],
        spans: vec![TimelineSpan {
            operation: Some(0),
            from: 600_000,
            to: Some(700_000),
            batch: 0x1000,
            index: 2,
            ..TimelineSpan::default()
        }],
        added_up: 4,
        shortest: 1_500,
        markers: vec![TimelineMarker {
            at: 5,
            thread: None,
            text: "7 begin".into(),
        }],
        operations_left_out: 2,
        ..Timeline::default()
    }
}

#[test]
fn what_is_left_out_is_said() {
    let page = timeline_html(&sample());
    assert!(
        page.contains("1 thread, 3 operations, 5 activations."),
        "{page}"
    );
    assert!(page.contains("4 activations shorter than 1.500 µs are only in the shade"));
    assert!(page.contains("2 ended operations are not listed"), "{page}");
}

#[test]
fn names_of_the_trace_stay_text() {
    let mut line = sample();
    line.file = "</title><script>alert(1)</script>".into();
    let page = timeline_html(&line);
    assert_eq!(page.matches("<script>").count(), 1);
    assert!(!page.contains("</script><script>alert"));
}

#[test]
fn numbers_are_where_the_script_looks_for_them() {
    let page = timeline_html(&sample());
    for (name, value) in [
        ("op-id", near([3])),
        ("sp-from", rising([600_000])),
        ("bins-0", runs(&[0, 255])),
    ] {
        assert!(
            page.contains(&format!("id=\"{name}\">{value}</script>")),
            "{name}"
        );
        let read = name.split_once('-').is_some_and(|(kind, _)| kind == "bins");
        assert!(read || include_str!("../page.js").contains(&format!("\"{name}\"")));
    }
}

#[test]
fn times_beyond_the_end_stay_inside() {
    let mut line = sample();
    line.end = 0;
    assert!(timeline_html(&line).contains("\"end\":1"));
}
