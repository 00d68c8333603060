//! Waits for the server of a client library.

use super::object;
use asynctriage_dump::Addr;
use asynctriage_report::{Details, LeafKind};
use serde_json::{Value, json};

/// A call of a client library, or a connection that it wants. Libraries make it in their own files; what is asked of the
/// server is in their own words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ClientWait {
    pub(crate) kind: LeafKind,
    /// The server, as sentences name it: `database shop on db:5432`.
    pub(crate) server: Option<String>,
    /// What it is called where it is not known.
    pub(crate) unnamed: &'static str,
    /// What is asked of it.
    pub(crate) asks: Option<String>,
    /// Connections of the library's pool, where one of those is wanted.
    pub(crate) pool: Option<PoolUse>,
    /// More for the details of the report.
    pub(crate) facts: Vec<(&'static str, Fact)>,
}

/// Connections of the pool of a client library.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PoolUse {
    pub(crate) at: Addr,
    pub(crate) in_use: i32,
    pub(crate) limit: i32,
}

/// One of the details that only the library itself knows the meaning of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Fact {
    Object(Addr),
    Text(Option<String>),
    Number(i32),
}

impl Fact {
    fn value(&self) -> Value {
        match self {
            Self::Object(at) => object(*at),
            Self::Text(text) => json!(text),
            Self::Number(number) => json!(number),
        }
    }
}

impl ClientWait {
    /// A wait for a server of which nothing more is known.
    pub(crate) const fn new(kind: LeafKind, server: Option<String>) -> Self {
        Self {
            kind,
            server,
            unnamed: "",
            asks: None,
            pool: None,
            facts: Vec::new(),
        }
    }

    pub(super) fn text(&self) -> String {
        let server = self.server.as_deref().unwrap_or(self.unnamed);
        match (&self.asks, &self.pool) {
            (Some(asks), _) => format!("{server}: {asks}"),
            (None, Some(pool)) => format!(
                "{server}: a connection of the pool ({} of {} in use)",
                pool.in_use, pool.limit
            ),
            (None, None) => server.to_owned(),
        }
    }

    /// Whether it says which server and leaves open what is asked of it.
    pub(super) fn is_server_alone(&self) -> bool {
        self.server.is_some() && self.asks.is_none() && self.pool.is_none()
    }

    pub(super) fn note(&self, details: &mut Details) {
        details.insert("dependency".into(), json!(self.server));
        if let Some(pool) = &self.pool {
            details.insert("pool".into(), object(pool.at));
            details.insert("in_use".into(), json!(pool.in_use));
            details.insert("limit".into(), json!(pool.limit));
        }
        for (key, fact) in &self.facts {
            details.insert((*key).into(), fact.value());
        }
    }
}
