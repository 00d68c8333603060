//! HttpClient: requests, connections, pools.

use super::trace_parent::TraceParent;
use crate::facts::{HttpPool, Unit};
use crate::process::private::{Values, is_known_method, origin};
use asynctriage_async_graph::{AsyncGraph, Helper};
use asynctriage_clr::Runtime;
use asynctriage_dump::Addr;
use asynctriage_report::{Address, OutgoingCall};
use rustc_hash::FxHashMap;

/// How the names of the methods of a pool begin, which opens connections for whoever waits for one.
pub(crate) const POOL: &str = "System.Net.Http.HttpConnectionPool.";

/// Waiters in one pool's queue.
const MAX_QUEUE: u64 = 1 << 20;

/// Pools by the waiters in their queues (HttpConnectionWaiter objects).
pub(crate) fn pools_by_waiter(rt: &Runtime<'_>, graph: &AsyncGraph) -> FxHashMap<Addr, HttpPool> {
    let mut out = FxHashMap::default();
    for pool in graph.helpers(Helper::HttpPool) {
        for (queue, streams) in [("_http11RequestQueue", false), ("_http2RequestQueue", true)] {
            let waiters = queued_waiters(rt, *pool, queue);
            let facts = if streams {
                read_streams(rt, graph, *pool, waiters.len())
            } else {
                read_connections(rt, *pool, waiters.len())
            };
            let Some(facts) = facts.filter(|_| !waiters.is_empty()) else {
                continue;
            };
            out.extend(waiters.into_iter().map(|w| (w, facts.clone())));
        }
    }
    out
}

fn read_connections(rt: &Runtime<'_>, pool: Addr, queued: usize) -> Option<HttpPool> {
    Some(HttpPool {
        pool,
        origin: pool_origin(rt, pool),
        unit: Unit::Connection,
        in_use: rt.field_i32(pool, "_associatedHttp11ConnectionCount")?,
        limit: rt.field_i32(pool, "_maxHttp11Connections")?,
        // they count as connections of the pool, too (8.0 to 11.0)
        opening: rt
            .field_i32(pool, "_pendingHttp11ConnectionCount")
            .unwrap_or(0),
        queued,
    })
}

/// HTTP/2 connections serve as many requests at once as the server allows them streams.
fn read_streams(
    rt: &Runtime<'_>,
    graph: &AsyncGraph,
    pool: Addr,
    queued: usize,
) -> Option<HttpPool> {
    let open = rt.field_i32(pool, "_associatedHttp2ConnectionCount")?;
    let connections = graph.helpers(Helper::Http2Connection).iter().copied();
    let own: Vec<Addr> = connections
        .filter(|c| rt.reference(*c, "_pool") == Some(pool))
        .filter(|c| rt.field_u8(*c, "_shutdown") != Some(1))
        .take(usize::try_from(open).unwrap_or(0))
        .collect();
    if own.is_empty() {
        // the first one is still being opened: no limit is reached
        return Some(HttpPool {
            pool,
            origin: pool_origin(rt, pool),
            unit: Unit::Connection,
            in_use: 0,
            limit: i32::MAX,
            opening: 0,
            queued,
        });
    }
    let sum = |field: &str| {
        let values = own.iter().filter_map(|c| rt.field_i32(*c, field));
        values.fold(0, i32::saturating_add)
    };
    Some(HttpPool {
        pool,
        origin: pool_origin(rt, pool),
        unit: Unit::Stream(own.len()),
        in_use: sum("_streamsInUse"),
        limit: sum("_maxConcurrentStreams"),
        opening: 0,
        queued,
    })
}

fn pool_origin(rt: &Runtime<'_>, pool: Addr) -> String {
    let authority = rt.reference(pool, "_originAuthority");
    let host = authority.and_then(|a| {
        rt.field_text(a, "<IdnHost>k__BackingField")
            .or_else(|| rt.field_text(a, "IdnHost"))
    });
    let port = authority.and_then(|a| {
        rt.field_i32(a, "<Port>k__BackingField")
            .or_else(|| rt.field_i32(a, "Port"))
    });
    let scheme = if rt.reference(pool, "_sslOptionsHttp11").is_some() {
        "https"
    } else {
        "http"
    };
    match (host, port) {
        (Some(host), Some(port)) => {
            let full = format!("{scheme}://{host}:{port}");
            origin(&full).unwrap_or(full)
        }
        (Some(host), None) => format!("{scheme}://{host}"),
        (None, _) => format!("pool {pool}"),
    }
}

/// Whether a promise is a request that waits in the queue of a pool, by its class.
pub(crate) fn is_pool_waiter(class: &str) -> bool {
    class.contains("HttpConnectionWaiter")
}

/// Requests that wait in a queue of a pool, in a ring buffer whose free slots are cleared.
fn queued_waiters(rt: &Runtime<'_>, pool: Addr, queue: &str) -> Vec<Addr> {
    let read = || {
        let place = rt.place(pool)?;
        let field = rt.instance_field(&place.ty, queue)?;
        // the ring's array is its only reference
        let array = place
            .references_in(rt, &field)
            .find(|a| rt.array_len(*a).is_some())?;
        let (start, stride, len) = rt.vector(array)?;
        let words = (0..len.min(MAX_QUEUE)).flat_map(|i| {
            (0..stride.div_euclid(8)).map(move |w| start.element(i, stride).element(w, 8))
        });
        let references = words.filter_map(|at| rt.memory().ptr(at)?.non_null());
        Some(
            references
                .filter(|o| rt.object_type_name(*o).is_some_and(|n| is_pool_waiter(&n)))
                .collect(),
        )
    };
    read().unwrap_or_default()
}

/// `GET http://host/path` of the request message among the variables of a method; the query is left out.
pub(crate) fn request_among(
    rt: &Runtime<'_>,
    variables: &[Addr],
    values: Values,
) -> Option<(Addr, String)> {
    variables
        .iter()
        .find_map(|o| Some((*o, message_text(rt, *o, values)?)))
}

fn message_text(rt: &Runtime<'_>, message: Addr, values: Values) -> Option<String> {
    let ty = rt.type_of(message)?;
    if !rt.is_a(ty.mt, "System.Net.Http.HttpRequestMessage") {
        return None;
    }
    let method = rt
        .reference(message, "_method")
        .and_then(|m| rt.field_text(m, "_method"))
        .filter(|m| is_known_method(m))
        .unwrap_or_else(|| "?".into());
    let uri = rt
        .reference(message, "_requestUri")
        .and_then(|u| rt.field_text(u, "_string"))
        .unwrap_or_default();
    Some(format!("{method} {}", values.address(&uri)))
}

/// A call to another server, with the span that it is.
pub(crate) fn outgoing_call(
    rt: &Runtime<'_>,
    message: Addr,
    values: Values,
) -> Option<OutgoingCall> {
    let ids = TraceParent::of_message(rt, message);
    Some(OutgoingCall {
        text: message_text(rt, message, values)?,
        server: origin_of(rt, message)?,
        trace_id: ids.as_ref().map(|i| i.trace_id.clone()),
        span_id: ids.map(|i| i.span_id),
        object: Some(Address(message.0)),
    })
}

/// `http://host:port` of a request message.
pub(crate) fn origin_of(rt: &Runtime<'_>, message: Addr) -> Option<String> {
    let uri = rt.field_text(rt.reference(message, "_requestUri")?, "_string")?;
    origin(&uri)
}
