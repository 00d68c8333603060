//! Reports of one process at several moments, or of two deployments: what moved and what did not.
//!
//! A chain did not move when the same objects stand in it at the same awaits on the same thing. Its outermost object tells a
//! chain that went on from one that is new. Objects are told by address: a compacting collection between the dumps moves
//! them, and a chain then counts as gone and new. Counts that stay equal so are no progress and are not called so.

mod judge;
#[cfg(test)]
mod tests;

use asynctriage_report::{
    Address, ChainGroup, DiffDump, DiffFigure, DiffFinding, DiffGroup, DiffReport, FindingStanding,
    Member, Report, VerdictState,
};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeMap;

/// Compares reports: the first with the last; those between give their counts. They are put into the order of time when
/// all tell theirs. `apart` is how many seconds lie between, where somebody knows it better than the clocks in the dumps: a
/// process that hangs altogether has none that goes.
#[must_use]
pub fn diff(reports: &[Report], apart: Option<f64>) -> DiffReport {
    let mut ordered: Vec<&Report> = reports.iter().collect();
    if reports.iter().all(|r| moment(r).is_some()) {
        ordered.sort_by(|a, b| moment(a).cmp(&moment(b)));
    }
    let (Some(first), Some(last)) = (ordered.first().copied(), ordered.last().copied()) else {
        return DiffReport::default();
    };
    let same_process = ordered.iter().all(|r| is_same_process(first, r));
    let seconds = apart
        .or_else(|| elapsed(first, last))
        .filter(|_| same_process);
    let mut out = DiffReport {
        dumps: ordered.iter().map(|r| dump(r)).collect(),
        same_process,
        seconds,
        groups: groups(&ordered, same_process, seconds),
        figures: figures(&ordered, seconds),
        findings: findings(first, last),
        ..DiffReport::default()
    };
    judge::process(&mut out);
    out
}

fn moment(report: &Report) -> Option<&str> {
    report.dump.time.as_deref()
}

/// Seconds between two moments of one day or month at most: RFC 3339 in UTC.
fn elapsed(first: &Report, last: &Report) -> Option<f64> {
    let seconds = |r: &Report| crate::process::dump::seconds(moment(r)?);
    let passed = seconds(last)? - seconds(first)?;
    (passed >= 0.0).then_some(passed)
}

fn is_same_process(a: &Report, b: &Report) -> bool {
    let fields = |r: &Report| {
        let p = &r.process;
        let texts = (
            p.entry_assembly.clone(),
            p.entry_version.clone(),
            p.machine.clone(),
        );
        (r.dump.process_id, texts, r.runtime.version.clone())
    };
    a.dump.process_id.is_some() && fields(a) == fields(b)
}

fn dump(report: &Report) -> DiffDump {
    let p = &report.process;
    let name = p.entry_assembly.as_ref().or(p.executable.as_ref());
    let words = name.into_iter().chain(&p.entry_version).cloned();
    DiffDump {
        path: report.dump.path.clone(),
        program: words.collect::<Vec<_>>().join(" "),
        runtime: report.runtime.version.clone(),
        process_id: report.dump.process_id,
        time: report.dump.time.clone(),
        time_is_floor: report.dump.time_is_floor,
        incomplete: report.dump.truncated,
    }
}

/// What tells one chain of a process from another: its outermost object.
fn outermost(member: &Member) -> Option<Address> {
    member.boxes.last().copied()
}

/// All that has to be equal for a chain not to have moved.
type Standing<'r> = (&'r [Address], Option<Address>);

fn standing(member: &Member) -> Standing<'_> {
    (&member.boxes, member.waits_on)
}

/// The chains of one signature in each dump.
type InDumps<'r> = Vec<Vec<&'r ChainGroup>>;

fn groups(reports: &[&Report], same_process: bool, seconds: Option<f64>) -> Vec<DiffGroup> {
    let mut by_signature: BTreeMap<&str, InDumps<'_>> = BTreeMap::new();
    for (index, report) in reports.iter().enumerate() {
        for group in &report.chains {
            let key = if same_process {
                &group.signature
            } else {
                &group.app_signature
            };
            let all = by_signature
                .entry(key)
                .or_insert_with(|| vec![Vec::new(); reports.len()]);
            if let Some(dump) = all.get_mut(index) {
                dump.push(group);
            }
        }
    }
    let ends = |report: Option<&&Report>| -> FxHashSet<Address> {
        let groups = report.into_iter().flat_map(|r| &r.chains);
        groups
            .flat_map(|g| &g.members)
            .filter_map(outermost)
            .collect()
    };
    let (before, after) = (ends(reports.first()), ends(reports.last()));
    let mut out: Vec<DiffGroup> = by_signature
        .into_iter()
        .filter_map(|(signature, dumps)| {
            let mut group = describe(signature, &dumps)?;
            let growth = difference(&group.counts);
            group.per_second = seconds.filter(|s| *s > 0.0).map(|s| growth / s);
            if same_process {
                follow(&mut group, &dumps, &before, &after);
            }
            let is_idle = dumps.iter().flatten().all(|g| is_idle(g));
            judge::group(&mut group, same_process, seconds, is_idle);
            Some(group)
        })
        .collect();
    out.sort_by_key(|g| {
        (
            judge::rank(g.state),
            std::cmp::Reverse(g.counts.last().copied()),
        )
    });
    out
}

fn is_idle(group: &ChainGroup) -> bool {
    let verdict = group.verdict.as_ref();
    verdict.is_some_and(|v| v.state == VerdictState::Idle)
}

fn describe(signature: &str, dumps: &InDumps<'_>) -> Option<DiffGroup> {
    let sample = dumps.iter().rev().flatten().next()?;
    let own = sample.frames.iter().find(|f| !f.is_framework);
    let frame = own.or(sample.frames.first());
    let total = |all: &Vec<&ChainGroup>| all.iter().map(|g| g.count).fold(0, u64::saturating_add);
    let oldest = |all: &Vec<&ChainGroup>| {
        let ages = all.iter().filter_map(|g| g.waiting_seconds.as_ref());
        ages.map(|w| w.max).reduce(f64::max)
    };
    let ages: Vec<Option<f64>> = dumps.iter().map(oldest).collect();
    Some(DiffGroup {
        signature: signature.to_owned(),
        method: frame.map_or_else(|| sample.leaf.text.clone(), |f| f.method.clone()),
        await_index: frame.and_then(|f| f.await_index),
        leaf: sample.leaf.kind,
        leaf_text: sample.leaf.text.clone(),
        root: sample.root.as_ref().map(|r| r.kind),
        counts: dumps.iter().map(total).collect(),
        oldest_seconds: if ages.iter().any(Option::is_some) {
            ages
        } else {
            Vec::new()
        },
        ..DiffGroup::default()
    })
}

/// Compares the chains of a group one by one.
fn follow(
    group: &mut DiffGroup,
    dumps: &InDumps<'_>,
    before: &FxHashSet<Address>,
    after: &FxHashSet<Address>,
) {
    let members = |all: Option<&Vec<&'_ ChainGroup>>| -> Vec<Member> {
        let groups = all.into_iter().flatten();
        groups.flat_map(|g| g.members.iter().cloned()).collect()
    };
    let (first, last) = (members(dumps.first()), members(dumps.last()));
    let mut stood: FxHashMap<Standing<'_>, u64> = FxHashMap::default();
    for member in &first {
        let n = stood.entry(standing(member)).or_default();
        *n = n.saturating_add(1);
    }
    let add = |n: &mut u64| *n = n.saturating_add(1);
    for member in &last {
        match stood.get_mut(&standing(member)).filter(|n| **n > 0) {
            Some(n) => {
                *n = n.saturating_sub(1);
                add(&mut group.unmoved);
            }
            None if outermost(member).is_some_and(|o| before.contains(&o)) => add(&mut group.moved),
            None => add(&mut group.new),
        }
    }
    let gone = first
        .iter()
        .filter_map(outermost)
        .filter(|o| !after.contains(o));
    group.gone = gone.count() as u64;
}

/// How much more the last is than the first.
#[expect(clippy::cast_precision_loss, reason = "rates are rounded anyway")]
fn difference(counts: &[u64]) -> f64 {
    let of = |n: Option<&u64>| n.copied().unwrap_or_default() as f64;
    of(counts.last()) - of(counts.first())
}

/// How many of something a report has.
type Count<'f> = &'f dyn Fn(&Report) -> u64;

fn figures(reports: &[&Report], seconds: Option<f64>) -> Vec<DiffFigure> {
    let blocked = |r: &Report| r.threads.iter().filter(|t| t.waits_on.is_some()).count() as u64;
    let held = |r: &Report| r.threads.iter().map(|t| t.holds.len() as u64).sum();
    let pool = |r: &Report| r.pool.clone().unwrap_or_default();
    let all: [(&str, Count<'_>); 9] = [
        ("heap objects", &|r| r.heap.objects),
        ("heap bytes", &|r| r.heap.bytes),
        ("tasks", &|r| r.heap.tasks),
        ("state machines", &|r| r.heap.state_machines),
        ("requests", &|r| r.requests.len() as u64),
        ("queued work", &|r| pool(r).queued.total()),
        ("pool threads", &|r| pool(r).workers.unwrap_or_default()),
        ("blocked threads", &blocked),
        ("locks held by threads", &held),
    ];
    let figure = |(what, of): (&str, Count<'_>)| {
        let counts: Vec<u64> = reports.iter().map(|r| of(r)).collect();
        DiffFigure {
            what: what.to_owned(),
            per_second: seconds
                .filter(|s| *s > 0.0)
                .map(|s| difference(&counts) / s),
            counts,
        }
    };
    all.into_iter().map(figure).collect()
}

fn findings(first: &Report, last: &Report) -> Vec<DiffFinding> {
    let has = |r: &Report, signature: &str| r.findings.iter().any(|f| f.signature == signature);
    let row = |f: &asynctriage_report::Finding, standing| DiffFinding {
        signature: f.signature.clone(),
        kind: f.kind,
        severity: f.severity,
        standing,
        title: f.title.clone(),
    };
    let now = last.findings.iter().map(|f| {
        let standing = if has(first, &f.signature) {
            FindingStanding::Persists
        } else {
            FindingStanding::New
        };
        row(f, standing)
    });
    let gone = first.findings.iter().filter(|f| !has(last, &f.signature));
    now.chain(gone.map(|f| row(f, FindingStanding::Gone)))
        .collect()
}
