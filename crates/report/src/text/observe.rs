//! What recording a program costs, as text.

use super::page::Page;
use super::style::Role;
use super::table::{Column, Table};
use super::words::{bytes, count, several};
use super::{TextOptions, closing};
use crate::{ObserveComparison, ObserveMode, ObserveReport, ObserveTimer, ObserveVerdict};

/// What no run of the experiment can show.
const LIMITS: [&str; 3] = [
    "These are times of this command on this machine, from the start of fresh processes; a service that runs for days, \
     another load or another machine is another experiment.",
    "Attaching, the end of the recording and whatever the program does outside its timer are not in the times.",
    "The size of a file is no measure of time or memory: events wait in buffers, and the last ones of each thread are \
     only in it when the program asks for them before it ends.",
];

/// What recording a program costs, as text.
#[must_use]
pub fn observe(report: &ObserveReport, options: &TextOptions) -> String {
    let mut page = Page::new(options);
    header(&mut page, report);
    modes(&mut page, report);
    page.heading("What follows", "");
    result(&mut page, report);
    for comparison in &report.comparisons {
        let role = match comparison.verdict {
            ObserveVerdict::Slower | ObserveVerdict::Faster => Role::Strong,
            _ => Role::Plain,
        };
        let spans = [page.span(role, sentence(report, comparison))];
        page.line("", "  ", &spans);
    }
    page.heading("What does not", "");
    for limit in LIMITS {
        let spans = [page.span(Role::Dim, limit)];
        page.line("", "  ", &spans);
    }
    closing::gaps(&mut page, &report.gaps);
    page.finish()
}

fn header(page: &mut Page<'_>, report: &ObserveReport) {
    let spans = [page.span(Role::Strong, report.command.join(" "))];
    page.line("", "  ", &spans);
    let mut parts = Vec::new();
    if !report.runtime.is_empty() {
        parts.push(format!(".NET {}", report.runtime));
    }
    parts.push(format!("{} {}", report.os, report.arch).trim().to_owned());
    if report.processors > 0 {
        parts.push(several(report.processors, "processor"));
    }
    parts.push(format!(
        "{} in an order by chance (seed {}), after one that does not count",
        several(report.rounds, "round"),
        report.seed
    ));
    parts.push(match &report.timer {
        ObserveTimer::Program(name) => format!("times: {name} of the program"),
        ObserveTimer::Outside => {
            "times: from the outside, start and end of the process included".into()
        }
    });
    parts.retain(|p| !p.is_empty());
    let spans = [page.span(Role::Dim, parts.join("; "))];
    page.line("", "  ", &spans);
    page.blank();
}

fn modes(page: &mut Page<'_>, report: &ObserveReport) {
    let mut table = Table::new(vec![
        Column::left("mode"),
        Column::right("median ms"),
        Column::left("min to max"),
        Column::right("runs"),
        Column::left("file"),
        Column::left("recorded"),
    ]);
    for mode in &report.modes {
        table.row(vec![
            mode.name.clone(),
            mode.median.map(milliseconds).unwrap_or_default(),
            range(mode),
            mode.milliseconds.len().to_string(),
            sizes(&mode.bytes),
            recorded(mode),
        ]);
    }
    table.write(page, "");
    for mode in report.modes.iter().filter(|m| !m.providers.is_empty()) {
        let text = format!("{} records {}", mode.name, mode.providers.join(", "));
        let spans = [page.span(Role::Dim, text)];
        page.line("", "  ", &spans);
    }
}

/// `1,805 records, 0 lost, BOUNDED`.
fn recorded(mode: &ObserveMode) -> String {
    let span = |all: &[u64]| match (all.iter().min(), all.iter().max()) {
        (Some(min), Some(max)) if min == max => count(*min),
        (Some(min), Some(max)) => format!("{} to {}", count(*min), count(*max)),
        _ => String::new(),
    };
    if mode.events.is_empty() {
        return String::new();
    }
    let what = if mode.records.is_empty() {
        format!("{} events", span(&mode.events))
    } else {
        format!("{} records", span(&mode.records))
    };
    let lost = mode
        .lost_events
        .iter()
        .fold(0_u64, |sum, n| sum.saturating_add(*n));
    let mut parts = vec![what, format!("{} lost", count(lost))];
    let verdicts = mode
        .verdicts
        .iter()
        .map(|(verdict, runs)| match mode.verdicts.len() {
            1 => verdict.clone(),
            _ => format!("{runs} {verdict}"),
        });
    parts.extend(verdicts);
    parts.join(", ")
}

fn milliseconds(value: f64) -> String {
    format!("{value:.2}")
}

fn range(mode: &ObserveMode) -> String {
    match (mode.min, mode.max) {
        (Some(min), Some(max)) => format!("{min:.2} to {max:.2}"),
        _ => String::new(),
    }
}

fn sizes(all: &[u64]) -> String {
    match (all.iter().min(), all.iter().max()) {
        (Some(min), Some(max)) if bytes(*min) == bytes(*max) => bytes(*min),
        (Some(min), Some(max)) => format!("{} to {}", bytes(*min), bytes(*max)),
        _ => String::new(),
    }
}

fn result(page: &mut Page<'_>, report: &ObserveReport) {
    let result = &report.result;
    let what = if result.of == "stdout" {
        "output"
    } else {
        &result.of
    };
    let (role, text) = match result.values.as_slice() {
        [] => (Role::Warning, "No run has a result.".to_owned()),
        [only] if result.same => (
            Role::Good,
            format!(
                "The {what} is the same in all {}: {}.",
                several(only.runs, "run"),
                only.value
            ),
        ),
        all => {
            let values: Vec<String> = all
                .iter()
                .map(|v| format!("{} in {}", v.value, several(v.runs, "run")))
                .collect();
            (
                Role::Critical,
                format!("The {what} differs: {}.", values.join(", ")),
            )
        }
    };
    let spans = [page.span(role, text)];
    page.line("", "  ", &spans);
}

fn sentence(report: &ObserveReport, comparison: &ObserveComparison) -> String {
    let ObserveComparison { from, to, .. } = comparison;
    let ranges = || {
        let of = |name: &String| report.modes.iter().find(|m| m.name == *name);
        let range = |name| of(name).map(range).unwrap_or_default();
        format!("{} and {} ms", range(from), range(to))
    };
    let p = comparison.probability.unwrap_or(1.0);
    match comparison.verdict {
        ObserveVerdict::NotComparable => {
            format!("{from} and {to}: these are not times of the same work; nothing follows.")
        }
        ObserveVerdict::NotRecorded => format!(
            "{from} and {to}: recordings of {to} hold no chain, so that what recording them costs does not follow."
        ),
        ObserveVerdict::NoneShown => format!(
            "{from} and {to}: no difference is shown ({}; ranks as unequal come up {} without one), and no percentage.",
            ranges(),
            often(p)
        ),
        ObserveVerdict::TooFew => format!(
            "{from} and {to}: so few runs cannot show a difference ({}); run 5 rounds or more.",
            ranges()
        ),
        ObserveVerdict::Slower | ObserveVerdict::Faster => {
            let word = if comparison.verdict == ObserveVerdict::Slower {
                "longer"
            } else {
                "less time"
            };
            let ratio = comparison.ratio.map_or_else(String::new, |r| {
                format!("; the median of {to} is {r:.2} times that of {from}")
            });
            format!(
                "{from} and {to}: runs of {to} took {word} ({}){ratio}. Without any difference ranks as unequal come up {}.",
                ranges(),
                often(p)
            )
        }
    }
}

/// A probability as people say it.
fn often(p: f64) -> String {
    if p >= 0.1 {
        format!("in {:.0} of 100 experiments", p * 100.0)
    } else {
        // saturates; no experiment of so many rounds is run
        let one_in = (1.0 / p.max(1e-9)).round() as u64;
        format!("in 1 of {} experiments", count(one_in))
    }
}
