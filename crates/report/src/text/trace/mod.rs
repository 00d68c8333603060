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
use crate::{
    ChainStanding, FrameKind, TraceChain, TraceHorizon, TraceReport, TraceState, TraceVerdict,
};

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
        let check = report.marker_check.clone().unwrap_or_default();
        others::markers(&mut page, markers, &check);
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

/// What waits and what runs, in one sentence, and what the recording cannot show.
fn summary(page: &mut Page<'_>, report: &TraceReport) {
    page.blank();
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
        _ => headline(report),
    };
    let spans = [page.span(Role::Strong, text)];
    page.line("", "", &spans);
    if report.completeness.attached == Some(true) {
        let text = "The process ran before the recording began. Chains that have waited since before are not in it, however many \
                    there are: take a dump, which has them (runbook capture).";
        let spans = [page.span(Role::Warning, text)];
        page.line("", "", &spans);
    }
}

/// `At the horizon 5 chains in 1 group wait; 2 run; of 3,878 more it is not known.`
fn headline(report: &TraceReport) -> String {
    let of = |standing: ChainStanding, passes: fn(&TraceChain) -> bool| {
        let groups = report
            .chains
            .iter()
            .filter(|c| c.standing == standing && passes(c));
        groups.fold((0_u64, 0_u64), |(chains, groups), c| {
            (chains.saturating_add(c.count), groups.saturating_add(1))
        })
    };
    let some =
        |n: u64, groups: u64| format!("{} in {}", several(n, "chain"), several(groups, "group"));
    let (waiting, groups) = of(ChainStanding::Proved, is_waiting);
    let (running, _) = of(ChainStanding::Proved, is_running);
    let proves = report.completeness.horizon.is_some();
    let mut parts = Vec::new();
    if waiting > 0 {
        parts.push(format!(
            "{} {}",
            some(waiting, groups),
            verb(waiting, "waits", "wait")
        ));
    } else if proves {
        parts.push("0 chains wait".to_owned());
    }
    if running > 0 {
        let what = if waiting > 0 {
            count(running)
        } else {
            several(running, "chain")
        };
        parts.push(format!("{what} {}", verb(running, "runs", "run")));
    }
    let (likely, groups) = of(ChainStanding::Likely, is_waiting);
    if likely > 0 {
        let text = format!(
            "{} likely {}",
            some(likely, groups),
            verb(likely, "waits", "wait")
        );
        parts.push(text);
    }
    let (likely, _) = of(ChainStanding::Likely, is_running);
    if likely > 0 {
        let text = format!(
            "{} likely {}",
            several(likely, "chain"),
            verb(likely, "runs", "run")
        );
        parts.push(text);
    }
    let unknown = of(ChainStanding::Unknown, |_| true).0;
    if unknown > 0 {
        let more = if parts.is_empty() {
            "chain"
        } else {
            "more chain"
        };
        let text = format!(
            "of {} it is not known whether they went on",
            several(unknown, more)
        );
        parts.push(text);
    }
    match (proves, parts.is_empty()) {
        (_, true) => "No chain was left open, as far as the recording goes.".to_owned(),
        (true, false) => format!("At the horizon {}.", parts.join("; ")),
        (false, false) => format!("Nothing is proved: {}.", parts.join("; ")),
    }
}

fn is_waiting(chain: &TraceChain) -> bool {
    chain.state.is_suspended()
}

fn is_running(chain: &TraceChain) -> bool {
    chain.state == TraceState::Running
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
        reach(page, "horizon", horizon);
    }
    // beside what is proved it says something only of chains
    let is_likely = |c: &TraceChain| c.standing == ChainStanding::Likely;
    let likely = complete.likely_horizon.as_ref();
    let says = complete.horizon.is_none() || report.chains.iter().any(is_likely);
    if let Some(horizon) = likely.filter(|_| says) {
        reach(page, "likely up to", horizon);
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

fn reach(page: &mut Page<'_>, name: &str, horizon: &TraceHorizon) {
    let mut text = horizon
        .time
        .clone()
        .unwrap_or_else(|| format!("tick {}", horizon.ticks));
    if let Some(seconds) = horizon.seconds_before_end.filter(|s| *s > 0.0) {
        text.push_str(&format!(", {} before the end", precise(seconds)));
    }
    let why = match &horizon.ended_by {
        Some(ended_by) => format!("  ({ended_by} behind it)"),
        None => format!("  ({})", horizon.why),
    };
    let spans = [
        page.span(Role::Plain, format!("{name} {text}")),
        page.span(Role::Dim, why),
    ];
    page.line("  ", "    ", &spans);
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
