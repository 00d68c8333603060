//! Every task and async method, one row each.

use crate::paths::{Analysis, Paths};
use asynctriage_async_graph::{Class, Node, NodeId};
use asynctriage_report::{Address, LeafKind, TaskReport, TaskRow};
use rustc_hash::FxHashMap;

/// Which tasks are listed.
#[derive(Clone, Debug, Default)]
pub struct TaskOptions {
    /// Those that have ended, too.
    pub completed: bool,
    /// Keep tasks whose type or method contains any of these.
    pub filters: Vec<String>,
    /// Rows at most.
    pub limit: usize,
}

/// Lists tasks, boxes and their state, in the order of their addresses.
#[must_use]
pub fn tasks(analysis: &Analysis<'_, '_>, options: &TaskOptions) -> TaskReport {
    let graph = &analysis.graph;
    let nodes = graph
        .graph
        .node_indices()
        .filter_map(|id| Some((id, graph.object(id)?)));
    let listed = nodes.filter(|(_, n)| {
        !matches!(n.class, Class::Source | Class::BlockingWait)
            && (options.completed || !analysis.is_completed(*n))
    });
    let leaves = leaves(analysis);
    let rows = listed.map(|(id, node)| TaskRow {
        leaf: leaves.get(&id).copied(),
        ..row(analysis, id, node, graph.running.contains_key(&id))
    });
    let mut out = TaskReport::default();
    for row in rows.filter(|r| matches(r, &options.filters)) {
        if out.tasks.len() < options.limit {
            out.tasks.push(row);
        } else {
            out.left_out = out.left_out.saturating_add(1);
        }
    }
    let rt = analysis.rt;
    out.gaps = super::gaps(rt, rt.gaps().iter().chain(&graph.gaps));
    out
}

/// What the chain waits for in the end that a method or task is part of; the first one where it is part of several.
fn leaves(analysis: &Analysis<'_, '_>) -> FxHashMap<NodeId, LeafKind> {
    let paths = Paths::find(&analysis.graph).paths;
    let ends = paths.iter().flat_map(|p| [p.innermost(), p.outermost()]);
    analysis.find_reachable(ends.filter_map(|id| Some(analysis.graph.object(id)?.addr)));
    let mut out = FxHashMap::default();
    for path in analysis.rt.budget().each("chains", &paths) {
        let kind = analysis.awaited(path, &analysis.shape(path)).kind();
        for node in path.frames.iter().chain([&path.leaf]) {
            out.entry(*node).or_insert(kind);
        }
    }
    out
}

fn matches(row: &TaskRow, filters: &[String]) -> bool {
    let has = |f: &String| {
        row.type_name.contains(f) || row.method.as_ref().is_some_and(|m| m.contains(f))
    };
    filters.is_empty() || filters.iter().any(has)
}

fn row(analysis: &Analysis<'_, '_>, id: NodeId, node: Node, running: bool) -> TaskRow {
    let graph = &analysis.graph;
    let machine = graph.machines.get(&id);
    let names = |ids: Vec<NodeId>| {
        let mut all: Vec<String> = ids.iter().take(3).map(|n| analysis.node_text(*n)).collect();
        if ids.len() > 3 {
            all.push(format!("{} more", ids.len().saturating_sub(3)));
        }
        (!all.is_empty()).then(|| all.join(", "))
    };
    TaskRow {
        address: Address(node.addr.0),
        type_name: analysis.type_name(node.mt).to_string(),
        status: status(analysis, id, node, running).into(),
        method: machine
            .map(|_| analysis.frame_name(id))
            .or_else(|| analysis.box_method(node))
            .map(|m| m.to_string()),
        state: machine.map(|m| m.state),
        waits_on: names(graph.awaited(id).map(|(from, _)| from).collect()),
        leaf: None,
        continuation: names(graph.waiters(id).collect()),
    }
}

fn status(analysis: &Analysis<'_, '_>, id: NodeId, node: Node, running: bool) -> &'static str {
    if analysis.graph.machines.contains_key(&id) {
        return "waiting";
    }
    if running {
        return "running";
    }
    match (
        node.class,
        analysis
            .graph
            .task
            .map(|t| t.status(analysis.rt, node.addr)),
    ) {
        (Class::PooledBox, _) => "idle",
        (_, Some("Faulted")) => "faulted",
        (_, Some("Canceled")) => "cancelled",
        (_, Some("RanToCompletion")) => "completed",
        (_, Some("Running")) => "running",
        (_, Some("WaitingToRun")) => "queued",
        _ => "waiting",
    }
}
