//! Methods that could go on and do not.

use super::{Draft, Facts, fact};
use crate::threads::PoolFacts;
use crate::words::{several, verb, waits};
use asynctriage_report::{Confidence, Finding, FindingKind, LeafKind, Severity};

/// Chains from which on it is said: a few are on their way in any process.
const FEW: u64 = 20;

pub(super) fn find(facts: Facts<'_, '_, '_>) -> Vec<Finding> {
    let ready: Vec<_> = facts
        .groups
        .groups
        .iter()
        .filter(|g| g.leaf.kind == LeafKind::Ready)
        .collect();
    let count = ready.iter().map(|g| g.count).fold(0, u64::saturating_add);
    let queued = facts.a.graph.queues.items().count() as u64;
    let pool = facts.a.pool_facts();
    let idle = pool.as_ref().and_then(PoolFacts::idle).unwrap_or(0);
    if count < FEW {
        return Vec::new();
    }
    // idle workers beside a full queue: either the moment of the dump, or nobody woke them
    let stranded = queued > 0 && idle > 0;
    let (severity, why) = if stranded {
        (
            Severity::Warning,
            format!(
                "{} {} idle although the pool's queues hold {}: they may just be waking up; if a second dump shows the same, the pool was not told",
                several(idle, "worker"),
                verb(idle, "is", "are"),
                several(queued, "work item")
            ),
        )
    } else {
        (
            Severity::Info,
            format!(
                "{} stand in the pool's queues",
                several(queued, "work item")
            ),
        )
    };
    vec![
        Draft {
            kind: FindingKind::ReadyNotRunning,
            severity,
            confidence: Confidence::Possible,
            title: format!("{} could go on and {} not run", several(count, "method"), verb(count, "does", "do")),
            text: format!(
                "What {} for is complete, but {} not resumed yet: {why}.",
                waits(count, "method"),
                verb(count, "it is", "they are")
            ),
            next: "take a second dump some seconds later: the same chains there mean that the pool does not get to them",
            runbook: "ready-not-running",
            evidence: ready
                .iter()
                .map(|g| {
                    fact(
                        format!("{} x {}", g.count, g.leaf.text),
                        g.frames.first().and_then(|f| f.address).map(|a| asynctriage_dump::Addr(a.0)),
                        g.leaf.evidence.clone().unwrap_or_default(),
                    )
                })
                .collect(),
        }
        .with_chains(ready.iter().map(|g| g.id.clone()).collect()),
    ]
}
