//! Groups of recorded chains: state in the headline, then each frame outwards, then when and where it was recorded.

use super::super::page::{Page, Span};
use super::super::style::Role;
use super::super::words::{count, several, verb};
use super::{kind_text, precise};
use crate::{
    ChainStanding, TraceChain, TraceFrame, TraceMember, TraceMoment, TraceReport, TraceState,
};

/// Frames of one chain above which its middle is folded without `-v`.
const MANY_FRAMES: usize = 40;
/// Frames that stay at either end of a folded chain.
const ENDS: usize = 12;
/// Dispatchers named without `-v`.
const FEW: usize = 3;

pub(super) fn section(page: &mut Page<'_>, report: &TraceReport) {
    if report.chains.is_empty() {
        return;
    }
    page.heading(
        "Chains",
        "not ended when the recording did; each from its innermost wait outwards",
    );
    let shown = page.options.cap(report.chains.len());
    for chain in report.chains.iter().take(shown) {
        page.blank();
        one(page, chain);
    }
    let rest = report.chains.get(shown..).unwrap_or_default();
    if !rest.is_empty() {
        let chains = rest.iter().map(|c| c.count).fold(0, u64::saturating_add);
        page.blank();
        let more = format!(
            "{} of {} not shown: --all",
            several(rest.len() as u64, "more group"),
            several(chains, "chain")
        );
        let spans = [page.span(Role::Dim, more)];
        page.line("", "", &spans);
    }
}

fn one(page: &mut Page<'_>, chain: &TraceChain) {
    let state = match (chain.standing, chain.state) {
        (ChainStanding::Unknown, state) => format!("last seen {state}; may have gone on since"),
        (ChainStanding::Likely, TraceState::Running) => {
            format!("likely {}", verb(chain.count, "runs", "run"))
        }
        (ChainStanding::Likely, _) => format!("likely {}", verb(chain.count, "waits", "wait")),
        (_, TraceState::SuspendedAtCreate) => {
            format!(
                "{} and {} not resumed since",
                verb(chain.count, "waits", "wait"),
                verb(chain.count, "was", "were")
            )
        }
        (_, TraceState::Suspended) => verb(chain.count, "waits", "wait").to_owned(),
        (_, TraceState::Running) => verb(chain.count, "runs", "run").to_owned(),
        (_, other) => other.as_str().to_owned(),
    };
    let spans = [
        page.span(Role::Dim, format!("{:<3} ", chain.id)),
        page.span(
            Role::Strong,
            format!("{} {state}", several(chain.count, "chain")),
        ),
        page.span(Role::Kind, format!("  {}", kind_text(chain.kind))),
    ];
    page.line("", "    ", &spans);
    since(page, chain);
    match &chain.frames {
        Some(frames) => list(page, frames),
        None => {
            let why = chain.no_frames.as_deref().unwrap_or("frames unknown");
            let spans = [page.span(Role::Dim, format!("frames not recorded: {why}"))];
            page.line("    ", "    ", &spans);
        }
    }
    members(page, chain);
}

fn since(page: &mut Page<'_>, chain: &TraceChain) {
    let mut spans = Vec::new();
    if let Some(waiting) = &chain.waiting_seconds {
        let (min, max) = (precise(waiting.min), precise(waiting.max));
        let range = if min == max {
            format!("for {max}")
        } else {
            format!("for {min} to {max}")
        };
        spans.push(page.span(Role::Plain, range));
        spans.push(page.span(Role::Dim, format!(" ({})  ", waiting.how)));
    }
    if let Some(time) = &chain.first_seen {
        spans.push(page.span(Role::Dim, format!("since {time}")));
    }
    page.line("    ", "    ", &spans);
}

fn list(page: &mut Page<'_>, frames: &[TraceFrame]) {
    let folded = !page.verbose() && frames.len() > MANY_FRAMES;
    let ends = if folded { ENDS } else { frames.len() };
    let runs = runs_of(frames);
    let hidden = runs.len().saturating_sub(ends.saturating_mul(2));
    for (index, (one, times)) in runs.iter().enumerate() {
        if folded && hidden > 0 && index == ends {
            let text = format!("… {} not shown: -v", several(hidden as u64, "frame"));
            let spans = [page.span(Role::Dim, text)];
            page.line("    │ ", "    │   ", &spans);
        }
        let is_hidden = folded && index >= ends && index < ends.saturating_add(hidden);
        if !is_hidden {
            frame(page, one, *times);
        }
    }
}

/// Frames that follow themselves, once with how often.
fn runs_of(frames: &[TraceFrame]) -> Vec<(&TraceFrame, u64)> {
    let mut runs: Vec<(&TraceFrame, u64)> = Vec::new();
    for frame in frames {
        match runs.last_mut() {
            Some((last, times))
                if last.method == frame.method && last.progress == frame.progress =>
            {
                *times = times.saturating_add(1);
            }
            _ => runs.push((frame, 1)),
        }
    }
    runs
}

fn frame(page: &mut Page<'_>, frame: &TraceFrame, times: u64) {
    let role = if frame.is_framework {
        Role::Dim
    } else {
        Role::Plain
    };
    let mut notes = Vec::new();
    notes.extend(frame.await_index.map(|n| format!("await {n}")));
    notes.extend((times > 1).then(|| format!("×{}", count(times))));
    notes.extend(frame.progress.clone());
    notes.extend(frame.from_dump.then(|| "name of the dump".to_owned()));
    if page.verbose() {
        notes.push(frame.address.to_string());
        notes.extend((frame.raw != frame.method).then(|| frame.raw.clone()));
        notes.extend(frame.unresolved.clone());
    }
    let notes = if notes.is_empty() {
        String::new()
    } else {
        format!("  {}", notes.join("  "))
    };
    let spans = [page.span(role, &frame.method), page.span(Role::Dim, notes)];
    page.line("    │ ", "    │   ", &spans);
}

/// The oldest one with its times and threads, the others by their numbers; all of them with `-v`.
fn members(page: &mut Page<'_>, chain: &TraceChain) {
    if page.verbose() {
        for member in &chain.members {
            let spans = story(page, member);
            page.line("    ", "      ", &spans);
        }
    } else if let Some(oldest) = chain.members.first() {
        let spans = story(page, oldest);
        page.line("    ", "      ", &spans);
        let others = chain.members.iter().skip(1).take(FEW);
        let mut names: Vec<String> = others.map(|m| count(m.dispatcher)).collect();
        let named = names.len().saturating_add(1) as u64;
        let left = chain.count.saturating_sub(named);
        names.extend((left > 0).then(|| format!("{} more", count(left))));
        if !names.is_empty() {
            let text = format!("and {}", names.join(", "));
            let spans = [page.span(Role::Dim, text)];
            page.line("    ", "      ", &spans);
        }
    }
}

/// `dispatcher 7 (of 3)  created 12:00:01.500 on thread 12, resumed 4 times, last ...`.
pub(super) fn story(page: &Page<'_>, member: &TraceMember) -> Vec<Span> {
    let mut parts = Vec::new();
    let mut add = |what: &str, moment: &Option<TraceMoment>| {
        parts.extend(
            moment
                .as_ref()
                .map(|m| format!("{what} {}", place(page, m))),
        );
    };
    add("created", &member.created);
    let resumed = match member.resumes {
        0 | 1 => "resumed".to_owned(),
        n => format!("resumed {} times, last", count(n)),
    };
    add(&resumed, &member.resumed);
    add("suspended", &member.suspended);
    let parent = if member.parent == 0 {
        String::new()
    } else {
        format!(" of {}", member.parent)
    };
    let name = format!("dispatcher {}{parent}  ", member.dispatcher);
    vec![page.span(Role::Dim, name + &parts.join(", "))]
}

/// The time of day and the thread; the record as well with `-v`.
fn place(page: &Page<'_>, moment: &TraceMoment) -> String {
    let time = moment.time.as_deref().map_or_else(
        || format!("tick {}", moment.ticks),
        |t| {
            let day = t.split_once('T').map_or(t, |(_, time)| time);
            day.trim_end_matches('Z').to_owned()
        },
    );
    let record = if page.verbose() {
        let record = moment.record;
        format!(" (record {} of batch 0x{:x})", record.index, record.batch.0)
    } else {
        String::new()
    };
    format!("{time} on thread {}{record}", moment.os_thread)
}
