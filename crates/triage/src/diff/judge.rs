//! What the figures of a comparison mean.

use asynctriage_report::{DiffGroup, DiffReport, DiffState, LeafKind, RootKind};

/// The order of groups: what needs a person first.
pub(super) fn rank(state: DiffState) -> usize {
    use DiffState as S;
    let order = [
        S::Stuck,
        S::Leaking,
        S::Slow,
        S::New,
        S::Unknown,
        S::Progressing,
        S::Gone,
        S::Idle,
    ];
    order
        .iter()
        .position(|s| *s == state)
        .unwrap_or(order.len())
}

/// Judges the chains of one signature.
pub(super) fn group(group: &mut DiffGroup, same_process: bool, seconds: Option<f64>, idle: bool) {
    let (first, last) = (
        group.counts.first().copied().unwrap_or_default(),
        group.counts.last().copied().unwrap_or_default(),
    );
    let (state, why) = if !same_process {
        between_processes(first, last)
    } else if first == 0 {
        (
            DiffState::New,
            format!("{last} in the last dump, none in the first"),
        )
    } else if last == 0 {
        (
            DiffState::Gone,
            format!("{first} in the first dump, none in the last"),
        )
    } else {
        followed(group, first, last, seconds)
    };
    let stands_still = matches!(state, DiffState::Stuck | DiffState::Unknown);
    group.state = if idle && stands_still {
        DiffState::Idle
    } else {
        state
    };
    group.why = why;
}

fn between_processes(first: u64, last: u64) -> (DiffState, String) {
    match (first, last) {
        (0, _) => (
            DiffState::New,
            format!("{last} in the last dump, none in the first"),
        ),
        (_, 0) => (
            DiffState::Gone,
            format!("{first} in the first dump, none in the last"),
        ),
        _ => (
            DiffState::Unknown,
            format!(
                "in both: {first} and {last}; whether they move, two dumps of one process tell"
            ),
        ),
    }
}

fn followed(group: &DiffGroup, first: u64, last: u64, seconds: Option<f64>) -> (DiffState, String) {
    let seen = group
        .unmoved
        .saturating_add(group.moved)
        .saturating_add(group.new);
    if seen < last {
        let why = format!("only {seen} of {last} chains are listed one by one in the report");
        return (DiffState::Unknown, why);
    }
    let all_stand = group.unmoved == first && group.gone == 0;
    let grows = group.counts.is_sorted() && last > first;
    if all_stand && !seconds.is_some_and(|s| s > 0.0) && !grows {
        let why =
            format!("{first} did not move, but no clock tells that time passed between the dumps");
        return (DiffState::Unknown, why);
    }
    if all_stand && is_reused(group.leaf) {
        let why = format!(
            "{first} stand at the same await of the same objects; what they wait for is used again for each wait, so they may have gone round"
        );
        return (DiffState::Unknown, why);
    }
    if all_stand && grows && is_for_nobody(group.root) {
        let more = last.saturating_sub(first);
        let why = format!("{more} more, all {first} of before are still there, and none has moved");
        return (DiffState::Leaking, why);
    }
    if all_stand {
        let more = last.saturating_sub(first);
        let more = if more > 0 {
            format!("; {more} more came")
        } else {
            String::new()
        };
        let why = format!(
            "{first} of {first} did not move: same objects, same awaits, same thing waited for{more}"
        );
        return (DiffState::Stuck, why);
    }
    let figures = format!(
        "{} did not move, {} moved on, {} are new, {} are gone",
        group.unmoved, group.moved, group.new, group.gone
    );
    if group.unmoved > 0 {
        return (DiffState::Slow, figures);
    }
    if group.moved > 0 {
        return (DiffState::Progressing, figures);
    }
    // nothing but addresses tells these apart, and a collection changes them
    let why =
        format!("{figures}: others have taken their place, or a garbage collection moved them");
    (DiffState::Unknown, why)
}

/// Whether one object stands for wait after wait.
fn is_reused(leaf: LeafKind) -> bool {
    use LeafKind as K;
    matches!(
        leaf,
        K::SocketReceive
            | K::SocketSend
            | K::SocketAccept
            | K::PipeRead
            | K::PipeWrite
            | K::ChannelRead
            | K::ChannelWrite
            | K::PeriodicTimer
            | K::ValueTaskSource
    )
}

/// Whether nobody outside waits for the chains: requests that pile up are stuck, not leaked.
fn is_for_nobody(root: Option<RootKind>) -> bool {
    matches!(
        root,
        None | Some(
            RootKind::None | RootKind::AsyncVoid | RootKind::Activity | RootKind::TimerCallback
        )
    )
}

/// Judges the process by its groups.
pub(super) fn process(report: &mut DiffReport) {
    let of = |state: DiffState| {
        let groups = report.groups.iter().filter(|g| g.state == state);
        let chains = groups.filter_map(|g| g.counts.last().copied());
        chains.fold(0, u64::saturating_add)
    };
    let parts: Vec<String> = [
        DiffState::Stuck,
        DiffState::Leaking,
        DiffState::Slow,
        DiffState::Progressing,
        DiffState::New,
        DiffState::Unknown,
        DiffState::Idle,
    ]
    .into_iter()
    .filter(|s| of(*s) > 0)
    .map(|s| format!("{} {s}", of(s)))
    .collect();
    let counted = if parts.is_empty() {
        "no chain waits in the last dump".to_owned()
    } else {
        format!("chains of the last dump: {}", parts.join(", "))
    };
    if !report.same_process {
        report.why = counted;
        return;
    }
    let nothing_moved = report.groups.iter().all(|g| {
        let first = g.counts.first().copied();
        g.moved == 0 && g.new == 0 && g.gone == 0 && Some(g.unmoved) == first
    }) && report
        .figures
        .iter()
        .all(|f| f.counts.first() == f.counts.last());
    let worst = report
        .groups
        .iter()
        .map(|g| g.state)
        .min_by_key(|s| rank(*s));
    report.state = worst.unwrap_or_default();
    report.why = if nothing_moved {
        format!("nothing moved; {counted}")
    } else {
        counted
    };
}
