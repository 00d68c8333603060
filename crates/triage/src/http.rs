//! HttpClient: requests, connections, pools.

use asynctriage_async_graph::{AsyncGraph, Helper};
use asynctriage_clr::Runtime;
use asynctriage_dump::Addr;
use rustc_hash::FxHashMap;

/// Waiters in one pool's queue.
const MAX_QUEUE: u64 = 1 << 20;

/// A pool of connections to one server.
#[derive(Clone, Debug)]
pub(crate) struct HttpPool {
    pub(crate) pool: Addr,
    pub(crate) origin: String,
    pub(crate) connections: i32,
    pub(crate) limit: i32,
    pub(crate) queued: usize,
}

/// Pools by the waiters in their queues (HttpConnectionWaiter objects).
pub(crate) fn pools_by_waiter(rt: &Runtime<'_>, graph: &AsyncGraph) -> FxHashMap<Addr, HttpPool> {
    let mut out = FxHashMap::default();
    for pool in graph.helpers(Helper::HttpPool) {
        let waiters = queued_waiters(rt, *pool);
        let Some(facts) = read_pool(rt, *pool, waiters.len()) else {
            continue;
        };
        for waiter in waiters {
            out.insert(waiter, facts.clone());
        }
    }
    out
}

fn read_pool(rt: &Runtime<'_>, pool: Addr, queued: usize) -> Option<HttpPool> {
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
    let origin = match (host, port) {
        (Some(host), Some(port)) => {
            let full = format!("{scheme}://{host}:{port}");
            origin_text(&full).unwrap_or(full)
        }
        (Some(host), None) => format!("{scheme}://{host}"),
        (None, _) => format!("pool {pool}"),
    };
    Some(HttpPool {
        pool,
        origin,
        connections: rt.field_i32(pool, "_associatedHttp11ConnectionCount")?,
        limit: rt.field_i32(pool, "_maxHttp11Connections")?,
        queued,
    })
}

/// Requests without a connection, in a ring buffer whose free slots are cleared.
fn queued_waiters(rt: &Runtime<'_>, pool: Addr) -> Vec<Addr> {
    let read = || {
        let place = rt.place(pool)?;
        let field = rt.instance_field(&place.ty, "_http11RequestQueue")?;
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
                .filter(|o| {
                    rt.object_type_name(*o)
                        .is_some_and(|n| n.contains("HttpConnectionWaiter"))
                })
                .collect(),
        )
    };
    read().unwrap_or_default()
}

/// `GET http://host/path` of the request message among the variables of a method; the query is left out.
pub(crate) fn request_among(rt: &Runtime<'_>, variables: &[Addr]) -> Option<(Addr, String)> {
    variables
        .iter()
        .find_map(|o| Some((*o, message_text(rt, *o)?)))
}

fn message_text(rt: &Runtime<'_>, message: Addr) -> Option<String> {
    if &*rt.object_type_name(message)? != "System.Net.Http.HttpRequestMessage" {
        return None;
    }
    let method = rt
        .reference(message, "_method")
        .and_then(|m| rt.field_text(m, "_method"))
        .unwrap_or_else(|| "?".into());
    let uri = rt
        .reference(message, "_requestUri")
        .and_then(|u| rt.field_text(u, "_string"))
        .unwrap_or_default();
    let without_query = uri.split(['?', '#']).next().unwrap_or_default();
    Some(format!("{method} {}", without_credentials(without_query)))
}

/// `http://host:port` of a request message.
pub(crate) fn origin_of(rt: &Runtime<'_>, message: Addr) -> Option<String> {
    let uri = rt.field_text(rt.reference(message, "_requestUri")?, "_string")?;
    origin_text(&without_credentials(&uri))
}

/// Scheme and authority of an address; `None` for a relative one.
fn origin_text(uri: &str) -> Option<String> {
    let (scheme, rest) = uri.split_once("://")?;
    let authority = rest.split(['/', '?', '#']).next()?;
    let usual = match scheme {
        "http" => ":80",
        "https" => ":443",
        _ => "",
    };
    let host = authority.strip_suffix(usual).unwrap_or(authority);
    Some(format!("{scheme}://{host}"))
}

/// `http://user:secret@host/` shows as `http://host/`.
fn without_credentials(uri: &str) -> String {
    let Some((scheme, rest)) = uri.split_once("://") else {
        return uri.to_owned();
    };
    let (authority, path) = rest
        .split_once('/')
        .map_or((rest, None), |(a, p)| (a, Some(p)));
    let host = authority.rsplit('@').next().unwrap_or(authority);
    match path {
        Some(path) => format!("{scheme}://{host}/{path}"),
        None => format!("{scheme}://{host}"),
    }
}

#[cfg(test)]
mod tests {
    use super::{origin_text, without_credentials};

    #[test]
    fn credentials_never_show() {
        assert_eq!(without_credentials("http://u:p@h:1/x@y"), "http://h:1/x@y");
        assert_eq!(without_credentials("https://h"), "https://h");
        assert_eq!(without_credentials("/relative"), "/relative");
    }

    #[test]
    fn an_origin_has_no_usual_port() {
        assert_eq!(origin_text("http://h:80/a?b").as_deref(), Some("http://h"));
        assert_eq!(origin_text("https://h?x").as_deref(), Some("https://h"));
        assert_eq!(
            origin_text("http://h:8080").as_deref(),
            Some("http://h:8080")
        );
        assert_eq!(origin_text("/relative"), None);
    }
}
