//! From a continuation object to whoever it resumes.

use crate::class::{Class, DISPATCHER, OLDER_DISPATCHER};
use crate::graph::{AsyncGraph, NodeId};
use asynctriage_clr::Runtime;
use asynctriage_dump::Addr;

/// Wrappers inside wrappers; real ones go three deep.
const MAX_DEPTH: u32 = 8;
/// Continuations of one task.
const MAX_WAITERS: usize = 1 << 20;

/// Who is resumed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waiter {
    /// A node of the graph, and the slot that names it.
    Node(NodeId, Addr),
    /// An object of a kind that is not known to be a waiter: a delegate's closure, a library's own callback.
    Other(Addr),
    /// A slot that names no object at all.
    Nothing(Addr),
}

/// Follows a continuation object to the nodes that it resumes. `slot` is where `value` was found.
#[must_use]
pub fn resolve(rt: &Runtime<'_>, graph: &AsyncGraph, slot: Addr, value: Addr) -> Vec<Waiter> {
    let mut out = Vec::new();
    let mut todo = vec![(slot, value, MAX_DEPTH)];
    while let Some((slot, value, depth)) = todo.pop() {
        if out.len() >= MAX_WAITERS {
            break;
        }
        if let Some(id) = graph.node(value) {
            out.push(Waiter::Node(id, slot));
            continue;
        }
        let Some(depth) = depth.checked_sub(1) else {
            continue;
        };
        if rt.type_of(value).is_none() {
            out.push(Waiter::Nothing(slot));
            continue;
        }
        match step(rt, value) {
            Step::Field(name) => {
                let next = rt
                    .field_addr(value, name)
                    .and_then(|at| Some((at, rt.memory().ptr(at)?.non_null()?)));
                todo.extend(next.map(|(at, v)| (at, v, depth)));
            }
            Step::List => {
                let items = rt.reference(value, "_items").unwrap_or_default();
                let size = rt.field_u32(value, "_size").map_or(0, u64::from);
                let (start, stride, len) = rt.vector(items).unwrap_or_default();
                // reversed, so that they come off the stack in order; removed entries are null
                let slots = (0..size.min(len)).rev().map(|i| start.element(i, stride));
                todo.extend(
                    slots.filter_map(|at| Some((at, rt.memory().ptr(at)?.non_null()?, depth))),
                );
            }
            Step::Stop => {}
            Step::Unknown => out.push(Waiter::Other(value)),
        }
    }
    out
}

enum Step {
    Field(&'static str),
    List,
    /// The mark of a completed task: nothing is resumed.
    Stop,
    Unknown,
}

fn step(rt: &Runtime<'_>, value: Addr) -> Step {
    let Some(ty) = rt.type_of(value) else {
        return Step::Stop;
    };
    let name = rt.definition_name(&ty);
    match &*name {
        "System.Object" => Step::Stop,
        "System.Collections.Generic.List`1" => Step::List,
        "System.Runtime.CompilerServices.AsyncMethodBuilderCore+ContinuationWrapper" => {
            Step::Field("_continuation")
        }
        // StandardTaskContinuation was its name up to .NET Core 3.1
        "System.Threading.Tasks.ContinueWithTaskContinuation"
        | "System.Threading.Tasks.StandardTaskContinuation" => Step::Field("m_task"),
        "System.Threading.Tasks.AwaitTaskContinuation"
        | "System.Threading.Tasks.SynchronizationContextAwaitTaskContinuation"
        | "System.Threading.Tasks.TaskSchedulerAwaitTaskContinuation" => Step::Field("m_action"),
        "System.Runtime.CompilerServices.RuntimeAsyncTaskContinuation" => {
            Step::Field("RuntimeAsyncTask")
        }
        DISPATCHER | OLDER_DISPATCHER => Step::Field("_inner"),
        _ if name.starts_with("System.Action") || rt.is_a(ty.mt, "System.MulticastDelegate") => {
            Step::Field("_target")
        }
        _ => Step::Unknown,
    }
}

/// Boxes that a queued work item will resume.
#[must_use]
pub fn work_item_targets(rt: &Runtime<'_>, graph: &AsyncGraph, item: Addr) -> Vec<NodeId> {
    if let Some(id) = graph.node(item) {
        return vec![id];
    }
    let fields = [
        "_state",
        "m_action",
        "_callback",
        "m_completingTask",
        "RuntimeAsyncTask",
    ];
    let values = fields
        .iter()
        .filter_map(|f| rt.field_addr(item, f))
        .filter_map(|slot| Some((slot, rt.memory().ptr(slot)?.non_null()?)));
    let nodes = values.flat_map(|(slot, value)| resolve(rt, graph, slot, value));
    nodes
        .filter_map(|w| match w {
            Waiter::Node(id, _) => Some(id),
            Waiter::Other(_) | Waiter::Nothing(_) => None,
        })
        .filter(|id| {
            graph
                .object(*id)
                .is_some_and(|n| n.class != Class::BlockingWait)
        })
        .collect()
}
