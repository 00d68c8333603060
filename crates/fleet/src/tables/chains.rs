//! Groups of chains.

use super::cell::{Cell, Kind, double, int, opt, text};
use super::{Column, column};
use asynctriage_report::{ChainGroup, Frame};

/// The innermost method of the program or its libraries, where there is one.
fn method(group: &ChainGroup) -> Option<&Frame> {
    let own = group.frames.iter().find(|f| !f.is_framework);
    own.or_else(|| group.frames.first())
}

/// All methods from the innermost outwards.
fn frames(group: &ChainGroup) -> Cell {
    let names: Vec<&str> = group.frames.iter().map(|f| f.method.as_str()).collect();
    text(&names.join(" < "))
}

pub(super) const COLUMNS: &[Column<ChainGroup>] = &[
    column(
        "group",
        Kind::Text,
        "Name of the group in the report of its dump",
        |f| text(&f.item.id),
    ),
    column(
        "signature",
        Kind::Text,
        "Equal for equal chains of one program on one runtime",
        |f| text(&f.item.signature),
    ),
    column(
        "app_signature",
        Kind::Text,
        "Equal for the same wait of the program in any version of the runtime, on any platform, in any of its builds",
        |f| text(&f.item.app_signature),
    ),
    column(
        "names_incomplete",
        Kind::Bool,
        "Whether a method has no name in this dump, so that app_signature equals only those of such dumps",
        |f| Cell::Bool(f.item.names_incomplete),
    ),
    column("count", Kind::Int, "Chains in the group", |f| {
        int(f.item.count)
    }),
    column(
        "first_seen",
        Kind::Text,
        "When the oldest began to wait, in UTC as RFC 3339",
        |f| opt(f.item.first_seen.as_ref()),
    ),
    column(
        "waiting_min_seconds",
        Kind::Double,
        "For how long the youngest has waited",
        |f| double(f.item.waiting_seconds.as_ref().map(|w| w.min)),
    ),
    column(
        "waiting_median_seconds",
        Kind::Double,
        "For how long the middle one has waited",
        |f| double(f.item.waiting_seconds.as_ref().map(|w| w.median)),
    ),
    column(
        "waiting_max_seconds",
        Kind::Double,
        "For how long the oldest has waited",
        |f| double(f.item.waiting_seconds.as_ref().map(|w| w.max)),
    ),
    column(
        "method",
        Kind::Text,
        "The innermost method that is not the framework's",
        |f| method(f.item).map_or(Cell::Null, |m| text(&m.method)),
    ),
    column(
        "awaits",
        Kind::Text,
        "What it awaits, as in the source",
        |f| opt(method(f.item).and_then(|m| m.awaits.as_ref())),
    ),
    column("file", Kind::Text, "Source file of the await", |f| {
        opt(method(f.item).and_then(|m| m.file.as_ref()))
    }),
    column("line", Kind::Int, "Line of the await", |f| {
        method(f.item)
            .and_then(|m| m.line)
            .map_or(Cell::Null, |l| int(u64::from(l)))
    }),
    column(
        "frames",
        Kind::Text,
        "All methods, the innermost first, with ` < ` between them",
        |f| frames(f.item),
    ),
    column("leaf_kind", Kind::Text, "Kind of what they wait for", |f| {
        text(f.item.leaf.kind.as_str())
    }),
    column("leaf", Kind::Text, "What they wait for", |f| {
        text(&f.item.leaf.text)
    }),
    column(
        "completer",
        Kind::Text,
        "Who would complete it, the surest",
        |f| opt(f.item.leaf.completers.first().map(|c| &c.text)),
    ),
    column("root_kind", Kind::Text, "Kind of what they are for", |f| {
        f.item
            .root
            .as_ref()
            .map_or(Cell::Null, |r| text(r.kind.as_str()))
    }),
    column("root", Kind::Text, "What they are for", |f| {
        opt(f.item.root.as_ref().map(|r| &r.text))
    }),
    column("state", Kind::Text, "The verdict: whether they hang", |f| {
        f.item
            .verdict
            .as_ref()
            .map_or(Cell::Null, |v| text(v.state.as_str()))
    }),
    column("why", Kind::Text, "What the verdict rests on", |f| {
        opt(f.item.verdict.as_ref().map(|v| &v.why))
    }),
];
