//! Requests and the calls that they wait for.

use super::cell::{Cell, Kind, double, opt, text};
use super::{Column, column};
use asynctriage_report::{OutgoingCall, Request};

pub(super) const COLUMNS: &[Column<Request>] = &[
    column(
        "request",
        Kind::Text,
        "Name of the request in the report of its dump",
        |f| text(&f.item.id),
    ),
    column("method", Kind::Text, "`GET`, `POST` and so on", |f| {
        text(&f.item.method)
    }),
    column(
        "path",
        Kind::Text,
        "The path, without what looks like a value unless it was asked for",
        |f| text(&f.item.path),
    ),
    column("route", Kind::Text, "The route that it matched", |f| {
        opt(f.item.route.as_ref())
    }),
    column(
        "age_seconds",
        Kind::Double,
        "For how long it has run",
        |f| double(f.item.age_seconds),
    ),
    column("trace_id", Kind::Text, "Id of the distributed trace", |f| {
        opt(f.item.trace_id.as_ref())
    }),
    column("span_id", Kind::Text, "Id of its own span", |f| {
        opt(f.item.span_id.as_ref())
    }),
    column(
        "parent_span_id",
        Kind::Text,
        "Id of the caller's span",
        |f| opt(f.item.parent_span_id.as_ref()),
    ),
    column(
        "group",
        Kind::Text,
        "The group of chains that serves it",
        |f| opt(f.item.chain.as_ref()),
    ),
    column(
        "connection",
        Kind::Text,
        "The connection it came over",
        |f| opt(f.item.connection.as_ref()),
    ),
];

pub(super) const CALLS: &[Column<OutgoingCall>] = &[
    column(
        "request",
        Kind::Text,
        "The request that waits for it",
        |f| opt(f.request.map(|r| &r.id)),
    ),
    column(
        "call",
        Kind::Text,
        "Method and URL, without what looks like a value",
        |f| text(&f.item.text),
    ),
    column("server", Kind::Text, "Scheme, host and port", |f| {
        text(&f.item.server)
    }),
    column("trace_id", Kind::Text, "Id of the distributed trace", |f| {
        opt(f.item.trace_id.as_ref())
    }),
    column("span_id", Kind::Text, "Id of the call's span", |f| {
        opt(f.item.span_id.as_ref())
    }),
    column(
        "request_span_id",
        Kind::Text,
        "Id of the span of the request that waits for it",
        |f| opt(f.request.and_then(|r| r.span_id.as_ref())),
    ),
    column("object", Kind::Text, "Address of the message", |f| {
        f.item.object.map_or(Cell::Null, |a| text(&a.to_string()))
    }),
];
