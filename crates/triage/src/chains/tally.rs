//! What the chains of a group have in common, counted chain by chain: groups show one of them only.

use super::ages::{self, Since, is_http};
use crate::facts::{Awaited, Purpose, Timer};
use crate::libraries::http_client;
use crate::paths::timers::due_text;
use crate::paths::{Analysis, Path};
use crate::process::Clock;
use asynctriage_async_graph::{Helper, NodeId};
use asynctriage_dump::Addr;
use asynctriage_report::{Leaf, LeafKind, Waiting};
use rustc_hash::{FxHashMap, FxHashSet};
use serde_json::json;

/// Something outside of a method that it waits for and that others may wait for, too.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Dependency {
    /// A server that HttpClient talks to, by its origin.
    Http(String),
    /// A database, cache, broker or gRPC server, as its leaf names it.
    Service(String),
    /// An object: a semaphore, a channel, a task that several await.
    Object(Addr),
    /// An await of a method of the program.
    Place(String),
}

/// Chains that have something in common. A request that waits in several chains, as with WhenAll, counts once.
#[derive(Clone, Debug, Default)]
pub(crate) struct Share {
    pub(crate) chains: u64,
    /// Chains that serve no request.
    pub(crate) others: u64,
    pub(crate) requests: FxHashSet<Addr>,
}

impl Share {
    fn add(&mut self, request: Option<Addr>) {
        self.chains = self.chains.saturating_add(1);
        match request {
            Some(request) => {
                self.requests.insert(request);
            }
            None => self.others = self.others.saturating_add(1),
        }
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        self.chains = self.chains.saturating_add(other.chains);
        self.others = self.others.saturating_add(other.others);
        self.requests.extend(&other.requests);
    }

    /// Requests, and chains that serve none.
    pub(crate) fn units(&self) -> u64 {
        self.others.saturating_add(self.requests.len() as u64)
    }
}

/// The chains of one group.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tally {
    /// What the first of them waits for, and what it is for.
    pub(crate) awaited: Awaited,
    pub(crate) purpose: Option<Purpose>,
    /// Who waits for each thing: what the leaf names, else the object at the very end.
    pub(crate) shares: FxHashMap<Dependency, Share>,
    /// Who waits at all.
    pub(crate) all: Share,
    /// Chains by the object that they wait on at the very end.
    pub(crate) leaves: FxHashMap<NodeId, u64>,
    /// The pools of HttpClient that they open connections for.
    pub(crate) opens: FxHashSet<Addr>,
    /// The requests that they serve (protocol objects).
    pub(crate) requests: Vec<Addr>,
    /// Their calls of HttpClient that wait: protocol object and message.
    pub(crate) calls: Vec<(Addr, Addr)>,
    /// For how long the requests have waited at least, of those whose wait tells.
    pub(crate) at_least: FxHashMap<Addr, f64>,
    /// For how long they have waited, of those that tell.
    since: Vec<Since>,
    /// Seconds until the timers fire that end them.
    due: Vec<f64>,
}

/// One chain's part in it.
#[derive(Debug)]
pub(crate) struct Note {
    dependency: Option<Dependency>,
    leaf: NodeId,
    request: Option<Addr>,
    /// The message of HttpClient whose response or connection is waited for.
    message: Option<Addr>,
    opens: Option<Addr>,
    since: Option<Since>,
    due: Option<f64>,
}

impl Note {
    pub(crate) fn of(
        analysis: &Analysis<'_, '_>,
        path: &Path,
        awaited: &Awaited,
        purpose: Option<&Purpose>,
    ) -> Self {
        let facts = purpose.and_then(Purpose::request);
        let timer = ending_timer(analysis, path, awaited);
        Self {
            since: analysis.since(path, awaited.kind(), timer, facts),
            due: timer.and_then(|t| analysis.due_in(t)),
            dependency: dependency(analysis, awaited)
                .or_else(|| Some(Dependency::Object(analysis.graph.object(path.leaf)?.addr))),
            leaf: path.leaf,
            message: awaited.message(),
            opens: opens(analysis, path),
            request: facts.map(|f| f.object),
        }
    }
}

/// The pool whose method a chain ends with: it opens a connection for whoever waits for one.
fn opens(analysis: &Analysis<'_, '_>, path: &Path) -> Option<Addr> {
    let last = analysis.steps(path).next_back()?;
    if !analysis.step_name(last).starts_with(http_client::POOL) {
        return None;
    }
    let pools = analysis.graph.helpers(Helper::HttpPool);
    let mut variables = analysis.captured(last).into_iter();
    variables.find(|v| pools.contains(v))
}

/// The timer that a chain waits for, or that limits its wait.
fn ending_timer(analysis: &Analysis<'_, '_>, path: &Path, awaited: &Awaited) -> Option<Timer> {
    let own = awaited.timer();
    own.or_else(|| analysis.time_limit(path, is_http(awaited.kind())))
}

impl Tally {
    pub(super) fn new(awaited: Awaited, purpose: Option<Purpose>) -> Self {
        Self {
            awaited,
            purpose,
            ..Self::default()
        }
    }

    pub(crate) fn add(&mut self, note: Note) {
        let leaf = self.leaves.entry(note.leaf).or_default();
        *leaf = leaf.saturating_add(1);
        if let Some(dependency) = note.dependency {
            self.shares.entry(dependency).or_default().add(note.request);
        }
        self.all.add(note.request);
        self.requests.extend(note.request);
        self.calls.extend(note.request.zip(note.message));
        self.opens.extend(note.opens);
        if let (Some(request), Some((witness, seconds))) = (note.request, note.since)
            && witness.is_own()
        {
            let longest = self.at_least.entry(request).or_default();
            *longest = longest.max(seconds);
        }
        self.since.extend(note.since);
        self.due.extend(note.due);
    }

    /// For how long the chains have waited; `None` when nothing tells.
    pub(crate) fn waiting(&self, clock: &Clock) -> Option<Waiting> {
        ages::waiting(&self.since, clock)
    }

    /// Seconds until the last of the timers fires that end the chains.
    pub(crate) fn last_due(&self) -> Option<f64> {
        self.due.iter().copied().max_by(f64::total_cmp)
    }

    /// How many of the chains a timer ends.
    pub(crate) fn limited(&self) -> u64 {
        self.due.len() as u64
    }

    /// Seconds until the first of them fires.
    pub(crate) fn first_due(&self) -> Option<f64> {
        self.due.iter().copied().min_by(f64::total_cmp)
    }

    /// When the timers fire that end the chains; `None` when none does.
    pub(crate) fn due_text(&self, clock: &Clock) -> Option<String> {
        due_text(&self.due, clock.is_floor)
    }

    /// When the timers fire that end the chains, added to what they wait for.
    pub(crate) fn note_due(&self, leaf: &mut Leaf, clock: &Clock) {
        let Some(when) = self.due_text(clock) else {
            return;
        };
        let own = matches!(leaf.kind, LeafKind::Delay | LeafKind::PeriodicTimer);
        let text = if own {
            format!(", {when}")
        } else {
            format!("; a time limit ends it, {when}")
        };
        leaf.text.push_str(&text);
        let bound = |of: fn(f64, f64) -> f64| self.due.iter().copied().reduce(of);
        leaf.details.insert(
            "due_in_seconds".into(),
            json!({ "min": bound(f64::min), "max": bound(f64::max) }),
        );
        let how = format!("start and due time of each timer, against {}", clock.how);
        leaf.details.insert("due_how".into(), json!(how));
    }
}

fn dependency(analysis: &Analysis<'_, '_>, awaited: &Awaited) -> Option<Dependency> {
    match awaited {
        Awaited::HttpPool(pool) => Some(Dependency::Http(pool.as_ref()?.origin.clone())),
        Awaited::Http { .. } => {
            http_client::origin_of(analysis.rt, awaited.message()?).map(Dependency::Http)
        }
        Awaited::Semaphore { at, .. } => Some(Dependency::Object(*at)),
        Awaited::Channel {
            at, writes: true, ..
        } => at.map(Dependency::Object),
        // a request that is not sent has not asked its server
        _ => Some(Dependency::Service(awaited.server()?.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chains_add_up_by_what_they_wait_for() {
        let note = |object, leaf| Note {
            dependency: Some(Dependency::Object(Addr(object))),
            leaf: NodeId::new(leaf),
            request: None,
            message: None,
            opens: None,
            since: None,
            due: None,
        };
        let mut tally = Tally::default();
        for (object, leaf) in [(1, 1), (1, 2), (2, 2)] {
            tally.add(note(object, leaf));
        }
        let share = tally.shares.get(&Dependency::Object(Addr(1))).unwrap();
        assert_eq!((share.chains, share.units(), tally.all.units()), (2, 2, 3));
        assert_eq!(tally.leaves.get(&NodeId::new(2)), Some(&2));
    }
}
