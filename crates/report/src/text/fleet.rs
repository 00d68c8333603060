//! What many dumps have in common, as text.

use super::TextOptions;
use super::page::Page;
use super::style::Role;
use super::table::{Column, Table};
use super::words::{count, several};
use crate::FleetReport;

/// The findings that many dumps share, and what could not be read.
#[must_use]
pub fn fleet(report: &FleetReport, options: &TextOptions) -> String {
    let mut page = Page::new(options);
    let mut parts = vec![format!("{} read", several(report.read, "dump"))];
    for (number, what) in [
        (report.partial, "partial"),
        (report.refused, "refused"),
        (report.failed, "failed"),
    ] {
        if number > 0 {
            parts.push(format!("{} {what}", count(number)));
        }
    }
    let spans = [page.span(Role::Strong, format!("{}.", parts.join(", ")))];
    page.line("", "", &spans);
    if !report.problems.is_empty() {
        page.heading("Not read as a whole", "in this run");
        let mut table = Table::new(vec![
            Column::left("what"),
            Column::flexible("dump"),
            Column::flexible("why"),
        ]);
        for problem in capped(&page, &report.problems) {
            table.row(vec![
                problem.status.clone(),
                problem.path.clone(),
                problem.why.clone(),
            ]);
        }
        table.write(&mut page, "");
        more(&mut page, report.problems.len());
    }
    if !report.signatures.is_empty() {
        page.heading("Findings", "those of most processes first");
        let mut table = Table::new(vec![
            Column::left("signature"),
            Column::right("dumps"),
            Column::right("processes"),
            Column::left("first seen"),
            Column::left("last seen"),
            Column::flexible("finding, as one of the dumps has it"),
        ]);
        for row in capped(&page, &report.signatures) {
            table.row(vec![
                row.signature.clone(),
                count(row.dumps),
                count(row.processes),
                minute(row.first_seen.as_ref()),
                minute(row.last_seen.as_ref()),
                row.title.clone(),
            ]);
        }
        table.write(&mut page, "");
        more(&mut page, report.signatures.len());
    }
    page.finish()
}

fn capped<'r, T>(page: &Page<'_>, rows: &'r [T]) -> impl Iterator<Item = &'r T> {
    rows.iter().take(page.options.cap(rows.len()))
}

fn more(page: &mut Page<'_>, all: usize) {
    let hidden = all.saturating_sub(page.options.cap(all));
    if hidden > 0 {
        let text = format!("{} not shown", several(hidden as u64, "more row"));
        let spans = [page.span(Role::Dim, text)];
        page.line("", "", &spans);
    }
}

/// To the minute.
fn minute(time: Option<&String>) -> String {
    let time = time.map_or("", |t| t);
    time.get(..16).unwrap_or(time).replace('T', " ")
}
