//! Requests that Kestrel serves.

use asynctriage_clr::Runtime;
use asynctriage_dump::Addr;

/// HttpProtocol._requestProcessingStatus while the application runs: the request line and headers are behind (8.0 to
/// 11.0, seen as 3 on every request in flight).
const APPLICATION_RUNS: i32 = 3;

/// A request in flight.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RequestFacts {
    /// The protocol object (Http1Connection, Http2Stream ...).
    pub(crate) object: Addr,
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) route: Option<String>,
    pub(crate) connection: Option<String>,
    /// Id of the distributed trace, from the request's Activity.
    pub(crate) trace_id: Option<String>,
    /// When the request's Activity began, as DateTime holds it.
    pub(crate) started: Option<u64>,
}

impl RequestFacts {
    /// `POST /orders/{id}`: the route where it is known, else the path.
    pub(crate) fn title(&self) -> String {
        format!(
            "{} {}",
            self.method,
            self.route.as_deref().unwrap_or(&self.path)
        )
    }
}

/// Reads a request from its protocol object; `None` when nothing there looks like one.
pub(crate) fn read(rt: &Runtime<'_>, object: Addr) -> Option<RequestFacts> {
    let path = rt.field_text(object, "<Path>k__BackingField")?;
    let method = rt
        .field_text(object, "_methodText")
        .filter(|t| !t.is_empty());
    let method = method.or_else(|| {
        rt.field_u8(object, "<Method>k__BackingField")
            .map(|m| method_name(m).to_owned())
    })?;
    let activity = activity(rt, object);
    Some(RequestFacts {
        trace_id: activity.and_then(|a| rt.field_text(a, "_traceId")),
        started: activity
            .and_then(|a| rt.field_u64(a, "<StartTimeUtc>k__BackingField"))
            .filter(|t| *t != 0),
        object,
        method,
        path,
        route: route(rt, object),
        connection: rt.field_text(object, "<ConnectionIdFeature>k__BackingField"),
    })
}

/// The request's Activity: behind the feature, else behind the hosting context.
fn activity(rt: &Runtime<'_>, object: Addr) -> Option<Addr> {
    let feature = rt
        .reference(object, "_currentIHttpActivityFeature")
        .or_else(|| {
            let place = rt.place(object)?;
            let host = place
                .fields(rt)
                .into_iter()
                .find(|f| f.name.ends_with(".HostContext>k__BackingField"))?;
            rt.reference(
                rt.memory().ptr(place.at(host))?.non_null()?,
                "HttpActivityFeature",
            )
        })?;
    rt.reference(feature, "<Activity>k__BackingField")
}

/// Whether the application works on the request now.
pub(crate) fn in_application(rt: &Runtime<'_>, object: Addr) -> bool {
    let place = rt.place(object);
    let status = place
        .and_then(|p| p.addr(rt, "_requestProcessingStatus"))
        .and_then(|a| rt.memory().i32(a));
    status == Some(APPLICATION_RUNS)
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
        _ => "custom method",
    }
}
