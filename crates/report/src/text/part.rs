//! Parts of the report that are asked for on their own.

use super::page::Page;
use super::style::Role;
use super::words::{bytes, count};
use super::{TextOptions, chains, closing, findings, opening, process};
use crate::{ChainGroup, FindingKind, Report};

/// A part of the report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Part {
    /// Every managed thread: what it waits for and holds, and its stack.
    Threads,
    /// The requests that are being served.
    Requests,
    /// The thread pool and what is queued for it.
    Queue,
    /// Locks that threads hold or wait for, and deadlocks over them.
    Locks,
    /// Why the process ended: exceptions, what failed before, the chains around them.
    Crash,
    /// What keeps memory: chains by what they retain, queues, finished methods that are still reachable.
    Oom,
}

/// One part of the report as text, under the same header; ends with a newline.
#[must_use]
pub fn part(report: &Report, part: Part, options: &TextOptions) -> String {
    let mut head = Page::new(options);
    opening::header(&mut head, report);
    let said = Report {
        findings: findings_of(report, part),
        ..report.clone()
    };
    if !said.findings.is_empty() {
        findings::section(&mut head, &said);
    }
    head.blank();
    // whoever asks for a part wants all of it
    let options = TextOptions {
        verbose: options.verbose.max(1),
        fold: options.verbose == 0,
        ..options.clone()
    };
    let mut page = Page::new(&options);
    match part {
        Part::Threads => process::threads(&mut page, report),
        Part::Requests => process::requests(&mut page, report),
        Part::Queue => process::pool(&mut page, report),
        Part::Locks => process::threads(&mut page, &with_locks(report)),
        Part::Crash => crash(&mut page, report, &said),
        Part::Oom => oom(&mut page, report),
    }
    if page.len() == 0 {
        let spans = [page.span(Role::Plain, nothing(part))];
        page.line("", "", &spans);
    }
    closing::gaps(&mut page, &report.gaps);
    head.finish() + &page.finish()
}

fn findings_of(report: &Report, part: Part) -> Vec<crate::Finding> {
    use FindingKind as K;
    let belongs = |kind: FindingKind| match part {
        Part::Threads => matches!(kind, K::ThreadBlockedOnTask | K::UnhandledException),
        Part::Requests => false,
        Part::Crash => matches!(
            kind,
            K::UnhandledException | K::FaultedTasks | K::CancelledTasks | K::CompletedNotCollected
        ),
        Part::Oom => matches!(
            kind,
            K::RetainedByStateMachine | K::CompletedNotCollected | K::QueueDepth | K::ChannelFull
        ),
        Part::Queue => matches!(
            kind,
            K::ThreadpoolStarvation | K::QueueDepth | K::ReadyNotRunning
        ),
        Part::Locks => matches!(
            kind,
            K::LockDeadlock
                | K::LockContention
                | K::MonitorWait
                | K::MixedDeadlock
                | K::SemaphoreExhausted
        ),
    };
    let findings = report.findings.iter().filter(|f| belongs(f.kind));
    findings.cloned().collect()
}

/// The chains that the findings name, and the threads that run the program.
fn crash(page: &mut Page<'_>, report: &Report, said: &Report) {
    let named = |group: &&ChainGroup| said.findings.iter().any(|f| f.chains.contains(&group.id));
    for group in report.chains.iter().filter(named) {
        page.blank();
        chains::one(page, group);
    }
    let mut busy = report.clone();
    busy.threads
        .retain(|t| t.runs.is_some() || t.waits_on.is_some());
    process::threads(page, &busy);
}

/// The chains that keep memory alive, the most first, and the heap.
fn oom(page: &mut Page<'_>, report: &Report) {
    let mut keep: Vec<&ChainGroup> = report.chains.iter().collect();
    keep.retain(|g| g.retained_bytes.is_some_and(|b| b > 0));
    keep.sort_by_key(|g| std::cmp::Reverse(g.retained_bytes));
    if !keep.is_empty() {
        page.heading(
            "Chains that keep memory alive",
            "by what lives only because of their variables",
        );
    }
    let shown = page.options.cap(keep.len());
    for group in keep.iter().take(shown) {
        page.blank();
        chains::one(page, group);
    }
    let rest = keep.get(shown..).unwrap_or_default();
    if !rest.is_empty() {
        let kept = rest.iter().filter_map(|g| g.retained_bytes);
        let kept = bytes(kept.fold(0, u64::saturating_add));
        let text = format!(
            "{} more groups keep {kept}: --all",
            count(rest.len() as u64)
        );
        let spans = [page.span(Role::Dim, text)];
        page.line("", "", &spans);
    }
    process::pool(page, report);
    closing::heap(page, report);
}

/// The threads that hold a lock or wait for something that is no task.
fn with_locks(report: &Report) -> Report {
    let mut out = report.clone();
    out.threads
        .retain(|t| !t.holds.is_empty() || (t.waits_on.is_some() && t.chain.is_none()));
    out
}

fn nothing(part: Part) -> &'static str {
    match part {
        Part::Threads => "No managed thread was found.",
        Part::Requests => "No request is being served.",
        Part::Queue => "The thread pool was not found.",
        Part::Locks => "No thread holds or waits for a lock.",
        Part::Crash => {
            "No exception, no failed task and no thread that runs the program was found."
        }
        Part::Oom => "No heap was found.",
    }
}
