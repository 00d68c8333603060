//! Analyses that are ended: whatever phase that happens in, what is known is reported, and what is not is told.

use asynctriage_dump::{Budget, Dump, Ended, OpenOptions};
use asynctriage_report::{Confidence, FindingKind, Report};
use asynctriage_triage::{Options, analyse};
use std::path::Path;

/// Phases of an analysis: the runtime, the heap, links, chains, completers, findings.
const PHASES: u32 = 6;

fn open(name: &str, budget: &Budget) -> Dump {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdumps");
    let options = OpenOptions {
        budget: budget.clone(),
        ..OpenOptions::default()
    };
    Dump::open(&folder.join(format!("{name}.dmp.gz")), &options).expect("a dump")
}

fn analysed(dump: &Dump) -> Report {
    let options = Options {
        locals: true,
        ..Options::default()
    };
    analyse(dump, &options).expect("a report")
}

fn report(name: &str, budget: &Budget) -> Report {
    analysed(&open(name, budget))
}

fn limits(report: &Report) -> Vec<&str> {
    let all = report.gaps.iter().filter(|g| g.section == "limits");
    all.map(|g| g.place.as_str()).collect()
}

/// What must hold of every partial report.
fn assert_honest(report: &Report, whole: &Report) {
    assert!(!limits(report).is_empty(), "nothing says that it was ended");
    for finding in &report.findings {
        let (kind, sure) = (finding.kind, finding.confidence);
        assert!(sure <= Confidence::Possible, "{kind} is {sure:?}");
        let absent = [FindingKind::Idle, FindingKind::NeverCompletes];
        assert!(!absent.contains(&kind), "{kind} rests on what is missing");
    }
    let count = |r: &Report| r.chains.iter().map(|c| c.count).sum::<u64>();
    assert!(count(report) <= count(whole));
    let text = serde_json::to_string(report).expect("JSON");
    let again: Report = serde_json::from_str(&text).expect("a report");
    assert_eq!(&again, report);
    assert!(!asynctriage_report::text(report, &Default::default()).is_empty());
}

#[test]
fn each_phase_may_be_ended() {
    for name in [
        "mixed-10.0.15",
        "semaphore-10.0.15",
        "never-10.0.15",
        "web-idle-11.0.0",
    ] {
        let budget = Budget::new();
        let whole = report(name, &budget);
        assert_eq!((limits(&whole), budget.phase()), (vec![], PHASES));
        let mut told = Vec::new();
        // nothing of the first is long
        for phase in 2..=PHASES {
            let budget = Budget::new();
            budget.end_at(phase);
            let cut = report(name, &budget);
            if budget.is_cut() {
                assert_honest(&cut, &whole);
                told.push(phase);
            } else {
                assert_eq!(cut, whole, "{name}: phase {phase}");
            }
        }
        assert!(
            told.starts_with(&[2, 3, 4]) && told.ends_with(&[6]),
            "{name}: {told:?}"
        );
    }
}

#[test]
fn what_is_ended_for_good_before_it_begins_still_reports() {
    for name in ["mixed-10.0.15", "locks-10.0.15"] {
        let whole = report(name, &Budget::new());
        let mut dump = open(name, &Budget::new());
        dump.budget.end_for_good(Ended::Asked);
        assert_honest(&analysed(&dump), &whole);
        dump.budget = Budget::new();
        assert_eq!(analysed(&dump), whole);
    }
}
