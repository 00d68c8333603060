//! Blocking collections: their consumers and producers block threads on two semaphores inside.

use super::{Draft, Facts, fact};
use crate::paths::Analysis;
use crate::words::{several, verb};
use asynctriage_async_graph::Helper;
use asynctriage_dump::Addr;
use asynctriage_report::{Confidence, Finding, FindingKind, Severity};
use rustc_hash::FxHashMap;

/// What a semaphore inside a collection counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Counts {
    /// Items: consumers wait for it.
    Items,
    /// Free places: producers wait for it.
    Places,
}

/// The fields of BlockingCollection that hold a semaphore (8.0 to 11.0).
const FIELDS: [(&str, Counts); 2] = [
    ("_occupiedNodes", Counts::Items),
    ("_freeNodes", Counts::Places),
];

/// The semaphores inside blocking collections, with the collection.
pub(super) fn counters(analysis: &Analysis<'_, '_>) -> FxHashMap<Addr, (Addr, Counts)> {
    let collections = analysis.graph.helpers(Helper::BlockingCollection).iter();
    let of = |collection: &Addr| {
        FIELDS.map(|(field, counts)| {
            let semaphore = analysis.rt.reference(*collection, field)?;
            Some((semaphore, (*collection, counts)))
        })
    };
    collections.flat_map(of).flatten().collect()
}

/// Bounded collections without a free place that threads wait to add to. Consumers of an empty one are idle.
pub(super) fn full(facts: Facts<'_, '_, '_>) -> Vec<Finding> {
    let rt = facts.a.rt;
    let mut full: Vec<(Addr, Addr, u32)> = counters(facts.a)
        .into_iter()
        .filter(|(_, (_, counts))| *counts == Counts::Places)
        .filter_map(|(semaphore, (collection, _))| {
            let free = rt.field_i32(semaphore, "m_currentCount")?;
            let waiting = rt.field_u32(semaphore, "m_waitCount")?;
            (free == 0 && waiting > 0).then_some((collection, semaphore, waiting))
        })
        .collect();
    full.sort_unstable();
    let describe = |(collection, semaphore, waiting): (Addr, Addr, u32)| {
        let capacity = rt.field_i32(collection, "_boundedCapacity").unwrap_or(0);
        let threads = several(waiting.into(), "thread");
        let wait = verb(waiting.into(), "waits", "wait");
        Draft {
            kind: FindingKind::ChannelFull,
            // a bounded collection is there to slow its producer down
            severity: if waiting > 1 {
                Severity::Warning
            } else {
                Severity::Info
            },
            confidence: Confidence::Likely,
            title: format!("BlockingCollection {collection} is full ({capacity}): {threads} {wait} to add"),
            text: format!(
                "A BlockingCollection holds {capacity} of {capacity} items, {threads} {wait} for space."
            ),
            next: "find the consumer of the collection among the threads and see what it waits for",
            runbook: "channel-full",
            evidence: vec![fact(
                format!("no free place, {threads} in Wait"),
                Some(semaphore),
                "BlockingCollection: _freeNodes, a SemaphoreSlim, and _boundedCapacity",
            )],
        }
        .finish()
    };
    full.into_iter().map(describe).collect()
}
