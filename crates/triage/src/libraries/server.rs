//! Requests that Kestrel, IIS or HTTP.sys serves.

use super::trace_parent::TraceParent;
use crate::facts::RequestFacts;
use crate::process::private::{Values, is_known_method};
use asynctriage_clr::Runtime;
use asynctriage_dump::Addr;

/// `HttpProtocol._requestProcessingStatus` from the moment that the application runs until the response is complete: its
/// headers may have been sent (8.0 to 11.0).
const APPLICATION_RUNS: std::ops::RangeInclusive<i32> = 3..=5;
/// Streams of HTTP/2 and HTTP/3 leave that status alone (11.0); of their `_completionState` these bits say that the
/// request has ended or was aborted.
const STREAM_ENDED: i32 = 1 | 4;

/// The loops of the servers, and the await of each that waits for the application (8.0 to 11.0); the others wait for the
/// client.
const REQUEST_LOOPS: [(&str, i32); 3] = [
    (
        "Microsoft.AspNetCore.Server.Kestrel.Core.Internal.Http.HttpProtocol.ProcessRequests",
        1,
    ),
    ("Microsoft.AspNetCore.Server.IIS.Core.IISHttpContextOfT", 0),
    ("Microsoft.AspNetCore.Server.HttpSys.RequestContext", 0),
];

/// The number of the await at which the loop of a server waits for the application; `None` for other methods.
pub(crate) fn application_await(method: &str) -> Option<i32> {
    let mut loops = REQUEST_LOOPS.iter();
    let (_, application) = loops.find(|(frame, _)| method.starts_with(frame))?;
    Some(*application)
}

/// Reads a request from its protocol object; `None` when nothing there looks like one.
pub(crate) fn read(rt: &Runtime<'_>, object: Addr, values: Values) -> Option<RequestFacts> {
    // HTTP.sys keeps what it knows of the request in an object of its own
    let request = rt
        .reference(object, "<Request>k__BackingField")
        .unwrap_or(object);
    let path = values.path(&rt.field_text(request, "<Path>k__BackingField")?);
    let method = rt
        .field_text(request, "_methodText")
        .filter(|t| !t.is_empty());
    let method = method
        .or_else(|| rt.field_text(request, "<Method>k__BackingField"))
        .or_else(|| {
            rt.field_u8(request, "<Method>k__BackingField")
                .map(|m| method_name(m).to_owned())
        })
        .map(|m| {
            if is_known_method(&m) {
                m
            } else {
                CUSTOM.to_owned()
            }
        })?;
    let host = hosting_context(rt, object);
    let activity = activity(rt, object, host);
    Some(RequestFacts {
        trace_id: activity.and_then(|a| rt.field_text(a, "_traceId")),
        span_id: activity.and_then(|a| rt.field_text(a, "_spanId")),
        parent_span_id: activity.and_then(|a| parent_span(rt, a)),
        started: activity
            .and_then(|a| rt.field_u64(a, "<StartTimeUtc>k__BackingField"))
            .filter(|t| *t != 0),
        timestamp: host
            .and_then(|h| rt.field_u64(h, "<StartTimestamp>k__BackingField"))
            .filter(|t| *t != 0),
        object,
        method,
        path,
        route: route(rt, object),
        connection: rt.field_text(object, "<ConnectionIdFeature>k__BackingField"),
    })
}

/// What the hosting layer keeps of a request.
fn hosting_context(rt: &Runtime<'_>, object: Addr) -> Option<Addr> {
    let place = rt.place(object)?;
    let host = place
        .fields(rt)
        .find(|f| f.name.ends_with(".HostContext>k__BackingField"))?;
    rt.memory().ptr(place.at(host))?.non_null()
}

/// The request's Activity: behind the feature, else behind the hosting context.
fn activity(rt: &Runtime<'_>, object: Addr, host: Option<Addr>) -> Option<Addr> {
    let feature = rt
        .reference(object, "_currentIHttpActivityFeature")
        .or_else(|| rt.reference(host?, "HttpActivityFeature"))?;
    rt.reference(feature, "<Activity>k__BackingField")
}

/// The span that called: the field is filled only when somebody asks, the header's text stands beside it (8.0 to 11.0).
fn parent_span(rt: &Runtime<'_>, activity: Addr) -> Option<String> {
    let known = rt.field_text(activity, "_parentSpanId");
    known.or_else(|| {
        let header = rt.field_text(activity, "_parentId")?;
        Some(TraceParent::parse(&header)?.span_id)
    })
}

/// Whether the application works on the request now, as far as the object itself tells.
pub(crate) fn in_application(rt: &Runtime<'_>, object: Addr) -> bool {
    if let Some(ended) = rt.field_i32(object, "_completionState") {
        return ended & STREAM_ENDED == 0;
    }
    let status = rt.field_i32(object, "_requestProcessingStatus");
    status.is_some_and(|s| APPLICATION_RUNS.contains(&s))
}

/// Whether the object's own state proves that the request is served: objects of HTTP/2 streams are used again and again,
/// and connections that were upgraded (to web sockets) are open for as long as the client likes.
pub(crate) fn is_served(rt: &Runtime<'_>, object: Addr) -> bool {
    rt.field_i32(object, "_completionState").is_none()
        && in_application(rt, object)
        && rt.field_u8(object, "<IsUpgraded>k__BackingField") != Some(1)
}

/// The pattern of the endpoint that routing chose.
fn route(rt: &Runtime<'_>, object: Addr) -> Option<String> {
    let endpoint = rt.reference(object, "_endpoint")?;
    let pattern = rt.reference(endpoint, "<RoutePattern>k__BackingField")?;
    let text = rt.field_text(pattern, "<RawText>k__BackingField")?;
    Some(if text.starts_with('/') {
        text
    } else {
        format!("/{text}")
    })
}

/// A method that a client made up.
const CUSTOM: &str = "custom method";

/// Kestrel's HttpMethod enumeration (8.0 to 11.0).
fn method_name(code: u8) -> &'static str {
    match code {
        0 => "GET",
        1 => "PUT",
        2 => "DELETE",
        3 => "POST",
        4 => "HEAD",
        5 => "TRACE",
        6 => "PATCH",
        7 => "CONNECT",
        8 => "OPTIONS",
        _ => CUSTOM,
    }
}
