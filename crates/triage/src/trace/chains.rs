//! What had not ended when the recording did, in groups of the same frames and state.

use super::TraceOptions;
use super::names;
use super::time::Times;
use asynctriage_async_trace::{
    AsyncTrace, Dispatcher, Family, FrameListId, Horizons, Standing, State,
};
use asynctriage_nettrace::runtime::MethodRanges;
use asynctriage_report as report;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Chains that are equal to the reader: addresses of one method may differ, as code is compiled more than once.
pub(super) struct Group<'t> {
    pub(super) family: Family,
    pub(super) state: State,
    pub(super) standing: Standing,
    /// Raw names.
    pub(super) names: Option<Vec<String>>,
    /// Of the first of them.
    list: Option<FrameListId>,
    /// The oldest first.
    pub(super) members: Vec<&'t Dispatcher>,
}

/// Dispatchers that have not ended, by what a reader sees of them; those whose state is proved first, then the largest
/// groups. Without horizons all are taken as they were last seen.
pub(super) fn not_ended<'t>(
    trace: &'t AsyncTrace<'_>,
    horizons: Option<&Horizons>,
    methods: &MethodRanges,
) -> Vec<Group<'t>> {
    type Exact = (Standing, Family, State, Option<FrameListId>);
    let mut exact: BTreeMap<Exact, Vec<&Dispatcher>> = BTreeMap::new();
    for d in trace.dispatchers.iter().filter(|d| !d.state.is_end()) {
        let standing = horizons.map_or(Standing::Proved, |h| h.standing(d));
        exact
            .entry((standing, d.family, d.state, d.frames))
            .or_default()
            .push(d);
    }
    type Seen = (Standing, Family, State, Option<Vec<String>>);
    let mut seen: BTreeMap<Seen, Group<'t>> = BTreeMap::new();
    for ((standing, family, state, list), members) in exact {
        let names = list.map(|list| {
            let frames = trace.frames.frames(list).iter();
            frames.map(|f| names::raw(methods, f.address)).collect()
        });
        seen.entry((standing, family, state, names.clone()))
            .or_insert_with(|| Group {
                family,
                state,
                standing,
                names,
                list,
                members: Vec::new(),
            })
            .members
            .extend(members);
    }
    let mut groups: Vec<Group<'t>> = seen.into_values().collect();
    for group in &mut groups {
        group
            .members
            .sort_by_key(|d| (d.since().map(|m| m.time), d.id));
    }
    groups.sort_by_key(|g| (g.standing, Reverse(g.members.len())));
    groups
}

/// The groups as the report has them.
pub(super) fn groups(
    trace: &AsyncTrace<'_>,
    horizons: &Horizons,
    methods: &MethodRanges,
    times: &Times,
    options: &TraceOptions,
) -> Vec<report::TraceChain> {
    let groups = not_ended(trace, Some(horizons), methods);
    let proved = horizons.proved.map(|h| h.time);
    let numbered = groups.iter().zip(1_usize..);
    numbered
        .map(|(group, number)| {
            let shown = group.members.len().min(options.members);
            let members = group.members.iter().take(shown);
            report::TraceChain {
                id: format!("t{number}"),
                count: group.members.len() as u64,
                kind: match group.family {
                    Family::RuntimeAsync => report::FrameKind::RuntimeAsync,
                    Family::StateMachine => report::FrameKind::StateMachine,
                },
                state: state(group.state),
                standing: standing(group.standing),
                first_seen: oldest(group).and_then(|ticks| times.utc(ticks)),
                waiting_seconds: waiting(group, proved, times),
                frames: group.list.map(|list| frames(trace, methods, group, list)),
                no_frames: group.list.is_none().then(|| no_frames(group).to_owned()),
                members: members.map(|d| member(d, times)).collect(),
                members_left_out: group.members.len().saturating_sub(shown) as u64,
            }
        })
        .collect()
}

fn oldest(group: &Group<'_>) -> Option<u64> {
    let times = group.members.iter().filter_map(|d| d.since());
    times.map(|m| m.time).min()
}

pub(super) fn standing(standing: Standing) -> report::ChainStanding {
    match standing {
        Standing::Proved => report::ChainStanding::Proved,
        Standing::Likely => report::ChainStanding::Likely,
        Standing::Unknown => report::ChainStanding::Unknown,
    }
}

/// Up to the horizon where that is proved, else up to the end of the recording.
fn waiting(group: &Group<'_>, proved: Option<u64>, times: &Times) -> Option<report::Waiting> {
    let until = proved.filter(|_| group.standing == Standing::Proved);
    let elapsed = |since| match until {
        Some(until) => times.clock.seconds(since, until).map(|s| s.max(0.0)),
        None => times.until_end(since),
    };
    let since = group.members.iter().filter_map(|d| d.since());
    let mut seconds: Vec<f64> = since.filter_map(|m| elapsed(m.time)).collect();
    seconds.sort_by(f64::total_cmp);
    let from = match group.state {
        State::SuspendedAtCreate => "create",
        State::Running => "resume",
        _ => "suspend",
    };
    let to = match until {
        Some(_) => "horizon",
        None => "end of the recording",
    };
    Some(report::Waiting {
        min: *seconds.first()?,
        median: *seconds.get(seconds.len() / 2)?,
        max: *seconds.last()?,
        how: format!("from the {from} record to the {to}"),
    })
}

/// Frames of the group; how far a running chain has come only when all of the group have come as far.
fn frames(
    trace: &AsyncTrace<'_>,
    methods: &MethodRanges,
    group: &Group<'_>,
    list: FrameListId,
) -> Vec<report::TraceFrame> {
    let first = group.members.first().map(|d| d.ended_frames);
    let runs = group.state == State::Running
        && trace.has_method_records()
        && group.members.iter().all(|d| Some(d.ended_frames) == first);
    let ended = first.filter(|_| runs).and_then(|n| usize::try_from(n).ok());
    let frames = trace.frames.frames(list).iter().enumerate();
    frames
        .map(|(index, frame)| {
            let mut frame = names::frame(methods, *frame);
            frame.progress = ended.and_then(|ended| match index {
                _ if index < ended => Some("ended".to_owned()),
                _ if index == ended => Some("running".to_owned()),
                _ => None,
            });
            frame
        })
        .collect()
}

fn no_frames(group: &Group<'_>) -> &'static str {
    match (group.family, group.state) {
        (Family::StateMachine, State::SuspendedAtCreate) => {
            "frames of a state machine are recorded when it is resumed, and these never were; a dump of the process has \
             them, by the same ids"
        }
        _ => "no call stack was recorded",
    }
}

pub(super) fn member(d: &Dispatcher, times: &Times) -> report::TraceMember {
    report::TraceMember {
        dispatcher: d.id,
        parent: d.parent,
        resumes: d.resumes,
        created: d.created.map(|m| times.moment(m)),
        resumed: d.resumed.map(|m| times.moment(m)),
        suspended: d
            .stopped
            .filter(|_| d.state == State::Suspended)
            .map(|m| times.moment(m)),
    }
}

/// What chains did last, as the report says it.
fn state(state: State) -> report::TraceState {
    use report::TraceState as T;
    match state {
        State::SuspendedAtCreate => T::SuspendedAtCreate,
        State::Suspended => T::Suspended,
        State::Running => T::Running,
        State::Completed => T::Completed,
        State::Faulted => T::Faulted,
        State::Unknown => T::Unknown,
    }
}
