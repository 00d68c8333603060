//! Parts of the report that are asked for on their own.

use super::page::Page;
use super::style::Role;
use super::{TextOptions, closing, findings, opening, process};
use crate::{FindingKind, Report};

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
        ..options.clone()
    };
    let mut page = Page::new(&options);
    match part {
        Part::Threads => process::threads(&mut page, report),
        Part::Requests => process::requests(&mut page, report),
        Part::Queue => process::pool(&mut page, report),
        Part::Locks => process::threads(&mut page, &with_locks(report)),
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
    }
}
