//! Lists of objects.

use super::page::Page;
use super::style::Role;
use super::table::{Column, Table};
use super::words::{bytes, count, several};
use super::{TextOptions, closing};
use crate::ObjectsReport;

/// Objects of some types, or texts that hold something, as text.
#[must_use]
pub fn objects(report: &ObjectsReport, options: &TextOptions) -> String {
    let mut page = Page::new(options);
    let spans = [
        page.span(
            Role::Strong,
            format!(
                "{} in {}",
                bytes(report.bytes),
                several(report.count, "object")
            ),
        ),
        page.span(Role::Plain, format!(": {}.", report.asked)),
    ];
    page.line("", "  ", &spans);
    if !report.objects.is_empty() {
        page.blank();
        let mut table = Table::new(vec![
            Column::left("address"),
            Column::right("bytes"),
            Column::right("length"),
            Column::flexible("type"),
            Column::flexible("what it is"),
        ]);
        for row in &report.objects {
            table.row(vec![
                row.address.to_string(),
                count(row.size),
                row.length.map(count).unwrap_or_default(),
                row.type_name.clone(),
                row.text.clone(),
            ]);
        }
        table.write(&mut page, "");
    }
    super::views::left(&mut page, report.left_out, "more object");
    closing::gaps(&mut page, &report.gaps);
    page.finish()
}
