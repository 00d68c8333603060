//! SynchronizationContexts and TaskSchedulers: what goes on in them, and which threads run that.

use super::Reader;
use super::graph::{Edge, Needs, Node, Waits};
use super::waits::certain;
use crate::threads::ThreadFacts;
use asynctriage_async_graph::{Class, NodeId, PostedTo};
use asynctriage_clr::FrameSource;
use asynctriage_dump::Addr;
use asynctriage_report::Confidence;

/// Contexts whose one thread runs all that is posted.
const OF_ONE_THREAD: [&str; 2] = [
    "System.Windows.Forms.WindowsFormsSynchronizationContext",
    "System.Windows.Threading.DispatcherSynchronizationContext",
];
/// What posts to the pool.
const POOLED: [&str; 2] = [
    "System.Threading.SynchronizationContext",
    "System.Threading.Tasks.ThreadPoolTaskScheduler",
];
const PAIR: &str = "System.Threading.Tasks.ConcurrentExclusiveSchedulerPair";
const SCHEDULER_OF_CONTEXT: &str = "System.Threading.Tasks.SynchronizationContextTaskScheduler";
/// Words of a stack that are searched for what runs there.
const MAX_WORDS: usize = 1 << 16;

impl Reader<'_, '_, '_> {
    /// The context or scheduler that a method goes on in, or that a task is queued in.
    pub(super) fn pump_of(&self, id: NodeId) -> Option<(Addr, Edge)> {
        let (rt, graph) = (self.a.rt, &self.a.graph);
        if let Some(operation) = graph.operations.get(&id) {
            let Some(PostedTo::SyncContext(pump) | PostedTo::Scheduler(pump)) = operation.goes_to
            else {
                return self.keeps(graph.object(id)?.addr);
            };
            return Some((pump, certain(None, "the context of its continuation")));
        }
        let node = graph.object(id)?;
        if graph.machines.contains_key(&id) {
            let action = graph.task?.action(rt, node.addr)?;
            let Some((continuation, pump)) = self.a.posted.get(&action).copied() else {
                return self.keeps(node.addr);
            };
            let how = "the continuation of what it awaits names the context";
            return Some((pump, certain(Some(continuation), how)));
        }
        let is_queued = node.class == Class::Task
            && graph
                .task
                .is_some_and(|t| t.status(rt, node.addr) == "WaitingToRun");
        let slot = rt.field_addr(node.addr, "m_taskScheduler")?;
        let pump = rt.memory().ptr(slot)?.non_null().filter(|_| is_queued)?;
        Some((pump, certain(Some(slot), "m_taskScheduler")))
    }

    /// The context or scheduler whose queue leads to a method's continuation.
    fn keeps(&self, method: Addr) -> Option<(Addr, Edge)> {
        let (pump, slot) = self.completers.posted_to(method)?;
        let edge = Edge {
            confidence: Confidence::Likely,
            ..certain(Some(slot), "its fields lead to the continuation")
        };
        Some((pump, edge))
    }

    /// The threads that run what is posted.
    pub(super) fn of_pump(&self, at: Addr) -> Waits {
        let rt = self.a.rt;
        let Some(name) = rt.object_type_name(at) else {
            return Waits::default();
        };
        if POOLED.contains(&&*name) {
            return Waits::default();
        }
        if name.starts_with(PAIR) {
            return self.of_pair(at);
        }
        if &*name == SCHEDULER_OF_CONTEXT {
            let field = "m_synchronizationContext";
            let context = rt.reference(at, field);
            let edge = certain(rt.field_addr(at, field), field);
            return Waits {
                needs: Needs::All,
                on: context.map(|c| (Node::Pump(c), edge)).into_iter().collect(),
            };
        }
        let mut on = self.threads_with(at, &name);
        if on.is_empty() {
            on = self.threads_in(&name);
        }
        Waits {
            needs: Needs::Any { open: false },
            on,
        }
    }

    /// Threads that have a context as their own.
    fn threads_with(&self, context: Addr, name: &str) -> Vec<(Node, Edge)> {
        let own = |t: &ThreadFacts| {
            let slot = self
                .a
                .rt
                .field_addr(t.thread.object?, "_synchronizationContext")?;
            let is_own = self.a.rt.memory().ptr(slot) == Some(context);
            is_own.then_some(slot)
        };
        let confidence = if OF_ONE_THREAD.contains(&name) {
            Confidence::Certain
        } else {
            Confidence::Likely
        };
        let edge = |slot| Edge {
            slot: Some(slot),
            how: "Thread._synchronizationContext".into(),
            confidence,
        };
        let threads = self.hang.threads.iter();
        threads
            .filter_map(|t| Some((Node::Thread(t.thread.managed_id), edge(own(t)?))))
            .collect()
    }

    /// Threads that are in methods of the class of a context or scheduler.
    fn threads_in(&self, class: &str) -> Vec<(Node, Edge)> {
        let class = class.replace('+', ".");
        let is_of_class = |name: &str| {
            name.strip_prefix(&*class)
                .is_some_and(|rest| rest.starts_with('.') || rest.starts_with(' '))
        };
        let runs = |t: &&ThreadFacts| {
            let mut frames = t.frames.iter();
            frames.any(|f| f.frame.source != FrameSource::StackScan && is_of_class(&f.name))
        };
        let threads = self.hang.threads.iter().filter(runs);
        let edge = || Edge {
            slot: None,
            how: "frames of its class stand on the thread's stack".into(),
            confidence: Confidence::Likely,
        };
        threads
            .map(|t| (Node::Thread(t.thread.managed_id), edge()))
            .collect()
    }

    /// An exclusive scheduler runs one task, and only while the concurrent one of its pair runs none; that one runs as
    /// many as it may while no exclusive task runs.
    fn of_pair(&self, scheduler: Addr) -> Waits {
        let rt = self.a.rt;
        let Some(pair) = rt.reference(scheduler, "m_pair") else {
            return Waits::default();
        };
        let exclusive = self.processing(pair, "ProcessExclusiveTasks");
        let concurrent = self.processing(pair, "ProcessConcurrentTasks");
        if rt.reference(pair, "m_exclusiveTaskScheduler") == Some(scheduler) {
            return Waits {
                needs: Needs::All,
                on: exclusive.into_iter().chain(concurrent).collect(),
            };
        }
        if !exclusive.is_empty() {
            return Waits {
                needs: Needs::All,
                on: exclusive,
            };
        }
        let most = rt.field_u32(pair, "m_maxConcurrencyLevel");
        let open = most.is_none_or(|most| (concurrent.len() as u64) < u64::from(most));
        Waits {
            needs: Needs::Any { open },
            on: concurrent,
        }
    }

    /// The threads that run tasks of a pair of schedulers.
    fn processing(&self, pair: Addr, method: &str) -> Vec<(Node, Edge)> {
        let method = format!("{PAIR}.{method}");
        let runs = |t: &&ThreadFacts| {
            let mut frames = t.frames.iter();
            frames.any(|f| f.frame.source != FrameSource::StackScan && f.name.starts_with(&*method))
        };
        let slot = |t: &ThreadFacts| {
            let mut words = self.a.rt.stack_words(&t.thread).take(MAX_WORDS);
            words.find(|(_, word)| *word == pair).map(|(slot, _)| slot)
        };
        let threads = self.hang.threads.iter().filter(runs);
        threads
            .filter_map(|t| {
                let edge = Edge {
                    slot: slot(t)?,
                    how: format!("{method} and the pair stand on the thread's stack").into(),
                    confidence: Confidence::Certain,
                };
                Some((Node::Thread(t.thread.managed_id), edge))
            })
            .collect()
    }
}
