//! What most chains and requests wait for in common.

use super::{Draft, Facts, fact};
use crate::chains::{Dependency, Tally};
use crate::libraries::client_of;
use crate::words::{listed, part_waits, verb};
use asynctriage_async_graph::NodeId;
use asynctriage_report::{
    ChainGroup, Confidence, Evidence, Finding, FindingKind, Frame, LeafKind, RootKind, Severity,
    duration,
};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeMap;

/// Chains that must share something before it is called a bottleneck.
const FEW: u64 = 3;

/// The chains of one group that wait for one thing.
struct Part<'a> {
    group: &'a ChainGroup,
    tally: &'a Tally,
    count: u64,
}

pub(super) fn find(facts: Facts<'_, '_, '_>) -> Vec<Finding> {
    let groups: Vec<(&ChainGroup, &Tally)> = facts
        .groups
        .groups
        .iter()
        .zip(&facts.groups.tallies)
        .filter(|(g, _)| counts(g))
        .collect();
    let total: u64 = groups
        .iter()
        .map(|(g, _)| g.count)
        .fold(0, u64::saturating_add);
    let mut shared: BTreeMap<Dependency, Vec<Part<'_>>> = BTreeMap::new();
    for (group, tally) in &groups {
        for (dependency, count) in &dependencies(facts, tally) {
            shared.entry(dependency.clone()).or_default().push(Part {
                group,
                tally,
                count: *count,
            });
        }
    }
    let most = shared
        .iter()
        .map(|(d, parts)| {
            (
                d,
                parts,
                parts.iter().map(|p| p.count).fold(0, u64::saturating_add),
            )
        })
        .max_by_key(|(_, _, n)| *n);
    let Some((dependency, parts, count)) = most else {
        return Vec::new();
    };
    // more than half of all that waits, or it explains nothing
    if count < FEW || count.saturating_mul(2) <= total {
        return Vec::new();
    }
    // a full semaphore or channel has a finding of its own; what matters here is that requests hang on it
    let limit = parts.iter().all(|p| {
        matches!(
            p.group.leaf.kind,
            LeafKind::Semaphore | LeafKind::ChannelWrite
        )
    });
    if limit && !parts.iter().any(|p| is_demand(p.group)) {
        return Vec::new();
    }
    vec![describe(facts, dependency, parts, count, total)]
}

/// Idle plumbing and chains that wait for work or for themselves tell nothing about a dependency.
fn counts(group: &ChainGroup) -> bool {
    use LeafKind as K;
    let idle = group
        .verdict
        .as_ref()
        .is_some_and(|v| v.state == asynctriage_report::VerdictState::Idle);
    !idle
        && !matches!(
            group.leaf.kind,
            K::Cycle
                | K::Unreachable
                | K::Ready
                | K::SyncContextPost
                | K::PeriodicTimer
                | K::SocketAccept
        )
}

/// What the chains of a group wait for: what the leaf names, else the object at the very end where several share it.
fn dependencies(facts: Facts<'_, '_, '_>, tally: &Tally) -> FxHashMap<Dependency, u64> {
    if !tally.dependencies.is_empty() {
        return tally.dependencies.clone();
    }
    let shared = tally.leaves.iter().filter(|(_, n)| **n > 1);
    shared
        .filter_map(|(leaf, n)| {
            let node = facts.a.graph.object(*leaf)?;
            Some((Dependency::Object(node.addr), *n))
        })
        .collect()
}

fn is_demand(group: &ChainGroup) -> bool {
    let kind = group.root.as_ref().map(|r| r.kind);
    matches!(
        kind,
        Some(RootKind::HttpRequest | RootKind::GrpcCall | RootKind::SignalrInvocation)
    )
}

fn describe(
    facts: Facts<'_, '_, '_>,
    dependency: &Dependency,
    parts: &[Part<'_>],
    count: u64,
    total: u64,
) -> Finding {
    let requests: FxHashSet<_> = parts.iter().flat_map(|p| p.tally.requests.iter()).collect();
    let serving: u64 = parts
        .iter()
        .filter(|p| is_demand(p.group))
        .map(|p| p.count)
        .fold(0, u64::saturating_add);
    let what = dependency_text(facts, dependency, parts);
    let by_kind = phases(parts);
    let severity = match (serving, dependency) {
        (1.., _) => Severity::Critical,
        (0, Dependency::Http(_) | Dependency::Service(_)) => Severity::Warning,
        (0, Dependency::Object(_)) => Severity::Info,
    };
    let who = if serving > 0 {
        part_waits(requests.len() as u64, all_requests(facts) as u64, "request")
    } else {
        part_waits(count, total, "chain")
    };
    let mut routes: Vec<String> = parts
        .iter()
        .filter_map(|p| {
            p.group
                .root
                .as_ref()
                .filter(|r| r.kind == RootKind::HttpRequest)
        })
        .map(|r| r.text.clone())
        .collect();
    routes.sort_unstable();
    routes.dedup();
    let routes = if routes.is_empty() {
        String::new()
    } else {
        format!(" Affected: {}.", listed(&routes))
    };
    let callers = callers(parts);
    let since = since(parts);
    Draft {
        kind: FindingKind::Bottleneck,
        severity,
        // that all wait for one thing does not prove that it is the cause
        confidence: Confidence::Likely,
        title: format!("{who} for {what}"),
        text: format!("{}.{since}{callers}{routes}", listed(&by_kind)),
        next: match dependency {
            Dependency::Object(_) => "look at who holds it and what that one waits for; the chains named here begin at it",
            _ => "see whether it answers (ask it from this host, look at its own figures); while it does not, a shorter time limit or fewer calls at once keep the rest alive",
        },
        runbook: "bottleneck",
        evidence: evidence(facts, parts),
    }
    .with_chains(parts.iter().map(|p| p.group.id.clone()).collect())
}

/// For how long the oldest chain has waited, and when a time limit ends the last one.
fn since(parts: &[Part<'_>]) -> String {
    let waits = parts
        .iter()
        .filter_map(|p| p.group.waiting_seconds.as_ref());
    let oldest = waits.map(|w| w.max).max_by(f64::total_cmp);
    let oldest = oldest.map(|s| format!("the oldest has waited for {}", duration(s)));
    let limits = parts.iter().filter_map(|p| p.tally.last_due());
    let limit = limits
        .max_by(f64::total_cmp)
        .filter(|s| *s > 0.0)
        .map(|s| format!("time limits end them within {}", duration(s)));
    let all: Vec<String> = oldest.into_iter().chain(limit).collect();
    let mut text = all.join("; ");
    if let Some(first) = text.get_mut(..1) {
        first.make_ascii_uppercase();
        text = format!(" {text}.");
    }
    text
}

/// The program's methods that wait for it, each the innermost of its chains.
fn callers(parts: &[Part<'_>]) -> String {
    let own = parts.iter().filter_map(|p| {
        let mut frames = p.group.frames.iter();
        let is_own =
            |f: &&Frame| !f.is_framework && client_of(&f.method).is_none() && f.stands_at_await();
        let frame = frames.find(is_own)?;
        let at = frame.place().map(|place| format!(" at {place}"));
        let line = frame.file.as_ref().zip(frame.line);
        let line = line.map(|(file, line)| format!(" ({file}:{line})"));
        Some(format!(
            "{}{}{}",
            frame.method,
            at.unwrap_or_default(),
            line.unwrap_or_default()
        ))
    });
    let mut own: Vec<String> = own.collect();
    own.sort_unstable();
    own.dedup();
    if own.is_empty() {
        String::new()
    } else {
        format!(" The waiting calls stand in {}.", listed(&own))
    }
}

fn all_requests(facts: Facts<'_, '_, '_>) -> usize {
    facts.a.requests_in_flight(facts.groups, facts.hang).len()
}

fn dependency_text(
    facts: Facts<'_, '_, '_>,
    dependency: &Dependency,
    parts: &[Part<'_>],
) -> String {
    match dependency {
        Dependency::Http(origin) => format!("calls of HttpClient to {origin}"),
        Dependency::Service(name) => name.clone(),
        Dependency::Object(at) => {
            let leaf = parts
                .first()
                .map(|p| p.group.leaf.text.clone())
                .unwrap_or_default();
            let name = facts
                .a
                .graph
                .node(*at)
                .and_then(|id: NodeId| facts.a.graph.object(id));
            let name = name
                .map(|n| facts.a.type_name(n.mt).to_string())
                .or_else(|| facts.a.rt.object_type_name(*at).map(|n| n.to_string()))
                .unwrap_or_default();
            format!("one and the same object, {name} {at} ({leaf})")
        }
    }
}

/// How many chains stand at which stage.
fn phases(parts: &[Part<'_>]) -> Vec<String> {
    let mut by_kind: BTreeMap<&'static str, u64> = BTreeMap::new();
    for part in parts {
        let n = by_kind.entry(stage(part.group.leaf.kind)).or_default();
        *n = n.saturating_add(part.count);
    }
    let mut all: Vec<_> = by_kind.into_iter().collect();
    all.sort_by_key(|(_, n)| std::cmp::Reverse(*n));
    all.into_iter()
        .map(|(stage, n)| format!("{n} {} {stage}", verb(n, "waits", "wait")))
        .collect()
}

fn stage(kind: LeafKind) -> &'static str {
    match kind {
        LeafKind::HttpResponse => "for response headers (the request was sent)",
        LeafKind::HttpConnectionPool => "for a connection of the pool",
        LeafKind::HttpBody => "for the rest of a response",
        LeafKind::HttpRequestBody => "until the request's body is sent",
        LeafKind::Semaphore => "to enter the semaphore",
        LeafKind::ChannelWrite => "for space in the channel",
        LeafKind::Database | LeafKind::Cache | LeafKind::Grpc | LeafKind::MessageBroker => {
            "for an answer"
        }
        _ => "for it",
    }
}

fn evidence(facts: Facts<'_, '_, '_>, parts: &[Part<'_>]) -> Vec<Evidence> {
    parts
        .iter()
        .map(|p| {
            let at = p
                .tally
                .leaves
                .keys()
                .min()
                .and_then(|id| facts.a.graph.object(*id))
                .map(|n| n.addr);
            fact(
                format!("{} x {}", p.count, p.group.leaf.text),
                at,
                p.group.leaf.evidence.clone().unwrap_or_default(),
            )
        })
        .collect()
}
