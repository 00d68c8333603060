//! Every method of the program that stands somewhere: suspended at an await, or on a thread's stack.

use super::locals::Activation;
use crate::paths::{Analysis, Step, steps_of};
use crate::threads::{Hang, ThreadFacts};
use asynctriage_async_graph::NodeId;
use asynctriage_clr::{FrameSource, Runtime};
use asynctriage_dump::Addr;
use asynctriage_metadata::il::{self, Body, Form, Stands};
use asynctriage_metadata::names::{LocalName, hoisted_local};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Frames of one thread that are looked at.
const MAX_FRAMES: usize = 200;
/// The most that a frame takes whose end is not known.
const MAX_FRAME: u64 = 4096;

/// Who a method goes on with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Who {
    /// A thread, by its managed id.
    Thread(u32),
    /// A suspended method, or one whose task is known to run.
    Method(NodeId),
}

/// A method, and where in its code it stands.
pub(crate) struct Standing<'a> {
    pub(crate) who: Who,
    /// What it is called.
    pub(crate) name: Arc<str>,
    /// The module and row of the method whose code it is.
    pub(crate) module: Addr,
    pub(crate) rid: u32,
    pub(crate) form: Form,
    /// Offset in its IL.
    pub(crate) at: u32,
    /// The object of its variables, or the frame's place on the stack.
    pub(crate) slot: Option<Addr>,
    /// Where its variables are.
    pub(crate) activation: Activation<'a>,
    /// The suspended method.
    pub(crate) step: Option<Step<'a>>,
    /// The thread on whose stack it is.
    pub(crate) thread: Option<&'a ThreadFacts>,
}

impl Standing<'_> {
    /// `Main stands at await 3`, `Main on the stack of 'worker' (os id 7)`.
    pub(crate) fn place(&self, a: &Analysis<'_, '_>) -> String {
        let name = &self.name;
        match (self.thread, self.step) {
            (Some(thread), _) => format!("{name} on the stack of {}", thread.title()),
            (None, step) => match step.and_then(|s| a.step_await(s)) {
                Some(number) => format!("{name} stands at await {number}"),
                None => format!("{name} is suspended"),
            },
        }
    }

    /// The offsets of the instructions that may run once it goes on; `None` where its code does not tell.
    pub(crate) fn behind(&self, rt: &Runtime<'_>, body: &Body) -> Option<BTreeSet<u32>> {
        il::behind(body, self.stands(rt)?)
    }

    /// Where it stands in its code; `None` where that does not tell how it goes on.
    pub(crate) fn stands(&self, rt: &Runtime<'_>) -> Option<Stands> {
        let suspends = self.step.is_some() && self.form != Form::Plain;
        if !suspends {
            return Some(Stands::At(self.at));
        }
        is_of_csharp(rt, self.module, self.rid).then_some(Stands::Suspended(self.at))
    }

    /// Whether it may come back to where it stands: a loop. `None` where its code does not tell.
    pub(crate) fn comes_back(&self, rt: &Runtime<'_>) -> Option<bool> {
        let body = rt.method_body(self.module, self.rid)?;
        let behind = self.behind(rt, &body)?;
        Some(behind.contains(&self.at))
    }
}

/// Whether the compiler of C# wrote a state machine, whose code suspends as [`Stands::Suspended`] has it.
fn is_of_csharp(rt: &Runtime<'_>, module: Addr, rid: u32) -> bool {
    let of = rt.module(module);
    let Some(metadata) = of.metadata.as_ref() else {
        return false;
    };
    let Some(owner) = metadata.method_owner(rid) else {
        return false;
    };
    let is_state = |name: &str| matches!(hoisted_local(name), Some(LocalName::State));
    metadata
        .field_rids_of_type(owner)
        .any(|f| metadata.field(f).is_some_and(|f| is_state(&f.name)))
}

/// Looks at each method of the program whose place in its code is known.
pub(crate) fn each<'a>(
    a: &'a Analysis<'_, '_>,
    hang: &'a Hang,
    look: &mut dyn FnMut(&Standing<'a>),
) {
    for node in a.suspended_methods() {
        for step in steps_of(&a.graph, node) {
            if let Some(method) = suspended(a, step) {
                look(&method);
            }
        }
    }
    for thread in &hang.threads {
        on_stack(a, hang, thread, look);
    }
}

/// A suspended method of the program.
pub(crate) fn suspended<'a>(a: &'a Analysis<'_, '_>, step: Step<'a>) -> Option<Standing<'a>> {
    if a.is_framework_step(step) {
        return None;
    }
    let (module, rid, form, activation) = match step.frame {
        Some(frame) => {
            let method = frame.point.method?;
            let activation = Activation::Continuation(frame);
            (method.module, method.rid, Form::Plain, activation)
        }
        None => {
            let machine = a.graph.machines.get(&step.node)?;
            let ty = &machine.place.ty;
            let form = Form::Machine {
                iterator: machine.iterator,
            };
            let rid = a.lines.move_next(a.rt, ty.module, ty.rid)?;
            (ty.module, rid, form, Activation::Machine(&machine.place))
        }
    };
    Some(Standing {
        who: Who::Method(step.node),
        name: a.step_name(step),
        module,
        rid,
        form,
        at: a.step_spot(step).il_offset?,
        slot: a.step_object(step),
        activation,
        step: Some(step),
        thread: None,
    })
}

fn on_stack<'a>(
    a: &'a Analysis<'_, '_>,
    hang: &'a Hang,
    thread: &'a ThreadFacts,
    look: &mut dyn FnMut(&Standing<'a>),
) {
    let mut below = thread.thread.stack.map_or(Addr::NULL, |(start, _)| start);
    for (index, at) in thread.frames.iter().take(MAX_FRAMES).enumerate() {
        let frame = &at.frame;
        // of an inlined method the place in its IL is not known; the frame that it stands in follows
        if frame.source == FrameSource::Inlined || at.owner.is_framework() {
            continue;
        }
        if frame.source != FrameSource::StackScan && frame.method.rid != 0 {
            let next = thread.frames.get(index.saturating_add(1));
            let end = next.map(|f| f.frame.slot).and_then(Addr::non_null);
            let stack = (below, end.unwrap_or(below + MAX_FRAME));
            if let Some(method) = running(a, hang, thread, index, stack) {
                look(&method);
            }
        }
        // callees keep registers of their callers: their part of the stack counts, too
        below = frame.slot;
    }
}

fn running<'a>(
    a: &'a Analysis<'_, '_>,
    hang: &'a Hang,
    thread: &'a ThreadFacts,
    index: usize,
    stack: (Addr, Addr),
) -> Option<Standing<'a>> {
    let rt = a.rt;
    let of = thread.frames.get(index)?;
    let method = of.frame.method;
    // a return address is behind its call
    let ip = if of.frame.slot.is_null() {
        of.frame.ip
    } else {
        of.frame.ip.back(1)
    };
    let at = rt.il_offset(ip)?;
    let is_machine = rt
        .method_definition(&method)
        .is_some_and(|m| m.name == "MoveNext");
    let machine = hang.only_on(thread, |id| {
        let of = a.graph.running.get(&id)?.machine()?;
        (of.place.ty.mt == method.owner).then_some(&of.place)
    });
    let operation = || {
        let found = hang.only_on(thread, |id| {
            a.graph.running.get(&id)?.machine().is_none().then_some(())
        });
        found.filter(|_| rt.is_runtime_async(&method))
    };
    let node = machine.map(|(id, _)| id);
    let node = node.or_else(|| operation().map(|(id, ())| id));
    Some(Standing {
        who: node.map_or(Who::Thread(thread.thread.managed_id), Who::Method),
        name: Arc::clone(&of.name),
        module: method.module,
        rid: method.rid,
        form: if is_machine {
            Form::Machine { iterator: false }
        } else {
            Form::Plain
        },
        at,
        slot: stack.1.non_null(),
        activation: Activation::Frame {
            thread: &thread.thread,
            owner: method.owner,
            machine: machine.map(|(_, place)| place),
            stack,
        },
        step: None,
        thread: Some(thread),
    })
}
