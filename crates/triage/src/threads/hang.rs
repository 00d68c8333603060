//! What every thread does: what it blocks on, what it holds, which request it serves.

use super::waits::{ObjectWait, RwLocks};
use super::{RunsOn, Stacks, display_name, running};
use crate::facts::RequestFacts;
use crate::libraries::Owner;
use crate::libraries::server;
use asynctriage_async_graph::{Class, Helper, NodeId};
use asynctriage_clr::{Block, BlockKind, FrameSource, Lock, MethodKind, StackFrame, Thread};
use asynctriage_dump::Addr;
use asynctriage_report::Confidence;
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::Arc;

/// `ManualResetEventSlim.m_combinedState`: it has been set (8.0 to 11.0).
const IS_SET: u32 = 1 << 31;
/// Words of a stack that are looked at for who has a lock.
const MAX_WORDS: usize = 1 << 16;

/// Frames of the primitives that everything else waits with; who calls them is what a thread waits in.
const MECHANISM: [&str; 7] = [
    "System.Threading.Monitor.",
    "System.Threading.Lock.",
    "System.Threading.Condition.",
    "System.Threading.WaitSubsystem.",
    "System.Threading.WaitHandle.",
    "System.Threading.LowLevel",
    // what workers of the pool wait with on Windows
    "Interop.Kernel32.GetQueuedCompletionStatus",
];

/// What a thread waits for.
#[derive(Clone, Debug)]
pub(crate) enum Wait {
    /// A task, synchronously: the object that its completion sets.
    Task(NodeId),
    /// To enter a lock.
    Lock(Lock),
    /// The program's own `Monitor.Wait`.
    Pulse(Lock),
    /// Something that .NET builds on `Monitor.Wait`: the method, and the lock.
    Inside(Arc<str>, Lock),
    /// Anything else that threads wait for.
    Object(ObjectWait),
}

/// One thread.
#[derive(Clone, Debug)]
pub(crate) struct ThreadFacts {
    pub(crate) thread: Thread,
    pub(crate) frames: Vec<StackMethod>,
    pub(crate) wait: Option<Wait>,
    /// The runtime's note of what it blocks on.
    pub(crate) block: Option<Block>,
    pub(crate) holds: Vec<Lock>,
    pub(crate) request: Option<RequestFacts>,
}

/// A frame of a thread's stack.
#[derive(Clone, Debug)]
pub(crate) struct StackMethod {
    pub(crate) frame: StackFrame,
    pub(crate) name: Arc<str>,
    pub(crate) owner: Owner,
}

/// A method on a thread's stack.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OnStack<'t> {
    pub(crate) name: &'t Arc<str>,
    /// Whether it may have returned: nothing but an address on the stack speaks for it.
    pub(crate) is_possible: bool,
}

impl<'t> OnStack<'t> {
    pub(crate) fn new(frame: &StackFrame, name: &'t Arc<str>) -> Self {
        Self {
            name,
            is_possible: frame.source == FrameSource::StackScan,
        }
    }

    /// `in Method`, `possibly in Method`; `how` stands for the `in`.
    pub(crate) fn place(self, how: &str) -> String {
        let possibly = if self.is_possible { "possibly " } else { "" };
        format!("{possibly}{how} {}", self.name)
    }

    /// How sure a finding can be at most that names the method.
    pub(crate) fn ceiling(self) -> Confidence {
        if self.is_possible {
            Confidence::Likely
        } else {
            Confidence::Certain
        }
    }
}

/// All threads that live.
#[derive(Debug, Default)]
pub(crate) struct Hang {
    pub(crate) threads: Vec<ThreadFacts>,
    /// Methods and delegates that run, by the box or task that they complete, where their thread is known.
    pub(crate) running: FxHashMap<NodeId, RunsOn>,
}

impl ThreadFacts {
    /// What a person calls it.
    pub(crate) fn name(&self) -> String {
        display_name(&self.thread)
    }

    /// `'name' (os id 123)`.
    pub(crate) fn title(&self) -> String {
        format!("'{}' (os id {})", self.name(), self.thread.os_id)
    }

    /// The innermost frame that is not part of a primitive.
    pub(crate) fn caller(&self) -> Option<OnStack<'_>> {
        let caller = self.innermost_outside()?;
        Some(OnStack::new(&caller.frame, &caller.name))
    }

    fn innermost_outside(&self) -> Option<&StackMethod> {
        let outside = |name: &str| !MECHANISM.iter().any(|m| name.starts_with(m));
        self.frames.iter().find(|f| outside(&f.name))
    }

    /// Whether it runs code: it waits for nothing, does not sleep, and is in no call to the system.
    pub(crate) fn computes(&self) -> bool {
        let top = self.frames.first();
        let runs = |top: &StackMethod| {
            top.frame.method.kind != MethodKind::Stub && !top.name.starts_with("Interop.")
        };
        !self.is_guessed() && self.wait.is_none() && !self.thread.in_wait() && top.is_some_and(runs)
    }

    /// Whether nothing is known of its stack but addresses that may be left over.
    pub(crate) fn is_guessed(&self) -> bool {
        let mut frames = self.frames.iter();
        frames.all(|f| f.frame.source == FrameSource::StackScan)
    }

    /// Whether it is a worker of the pool that waits for work, or a thread of the pool that waits for the end of
    /// input and output (Windows). Frames that may have returned do not tell it.
    pub(crate) fn is_parked(&self) -> bool {
        let pool = ["WorkerThread.", "IOCompletionPoller."];
        self.caller()
            .filter(|c| !c.is_possible)
            .and_then(|c| c.name.strip_prefix("System.Threading.PortableThreadPool."))
            .is_some_and(|n| pool.iter().any(|p| n.starts_with(p)))
    }

    /// The innermost method of the program on its stack, and whether code made at run time stands below it.
    pub(crate) fn own_method(&self) -> Option<(OnStack<'_>, bool)> {
        let mut generated = false;
        for StackMethod { frame, name, owner } in &self.frames {
            if matches!(frame.method.kind, MethodKind::Dynamic | MethodKind::Stub) {
                generated = true;
            } else if !owner.is_framework() {
                return Some((OnStack::new(frame, name), generated));
            }
        }
        None
    }
}

impl Hang {
    pub(crate) fn find(stacks: Stacks<'_, '_>) -> Self {
        let rt = stacks.rt;
        let locks: Vec<Lock> = rt
            .sync_locks()
            .into_iter()
            .chain(
                stacks
                    .graph
                    .helpers(Helper::Lock)
                    .iter()
                    .filter_map(|l| rt.managed_lock(*l)),
            )
            .collect();
        let mut seen = FxHashSet::default();
        let locks: Vec<Lock> = locks.into_iter().filter(|l| seen.insert(l.at)).collect();
        let mut held: FxHashMap<u32, Vec<Lock>> = FxHashMap::default();
        for lock in &locks {
            if let Some(owner) = lock.owner {
                held.entry(owner).or_default().push(lock.clone());
            }
        }
        let entered = RwLocks::read(stacks);
        let living = stacks.threads.all.iter().enumerate();
        let living = living.filter(|(_, t)| !t.is_dead() && !t.is_unstarted());
        let living = rt.budget().each("threads, for what they do", living);
        let threads = living.map(|(index, t)| {
            let mut holds = held.remove(&t.managed_id).unwrap_or_default();
            holds.extend(
                stacks
                    .threads
                    .thin_locks
                    .get(index)
                    .into_iter()
                    .flatten()
                    .cloned(),
            );
            holds.extend(entered.held_by(t.managed_id));
            stacks.thread_facts(t, holds, &entered)
        });
        let threads: Vec<_> = threads.collect();
        Self {
            running: running::find(stacks, &threads),
            threads,
        }
    }

    /// The thread that runs a method or delegate.
    pub(crate) fn runner(&self, node: NodeId) -> Option<(&ThreadFacts, &RunsOn)> {
        let runs = self.running.get(&node)?;
        let thread = self.threads.get(self.by_managed_id(runs.thread)?)?;
        Some((thread, runs))
    }

    /// The only one of the methods and delegates that a thread runs of which `wanted` knows something.
    pub(crate) fn only_on<T>(
        &self,
        thread: &ThreadFacts,
        wanted: impl Fn(NodeId) -> Option<T>,
    ) -> Option<(NodeId, T)> {
        let here = |(id, runs): (&NodeId, &RunsOn)| {
            let is_here = runs.thread == thread.thread.managed_id;
            is_here.then(|| Some((*id, wanted(*id)?))).flatten()
        };
        let mut found = self.running.iter().filter_map(here);
        found.next().filter(|_| found.next().is_none())
    }

    /// The thread with a managed id.
    pub(crate) fn by_managed_id(&self, id: u32) -> Option<usize> {
        self.threads.iter().position(|t| t.thread.managed_id == id)
    }

    /// The threads that wait for tasks, with what they wait on.
    pub(crate) fn task_waits(&self) -> impl Iterator<Item = (&ThreadFacts, NodeId)> {
        self.threads.iter().filter_map(|t| match t.wait {
            Some(Wait::Task(wait)) => Some((t, wait)),
            _ => None,
        })
    }
}

impl Stacks<'_, '_> {
    fn thread_facts(&self, thread: &Thread, holds: Vec<Lock>, entered: &RwLocks) -> ThreadFacts {
        let frames = self.frames_of(thread);
        let on_stack = self.threads.on_stack_of(thread);
        let block = self.rt.blocked_on(thread);
        let mut facts = ThreadFacts {
            thread: thread.clone(),
            frames,
            wait: None,
            request: self.request_on_stack(&on_stack),
            block,
            holds,
        };
        facts.wait = self.wait_of(&facts, &on_stack, entered);
        facts
    }

    /// The frames of a thread, with the methods that have none of their own before those that they stand in.
    fn frames_of(&self, thread: &Thread) -> Vec<StackMethod> {
        let stack = self.rt.stack(thread);
        let method = |frame: StackFrame| {
            let name = self.rt.method_name(&frame.method);
            let owner = Owner::of(&self.rt.module(frame.method.module), &name);
            StackMethod { frame, name, owner }
        };
        let mut frames = Vec::with_capacity(stack.frames.len());
        let blocking = thread
            .in_wait()
            .then(|| self.rt.blocking_call(&stack))
            .flatten();
        frames.extend(blocking.zip(stack.frames.first()).map(|(call, caller)| {
            method(StackFrame {
                method: call,
                source: FrameSource::Inlined,
                ..*caller
            })
        }));
        for (index, frame) in stack.frames.iter().enumerate() {
            let inlined = self.rt.inlined(&stack, index);
            frames.extend(inlined.iter().map(|inlined| {
                method(StackFrame {
                    method: *inlined,
                    source: FrameSource::Inlined,
                    ..*frame
                })
            }));
            frames.push(method(*frame));
        }
        frames
    }

    fn request_on_stack(&self, on_stack: &[Addr]) -> Option<RequestFacts> {
        let servers = self.graph.helpers(Helper::ServerRequest);
        let mut requests = on_stack.iter().filter(|o| servers.contains(o));
        requests
            .find(|o| server::in_application(self.rt, **o))
            .and_then(|o| server::read(self.rt, *o, self.values))
    }

    fn wait_of(&self, facts: &ThreadFacts, on_stack: &[Addr], entered: &RwLocks) -> Option<Wait> {
        let block = facts.block.as_ref();
        if let Some(b) = block.filter(|b| b.kind == BlockKind::Enter) {
            return Some(Wait::Lock(b.lock.clone()));
        }
        if let Some(task) = self.task_wait(block, on_stack) {
            return Some(Wait::Task(task));
        }
        if let Some(object) = self.object_wait(facts, entered) {
            return Some(Wait::Object(object));
        }
        let lock = block?.lock.clone();
        let own = match facts.innermost_outside() {
            // .NET's own threads wait like that for work
            Some(caller) if caller.owner.is_framework() => {
                facts.own_method()?;
                return Some(Wait::Inside(Arc::clone(&caller.name), lock));
            }
            Some(_) => true,
            None => self.is_lock_of_program(&facts.thread, &lock),
        };
        own.then_some(Wait::Pulse(lock))
    }

    /// Whether a lock is none of .NET's own, when no frame tells who waits in it: .NET uses types of its own, or plain
    /// objects of primitives that stand on the stack of whoever waits.
    fn is_lock_of_program(&self, thread: &Thread, lock: &Lock) -> bool {
        let Some(object) = lock.object else {
            return false;
        };
        let (Some(name), Some(owner)) = (self.rt.object_type_name(object), self.owner(object))
        else {
            return false;
        };
        if &*name != "System.Object" || self.graph.task.is_none() {
            return !owner.is_framework();
        }
        let mut seen = FxHashSet::default();
        let words = self.rt.stack_words(thread).map(|(_, word)| word);
        let mut holders = words.take(MAX_WORDS).filter(|word| {
            self.graph.heap.is_object(*word)
                && seen.insert(*word)
                && self.rt.element_type(*word).is_none()
                && self.refers_to(*word, object)
        });
        !holders.any(|holder| self.owner(holder).is_none_or(Owner::is_framework))
    }

    /// Whose class an object is of.
    fn owner(&self, object: Addr) -> Option<Owner> {
        let ty = self.rt.type_of(object)?;
        let name = self.rt.definition_name(&ty);
        Some(Owner::of(&self.rt.module(ty.module), &name))
    }

    fn refers_to(&self, object: Addr, other: Addr) -> bool {
        let mut found = false;
        let mut compare = |_, to: Addr| found |= to == other;
        self.rt.for_each_reference(object, &mut compare);
        found
    }

    /// The wait for a task on a thread's stack. The lock that the thread blocks on decides where it is known; a wait
    /// that has ended leaves its object on the stack, but no task that would set it.
    fn task_wait(&self, block: Option<&Block>, on_stack: &[Addr]) -> Option<NodeId> {
        let blocked_lock = block.map(|b| (b.lock.at, b.lock.object));
        let fits = |wait: Addr| {
            let lock = self.rt.reference(wait, "m_lock");
            match (blocked_lock, lock) {
                (Some((_, None)), _) | (None, _) | (_, None) => true,
                (Some((at, object)), Some(own)) => at == own || object == Some(own),
            }
        };
        let pending = |wait: Addr| {
            self.rt
                .field_u32(wait, "m_combinedState")
                .is_none_or(|s| s & IS_SET == 0)
        };
        on_stack
            .iter()
            .filter(|o| fits(**o) && pending(**o))
            .filter_map(|o| self.graph.node(*o))
            .find(|id| {
                let is_wait = self
                    .graph
                    .object(*id)
                    .is_some_and(|n| n.class == Class::BlockingWait);
                is_wait && self.graph.awaited(*id).next().is_some()
            })
    }
}
