//! Files of version 6.

use super::*;

pub(super) fn six() -> Nettrace {
    let mut labels = vec![1, 0, 0, 0, 1, 0, 0, 0, 1];
    labels.extend([7; 16]);
    labels.push(0x80 | 2);
    labels.extend([8; 16]);
    Nettrace::six()
        .metadata(&[metadata_6(
            1,
            "App",
            3,
            "Said",
            &[("id", &[9]), ("text", &[18])],
            &[],
        )])
        .threads(&[(70, 1070, "io"), (71, 1071, "")])
        .stacks(1, &[&[0x10, 0x20], &[0x30]])
        .block("", 8, &labels)
}

#[test]
fn version_6_names_threads_by_index_and_activities_by_label() {
    let rows: Vec<_> = rows()
        .into_iter()
        .map(|row| Row {
            labels: u32::from(row.sorted),
            ..row
        })
        .collect();
    for headers in [Headers::Compressed, Headers::Fixed] {
        let file = six()
            .events(headers, &rows)
            // a kind of block that nobody knows yet
            .block("", 99, &[1, 2, 3])
            .remove_threads(&[(71, 1)])
            .sequence_point(9_000, 0, &[(70, 3)])
            .end();
        let mut events = Trace::open(&file).unwrap().events();
        let found: Vec<_> = events.by_ref().take(3).collect();
        assert_eq!(
            found.iter().map(|e| e.thread).collect::<Vec<_>>(),
            [1070, 1070, 1071]
        );
        assert_eq!(
            found.iter().map(|e| e.capture_thread).collect::<Vec<_>>(),
            [70, 70, 71]
        );
        assert_eq!(
            events.thread(70).and_then(|t| t.name.as_deref()),
            Some("io")
        );
        assert_eq!(
            (found[0].activity, found[2].activity),
            (None, Some([7; 16]))
        );
        assert_eq!(found[2].related_activity, Some([8; 16]));
        assert_eq!(events.labels(1)[0], Label::Activity([7; 16]));
        assert_eq!(events.by_ref().count(), 1);
        assert_eq!(events.thread(71), None);
        assert!(
            events.labels(1).is_empty(),
            "labels end at a sequence point"
        );
        let summary = events.summary();
        assert_eq!(
            (summary.end, summary.damages.count, summary.lost.events),
            (End::Tag, 0, 0)
        );
        assert_eq!(summary.blocks["other"], 1);
    }
}

#[test]
fn a_cut_file_of_version_6_keeps_its_whole_blocks() {
    let begin = six().len();
    let file = six().events(Headers::Compressed, &rows()).end();
    let header = Nettrace::six().len();
    for cut in header..file.len() {
        let (events, summary) = read(&file[..cut]);
        // the mark of the end has four bytes
        assert_eq!(events.len(), if cut + 4 < file.len() { 0 } else { 4 });
        let truncation = summary.truncation().unwrap();
        assert_eq!(truncation.offset + truncation.bytes, cut as u64);
        assert!(cut <= begin || truncation.offset >= begin as u64);
    }
}

#[test]
fn damaged_blocks_of_version_6_are_skipped() {
    let one = six().events(Headers::Compressed, &rows());
    let begin = one.len();
    let two = one.events(Headers::Compressed, &rows());
    let end = two.len();
    let file = two.end();
    let at = begin
        + file[begin..end]
            .windows(2)
            .position(|w| w == varuint(5_000))
            .unwrap();
    let mut damaged = file.clone();
    damaged[at] ^= 1;
    let (events, summary) = read(&damaged);
    assert_eq!(
        (events.len(), summary.damages.count, summary.end),
        (4, 1, End::Tag)
    );
    assert_eq!(summary.damages.first[0].offset, begin as u64);
}
