//! A recording: first what had not ended and how far that can be relied on, then the figures.

mod chains;
mod figures;
mod join;
mod others;
mod record;

pub use record::trace_record;

use super::TextOptions;
use super::page::Page;
use super::style::Role;
use super::words::{bytes, count, duration, several, verb};
use crate::{FrameKind, TraceChain, TraceReport, TraceVerdict};

/// The report of a recording as text; ends with a newline.
#[must_use]
pub fn trace(report: &TraceReport, options: &TextOptions) -> String {
    let mut page = Page::new(options);
    header(&mut page, report);
    summary(&mut page, report);
    completeness(&mut page, report);
    if let Some(join) = &report.join {
        join::section(&mut page, join);
    }
    chains::section(&mut page, report);
    if let Some(tpl) = &report.tpl {
        others::tpl(&mut page, tpl);
    }
    if let Some(markers) = &report.markers {
        others::markers(&mut page, markers);
    }
    figures::section(&mut page, report);
    limits(&mut page, report);
    page.finish()
}

/// The file, the process, the time.
fn header(page: &mut Page<'_>, report: &TraceReport) {
    let file = if report.file.is_empty() {
        "a recording"
    } else {
        &report.file
    };
    let about = format!("  nettrace, {}", bytes(report.bytes));
    let spans = [page.span(Role::Strong, file), page.span(Role::Dim, about)];
    page.line("", "  ", &spans);
    let mut about = Vec::new();
    about.extend(report.container.pid.map(|pid| format!("process {pid}")));
    if !report.container.start.is_empty() {
        let lasted = report
            .container
            .seconds
            .map(|s| format!(" for {}", precise(s)));
        let start = &report.container.start;
        about.push(format!(
            "recorded from {start}{}",
            lasted.unwrap_or_default()
        ));
    }
    let spans = [page.span(Role::Dim, about.join("  "))];
    page.line("", "  ", &spans);
    if let Some(hash) = report.sha256.as_ref().filter(|_| page.verbose()) {
        let spans = [page.span(Role::Dim, format!("sha256 {hash}"))];
        page.line("  ", "    ", &spans);
    }
}

/// What waits and what runs at the end, in one sentence.
fn summary(page: &mut Page<'_>, report: &TraceReport) {
    page.blank();
    let of = |passes: fn(&TraceChain) -> bool| {
        let groups = report.chains.iter().filter(|c| passes(c));
        groups.fold((0_u64, 0_u64), |(chains, groups), c| {
            (chains.saturating_add(c.count), groups.saturating_add(1))
        })
    };
    let (waiting, groups) = of(is_waiting);
    let (running, _) = of(is_running);
    let mut parts = vec![match waiting {
        0 => "0 chains wait".to_owned(),
        _ => format!(
            "{} in {} {}",
            several(waiting, "chain"),
            several(groups, "group"),
            verb(waiting, "waits", "wait")
        ),
    }];
    if running > 0 {
        let text = format!("{} {}", count(running), verb(running, "runs", "run"));
        parts.push(text);
    }
    let unknown = of(|c| !is_waiting(c) && !is_running(c)).0;
    if unknown > 0 {
        parts.push(format!("of {} it is not known", count(unknown)));
    }
    let tpl = report.tpl.as_ref().filter(|tpl| tpl.pending_waits > 0);
    let text = match (report.verdict, tpl) {
        (TraceVerdict::Empty | TraceVerdict::MetadataOnly, Some(tpl)) => format!(
            "At the end of the recording {} had not ended, by the events of the task library{}.",
            several(tpl.pending_waits, "wait"),
            match tpl.unproven {
                Some(_) => "; some may have, for events are missing",
                None => "",
            }
        ),
        (TraceVerdict::Empty | TraceVerdict::MetadataOnly, None) => {
            "The recording says nothing about chains.".to_owned()
        }
        _ => format!("At the end of the recording {}.", parts.join("; ")),
    };
    let spans = [page.span(Role::Strong, text)];
    page.line("", "", &spans);
}

fn is_waiting(chain: &TraceChain) -> bool {
    chain.state.starts_with("suspended")
}

fn is_running(chain: &TraceChain) -> bool {
    chain.state == "running"
}

/// The verdict, each flag with what to do, and the horizon.
fn completeness(page: &mut Page<'_>, report: &TraceReport) {
    page.blank();
    let (verdict, complete) = (report.verdict, &report.completeness);
    let role = match verdict {
        TraceVerdict::Bounded => Role::Good,
        TraceVerdict::Partial => Role::Warning,
        TraceVerdict::Empty | TraceVerdict::MetadataOnly => Role::Critical,
    };
    let spans = [
        page.span(role, verdict.as_str()),
        page.span(Role::Plain, format!("  {}", complete.text)),
    ];
    page.line("", "  ", &spans);
    if let Some(remedy) = &complete.remedy {
        step(page, remedy);
    }
    if let Some(horizon) = &complete.horizon {
        let mut text = horizon
            .time
            .clone()
            .unwrap_or_else(|| format!("tick {}", horizon.ticks));
        if let Some(seconds) = horizon.seconds_before_end.filter(|s| *s > 0.0) {
            text.push_str(&format!(", {} before the end", precise(seconds)));
        }
        let spans = [
            page.span(Role::Plain, format!("horizon {text}")),
            page.span(Role::Dim, format!("  ({})", horizon.why)),
        ];
        page.line("  ", "    ", &spans);
    }
    for flag in &complete.flags {
        let times = if flag.count > 1 {
            format!(" ×{}", count(flag.count))
        } else {
            String::new()
        };
        let spans = [
            page.span(Role::Kind, format!("{}{times}", flag.id)),
            page.span(Role::Plain, format!("  {}", flag.text)),
        ];
        page.line("  ", "    ", &spans);
        step(page, &flag.remedy);
    }
    if verdict != TraceVerdict::Bounded || !complete.flags.is_empty() {
        let spans = [page.span(Role::Dim, "runbook trace")];
        page.line("  ", "    ", &spans);
    }
}

fn step(page: &mut Page<'_>, remedy: &str) {
    let arrow = if page.options.unicode { "→ " } else { "-> " };
    let spans = [page.span(Role::Plain, format!("{arrow}{remedy}"))];
    page.line("    ", "      ", &spans);
}

/// Seconds of a recording, which may be very short.
fn precise(seconds: f64) -> String {
    if seconds >= 1.0 {
        duration(seconds)
    } else if seconds >= 0.001 {
        format!("{:.0} ms", seconds * 1e3)
    } else {
        format!("{:.0} µs", seconds * 1e6)
    }
}

/// What a recording of this kind never shows.
fn limits(page: &mut Page<'_>, report: &TraceReport) {
    if report.does_not_show.is_empty() || report.async_profile.is_none() {
        return;
    }
    page.heading("Not in any recording of this kind", "");
    for text in &report.does_not_show {
        let spans = [page.span(Role::Dim, text)];
        page.line("  ", "    ", &spans);
    }
}

/// `runtime-async`, `state machines`.
fn kind_text(kind: FrameKind) -> &'static str {
    match kind {
        FrameKind::StateMachine => "state machines",
        other => other.as_str(),
    }
}
