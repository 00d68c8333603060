//! Which thread runs a task or method now.

use super::Reader;
use super::graph::Edge;
use crate::threads::{ThreadFacts, Wait};
use asynctriage_async_graph::{Class, Node, NodeId};
use asynctriage_clr::FrameSource;
use asynctriage_report::Confidence;

/// Frames in which the delegate of a task, or what follows an await of runtime-async methods, is called.
const DELEGATE: &str = "System.Threading.Tasks.Task.ExecuteWithThreadLocal";
const CONTINUATIONS: &str = ".DispatchContinuations";

impl Reader<'_, '_, '_> {
    /// The thread that runs what completes a task.
    pub(super) fn runs_on(&self, id: NodeId) -> Option<(u32, Edge)> {
        let node = self.a.graph.object(id)?;
        if !self.is_running(node) {
            return None;
        }
        let holding: Vec<&ThreadFacts> = self
            .a
            .threads
            .holding(node.addr)
            .filter_map(|(t, _)| self.thread(t.managed_id))
            .collect();
        let mut running = holding.iter().filter(|t| self.is_in(node, t));
        if let (Some(one), None) = (running.next(), running.next()) {
            return Some((
                one.thread.managed_id,
                Edge {
                    slot: Some(node.addr),
                    how: "its object stands on the stack of the thread, and so does a frame of it"
                        .into(),
                    confidence: Confidence::Likely,
                },
            ));
        }
        // whoever waits for a task holds it, too
        let mut others = holding
            .iter()
            .filter(|t| !matches!(t.wait, Some(Wait::Task(wait)) if self.is_below(id, wait)));
        match (others.next(), others.next()) {
            (Some(only), None) => Some((
                only.thread.managed_id,
                Edge {
                    slot: Some(node.addr),
                    how: "its object stands on the stack of exactly one thread that does not wait for it".into(),
                    confidence: Confidence::Likely,
                },
            )),
            _ => None,
        }
    }

    pub(super) fn is_running(&self, node: Node) -> bool {
        let graph = &self.a.graph;
        let delegate = || {
            node.class == Class::Task
                && graph
                    .task
                    .is_some_and(|t| t.status(self.a.rt, node.addr) == "Running")
        };
        let id = graph.node(node.addr);
        id.is_some_and(|id| graph.running.contains_key(&id)) || delegate()
    }

    /// Whether a thread has a frame that runs the task.
    fn is_in(&self, node: Node, thread: &ThreadFacts) -> bool {
        let machine = self.a.rt.ty(node.mt).and_then(|ty| {
            let args = self.a.rt.type_args(&ty);
            args.last().copied()
        });
        let exact = thread
            .frames
            .iter()
            .filter(|f| f.frame.source != FrameSource::StackScan);
        let mut exact = exact.map(|f| (f.frame.method.owner, &f.name));
        match node.class {
            Class::Box | Class::PooledBox => exact.any(|(owner, _)| Some(owner) == machine),
            Class::RuntimeAsyncTask => exact.any(|(_, name)| name.ends_with(CONTINUATIONS)),
            _ => exact.any(|(_, name)| name.starts_with(DELEGATE)),
        }
    }

    fn is_below(&self, id: NodeId, wait: NodeId) -> bool {
        self.a.all_below(wait).contains(&id)
    }
}
