//! What moved between dumps, as text.

use super::TextOptions;
use super::page::Page;
use super::style::Role;
use super::words::{count, duration, several};
use crate::{DiffDump, DiffFigure, DiffGroup, DiffReport};

/// Dumps compared, as text.
#[must_use]
pub fn diff(report: &DiffReport, options: &TextOptions) -> String {
    let mut page = Page::new(options);
    for dump in &report.dumps {
        self::dump(&mut page, dump);
    }
    page.blank();
    let apart = report.seconds.map_or_else(
        || "an unknown time apart".to_owned(),
        |s| format!("{} apart", duration(s)),
    );
    let of = if report.same_process {
        format!(
            "{} of one process, {apart}.",
            several(report.dumps.len() as u64, "dump")
        )
    } else {
        format!(
            "{} of different processes, compared by the program's own methods.",
            several(report.dumps.len() as u64, "dump")
        )
    };
    let spans = [page.span(Role::Plain, of)];
    page.line("", "  ", &spans);
    let spans = [
        page.span(Role::Strong, report.state.to_string()),
        page.span(Role::Plain, format!("  {}", report.why)),
    ];
    page.line("", "  ", &spans);
    groups(&mut page, report);
    if !report.findings.is_empty() {
        page.heading("Findings", "of the first and the last dump");
        for finding in &report.findings {
            let spans = [
                page.span(Role::Strong, format!("{}  ", finding.standing)),
                page.span(Role::Plain, &finding.title),
                page.span(Role::Dim, format!("  {}", finding.kind)),
            ];
            page.line("", "  ", &spans);
        }
    }
    let changed: Vec<&DiffFigure> = report.figures.iter().filter(|f| has_changed(f)).collect();
    if !changed.is_empty() {
        page.heading("Figures", "those that changed");
        for figure in changed {
            let rate = figure.per_second.map(rate).unwrap_or_default();
            let spans = [
                page.span(
                    Role::Plain,
                    format!("{}  {}", figure.what, series(&figure.counts)),
                ),
                page.span(Role::Dim, rate),
            ];
            page.line("", "  ", &spans);
        }
    }
    page.finish()
}

fn has_changed(figure: &DiffFigure) -> bool {
    figure.counts.first() != figure.counts.last()
}

fn dump(page: &mut Page<'_>, dump: &DiffDump) {
    let mut about = vec![format!("{}  .NET {}", dump.program, dump.runtime)];
    about.extend(dump.process_id.map(|id| format!("process {id}")));
    let floor = if dump.time_is_floor { " or later" } else { "" };
    about.extend(dump.time.as_ref().map(|t| format!("taken {t}{floor}")));
    about.extend(dump.incomplete.then(|| "TRUNCATED".to_owned()));
    let spans = [
        page.span(Role::Strong, &dump.path),
        page.span(Role::Dim, format!("  {}", about.join("  "))),
    ];
    page.line("", "  ", &spans);
}

fn groups(page: &mut Page<'_>, report: &DiffReport) {
    if report.groups.is_empty() {
        return;
    }
    page.heading("Chains", "the worst first");
    let shown = page.options.cap(report.groups.len());
    for group in report.groups.iter().take(shown) {
        self::group(page, group);
    }
    if let Some(more) = report.groups.len().checked_sub(shown).filter(|n| *n > 0) {
        let text = format!("{} not shown: --all", several(more as u64, "more group"));
        let spans = [page.span(Role::Dim, text)];
        page.line("", "", &spans);
    }
}

fn group(page: &mut Page<'_>, group: &DiffGroup) {
    let place = group.await_index.map(|n| format!(" await {n}"));
    let spans = [
        page.span(Role::Strong, format!("{}  ", group.state)),
        page.span(
            Role::Plain,
            format!("{}{}", group.method, place.unwrap_or_default()),
        ),
        page.span(
            Role::Dim,
            format!("  {}  {}", group.leaf, series(&group.counts)),
        ),
        page.span(Role::Dim, group.per_second.map(rate).unwrap_or_default()),
    ];
    page.line("", "  ", &spans);
    let spans = [page.span(Role::Plain, &group.why)];
    page.line("  ", "    ", &spans);
}

fn series(counts: &[u64]) -> String {
    let texts: Vec<String> = counts.iter().map(|n| count(*n)).collect();
    texts.join(" > ")
}

fn rate(per_second: f64) -> String {
    if per_second == 0.0 {
        String::new()
    } else {
        format!("  {per_second:+.1} a second")
    }
}
