//! Which methods of the program wait for something, through .NET's own methods between.
//!
//! `SemaphoreSlim.WaitAsync` with a token or a time limit waits in a method of its own for a `Task.WaitAsync` (8.0 to
//! 11.0): the one that will enter is the method that awaits that.

use super::Facts;
use crate::paths::steps_of;
use asynctriage_async_graph::{Class, NodeId};
use rustc_hash::FxHashSet;
use std::sync::Arc;

/// Nodes that are climbed from one awaited thing on.
const MAX_NODES: usize = 64;

/// Who waits for a node: the nearest method of the program on each way up, else what waits directly.
pub(super) fn of(facts: Facts<'_, '_, '_>, awaited: NodeId) -> Vec<(NodeId, Arc<str>)> {
    let graph = &facts.a.graph;
    graph
        .waiters(awaited)
        .flat_map(|direct| {
            let found = climb(facts, direct);
            if found.is_empty() {
                vec![(direct, facts.a.node_text(direct).into())]
            } else {
                found
            }
        })
        .collect()
}

fn climb(facts: Facts<'_, '_, '_>, from: NodeId) -> Vec<(NodeId, Arc<str>)> {
    let graph = &facts.a.graph;
    let mut seen = FxHashSet::default();
    let mut todo = vec![from];
    let mut found = Vec::new();
    while let Some(node) = todo.pop() {
        if seen.len() >= MAX_NODES || !seen.insert(node) {
            continue;
        }
        let mut steps = steps_of(graph, node);
        if let Some(step) = steps.find(|s| !facts.a.is_framework_step(*s)) {
            found.push((node, facts.a.step_name(step)));
        } else if graph
            .object(node)
            .is_some_and(|n| n.class != Class::BlockingWait)
        {
            todo.extend(graph.waiters(node));
        }
    }
    found
}
