//! Deadlocks: threads, methods and locks that wait for each other.

mod ending;
mod kind;
mod words;

use super::{Draft, Facts, fact};
use crate::facts::Awaited;
use crate::threads::Wait;
use crate::waitfor::{Knot, Node};
use crate::words::listed;
use asynctriage_dump::Addr;
use asynctriage_report::{ChainGroup, Evidence, Finding, FindingKind};
use ending::Ending;
use kind::Crossed;
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use words::Words;

/// The members of a deadlock by name, for others than findings.
pub(crate) struct KnotNames<'a, 'r, 'd, 'k>(Words<'a, 'r, 'd, 'k>);

impl<'a, 'r, 'd, 'k> KnotNames<'a, 'r, 'd, 'k> {
    pub(crate) fn new(facts: Facts<'a, 'r, 'd>, knot: &'k Knot) -> Self {
        Self(Words { facts, knot })
    }

    /// A member by name.
    pub(crate) fn name(&self, node: Node) -> String {
        self.0.name(node)
    }

    /// The method or methods of a member; `None` for tasks that only stand between others.
    pub(crate) fn method(&self, node: Node) -> Option<String> {
        match node {
            Node::Async(id) => self.0.method(id),
            _ => None,
        }
    }

    /// Where a member is.
    pub(crate) fn address(&self, node: Node) -> Option<Addr> {
        self.0.address(node)
    }
}

/// Members that are told with what they wait for; the rest is counted.
const MAX_STEPS: usize = 20;

/// Knots that look the same.
struct Alike<'k> {
    first: &'k Knot,
    count: u64,
    chains: Vec<String>,
}

pub(super) fn find(facts: Facts<'_, '_, '_>) -> Vec<Finding> {
    let mut out = Vec::new();
    let mut alike: Vec<Alike<'_>> = Vec::new();
    let mut known: FxHashMap<(FindingKind, Vec<String>), usize> = FxHashMap::default();
    for knot in &facts.deadlocks.knots {
        let kind = Crossed::by(facts, knot).kind();
        if kind == FindingKind::AwaitCycle && cycle_group(facts, knot).is_some() {
            continue;
        }
        let shape = (kind, Words { facts, knot }.shape());
        match known.get(&shape).and_then(|i| alike.get_mut(*i)) {
            Some(same) => {
                same.count = same.count.saturating_add(1);
                same.chains.extend(chains(facts, knot));
            }
            None => {
                known.insert(shape, alike.len());
                alike.push(Alike {
                    first: knot,
                    count: 1,
                    chains: chains(facts, knot),
                });
            }
        }
    }
    out.extend(alike.into_iter().map(|a| describe(facts, a)));
    out.extend(await_cycles(facts));
    out
}

/// Methods that await each other are groups of chains already; those that can go on are left out.
fn await_cycles(facts: Facts<'_, '_, '_>) -> Vec<Finding> {
    let mut groups: BTreeMap<usize, Ending> = BTreeMap::new();
    for knot in &facts.deadlocks.knots {
        if Crossed::by(facts, knot).kind() == FindingKind::AwaitCycle
            && let Some(group) = cycle_group(facts, knot)
        {
            let links = knot.edges.iter().map(|(_, _, e)| e.confidence).min();
            let ending = Ending::of(facts, knot, links.unwrap_or_default());
            match groups.get_mut(&group) {
                Some(known) if known.confidence <= ending.confidence => {}
                Some(known) => *known = ending,
                None => {
                    groups.insert(group, ending);
                }
            }
        }
    }
    let found = groups.into_iter().filter_map(|(index, ending)| {
        let group = facts.groups.groups.get(index)?;
        Some(await_cycle(group, &ending))
    });
    found.collect()
}

/// The group of chains that a knot of methods is one of.
fn cycle_group(facts: Facts<'_, '_, '_>, knot: &Knot) -> Option<usize> {
    let groups = facts.groups.groups.iter().zip(&facts.groups.tallies);
    let mut groups = groups
        .enumerate()
        .filter(|(_, (_, tally))| matches!(tally.awaited, Awaited::Cycle { .. }));
    groups
        .find(|(_, (_, tally))| {
            let mut members = knot.members.iter();
            members.any(|m| matches!(m, Node::Async(id) if tally.leaves.contains_key(id)))
        })
        .map(|(i, _)| i)
}

fn await_cycle(group: &ChainGroup, ending: &Ending) -> Finding {
    let methods: Vec<&str> = group.frames.iter().map(|f| f.method.as_str()).collect();
    let what = match methods.as_slice() {
        [one] => format!("{one} awaits itself"),
        _ => format!("{} await each other", listed(&methods)),
    };
    let evidence = group.frames.iter().map(|f| Evidence {
        what: format!(
            "{} stands at {}",
            f.method,
            f.place().unwrap_or_else(|| "an await".into())
        ),
        address: f.address,
        how: f.evidence.clone().unwrap_or_default(),
        ..Evidence::default()
    });
    Draft {
        kind: FindingKind::AwaitCycle,
        severity: ending.severity,
        confidence: ending.confidence,
        title: format!("Deadlock without threads: {what}"),
        text: format!(
            "{what}: each is resumed by the end of the other ({} of this shape). {}",
            group.count, ending.text
        ),
        next: "look where the methods get hold of each other's tasks (a cached or stored task, a lazy one) and break the circle",
        runbook: "await-cycle",
        evidence: evidence.collect(),
    }
    .with_chains(vec![group.id.clone()])
}

fn describe(facts: Facts<'_, '_, '_>, alike: Alike<'_>) -> Finding {
    let knot = alike.first;
    let words = Words { facts, knot };
    let crossed = Crossed::by(facts, knot);
    let kind = crossed.kind();
    let steps = words.steps();
    let confidence = knot.edges.iter().map(|(_, _, e)| e.confidence).min();
    let ending = Ending::of(facts, knot, confidence.unwrap_or_default()).hedged();
    let more = match steps.len().saturating_sub(MAX_STEPS) {
        0 => String::new(),
        n => format!("; and {n} more"),
    };
    let told: Vec<&str> = steps.iter().take(MAX_STEPS).map(String::as_str).collect();
    let count = match alike.count {
        1 => String::new(),
        n => format!(" There are {n} of this shape."),
    };
    Draft {
        kind,
        severity: ending.severity,
        confidence: ending.confidence,
        title: words.title(&crossed.over()),
        text: format!("{}{more}. {}{count}", told.join("; "), ending.text),
        next: crossed.next(),
        runbook: kind.as_str(),
        evidence: evidence(facts, &words),
    }
    .with_chains(alike.chains)
}

/// One piece for each wait.
fn evidence(facts: Facts<'_, '_, '_>, words: &Words<'_, '_, '_, '_>) -> Vec<Evidence> {
    let edges = words.knot.edges.iter().take(super::MAX_EVIDENCE);
    edges
        .map(|(from, to, edge)| {
            let slot = edge.slot.or_else(|| words.address(*to));
            fact(words.edge(*from, *to), slot, edge.how.to_string())
        })
        .chain(words.own_semaphores(facts))
        .collect()
}

/// The groups of chains that a knot is part of.
fn chains(facts: Facts<'_, '_, '_>, knot: &Knot) -> Vec<String> {
    let mut out = Vec::new();
    for member in &knot.members {
        match member {
            Node::Thread(id) => {
                let thread = facts.hang.by_managed_id(*id);
                let thread = thread.and_then(|i| facts.hang.threads.get(i));
                if let Some(Wait::Task(wait)) = thread.and_then(|t| t.wait.as_ref()) {
                    out.extend(facts.groups.by_wait.get(wait).cloned());
                }
            }
            Node::Async(id) => {
                let groups = facts.groups.groups.iter().zip(&facts.groups.tallies);
                let of = groups.filter(|(_, tally)| tally.leaves.contains_key(id));
                out.extend(of.map(|(g, _)| g.id.clone()));
            }
            _ => {}
        }
    }
    out
}
