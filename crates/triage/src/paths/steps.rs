//! The frames of a path: a node is one frame, or several where runtime-async methods share a task.

use super::{Analysis, Path};
use crate::libraries::Owner;
use crate::lines::Spot;
use crate::process::context;
use asynctriage_async_graph::{AsyncFrame, AsyncGraph, Class, Combinator, NodeId};
use asynctriage_clr::{AwaitNumber, Gap, GapKind, NamedBy};
use asynctriage_dump::Addr;
use asynctriage_report::FrameKind;
use std::rc::Rc;
use std::sync::Arc;

/// One frame of a path.
#[derive(Clone, Copy)]
pub(crate) struct Step<'g> {
    /// The node that it belongs to.
    pub(crate) node: NodeId,
    /// The runtime-async method, when it is one.
    pub(crate) frame: Option<&'g AsyncFrame>,
}

/// Where in its method a frame stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Place {
    /// At this await.
    Await(i32),
    /// At an await whose number is not known, at this offset of the IL.
    Offset(u32),
}

/// The IL offset of the await that a runtime-async method stands at.
pub(crate) fn step_offset(step: Step<'_>) -> Option<u32> {
    let frame = step.frame.filter(|f| f.is_async())?;
    frame.point.il_offset
}

/// Whether the number of a frame's await is only the least that it can be.
pub(crate) fn is_least_await(step: Step<'_>) -> bool {
    let number = step.frame.and_then(AsyncFrame::await_number);
    matches!(number, Some(AwaitNumber::AtLeast(_)))
}

/// The frames of a node that shows as at least one.
pub(crate) fn steps_of(graph: &AsyncGraph, node: NodeId) -> impl Iterator<Item = Step<'_>> {
    let operation = graph.operations.get(&node);
    let frames = operation.into_iter().flat_map(|o| o.async_frames());
    let inside = frames.map(move |f| Step {
        node,
        frame: Some(f),
    });
    let alone = operation.is_none().then_some(Step { node, frame: None });
    let running = graph.running.get(&node).into_iter();
    let around = running.flat_map(move |r| {
        r.frames().map(move |f| Step {
            node,
            frame: Some(f),
        })
    });
    inside.chain(alone).chain(around)
}

/// Suspended methods whose variables are looked at.
const MAX_METHODS: usize = 200_000;

impl Analysis<'_, '_> {
    /// All nodes of suspended methods whose variables are known, ascending, as many as are looked at.
    pub(crate) fn suspended_methods(&self) -> Vec<NodeId> {
        let nodes = self.graph.machines.keys();
        let nodes = nodes.chain(self.graph.operations.keys());
        let mut nodes: Vec<NodeId> = nodes.copied().collect();
        nodes.sort_unstable();
        nodes.truncate(MAX_METHODS);
        nodes
    }

    /// That there are more suspended methods than are looked at for what they hold.
    pub(crate) fn unsearched_gap(&self) -> Option<Gap> {
        let (machines, operations) = (self.graph.machines.len(), self.graph.operations.len());
        let all = machines.saturating_add(operations);
        (all > MAX_METHODS).then(|| Gap {
            kind: GapKind::HolderLimit,
            place: "who holds and completes what others wait for".into(),
            why: format!(
                "the variables of {MAX_METHODS} of {all} suspended methods were looked at"
            ),
            remedy: "semaphores may have more holders, and sources more completers, than are named"
                .into(),
        })
    }

    /// The frames of a path, innermost first, without the thread that it may end at.
    pub(crate) fn steps<'g>(
        &'g self,
        path: &'g Path,
    ) -> impl DoubleEndedIterator<Item = Step<'g>> + 'g {
        let all: Vec<_> = path
            .frames
            .iter()
            .flat_map(|id| steps_of(&self.graph, *id))
            .collect();
        all.into_iter()
    }

    /// What a frame is called.
    pub(crate) fn step_name(&self, step: Step<'_>) -> Arc<str> {
        match step.frame {
            Some(frame) => Arc::clone(&frame.name),
            None => self.frame_name(step.node),
        }
    }

    /// Which await a frame stands at, or the first that it can be.
    pub(crate) fn step_await(&self, step: Step<'_>) -> Option<i32> {
        match step.frame {
            Some(frame) => i32::try_from(frame.await_number()?.least()).ok(),
            None => self.graph.machines.get(&step.node).map(|m| m.state),
        }
    }

    /// Where in its method a frame stands: at which await, else at which IL offset.
    pub(crate) fn step_place(&self, step: Step<'_>) -> Option<Place> {
        self.step_await(step)
            .map(Place::Await)
            .or_else(|| step_offset(step).map(Place::Offset))
    }

    /// Whose code a frame is. What has no method lies in an image of .NET: the JIT's own code is always there.
    pub(crate) fn step_owner(&self, step: Step<'_>) -> Owner {
        let module = match step.frame {
            Some(frame) => frame.point.method.map(|m| m.module),
            None => match self.graph.running.get(&step.node) {
                // a running method that is not known may be the program's
                Some(running) => match self.running_module(step.node, running) {
                    Some(module) => Some(module),
                    None => return Owner::Program,
                },
                None => {
                    let machine = self.graph.machines.get(&step.node);
                    let closure = || Some(self.closure_type(step.node)?.module);
                    let continuation = || Some(self.continuation(step.node)?.0);
                    machine
                        .map(|m| m.place.ty.module)
                        .or_else(closure)
                        .or_else(continuation)
                }
            },
        };
        module.map_or(Owner::Framework, |m| {
            Owner::of(&self.rt.module(m), &self.step_name(step))
        })
    }

    /// Whether a frame belongs to .NET rather than to the program or one of its libraries.
    pub(crate) fn is_framework_step(&self, step: Step<'_>) -> bool {
        self.step_owner(step).is_framework()
    }

    /// The object that holds a frame's variables.
    pub(crate) fn step_object(&self, step: Step<'_>) -> Option<Addr> {
        match step.frame {
            Some(frame) => Some(frame.continuation),
            None => self.graph.object(step.node).map(|n| n.addr),
        }
    }

    /// Where the state machine of a node is that waits or runs.
    pub(crate) fn machine_place(&self, node: NodeId) -> Option<&asynctriage_clr::Place> {
        let suspended = self.graph.machines.get(&node).map(|m| &m.place);
        let running = || Some(&self.graph.running.get(&node)?.machine()?.place);
        suspended.or_else(running)
    }

    /// Whether a node is an `async void` method.
    pub(crate) fn is_void(&self, node: NodeId) -> bool {
        let suspended = self.graph.machines.get(&node).map(|m| m.is_void);
        let running = || Some(self.graph.running.get(&node)?.machine()?.is_void);
        suspended.or_else(running).unwrap_or_default()
    }

    /// What the variables of a frame refer to.
    pub(crate) fn captured(&self, step: Step<'_>) -> Vec<Addr> {
        let mut out = Vec::new();
        if let Some(frame) = step.frame {
            self.rt
                .for_each_reference(frame.continuation, &mut |_, target| out.push(target));
        } else if let Some(place) = self.machine_place(step.node) {
            let fields = place.fields(self.rt);
            out.extend(fields.flat_map(|f| place.references_in(self.rt, f)));
        } else if let Some(closure) = self.graph.computations.get(&step.node) {
            self.rt
                .for_each_reference(*closure, &mut |_, target| out.push(target));
        }
        out
    }

    /// The values that flow with a frame.
    pub(crate) fn step_locals(&self, step: Step<'_>) -> Vec<Addr> {
        if let Some(frame) = step.frame {
            let context = frame.execution_context;
            return context
                .map(|c| context::values_of(self.rt, c))
                .unwrap_or_default();
        }
        let node = self.graph.object(step.node);
        let is_machine = self.machine_place(step.node).is_some();
        node.filter(|_| is_machine)
            .map(|n| context::async_locals(self.rt, &self.graph, n))
            .unwrap_or_default()
    }

    /// What a frame is.
    pub(crate) fn step_kind(&self, step: Step<'_>) -> FrameKind {
        if step.frame.is_some() {
            return FrameKind::RuntimeAsync;
        }
        if let Some(running) = self.graph.running.get(&step.node) {
            return match running.machine() {
                Some(machine) if machine.iterator => FrameKind::AsyncIterator,
                Some(_) => FrameKind::StateMachine,
                None => FrameKind::RuntimeAsync,
            };
        }
        let machine = self.graph.machines.get(&step.node);
        match (machine, self.graph.object(step.node).map(|n| n.class)) {
            (Some(m), _) if m.iterator => FrameKind::AsyncIterator,
            (Some(_), _) => FrameKind::StateMachine,
            (None, Some(Class::Combinator(Combinator::ContinueWith))) => FrameKind::ContinueWith,
            (None, Some(Class::BlockingWait)) => FrameKind::Thread,
            (None, Some(Class::Computation)) => FrameKind::Callback,
            _ => FrameKind::Combinator,
        }
    }

    /// How a runtime-async method and its await were recognised.
    pub(crate) fn step_evidence(frame: &AsyncFrame) -> String {
        let point = &frame.point;
        let by = match point.named_by {
            NamedBy::Jit => "the JIT's code",
            NamedBy::Image => "the image's data",
            NamedBy::List => "the list of suspension points of this build of the image",
            NamedBy::Nothing => "nothing: the image's data is not in the dump",
        };
        let index = match (point.await_index, frame.is_async()) {
            _ if frame.by_callee.is_some() => {
                "; await chosen by the frame below it, whose method another await than that of the compiled code calls"
            }
            (Some(AwaitNumber::Exact(_)), _) => "; await counted in the IL",
            (Some(AwaitNumber::AtLeast(_)), _) => {
                "; await counted in the compiled code, as the IL is not in the dump: the compiler may have left out awaits before it"
            }
            (None, true) => "; the number of its await is not known",
            (None, false) => "",
        };
        format!("ResumeInfo at {}, method from {by}{index}", point.info)
    }

    /// Where a frame stands in the source.
    pub(crate) fn step_spot(&self, step: Step<'_>) -> Rc<Spot> {
        if let Some(frame) = step.frame {
            return self.lines.runtime_async(self.rt, frame);
        }
        let machine = self.graph.machines.get(&step.node);
        machine
            .map(|m| self.lines.machine(self.rt, m))
            .unwrap_or_default()
    }
}
