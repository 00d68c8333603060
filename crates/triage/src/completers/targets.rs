//! What has to be completed for waits to end.

use super::calls::By;
use super::{MAX_TARGETS, Target};
use crate::paths::Analysis;
use crate::threads::{Hang, Wait, WaitsOn};
use asynctriage_async_graph::NodeId;
use asynctriage_clr::{Gap, GapKind};
use asynctriage_dump::Addr;
use asynctriage_report::LeafKind;
use rustc_hash::FxHashMap;

impl Analysis<'_, '_> {
    /// The object that somebody has to complete for a wait to end.
    pub(super) fn target(&self, kind: LeafKind, leaf: NodeId) -> Option<Target> {
        use LeafKind as K;
        let object = self.graph.object(leaf)?.addr;
        let (object, by) = match kind {
            K::Semaphore | K::AsyncLock => (*self.graph.semaphores.get(&object)?, By::Release),
            K::ValueTaskSource => (object, By::Result),
            K::ChannelRead | K::ChannelWrite => {
                let wait = self.channel_waits.get(&object)?;
                (wait.channel, if wait.writes { By::Take } else { By::Put })
            }
            K::TaskCompletionSource | K::Database | K::Cache | K::MessageBroker | K::Grpc => {
                (*self.graph.completion_sources.get(&object)?, By::Result)
            }
            // what is complete resumes nobody; nothing that is known does
            K::Ready => {
                let waiter = self.graph.waiters(leaf).next()?;
                let is_queued = self.graph.queues.resumes.contains(&waiter);
                let object = self.graph.object(waiter).filter(|_| !is_queued)?.addr;
                (object, By::Resume)
            }
            K::Unknown if !self.graph.queues.resumes.contains(&leaf) => (object, By::Resume),
            _ => return None,
        };
        Some(Target { object, by })
    }

    /// By semaphore or source: the tasks that it completes.
    pub(super) fn tasks_of(&self) -> FxHashMap<Addr, Vec<NodeId>> {
        let graph = &self.graph;
        let mut out: FxHashMap<Addr, Vec<NodeId>> = FxHashMap::default();
        let channels = self.channel_waits.iter().map(|(op, w)| (op, &w.channel));
        let all = graph.semaphores.iter().chain(&graph.completion_sources);
        for (task, by) in all.chain(channels) {
            if let Some(node) = graph.node(*task) {
                out.entry(*by).or_default().push(node);
            }
        }
        out
    }
}

/// The semaphores and events that threads wait for.
pub(super) fn waited_for(hang: &Hang) -> impl Iterator<Item = Target> {
    hang.threads.iter().filter_map(|t| {
        let Some(Wait::Object(wait)) = &t.wait else {
            return None;
        };
        let by = match wait.on {
            WaitsOn::Semaphore => By::Release,
            WaitsOn::Event => By::Set,
            _ => return None,
        };
        Some(Target {
            object: wait.at?,
            by,
        })
    })
}

pub(super) fn unsearched(targets: usize) -> Option<Gap> {
    let more = targets.checked_sub(MAX_TARGETS).filter(|n| *n > 0)?;
    Some(Gap {
        kind: GapKind::CompleterLimit,
        place: "who completes what chains wait for".into(),
        why: format!(
            "{targets} objects are waited for; completers were looked for of {MAX_TARGETS}, not of {more}"
        ),
        remedy: "of the others no completer is named although there may be one: `asynctriage show DUMP ADDRESS` shows single objects".into(),
    })
}
