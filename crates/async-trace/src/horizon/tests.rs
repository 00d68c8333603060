use super::*;
use crate::testing::{Batch, Made, metadata};
use crate::{Container, Kind, judge};

/// Ticks are milliseconds; the session begins at 0.
fn session(end: u64) -> Session {
    Session {
        frequency: 1_000,
        end: Some(end),
        ..Session::default()
    }
}

fn created(batch: Batch, time: u64, id: u8) -> Batch {
    batch.add(time, Kind::CreateRuntimeAsyncContext, &[0, id])
}

fn reset(context: u32, start: u64) -> Batch {
    Batch::new(context, start).add(start, Kind::ResetAsyncThreadContext, &[])
}

fn asked_again(made: Made, time: u64) -> Made {
    let batch = Batch::new(2, time).add(time, Kind::AsyncProfilerMetadata, &metadata(16_128));
    made.handed_over(&batch, 2, time)
}

/// Two chains: 5 was created at 2,000, 6 at 7,000; handed over when their thread was idle.
fn two() -> Made {
    Made::new()
        .handed_over(&created(reset(1, 1_990), 2_000, 5), 2, 2_900)
        .handed_over(&created(Batch::new(1, 7_000), 7_000, 6), 2, 7_900)
}

fn horizons(made: &Made, session: &Session) -> (Horizons, Vec<Standing>) {
    let trace = made.read();
    let horizons = judge(Some(&trace), Container::default(), session).horizons;
    let standings = trace.dispatchers.iter().map(|d| horizons.standing(d));
    (horizons, standings.collect())
}

#[test]
fn what_lies_behind_the_change_is_not_known() {
    let made = asked_again(two(), 6_000);
    let (horizons, standings) = horizons(&made, &session(7_950));
    assert_eq!(horizons.proved.unwrap().time, 6_000);
    assert_eq!(standings, [Standing::Proved, Standing::Unknown]);
}

#[test]
fn threads_need_the_time_to_hand_over_what_they_have() {
    let (horizons, standings) = horizons(&asked_again(two(), 6_000), &session(7_000));
    assert_eq!(horizons.proved, None);
    assert_eq!(horizons.likely.unwrap().time, 5_700);
    assert_eq!(standings, [Standing::Likely, Standing::Unknown]);
}

#[test]
fn three_sessions_that_end_together_are_the_mark_of_a_flush() {
    let marked = |others: &[u64]| {
        let session = Session {
            others: others.to_vec(),
            ..session(7_950)
        };
        let (horizons, _) = horizons(&two(), &session);
        horizons.proved.map(|h| h.time)
    };
    assert_eq!(marked(&[6_000, 6_200, 6_300]), Some(6_000));
    assert_eq!(marked(&[6_000, 6_200]), None, "any tool may end a session");
    assert_eq!(marked(&[3_000, 5_000, 6_000]), None);
    assert_eq!(marked(&[7_000, 7_100, 7_200]), None, "too late");
}

#[test]
fn without_a_flush_states_are_likely_until_the_oldest_buffer_could_be_kept() {
    let (horizons, standings) = horizons(&two(), &session(9_000));
    assert_eq!(
        (horizons.proved, horizons.likely.unwrap().time),
        (None, 7_700)
    );
    assert_eq!(standings, [Standing::Likely, Standing::Likely]);
    // a buffer that was handed over after 5 s could be kept again
    let slow = two().handed_over(&created(reset(3, 2_000), 2_010, 4), 3, 7_000);
    let (horizons, _) = super::tests::horizons(&slow, &session(9_000));
    assert_eq!(horizons.likely.unwrap().time, 4_000);
}

#[test]
fn nothing_is_proved_behind_what_was_lost() {
    let made = asked_again(two(), 6_000);
    let lost = Session {
        lost_since: Some(5_000),
        ..session(7_950)
    };
    let (horizons, standings) = horizons(&made, &lost);
    let proved = horizons.proved.unwrap();
    assert_eq!(
        (proved.time, proved.ended_by),
        (2_900, Some("events were lost"))
    );
    assert_eq!(standings, [Standing::Proved, Standing::Unknown]);
    let damaged = Session {
        damaged: true,
        ..session(7_950)
    };
    assert_eq!(
        super::tests::horizons(&made, &damaged).0,
        Horizons::default()
    );
}

#[test]
fn what_runs_on_when_the_profiler_is_asked_again_has_not_begun_then() {
    let resumed = |batch: Batch, time| batch.add(time, Kind::ResumeRuntimeAsyncContext, &[5]);
    let made = asked_again(
        Made::new().handed_over(
            &resumed(created(reset(1, 1_990), 2_000, 5), 3_000),
            2,
            3_900,
        ),
        6_000,
    )
    .handed_over(&resumed(reset(1, 6_010), 6_010), 1, 6_020);
    let (_, standings) = horizons(&made, &session(7_950));
    assert_eq!(standings, [Standing::Proved]);
    let trace = made.read();
    assert_eq!(
        (trace.dispatchers[0].resumes, trace.dispatchers[0].state),
        (1, State::Running)
    );
}

#[test]
fn chains_that_went_on_before_the_horizon_without_being_created_are_older() {
    let resumed = |time| reset(3, time).add(time, Kind::ResumeRuntimeAsyncContext, &[2]);
    let attached = |time| {
        let made = asked_again(two(), 6_000).handed_over(&resumed(time), 2, 7_900);
        let trace = made.read();
        judge(Some(&trace), Container::default(), &session(7_950)).attached
    };
    assert_eq!(attached(3_000), Some(true));
    assert_eq!(attached(7_000), None, "its create record may be missing");
}
