//! The first lines: which dump, which runtime, and the answer in one sentence.

use super::page::{Page, Span};
use super::process::sleeps;
use super::style::Role;
use super::words::{bytes, count, several, verb};
use crate::{ChainGroup, CollectionStage, Report, VerdictState};

/// The file and the runtime.
pub(super) fn header(page: &mut Page<'_>, report: &Report) {
    let dump = &report.dump;
    let mut about = vec![dump.format.to_string()];
    about.extend((!dump.kind.is_empty()).then(|| dump.kind.clone()));
    about.extend((dump.bytes > 0).then(|| bytes(dump.bytes)));
    about.extend(dump.truncated.then(|| "TRUNCATED".to_owned()));
    about.extend(dump.fault.as_ref().map(|_| "DAMAGED".to_owned()));
    let floor = if dump.time_is_floor { " or later" } else { "" };
    let time = dump.time.as_ref();
    about.extend(time.map(|time| format!("taken {time}{floor}")));
    let path = if dump.path.is_empty() {
        "a dump"
    } else {
        &dump.path
    };
    let file = vec![
        page.span(Role::Strong, path),
        page.span(Role::Dim, format!("  {}", about.join(", "))),
    ];
    let runtime = runtime(page, report);
    let gap = page.span(Role::Plain, "  ");
    let together: Vec<Span> = [file.clone(), vec![gap], runtime.clone()].concat();
    let width: usize = together
        .iter()
        .map(Span::width)
        .fold(0, usize::saturating_add);
    if width <= page.width() {
        page.line("", "  ", &together);
    } else {
        page.line("", "  ", &file);
        page.line("", "  ", &runtime);
    }
    if let Some(fault) = &dump.fault {
        let spans = [page.span(Role::Warning, format!("{fault}: copy it again."))];
        page.line("  ", "  ", &spans);
    }
    program(page, report);
    if page.verbose() {
        origins(page, report);
    }
}

fn runtime(page: &Page<'_>, report: &Report) -> Vec<Span> {
    let (runtime, dump) = (&report.runtime, &report.dump);
    let version = if runtime.version.is_empty() {
        "of an unknown version"
    } else {
        &runtime.version
    };
    let target: Vec<&str> = [&*runtime.os, &*runtime.arch, &*runtime.flavor]
        .into_iter()
        .filter(|s| !s.is_empty())
        .collect();
    let mut about = format!("  {}", target.join(" "));
    if let Some(id) = dump.process_id {
        about.push_str(&format!("  process {id}"));
    }
    if let Some(command) = &dump.command_line {
        about.push_str(&format!("  {command}"));
    }
    vec![
        page.span(Role::Strong, format!(".NET {version}")),
        page.span(Role::Dim, about),
    ]
}

/// Which program, and where.
fn program(page: &mut Page<'_>, report: &Report) {
    let process = &report.process;
    let Some(name) = process
        .entry_assembly
        .as_ref()
        .or(process.executable.as_ref())
    else {
        return;
    };
    let mut about = String::new();
    if let Some(version) = &process.entry_version {
        about.push_str(&format!(" {version}"));
    }
    match (&process.container, &process.machine) {
        (Some(container), _) => about.push_str(&format!("  in container {container}")),
        (None, Some(machine)) => about.push_str(&format!("  on {machine}")),
        (None, None) => {}
    }
    let spans = [page.span(Role::Strong, name), page.span(Role::Dim, about)];
    page.line("", "  ", &spans);
}

/// With `-v`: how the layouts were found, the hash of the file, who wrote the report.
fn origins(page: &mut Page<'_>, report: &Report) {
    for fact in &report.runtime.layouts {
        let check = fact
            .check
            .as_ref()
            .map(|check| format!("; checked: {check}"))
            .unwrap_or_default();
        let spans = [
            page.span(Role::Plain, format!("{}: ", fact.what)),
            page.span(Role::Dim, format!("{}{check}", fact.how)),
        ];
        page.line("  ", "    ", &spans);
    }
    if let Some(source) = &report.dump.time_source {
        let spans = [
            page.span(Role::Plain, "time: "),
            page.span(Role::Dim, source),
        ];
        page.line("  ", "    ", &spans);
    }
    if let Some(hash) = &report.dump.sha256 {
        let spans = [page.span(Role::Dim, format!("sha256 {hash}"))];
        page.line("  ", "    ", &spans);
    }
    let tool = format!(
        "{} {}, schema {}",
        report.tool.name, report.tool.version, report.schema_version
    );
    let spans = [page.span(Role::Dim, tool)];
    page.line("  ", "    ", &spans);
}

fn all_chains(report: &Report) -> u64 {
    let counts = report.chains.iter().map(|c| c.count);
    counts.fold(0, u64::saturating_add)
}

/// What there is, in one sentence: chains, blocked threads, queued work, requests.
#[must_use]
pub fn headline(report: &Report) -> String {
    let chains = all_chains(report);
    let mut parts = vec![if chains == 0 {
        "0 chains wait".to_owned()
    } else {
        waiting(report, chains)
    }];
    let blocked = report
        .threads
        .iter()
        .filter(|t| t.waits_on.is_some())
        .count() as u64;
    if blocked > 0 {
        parts.push(format!(
            "{} {} blocked",
            several(blocked, "thread"),
            verb(blocked, "is", "are")
        ));
    }
    let asleep = report.threads.iter().filter(|t| sleeps(t)).count() as u64;
    if asleep > 0 {
        let n = asleep;
        let asleep = several(n, "thread");
        parts.push(format!(
            "{asleep} of the program {}",
            verb(n, "sleeps", "sleep")
        ));
    }
    let queued = report.pool.as_ref().map_or(0, |pool| pool.queued.total());
    if queued > 0 {
        parts.push(format!(
            "{} {} for a thread",
            several(queued, "work item"),
            verb(queued, "waits", "wait")
        ));
    }
    let requests = (report.requests.len() as u64).saturating_add(report.left_out.requests);
    if requests > 0 {
        parts.push(format!(
            "{} {} being served",
            several(requests, "request"),
            verb(requests, "is", "are")
        ));
    }
    format!("{}.", parts.join("; "))
}

/// What there is, in one sentence, and what has to be known of it.
pub(super) fn summary(page: &mut Page<'_>, report: &Report) {
    page.blank();
    let spans = [page.span(Role::Strong, headline(report))];
    page.line("", "", &spans);
    if all_chains(report) == 0 {
        nothing(page, report);
    }
    moved(page, report);
}

/// Counts of a dump that was taken while objects were moved are too small.
fn moved(page: &mut Page<'_>, report: &Report) {
    let collection = report.heap.collection.as_ref();
    if collection.is_some_and(|c| c.stage == CollectionStage::Moving) {
        let text = "Taken while a garbage collection moved objects: what is listed is there, but more may be. Take another dump a few seconds later.";
        let spans = [page.span(Role::Warning, text)];
        page.line("", "", &spans);
    }
}

fn waiting(report: &Report, chains: u64) -> String {
    let of = |state| {
        report
            .chains
            .iter()
            .filter(|c| is(c, state))
            .map(|c| c.count)
            .fold(0, u64::saturating_add)
    };
    let notes: Vec<String> = [
        VerdictState::Stuck,
        VerdictState::Progressing,
        VerdictState::Idle,
    ]
    .into_iter()
    .map(|state| (of(state), state))
    .filter(|(n, _)| *n > 0)
    .map(|(n, state)| format!("{} {state}", count(n)))
    .collect();
    let notes = if notes.is_empty() {
        String::new()
    } else {
        format!(" ({})", notes.join(", "))
    };
    let groups = several(report.chains.len() as u64, "group");
    format!(
        "{} in {groups} {}{notes}",
        several(chains, "chain"),
        verb(chains, "waits", "wait")
    )
}

fn is(chain: &ChainGroup, state: VerdictState) -> bool {
    chain.verdict.as_ref().is_some_and(|v| v.state == state)
}

/// An empty answer says why it is empty.
fn nothing(page: &mut Page<'_>, report: &Report) {
    let heap = &report.heap;
    let mut why = vec![format!(
        "No suspended async method was found among {}, {} and {}.",
        several(heap.objects, "object"),
        several(heap.tasks, "task"),
        several(heap.state_machines, "state machine")
    )];
    if report.left_out.groups > 0 {
        let groups = several(report.left_out.groups, "group");
        let chains = several(report.left_out.chains, "chain");
        why = vec![if report.left_out.why.is_empty() {
            format!(
                "Nothing waits but {groups} of {chains} of idle framework parts: --all lists them."
            )
        } else {
            format!("The filters left out {groups} of {chains}.")
        }];
    }
    if !report.gaps.is_empty() {
        why.push("The dump lacks parts that may have held some: see the gaps below.".to_owned());
    }
    let spans = [page.span(Role::Plain, why.join(" "))];
    page.line("", "", &spans);
}
