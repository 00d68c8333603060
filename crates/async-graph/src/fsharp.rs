//! F#'s `async { }`: closures, not state machines.
//!
//! A computation that waits is kept by its activation: `cont`, which takes the result, and `aux`, which belongs to the whole
//! run. The `cont` of a `let!` keeps the closure of what comes after it in the source, and the activation around it. So
//! a chain goes from what holds the innermost activation outwards to a task, a cell for a result, or to nothing. What holds
//! it: the delegate of a task's continuation, a cell whose result is awaited, a mailbox, a timer (FSharp.Core 4.7 to 10.1).

use crate::class::{Class, Combinator, Helper};
use crate::graph::{Builder, Node, NodeId};
use crate::link::Claim;
use crate::witness::End;
use asynctriage_clr::{Gap, GapKind, Runtime, Type};
use asynctriage_dump::Addr;
use rustc_hash::FxHashSet;
use std::collections::VecDeque;

const LIBRARY: &str = "FSharp.Core";
const ACTIVATION: &str = "Microsoft.FSharp.Control.AsyncActivationContents`1";
const FUNCTION: &str = "Microsoft.FSharp.Core.FSharpFunc`2";
const CELL: &str = "Microsoft.FSharp.Control.AsyncPrimitives+ResultCell`1";
const MAILBOX: &str = "Microsoft.FSharp.Control.Mailbox`1";
/// References between what holds a computation and its activation.
const MAX_DEPTH: u32 = 4;
/// Objects that are looked at on the way.
const MAX_OBJECTS: usize = 64;

/// What a type of FSharp.Core is, as far as waiting is concerned.
pub(crate) fn classify(rt: &Runtime<'_>, ty: &Type) -> Option<Class> {
    match &*rt.definition_name(ty) {
        ACTIVATION => Some(Class::Helper(Helper::Activation)),
        CELL | MAILBOX => Some(Class::Source),
        _ => None,
    }
}

/// What keeps an activation, to be resumed by.
struct Holder {
    from: NodeId,
    slot: Addr,
    field: &'static str,
    activation: Addr,
}

impl Builder<'_, '_> {
    /// Links what computations wait for, the computations, and what they complete.
    pub(crate) fn link_computations(&mut self) {
        let activations = self.out.helpers(Helper::Activation).len();
        if activations == 0 {
            return;
        }
        let mut holders = self.delegates_of_tasks();
        holders.extend(self.cells_and_mailboxes());
        holders.extend(self.timers());
        holders.sort_unstable_by_key(|h| (h.from, h.slot));
        let mut seen = FxHashSet::default();
        for holder in holders {
            self.link_activations(&holder, &mut seen);
        }
        let left = activations.saturating_sub(seen.len());
        self.out.gaps.extend(gap(left));
    }

    /// `Async.AwaitTask`: the task's continuation is a delegate, or a task made by ContinueWith whose delegate it is.
    fn delegates_of_tasks(&mut self) -> Vec<Holder> {
        let field = "m_continuationObject";
        let mut out = Vec::new();
        // activation_near looks at objects of the library alone
        for (from, slot, object) in &self.others {
            if let Some(activation) = self.activation_near(*object) {
                let (from, slot) = (*from, *slot);
                out.push(Holder {
                    from,
                    slot,
                    field,
                    activation,
                });
            }
        }
        for id in self.out.graph.node_indices() {
            let Some(node) = self.out.object(id) else {
                continue;
            };
            if node.class != Class::Combinator(Combinator::ContinueWith) || self.completed(node) {
                continue;
            }
            let action = self.out.task.and_then(|t| t.action(self.rt, node.addr));
            let target = action.and_then(|a| self.rt.reference(a, "_target"));
            let Some(activation) = target.and_then(|t| self.activation_near(t)) else {
                continue;
            };
            let awaited: Vec<_> = self.out.awaited(id).collect();
            if awaited.is_empty() {
                let slot = node.addr;
                out.push(Holder {
                    from: id,
                    slot,
                    field: "m_action",
                    activation,
                });
            }
            // the task of the continuation is nobody's: the computation itself is told in its place
            for (from, edge) in awaited {
                let slot = edge.slot;
                self.replaced.push((from, id));
                out.push(Holder {
                    from,
                    slot,
                    field,
                    activation,
                });
            }
        }
        out
    }

    /// Who waits for the result of a child computation, the reply of a mailbox's owner, or the next message.
    fn cells_and_mailboxes(&self) -> Vec<Holder> {
        let mut out = Vec::new();
        for id in self.out.graph.node_indices() {
            let Some(node) = self.out.object(id).filter(|n| n.class == Class::Source) else {
                continue;
            };
            let Some(name) = self.rt.object_type_name(node.addr) else {
                continue;
            };
            let field = match &*name {
                CELL if self.rt.reference(node.addr, "result").is_none() => "savedConts",
                MAILBOX => "savedCont",
                _ => continue,
            };
            let Some(slot) = self.rt.field_addr(node.addr, field) else {
                continue;
            };
            let mut next = self.rt.memory().ptr(slot).and_then(Addr::non_null);
            let mut links = FxHashSet::default();
            // a list of continuations for cells, an option of one for mailboxes
            while let Some(at) = next.filter(|a| links.len() < MAX_OBJECTS && links.insert(*a)) {
                let head = self.rt.reference(at, "head").unwrap_or(at);
                if let Some(activation) = self.activation_near(head) {
                    out.push(Holder {
                        from: id,
                        slot,
                        field,
                        activation,
                    });
                }
                next = self.rt.reference(at, "tail");
            }
        }
        out
    }

    /// `Async.Sleep`: the callback of a timer that is yet to fire.
    fn timers(&mut self) -> Vec<Holder> {
        let mut found = Vec::new();
        for timer in self.out.helpers(Helper::Timer) {
            let callback = self.rt.reference(*timer, "_timerCallback");
            let target = callback.and_then(|c| self.rt.reference(c, "_target"));
            let slot = self.rt.field_addr(*timer, "_timerCallback");
            let is_due = self.rt.field_u32(*timer, "_dueTime") != Some(u32::MAX);
            if let (Some(target), Some(slot), true) = (target, slot, is_due)
                && self.is_of_library(target)
                && let Some(activation) = self.activation_near(target)
            {
                found.push((*timer, slot, activation));
            }
        }
        let mut out = Vec::new();
        for (timer, slot, activation) in found {
            if let Some(from) = self.add_node(timer, Class::Source) {
                out.push(Holder {
                    from,
                    slot,
                    field: "_timerCallback",
                    activation,
                });
            }
        }
        out
    }

    /// Goes from an activation outwards, a node for each that goes on in a closure of the program.
    fn link_activations(&mut self, holder: &Holder, seen: &mut FxHashSet<Addr>) {
        let mut from = holder.from;
        let (mut slot, mut field) = (holder.slot, holder.field);
        let mut next = Some(holder.activation);
        let end = End::Awaited;
        let mut on_this_way = FxHashSet::default();
        while let Some(activation) = next.filter(|a| on_this_way.insert(*a)) {
            let known = self.out.node(activation);
            seen.insert(activation);
            let Some(cont) = self.cont(activation) else {
                return;
            };
            let step = self.step(cont);
            if let Some(closure) = step.closure
                && let Some(id) = self.add_node(activation, Class::Computation)
            {
                self.out.computations.insert(id, closure);
                self.add(from, id, &Claim { slot, field, end });
                from = id;
                if known.is_some() {
                    return;
                }
            }
            if let Some((at, object)) = step.completes {
                if let Some(to) = self.out.node(object) {
                    let field = "cont";
                    self.add(
                        from,
                        to,
                        &Claim {
                            slot: at,
                            field,
                            end,
                        },
                    );
                }
                return;
            }
            next = step.outer.map(|(at, outer)| {
                (slot, field) = (at, "ctxt");
                outer
            });
        }
    }

    fn cont(&self, activation: Addr) -> Option<Addr> {
        let names = ["cont@", "cont"];
        names.iter().find_map(|n| self.rt.reference(activation, n))
    }

    /// What a continuation goes on with.
    fn step(&self, cont: Addr) -> Step {
        let mut step = Step::default();
        if self.is_programs_closure(cont) {
            step.closure = Some(cont);
        }
        self.rt.for_each_reference(cont, &mut |slot, object| {
            let Some(name) = self.rt.object_type_name(object) else {
                return;
            };
            if *name == *ACTIVATION {
                step.outer = step.outer.or(Some((slot, object)));
            } else if *name == *CELL {
                step.completes = step.completes.or(Some((slot, object)));
            } else if name.starts_with("System.Threading.Tasks.TaskCompletionSource") {
                let task = self.rt.reference(object, "_task");
                step.completes = step.completes.or(task.map(|t| (slot, t)));
            } else if self.is_programs_closure(object) {
                step.closure = step.closure.or(Some(object));
            }
        });
        step
    }

    /// Whether an object is a function that the program's source has, not the library.
    fn is_programs_closure(&self, object: Addr) -> bool {
        let ty = self.rt.type_of(object);
        ty.is_some_and(|t| !self.is_library(t.module) && self.rt.is_a(t.mt, FUNCTION))
    }

    fn is_of_library(&self, object: Addr) -> bool {
        self.rt
            .type_of(object)
            .is_some_and(|t| self.is_library(t.module))
    }

    fn is_library(&self, module: Addr) -> bool {
        self.rt.module(module).name == LIBRARY
    }

    /// The activation that an object of the library leads to by the fewest references.
    fn activation_near(&self, object: Addr) -> Option<Addr> {
        let mut todo: VecDeque<(Addr, u32)> = VecDeque::from([(object, MAX_DEPTH)]);
        let mut seen = FxHashSet::default();
        while let Some((at, depth)) = todo.pop_front() {
            if seen.len() >= MAX_OBJECTS || !seen.insert(at) {
                continue;
            }
            if self
                .rt
                .object_type_name(at)
                .is_some_and(|n| *n == *ACTIVATION)
            {
                return Some(at);
            }
            if depth > 0 && self.is_of_library(at) {
                self.rt.for_each_reference(at, &mut |_, next| {
                    if todo.len() < MAX_OBJECTS {
                        todo.push_back((next, depth.saturating_sub(1)));
                    }
                });
            }
        }
        None
    }

    /// The node of an object that no type alone makes one.
    fn add_node(&mut self, addr: Addr, class: Class) -> Option<NodeId> {
        if let Some(known) = self.out.node(addr) {
            return Some(known);
        }
        let mt = self.rt.type_of(addr)?.mt;
        Some(self.out.add_node(Node { addr, mt, class }))
    }
}

/// What a continuation goes on with.
#[derive(Default)]
struct Step {
    /// The program's closure that takes the result.
    closure: Option<Addr>,
    /// The activation around it, and the slot that names it.
    outer: Option<(Addr, Addr)>,
    /// A task or cell that it completes, and the slot.
    completes: Option<(Addr, Addr)>,
}

/// What is not read of computations.
fn gap(left: usize) -> Option<Gap> {
    (left > 0).then(|| Gap {
        kind: GapKind::FSharpAsync,
        place: "computations of F#'s async".into(),
        why: format!(
            "up to {left} activations (AsyncActivationContents) are held by nothing that is known to resume them: they have ended, run now, or wait in a way that is not read, as in Async.FromContinuations"
        ),
        remedy: "look at their objects with `asynctriage heap --type AsyncActivationContents`; take a second dump to see which stay".into(),
    })
}
