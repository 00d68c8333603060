//! Methods that have gone on after their await, and delegates: what the thread does that runs them.

use super::leaf;
use crate::paths::{Analysis, Doing, Path};
use crate::threads::is_running_delegate;
use asynctriage_async_graph::{Node, NodeId, task};
use asynctriage_report::{Confidence, Leaf, LeafKind};
use serde_json::json;

impl Analysis<'_, '_> {
    /// What the method or delegate does at which a path begins; `None` when it does not run.
    pub(super) fn running_leaf_of(&self, path: &Path, node: Node) -> Option<Leaf> {
        let id = path.leaf;
        if self.graph.running.contains_key(&id) {
            return Some(self.running_leaf(id, &self.frame_name(id)));
        }
        if !is_running_delegate(self.stacks(), node) {
            return None;
        }
        Some(self.running_leaf(id, &format!("a delegate{}", self.delegate_of(node))))
    }

    /// Whether a task has a delegate and has not called it: one that continues another task.
    pub(super) fn has_delegate(&self, node: Node) -> bool {
        let fields = self.graph.task;
        fields.is_some_and(|t| {
            t.flags(self.rt, node.addr) & task::flags::STARTED != 0
                && t.action(self.rt, node.addr).is_some()
        })
    }

    /// ` of Program`: the class of the object that a task's delegate is called on.
    pub(super) fn delegate_of(&self, node: Node) -> String {
        let action = self.graph.task.and_then(|t| t.action(self.rt, node.addr));
        let target = action.and_then(|d| self.rt.reference(d, "_target"));
        let class = target.and_then(|t| self.rt.object_type_name(t));
        class.map(|c| format!(" of {c}")).unwrap_or_default()
    }

    /// What a method or delegate that runs does now. `what` is its name in the sentence.
    fn running_leaf(&self, id: NodeId, what: &str) -> Leaf {
        let Some((thread, runs)) = self.hang().runner(id) else {
            return leaf(
                LeafKind::TaskRunning,
                format!("{what} has gone on, and no thread of the dump is known to run it"),
            );
        };
        let (doing, does) = self.doing(thread);
        let kind = match doing {
            Doing::Blocks => LeafKind::ThreadBlocked,
            Doing::Computes | Doing::Native => LeafKind::TaskRunning,
        };
        let possibly = if runs.is_possible { "possibly " } else { "" };
        let mut out = leaf(
            kind,
            format!(
                "{what} runs {possibly}on thread {}, which {does}",
                thread.title()
            ),
        );
        out.details.insert("thread".into(), json!(thread.name()));
        out.details
            .insert("thread_os_id".into(), json!(thread.thread.os_id));
        out.details.insert("does".into(), json!(does));
        out.confidence = Some(if runs.is_possible {
            Confidence::Possible
        } else {
            Confidence::Certain
        });
        out.evidence = Some(runs.how.clone());
        out
    }
}
