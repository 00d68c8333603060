//! Threads that wait for one another: over locks, and over locks and tasks.

use super::locks::lock_text;
use super::{Draft, Facts, fact};
use crate::threads::{ThreadFacts, Wait};
use crate::words::{listed, verb};
use asynctriage_async_graph::{Class, NodeId};
use asynctriage_report::{Confidence, Evidence, Finding, FindingKind, Severity};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::VecDeque;

/// Why one thread waits for another.
#[derive(Clone)]
enum Because {
    /// The other holds the lock.
    Lock,
    /// The other must end.
    Ends,
    /// The other runs what the awaited task needs: this node.
    Runs(NodeId),
}

pub(super) fn find(facts: Facts<'_, '_, '_>) -> Vec<Finding> {
    let cycles = thread_cycles(facts);
    cycles
        .iter()
        .filter_map(|cycle| describe(facts, cycle))
        .collect()
}

/// Managed ids of the threads that are part of a deadlock.
pub(super) fn members(facts: Facts<'_, '_, '_>) -> FxHashSet<u32> {
    let cycles = thread_cycles(facts);
    let threads = cycles
        .iter()
        .flatten()
        .filter_map(|(i, _)| facts.hang.threads.get(*i));
    threads.map(|t| t.thread.managed_id).collect()
}

fn thread_cycles(facts: Facts<'_, '_, '_>) -> Vec<Cycle> {
    let threads = facts.hang.threads.iter();
    let edges: Vec<Vec<(usize, Because)>> = threads.map(|t| waits_for(facts, t)).collect();
    cycles(&edges)
}

/// The threads that a thread waits for.
fn waits_for(facts: Facts<'_, '_, '_>, thread: &ThreadFacts) -> Vec<(usize, Because)> {
    match &thread.wait {
        Some(Wait::Lock(lock)) => lock
            .owner
            .and_then(|id| facts.hang.by_managed_id(id))
            .map(|i| (i, Because::Lock))
            .into_iter()
            .collect(),
        Some(Wait::Task(wait)) => running_below(facts, *wait, thread),
        Some(Wait::Object(object)) => {
            let because = if object.ends {
                Because::Ends
            } else {
                Because::Lock
            };
            let owners = object.owners.iter();
            let owners = owners.filter_map(|id| facts.hang.by_managed_id(*id));
            owners.map(|i| (i, because.clone())).collect()
        }
        _ => Vec::new(),
    }
}

/// Threads that run a method or delegate which a wait needs.
fn running_below(
    facts: Facts<'_, '_, '_>,
    wait: NodeId,
    waiting: &ThreadFacts,
) -> Vec<(usize, Because)> {
    let running: FxHashSet<_> = facts.a.graph.running.iter().copied().collect();
    let mut out = Vec::new();
    for id in facts.a.all_below(wait) {
        let Some(node) = facts.a.graph.object(id) else {
            continue;
        };
        let runs = running.contains(&node.addr)
            || node.class == Class::Task
                && facts
                    .a
                    .graph
                    .task
                    .is_some_and(|t| t.status(facts.a.rt, node.addr) == "Running");
        if !runs {
            continue;
        }
        // its own stack holds what it waits for, too
        let on = facts
            .a
            .threads
            .holding(node.addr)
            .filter(|(t, _)| t.addr != waiting.thread.addr);
        let on: Vec<usize> = on
            .filter_map(|(t, _)| facts.hang.by_managed_id(t.managed_id))
            .collect();
        // on several stacks: which of them runs it is not known
        if let [only] = on.as_slice() {
            out.push((*only, Because::Runs(id)));
        }
    }
    out
}

/// A way around: each thread with the reason why it waits for the next.
type Cycle = Vec<(usize, Because)>;

/// Cycles in a graph of waits, the shortest through each thread, each once. Every thread waits for all that it has edges
/// to, so each way around that closes is a deadlock.
fn cycles(edges: &[Vec<(usize, Because)>]) -> Vec<Cycle> {
    let mut out: Vec<Cycle> = Vec::new();
    let mut known: FxHashSet<Vec<usize>> = FxHashSet::default();
    for start in 0..edges.len() {
        if let Some(cycle) = way_back(edges, start) {
            let mut members: Vec<usize> = cycle.iter().map(|(i, _)| *i).collect();
            members.sort_unstable();
            if known.insert(members) {
                out.push(cycle);
            }
        }
    }
    out
}

/// The shortest way from a thread back to itself.
fn way_back(edges: &[Vec<(usize, Because)>], start: usize) -> Option<Cycle> {
    let mut came_from: FxHashMap<usize, (usize, &Because)> = FxHashMap::default();
    let mut todo = VecDeque::from([start]);
    while let Some(at) = todo.pop_front() {
        for (next, because) in edges.get(at).into_iter().flatten() {
            if came_from.contains_key(next) {
                continue;
            }
            came_from.insert(*next, (at, because));
            todo.push_back(*next);
        }
    }
    let mut cycle = Vec::new();
    let mut at = start;
    loop {
        let (from, because) = came_from.get(&at)?;
        cycle.push((*from, (*because).clone()));
        if *from == start {
            cycle.reverse();
            return Some(cycle);
        }
        at = *from;
    }
}

fn describe(facts: Facts<'_, '_, '_>, cycle: &Cycle) -> Option<Finding> {
    let members: Vec<(&ThreadFacts, &Because)> = cycle
        .iter()
        .filter_map(|(i, because)| Some((facts.hang.threads.get(*i)?, because)))
        .collect();
    let threads: Vec<&ThreadFacts> = members.iter().map(|(t, _)| *t).collect();
    let only_locks = members.iter().all(|(_, b)| matches!(b, Because::Lock));
    let titles: Vec<String> = threads.iter().map(|t| t.title()).collect();
    let names: Vec<String> = threads.iter().map(|t| format!("'{}'", t.name())).collect();
    let steps: Vec<String> = threads
        .iter()
        .map(|t| format!("{} waits for {}", t.title(), wait_text(facts, t)))
        .collect();
    let (kind, confidence, what, runbook) = if only_locks {
        (
            FindingKind::LockDeadlock,
            Confidence::Certain,
            "hold locks and wait for each other's",
            "lock-deadlock",
        )
    } else if members.iter().all(|(_, b)| !matches!(b, Because::Runs(_))) {
        (
            FindingKind::MixedDeadlock,
            Confidence::Certain,
            "wait for each other's end or locks",
            "mixed-deadlock",
        )
    } else {
        (
            FindingKind::MixedDeadlock,
            Confidence::Likely,
            "wait for each other over locks and tasks",
            "mixed-deadlock",
        )
    };
    let is_possible = |t: &&ThreadFacts| matches!(&t.wait, Some(Wait::Object(o)) if o.is_possible);
    let confidence = if threads.iter().any(is_possible) {
        Confidence::Possible
    } else {
        confidence
    };
    let ending = Ending::of(&threads, confidence);
    let first = threads.first()?;
    let alone = threads.len() == 1;
    Some(
        Draft {
            kind,
            severity: ending.severity,
            confidence: ending.confidence,
            title: if alone {
                format!("Deadlock: thread '{}' waits for itself", first.name())
            } else {
                format!("Deadlock: threads {} {what}", listed(&names))
            },
            text: format!(
                "{} {} {what}: {}. {}",
                verb(threads.len() as u64, "thread", "threads"),
                listed(&titles),
                steps.join("; "),
                ending.text
            ),
            next: ending.next,
            runbook,
            evidence: members
                .iter()
                .flat_map(|(t, because)| evidence(facts, t, because))
                .collect(),
        }
        .with_chains(chains(facts, &threads)),
    )
}

/// Whether the threads wait for ever.
struct Ending {
    severity: Severity,
    confidence: Confidence,
    text: String,
    next: &'static str,
}

impl Ending {
    /// A wait with a time limit ends, and what its thread does then the dump does not tell.
    fn of(threads: &[&ThreadFacts], confidence: Confidence) -> Self {
        let limit = |t: &&ThreadFacts| {
            let ms = t.block.as_ref()?.timeout_ms?;
            Some(format!("that of '{}' after {ms} ms", t.name()))
        };
        let limits: Vec<String> = threads.iter().filter_map(limit).collect();
        let open = threads.iter().filter(|t| may_have_limit(t));
        let open: Vec<String> = open.map(|t| format!("'{}'", t.name())).collect();
        Self::by(&limits, &open, confidence)
    }

    fn by(limits: &[String], open: &[String], confidence: Confidence) -> Self {
        if !limits.is_empty() {
            return Self {
                severity: Severity::Warning,
                confidence: confidence.min(Confidence::Likely),
                text: format!("Time limits end the waits: {}.", listed(limits)),
                next: "wait for the time limits before a restart; then let every thread take these locks in the same order, and do not wait for tasks while holding one",
            };
        }
        let (confidence, text) = if open.is_empty() {
            (confidence, "None of them can go on.".to_owned())
        } else {
            let text = format!(
                "None of them can go on, unless a time limit ends its wait: whether there is one is not known of {}.",
                listed(open)
            );
            (confidence.min(Confidence::Likely), text)
        };
        Self {
            severity: Severity::Critical,
            confidence,
            text,
            next: "restart the process; then let every thread take these locks in the same order, and do not wait for tasks while holding one",
        }
    }
}

/// Whether a wait may have a time limit that nothing in the dump tells: the runtime notes it for monitors only, and only
/// some methods have none at all.
fn may_have_limit(thread: &ThreadFacts) -> bool {
    let mut frames = thread.frames.iter();
    matches!(thread.wait, Some(Wait::Object(_)))
        && thread.block.is_none()
        && !frames.any(|f| {
            f.name
                .starts_with("System.Threading.ReaderWriterLockSlim.Enter")
        })
}

fn chains(facts: Facts<'_, '_, '_>, threads: &[&ThreadFacts]) -> Vec<String> {
    let waits = threads.iter().filter_map(|t| match t.wait {
        Some(Wait::Task(wait)) => facts.groups.by_wait.get(&wait).cloned(),
        _ => None,
    });
    waits.collect()
}

fn evidence(facts: Facts<'_, '_, '_>, thread: &ThreadFacts, because: &Because) -> Vec<Evidence> {
    let mut out = Vec::new();
    if let Some(block) = &thread.block {
        out.push(fact(
            format!("thread {} blocks", thread.title()),
            Some(block.at),
            block.how,
        ));
    }
    match (because, &thread.wait) {
        (Because::Lock, Some(Wait::Lock(lock))) => {
            let owner = lock
                .owner
                .and_then(|id| facts.hang.by_managed_id(id))
                .and_then(|i| facts.hang.threads.get(i));
            out.push(fact(
                format!(
                    "{} is held by {}",
                    lock_text(facts, lock),
                    owner.map_or_else(|| "a thread that is not known".into(), ThreadFacts::title)
                ),
                Some(lock.object.unwrap_or(lock.at)),
                lock.how,
            ));
        }
        (Because::Runs(id), _) => {
            let node = facts.a.graph.object(*id);
            out.push(fact(
                format!("{} runs now and is needed", facts.a.node_text(*id)),
                node.map(|n| n.addr),
                "its object stands on the stack of exactly one other thread",
            ));
        }
        (Because::Lock | Because::Ends, Some(Wait::Object(object))) => {
            out.push(fact(
                format!("{} waits for {}", thread.title(), wait_text(facts, thread)),
                object.at,
                object.how.clone(),
            ));
        }
        (Because::Lock | Because::Ends, _) => {}
    }
    out
}

/// What a thread waits for, in words.
pub(crate) fn wait_text(facts: Facts<'_, '_, '_>, thread: &ThreadFacts) -> String {
    match &thread.wait {
        Some(Wait::Lock(lock)) => {
            let owner = lock
                .owner
                .and_then(|id| facts.hang.by_managed_id(id))
                .and_then(|i| facts.hang.threads.get(i))
                .map(|o| format!(", held by '{}'", o.name()))
                .unwrap_or_default();
            format!("{}{owner}", lock_text(facts, lock))
        }
        Some(Wait::Task(wait)) => match facts.a.awaited_names(*wait).as_slice() {
            [] => "a task, synchronously".into(),
            names => format!("the task of {}, synchronously", listed(names)),
        },
        Some(Wait::Pulse(lock)) => format!("a pulse of {}", lock_text(facts, lock)),
        Some(Wait::Inside(method, _)) => format!("{method} to return"),
        Some(Wait::Object(object)) if object.ends => object.text.clone(),
        Some(Wait::Object(object)) => {
            let owners = object.owners.iter();
            let names: Vec<String> = owners
                .filter_map(|id| facts.hang.by_managed_id(*id))
                .filter_map(|i| facts.hang.threads.get(i))
                .map(|o| format!("'{}'", o.name()))
                .collect();
            match names.as_slice() {
                [] => object.text.clone(),
                names => format!("{}, held by {}", object.text, listed(names)),
            }
        }
        None => "nothing that is known".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn graph(edges: &[(usize, usize)], count: usize) -> Vec<Vec<(usize, Because)>> {
        let mut out = vec![Vec::new(); count];
        for (from, to) in edges {
            out[*from].push((*to, Because::Lock));
        }
        out
    }

    fn threads(cycles: &[Cycle]) -> Vec<Vec<usize>> {
        let ids = |c: &Cycle| c.iter().map(|(i, _)| *i).collect();
        cycles.iter().map(ids).collect()
    }

    #[test]
    fn a_cycle_is_found_once_and_bystanders_are_left_out() {
        let edges = graph(&[(0, 1), (1, 0), (2, 0), (3, 4)], 5);
        assert_eq!(threads(&cycles(&edges)), vec![vec![0, 1]]);
    }

    #[test]
    fn no_cycle_is_no_deadlock() {
        assert!(cycles(&graph(&[(0, 1), (1, 2)], 3)).is_empty());
        assert!(cycles(&[]).is_empty());
    }

    #[test]
    fn what_a_time_limit_ends_is_neither_certain_nor_for_ever() {
        let ending = |limits: &[&str], open: &[&str]| {
            let owned = |all: &[&str]| all.iter().map(|s| (*s).to_owned()).collect::<Vec<_>>();
            let out = Ending::by(&owned(limits), &owned(open), Confidence::Certain);
            (out.severity, out.confidence, out.text)
        };
        let (severity, confidence, _) = ending(&[], &[]);
        assert_eq!(
            (severity, confidence),
            (Severity::Critical, Confidence::Certain)
        );
        let (severity, confidence, text) = ending(&["that of 'a' after 5000 ms"], &["'b'"]);
        assert_eq!(
            (severity, confidence),
            (Severity::Warning, Confidence::Likely)
        );
        assert_eq!(
            text,
            "Time limits end the waits: that of 'a' after 5000 ms."
        );
        let (severity, confidence, text) = ending(&[], &["'b'"]);
        assert_eq!(
            (severity, confidence),
            (Severity::Critical, Confidence::Likely)
        );
        assert!(text.ends_with("is not known of 'b'."), "{text}");
    }

    #[test]
    fn three_threads_one_alone_and_a_second_edge() {
        let edges = graph(&[(0, 1), (1, 2), (2, 0), (3, 3)], 4);
        assert_eq!(threads(&cycles(&edges)), vec![vec![0, 1, 2], vec![3]]);
        let edges = graph(&[(0, 2), (0, 1), (1, 0)], 3);
        assert_eq!(threads(&cycles(&edges)), vec![vec![0, 1]]);
    }
}
