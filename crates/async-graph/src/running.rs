//! Methods that run now: what resumed them is done, and they have not come to their next await.
//!
//! A state machine that runs has the state -1 and a task that has not ended. A task of runtime-async methods that run has
//! no continuation: what waits for the running method inside the same task is known to the dispatcher on its thread's stack
//! alone (`AsyncDispatcherInfo`, 11.0.0).

use crate::graph::{Builder, NodeId};
use crate::runtime_async::{self, AsyncFrame};
use asynctriage_clr::{Place, Runtime, Thread};
use asynctriage_dump::Addr;
use rustc_hash::FxHashSet;

/// Dispatchers of one thread: each is one resumption inside another.
const MAX_DISPATCHERS: usize = 256;

/// A method that runs now, or was resumed and lost.
#[derive(Clone, Debug)]
pub enum Running {
    /// A state machine.
    Machine(RunningMachine),
    /// The innermost method of a task of runtime-async methods.
    Operation(RunningOperation),
}

/// A state machine whose state says that it runs.
#[derive(Clone, Debug)]
pub struct RunningMachine {
    /// Where its fields are, and its exact type.
    pub place: Place,
    /// Whether it is an async iterator.
    pub iterator: bool,
    /// Whether it is an `async void` method.
    pub is_void: bool,
}

/// Runtime-async methods of one task, the innermost of which runs.
#[derive(Clone, Debug, Default)]
pub struct RunningOperation {
    /// The dispatcher that has resumed them; `None` when no thread has one for their task.
    pub dispatcher: Option<Dispatcher>,
    /// The methods of the task that wait for the running one, innermost first.
    pub frames: Vec<AsyncFrame>,
}

/// A structure on the stack of a thread that resumes runtime-async methods.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dispatcher {
    /// Managed id of the thread.
    pub thread: u32,
    /// Where it stands.
    pub at: Addr,
}

impl Running {
    /// The methods of the same task that wait for the running one, innermost first.
    pub fn frames(&self) -> impl Iterator<Item = &AsyncFrame> {
        let frames = match self {
            Self::Machine(_) => &[][..],
            Self::Operation(operation) => &operation.frames,
        };
        frames.iter().filter(|f| f.is_async())
    }

    /// The state machine, when it is one.
    #[must_use]
    pub fn machine(&self) -> Option<&RunningMachine> {
        match self {
            Self::Machine(machine) => Some(machine),
            Self::Operation(_) => None,
        }
    }
}

/// A dispatcher with what it says.
struct Resumption {
    dispatcher: Dispatcher,
    task: Addr,
    /// The continuation that it resumes when the running method has ended.
    next: Option<Addr>,
}

impl Builder<'_, '_> {
    /// Tells of the running tasks of runtime-async methods which thread runs them, and who waits inside the task.
    pub(crate) fn link_dispatchers(&mut self) {
        let is_operation = |running: &Running| matches!(running, Running::Operation(_));
        if !self.out.running.values().any(is_operation) {
            return;
        }
        let (threads, _) = self.rt.threads();
        for resumption in threads.iter().flat_map(|t| resumptions(self.rt, t)) {
            let id: Option<NodeId> = self.out.node(resumption.task);
            let running = id.and_then(|id| self.out.running.get_mut(&id));
            if let Some(Running::Operation(operation)) = running {
                operation.dispatcher = Some(resumption.dispatcher);
                operation.frames = runtime_async::frames(self.rt, resumption.next);
            }
        }
    }
}

/// The resumptions on a thread's stack, innermost first.
fn resumptions(rt: &Runtime<'_>, thread: &Thread) -> Vec<Resumption> {
    let mut out = Vec::new();
    let mut seen = FxHashSet::default();
    let mut read = || {
        let mt = rt.core_type("System.Runtime.CompilerServices", "AsyncDispatcherInfo")?;
        let ty = rt.ty(mt)?;
        let offset = |name| Some(rt.instance_field(&ty, name)?.offset);
        let (outer, next, task) = (
            offset("Next")?,
            offset("NextContinuation")?,
            offset("CurrentTask")?,
        );
        let first = rt.thread_static_addr(thread, mt, "t_current")?;
        let (start, end) = thread.stack?;
        let mut at = rt.memory().ptr(first)?.non_null();
        while let Some(info) = at.filter(|a| start <= *a && *a < end)
            && out.len() < MAX_DISPATCHERS
            && seen.insert(info)
        {
            let named = |offset| rt.memory().ptr(info + offset).and_then(Addr::non_null);
            out.extend(named(task).map(|task| Resumption {
                dispatcher: Dispatcher {
                    thread: thread.managed_id,
                    at: info,
                },
                task,
                next: named(next),
            }));
            at = named(outer);
        }
        Some(())
    };
    read();
    out
}
