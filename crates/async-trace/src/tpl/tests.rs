use asynctriage_dump_synth::nettrace::{Headers, Nettrace, Row, metadata_4, utf16};
use asynctriage_nettrace::Trace;
use proptest::prelude::*;

use super::*;

/// An event: time, thread, number, fields.
type Told = (u64, u64, u32, Vec<i32>);

/// A kind: number, name, fields with their types.
type Declared = (u32, &'static str, &'static [(&'static str, u32)]);

const WAIT_BEGIN: u32 = 10;
const WAIT_END: u32 = 11;
const BEGIN: u32 = 14;
const END: u32 = 15;
const INT: u32 = 9;

/// Blocks of events with a sequence point behind each.
fn tell(regions: &[&[Told]]) -> Tpl {
    let kinds: [Declared; 4] = [
        (
            WAIT_BEGIN,
            "TaskWaitBegin",
            &[
                ("OriginatingTaskID", INT),
                ("TaskID", INT),
                ("Behavior", INT),
                ("ContinueWithTaskID", INT),
            ],
        ),
        (WAIT_END, "TaskWaitEnd", &[("TaskID", INT)]),
        (
            BEGIN,
            "TraceOperationBegin",
            &[("TaskID", INT), ("OperationName", 18)],
        ),
        (
            END,
            "TraceOperationEnd",
            &[("TaskID", INT), ("Status", INT)],
        ),
    ];
    let metadata: Vec<_> = kinds
        .iter()
        .map(|(id, name, fields)| metadata_4(*id, PROVIDER, *id, name, fields, &[]))
        .collect();
    let mut file = Nettrace::four().metadata(&metadata);
    for region in regions {
        let rows: Vec<_> = region
            .iter()
            .zip(1..)
            .map(|((timestamp, thread, id, fields), sequence)| {
                let mut payload: Vec<_> = fields.iter().flat_map(|f| f.to_le_bytes()).collect();
                if *id == BEGIN {
                    payload.extend(utf16(
                        ["Async: A", "Async: B", "Async: C"][fields[0] as usize % 3],
                    ));
                }
                Row {
                    metadata: *id,
                    thread: *thread,
                    timestamp: *timestamp,
                    sequence,
                    payload,
                    ..Row::default()
                }
            })
            .collect();
        file = file
            .events(Headers::Compressed, &rows)
            .sequence_point(0, 0, &[]);
    }
    read(&file.end())
}

fn read(file: &[u8]) -> Tpl {
    let mut recording = TplRecording::new();
    for event in Trace::open(file).unwrap().events() {
        recording.push(&event);
    }
    recording.finish()
}

fn begin(time: u64, task: i32) -> Told {
    (time, 1, BEGIN, vec![task])
}

fn end(time: u64, task: i32) -> Told {
    (time, 1, END, vec![task, 1])
}

fn wait(time: u64, task: i32, continues: i32) -> Told {
    (time, 1, WAIT_BEGIN, vec![0, task, 2, continues])
}

fn block(time: u64, thread: u64, task: i32) -> Told {
    (time, thread, WAIT_BEGIN, vec![0, task, 1, 0])
}

fn wait_end(time: u64, thread: u64, task: i32) -> Told {
    (time, thread, WAIT_END, vec![task])
}

/// Counts and names.
fn chains(tpl: &Tpl) -> Vec<(u64, Vec<&str>)> {
    tpl.chains
        .iter()
        .map(|c| (c.count, c.names.iter().map(String::as_str).collect()))
        .collect()
}

#[test]
fn a_real_recording_of_operations_that_never_end() {
    let mut file = Vec::new();
    let packed = include_bytes!("../../../nettrace/testdata/tpl-10.0.15.nettrace.gz");
    std::io::Read::read_to_end(&mut flate2::read::GzDecoder::new(&packed[..]), &mut file).unwrap();
    let tpl = read(&file);
    let by_event: Vec<_> = tpl
        .by_event
        .iter()
        .map(|(name, count)| (name.as_str(), *count))
        .collect();
    let expected = [
        ("AwaitTaskContinuationScheduled", 5),
        ("TaskWaitBegin", 15),
        ("TaskWaitContinuationComplete", 5),
        ("TaskWaitContinuationStarted", 5),
        ("TraceOperationBegin", 15),
        ("TraceSynchronousWorkBegin", 5),
        ("TraceSynchronousWorkEnd", 5),
    ];
    assert_eq!(by_event, expected);
    assert_eq!((tpl.operations, tpl.ended, tpl.pending_waits), (15, 0, 15));
    let names = vec![
        "task",
        "Async: <F3>d__25",
        "Async: <F2>d__24",
        "Async: <F1>d__23",
    ];
    assert_eq!(chains(&tpl), [(5, names)]);
    assert_eq!(
        (tpl.undecoded, tpl.without_wait, tpl.more_chains),
        (0, 0, 0)
    );
    let [chain] = &tpl.chains[..] else { panic!() };
    assert!(chain.since.0 > 0 && chain.since.0 < chain.since.1);
    assert!(!chain.leaves.is_empty());
}

#[test]
fn a_wait_that_ended_is_none() {
    // 3 = A, 4 = B
    let tpl = tell(&[&[
        begin(1, 3),
        begin(2, 4),
        wait(3, 100, 3),
        wait(4, 3, 4),
        wait_end(5, 1, 100),
    ]]);
    assert_eq!((tpl.pending_waits, tpl.without_wait), (1, 1));
    assert_eq!(chains(&tpl), [(1, vec!["Async: A", "Async: B"])]);
    let tpl = tell(&[&[begin(1, 3), wait(3, 100, 3), end(5, 3)]]);
    assert_eq!(
        (
            tpl.operations,
            tpl.ended,
            tpl.pending_waits,
            tpl.without_wait
        ),
        (1, 1, 0, 0)
    );
}

#[test]
fn events_are_followed_in_the_order_of_time() {
    // the end stands before the begin in the file
    let tpl = tell(&[&[wait_end(5, 1, 100), wait(3, 100, 3)]]);
    assert_eq!(tpl.pending_waits, 0);
    // across a sequence point nothing is moved
    let tpl = tell(&[&[wait_end(5, 1, 100)], &[wait(3, 100, 3)]]);
    assert_eq!(tpl.pending_waits, 1);
}

#[test]
fn all_who_wait_for_a_task_have_their_own_chain() {
    let tpl = tell(&[&[
        begin(1, 3),
        begin(1, 4),
        wait(10, 100, 3),
        wait(20, 100, 4),
        wait(30, 3, 7),
        wait(30, 3, 8),
    ]]);
    let expected = [
        (2, vec!["task", "Async: A", "task"]),
        (1, vec!["task", "Async: B"]),
    ];
    assert_eq!(chains(&tpl), expected);
    assert_eq!(tpl.chains[0].since, (10, 10));
    assert_eq!(tpl.chains[1].leaves, [TaskId(100)]);
}

#[test]
fn threads_that_block_are_ends_of_chains() {
    let tpl = tell(&[&[begin(1, 3), wait(3, 100, 3), block(4, 77, 3)]]);
    assert_eq!(chains(&tpl), [(1, vec!["task", "Async: A", "thread 77"])]);
    assert_eq!(tpl.pending_waits, 2);
    // a time limit ends the thread's wait and no other
    let tpl = tell(&[&[wait(3, 100, 3), block(4, 77, 100), wait_end(5, 77, 100)]]);
    assert_eq!(chains(&tpl), [(1, vec!["task", "task"])]);
}

#[test]
fn circles_are_told_once_with_what_hangs_on_them() {
    // 3 waits for 4, 4 for 5, 5 for 3; 8 waits for 4
    let events = [
        begin(1, 3),
        begin(1, 4),
        begin(1, 5),
        wait(2, 4, 3),
        wait(3, 5, 4),
        wait(4, 3, 5),
        wait(9, 4, 8),
    ];
    let tpl = tell(&[&events]);
    assert_eq!(tpl.chains.len(), 2);
    let circle = tpl.chains.iter().find(|c| c.cycle).unwrap();
    let mut names = circle.names.clone();
    names.sort();
    assert_eq!(
        (names, circle.since.0),
        (["A", "B", "C"].map(|n| format!("Async: {n}")).to_vec(), 2)
    );
    let hanging = tpl.chains.iter().find(|c| !c.cycle).unwrap();
    assert_eq!(hanging.names, ["Async: B", "task"]);
    let tpl = tell(&[&[wait(1, 4, 3), wait(2, 3, 4), block(3, 77, 4)]]);
    let blocked = tpl.chains.iter().find(|c| !c.cycle).unwrap();
    assert_eq!(
        (tpl.chains.len(), &blocked.names[..]),
        (2, &["task", "thread 77"].map(String::from)[..])
    );
}

#[test]
fn long_chains_are_cut_and_counted() {
    let events: Vec<_> = (1..5_000).map(|task| wait(1, task, task + 1)).collect();
    let tpl = tell(&[&events]);
    let [chain] = &tpl.chains[..] else { panic!() };
    assert_eq!(
        (chain.count, chain.names.len(), chain.more_names),
        (1, 1_000, 4_000)
    );
}

proptest! {
    /// Few tasks, so that circles, trees and ids that are used again are met often.
    #[test]
    fn any_order_of_events_gives_chains_that_hold_every_wait_once(
        events in proptest::collection::vec((0_u64..50, 1_u64..4, 0_usize..5, 1_i32..8, 1_i32..8), 0..60),
    ) {
        let told: Vec<_> = events
            .iter()
            .map(|(time, thread, kind, a, b)| match kind {
                0 => begin(*time, *a),
                1 => end(*time, *a),
                2 => wait(*time, *a, *b),
                3 => block(*time, *thread, *a),
                _ => wait_end(*time, *thread, *a),
            })
            .collect();
        let tpl = tell(&[&told]);
        let edges: u64 = tpl
            .chains
            .iter()
            .map(|chain| chain.count * (chain.names.len() as u64 - u64::from(!chain.cycle)))
            .sum();
        // ways that share their inner part are told with it, each
        prop_assert!(edges >= tpl.pending_waits, "{tpl:?}");
        prop_assert_eq!(tpl.pending_waits == 0, tpl.chains.is_empty());
        prop_assert_eq!(tpl.more_chains, 0);
        for chain in &tpl.chains {
            prop_assert!(chain.since.0 <= chain.since.1 && chain.since.1 < 50);
        }
    }
}
