mod incident;
mod samples;

use super::page::{Page, shorten};
use super::style::Role;
use super::words::{bytes, count, duration};
use super::*;
use crate::*;
use unicode_width::UnicodeWidthStr;

fn options(width: usize) -> TextOptions {
    TextOptions {
        width,
        ..TextOptions::default()
    }
}

fn verbose(width: usize) -> TextOptions {
    TextOptions {
        verbose: 1,
        ..options(width)
    }
}

fn ascii(width: usize) -> TextOptions {
    TextOptions {
        unicode: false,
        ..options(width)
    }
}

#[test]
fn snapshots_of_reports() {
    insta::assert_snapshot!("empty", text(&samples::empty(), &options(100)));
    insta::assert_snapshot!("one_chain", text(&samples::one_chain(), &options(100)));
    insta::assert_snapshot!(
        "one_chain_verbose",
        text(&samples::one_chain(), &verbose(100))
    );
    insta::assert_snapshot!("fan_in", text(&samples::fan_in(), &options(100)));
    insta::assert_snapshot!("deep", text(&samples::deep(), &options(100)));
    insta::assert_snapshot!("gaps", text(&samples::gaps(), &options(100)));
}

#[test]
fn a_garbage_collection_is_told_with_its_stage() {
    let told = |stage, words: &str, is_warned: bool| {
        let mut report = samples::one_chain();
        report.heap.collection = Some(Collection {
            stage,
            extent: Some("generation 1".into()),
            thread: Some(7),
            ..Collection::default()
        });
        let shown = text(&report, &options(400));
        assert!(shown.contains(words), "{shown}");
        assert_eq!(shown.contains("more may be"), is_warned, "{shown}");
    };
    let marked = "a garbage collection of generation 1 at least marked objects, which were where they had been, for thread 7";
    told(CollectionStage::Marking, marked, false);
    let moved = "a garbage collection of generation 1 at least moved objects, for thread 7";
    told(CollectionStage::Moving, moved, true);
    let beside = "a background garbage collection";
    told(CollectionStage::BackgroundMarking, beside, false);
    told(CollectionStage::BackgroundSweeping, beside, false);
}

#[test]
fn snapshots_of_the_incident() {
    insta::assert_snapshot!("incident_60", text(&samples::incident(), &options(60)));
    insta::assert_snapshot!("incident_100", text(&samples::incident(), &options(100)));
    insta::assert_snapshot!("incident_140", text(&samples::incident(), &options(140)));
    insta::assert_snapshot!("incident_ascii", text(&samples::incident(), &ascii(100)));
    insta::assert_snapshot!(
        "incident_verbose",
        text(&samples::incident(), &verbose(100))
    );
}

#[test]
fn snapshots_of_parts() {
    for what in [Part::Threads, Part::Requests, Part::Queue, Part::Locks] {
        let shown = part(&samples::incident(), what, &options(100));
        insta::assert_snapshot!(format!("part_{what:?}").to_lowercase(), shown);
    }
    let shown = part(&samples::empty(), Part::Locks, &options(100));
    insta::assert_snapshot!("part_locks_empty", shown);
}

#[test]
fn snapshots_of_trees() {
    insta::assert_snapshot!("tree", tree(&samples::branches(), &options(100)));
    insta::assert_snapshot!("tree_ascii_60", tree(&samples::branches(), &ascii(60)));
    insta::assert_snapshot!("tree_deep", tree(&samples::deep(), &options(100)));
}

#[test]
fn snapshots_of_hostile_names() {
    insta::assert_snapshot!("hostile", text(&samples::hostile(), &options(80)));
    insta::assert_snapshot!("hostile_ascii", text(&samples::hostile(), &ascii(80)));
}

#[test]
fn snapshots_of_views() {
    let heap = HeapReport {
        objects: 1_204_331,
        bytes: 402_653_184,
        free_bytes: 9_437_184,
        types: vec![
            TypeRow { name: "System.String".into(), method_table: Address(0x7f00_0010), count: 800_000, bytes: 96_000_000 },
            TypeRow {
                name: "System.Collections.Concurrent.ConcurrentDictionary`2+Node[[System.Guid],[System.Collections.Generic.List`1[[Shop.Item]]]]".into(),
                method_table: Address(0x7f00_0020),
                count: 12,
                bytes: 960,
            },
        ],
        types_left_out: 2_310,
        ..HeapReport::default()
    };
    insta::assert_snapshot!("heap", super::heap(&heap, &options(80)));
    insta::assert_snapshot!("heap_verbose", super::heap(&heap, &verbose(80)));
    let waiting = TaskRow {
        address: Address(0x7f12_0000_1000),
        type_name: "AsyncStateMachineBox`1[[VoidTaskResult],[Shop.Cart+<LoadAsync>d__4]]".into(),
        status: "waiting".into(),
        method: Some("Shop.Cart.LoadAsync".into()),
        state: Some(0),
        waits_on: Some("Task.Delay due in 58 s".into()),
        leaf: Some(LeafKind::Delay),
        continuation: Some("Shop.Cart.OnClick await 2".into()),
    };
    let plain = TaskRow {
        address: Address(0x7f12_0000_2000),
        type_name: "System.Threading.Tasks.Task".into(),
        status: "completed".into(),
        ..TaskRow::default()
    };
    let tasks = TaskReport {
        tasks: vec![waiting, plain],
        left_out: 1,
        ..TaskReport::default()
    };
    insta::assert_snapshot!("tasks", super::tasks(&tasks, &options(100)));
    insta::assert_snapshot!(
        "tasks_none",
        super::tasks(&TaskReport::default(), &options(100))
    );
    insta::assert_snapshot!("object", super::object(&object_sample(), &options(100)));
}

fn object_sample() -> ObjectReport {
    let field = |offset, name: &str, declared: &str, value: &str| FieldRow {
        offset,
        name: name.into(),
        declared_type: Some(declared.into()),
        value: value.into(),
        ..FieldRow::default()
    };
    ObjectReport {
        address: Address(0x7f12_0000_1000),
        type_name: "Shop.Cart".into(),
        method_table: Some(Address(0x7f00_0010)),
        size: 48,
        decoded: vec![Decoded {
            name: "method".into(),
            value: "Shop.Cart.LoadAsync, suspended at await 0".into(),
        }],
        fields: vec![
            field(8, "_count", "System.Int32", "3"),
            FieldRow {
                actual_type: Some("System.Collections.Generic.List`1[[Shop.Item]]".into()),
                link: Some(Address(0x7f12_0000_3000)),
                ..field(16, "<Items>k__BackingField", "System.Object", "3 elements")
            },
        ],
        referenced_by: vec![ObjectRef {
            text: "Shop.Session._cart".into(),
            address: Some(Address(0x7f12_0000_4000)),
            type_name: Some("Shop.Session".into()),
        }],
        ..ObjectReport::default()
    }
}

fn all_samples() -> Vec<Report> {
    use samples::*;
    vec![
        empty(),
        one_chain(),
        fan_in(),
        deep(),
        incident(),
        gaps(),
        hostile(),
        branches(),
    ]
}

#[test]
fn no_line_is_wider_than_the_terminal() {
    for report in all_samples() {
        for width in [40, 41, 60, 80, 140] {
            for options in [options(width), verbose(width), ascii(width)] {
                for page in [text(&report, &options), tree(&report, &options)] {
                    let wide = page.lines().find(|line| line.width() > width);
                    assert_eq!(wide, None, "at {width}");
                }
            }
        }
    }
}

#[test]
fn nothing_that_a_terminal_acts_on_gets_out() {
    for report in all_samples() {
        for options in [options(80), verbose(80), ascii(80)] {
            for page in [text(&report, &options), tree(&report, &options)] {
                let bad = page.chars().find(|c| (c.is_control() && *c != '\n') || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}'));
                assert_eq!(bad, None);
                assert!(options.unicode || page.is_ascii());
                assert!(page.ends_with('\n') && !page.ends_with("\n\n"));
            }
        }
    }
}

#[test]
fn a_name_with_a_newline_makes_no_line_of_its_own() {
    let page = text(&samples::hostile(), &options(200));
    assert!(!page.lines().any(|line| line.starts_with("c9")), "{page}");
}

#[test]
fn colours_only_add_escape_sequences() {
    let coloured = text(
        &samples::incident(),
        &TextOptions {
            color: true,
            ..options(100)
        },
    );
    let plain = text(&samples::incident(), &options(100));
    assert!(coloured.contains("\u{1b}["));
    let mut stripped = String::new();
    let mut rest = coloured.as_str();
    while let Some((before, after)) = rest.split_once('\u{1b}') {
        stripped.push_str(before);
        rest = after.split_once('m').unwrap().1;
    }
    stripped.push_str(rest);
    assert_eq!(stripped, plain);
}

#[test]
fn a_saved_report_renders_the_same() {
    for report in all_samples() {
        let saved = json(&report).unwrap();
        assert!(saved.ends_with("}\n"));
        let read: Report = serde_json::from_str(&saved).unwrap();
        assert_eq!(read, report);
    }
}

#[test]
fn every_cap_is_printed() {
    let mut report = samples::fan_in();
    let group = report.chains[1].clone();
    report.chains.extend(std::iter::repeat_n(group, 9));
    let page = text(
        &report,
        &TextOptions {
            rows: Some(4),
            ..options(100)
        },
    );
    assert!(
        page.contains("7 more groups of 14 chains not shown: --all"),
        "{page}"
    );
    let page = text(
        &report,
        &TextOptions {
            rows: None,
            ..options(100)
        },
    );
    assert!(!page.contains("not shown"), "{page}");
}

#[test]
fn deep_branching_stays_on_the_screen() {
    let mut report = samples::empty();
    for depth in 0..200 {
        let frames = (0..=depth)
            .rev()
            .map(|n| samples::frame(&format!("M{n}"), 0))
            .collect();
        report.chains.push(ChainGroup {
            count: 1,
            frames,
            ..ChainGroup::default()
        });
    }
    let page = tree(&report, &options(80));
    assert!(page.lines().all(|line| line.width() <= 80));
    assert!(page.contains("M199"));
}

#[test]
fn numbers_in_words() {
    assert_eq!(
        [0, 999, 1_000, 1_234_567].map(count),
        ["0", "999", "1,000", "1,234,567"]
    );
    assert_eq!(
        [0, 1_023, 1_536, 1 << 30, u64::MAX].map(bytes),
        ["0 B", "1023 B", "1.5 KiB", "1.0 GiB", "16.0 EiB"]
    );
    let seconds = [0.04, 9.96, 59.6, 200.0, 7_500.0, 273_600.0, -1.0];
    assert_eq!(
        seconds.map(duration),
        [
            "0.0 s",
            "10 s",
            "1 min",
            "3 min 20 s",
            "2 h 5 min",
            "3 d 4 h",
            "0.0 s"
        ]
    );
    assert_eq!(duration(f64::NAN), "an unknown time");
}

#[test]
fn shortening_keeps_both_ends() {
    assert_eq!(shorten("Abcdefghij", 10, false), "Abcdefghij");
    assert_eq!(shorten("Abcdefghij", 7, false), "Abc…hij");
    assert_eq!(shorten("Abcdefghij", 7, true), "Ab...ij");
    assert_eq!(shorten("名前空間名前空間", 8, false).width(), 7);
}

#[test]
fn words_wrap_at_spaces_before_they_are_broken() {
    let options = options(40);
    let page = Page::new(&options);
    let spans = [page.span(Role::Plain, "wait for Namespace.Type.Method  await 2")];
    let lines = page.wrap(22, &spans);
    assert_eq!(lines.len(), 3);
    let spans = [page.span(Role::Plain, "Namespace.Type.VeryLongMethodName")];
    let lines: Vec<usize> = page
        .wrap(20, &spans)
        .iter()
        .map(|line| line.iter().map(|s| s.width()).sum())
        .collect();
    assert_eq!(lines, [15, 18]);
}

#[test]
fn requests_through_several_services_read_from_the_entry_inwards() {
    insta::assert_snapshot!("services", services(&samples::services(), &options(100)));
    insta::assert_snapshot!("services_ascii", services(&samples::services(), &ascii(60)));
}
