//! What kind of deadlock one is, by what it crosses.

use super::super::Facts;
use crate::waitfor::{Knot, Node};
use asynctriage_async_graph::Helper;
use asynctriage_report::FindingKind;

/// What a deadlock crosses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Crossed {
    threads: bool,
    methods: bool,
    locks: bool,
    semaphores: bool,
    /// Whether nobody is inside one of the semaphores.
    signals: bool,
    contexts: bool,
    schedulers: bool,
    classes: bool,
    callbacks: bool,
    events: bool,
    channels: bool,
    /// Whether a thread waits for the end of another.
    ends: bool,
}

impl Crossed {
    pub(super) fn by(facts: Facts<'_, '_, '_>, knot: &Knot) -> Self {
        let schedulers = facts.a.graph.helpers(Helper::Scheduler);
        let mut out = Self::default();
        for member in &knot.members {
            match member {
                Node::Thread(_) => out.threads = true,
                Node::Async(id) => {
                    out.methods = true;
                    let object = facts.a.graph.object(*id);
                    out.channels |=
                        object.is_some_and(|n| facts.a.channel_waits.contains_key(&n.addr));
                }
                Node::Lock(_) | Node::ReaderWriter { .. } => out.locks = true,
                Node::Semaphore(at) => {
                    out.semaphores = true;
                    out.signals |= facts.deadlocks.holders.of(*at).is_empty();
                }
                Node::Pump(at) if schedulers.contains(at) => out.schedulers = true,
                Node::Pump(_) => out.contexts = true,
                Node::Class(_) => out.classes = true,
                Node::Callback(_) => out.callbacks = true,
                Node::Event(_) => out.events = true,
            }
        }
        let is_thread = |n: &Node| matches!(n, Node::Thread(_));
        out.ends = knot
            .edges
            .iter()
            .any(|(f, t, _)| is_thread(f) && is_thread(t));
        out
    }

    /// The kind that tells most about the cause.
    pub(super) fn kind(self) -> FindingKind {
        use FindingKind as K;
        match self {
            Self { classes: true, .. } => K::TypeInitializerDeadlock,
            Self {
                callbacks: true, ..
            } => K::CancellationDeadlock,
            Self {
                schedulers: true, ..
            } => K::SchedulerDeadlock,
            Self { contexts: true, .. } => K::SyncContextDeadlock,
            Self {
                semaphores: true, ..
            } => K::SemaphoreDeadlock,
            Self { threads: false, .. } => K::AwaitCycle,
            Self {
                methods: false,
                ends: false,
                events: false,
                ..
            } => K::LockDeadlock,
            _ => K::MixedDeadlock,
        }
    }

    /// `over locks and semaphores`.
    pub(super) fn over(self) -> Vec<&'static str> {
        let all = [
            (self.classes, "class constructors"),
            (self.callbacks, "callbacks of a cancellation"),
            (self.schedulers, "a scheduler"),
            (self.contexts, "a SynchronizationContext"),
            (self.locks, "locks"),
            (self.semaphores, "semaphores"),
            (self.events, "events"),
            (self.channels, "channels"),
            (self.methods, "tasks"),
            (self.ends, "Thread.Join"),
        ];
        all.iter()
            .filter(|(is, _)| *is)
            .map(|(_, what)| *what)
            .collect()
    }

    pub(super) fn next(self) -> &'static str {
        use FindingKind as K;
        match self.kind() {
            K::TypeInitializerDeadlock => {
                "restart the process; then take no lock and wait for nothing in the class constructor, or begin it before any lock is taken"
            }
            K::CancellationDeadlock => {
                "restart the process; then do not dispose a registration inside a callback that the other's callback may wait for (Unregister does not wait)"
            }
            K::SchedulerDeadlock => {
                "await instead of blocking in a task of that scheduler, or use ConfigureAwait(false) in the methods below"
            }
            K::SyncContextDeadlock => {
                "await instead of blocking on that thread, or use ConfigureAwait(false) in the methods below"
            }
            K::AwaitCycle if self.channels => {
                "restart the process; then let one of them read or write what the other waits for before it waits itself, or give the channels more room"
            }
            K::AwaitCycle => {
                "find how each gets hold of what the other waits for; let one of them complete what it holds before it waits itself"
            }
            K::SemaphoreDeadlock if self.signals => {
                "restart the process; then let one of them release or complete what the other waits for before it waits itself"
            }
            K::SemaphoreDeadlock => {
                "restart the process; then let every method enter these semaphores and locks in the same order, and wait for nothing else while inside"
            }
            K::MixedDeadlock if self.events => {
                "restart the process; then let one of them set or complete what the other waits for before it waits itself"
            }
            _ if self.locks => {
                "restart the process; then let every thread take these locks in the same order, and do not wait for tasks while holding one"
            }
            _ => "restart the process; then let one of them go on without waiting for the other",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kind_is_that_of_the_cause() {
        let threads = Crossed {
            threads: true,
            ..Crossed::default()
        };
        let locks = Crossed {
            locks: true,
            ..threads
        };
        assert_eq!(locks.kind(), FindingKind::LockDeadlock);
        let with = |f: fn(&mut Crossed)| {
            let mut crossed = locks;
            f(&mut crossed);
            crossed.kind()
        };
        assert_eq!(with(|c| c.methods = true), FindingKind::MixedDeadlock);
        assert_eq!(with(|c| c.ends = true), FindingKind::MixedDeadlock);
        assert_eq!(
            with(|c| c.semaphores = true),
            FindingKind::SemaphoreDeadlock
        );
        assert_eq!(
            with(|c| c.contexts = true),
            FindingKind::SyncContextDeadlock
        );
        assert_eq!(
            with(|c| c.schedulers = true),
            FindingKind::SchedulerDeadlock
        );
        assert_eq!(
            with(|c| c.callbacks = true),
            FindingKind::CancellationDeadlock
        );
        assert_eq!(
            with(|c| c.classes = true),
            FindingKind::TypeInitializerDeadlock
        );
        let methods = Crossed {
            methods: true,
            ..Crossed::default()
        };
        assert_eq!(methods.kind(), FindingKind::AwaitCycle);
    }
}
