//! Whole reports of a changed process, and answers to single questions about it.

use asynctriage_clr::Runtime;
use asynctriage_dump::{Addr, Dump};
use asynctriage_report::{Confidence, Report, TextOptions};
use asynctriage_triage::views::{self, ObjectOptions, Subject, TaskOptions};
use asynctriage_triage::{Analysis, Options, Values, analyse};

/// Objects that are asked about.
const MAX_ASKED: usize = 2;

pub(crate) fn run(bytes: &[u8]) {
    let Ok(dump) = Dump::from_bytes(bytes.to_vec()) else {
        return;
    };
    let options = Options {
        members: 1000,
        idle_too: true,
        locals: true,
        native: true,
        ..Options::default()
    };
    let Ok(report) = analyse(&dump, &options) else {
        return;
    };
    check(&report);
    let _ = asynctriage_report::text(&report, &TextOptions::default());
    ask(&dump, &report);
}

/// What must hold of every report.
fn check(report: &Report) {
    let ids: Vec<&str> = report.chains.iter().map(|c| c.id.as_str()).collect();
    for chain in &report.chains {
        assert_eq!(
            chain.count,
            chain.members.len() as u64 + chain.members_left_out
        );
    }
    for finding in &report.findings {
        assert!(
            finding.chains.iter().all(|c| ids.contains(&c.as_str())),
            "{}",
            finding.title
        );
        let is_sure = finding.confidence == Confidence::Certain;
        assert!(
            !is_sure || !finding.evidence.is_empty(),
            "{} has no evidence",
            finding.title
        );
    }
}

fn ask(dump: &Dump, report: &Report) {
    let Ok(rt) = Runtime::open(dump) else {
        return;
    };
    let analysis = Analysis::new(&rt);
    let _ = views::tasks(&analysis, &TaskOptions::default());
    let boxes = report
        .chains
        .iter()
        .flat_map(|c| &c.members)
        .flat_map(|m| &m.boxes);
    for address in boxes.take(MAX_ASKED).map(|a| Addr(a.0)) {
        let options = ObjectOptions {
            limit: 10,
            values: Values::Shown,
        };
        let _ = views::object(&analysis, address, options);
        let _ = views::root(&analysis, address, 2);
        let _ = views::why(&analysis, &Subject::Object(address));
    }
}
