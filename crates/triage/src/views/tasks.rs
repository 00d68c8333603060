//! Every task and async method, one row each.

use crate::paths::Analysis;
use asynctriage_async_graph::{Class, Node, NodeId};
use asynctriage_dump::Addr;
use asynctriage_report::{Address, TaskReport, TaskRow};
use rustc_hash::FxHashSet;

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
    let running: FxHashSet<Addr> = graph.running.iter().copied().collect();
    let nodes = graph
        .graph
        .node_indices()
        .filter_map(|id| Some((id, graph.object(id)?)));
    let listed = nodes.filter(|(_, n)| {
        !matches!(n.class, Class::Source | Class::BlockingWait)
            && (options.completed || !analysis.is_completed(*n))
    });
    let rows = listed.map(|(id, node)| row(analysis, id, node, running.contains(&node.addr)));
    let mut out = TaskReport {
        gaps: super::gaps(analysis.rt.gaps().iter().chain(&graph.gaps)),
        ..TaskReport::default()
    };
    for row in rows.filter(|r| matches(r, &options.filters)) {
        if out.tasks.len() < options.limit {
            out.tasks.push(row);
        } else {
            out.left_out = out.left_out.saturating_add(1);
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
