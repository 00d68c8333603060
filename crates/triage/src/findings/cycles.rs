//! Async methods that wait for one another, and threads that wait for what only they can run.

use super::{Draft, Facts, fact};
use crate::leaves::OUTSIDE_CYCLE;
use crate::threads::ThreadFacts;
use crate::words::listed;
use asynctriage_async_graph::{AsyncFrame, NodeId, PostedTo, Witness};
use asynctriage_dump::Addr;
use asynctriage_report::{
    ChainGroup, Confidence, Evidence, Finding, FindingKind, LeafKind, Severity,
};
use rustc_hash::FxHashSet;

pub(super) fn find(facts: Facts<'_, '_, '_>) -> Vec<Finding> {
    let groups = facts.groups.groups.iter();
    let cycles = groups
        .filter(|g| g.leaf.kind == LeafKind::Cycle && !g.leaf.details.contains_key(OUTSIDE_CYCLE))
        .map(|g| await_cycle(facts, g));
    cycles.chain(context_deadlocks(facts)).collect()
}

/// How sure a cycle is: certain when both ends of each of its links say so.
fn confidence(facts: Facts<'_, '_, '_>, group: &ChainGroup) -> Confidence {
    let graph = &facts.a.graph;
    let addresses: FxHashSet<Addr> = group
        .frames
        .iter()
        .filter_map(|f| Some(Addr(f.address?.0)))
        .collect();
    let mut members: FxHashSet<NodeId> = addresses.iter().filter_map(|a| graph.node(*a)).collect();
    // frames of runtime-async methods are told by their continuations
    let holds = |frames: &[AsyncFrame]| frames.iter().any(|f| addresses.contains(&f.continuation));
    let operations = graph.operations.iter();
    members.extend(
        operations
            .filter(|(_, o)| holds(&o.frames))
            .map(|(id, _)| *id),
    );
    let inside = members.iter().flat_map(|id| graph.awaited(*id));
    let mut inside = inside.filter(|(from, _)| members.contains(from));
    if inside.all(|(_, edge)| edge.witness == Witness::Both) {
        Confidence::Certain
    } else {
        Confidence::Likely
    }
}

fn await_cycle(facts: Facts<'_, '_, '_>, group: &ChainGroup) -> Finding {
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
    });
    Draft {
        kind: FindingKind::AwaitCycle,
        severity: Severity::Critical,
        confidence: confidence(facts, group),
        title: format!("Deadlock without threads: {what}"),
        text: format!(
            "{what}: each is resumed by the end of the other, so none of them will ever end ({} of this shape).",
            group.count
        ),
        next: "look where the methods get hold of each other's tasks (a cached or stored task, a lazy one) and break the circle",
        runbook: "await-cycle",
        evidence: evidence.collect(),
    }
    .with_chains(vec![group.id.clone()])
}

/// Threads that wait for a method whose resumption goes to a context that they themselves would have to pump.
fn context_deadlocks(facts: Facts<'_, '_, '_>) -> Vec<Finding> {
    let mut out = Vec::new();
    for (thread, wait) in facts.hang.task_waits() {
        let own = thread
            .thread
            .object
            .and_then(|t| facts.a.rt.reference(t, "_synchronizationContext"));
        let below = facts.a.all_below(wait);
        let captured = below
            .into_iter()
            .filter_map(|id| Some((id, context_of(facts, id)?)));
        let mut mine = captured.filter(|(_, context)| Some(*context) == own);
        if let Some((method, context)) = mine.next() {
            out.push(context_deadlock(facts, thread, wait, method, context));
        }
    }
    out
}

/// The context or scheduler that a suspended method goes on in.
fn context_of(facts: Facts<'_, '_, '_>, id: NodeId) -> Option<Addr> {
    if let Some(operation) = facts.a.graph.operations.get(&id) {
        let (PostedTo::SyncContext(context) | PostedTo::Scheduler(context)) = operation.goes_to?;
        return Some(context);
    }
    let node = facts.a.graph.object(id)?;
    facts.a.graph.machines.get(&id)?;
    let action = facts.a.graph.task?.action(facts.a.rt, node.addr)?;
    facts.a.posted.get(&action).map(|(_, context)| *context)
}

fn context_deadlock(
    facts: Facts<'_, '_, '_>,
    thread: &ThreadFacts,
    wait: NodeId,
    method: NodeId,
    context: Addr,
) -> Finding {
    let name = facts.a.node_text(method);
    let context_name = facts
        .a
        .rt
        .type_of(context)
        .map(|t| facts.a.rt.name(&t).to_string())
        .unwrap_or_default();
    let group = facts.groups.by_wait.get(&wait);
    let posted = facts
        .groups
        .groups
        .iter()
        .any(|g| Some(&g.id) == group && g.leaf.kind == LeafKind::SyncContextPost);
    let state = if posted {
        "its continuation is posted there and cannot run"
    } else {
        "its continuation will be posted there and cannot run"
    };
    let node = facts.a.graph.object(method);
    let mut evidence = vec![
        fact(
            format!("thread {} has the context {context_name}", thread.title()),
            Some(context),
            "Thread._synchronizationContext",
        ),
        fact(
            format!("{name} goes on in the same context"),
            node.map(|n| n.addr),
            "the continuation of what it awaits names the context",
        ),
    ];
    if let Some(block) = &thread.block {
        evidence.push(fact(
            format!("thread {} blocks", thread.title()),
            Some(block.at),
            block.how,
        ));
    }
    Draft {
        kind: FindingKind::SyncContextDeadlock,
        severity: Severity::Critical,
        confidence: Confidence::Certain,
        title: format!(
            "Deadlock: thread '{}' blocks on {name}, which needs that thread to go on",
            thread.name()
        ),
        text: format!(
            "thread {} blocks synchronously on the task of {name}, which goes on in the SynchronizationContext {context_name} of that very thread: {state}.",
            thread.title()
        ),
        next: "await instead of blocking on that thread, or use ConfigureAwait(false) in the methods below",
        runbook: "sync-context-deadlock",
        evidence,
    }
    .with_chains(group.cloned().into_iter().collect())
}
