//! Threads that wait.

use super::cell::{Cell, Kind, int, opt, text};
use super::{Column, column};
use asynctriage_report::Thread;

fn method(thread: &Thread) -> Option<&String> {
    let own = thread.frames.iter().find(|f| !f.is_framework && !f.native);
    own.or_else(|| thread.frames.first()).map(|f| &f.method)
}

fn holds(thread: &Thread) -> Cell {
    let all: Vec<&str> = thread.holds.iter().map(|h| h.text.as_str()).collect();
    text(&all.join("; "))
}

pub(super) const COLUMNS: &[Column<Thread>] = &[
    column(
        "thread",
        Kind::Int,
        "Number of the thread in the operating system",
        |f| int(f.item.os_id),
    ),
    column(
        "managed_id",
        Kind::Int,
        "Number of the thread in .NET",
        |f| f.item.managed_id.map_or(Cell::Null, |m| int(u64::from(m))),
    ),
    column("name", Kind::Text, "Its name", |f| {
        opt(f.item.name.as_ref())
    }),
    column("state", Kind::Text, "What it does", |f| text(&f.item.state)),
    column("waits_on", Kind::Text, "What it waits for", |f| {
        opt(f.item.waits_on.as_ref().map(|w| &w.text))
    }),
    column(
        "waits_on_type",
        Kind::Text,
        "Raw name of the type of that",
        |f| opt(f.item.waits_on.as_ref().and_then(|w| w.type_name.as_ref())),
    ),
    column("waits_on_object", Kind::Text, "Its address", |f| {
        f.item
            .waits_on
            .as_ref()
            .and_then(|w| w.address)
            .map_or(Cell::Null, |a| text(&a.to_string()))
    }),
    column(
        "method",
        Kind::Text,
        "The innermost method that is not the framework's",
        |f| opt(method(f.item)),
    ),
    column(
        "group",
        Kind::Text,
        "The group of chains that it waits for or runs",
        |f| opt(f.item.chain.as_ref()),
    ),
    column("holds", Kind::Text, "The locks that it holds", |f| {
        holds(f.item)
    }),
    column("request", Kind::Text, "The request that it works on", |f| {
        opt(f.item.request.as_ref())
    }),
];
