//! What the async profiler of .NET 11 would call the operations of a dump.
//!
//! A profiled process numbers its operations: runtime-async ones by the id of their task, state machines by a number in the
//! box of the innermost one. Both are 0 where nothing was recorded (11.0.0).

use super::{Analysis, Step, steps_of};
use asynctriage_async_graph::NodeId;
use asynctriage_dump::Addr;
use std::sync::Arc;

/// Frames of state machines that are listed: the profiler records no more.
const MAX_FRAMES: usize = 255;

/// How the methods of an operation are compiled: the two families count their dispatchers apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum DispatcherFamily {
    /// Runtime-async methods that share a task.
    RuntimeAsync,
    /// A state machine and those that await it.
    StateMachine,
}

/// A waiting operation that the profiler has numbered.
#[derive(Clone, Debug)]
pub struct Dispatcher {
    /// Which count the number belongs to.
    pub family: DispatcherFamily,
    /// Its number, never 0.
    pub id: u32,
    /// The task or box that holds the number.
    pub holder: Addr,
    /// Its frames in the dump, innermost first. Those of methods that are not declared async count, too.
    pub frames: Vec<DispatcherFrame>,
}

/// A frame of a numbered operation.
#[derive(Clone, Debug)]
pub struct DispatcherFrame {
    /// What it is called.
    pub name: Arc<str>,
    /// Its continuation or box.
    pub object: Addr,
    /// Whether it is code of .NET.
    pub is_framework: bool,
    /// The code address that the profiler records for a runtime-async frame.
    pub ip: Option<Addr>,
}

impl Analysis<'_, '_> {
    /// The operations that the async profiler has numbered, in the order of their families and numbers.
    #[must_use]
    pub fn dispatchers(&self) -> Vec<Dispatcher> {
        let tasks = self
            .graph
            .operations
            .keys()
            .filter_map(|n| self.of_task(*n));
        let boxes = self.graph.machines.keys().filter_map(|n| self.of_box(*n));
        let mut out: Vec<_> = tasks.chain(boxes).collect();
        out.sort_unstable_by_key(|d| (d.family, d.id, d.holder));
        out
    }

    fn of_task(&self, node: NodeId) -> Option<Dispatcher> {
        let holder = self.graph.object(node)?.addr;
        let id = self
            .rt
            .field_u32(holder, "m_taskId")
            .filter(|id| *id != 0)?;
        let frames = self.graph.operations.get(&node)?.frames.iter();
        Some(Dispatcher {
            family: DispatcherFamily::RuntimeAsync,
            id,
            holder,
            frames: frames
                .map(|f| DispatcherFrame {
                    name: Arc::clone(&f.name),
                    object: f.continuation,
                    is_framework: self.is_framework_step(Step {
                        node,
                        frame: Some(f),
                    }),
                    ip: f.point.ip,
                })
                .collect(),
        })
    }

    fn of_box(&self, node: NodeId) -> Option<Dispatcher> {
        let holder = self.graph.object(node)?.addr;
        self.rt
            .field_u8(holder, "_isLeaf")
            .filter(|leaf| *leaf != 0)?;
        let id = self
            .rt
            .field_u32(holder, "_dispatcherId")
            .filter(|id| *id != 0)?;
        let frames = self.machines_above(node);
        let frames = frames.iter().flat_map(|n| steps_of(&self.graph, *n));
        Some(Dispatcher {
            family: DispatcherFamily::StateMachine,
            id,
            holder,
            frames: frames.filter_map(|s| self.dispatcher_frame(s)).collect(),
        })
    }

    /// A state machine and those that await it one after another, as long as each is awaited by one other.
    fn machines_above(&self, innermost: NodeId) -> Vec<NodeId> {
        let mut out = vec![innermost];
        while let Some(last) = out.last().filter(|_| out.len() < MAX_FRAMES) {
            let mut waiters = self.graph.waiters(*last);
            match (waiters.next(), waiters.next()) {
                (Some(next), None)
                    if self.graph.machines.contains_key(&next) && !out.contains(&next) =>
                {
                    out.push(next);
                }
                _ => break,
            }
        }
        out
    }

    fn dispatcher_frame(&self, step: Step<'_>) -> Option<DispatcherFrame> {
        Some(DispatcherFrame {
            name: self.step_name(step),
            object: self.step_object(step)?,
            is_framework: self.is_framework_step(step),
            ip: None,
        })
    }
}
