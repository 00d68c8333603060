//! Whom many chains wait for: the one thread or method that would complete what they all await.

use super::{Draft, Facts, fact};
use crate::words::{listed, part_waits};
use asynctriage_report::{
    ChainGroup, Completer, CompleterKind, Confidence, Finding, FindingKind, LeafKind, RootKind,
    Severity,
};
use std::collections::BTreeMap;

/// Chains that must wait for one before that is worth a finding.
const FEW: u64 = 2;
/// Groups that are named.
const MAX_CHAINS: usize = 5;

/// The chains that one would free.
struct Awaited<'g> {
    completer: &'g Completer,
    groups: Vec<&'g ChainGroup>,
    chains: u64,
    /// How many there are that are called the same.
    alike: u64,
}

pub(super) fn find(facts: Facts<'_, '_, '_>) -> Vec<Finding> {
    let groups = &facts.groups.groups;
    let total = groups.iter().map(|g| g.count).fold(0, u64::saturating_add);
    let mut by_completer: BTreeMap<(CompleterKind, String), Awaited<'_>> = BTreeMap::new();
    // who is inside a semaphore, or releases it, is told with the semaphore
    let told = |g: &&ChainGroup| matches!(g.leaf.kind, LeafKind::Semaphore | LeafKind::AsyncLock);
    for group in groups.iter().filter(|g| !told(g)) {
        for completer in &group.leaf.completers {
            let is_named = completer.confidence > Confidence::Possible
                && matches!(completer.kind, CompleterKind::Chain | CompleterKind::Thread);
            if !is_named {
                continue;
            }
            let awaited = by_completer
                .entry((completer.kind, name(completer)))
                .or_insert_with(|| Awaited {
                    completer,
                    groups: Vec::new(),
                    chains: 0,
                    alike: 0,
                });
            awaited.groups.push(group);
            awaited.chains = awaited.chains.saturating_add(completer.count);
            awaited.alike = awaited.alike.max(completer.alike);
        }
    }
    // where each wait has its own, nobody holds up several
    let is_shared = |a: &Awaited<'_>| a.chains >= a.alike.max(1).saturating_mul(FEW);
    let many = by_completer.into_values().filter(is_shared);
    let mut many: Vec<Awaited<'_>> = many.collect();
    many.sort_by_key(|a| std::cmp::Reverse(a.chains));
    many.iter().map(|a| describe(facts, a, total)).collect()
}

/// What makes two completers one: the thread, or the method.
fn name(completer: &Completer) -> String {
    match completer.thread {
        Some(thread) => thread.to_string(),
        None => completer.text.clone(),
    }
}

fn describe(facts: Facts<'_, '_, '_>, awaited: &Awaited<'_>, total: u64) -> Finding {
    let completer = awaited.completer;
    let who = match completer.kind {
        CompleterKind::Thread => "a thread",
        _ => "a method",
    };
    let for_requests = awaited.groups.iter().any(|g| {
        let root = g.root.as_ref().map(|r| r.kind);
        matches!(root, Some(RootKind::HttpRequest | RootKind::GrpcCall))
    });
    let waits = part_waits(awaited.chains, total, "chain");
    Draft {
        kind: FindingKind::Bottleneck,
        severity: if for_requests {
            Severity::Critical
        } else {
            Severity::Warning
        },
        confidence: completer.confidence,
        title: match awaited.alike {
            0 | 1 => format!("{waits} for what {who} is to complete: {}", completer.text),
            n => format!("{waits} for what {n} methods are to complete: {}", completer.text),
        },
        text: why_not(facts, completer),
        next: "find out why that one does not go on: all of these chains do when it completes what it holds",
        runbook: "bottleneck",
        evidence: vec![fact(
            format!("{} leads to what is awaited", completer.text),
            completer.object.map(|a| asynctriage_dump::Addr(a.0)),
            completer.evidence.clone(),
        )],
    }
    .with_chains(
        awaited
            .groups
            .iter()
            .map(|g| g.id.clone())
            .chain(completer.chain.clone())
            .take(MAX_CHAINS)
            .collect(),
    )
}

/// What the one does instead of completing it.
fn why_not(facts: Facts<'_, '_, '_>, completer: &Completer) -> String {
    let groups = &facts.groups.groups;
    let own = groups
        .iter()
        .find(|g| Some(&g.id) == completer.chain.as_ref());
    if let Some(group) = own {
        return format!("It waits itself, for {}.", group.leaf.text);
    }
    let id = completer.thread.unwrap_or_default();
    let mut threads = facts.hang.threads.iter();
    let thread = threads.find(|t| u64::from(t.thread.os_id) == id);
    let frames = thread.map(|t| {
        t.frames
            .iter()
            .take(3)
            .map(|f| f.name.to_string())
            .collect::<Vec<_>>()
    });
    match frames.filter(|f| !f.is_empty()) {
        Some(frames) => format!("That thread is in {}, innermost first.", listed(&frames)),
        None => "Where it is, the dump does not tell.".into(),
    }
}
