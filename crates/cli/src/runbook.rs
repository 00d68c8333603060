//! The runbook pages, which findings name: what each means, how sure it is, what to look at next, what fixes it.

use crate::args::RunbookArgs;
use crate::commands::print;
use crate::errors::CliError;
use crate::exit::Exit;
use crate::output::Destination;
use asynctriage_report::{RunbookList, RunbookPage, SCHEMA_VERSION};
use std::path::Path;

/// A page that is part of the program, so that it is at hand where nothing else is.
macro_rules! pages {
    ($($name:literal),+ $(,)?) => {
        /// The pages by name.
        const PAGES: &[(&str, &str)] = &[
            $(($name, include_str!(concat!("../../../runbooks/", $name, ".md")))),+
        ];
    };
}

pages![
    "await-cycle",
    "bottleneck",
    "cancellation-deadlock",
    "cancelled-tasks",
    "capture",
    "channel-full",
    "completed-not-collected",
    "crash",
    "faulted-tasks",
    "fleet",
    "hang",
    "http-pool-exhausted",
    "idle",
    "lock-contention",
    "lock-deadlock",
    "mixed-deadlock",
    "monitor-wait",
    "never-completes",
    "observe",
    "oom",
    "queue-depth",
    "ready-not-running",
    "retained-by-state-machine",
    "scheduler-deadlock",
    "semaphore-deadlock",
    "semaphore-exhausted",
    "sync-context-deadlock",
    "thread-blocked-on-task",
    "threadpool-starvation",
    "trace",
    "type-initializer-deadlock",
    "unhandled-exception",
];

/// Prints a page, or the names of all.
pub(crate) fn runbook(args: &RunbookArgs) -> Result<Exit, CliError> {
    // there is no dump that the output could overwrite
    let destination = Destination::new(&args.output, Path::new(""))?;
    let Some(name) = &args.name else {
        let pages = PAGES.iter().map(|(n, text)| page(n, text, false));
        let all = RunbookList {
            schema_version: SCHEMA_VERSION.to_owned(),
            pages: pages.collect(),
        };
        print(&destination, &args.output, true, &all, |all, _| {
            list(&all.pages)
        })?;
        return Ok(Exit::Written);
    };
    let Some((name, text)) = PAGES.iter().find(|(n, _)| n == name) else {
        return Err(CliError::new(
            Exit::Usage,
            format!("there is no runbook page {name}"),
            "asynctriage runbook lists the pages",
        ));
    };
    let page = RunbookPage {
        schema_version: SCHEMA_VERSION.to_owned(),
        ..page(name, text, true)
    };
    print(&destination, &args.output, true, &page, |page, _| {
        page.text.clone().unwrap_or_default()
    })?;
    Ok(Exit::Written)
}

fn page(name: &'static str, text: &'static str, whole: bool) -> RunbookPage {
    let (head, body) = split(text);
    let findings = head
        .lines()
        .find_map(|l| l.strip_prefix("findings: [")?.strip_suffix(']'))
        .unwrap_or_default();
    RunbookPage {
        name: name.to_owned(),
        title: body
            .lines()
            .find_map(|l| l.strip_prefix("# "))
            .unwrap_or_default()
            .to_owned(),
        findings: findings
            .split(", ")
            .filter(|f| !f.is_empty())
            .map(str::to_owned)
            .collect(),
        text: whole.then(|| body.to_owned()),
        ..RunbookPage::default()
    }
}

/// What stands between the two lines of dashes at the top, and the page below.
fn split(text: &'static str) -> (&'static str, &'static str) {
    let inside = text.strip_prefix("---\n");
    inside
        .and_then(|t| t.split_once("\n---\n"))
        .map_or(("", text), |(head, body)| (head, body.trim_start()))
}

/// Name and title of each page.
fn list(pages: &[RunbookPage]) -> String {
    let width = pages.iter().map(|p| p.name.len()).max().unwrap_or_default();
    let rows = pages
        .iter()
        .map(|p| format!("{:width$}  {}\n", p.name, p.title));
    rows.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use asynctriage_report::FindingKind;
    use std::collections::BTreeSet;

    #[test]
    fn the_program_has_every_page_of_the_folder() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../runbooks");
        let files = std::fs::read_dir(folder).expect("the folder is there");
        let files: BTreeSet<String> = files
            .filter_map(|f| f.ok()?.file_name().into_string().ok())
            .filter_map(|f| f.strip_suffix(".md").map(str::to_owned))
            .collect();
        let pages: BTreeSet<String> = PAGES.iter().map(|(n, _)| (*n).to_owned()).collect();
        assert_eq!(pages, files);
    }

    #[test]
    fn every_kind_of_finding_has_the_page_that_it_names() {
        for kind in FindingKind::ALL {
            let found = PAGES.iter().find(|(n, _)| *n == kind.as_str());
            let (name, text) = found.unwrap_or_else(|| panic!("no page {kind}"));
            let page = page(name, text, true);
            assert!(page.findings.iter().any(|f| f == kind.as_str()), "{name}");
            assert!(!page.title.is_empty(), "{name}");
            assert!(page.text.unwrap_or_default().starts_with("# "), "{name}");
        }
    }
}
