//! What most chains and requests wait for in common.

use super::{Draft, Facts, fact};
use crate::chains::{Dependency, Share, Tally};
use crate::facts::PoolUse;
use crate::libraries::client_of;
use crate::words::{listed, part_waits, verb};
use asynctriage_async_graph::NodeId;
use asynctriage_report::{
    ChainGroup, Confidence, Evidence, Finding, FindingKind, Frame, FrameKind, LeafKind, RootKind,
    Severity, duration,
};
use std::collections::BTreeMap;

/// Chains that must share something before it is called a bottleneck.
const FEW: u64 = 3;

/// The chains of one group that wait for one thing.
struct Part<'a> {
    group: &'a ChainGroup,
    tally: &'a Tally,
    share: Share,
}

/// Something that several chains have in common.
struct Common<'a> {
    dependency: Dependency,
    parts: Vec<Part<'a>>,
    share: Share,
}

pub(super) fn find(facts: Facts<'_, '_, '_>) -> Vec<Finding> {
    let groups = facts.groups.groups.iter().zip(&facts.groups.tallies);
    let groups: Vec<_> = groups.filter(|(g, _)| counts(g)).collect();
    let mut all = Share::default();
    for (_, tally) in &groups {
        all.merge(&tally.all);
    }
    // more than half of all that waits, or it explains nothing
    let explains =
        |c: &Common<'_>| c.share.units() >= FEW && c.share.units().saturating_mul(2) > all.units();
    let common: Vec<Common<'_>> = common(&groups).into_iter().filter(explains).collect();
    // what is outside of the process explains more than an object in it, and that more than a place
    let best = common.iter().max_by_key(|c| {
        let rank = match c.dependency {
            Dependency::Http(_) | Dependency::Service(_) => 2,
            Dependency::Object(_) => 1,
            Dependency::Place(_) => 0,
        };
        (rank, c.share.units())
    });
    // a full semaphore or channel has a finding of its own; what matters here is that requests hang on it
    let limited = |p: &Part<'_>| {
        let kind = p.group.leaf.kind;
        matches!(kind, LeafKind::Semaphore | LeafKind::ChannelWrite) && !is_demand(p.group)
    };
    let best = best.filter(|c| !c.parts.iter().all(limited));
    best.map(|c| describe(facts, c, &all)).into_iter().collect()
}

/// What the chains of the groups have in common: what their leaves name, the objects at their ends, the awaits of the
/// program at which they stand.
fn common<'a>(groups: &[(&'a ChainGroup, &'a Tally)]) -> Vec<Common<'a>> {
    let mut shared: BTreeMap<Dependency, Vec<Part<'a>>> = BTreeMap::new();
    for (group, tally) in groups {
        let place = place(group).map(|p| (Dependency::Place(p), tally.all.clone()));
        let shares = tally.shares.iter().map(|(d, s)| (d.clone(), s.clone()));
        for (dependency, share) in shares.chain(place) {
            shared.entry(dependency).or_default().push(Part {
                group,
                tally,
                share,
            });
        }
    }
    let common = shared.into_iter().map(|(dependency, parts)| {
        let mut share = Share::default();
        for part in &parts {
            share.merge(&part.share);
        }
        Common {
            dependency,
            parts,
            share,
        }
    });
    common.collect()
}

/// The await of the program at which a chain stands: its innermost frame that is neither .NET's nor a client library's.
fn place(group: &ChainGroup) -> Option<String> {
    let own = |f: &&Frame| !f.is_framework && client_of(&f.method).is_none();
    let frame = group
        .frames
        .iter()
        .find(|f| own(f) && f.stands_at_await())?;
    Some(format!("{} at {}", frame.method, frame.place()?))
}

/// Idle plumbing and chains that wait for work or for themselves tell nothing about a dependency.
fn counts(group: &ChainGroup) -> bool {
    use LeafKind as K;
    let idle = group
        .verdict
        .as_ref()
        .is_some_and(|v| v.state == asynctriage_report::VerdictState::Idle);
    !idle
        && !is_plumbing(group)
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

/// A loop or a call inside of a library or of .NET that nobody awaits: who has asked for it waits in a chain of its own.
fn is_plumbing(group: &ChainGroup) -> bool {
    let frames = group.frames.iter();
    let mut methods = frames.filter(|f| {
        matches!(
            f.kind,
            FrameKind::StateMachine | FrameKind::RuntimeAsync | FrameKind::AsyncIterator
        )
    });
    let nobody = group.root.as_ref().is_none_or(|r| r.kind == RootKind::None);
    let of_client = group.frames.last().is_some_and(|f| {
        f.method.starts_with("System.Net.Http.HttpClient.")
            || f.method.starts_with("System.Net.Http.HttpMessageInvoker.")
    });
    nobody && !of_client && methods.all(|f| f.is_framework || client_of(&f.method).is_some())
}

fn is_demand(group: &ChainGroup) -> bool {
    let kind = group.root.as_ref().map(|r| r.kind);
    matches!(
        kind,
        Some(RootKind::HttpRequest | RootKind::GrpcCall | RootKind::SignalrInvocation)
    )
}

fn describe(facts: Facts<'_, '_, '_>, common: &Common<'_>, all: &Share) -> Finding {
    let (dependency, parts) = (&common.dependency, common.parts.as_slice());
    let serving = parts.iter().any(|p| is_demand(p.group));
    let what = dependency_text(facts, dependency, parts);
    let by_kind = match dependency {
        Dependency::Place(_) => leaves(parts),
        _ => phases(parts),
    };
    let severity = match (serving, dependency) {
        (true, Dependency::Place(_)) => Severity::Warning,
        (true, _) => Severity::Critical,
        (false, Dependency::Http(_) | Dependency::Service(_)) => Severity::Warning,
        (false, Dependency::Object(_) | Dependency::Place(_)) => Severity::Info,
    };
    let requests = common.share.requests.len() as u64;
    let who = if serving && requests > 0 {
        part_waits(requests, all_requests(facts) as u64, "request")
    } else {
        part_waits(common.share.chains, all.chains, "chain")
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
    let opening = opening(facts, parts);
    let pool = pool_text(parts);
    let callers = callers(parts);
    let since = since(parts);
    Draft {
        kind: FindingKind::Bottleneck,
        severity,
        // that all wait for one thing does not prove that it is the cause
        confidence: Confidence::Likely,
        title: format!("{who} {what}"),
        text: format!("{}{pool}.{opening}{since}{callers}{routes}", listed(&by_kind)),
        next: match dependency {
            Dependency::Place(_) => "look at what the method waits for there, and who was to complete it",
            Dependency::Object(_) => "look at who holds it and what that one waits for; the chains named here begin at it",
            _ => "see whether it answers (ask it from this host, look at its own figures); while it does not, a shorter time limit or fewer calls at once keep the rest alive",
        },
        runbook: "bottleneck",
        evidence: evidence(facts, parts),
    }
    .with_chains(parts.iter().map(|p| p.group.id.clone()).collect())
}

/// What the connections wait for that are being opened for those who wait for one, as a sentence.
fn opening(facts: Facts<'_, '_, '_>, parts: &[Part<'_>]) -> String {
    let pools = parts.iter().filter_map(|p| p.tally.awaited.pool());
    let pools: Vec<_> = pools.collect();
    let groups = facts.groups.groups.iter().zip(&facts.groups.tallies);
    let opening: Vec<String> = groups
        .filter(|(_, tally)| pools.iter().any(|p| tally.opens.contains(p)))
        .map(|(group, _)| format!("{} x {}", group.count, group.leaf.text))
        .collect();
    if opening.is_empty() {
        String::new()
    } else {
        format!(
            " Connections are being opened for them, which wait for {}.",
            listed(&opening)
        )
    }
}

/// ` (2 of 2 in use)`: the figures of a database's pool that has none left.
fn pool_text(parts: &[Part<'_>]) -> String {
    let mut pools = parts.iter().filter_map(|p| p.tally.awaited.client_pool());
    let text = |p: PoolUse| format!(" ({} of {} of the pool in use)", p.in_use, p.limit);
    pools.next().map(text).unwrap_or_default()
}

/// When time limits end the waits, or some of them.
fn limit_text(last: f64, parts: &[Part<'_>]) -> String {
    let limited = parts.iter().map(|p| p.tally.limited());
    let limited = limited.fold(0, u64::saturating_add);
    let all = parts.iter().map(|p| p.group.count);
    let all = all.fold(0, u64::saturating_add);
    let within = duration(last);
    match limited {
        _ if limited >= all => format!("time limits end them within {within}"),
        1 => format!("a time limit ends 1 of them within {within}"),
        n => format!("time limits end {n} of them within {within}"),
    }
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
        .map(|s| limit_text(s, parts));
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
        Dependency::Http(origin) => format!("for calls of HttpClient to {origin}"),
        Dependency::Service(name) => format!("for {name}"),
        Dependency::Place(place) => format!("at the same place, {place}"),
        Dependency::Object(at) => {
            let leaf = parts
                .first()
                .map(|p| p.group.leaf.text.clone())
                .unwrap_or_default();
            let runs = |p: &Part<'_>| {
                matches!(
                    p.group.leaf.kind,
                    LeafKind::ThreadBlocked | LeafKind::TaskRunning
                )
            };
            if parts.iter().all(runs) {
                return format!("for one and the same method: {leaf}");
            }
            let name = facts
                .a
                .graph
                .node(*at)
                .and_then(|id: NodeId| facts.a.graph.object(id));
            let name = name
                .map(|n| facts.a.type_name(n.mt).to_string())
                .or_else(|| facts.a.rt.object_type_name(*at).map(|n| n.to_string()))
                .unwrap_or_default();
            format!("for one and the same object, {name} {at} ({leaf})")
        }
    }
}

/// How many chains stand at which stage.
fn phases(parts: &[Part<'_>]) -> Vec<String> {
    let mut by_kind: BTreeMap<&'static str, u64> = BTreeMap::new();
    for part in parts {
        let n = by_kind.entry(stage(part.group.leaf.kind)).or_default();
        *n = n.saturating_add(part.share.chains);
    }
    let mut all: Vec<_> = by_kind.into_iter().collect();
    all.sort_by_key(|(_, n)| std::cmp::Reverse(*n));
    all.into_iter()
        .map(|(stage, n)| format!("{n} {} {stage}", verb(n, "waits", "wait")))
        .collect()
}

/// What those wait for in the end that stand at one place.
fn leaves(parts: &[Part<'_>]) -> Vec<String> {
    let mut alike: Vec<(&str, u64)> = Vec::new();
    for part in parts {
        let (text, n) = (part.group.leaf.text.as_str(), part.share.chains);
        match alike.iter_mut().find(|(known, _)| *known == text) {
            Some((_, sum)) => *sum = sum.saturating_add(n),
            None => alike.push((text, n)),
        }
    }
    let said = alike.into_iter();
    said.map(|(text, n)| format!("{n} {} for {text}", verb(n, "waits", "wait")))
        .collect()
}

fn stage(kind: LeafKind) -> &'static str {
    match kind {
        LeafKind::HttpResponse => "for response headers (the request was sent)",
        LeafKind::HttpConnectionPool | LeafKind::DatabaseConnectionPool => {
            "for a connection of the pool"
        }
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
                format!("{} x {}", p.share.chains, p.group.leaf.text),
                at,
                p.group.leaf.evidence.clone().unwrap_or_default(),
            )
        })
        .collect()
}
