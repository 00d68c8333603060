//! Threads that wait synchronously for tasks.

use super::{Draft, Facts, fact, thread_titles};
use crate::paths::{Step, steps_of};
use crate::threads::ThreadFacts;
use crate::words::{listed, several, verb};
use asynctriage_async_graph::NodeId;
use asynctriage_report::{Confidence, Evidence, Finding, FindingKind, Severity};
use std::collections::BTreeMap;

/// Threads that wait for the tasks of the same methods, from the same place.
#[derive(Default)]
struct Alike<'a> {
    threads: Vec<(&'a ThreadFacts, NodeId)>,
}

pub(super) fn find(facts: Facts<'_, '_, '_>) -> Vec<Finding> {
    let mut alike: BTreeMap<(Vec<String>, String), Alike<'_>> = BTreeMap::new();
    for (thread, wait) in facts.hang.task_waits() {
        if is_program_itself(facts, thread, wait) || super::idle::dispatches(facts, thread, wait) {
            continue;
        }
        let key = (
            facts.a.awaited_names(wait),
            place(thread).unwrap_or_default(),
        );
        alike.entry(key).or_default().threads.push((thread, wait));
    }
    let mut found: Vec<_> = alike.into_iter().collect();
    found.sort_by_key(|(_, group)| std::cmp::Reverse(group.threads.len()));
    found
        .into_iter()
        .map(|((methods, caller), group)| describe(facts, &methods, &caller, &group))
        .collect()
}

/// The wait of the main method for its own async body, or for the end of the host: what every program does. So do threads
/// of .NET's own that run nothing of the program.
pub(super) fn is_program_itself(
    facts: Facts<'_, '_, '_>,
    thread: &ThreadFacts,
    wait: NodeId,
) -> bool {
    let graph = &facts.a.graph;
    let mut steps = facts
        .a
        .methods_below(wait)
        .into_iter()
        .filter(|id| graph.machines.contains_key(id) || graph.operations.contains_key(id))
        .flat_map(|id| steps_of(graph, id))
        .peekable();
    let below = facts.a.all_below(wait).into_iter();
    let mut methods = below
        .filter(|id| graph.machines.contains_key(id) || graph.operations.contains_key(id))
        .flat_map(|id| steps_of(graph, id));
    let mut itself = thread.own_method().is_none() && !thread.frames.is_empty()
        || methods.any(|s| facts.a.is_end_of_host(s));
    let own = |step: Step<'_>| {
        let main = facts.a.is_main(&thread.thread, step);
        itself |= main;
        main || facts.a.is_framework_step(step)
    };
    steps.peek().is_some() && steps.all(own) && itself
}

/// Where a thread blocks: `in Method`, `possibly in Method`, or nothing when its stack does not tell.
pub(crate) fn place(thread: &ThreadFacts) -> Option<String> {
    let (method, generated) = thread.own_method()?;
    let how = if generated {
        "in code called from"
    } else {
        "in"
    };
    Some(method.place(how))
}

/// How sure it is that the threads block there.
fn ceiling(group: &Alike<'_>) -> Confidence {
    let own = group.threads.iter().filter_map(|(t, _)| t.own_method());
    own.map(|(method, _)| method.ceiling())
        .min()
        .unwrap_or(Confidence::Certain)
}

fn describe(
    facts: Facts<'_, '_, '_>,
    methods: &[String],
    caller: &str,
    group: &Alike<'_>,
) -> Finding {
    let count = group.threads.len() as u64;
    let titles = thread_titles(group.threads.iter().map(|(t, _)| *t));
    let pool = group
        .threads
        .iter()
        .filter(|(t, _)| t.thread.is_pool())
        .count() as u64;
    let mut requests: Vec<String> = group
        .threads
        .iter()
        .filter_map(|(t, _)| t.request.as_ref().map(|r| r.title()))
        .collect();
    let serving = requests.len() as u64;
    requests.sort_unstable();
    requests.dedup();
    let task = if methods.iter().all(|m| m == "a task") {
        "a task".to_owned()
    } else {
        format!("the task of {}", listed(methods))
    };
    let place = if caller.is_empty() {
        String::new()
    } else {
        format!(" {caller}")
    };
    let serves = if serving > 0 {
        format!(
            " {serving} of them {} a request: {}.",
            verb(serving, "serves", "serve"),
            listed(&requests)
        )
    } else {
        String::new()
    };
    let severity = if pool > 0 || serving > 0 {
        Severity::Warning
    } else {
        Severity::Info
    };
    let of_pool = if pool == count { "pool " } else { "" };
    let chains = group
        .threads
        .iter()
        .filter_map(|(_, w)| facts.groups.by_wait.get(w).cloned())
        .collect();
    Draft {
        kind: FindingKind::ThreadBlockedOnTask,
        severity,
        confidence: ceiling(group),
        title: format!(
            "{} {}{place} on {task}",
            several(count, &format!("{of_pool}thread")),
            verb(count, "blocks", "block")
        ),
        text: format!(
            "{} {} {} synchronously on {task}{place}.{serves}",
            verb(count, "thread", "threads"),
            titles,
            verb(count, "waits", "wait")
        ),
        next: "look at the chain that the threads wait for; make the blocking method async up to its caller",
        runbook: "thread-blocked-on-task",
        evidence: group.threads.iter().flat_map(|(t, w)| evidence(facts, t, *w)).collect(),
    }
    .with_chains(chains)
}

fn evidence(facts: Facts<'_, '_, '_>, thread: &ThreadFacts, wait: NodeId) -> Vec<Evidence> {
    let mut out = Vec::new();
    let Some(node) = facts.a.graph.object(wait) else {
        return out;
    };
    let stack = facts
        .a
        .threads
        .holding(node.addr)
        .find(|(t, _)| t.addr == thread.thread.addr)
        .and_then(|(_, slot)| slot);
    let how = match (&thread.block, stack) {
        (Some(block), _) => format!("{}; the lock is that of the wait object", block.how),
        (None, Some(slot)) => format!("its stack holds the wait object at {slot}"),
        (None, None) => "a register of the thread holds the wait object".into(),
    };
    out.push(fact(
        format!(
            "thread {} waits until {} is set",
            thread.title(),
            facts.a.type_name(node.mt)
        ),
        Some(node.addr),
        how,
    ));
    let tasks = facts.a.graph.awaited(wait).take(4);
    out.extend(tasks.filter_map(|(task, edge)| {
        let task = facts.a.graph.object(task)?;
        Some(fact(
            format!("the completion of {} sets it", facts.a.type_name(task.mt)),
            Some(task.addr),
            format!("{} at {}", edge.field, edge.slot),
        ))
    }));
    out
}
