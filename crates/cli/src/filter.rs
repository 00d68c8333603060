//! `--type`, `--method` and `--leaf`: which groups of chains stay in a report.

use crate::args::FilterArgs;
use asynctriage_report::{ChainGroup, Report, TaskReport, TaskRow};

/// Keeps the groups that pass; the rest is counted in the report.
pub(crate) fn chains(report: &mut Report, filters: &FilterArgs) {
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
        || texts
            .into_iter()
            .any(|text| wanted.iter().any(|w| text.contains(w.as_str())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use asynctriage_report::{Frame, Leaf, LeafKind};

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
        let methods = texts(&["B.Out"]);
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
