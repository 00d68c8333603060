//! What can be read, and on what evidence.

use super::TextOptions;
use super::page::Page;
use super::style::Role;
use super::table::{Column, Table};
use super::words::{count, several};
use crate::RuntimesReport;

/// The runtimes that can be read, as text.
#[must_use]
pub fn runtimes(report: &RuntimesReport, options: &TextOptions) -> String {
    let mut page = Page::new(options);
    let tables = several(report.tables.len() as u64, "table");
    let spans = [page.span(
        Role::Strong,
        format!("{tables} of layouts; each serves every patch version of its minor version."),
    )];
    page.line("", "", &spans);
    page.blank();
    let mut table = Table::new(vec![
        Column::left("platform"),
        Column::right("version"),
        Column::right("offsets"),
        Column::left("descriptor"),
        Column::flexible("evidence"),
    ]);
    for row in &report.tables {
        table.row(vec![
            row.platform.clone(),
            row.version.clone(),
            count(row.offsets),
            if row.describes_itself { "yes" } else { "no" }.into(),
            row.evidence.join("; "),
        ]);
    }
    table.write(&mut page, "");
    list(
        &mut page,
        "Descriptor",
        "",
        &["from .NET 9 on a process carries a description of its own layouts; where the dump holds it, it wins over the table".into()],
    );
    list(
        &mut page,
        "Checks",
        "before a table is believed",
        &report.checks,
    );
    list(
        &mut page,
        "Refused by name",
        "with what was found",
        &report.refused,
    );
    page.finish()
}

fn list(page: &mut Page<'_>, title: &str, remark: &str, items: &[String]) {
    page.heading(title, remark);
    for item in items {
        let spans = [page.span(Role::Plain, item)];
        page.line("- ", "  ", &spans);
    }
}
