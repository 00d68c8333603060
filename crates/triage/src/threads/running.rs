//! Which thread runs a method that has gone on after its await, or a task's delegate.
//!
//! Who runs a state machine has its box on the stack, close to the frame of its MoveNext; who resumes runtime-async methods
//! has a dispatcher there that names their task; who runs a delegate has its task beside the frame that executes tasks.

use super::{StackMethod, Stacks, ThreadFacts, Wait};
use asynctriage_async_graph::{Class, Dispatcher, Node, NodeId, Running, RunningMachine, task};
use asynctriage_clr::{FrameSource, MethodKind, MethodRef};
use asynctriage_dump::Addr;
use rustc_hash::FxHashMap;

/// Frames outwards from a method's own among whose words its object stands: those that have called it with the object.
const CALLERS: usize = 5;
/// The loop that resumes runtime-async methods (11.0.0).
const DISPATCHER: &str = "DispatchContinuations";
/// Where tasks call their delegates (8.0 to 11.0).
const EXECUTES: [&str; 2] = [
    "System.Threading.Tasks.Task.ExecuteWithThreadLocal",
    "System.Threading.Tasks.Task.InnerInvoke",
];

/// Where a method runs.
#[derive(Clone, Debug)]
pub(crate) struct RunsOn {
    /// Managed id of the thread.
    pub(crate) thread: u32,
    /// The method, as the code on the stack tells it; `None` where only the object does.
    pub(crate) method: Option<MethodRef>,
    /// Whether nothing but words of the stack speak for it, which may be left over.
    pub(crate) is_possible: bool,
    /// How it is known.
    pub(crate) how: String,
}

/// The threads of all methods and delegates that run.
pub(super) fn find(stacks: Stacks<'_, '_>, threads: &[ThreadFacts]) -> FxHashMap<NodeId, RunsOn> {
    let methods = stacks.graph.running.iter().filter_map(|(id, running)| {
        let node = stacks.graph.object(*id)?;
        let found = match running {
            Running::Machine(machine) => machine_on(stacks, threads, node, machine),
            Running::Operation(operation) => operation_on(stacks, threads, operation.dispatcher?),
        };
        Some((*id, found?))
    });
    let delegates = stacks.graph.graph.node_indices().filter_map(|id| {
        let node = stacks.graph.object(id)?;
        let found = is_running_delegate(stacks, node).then(|| delegate_on(stacks, threads, id));
        Some((id, found??))
    });
    methods.chain(delegates).collect()
}

/// Whether a task has called its delegate and not ended. Methods have no delegate; what stands in its place is a cache.
pub(crate) fn is_running_delegate(stacks: Stacks<'_, '_>, node: Node) -> bool {
    let has_delegate = matches!(node.class, Class::Task | Class::Combinator(_));
    has_delegate
        && stacks.graph.task.is_some_and(|t| {
            let flags = t.flags(stacks.rt, node.addr);
            flags & (task::flags::COMPLETED | task::flags::PROMISE) == 0
                && flags & task::flags::DELEGATE_INVOKED != 0
        })
}

/// The threads on whose stacks an object stands.
fn holding<'t>(
    stacks: Stacks<'_, '_>,
    threads: &'t [ThreadFacts],
    object: Addr,
) -> Vec<&'t ThreadFacts> {
    let held = stacks.threads.holding(object);
    held.filter_map(|(thread, _)| threads.iter().find(|t| t.thread.addr == thread.addr))
        .collect()
}

fn machine_on(
    stacks: Stacks<'_, '_>,
    threads: &[ThreadFacts],
    node: Node,
    machine: &RunningMachine,
) -> Option<RunsOn> {
    let is_move_next = |method: &MethodRef| {
        let owner = stacks.rt.ty(method.owner);
        owner.is_some_and(|t| (t.module, t.rid) == (machine.place.ty.module, machine.place.ty.rid))
    };
    let objects = [node.addr, machine.place.base];
    let candidates = holding(stacks, threads, node.addr);
    let proven = candidates.iter().find_map(|thread| {
        let mut frames = thread.frames.iter().enumerate();
        // an object of a caller may stand in the frames of those it has called, never the other way round
        let index = frames
            .rfind(|(i, f)| is_move_next(&f.frame.method) && is_near(stacks, thread, *i, &objects));
        let (_, StackMethod { frame, .. }) = index?;
        Some(RunsOn {
            thread: thread.thread.managed_id,
            method: Some(frame.method),
            is_possible: frame.source == FrameSource::StackScan,
            how: format!(
                "its MoveNext on the stack of {} with the box {} as its object",
                thread.title(),
                node.addr
            ),
        })
    });
    proven.or_else(|| only(&candidates, node.addr))
}

/// Whether a word of the stack between a frame and its callers is one of the objects.
fn is_near(stacks: Stacks<'_, '_>, thread: &ThreadFacts, frame: usize, objects: &[Addr]) -> bool {
    let slot = |i: usize| thread.frames.get(i).map(|f| f.frame.slot);
    let start = slot(frame).unwrap_or_default();
    let end = slot(frame.saturating_add(CALLERS));
    let mut words = stacks.rt.stack_words(&thread.thread);
    words.any(|(at, word)| {
        objects.contains(&word)
            && at.map_or(frame == 0, |at| start <= at && end.is_none_or(|e| at < e))
    })
}

/// The one thread on whose stack an object stands, without a frame that proves it.
fn only(candidates: &[&ThreadFacts], object: Addr) -> Option<RunsOn> {
    let [thread] = candidates else {
        return None;
    };
    Some(RunsOn {
        thread: thread.thread.managed_id,
        method: None,
        is_possible: true,
        how: format!(
            "{object} on the stack of {}, possibly left over; no frame of it was recognised",
            thread.title()
        ),
    })
}

fn operation_on(
    stacks: Stacks<'_, '_>,
    threads: &[ThreadFacts],
    dispatcher: Dispatcher,
) -> Option<RunsOn> {
    let of_thread = |t: &&ThreadFacts| t.thread.managed_id == dispatcher.thread;
    let thread = threads.iter().find(of_thread)?;
    Some(RunsOn {
        thread: dispatcher.thread,
        method: dispatched(stacks, thread, dispatcher.at),
        is_possible: false,
        how: format!(
            "AsyncDispatcherInfo at {} on the stack of {} names the task",
            dispatcher.at,
            thread.title()
        ),
    })
}

/// The method that a dispatcher has resumed: the frame inside the one that the dispatcher is a variable of, except for
/// the stub between them.
fn dispatched(stacks: Stacks<'_, '_>, thread: &ThreadFacts, dispatcher: Addr) -> Option<MethodRef> {
    let outside = thread
        .frames
        .iter()
        .position(|f| f.frame.slot > dispatcher)?;
    let (_, inside) = thread
        .frames
        .get(..outside)?
        .split_last()
        .filter(|(around, _)| around.name.ends_with(DISPATCHER))?;
    let mut resumed = inside.iter().rev();
    let is_stub = |kind| matches!(kind, MethodKind::Dynamic | MethodKind::Stub);
    let StackMethod { frame, .. } = resumed.find(|f| !is_stub(f.frame.method.kind))?;
    let is_async = stacks.rt.is_runtime_async(&frame.method);
    (is_async && frame.source != FrameSource::StackScan).then_some(frame.method)
}

fn delegate_on(stacks: Stacks<'_, '_>, threads: &[ThreadFacts], id: NodeId) -> Option<RunsOn> {
    let node = stacks.graph.object(id)?;
    let waits_for_it = |thread: &&ThreadFacts| match thread.wait {
        Some(Wait::Task(wait)) => stacks.graph.awaited(wait).any(|(from, _)| from == id),
        _ => false,
    };
    let candidates = holding(stacks, threads, node.addr);
    let proven = candidates.iter().find_map(|thread| {
        let mut frames = thread.frames.iter().enumerate();
        let index = frames.rfind(|(i, f)| {
            EXECUTES.iter().any(|e| f.name.starts_with(e))
                && is_near(stacks, thread, *i, &[node.addr])
        });
        let (_, StackMethod { frame, name, .. }) = index?;
        Some(RunsOn {
            thread: thread.thread.managed_id,
            method: None,
            is_possible: frame.source == FrameSource::StackScan,
            how: format!(
                "{name} on the stack of {} with the task {}",
                thread.title(),
                node.addr
            ),
        })
    });
    let others: Vec<_> = candidates
        .iter()
        .copied()
        .filter(|t| !waits_for_it(t))
        .collect();
    proven.or_else(|| only(&others, node.addr))
}
