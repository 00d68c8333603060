//! What the chains of a group have in common, counted chain by chain: groups show one of them only.

use crate::analysis::Analysis;
use crate::clock::{self, Clock};
use crate::http;
use crate::paths::Path;
use asynctriage_async_graph::NodeId;
use asynctriage_dump::Addr;
use asynctriage_report::{Leaf, LeafKind, Root, RootKind, Waiting};
use rustc_hash::FxHashMap;

/// Something outside of a method that it waits for and that others may wait for, too.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Dependency {
    /// A server that HttpClient talks to, by its origin.
    Http(String),
    /// An object: a semaphore, a channel, a task that several await.
    Object(Addr),
}

/// The chains of one group.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tally {
    /// How many chains wait for each thing.
    pub(crate) dependencies: FxHashMap<Dependency, u64>,
    /// Chains by the object that they wait on at the very end.
    pub(crate) leaves: FxHashMap<NodeId, u64>,
    /// The requests that they serve (protocol objects).
    pub(crate) requests: Vec<Addr>,
    /// For how long they have waited, in seconds, of those that tell.
    seconds: Vec<f64>,
}

/// One chain's part in it.
#[derive(Debug)]
pub(crate) struct Note {
    dependency: Option<Dependency>,
    leaf: NodeId,
    request: Option<Addr>,
    seconds: Option<f64>,
}

impl Note {
    pub(crate) fn of(
        analysis: &Analysis<'_, '_>,
        path: &Path,
        leaf: &Leaf,
        root: Option<&Root>,
    ) -> Self {
        let is_request = root.is_some_and(|r| r.kind == RootKind::HttpRequest);
        let calls_http = matches!(
            leaf.kind,
            LeafKind::HttpResponse
                | LeafKind::HttpConnectionPool
                | LeafKind::HttpBody
                | LeafKind::HttpRequestBody
        );
        let mut steps = analysis.steps(path).filter(|_| calls_http);
        Self {
            seconds: steps.find_map(|s| analysis.http_call_seconds(&analysis.captured(s))),
            dependency: dependency(analysis, leaf),
            leaf: path.leaf,
            request: root
                .filter(|_| is_request)
                .and_then(|r| address(r.details.get("request"))),
        }
    }
}

impl Tally {
    pub(crate) fn add(&mut self, note: Note) {
        let leaf = self.leaves.entry(note.leaf).or_default();
        *leaf = leaf.saturating_add(1);
        if let Some(dependency) = note.dependency {
            let n = self.dependencies.entry(dependency).or_default();
            *n = n.saturating_add(1);
        }
        self.requests.extend(note.request);
        self.seconds.extend(note.seconds);
    }

    /// For how long the chains have waited; `None` when nothing tells.
    pub(crate) fn waiting(&self, clock: &Clock) -> Option<Waiting> {
        let how = format!(
            "start of the time limit of the HttpClient call, against {}",
            clock.how
        );
        clock::waiting(self.seconds.clone(), &how)
    }
}

fn dependency(analysis: &Analysis<'_, '_>, leaf: &Leaf) -> Option<Dependency> {
    let text = |key: &str| leaf.details.get(key);
    match leaf.kind {
        LeafKind::HttpConnectionPool => text("origin")?
            .as_str()
            .map(|o| Dependency::Http(o.to_owned())),
        LeafKind::HttpResponse | LeafKind::HttpBody | LeafKind::HttpRequestBody => {
            let message = address(text("request"))?;
            http::origin_of(analysis.rt, message).map(Dependency::Http)
        }
        LeafKind::Semaphore => address(text("semaphore")).map(Dependency::Object),
        LeafKind::ChannelWrite => address(text("channel")).map(Dependency::Object),
        _ => None,
    }
}

/// An address as details write it.
pub(crate) fn address(value: Option<&serde_json::Value>) -> Option<Addr> {
    let text = value?.as_str()?.strip_prefix("0x")?;
    u64::from_str_radix(text, 16).ok().map(Addr)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn addresses_come_back_from_details() {
        let at = Addr(0x7ff3_9d80_bb20);
        assert_eq!(address(Some(&json!(at.to_string()))), Some(at));
        assert_eq!(address(Some(&json!(12))), None);
        assert_eq!(address(None), None);
    }

    #[test]
    fn chains_add_up_by_what_they_wait_for() {
        let note = |object, leaf| Note {
            dependency: Some(Dependency::Object(Addr(object))),
            leaf: NodeId::new(leaf),
            request: None,
            seconds: None,
        };
        let mut tally = Tally::default();
        for (object, leaf) in [(1, 1), (1, 2), (2, 2)] {
            tally.add(note(object, leaf));
        }
        assert_eq!(
            tally.dependencies.get(&Dependency::Object(Addr(1))),
            Some(&2)
        );
        assert_eq!(tally.leaves.get(&NodeId::new(2)), Some(&2));
    }
}
