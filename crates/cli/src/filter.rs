//! `--type`, `--method` and `--leaf`: what stays in a report, in whatever case it is written.

use crate::args::FilterArgs;
use asynctriage_report::{ChainGroup, Report, TaskReport, TaskRow, Thread};
use std::collections::BTreeSet;

/// Keeps the groups that pass, and what belongs to them: findings, requests and threads. The rest is counted in the report.
pub(crate) fn report(report: &mut Report, filters: &FilterArgs) {
    if filters.is_empty() {
        return;
    }
    chains(report, filters);
    let kept: BTreeSet<String> = report.chains.iter().map(|c| c.id.clone()).collect();
    let is_kept = |id: &Option<String>| id.as_ref().is_some_and(|id| kept.contains(id));
    let out = &mut report.left_out;
    let retained = |before: usize, after: usize| before.saturating_sub(after) as u64;
    let before = report.findings.len();
    report.findings.retain(|f| {
        let belongs = f.chains.iter().any(|c| kept.contains(c));
        let says = || passes(&filters.methods, [f.title.as_str(), &f.text]);
        belongs
            || (f.chains.is_empty()
                && filters.types.is_empty()
                && filters.leaves.is_empty()
                && says())
    });
    out.findings = retained(before, report.findings.len());
    let before = report.requests.len();
    report.requests.retain(|r| is_kept(&r.chain));
    out.requests = out
        .requests
        .saturating_add(retained(before, report.requests.len()));
    let before = report.threads.len();
    report
        .threads
        .retain(|t| is_kept(&t.chain) || keeps_thread(t, filters));
    out.threads = out
        .threads
        .saturating_add(retained(before, report.threads.len()));
    let says = "filters of the command line";
    if out.why.iter().all(|w| w != says) && (out.findings, out.requests, out.threads) != (0, 0, 0) {
        out.why.push(says.to_owned());
    }
}

/// Whether a thread itself passes, by its stack and what it waits for.
fn keeps_thread(thread: &Thread, filters: &FilterArgs) -> bool {
    let wait = thread.waits_on.as_ref();
    passes(&filters.types, wait.and_then(|w| w.type_name.as_deref()))
        && passes(
            &filters.methods,
            thread.frames.iter().map(|f| f.method.as_str()),
        )
        && passes(&filters.leaves, wait.map(|w| w.text.as_str()))
}

/// Keeps the groups that pass; the rest is counted.
fn chains(report: &mut Report, filters: &FilterArgs) {
    let all = std::mem::take(&mut report.chains);
    let (kept, left): (Vec<_>, Vec<_>) = all.into_iter().partition(|c| keeps(c, filters));
    report.chains = kept;
    if left.is_empty() {
        return;
    }
    let chains = left.iter().map(|c| c.count).fold(0, u64::saturating_add);
    let out = &mut report.left_out;
    out.groups = out.groups.saturating_add(left.len() as u64);
    out.chains = out.chains.saturating_add(chains);
    out.why.push("filters of the command line".to_owned());
}

fn keeps(group: &ChainGroup, filters: &FilterArgs) -> bool {
    let frames = &group.frames;
    passes(
        &filters.types,
        frames.iter().filter_map(|f| f.type_name.as_deref()),
    ) && passes(&filters.methods, frames.iter().map(|f| f.method.as_str()))
        && passes(
            &filters.leaves,
            [group.leaf.kind.as_str(), &group.leaf.text],
        )
}

/// Keeps the tasks that pass; the rest is counted in the report.
pub(crate) fn tasks(report: &mut TaskReport, filters: &FilterArgs) {
    let before = report.tasks.len();
    report.tasks.retain(|task| keeps_task(task, filters));
    let gone = before.saturating_sub(report.tasks.len()) as u64;
    report.left_out = report.left_out.saturating_add(gone);
}

fn keeps_task(task: &TaskRow, filters: &FilterArgs) -> bool {
    let leaf = task.leaf.map(|leaf| leaf.as_str());
    passes(&filters.types, [task.type_name.as_str()])
        && passes(&filters.methods, task.method.as_deref())
        && passes(
            &filters.leaves,
            leaf.into_iter().chain(task.waits_on.as_deref()),
        )
}

/// Whether any text contains any of the wanted ones; true when nothing is wanted.
fn passes<'a>(wanted: &[String], texts: impl IntoIterator<Item = &'a str>) -> bool {
    wanted.is_empty()
        || texts.into_iter().any(|text| {
            let text = text.to_lowercase();
            wanted.iter().any(|w| text.contains(&w.to_lowercase()))
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use asynctriage_report::{Finding, FindingKind, Frame, Leaf, LeafKind, Request, Severity};

    fn report() -> Report {
        let group = |methods: [&str; 2], kind, count| ChainGroup {
            count,
            frames: methods
                .map(|method| Frame {
                    method: method.into(),
                    type_name: Some(format!("{method}d__1")),
                    ..Frame::default()
                })
                .to_vec(),
            leaf: Leaf {
                kind,
                text: "the wait".into(),
                ..Leaf::default()
            },
            ..ChainGroup::default()
        };
        Report {
            chains: vec![
                group(["A.Inner", "A.Outer"], LeafKind::Delay, 3),
                group(["A.Inner", "B.Outer"], LeafKind::Semaphore, 4),
            ],
            ..Report::default()
        }
    }

    fn counts(filters: &FilterArgs) -> (Vec<u64>, u64, u64) {
        let mut report = report();
        chains(&mut report, filters);
        let kept = report.chains.iter().map(|c| c.count).collect();
        (kept, report.left_out.groups, report.left_out.chains)
    }

    fn texts(all: &[&str]) -> Vec<String> {
        all.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn no_filter_keeps_all() {
        assert_eq!(counts(&FilterArgs::default()), (vec![3, 4], 0, 0));
    }

    #[test]
    fn any_frame_may_match() {
        let methods = texts(&["b.out"]);
        assert_eq!(
            counts(&FilterArgs {
                methods,
                ..FilterArgs::default()
            }),
            (vec![4], 1, 3)
        );
        let types = texts(&["Outerd__1"]);
        assert_eq!(
            counts(&FilterArgs {
                types,
                ..FilterArgs::default()
            }),
            (vec![3, 4], 0, 0)
        );
    }

    #[test]
    fn leaves_match_by_kind_and_text() {
        let leaves = texts(&["semaphore", "nothing"]);
        assert_eq!(
            counts(&FilterArgs {
                leaves,
                ..FilterArgs::default()
            }),
            (vec![4], 1, 3)
        );
        let leaves = texts(&["the wait"]);
        assert_eq!(
            counts(&FilterArgs {
                leaves,
                ..FilterArgs::default()
            }),
            (vec![3, 4], 0, 0)
        );
    }

    #[test]
    fn kinds_of_filters_must_all_match() {
        let (methods, leaves) = (texts(&["B."]), texts(&["delay"]));
        let filters = FilterArgs {
            methods,
            leaves,
            ..FilterArgs::default()
        };
        assert_eq!(counts(&filters), (vec![], 2, 7));
    }

    #[test]
    fn what_belongs_to_chains_goes_with_them() {
        let finding = |chains: &[&str]| Finding {
            chains: texts(chains),
            ..Finding::new(FindingKind::Bottleneck, Severity::Warning, "in A.Inner")
        };
        let mut filtered = report();
        for (group, id) in filtered.chains.iter_mut().zip(["C1", "C2"]) {
            group.id = id.into();
        }
        filtered.findings = vec![finding(&["C1", "C2"]), finding(&["C1"]), finding(&[])];
        let request = |chain: &str| Request {
            chain: Some(chain.into()),
            ..Request::default()
        };
        filtered.requests = vec![request("C1"), request("C2")];
        filtered.threads = vec![Thread::default()];
        super::report(
            &mut filtered,
            &FilterArgs {
                methods: texts(&["B.OUTER"]),
                ..FilterArgs::default()
            },
        );
        let left = &filtered.left_out;
        assert_eq!(filtered.findings.len(), 1);
        assert_eq!(filtered.requests.len(), 1);
        assert_eq!((left.findings, left.requests, left.threads), (2, 1, 1));
    }

    #[test]
    fn tasks_are_filtered_alike() {
        let task = |method: Option<&str>, leaf| TaskRow {
            method: method.map(str::to_owned),
            leaf,
            ..TaskRow::default()
        };
        let mut report = TaskReport {
            tasks: vec![task(Some("A.B"), None), task(None, Some(LeafKind::Delay))],
            left_out: 5,
            ..TaskReport::default()
        };
        tasks(
            &mut report,
            &FilterArgs {
                methods: texts(&["A"]),
                ..FilterArgs::default()
            },
        );
        assert_eq!((report.tasks.len(), report.left_out), (1, 6));
    }
}
