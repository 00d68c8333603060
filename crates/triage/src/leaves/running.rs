//! Methods that have gone on after their await, and delegates: what the thread does that runs them.

use crate::facts::{Awaited, Runner};
use crate::paths::{Analysis, Doing, Path};
use crate::threads::is_running_delegate;
use asynctriage_async_graph::{Node, NodeId, task};

impl Analysis<'_, '_> {
    /// What the method or delegate does at which a path begins; `None` when it does not run.
    pub(super) fn running(&self, path: &Path, node: Node) -> Option<Awaited> {
        let id = path.leaf;
        if self.graph.running.contains_key(&id) {
            return Some(self.running_method(id, self.frame_name(id).to_string()));
        }
        if !is_running_delegate(self.stacks(), node) {
            return None;
        }
        let of = self.delegate_of(node);
        Some(self.running_method(id, of.unwrap_or_else(|| "a delegate".to_owned())))
    }

    /// Whether a task has a delegate and has not called it: one that continues another task.
    pub(super) fn has_delegate(&self, node: Node) -> bool {
        let fields = self.graph.task;
        fields.is_some_and(|t| {
            t.flags(self.rt, node.addr) & task::flags::STARTED != 0
                && t.action(self.rt, node.addr).is_some()
        })
    }

    /// The method of a task's delegate, or what else is known of that.
    pub(crate) fn delegate_of(&self, node: Node) -> Option<String> {
        let action = self.graph.task.and_then(|t| t.action(self.rt, node.addr))?;
        self.delegate_text(action)
    }

    /// What a method or delegate that runs does now. `what` is its name in the sentence.
    fn running_method(&self, id: NodeId, what: String) -> Awaited {
        let runner = self.hang().runner(id).map(|(thread, runs)| {
            let (doing, does) = self.doing(thread);
            Runner {
                thread: thread.name(),
                os_id: thread.thread.os_id,
                does,
                blocks: doing == Doing::Blocks,
                is_possible: runs.is_possible,
            }
        });
        Awaited::Running { what, runner }
    }
}
