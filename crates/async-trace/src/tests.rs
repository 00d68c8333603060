//! Made recordings through the whole decoder: order, pairing, loss, judgement.

use crate::testing::{Batch, Made, metadata, stack};
use crate::wire::Kind as K;
use crate::{
    AsyncTrace, Container, Dispatcher, Family, Flag, Identity, Session, State, Verdict, judge,
};
use proptest::prelude::*;

const RA: Family = Family::RuntimeAsync;
const SM: Family = Family::StateMachine;
const WHOLE: Container = Container {
    truncated: false,
    damages: 0,
    packed_fault: false,
    ended_early: false,
    lost: 0,
    rundown: 1,
};

/// A reset, then what `fill` adds.
fn thread(context: u32, start: u64) -> Batch {
    Batch::new(context, start).add(start, K::ResetAsyncThreadContext, &[])
}

trait Chains: Sized {
    fn created(self, time: u64, id: u8, frames: &[u64]) -> Self;
    fn resumed(self, time: u64, id: u8, frames: &[u64]) -> Self;
    fn suspended(self, time: u64, id: u8, frames: &[u64]) -> Self;
    fn completed(self, time: u64) -> Self;
}

impl Chains for Batch {
    fn created(self, time: u64, id: u8, frames: &[u64]) -> Self {
        self.add(time, K::CreateRuntimeAsyncContext, &[0, id]).add(
            time,
            K::CreateRuntimeAsyncCallstack,
            &stack(Some(0), id.into(), frames),
        )
    }

    fn resumed(self, time: u64, id: u8, frames: &[u64]) -> Self {
        self.add(time, K::ResumeRuntimeAsyncContext, &[id]).add(
            time,
            K::ResumeRuntimeAsyncCallstack,
            &stack(None, id.into(), frames),
        )
    }

    fn suspended(self, time: u64, id: u8, frames: &[u64]) -> Self {
        self.add(
            time,
            K::SuspendRuntimeAsyncCallstack,
            &stack(None, id.into(), frames),
        )
        .add(time, K::SuspendRuntimeAsyncContext, &[])
    }

    fn completed(self, time: u64) -> Self {
        self.add(time, K::CompleteRuntimeAsyncContext, &[])
    }
}

fn only<'t>(trace: &'t AsyncTrace<'_>) -> &'t Dispatcher {
    assert_eq!(trace.dispatchers.len(), 1);
    &trace.dispatchers[0]
}

fn addresses(trace: &AsyncTrace<'_>, d: &Dispatcher) -> Vec<u64> {
    let list = d
        .frames
        .map(|id| trace.frames.frames(id))
        .unwrap_or_default();
    list.iter().map(|f| f.address).collect()
}

fn flags(trace: &AsyncTrace<'_>, container: Container) -> (Verdict, Vec<Flag>) {
    let judged = judge(Some(trace), container, &Session::default());
    (
        judged.verdict,
        judged.flags.iter().map(|(f, _)| *f).collect(),
    )
}

#[test]
fn a_chain_moves_between_threads_and_waits_at_the_end() {
    let made = Made::new()
        .batch(
            &thread(2, 20)
                .resumed(30, 7, &[0, 5])
                .suspended(40, 7, &[0, 3, 5]),
        )
        .batch(&thread(1, 15).created(20, 7, &[0, 5]))
        .batch(
            &thread(3, 45)
                .resumed(50, 7, &[0, 3, 5])
                .suspended(60, 7, &[0, 5]),
        );
    let trace = made.read();
    let d = only(&trace);
    assert_eq!(
        (d.family, d.id, d.state, d.resumes),
        (RA, 7, State::Suspended, 2)
    );
    assert_eq!(d.created.unwrap().time, 20);
    assert_eq!(d.since().unwrap().time, 60);
    assert_eq!(d.since().unwrap().record.index, 4);
    assert!(d.many_threads);
    assert_eq!(addresses(&trace, d), [0, 5]);
    assert_eq!(trace.activations[&(RA, State::Suspended)], 2);
    assert_eq!(trace.identities.held(RA, Identity::ResumeFrames), 1);
    assert_eq!(trace.identities.held(RA, Identity::FirstFrames), 1);
    assert_eq!(trace.identities.breaches(), []);
    let no_methods = (Verdict::Bounded, vec![Flag::NoMethodRecords]);
    assert_eq!(flags(&trace, WHOLE), no_methods);
}

#[test]
fn at_one_instant_a_suspension_comes_before_the_resume_that_it_allows() {
    let made = Made::new()
        .batch(&thread(1, 15).created(20, 7, &[5]))
        .batch(&thread(2, 50).resumed(50, 7, &[6]).completed(60))
        .batch(&thread(3, 30).resumed(40, 7, &[5]).suspended(50, 7, &[6]));
    let trace = made.read();
    assert_eq!(trace.identities.breaches(), []);
    assert!(trace.dispatchers.is_empty(), "it ended and was folded");
    assert_eq!(trace.totals[0].states[&State::Completed], 1);
    assert_eq!(trace.totals[0].more_than_one_thread, 1);
}

#[test]
fn pairs_may_stand_in_two_batches() {
    let made = Made::new()
        .batch(&thread(1, 15).add(20, K::CreateRuntimeAsyncContext, &[0, 7]))
        .batch(&Batch::new(1, 25).add(
            25,
            K::CreateRuntimeAsyncCallstack,
            &stack(Some(0), 7, &[5]),
        ));
    let trace = made.read();
    let d = only(&trace);
    assert_eq!((d.state, d.creates), (State::SuspendedAtCreate, 1));
    assert_eq!(d.created.unwrap().time, 20);
    assert_eq!(addresses(&trace, d), [5]);
}

#[test]
fn families_have_stacks_of_their_own() {
    let made = Made::new().batch(
        &thread(1, 15)
            .add(20, K::CreateStateMachineAsyncContext, &[0, 9])
            .add(30, K::ResumeStateMachineAsyncContext, &[9])
            .created(31, 7, &[5])
            .resumed(32, 7, &[5])
            .add(33, K::ResumeStateMachineAsyncMethod, &[])
            .add(34, K::CompleteStateMachineAsyncContext, &[]),
    );
    let trace = made.read();
    assert_eq!(trace.totals[1].states[&State::Completed], 1);
    assert_eq!(only(&trace).state, State::Running);
    assert_eq!(trace.orphans, [0, 0]);
}

#[test]
fn an_exception_that_leaves_the_chain_faults_it() {
    let unwind = K::UnwindRuntimeAsyncException;
    let run = |batch: Batch| {
        batch
            .add(33, K::ResumeRuntimeAsyncMethod, &[])
            .add(34, unwind, &[2])
    };
    let escaped = run(thread(1, 15)
        .created(20, 7, &[5, 6])
        .resumed(30, 7, &[5, 6]))
    .completed(34);
    let trace = Made::new().batch(&escaped);
    assert_eq!(trace.read().totals[0].states[&State::Faulted], 1);
    let caught = run(thread(1, 15)
        .created(20, 7, &[5, 6, 8])
        .resumed(30, 7, &[5, 6, 8]))
    .add(35, K::ResumeRuntimeAsyncMethod, &[])
    .add(36, K::CompleteRuntimeAsyncMethod, &[])
    .completed(36);
    let made = Made::new().batch(&caught);
    let trace = made.read();
    assert_eq!(trace.totals[0].states[&State::Completed], 1);
    assert_eq!(trace.identities.held(RA, Identity::AllConsumed), 1);
    assert_eq!(trace.identities.held(RA, Identity::MethodBalance), 1);
    assert_eq!(trace.identities.breaches(), []);
}

#[test]
fn batches_of_an_earlier_session_are_told_by_their_time() {
    let old = || thread(5, 1).created(5, 99, &[5]);
    let made = Made::default()
        .batch(&old())
        .batch(&Batch::new(1, 10).add(10, K::AsyncProfilerMetadata, &metadata(16_128)))
        .batch(&thread(1, 15).created(20, 7, &[5]))
        .batch(&old());
    let trace = made.read();
    assert_eq!((trace.leftover_batches, trace.leftover_records), (2, 6));
    assert_eq!(only(&trace).id, 7);
    assert_eq!(
        flags(&trace, WHOLE),
        (Verdict::Partial, vec![Flag::Leftovers])
    );
}

#[test]
fn a_batch_that_is_not_believed_leaves_nothing_behind() {
    let mut bad = crate::testing::batch(2, 40, &[&[3, 1], &[2, 1, 1, 8]], 2);
    bad[21] = 3;
    let made = Made::new()
        .batch(&thread(1, 15).created(20, 7, &[5]).created(21, 8, &[6]))
        .batch(&thread(2, 25).resumed(30, 7, &[5]))
        .raw(bad)
        .batch(&Batch::new(2, 50).completed(51));
    let trace = made.read();
    assert_eq!((trace.rejected, trace.rejections.len()), (1, 1));
    let states: Vec<State> = trace.dispatchers.iter().map(|d| d.state).collect();
    assert_eq!(states, [State::Unknown, State::SuspendedAtCreate]);
    assert_eq!(trace.orphans, [1, 0], "the end that follows means nobody");
    let (verdict, flags) = flags(&trace, WHOLE);
    assert_eq!(verdict, Verdict::Partial);
    assert!(flags.contains(&Flag::RejectedBatches) && flags.contains(&Flag::ChainGap));
}

#[test]
fn a_missing_batch_is_noticed_by_the_next_call_stack() {
    // between the two batches 7 suspended and 8 was resumed
    let made = Made::new()
        .batch(&thread(1, 15).created(20, 7, &[5]).created(21, 8, &[6]))
        .batch(&thread(2, 25).resumed(30, 7, &[5]))
        .batch(&Batch::new(2, 50).suspended(51, 8, &[4, 6]));
    let trace = made.read();
    let d = |id| trace.dispatchers.iter().find(|d| d.id == id).unwrap();
    assert_eq!(trace.orphans, [1, 0]);
    let open: Vec<_> = trace.contexts.values().map(|c| c.open).collect();
    assert_eq!(
        open,
        [0, 0],
        "nothing is opened by the end of something unseen"
    );
    assert_eq!(d(8).state, State::SuspendedAtCreate);
    assert_eq!(
        trace.gaps.bound(60),
        30,
        "since the thread's last record before"
    );
    let judged = judge(Some(&trace), WHOLE, &Session::default());
    assert_eq!(judged.verdict, Verdict::Partial);
}

#[test]
fn frames_that_differ_show_that_records_are_missing() {
    let made = Made::new()
        .batch(&thread(1, 15).created(20, 7, &[5]))
        .batch(&thread(2, 25).resumed(30, 7, &[5]).suspended(35, 7, &[3, 5]))
        .batch(&Batch::new(2, 40).resumed(45, 7, &[5]).completed(50));
    let trace = made.read();
    assert_eq!(trace.identities.broken(RA, Identity::ResumeFrames), 1);
    assert_eq!(trace.gaps.bound(50), 35);
    let breach = trace.identities.breaches()[0];
    assert_eq!((breach.dispatcher, breach.record.unwrap().index), (7, 0));
    assert_eq!(flags(&trace, WHOLE).0, Verdict::Partial);
}

#[test]
fn one_missing_end_is_one_overlap() {
    // what 7 did last on thread 2 is missing; it goes on elsewhere three times
    let rest = [3, 5];
    let made = Made::new()
        .batch(&thread(1, 15).created(20, 7, &[5]))
        .batch(&thread(2, 25).resumed(30, 7, &[5]))
        .batch(&thread(3, 35).resumed(40, 7, &rest).suspended(41, 7, &rest))
        .batch(&thread(4, 45).resumed(50, 7, &rest).suspended(51, 7, &rest))
        .batch(&Batch::new(3, 60).resumed(60, 7, &rest).completed(61));
    let trace = made.read();
    assert_eq!(trace.identities.broken(RA, Identity::NoOverlap), 1);
    assert_eq!(
        trace.identities.broken(RA, Identity::OnlySuspendedResumes),
        1
    );
    assert_eq!(trace.totals[0].states[&State::Completed], 1);
    assert_eq!(trace.gaps.bound(100), 30);
}

#[test]
fn cut_call_stacks_are_compared_as_far_as_both_go() {
    let frames: Vec<u64> = (1..=95).collect();
    let small = Batch::new(1, 10).add(10, K::AsyncProfilerMetadata, &metadata(1_024));
    let read = |resumed: &[u64]| {
        let made = Made::default()
            .batch(&small)
            .batch(&thread(1, 15).created(20, 7, &frames))
            .batch(&thread(2, 25).resumed(30, 7, resumed));
        made.read().identities.broken(RA, Identity::FirstFrames)
    };
    assert_eq!(read(&frames[..95]), 0, "1,024 bytes hold 95 frames");
    let longer: Vec<u64> = (1..=97).collect();
    assert_eq!(read(&longer), 0);
    assert_eq!(read(&frames[..40]), 1, "not cut");
    let other: Vec<u64> = (2..=97).collect();
    assert_eq!(read(&other), 1);
}

#[test]
fn ids_above_all_that_were_created_are_a_lost_tail() {
    let made = |id| {
        Made::new()
            .batch(&thread(1, 15).created(20, 7, &[5]))
            .batch(&thread(2, 25).resumed(30, id, &[5]))
    };
    let attached = |id| {
        let made = made(id);
        let trace = made.read();
        let judged = judge(Some(&trace), WHOLE, &Session::default());
        (
            flags(&trace, WHOLE).1.contains(&Flag::AttachedMidRun),
            judged.attached,
        )
    };
    assert_eq!(attached(9), (false, None));
    assert_eq!(attached(3), (true, None), "no horizon, no proof");
}

#[test]
fn a_reset_leaves_open_what_became_of_the_others() {
    let made = Made::new()
        .batch(&thread(1, 15).created(20, 7, &[5]).resumed(30, 7, &[5]))
        .batch(&Batch::new(1, 40).add(40, K::ResetAsyncThreadContext, &[]));
    let trace = made.read();
    assert_eq!(only(&trace).state, State::Unknown);
    assert_eq!(trace.activations[&(RA, State::Unknown)], 1);
    assert_eq!(trace.identities.breaches(), []);
}

#[test]
fn state_machines_may_overlap_and_change_their_ids() {
    let resume = K::ResumeStateMachineAsyncContext;
    let complete = K::CompleteStateMachineAsyncContext;
    let made = Made::new()
        .batch(
            &thread(1, 15)
                .add(20, K::CreateStateMachineAsyncContext, &[0, 9])
                .add(30, resume, &[9])
                .add(42, complete, &[]),
        )
        .batch(&thread(2, 41).add(41, resume, &[9]).add(50, complete, &[]))
        .batch(
            &thread(3, 55)
                .add(60, resume, &[10])
                .add(65, complete, &[])
                .add(70, K::CreateStateMachineAsyncContext, &[0, 10]),
        );
    let trace = made.read();
    assert_eq!(trace.identities.broken(SM, Identity::NoOverlap), 1);
    assert_eq!(trace.identities.broken(SM, Identity::CreateFirst), 1);
    assert_eq!(trace.totals[1].total, 2);
    let (verdict, flags) = flags(&trace, WHOLE);
    assert_eq!(verdict, Verdict::Bounded);
    assert!(flags.contains(&Flag::ClassicIdGaps));
}

#[test]
fn call_stacks_as_large_as_the_buffer_may_be_cut() {
    let frames: Vec<u64> = (1..=255).collect();
    let cut = |buffer, frames: &[u64]| {
        let made = Made::default()
            .batch(&Batch::new(1, 10).add(10, K::AsyncProfilerMetadata, &metadata(buffer)))
            .batch(&thread(1, 15).created(20, 7, frames));
        flags(&made.read(), WHOLE).1.contains(&Flag::CallstackCut)
    };
    assert!(cut(16_128, &frames));
    assert!(!cut(16_128, &frames[..254]));
    assert!(cut(1_024, &frames[..95]));
    assert!(!cut(1_024, &frames[..94]));
}

#[test]
fn verdicts() {
    assert_eq!(
        judge(None, WHOLE, &Session::default()).verdict,
        Verdict::Empty
    );
    let metadata_only = Made::new().batch(&thread(1, 15));
    assert_eq!(
        flags(&metadata_only.read(), WHOLE),
        (Verdict::MetadataOnly, vec![])
    );
    let good = Made::new().batch(&thread(1, 15).created(20, 7, &[5]));
    assert_eq!(flags(&good.read(), WHOLE), (Verdict::Bounded, vec![]));
    let partial = |container| flags(&good.read(), container);
    let truncated = Container {
        truncated: true,
        ..WHOLE
    };
    assert_eq!(
        partial(truncated),
        (Verdict::Partial, vec![Flag::ContainerTruncated])
    );
    let lost = Container { lost: 3, ..WHOLE };
    assert_eq!(partial(lost), (Verdict::Partial, vec![Flag::LostEvents]));
    let no_rundown = Container {
        rundown: 0,
        ..WHOLE
    };
    assert_eq!(
        partial(no_rundown),
        (Verdict::Bounded, vec![Flag::NoRundown])
    );
    let attached = Made::new().batch(&thread(1, 15).resumed(20, 7, &[5]).suspended(30, 7, &[5]));
    assert!(
        flags(&attached.read(), WHOLE)
            .1
            .contains(&Flag::AttachedMidRun)
    );
    assert!(
        !flags(&attached.read(), lost)
            .1
            .contains(&Flag::AttachedMidRun)
    );
    let headless = Made::default().batch(&thread(1, 15).created(20, 7, &[5]));
    assert_eq!(
        flags(&headless.read(), WHOLE),
        (Verdict::Partial, vec![Flag::NoMetadata])
    );
    let preview = Made::default().raw(crate::testing::batch(1, 10, &[&[13, 0, 1, 2, 3, 4, 32]], 0));
    assert_eq!(preview.read().rejected, 1);
    assert_eq!(flags(&preview.read(), WHOLE).0, Verdict::Partial);
}

#[test]
fn words_are_told_apart() {
    let mut words: Vec<&str> = Flag::ALL.iter().map(|f| f.as_str()).collect();
    words.sort_unstable();
    words.dedup();
    assert_eq!(words.len(), Flag::ALL.len());
    for (index, flag) in Flag::ALL.into_iter().enumerate() {
        assert_eq!(flag as usize, index);
    }
}

proptest! {
    /// Whatever the bytes are, the sums agree with each other.
    #[test]
    fn arbitrary_records_never_break_the_books(
        batches in prop::collection::vec((1_u32..4, 0_u64..100, prop::collection::vec(record(), 0..12)), 0..12)
    ) {
        let made = batches.iter().fold(Made::new(), |made, (context, start, records)| {
            let mut time = *start;
            let batch = records.iter().fold(Batch::new(*context, *start), |batch, (kind, delta, id)| {
                time += delta;
                batch.add(time, *kind, &payload(*kind, *id))
            });
            made.batch(&batch)
        });
        let trace = made.read();
        prop_assert_eq!(trace.rejected, 0);
        let listed: u64 = trace.dispatchers.iter().filter(|d| !d.state.is_end()).count() as u64;
        let counted: u64 = trace.totals.iter().flat_map(|t| &t.states)
            .filter(|(state, _)| !state.is_end()).map(|(_, n)| *n).sum();
        prop_assert_eq!(listed, counted);
        for totals in &trace.totals {
            prop_assert_eq!(totals.total, totals.states.values().sum::<u64>());
            prop_assert!(totals.created <= totals.total);
        }
        let total: u64 = trace.totals.iter().map(|t| t.total).sum();
        prop_assert_eq!(total, trace.fork_depths.values().sum::<u64>());
        prop_assert!(judge(Some(&trace), WHOLE, &Session::default()).verdict != Verdict::Empty);
    }

    #[test]
    fn arbitrary_bytes_are_refused_or_read(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let trace = Made::new().raw(bytes);
        let trace = trace.read();
        prop_assert_eq!(trace.batches + trace.rejected, 2);
    }
}

fn record() -> impl Strategy<Value = (K, u64, u8)> {
    (prop::sample::select(K::ALL.to_vec()), 0_u64..5, 0_u8..6)
        .prop_filter("stands alone", |(kind, ..)| {
            *kind != K::AsyncProfilerMetadata
        })
}

fn payload(kind: K, id: u8) -> Vec<u8> {
    match kind {
        K::CreateRuntimeAsyncContext | K::CreateStateMachineAsyncContext => vec![id / 2, id],
        K::ResumeRuntimeAsyncContext
        | K::ResumeStateMachineAsyncContext
        | K::UnwindRuntimeAsyncException
        | K::UnwindStateMachineAsyncException => vec![id],
        K::CreateRuntimeAsyncCallstack => stack(Some(0), id.into(), &[0, id.into()]),
        K::ResumeRuntimeAsyncCallstack | K::SuspendRuntimeAsyncCallstack => {
            stack(None, id.into(), &[0, id.into()])
        }
        K::ResumeStateMachineAsyncCallstack | K::AppendStateMachineAsyncCallstack => {
            vec![0, 0, 1, id, id, 2]
        }
        K::AsyncProfilerSyncClock => vec![1, 1],
        _ => Vec::new(),
    }
}
