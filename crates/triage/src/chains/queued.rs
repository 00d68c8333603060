//! What the queues of the thread pool hold, and which chains that resumes.

use super::Groups;
use crate::paths::{Analysis, is_least_await, steps_of};
use crate::threads::PoolFacts;
use asynctriage_async_graph::{Helper, NodeId, work_item_targets};
use asynctriage_dump::Addr;
use asynctriage_report::{LeafKind, Pool, QueuedKind, QueuedWork};
use rustc_hash::FxHashMap;

/// Kinds of queued work that the report lists.
const MAX_KINDS: usize = 50;

impl Analysis<'_, '_> {
    /// The managed pool, when the process has used it.
    pub(crate) fn pool_facts(&self) -> Option<PoolFacts> {
        PoolFacts::read(self.rt, &self.graph)
    }

    /// The object that holds the pool's global queues.
    pub(crate) fn pool_queue(&self) -> Option<Addr> {
        self.graph.helpers(Helper::PoolQueue).first().copied()
    }

    pub(crate) fn pool_row(&self, groups: &Groups) -> Option<Pool> {
        let facts = self.pool_facts()?;
        Some(Pool {
            workers: facts.existing,
            min: facts.min,
            max: facts.max,
            idle: facts.idle(),
            blocked: facts.blocked,
            goal: facts.goal,
            queued: self.queued_work(groups),
        })
    }

    /// What stands in the queues, by kind, the most frequent first.
    pub(crate) fn queued_work(&self, groups: &Groups) -> QueuedWork {
        let queues = &self.graph.queues;
        let mut kinds: FxHashMap<(String, Option<String>), u64> = FxHashMap::default();
        for item in queues.items() {
            let n = kinds.entry(self.item_kind(item, groups)).or_default();
            *n = n.saturating_add(1);
        }
        let mut kinds: Vec<QueuedKind> = kinds
            .into_iter()
            .map(|((kind, resumes), count)| QueuedKind {
                kind,
                count,
                resumes,
            })
            .collect();
        kinds.sort_unstable_by(|a, b| b.count.cmp(&a.count).then_with(|| a.kind.cmp(&b.kind)));
        let left_out = kinds
            .iter()
            .skip(MAX_KINDS)
            .map(|k| k.count)
            .fold(0, u64::saturating_add);
        kinds.truncate(MAX_KINDS);
        let len = |items: &[Addr]| items.len() as u64;
        QueuedWork {
            global: len(&queues.global).saturating_add(len(&queues.low_priority)),
            high_priority: len(&queues.high_priority),
            local: queues
                .local
                .iter()
                .map(|q| len(q))
                .fold(0, u64::saturating_add),
            by_kind: kinds,
            left_out,
        }
    }

    /// What a queued item is, and the signature of the chains that it resumes.
    fn item_kind(&self, item: Addr, groups: &Groups) -> (String, Option<String>) {
        let target = work_item_targets(self.rt, &self.graph, item)
            .into_iter()
            .find(|id| {
                self.graph.machines.contains_key(id) || self.graph.operations.contains_key(id)
            });
        if let Some(id) = target {
            let (method, at, least) = self.innermost_await(id);
            let text = match at {
                Some(at) if least => format!("resumption of {method} at await {at} or later"),
                Some(at) => format!("resumption of {method} at await {at}"),
                None => format!("resumption of {method}"),
            };
            return (text, resumed(groups, &method, at));
        }
        (self.plain_item(item), None)
    }

    /// The method of a node that will go on first, and the await that it stands at, or the first that it can be.
    fn innermost_await(&self, id: NodeId) -> (String, Option<u32>, bool) {
        let step = steps_of(&self.graph, id).next();
        let Some(step) = step else {
            return (self.node_text(id), None, false);
        };
        let at = self.step_await(step).and_then(|n| u32::try_from(n).ok());
        (self.step_name(step).to_string(), at, is_least_await(step))
    }

    fn plain_item(&self, item: Addr) -> String {
        let Some(ty) = self.rt.type_of(item) else {
            return "unreadable item".into();
        };
        let name = self.rt.definition_name(&ty);
        let delegate = ["m_action", "_callback", "_callbackDefaultContext"]
            .iter()
            .find_map(|f| self.rt.reference(item, f));
        let of = delegate
            .and_then(|d| self.delegate_text(d))
            .map(|d| format!(" of {d}"))
            .unwrap_or_default();
        if self.rt.is_a(ty.mt, "System.Threading.Tasks.Task") {
            return format!("Task{of}");
        }
        let short = name.strip_prefix("System.Threading.").unwrap_or(&name);
        if short.starts_with("QueueUserWorkItemCallback") {
            return format!("QueueUserWorkItem{of}");
        }
        format!("{}{of}", self.rt.name(&ty))
    }

    /// The method that a delegate calls, else the type that it was made in.
    pub(crate) fn delegate_text(&self, delegate: Addr) -> Option<String> {
        let method = self.rt.delegate_method(delegate);
        let method = method.map(|m| self.rt.method_name(&m).to_string());
        method.or_else(|| {
            let target = self.rt.reference(delegate, "_target")?;
            let name = self.rt.type_of(target).map(|t| self.rt.name(&t))?;
            // a closure stands inside the type whose method made it
            let outer = name.split("+<>").next().unwrap_or(&name);
            Some(format!("a delegate of {outer}"))
        })
    }
}

/// The signature of the only group whose innermost frame is this one and is ready to go on.
fn resumed(groups: &Groups, method: &str, at: Option<u32>) -> Option<String> {
    let mut fitting = groups.groups.iter().filter(|g| {
        g.leaf.kind == LeafKind::Ready
            && g.frames
                .first()
                .is_some_and(|f| f.method == method && f.await_index == at && f.il_offset.is_none())
    });
    let only = fitting.next()?;
    fitting.next().is_none().then(|| only.signature.clone())
}
