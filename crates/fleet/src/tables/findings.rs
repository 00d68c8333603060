//! Findings.

use super::cell::{Kind, opt, text};
use super::{Column, column};
use asynctriage_report::Finding;

pub(super) const COLUMNS: &[Column<Finding>] = &[
    column(
        "finding",
        Kind::Text,
        "Name of the finding in the report of its dump",
        |f| text(&f.item.id),
    ),
    column(
        "signature",
        Kind::Text,
        "Equal for the same finding about the same methods in any dump",
        |f| text(&f.item.signature),
    ),
    column("kind", Kind::Text, "What it is about", |f| {
        text(f.item.kind.as_str())
    }),
    column(
        "severity",
        Kind::Text,
        "`critical`, `warning`, `info`",
        |f| text(f.item.severity.as_str()),
    ),
    column("confidence", Kind::Text, "How sure it is", |f| {
        text(f.item.confidence.as_str())
    }),
    column("title", Kind::Text, "One line", |f| text(&f.item.title)),
    column("text", Kind::Text, "What happened", |f| text(&f.item.text)),
    column(
        "chains",
        Kind::Text,
        "The groups of chains that it explains, with commas between them",
        |f| text(&f.item.chains.join(",")),
    ),
    column("next_step", Kind::Text, "What to do about it now", |f| {
        opt(f.item.next_step.as_ref())
    }),
    column("runbook", Kind::Text, "The runbook that treats it", |f| {
        opt(f.item.runbook.as_ref())
    }),
];
