//! Pools of HttpClient, and requests that a server has received.

use super::object;
use crate::words::waits;
use asynctriage_dump::Addr;
use asynctriage_report::Details;
use serde_json::json;

/// A pool of connections to one server, as one of its queues sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct HttpPool {
    pub(crate) pool: Addr,
    pub(crate) origin: String,
    /// What a request waits for: a connection, or a stream of an HTTP/2 connection.
    pub(crate) unit: Unit,
    pub(crate) in_use: i32,
    /// `i32::MAX` for none.
    pub(crate) limit: i32,
    /// Connections among those in use that are still being opened.
    pub(crate) opening: i32,
    pub(crate) queued: usize,
}

/// What a pool hands out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unit {
    /// Connections of HTTP/1.1.
    Connection,
    /// Streams of this many HTTP/2 connections.
    Stream(usize),
}

impl HttpPool {
    /// The counted thing in words, for one of them.
    pub(crate) fn unit_text(&self) -> &'static str {
        match self.unit {
            Unit::Connection => "connection",
            Unit::Stream(_) => "HTTP/2 stream",
        }
    }

    /// `16 of 16 in use`; no limit, no second number.
    pub(crate) fn use_text(&self) -> String {
        let of = match self.limit {
            i32::MAX => String::new(),
            limit => format!(" of {limit}"),
        };
        match self.unit {
            Unit::Connection if self.opening > 0 => format!(
                "{}{of} in use, {} of them still being opened",
                self.in_use, self.opening
            ),
            Unit::Connection => format!("{}{of} in use", self.in_use),
            Unit::Stream(1) => format!("{}{of} streams of its connection in use", self.in_use),
            Unit::Stream(n) => format!("{}{of} streams of {n} connections in use", self.in_use),
        }
    }

    pub(super) fn text(&self) -> String {
        let what = match self.unit {
            Unit::Connection => "connection pool",
            Unit::Stream(_) => "HTTP/2 streams",
        };
        format!(
            "HttpClient: {what} of {} ({}, {})",
            self.origin,
            self.use_text(),
            waits(self.queued as u64, "request")
        )
    }

    pub(super) fn note(&self, details: &mut Details) {
        details.insert("pool".into(), object(self.pool));
        details.insert("origin".into(), json!(self.origin));
        let used = match self.unit {
            Unit::Connection => "connections",
            Unit::Stream(_) => "streams",
        };
        details.insert(used.into(), json!(self.in_use));
        details.insert("limit".into(), json!(self.limit));
        details.insert("queued".into(), json!(self.queued));
    }
}

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
    /// Id of the Activity's own span, and of the caller's.
    pub(crate) span_id: Option<String>,
    pub(crate) parent_span_id: Option<String>,
    /// When the request's Activity began, as DateTime holds it.
    pub(crate) started: Option<u64>,
    /// When the hosting layer began to serve it, as a Stopwatch counts; it takes the time only when somebody wants it.
    pub(crate) timestamp: Option<u64>,
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

    pub(super) fn note(&self, details: &mut Details) {
        details.insert("path".into(), json!(self.path));
        details.insert("request".into(), object(self.object));
        if let Some(connection) = &self.connection {
            details.insert("connection".into(), json!(connection));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{HttpPool, Unit};
    use asynctriage_dump::Addr;

    #[test]
    fn connections_that_are_being_opened_are_told_apart() {
        let pool = |opening, limit| HttpPool {
            pool: Addr::NULL,
            origin: String::new(),
            unit: Unit::Connection,
            in_use: 4,
            limit,
            opening,
            queued: 1,
        };
        assert_eq!(pool(0, 4).use_text(), "4 of 4 in use");
        assert_eq!(pool(0, i32::MAX).use_text(), "4 in use");
        assert_eq!(
            pool(3, 4).use_text(),
            "4 of 4 in use, 3 of them still being opened"
        );
    }
}
