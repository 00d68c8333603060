//! Markers of the application and waits of the task library, apart from the async profiler's chains.

use super::super::page::Page;
use super::super::style::Role;
use super::super::words::{count, several, verb};
use super::precise;
use crate::{MarkerCheck, MarkerGroup, MarkerReport, TplChain, TplReport};

/// Operations of the application: how many are in order, and the first that are not.
pub(super) fn markers(page: &mut Page<'_>, report: &MarkerReport, check: &MarkerCheck) {
    page.heading(
        "Markers",
        "the application's own names of operations, not joined with any chain",
    );
    // reports of before have no check
    if check.seen.is_empty() && report.events == 0 {
        let text = format!("no event of {}", check.provider);
        page.line("  ", "    ", &[page.span(Role::Critical, text)]);
        let text = format!("the recording has {}", check.providers.join(", "));
        page.line("  ", "    ", &[page.span(Role::Plain, text)]);
        return;
    }
    if !check.absent_events.is_empty() {
        let text = format!("no event {}", check.absent_events.join(", "));
        page.line("  ", "    ", &[page.span(Role::Critical, text)]);
        let seen = check
            .seen
            .iter()
            .map(|(name, n)| format!("{name} ({})", count(*n)));
        let text = format!(
            "{} has {}",
            check.provider,
            seen.collect::<Vec<_>>().join(", ")
        );
        page.line("  ", "    ", &[page.span(Role::Plain, text)]);
    }
    let disordered = report.groups.saturating_sub(report.ordered);
    let mut parts = vec![format!(
        "{} of {} in order",
        count(report.ordered),
        several(report.groups, "operation")
    )];
    parts.push(several(report.events, "event"));
    parts.push(format!(
        "{} on more than one thread",
        count(report.more_than_one_thread)
    ));
    if report.without_key > 0 {
        parts.push(format!(
            "{} without an operation",
            several(report.without_key, "event")
        ));
    }
    if report.dropped > 0 {
        parts.push(format!(
            "{} above the limit",
            several(report.dropped, "event")
        ));
    }
    let role = if disordered == 0 && report.groups > 0 {
        Role::Good
    } else {
        Role::Warning
    };
    let spans = [page.span(role, parts.join(", "))];
    page.line("  ", "    ", &spans);
    if let Some(expected) = &check.expected {
        let text = format!("expected: {}", expected.join(" "));
        page.line("  ", "    ", &[page.span(Role::Plain, text)]);
    }
    if check.sequences.len() > 1 {
        for sequence in &check.sequences {
            let operations = several(sequence.count, "operation");
            let text = format!("{operations}: {}", sequence.stages.join(" "));
            page.line("  ", "    ", &[page.span(Role::Dim, text)]);
        }
    }
    for group in &report.out_of_order {
        disorder(page, group);
    }
}

fn disorder(page: &mut Page<'_>, group: &MarkerGroup) {
    let stages: Vec<&str> = group.markers.iter().map(|m| m.stage.as_str()).collect();
    let spans = [
        page.span(
            Role::Plain,
            format!("operation {}: {}  ", group.key, group.why),
        ),
        page.span(Role::Dim, stages.join(" ")),
    ];
    page.line("  ", "    ", &spans);
}

/// Waits before .NET 11.
pub(super) fn tpl(page: &mut Page<'_>, report: &TplReport) {
    page.heading(
        "Waits of tasks",
        "from the events of the task library; each from the awaited task outwards",
    );
    let text = format!(
        "{}, {} ended, {} pending",
        several(report.operations, "operation"),
        count(report.ended),
        several(report.pending_waits, "wait")
    );
    let spans = [page.span(Role::Plain, text)];
    page.line("  ", "    ", &spans);
    if let Some(why) = &report.unproven {
        let text = format!("not proved: {why}");
        page.line("  ", "    ", &[page.span(Role::Warning, text)]);
    }
    if report.without_wait > 0 {
        let text = format!(
            "{} neither ended nor {} for a task: running, or queued as after Task.Yield",
            several(report.without_wait, "operation"),
            verb(report.without_wait, "waits", "wait")
        );
        let spans = [page.span(Role::Dim, text)];
        page.line("  ", "    ", &spans);
    }
    let all = &report.pending_chains_leaf_first;
    let shown = page.options.cap(all.len());
    for chain in all.iter().take(shown) {
        page.blank();
        wait(page, chain);
    }
    let hidden = (all.len().saturating_sub(shown) as u64).saturating_add(report.chains_left_out);
    if hidden > 0 {
        let spans = [page.span(Role::Dim, format!("{} more not shown", count(hidden)))];
        page.line("  ", "  ", &spans);
    }
}

fn wait(page: &mut Page<'_>, chain: &TplChain) {
    let mut text = format!(
        "{} {}",
        several(chain.count, "chain"),
        verb(chain.count, "waits", "wait")
    );
    if chain.cycle {
        text.push_str(" for each other in a circle");
    }
    let lasted = chain
        .longest_seconds
        .map(|s| format!("  for up to {}", precise(s)));
    let since = chain.first_seen.as_ref().map(|t| format!("  since {t}"));
    let spans = [
        page.span(Role::Strong, text),
        page.span(Role::Plain, lasted.unwrap_or_default()),
        page.span(Role::Dim, since.unwrap_or_default()),
    ];
    page.line("  ", "    ", &spans);
    // of older reports
    let names = if chain.methods.is_empty() {
        &chain.names
    } else {
        &chain.methods
    };
    for name in names {
        let spans = [page.span(Role::Plain, name)];
        page.line("    │ ", "    │   ", &spans);
    }
    if chain.names_left_out > 0 {
        let text = format!("… {} more", count(chain.names_left_out));
        let spans = [page.span(Role::Dim, text)];
        page.line("    │ ", "    │   ", &spans);
    }
    let leaves: Vec<String> = chain.leaves.iter().map(ToString::to_string).collect();
    if !leaves.is_empty() {
        let spans = [page.span(Role::Dim, format!("tasks {}", leaves.join(", ")))];
        page.line("    ", "      ", &spans);
    }
}
