//! What stands below a wait: the methods and tasks that it waits for.

use super::Analysis;
use asynctriage_async_graph::NodeId;
use rustc_hash::FxHashSet;

/// Nodes that are looked at below one wait for the methods that it waits for.
const MAX_BELOW: usize = 10_000;
/// What `Task.Delay` returns, with and without a token.
const DELAY: &str = "System.Threading.Tasks.Task+DelayPromise";
/// Tasks that are no promise and no method: they run a delegate.
const TASK: &str = "System.Threading.Tasks.Task";

impl Analysis<'_, '_> {
    /// Whether a node is a method, or several that share a task, which waits or runs.
    fn is_method(&self, id: NodeId) -> bool {
        self.graph.machines.contains_key(&id)
            || self.graph.operations.contains_key(&id)
            || self.graph.running.contains_key(&id)
    }

    /// The nearest methods below a wait: what its task is the task of.
    pub(crate) fn methods_below(&self, wait: NodeId) -> Vec<NodeId> {
        let mut out = Vec::new();
        let mut seen = FxHashSet::default();
        let mut todo: Vec<NodeId> = self.graph.awaited(wait).map(|(from, _)| from).collect();
        while let Some(id) = todo.pop() {
            if seen.len() >= MAX_BELOW || !seen.insert(id) {
                continue;
            }
            if self.is_method(id) {
                out.push(id);
                continue;
            }
            let before = todo.len();
            todo.extend(self.graph.awaited(id).map(|(from, _)| from));
            if todo.len() == before {
                out.push(id);
            }
        }
        out.sort_unstable();
        out
    }

    /// What a wait waits for, by name: methods where they are known.
    pub(crate) fn awaited_names(&self, wait: NodeId) -> Vec<String> {
        let name = |id: NodeId| {
            let node = self.graph.object(id)?;
            let method = self
                .box_method(node)
                .filter(|_| !self.graph.machines.contains_key(&id));
            Some(match method {
                Some(method) => method.to_string(),
                None if self.graph.completion_sources.contains_key(&node.addr) => {
                    "a TaskCompletionSource".to_owned()
                }
                None => match self.node_text(id) {
                    text if text.starts_with(DELAY) => "Task.Delay".to_owned(),
                    text if text.starts_with(TASK) => {
                        let delegate = self.delegate_of(node);
                        delegate.unwrap_or_else(|| "a task".to_owned())
                    }
                    text => text,
                },
            })
        };
        let mut names: Vec<String> = self
            .methods_below(wait)
            .into_iter()
            .filter_map(name)
            .collect();
        names.sort_unstable();
        names.dedup();
        names
    }

    /// Everything below a node that it waits for, directly or through others.
    pub(crate) fn all_below(&self, node: NodeId) -> Vec<NodeId> {
        let mut seen = FxHashSet::default();
        let mut todo = vec![node];
        while let Some(id) = todo.pop() {
            if seen.len() >= MAX_BELOW {
                break;
            }
            if seen.insert(id) {
                todo.extend(self.graph.awaited(id).map(|(from, _)| from));
            }
        }
        seen.remove(&node);
        let mut out: Vec<NodeId> = seen.into_iter().collect();
        out.sort_unstable();
        out
    }
}
