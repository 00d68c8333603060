//! Waits that nothing can end: nobody is left who could complete what is awaited.
//!
//! An object can be completed by whoever can reach it. The heap is marked from the roots without passing through the
//! methods that wait for it, as those cannot run before it is complete. What is not reached then stays incomplete for
//! ever. Objects whose waiters could complete one another are tested together: the set shrinks until it is stable.

use super::{Draft, Facts, fact};
use crate::words::{listed, several, waits};
use asynctriage_async_graph::{Class, Combinator, NodeId};
use asynctriage_clr::Roots;
use asynctriage_dump::Addr;
use asynctriage_report::{
    ChainGroup, Confidence, Finding, FindingKind, LeafKind, RootKind, Severity,
};
use rustc_hash::FxHashSet;

/// Awaited objects that are tested.
const MAX_SUSPECTS: usize = 100_000;
/// Rounds until the set must be stable; without an end nothing is claimed.
const MAX_ROUNDS: usize = 6;
/// Methods that a finding names.
const MAX_METHODS: usize = 8;

pub(super) fn find(facts: Facts<'_, '_, '_>) -> Vec<Finding> {
    let lost = lost_objects(facts);
    if lost.is_empty() {
        return Vec::new();
    }
    // a deadlock tells more
    let deadlocked = facts.deadlocks.semaphores();
    let graph = &facts.a.graph;
    let is_deadlocked = |id: NodeId| {
        let object = graph.object(id);
        let semaphore = object.and_then(|n| graph.semaphores.get(&n.addr));
        semaphore.is_some_and(|s| deadlocked.contains(s))
    };
    let groups = facts.groups.groups.iter().zip(&facts.groups.tallies);
    groups
        .filter(|(group, _)| is_missed(group) && somebody_completes(group.leaf.kind))
        .filter_map(|(group, tally)| {
            let mine: Vec<NodeId> = tally
                .leaves
                .keys()
                .copied()
                .filter(|id| lost.contains(id) && !is_deadlocked(*id))
                .collect();
            let count: u64 = mine
                .iter()
                .filter_map(|id| tally.leaves.get(id))
                .fold(0, |sum, n| sum.saturating_add(*n));
            let first = mine.iter().min().copied()?;
            let requests = !tally.requests.is_empty();
            Some(describe(facts, group, first, count, requests))
        })
        .collect()
}

/// Whether anybody waits for the end of the chains: what nobody misses was given up, and hangs nobody.
fn is_missed(group: &ChainGroup) -> bool {
    let kind = group.root.as_ref().map_or(RootKind::None, |r| r.kind);
    !matches!(
        kind,
        RootKind::None | RootKind::AsyncVoid | RootKind::Activity
    )
}

/// Whether such a thing is completed by code that holds it, rather than by time or by the operating system.
fn somebody_completes(kind: LeafKind) -> bool {
    use LeafKind as K;
    matches!(
        kind,
        K::TaskCompletionSource
            | K::ValueTaskSource
            | K::Semaphore
            | K::AsyncLock
            | K::ChannelRead
            | K::ChannelWrite
            | K::PipeRead
            | K::PipeWrite
            | K::Database
            | K::DatabaseConnectionPool
            | K::Cache
            | K::MessageBroker
            | K::Grpc
    )
}

/// Awaited objects at the end of chains that no root reaches except through those who wait for them.
fn lost_objects(facts: Facts<'_, '_, '_>) -> FxHashSet<NodeId> {
    let graph = &facts.a.graph;
    let groups = facts.groups.groups.iter().zip(&facts.groups.tallies);
    let mut suspects: FxHashSet<NodeId> = groups
        .filter(|(g, _)| somebody_completes(g.leaf.kind))
        .flat_map(|(_, tally)| tally.leaves.keys().copied())
        .filter(|id| !facts.a.is_completed_by_system(*id))
        .take(MAX_SUSPECTS)
        .collect();
    for _ in 0..MAX_ROUNDS {
        if suspects.is_empty() {
            return suspects;
        }
        let barred = waiters_of(facts, &suspects);
        let objects = suspects.iter().filter_map(|id| graph.object(*id));
        let reached = facts.a.rt.reached_around(
            &graph.heap,
            facts.a.roots(),
            &barred,
            objects.map(|n| n.addr),
        );
        let before = suspects.len();
        suspects.retain(|id| {
            graph
                .object(*id)
                .is_some_and(|n| !reached.contains(&n.addr))
        });
        if suspects.len() == before {
            return suspects;
        }
    }
    FxHashSet::default()
}

/// The objects of everything that waits for some nodes, directly or through others, and cannot go on before they are
/// complete. Whatever else completes a `WhenAny` or the time limit of a `WaitAsync` ends the wait as well, so the marking
/// goes through those.
fn waiters_of(facts: Facts<'_, '_, '_>, nodes: &FxHashSet<NodeId>) -> Vec<Addr> {
    let graph = &facts.a.graph;
    let mut seen: FxHashSet<NodeId> = FxHashSet::default();
    let mut todo: Vec<NodeId> = nodes.iter().copied().collect();
    let mut out = Vec::new();
    while let Some(id) = todo.pop() {
        todo.extend(graph.waiters(id).filter(|w| seen.insert(*w)));
    }
    for id in seen.iter().filter(|id| !nodes.contains(id)) {
        let Some(node) = graph.object(*id) else {
            continue;
        };
        let ends_otherwise = matches!(
            node.class,
            Class::Combinator(Combinator::WhenAny | Combinator::WaitAsync)
        );
        if !ends_otherwise {
            out.push(node.addr);
        }
        let frames = graph.operations.get(id).into_iter();
        out.extend(frames.flat_map(|o| o.frames.iter().map(|f| f.continuation)));
    }
    out
}

fn describe(
    facts: Facts<'_, '_, '_>,
    group: &ChainGroup,
    first: NodeId,
    count: u64,
    requests: bool,
) -> Finding {
    let methods: Vec<&str> = group
        .frames
        .iter()
        .filter(|f| f.stands_at_await())
        .take(MAX_METHODS)
        .map(|f| f.method.as_str())
        .collect();
    let node = facts.a.graph.object(first);
    let name = node
        .map(|n| facts.a.type_name(n.mt).to_string())
        .unwrap_or_default();
    let doubts = doubts(facts);
    let mut text = format!(
        "{} ({}) for {name}, which nothing reaches except the waiting methods themselves: nobody is left who could complete it.",
        waits(count, "chain"),
        listed(&methods),
    );
    if !doubts.is_empty() {
        text.push_str(&format!(
            " Not all could be looked at: {}.",
            listed(&doubts)
        ));
    }
    Draft {
        kind: FindingKind::NeverCompletes,
        severity: if requests {
            Severity::Critical
        } else {
            Severity::Warning
        },
        // one reference that damage took away looks the same, and no other word tells of it
        confidence: if doubts.is_empty() {
            Confidence::Likely
        } else {
            Confidence::Possible
        },
        title: format!(
            "{} in {} for what nothing can complete",
            waits(count, "chain"),
            methods.first().copied().unwrap_or("a method"),
        ),
        text,
        next: "find where the awaited object is made and which path forgets to complete it",
        runbook: "never-completes",
        evidence: vec![fact(
            format!("{name} is not complete and not reached"),
            node.map(|n| n.addr),
            format!(
                "marking from the roots, without passing through the methods that wait for it. {}",
                roots_text(facts.a.roots())
            ),
        )],
    }
    .with_chains(vec![group.id.clone()])
}

/// What was taken for a root.
fn roots_text(roots: &Roots) -> String {
    let counts = &roots.counts;
    format!(
        "Roots were {}, {}, statics, thread statics, the pinned and the frozen heap, and {} with a finalizer that has yet to run ({} in its queue); {} keep a value while its key lives; weak handles keep nothing.",
        several(counts.stacks, "stack"),
        several(counts.handles, "strong handle"),
        several(counts.finalizable, "object"),
        counts.to_finalize,
        several(roots.dependent.len() as u64, "dependent handle"),
    )
}

/// What keeps the claim from being certain.
fn doubts(facts: Facts<'_, '_, '_>) -> Vec<&'static str> {
    let heap = &facts.a.graph.heap;
    let mut doubts = facts.a.roots().missing.clone();
    if !heap.bad.is_empty() || !heap.gaps.is_empty() {
        doubts.push("parts of the heap");
    }
    doubts
}
