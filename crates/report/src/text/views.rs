//! The answers of the narrower subcommands.

use super::page::Page;
use super::style::Role;
use super::table::{Column, Table};
use super::words::{bytes, count, several};
use super::{TextOptions, closing};
use crate::{Elements, FieldRow, HeapReport, ObjectReport, TaskReport, TaskRow};

/// What the heap holds, by type, as text.
#[must_use]
pub fn heap(report: &HeapReport, options: &TextOptions) -> String {
    let mut page = Page::new(options);
    let mut parts = vec![format!(
        "{} in {}",
        bytes(report.bytes),
        several(report.objects, "object")
    )];
    parts.push(format!("{} free", bytes(report.free_bytes)));
    if report.invalid_objects > 0 {
        let places = several(report.invalid_objects, "place");
        parts.push(format!(
            "{places} unreadable, {} skipped",
            bytes(report.skipped_bytes)
        ));
    }
    let spans = [page.span(Role::Strong, format!("{}.", parts.join("; ")))];
    page.line("", "", &spans);
    page.blank();
    let mut columns = vec![
        Column::right("count"),
        Column::right("bytes"),
        Column::flexible("type"),
    ];
    if page.verbose() {
        columns.insert(2, Column::left("method table"));
    }
    let mut table = Table::new(columns);
    for row in &report.types {
        let mut cells = vec![count(row.count), count(row.bytes), row.name.clone()];
        if page.verbose() {
            cells.insert(2, row.method_table.to_string());
        }
        table.row(cells);
    }
    table.write(&mut page, "");
    left(&mut page, report.types_left_out, "more type");
    closing::gaps(&mut page, &report.gaps);
    page.finish()
}

/// The tasks, as text.
#[must_use]
pub fn tasks(report: &TaskReport, options: &TextOptions) -> String {
    let mut page = Page::new(options);
    let total = (report.tasks.len() as u64).saturating_add(report.left_out);
    let spans = [page.span(Role::Strong, format!("{}.", several(total, "task")))];
    page.line("", "", &spans);
    if !report.tasks.is_empty() {
        page.blank();
        let mut table = Table::new(vec![
            Column::left("address"),
            Column::left("status"),
            Column::right("state"),
            Column::flexible("method or type"),
            Column::flexible("waits for"),
            Column::flexible("then runs"),
        ]);
        for task in &report.tasks {
            table.row(task_row(task));
        }
        table.write(&mut page, "");
    }
    left(&mut page, report.left_out, "more task");
    closing::gaps(&mut page, &report.gaps);
    page.finish()
}

fn task_row(task: &TaskRow) -> Vec<String> {
    let waits = match (task.leaf, &task.waits_on) {
        (Some(leaf), Some(text)) => format!("{leaf}  {text}"),
        (Some(leaf), None) => leaf.to_string(),
        (None, text) => text.clone().unwrap_or_default(),
    };
    vec![
        task.address.to_string(),
        task.status.clone(),
        task.state
            .map(|state| state.to_string())
            .unwrap_or_default(),
        task.method
            .clone()
            .unwrap_or_else(|| task.type_name.clone()),
        waits,
        task.continuation.clone().unwrap_or_default(),
    ]
}

/// One object, as text.
#[must_use]
pub fn object(report: &ObjectReport, options: &TextOptions) -> String {
    let mut page = Page::new(options);
    let about = format!("  {}", several(report.size, "byte"));
    let table = report
        .method_table
        .map(|table| format!("  method table {table}"))
        .unwrap_or_default();
    let spans = [
        page.span(Role::Strong, report.address.to_string()),
        page.span(Role::Strong, format!("  {}", report.type_name)),
        page.span(Role::Dim, format!("{about}{table}")),
    ];
    page.line("", "    ", &spans);
    for decoded in &report.decoded {
        let spans = [
            page.span(Role::Kind, &decoded.name),
            page.span(Role::Plain, format!("  {}", decoded.value)),
        ];
        page.line("  ", "    ", &spans);
    }
    if let Some(found) = &report.elements {
        elements(&mut page, found);
    }
    fields(&mut page, report);
    if !report.referenced_by.is_empty() {
        page.heading("Referenced by", "");
        let mut table = Table::new(vec![
            Column::left("address"),
            Column::flexible("object"),
            Column::flexible("type"),
        ]);
        for object in &report.referenced_by {
            let address = object.address.map(|a| a.to_string()).unwrap_or_default();
            table.row(vec![
                address,
                object.text.clone(),
                object.type_name.clone().unwrap_or_default(),
            ]);
        }
        table.write(&mut page, "");
        left(&mut page, report.referenced_by_left_out, "more object");
    }
    page.finish()
}

/// The elements of a collection.
fn elements(page: &mut Page<'_>, found: &Elements) {
    let shown = found.rows.len() as u64;
    let has = match found.count {
        Some(n) => several(n, "element"),
        None => format!("more than {}", several(shown, "element")),
    };
    page.heading(&found.collection, &has);
    if found.rows.is_empty() {
        return;
    }
    let mut table = Table::new(vec![
        Column::flexible("key"),
        Column::flexible("value"),
        Column::flexible("type"),
    ]);
    for row in &found.rows {
        table.row(vec![
            row.key.clone(),
            row.value.clone(),
            row.type_name.clone().unwrap_or_default(),
        ]);
    }
    table.write(page, "");
    if found.is_cut {
        let spans = [page.span(Role::Dim, "more elements not shown: --all")];
        page.line("", "", &spans);
    }
}

fn fields(page: &mut Page<'_>, report: &ObjectReport) {
    if report.fields.is_empty() {
        return;
    }
    page.blank();
    let mut table = Table::new(vec![
        Column::right("offset"),
        Column::flexible("name"),
        Column::flexible("type"),
        Column::flexible("value"),
        Column::left("object"),
    ]);
    for field in &report.fields {
        let link = field.link.map(|link| link.to_string()).unwrap_or_default();
        table.row(vec![
            count(field.offset),
            field.name.clone(),
            field_type(field),
            field.value.clone(),
            link,
        ]);
    }
    table.write(page, "");
    left(page, report.fields_left_out, "more field");
}

/// The type of what is there; with the declared one when that says something else.
fn field_type(field: &FieldRow) -> String {
    match (&field.actual_type, &field.declared_type) {
        (Some(actual), Some(declared)) if actual != declared => {
            format!("{actual} (declared {declared})")
        }
        (actual, declared) => actual
            .as_ref()
            .or(declared.as_ref())
            .cloned()
            .unwrap_or_default(),
    }
}

pub(super) fn left(page: &mut Page<'_>, hidden: u64, noun: &str) {
    if hidden > 0 {
        let spans = [page.span(
            Role::Dim,
            format!("{} not shown: --all", several(hidden, noun)),
        )];
        page.line("", "", &spans);
    }
}
