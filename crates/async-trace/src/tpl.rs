//! What the task library's events tell of waits: the fallback for processes before .NET 11.
//!
//! Only tasks that were awaited after the recording began are known, and a method that awaits `Task.Yield` begins no
//! wait. Ids are those of `Task.Id`, which is the field `m_taskId` of a task in a dump; they are no ids of dispatchers.

mod chains;

use std::collections::BTreeMap;

use asynctriage_nettrace::Event;
use asynctriage_nettrace::tpl::{Behavior, PROVIDER, TplEvent};
use rustc_hash::{FxHashMap, FxHashSet};

pub use chains::PendingChain;

/// `Task.Id` of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TaskId(pub i64);

/// What the task library's events tell.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tpl {
    /// Events by name, or by number where the metadata has no name.
    pub by_event: BTreeMap<String, u64>,
    /// Events whose fields could not be read.
    pub undecoded: u64,
    /// Operations that began: calls of async methods that had to wait, `Task.Delay` and the like.
    pub operations: u64,
    /// Operations that ended; some may have begun before the recording.
    pub ended: u64,
    /// Waits that had not ended, of operations and of threads. Where the file has lost events, the end of a wait may be
    /// among them: then this, and the chains, are no proof.
    pub pending_waits: u64,
    /// Operations that had neither ended nor wait for a task: they run, or wait to be run, as after `Task.Yield`.
    pub without_wait: u64,
    /// The waits put together, those that occur most often first.
    pub chains: Vec<PendingChain>,
    /// Chains that are not in the list, which has a bound.
    pub more_chains: u64,
}

/// An event with what orders it.
#[derive(Clone, Copy, Debug)]
struct Timed<'a> {
    time: u64,
    offset: u64,
    thread: u64,
    event: TplEvent<'a>,
}

/// A wait that has not ended.
#[derive(Clone, Copy, Debug)]
struct Wait {
    task: TaskId,
    since: u64,
}

/// Number of a name: each is kept once.
type NameId = u32;

/// Follows the events of a recording; memory follows what is alive in the process, and the events between two sequence
/// points of the file, which have to be sorted.
#[derive(Clone, Debug, Default)]
pub struct TplRecording<'a> {
    tpl: Tpl,
    region: u64,
    unsorted: Vec<Timed<'a>>,
    names: Vec<String>,
    name_ids: FxHashMap<String, NameId>,
    /// Operations that have not ended.
    operations: FxHashMap<TaskId, NameId>,
    /// What an operation waits for: one thing at a time.
    waits: FxHashMap<TaskId, Wait>,
    waiters: FxHashMap<TaskId, FxHashSet<TaskId>>,
    /// Threads that block on a task.
    blocked: FxHashMap<(TaskId, u64), u64>,
}

impl<'a> TplRecording<'a> {
    /// Nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the next event of the file; `false` when it is not one of the task library.
    pub fn push(&mut self, event: &Event<'a>) -> bool {
        if event.kind.provider != PROVIDER {
            return false;
        }
        if event.region != self.region {
            self.region = event.region;
            self.sort();
        }
        // the number is looked up before the name is copied
        let name = event.kind.name.as_str();
        match self.tpl.by_event.get_mut(name) {
            Some(count) => *count = count.saturating_add(1),
            None if name.is_empty() => {
                let number = self.tpl.by_event.entry(event.kind.id.to_string());
                let count = number.or_default();
                *count = count.saturating_add(1);
            }
            None => drop(self.tpl.by_event.insert(name.to_owned(), 1)),
        }
        match TplEvent::decode(event) {
            Some(decoded) => self.unsorted.push(Timed {
                time: event.timestamp,
                offset: event.offset,
                thread: event.thread,
                event: decoded,
            }),
            None => self.tpl.undecoded = self.tpl.undecoded.saturating_add(1),
        }
        true
    }

    /// Whether there was no event.
    pub fn is_empty(&self) -> bool {
        self.tpl.by_event.is_empty()
    }

    /// What the events tell when there are no more.
    pub fn finish(mut self) -> Tpl {
        self.sort();
        let waits = self.waits.len().saturating_add(self.blocked.len());
        self.tpl.pending_waits = waits as u64;
        let without = |task: &&TaskId| !self.waits.contains_key(task);
        self.tpl.without_wait = self.operations.keys().filter(without).count() as u64;
        let (chains, more) = chains::chains(&self);
        self.tpl.chains = chains;
        self.tpl.more_chains = more;
        self.tpl
    }

    /// Follows the events that were put aside: those of one region, in the order of time.
    fn sort(&mut self) {
        let mut events = std::mem::take(&mut self.unsorted);
        events.sort_unstable_by_key(|timed| (timed.time, timed.offset));
        for timed in events.drain(..) {
            self.follow(&timed);
        }
        self.unsorted = events;
    }

    fn follow(&mut self, timed: &Timed<'a>) {
        match timed.event {
            TplEvent::OperationBegin { task, name } => {
                let name = self.name(&name.to_string());
                if self.operations.insert(TaskId(task), name).is_none() {
                    self.tpl.operations = self.tpl.operations.saturating_add(1);
                }
            }
            TplEvent::OperationEnd { task, .. } => {
                self.tpl.ended = self.tpl.ended.saturating_add(1);
                self.operations.remove(&TaskId(task));
                self.stop_waiting(TaskId(task));
            }
            TplEvent::WaitBegin {
                task,
                behavior,
                continues,
                ..
            } => self.begin(timed, TaskId(task), behavior, TaskId(continues)),
            TplEvent::WaitEnd { task } => self.end(timed.thread, TaskId(task)),
            _ => {}
        }
    }

    fn begin(&mut self, timed: &Timed<'a>, task: TaskId, behavior: Behavior, continues: TaskId) {
        if behavior == Behavior::Synchronous || continues == TaskId(0) {
            self.blocked.insert((task, timed.thread), timed.time);
            return;
        }
        self.stop_waiting(continues);
        let wait = Wait {
            task,
            since: timed.time,
        };
        self.waits.insert(continues, wait);
        self.waiters.entry(task).or_default().insert(continues);
    }

    /// A wait that a thread began itself is over, perhaps by its time limit; any other end means that the task has
    /// ended, for all who wait for it.
    fn end(&mut self, thread: u64, task: TaskId) {
        if self.blocked.remove(&(task, thread)).is_some() {
            return;
        }
        for waiter in self.waiters.remove(&task).unwrap_or_default() {
            self.waits.remove(&waiter);
        }
    }

    fn stop_waiting(&mut self, task: TaskId) {
        let Some(wait) = self.waits.remove(&task) else {
            return;
        };
        if let Some(waiters) = self.waiters.get_mut(&wait.task) {
            waiters.remove(&task);
            if waiters.is_empty() {
                self.waiters.remove(&wait.task);
            }
        }
    }

    fn name(&mut self, name: &str) -> NameId {
        if let Some(id) = self.name_ids.get(name) {
            return *id;
        }
        let id = NameId::try_from(self.names.len()).unwrap_or(NameId::MAX);
        self.names.push(name.to_owned());
        self.name_ids.insert(name.to_owned(), id);
        id
    }
}

#[cfg(test)]
mod tests;
