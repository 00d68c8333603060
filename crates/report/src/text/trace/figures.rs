//! What was read, in numbers; the transport, the records and the chains apart from each other.

use super::super::page::Page;
use super::super::style::Role;
use super::super::table::{Column, Table};
use super::super::words::{count, several};
use crate::{AsyncProfile, TraceReport};

pub(super) fn section(page: &mut Page<'_>, report: &TraceReport) {
    page.heading("Figures", "");
    container(page, report);
    let Some(profile) = &report.async_profile else {
        providers(page, report);
        return;
    };
    let batches = [
        Some(match profile.batches {
            1 => "1 batch".to_owned(),
            n => format!("{} batches", count(n)),
        }),
        Some(several(profile.records, "record")),
        Some(several(profile.contexts.len() as u64, "thread")),
        (profile.rejected > 0).then(|| format!("{} rejected", count(profile.rejected))),
        (profile.leftover_batches > 0)
            .then(|| format!("{} of an earlier session", count(profile.leftover_batches))),
    ];
    line(
        page,
        "async",
        &batches.into_iter().flatten().collect::<Vec<_>>(),
    );
    rejections(page, profile);
    chains(page, profile);
    names(page, report, profile);
    checks(page, profile);
    if page.verbose() {
        providers(page, report);
        kinds(page, profile);
        contexts(page, profile);
    }
}

fn line(page: &mut Page<'_>, title: &str, parts: &[String]) {
    if parts.is_empty() {
        return;
    }
    let spans = [
        page.span(Role::Dim, format!("{title:<14}")),
        page.span(Role::Plain, parts.join(", ")),
    ];
    page.line("  ", "                ", &spans);
}

fn container(page: &mut Page<'_>, report: &TraceReport) {
    let container = &report.container;
    let parts = [
        Some(format!("version {}", container.trace_version)),
        Some(several(container.events, "event")),
        Some(format!("{} lost", count(container.lost_events))),
        Some(if container.end_tag {
            "ends as it should".to_owned()
        } else {
            "no mark of the end".to_owned()
        }),
        container.cut.clone(),
    ];
    line(
        page,
        "container",
        &parts.into_iter().flatten().collect::<Vec<_>>(),
    );
    for damage in &container.damages {
        let text = format!(
            "skipped {} bytes at 0x{:x}: {}",
            count(damage.bytes),
            damage.offset.0,
            damage.what
        );
        line(page, "", &[text]);
    }
}

fn providers(page: &mut Page<'_>, report: &TraceReport) {
    let all = report.events_by_provider.iter();
    let parts: Vec<String> = all
        .map(|(name, n)| format!("{name} {}", count(*n)))
        .collect();
    line(page, "providers", &parts);
}

/// Batches that were not believed, by reason.
fn rejections(page: &mut Page<'_>, profile: &AsyncProfile) {
    for rejection in &profile.rejections {
        let record = rejection
            .record
            .map(|n| format!(", record {n}"))
            .unwrap_or_default();
        let text = format!(
            "batch 0x{:x}{record}, at 0x{:x}: {}",
            rejection.batch.0, rejection.at.0, rejection.reason
        );
        line(page, "", &[text]);
    }
}

fn chains(page: &mut Page<'_>, profile: &AsyncProfile) {
    for (family, counts) in &profile.dispatchers {
        let title = match family.as_str() {
            "RA" => "runtime-async",
            _ => "classic",
        };
        let mut parts = vec![format!("{} named", several(counts.total, "dispatcher"))];
        parts.push(format!("{} created", count(counts.created)));
        let states = counts.states.iter();
        parts.extend(states.map(|(state, n)| format!("{} {state}", count(*n))));
        if counts.more_than_one_thread > 0 {
            let n = count(counts.more_than_one_thread);
            parts.push(format!("{n} on more than one thread"));
        }
        line(page, title, &parts);
    }
    let all = profile.activations.iter();
    let parts: Vec<String> = all.map(|(how, n)| format!("{} {how}", count(*n))).collect();
    line(page, "activations", &parts);
}

fn names(page: &mut Page<'_>, report: &TraceReport, profile: &AsyncProfile) {
    let stacks = &profile.callstacks;
    let mut parts = vec![
        several(stacks.total, "call stack"),
        format!("up to {}", several(stacks.max_frames, "frame")),
    ];
    let word = |key: &str| match key {
        "resolved_one" => "with one name",
        "resolved_many" => "with several names",
        "unresolved_zero" => "awaited tasks (0x0)",
        _ => "without a name",
    };
    let frames = profile.frames.iter();
    parts.extend(frames.map(|(key, n)| format!("{} {}", count(*n), word(key))));
    line(page, "frames", &parts);
    let methods = &report.methods;
    let parts = [
        several(methods.distinct_ranges, "code range"),
        format!("{} events while it ran", count(methods.live)),
        format!("{} of rundown", count(methods.rundown)),
    ];
    line(page, "methods", &parts);
}

/// What the recording confirms of itself.
fn checks(page: &mut Page<'_>, profile: &AsyncProfile) {
    let failed = profile.identities_failed.values().copied();
    let failed = failed.fold(0, u64::saturating_add);
    let mut parts = vec![
        format!("{} held", several(profile.identities_ok, "check")),
        format!("{} failed", count(failed)),
    ];
    if profile.orphans > 0 {
        parts.push(several(profile.orphans, "record") + " without a chain that they could mean");
    }
    line(page, "checks", &parts);
    for (rule, n) in &profile.identities_failed {
        let first = profile.breaches.iter().find(|b| b.identity == *rule);
        let at = first
            .and_then(|b| b.record)
            .map(|r| format!(", first at record {} of batch 0x{:x}", r.index, r.batch.0));
        let text = format!("{rule}: {}{}", count(*n), at.unwrap_or_default());
        line(page, "", &[text]);
    }
}

fn kinds(page: &mut Page<'_>, profile: &AsyncProfile) {
    page.blank();
    let mut table = Table::new(vec![Column::right("count"), Column::left("record")]);
    for (kind, n) in &profile.by_kind {
        table.row(vec![count(*n), kind.clone()]);
    }
    table.write(page, "  ");
}

fn contexts(page: &mut Page<'_>, profile: &AsyncProfile) {
    page.blank();
    let mut table = Table::new(vec![
        Column::right("context"),
        Column::right("thread"),
        Column::right("batches"),
        Column::right("records"),
    ]);
    let shown = page.options.cap(profile.contexts.len());
    for (id, context) in profile.contexts.iter().take(shown) {
        table.row(vec![
            id.to_string(),
            context.os_thread.to_string(),
            count(context.batches),
            count(context.records),
        ]);
    }
    table.write(page, "  ");
    let hidden = profile.contexts.len().saturating_sub(shown);
    if hidden > 0 {
        let text = format!(
            "{} not shown: --all",
            several(hidden as u64, "more context")
        );
        let spans = [page.span(Role::Dim, text)];
        page.line("  ", "  ", &spans);
    }
}
