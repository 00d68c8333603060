use super::*;
use asynctriage_report::{DiffState, Dump, Frame, Heap, Leaf, LeafKind, Process};

fn member(outer: u64, awaited: u64) -> Member {
    Member {
        boxes: vec![Address(outer)],
        waits_on: Some(Address(awaited)),
        ..Member::default()
    }
}

fn group(method: &str, leaf: LeafKind, members: Vec<Member>) -> ChainGroup {
    ChainGroup {
        signature: method.into(),
        app_signature: method.into(),
        count: members.len() as u64,
        frames: vec![Frame {
            method: method.into(),
            ..Frame::default()
        }],
        leaf: Leaf {
            kind: leaf,
            ..Leaf::default()
        },
        members,
        ..ChainGroup::default()
    }
}

fn report(second: u32, chains: Vec<ChainGroup>) -> Report {
    Report {
        dump: Dump {
            time: Some(format!("2026-11-29T15:47:{second:02}.000Z")),
            process_id: Some(7),
            ..Dump::default()
        },
        heap: Heap {
            objects: u64::from(second),
            ..Heap::default()
        },
        chains,
        ..Report::default()
    }
}

fn state(before: Vec<Member>, after: Vec<Member>, leaf: LeafKind) -> (DiffState, DiffGroup) {
    let (a, b) = (
        report(0, vec![group("A.Run", leaf, before)]),
        report(2, vec![group("A.Run", leaf, after)]),
    );
    let diff = super::diff(&[b, a], None);
    let group = diff.groups.first().cloned().expect("a group");
    assert_eq!((diff.seconds, diff.same_process), (Some(2.0), true));
    (group.state, group)
}

#[test]
fn the_same_objects_on_the_same_thing_are_stuck() {
    let chains = || vec![member(1, 10), member(2, 20)];
    let (state, group) = state(chains(), chains(), LeafKind::TaskCompletionSource);
    assert_eq!(
        (state, group.unmoved, group.per_second),
        (DiffState::Stuck, 2, Some(0.0))
    );
}

#[test]
fn the_same_objects_on_other_things_progress() {
    let (state, group) = state(vec![member(1, 10)], vec![member(1, 11)], LeafKind::Delay);
    assert_eq!(
        (state, group.moved, group.unmoved),
        (DiffState::Progressing, 1, 0)
    );
}

#[test]
fn some_that_moved_and_some_that_did_not_are_slow() {
    let (before, after) = (
        vec![member(1, 10), member(2, 20)],
        vec![member(1, 10), member(2, 21)],
    );
    assert_eq!(
        state(before, after, LeafKind::HttpResponse).0,
        DiffState::Slow
    );
}

#[test]
fn more_of_the_same_that_nobody_waits_for_leak_with_their_rate() {
    let after = (1..=5).map(|n| member(n, n * 10)).collect();
    let (state, group) = state(vec![member(1, 10)], after, LeafKind::TaskCompletionSource);
    assert_eq!(
        (state, group.new, group.per_second),
        (DiffState::Leaking, 4, Some(2.0))
    );
}

#[test]
fn sources_that_are_used_again_prove_no_standstill() {
    let chains = || vec![member(1, 10)];
    assert_eq!(
        state(chains(), chains(), LeafKind::ChannelRead).0,
        DiffState::Unknown
    );
}

#[test]
fn other_objects_in_place_of_all_are_no_progress_that_is_proved() {
    let (before, after) = (vec![member(1, 10)], vec![member(3, 30)]);
    let (state, group) = state(before, after, LeafKind::Delay);
    assert_eq!((state, group.new, group.gone), (DiffState::Unknown, 1, 1));
}

#[test]
fn chains_that_are_not_listed_prove_nothing() {
    let mut shown = group("A.Run", LeafKind::Delay, vec![member(1, 10)]);
    shown.count = 2;
    let reports = [report(0, vec![shown.clone()]), report(2, vec![shown])];
    let diff = diff(&reports, None);
    assert_eq!(diff.groups[0].state, DiffState::Unknown);
}

#[test]
fn equal_reports_say_that_nothing_moved_and_not_that_it_is_stuck() {
    let one = report(
        0,
        vec![group("A.Run", LeafKind::Delay, vec![member(1, 10)])],
    );
    let diff = diff(&[one.clone(), one.clone()], None);
    assert_eq!(diff.state, DiffState::Unknown);
    assert!(diff.why.starts_with("nothing moved"), "{}", diff.why);
    let apart = super::diff(&[one.clone(), one], Some(3.0));
    assert_eq!((apart.state, apart.seconds), (DiffState::Stuck, Some(3.0)));
}

#[test]
fn deployments_are_compared_by_the_programs_own_methods() {
    let mut old = report(
        0,
        vec![group("A.Run", LeafKind::Delay, vec![member(1, 10)])],
    );
    let mut new = report(
        1,
        vec![group("A.Run", LeafKind::Delay, vec![member(9, 90)])],
    );
    new.chains
        .push(group("B.Run", LeafKind::Semaphore, vec![member(8, 80)]));
    old.chains[0].signature = "another framework".into();
    new.process = Process {
        entry_version: Some("2.0".into()),
        ..Process::default()
    };
    let diff = diff(&[old, new], None);
    assert!(!diff.same_process);
    let states: Vec<_> = diff
        .groups
        .iter()
        .map(|g| (g.method.as_str(), g.state))
        .collect();
    assert_eq!(
        states,
        [("B.Run", DiffState::New), ("A.Run", DiffState::Unknown)]
    );
}
