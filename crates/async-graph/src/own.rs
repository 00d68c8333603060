//! Async methods whose builder is not the runtime's: task-like types of programs and libraries.
//!
//! Such a builder either boxes the state machine and hands out the machine's own `MoveNext`, or keeps the machine in an
//! object of its own. What the method completes is then known to the builder alone: a task, a source, or an object whose
//! awaiter the callers hold.

use crate::class::{Class, implements};
use crate::graph::{Builder, Edge, NodeId};
use crate::link::Claim;
use crate::machine::{Chosen, Holder, Proof};
use crate::running::{Running, RunningMachine};
use crate::runtime_async::Head;
use crate::witness::{End, Witness};
use asynctriage_clr::{Field, FieldKind, Place, Runtime, Type};
use asynctriage_dump::Addr;
use rustc_hash::FxHashSet;
use std::collections::VecDeque;
use std::sync::Arc;

const STATE_MACHINE: &str = "System.Runtime.CompilerServices.IAsyncStateMachine";
const BUILDERS: &str = "System.Runtime.CompilerServices.";
const BUILDER_FIELDS: [&str; 2] = ["<>t__builder", "$Builder"];
/// References between a builder and what it completes: the promise, its source, the source's task.
const MAX_DEPTH: u32 = 3;
/// References between what a method awaits and its own box: awaiter, promise, list, array, delegate.
const MAX_WAY_BACK: u32 = 6;
/// Objects that are looked at on the way.
const MAX_OBJECTS: usize = 64;

/// Whether instances hold a state machine that no box of the runtime holds.
pub(crate) fn is_own_box(rt: &Runtime<'_>, ty: &Type) -> bool {
    find(rt, ty).is_some_and(|(_, machine)| !has_runtime_builder(rt, &machine))
}

/// What a builder completes.
#[derive(Default)]
struct Results {
    /// The nearest thing that can be awaited, and the slot that names it.
    node: Option<(Addr, NodeId)>,
    /// Objects of other kinds on the way there.
    objects: Vec<Addr>,
}

/// Where the machine of an object is.
pub(crate) fn holder(rt: &Runtime<'_>, mt: Addr) -> Option<Holder> {
    let (offset, machine) = find(rt, &*rt.ty(mt)?)?;
    Some(Holder::Inline(offset, machine))
}

/// Offset from the object, and type, of the state machine that an object is or holds.
fn find(rt: &Runtime<'_>, ty: &Type) -> Option<(u64, Arc<Type>)> {
    if implements(rt, ty, STATE_MACHINE) {
        return Some((8, rt.ty(ty.mt)?));
    }
    // the machine's type is an argument of the type around it, and a field is declared with that argument
    let is_machine = |t: &Arc<Type>| t.is_value_type() && implements(rt, t, STATE_MACHINE);
    let (machine, index) = rt
        .type_args(ty)
        .into_iter()
        .zip(0_u32..)
        .find_map(|(arg, i)| Some((rt.ty(arg).filter(is_machine)?, i)))?;
    let is_field = |f: &&Field| f.kind == FieldKind::ValueType && rt.is_type_variable(f, index);
    let field = rt.instance_fields(ty).values().find(is_field)?;
    Some((field.offset.saturating_add(8), machine))
}

/// Whether one of the runtime's builders runs the machine: its box is another object, or the machine is a class that the
/// box refers to.
fn has_runtime_builder(rt: &Runtime<'_>, machine: &Type) -> bool {
    let is_builder = |f: &Field| {
        rt.field_type_name(f)
            .is_some_and(|n| n.starts_with(BUILDERS) && n.contains("MethodBuilder"))
    };
    let fields = BUILDER_FIELDS
        .iter()
        .filter_map(|n| rt.instance_field(machine, n));
    let mut fields = fields.peekable();
    fields.peek().is_none() || fields.any(|f| is_builder(&f))
}

impl Builder<'_, '_> {
    /// Links methods with builders of other makers to what they complete, and learns which objects stand for them.
    pub(crate) fn link_results(&mut self) {
        let own = self.out.machines.iter().filter(|(id, _)| self.is_own(**id));
        let mut results: Vec<(NodeId, Results)> = own
            .map(|(id, machine)| (*id, self.results(*id, &machine.place)))
            .collect();
        results.sort_unstable_by_key(|(id, _)| *id);
        let mut shared: FxHashSet<Addr> = FxHashSet::default();
        for (id, found) in results {
            if let Some((slot, to)) = found.node {
                let (field, end) = ("builder", End::Awaited);
                self.add(id, to, &Claim { slot, field, end });
            }
            for object in found.objects {
                if self
                    .promises
                    .insert(object, id)
                    .is_some_and(|other| other != id)
                {
                    shared.insert(object);
                }
            }
        }
        // what several methods have in common belongs to none of them
        self.promises.retain(|object, _| !shared.contains(object));
    }

    fn is_own(&self, id: NodeId) -> bool {
        self.out
            .object(id)
            .is_some_and(|n| n.class == Class::OwnBox)
    }

    /// Goes from the builder to the nearest thing that can be awaited.
    fn results(&self, own: NodeId, place: &Place) -> Results {
        let mut out = Results::default();
        let builder = BUILDER_FIELDS
            .iter()
            .find_map(|n| self.rt.instance_field(&place.ty, n));
        let Some(builder) = builder else {
            return out;
        };
        let start = place.at(&builder);
        let mut todo: VecDeque<(Addr, Addr, u32)> = VecDeque::new();
        let in_builder = place.references_in(self.rt, &builder);
        todo.extend(in_builder.map(|object| (start, object, MAX_DEPTH)));
        let mut found: Vec<(u32, Addr, NodeId)> = Vec::new();
        let mut seen = FxHashSet::default();
        while let Some((slot, object, depth)) = todo.pop_front() {
            if seen.len() >= MAX_OBJECTS || !self.out.heap.is_object(object) || !seen.insert(object)
            {
                continue;
            }
            match self.out.node(object) {
                Some(id) if id == own => return Results::default(),
                Some(id) => {
                    found.push((depth, slot, id));
                    continue;
                }
                None => out.objects.push(object),
            }
            if let Some(depth) = depth.checked_sub(1).filter(|d| *d > 0) {
                self.rt.for_each_reference(object, &mut |slot, next| {
                    if todo.len() < MAX_OBJECTS {
                        todo.push_back((slot, next, depth));
                    }
                });
            }
        }
        let nearest = found.iter().map(|(depth, ..)| *depth).max();
        let mut near = found.iter().filter(|(depth, ..)| Some(*depth) == nearest);
        // several at the same distance: which of them the builder completes is not known
        if let (Some((_, slot, id)), None) = (near.next(), near.next()) {
            out.node = Some((*slot, *id)).filter(|(_, id)| self.waits(*id));
        }
        out
    }

    /// Takes out machines that nothing proves to stand at their await, and awaiters that others of the machine disprove.
    pub(crate) fn prove_machines(&mut self) {
        let mut doubtful: Vec<(NodeId, Proof)> = self
            .out
            .machines
            .iter()
            .filter(|(_, m)| m.proof != Proof::Builder)
            .map(|(id, m)| (*id, m.proof))
            .collect();
        doubtful.sort_unstable_by_key(|(id, _)| *id);
        for (id, proof) in doubtful {
            match proof {
                Proof::Builder => {}
                Proof::Continuation => self.prove_by_continuation(id),
                Proof::Awaited => self.prove_by_awaited(id),
            }
        }
    }

    /// A machine of another maker's builder stands where what it awaits leads back to it; else it is a copy left behind.
    fn prove_by_continuation(&mut self, id: NodeId) {
        let is_named = |edge: &Edge| edge.end == End::Awaited || edge.witness == Witness::Both;
        let is_proved =
            self.out.awaited(id).any(|(_, edge)| is_named(&edge)) || self.leads_back(id);
        if !is_proved {
            self.out.machines.remove(&id);
            self.cut(id);
        }
    }

    /// Whether objects that a machine awaits, none of a known kind, keep a delegate of its box.
    fn leads_back(&self, id: NodeId) -> bool {
        let (Some(machine), Some(node)) = (self.out.machines.get(&id), self.out.object(id)) else {
            return false;
        };
        let mut awaited = machine.awaits.iter();
        awaited.any(|(_, object)| self.leads_to(*object, node.addr))
    }

    /// Whether an object leads to another by few references, none of them through something else that waits.
    fn leads_to(&self, from: Addr, target: Addr) -> bool {
        let mut todo: VecDeque<(Addr, u32)> = VecDeque::from([(from, MAX_WAY_BACK)]);
        let mut seen = FxHashSet::default();
        while let Some((object, depth)) = todo.pop_front() {
            if object == target {
                return true;
            }
            let passes = object == from || self.out.node(object).is_none();
            if depth > 0 && passes && seen.len() < MAX_OBJECTS && seen.insert(object) {
                self.rt.for_each_reference(object, &mut |_, next| {
                    todo.push_back((next, depth.saturating_sub(1)));
                });
            }
        }
        false
    }

    /// What chains of runtime-async methods await by awaiters of other makers: the innermost frame keeps the awaiter, and
    /// what it waits for keeps the task's delegate. Slot, what is awaited, who awaits.
    pub(crate) fn awaited_by_frames(&self) -> Vec<(Addr, NodeId, NodeId)> {
        let mut out = Vec::new();
        let operations = self.out.operations.iter();
        let unknown = operations.filter(|(_, o)| o.head == Head::Other);
        for (id, operation) in unknown {
            let (Some(frame), Some(task)) = (operation.frames.first(), self.out.object(*id)) else {
                continue;
            };
            let mut found: Vec<(Addr, NodeId)> = Vec::new();
            self.rt
                .for_each_reference(frame.continuation, &mut |slot, object| {
                    let own = self.own_awaited(object);
                    found.extend(
                        own.filter(|_| self.leads_to(object, task.addr))
                            .map(|o| (slot, o)),
                    );
                });
            found.dedup_by_key(|(_, from)| *from);
            if let [(slot, from)] = found.as_slice() {
                out.push((*slot, *from, *id));
            }
        }
        out
    }

    /// The method that an object stands for: its box, its promise, or an awaiter around that.
    fn own_awaited(&self, object: Addr) -> Option<NodeId> {
        let is_own = |id: &NodeId| self.is_own(*id) && self.waits(*id);
        self.awaited_node(object).filter(is_own)
    }

    /// Resumable code keeps its state while it runs: it stands at an await when what that awaits has not ended.
    fn prove_by_awaited(&mut self, id: NodeId) {
        let named: Vec<(NodeId, Edge)> = self.out.awaited(id).collect();
        let confirmed = |e: &Edge| e.witness == Witness::Both;
        let Some(machine) = self.out.machines.get_mut(&id) else {
            return;
        };
        if named.iter().any(|(_, e)| confirmed(e)) {
            let slots: FxHashSet<Addr> = named
                .iter()
                .filter(|(_, e)| confirmed(e))
                .map(|(_, e)| e.slot)
                .collect();
            machine.awaits.retain(|(slot, _)| slots.contains(slot));
            machine.chosen = Chosen::Confirmed;
            let unconfirmed = |(from, e): &(NodeId, Edge)| (!confirmed(e)).then_some(*from);
            let others: FxHashSet<NodeId> = named.iter().filter_map(unconfirmed).collect();
            for other in others {
                self.cut_link(other, id);
            }
            return;
        }
        let is_open = |from: &NodeId| self.out.object(*from).is_some_and(|n| !self.completed(n));
        let unknown =
            |object: Addr| self.out.heap.is_object(object) && self.awaited_node(object).is_none();
        let awaits = self
            .out
            .machines
            .get(&id)
            .map(|m| m.awaits.clone())
            .unwrap_or_default();
        let waits =
            named.iter().any(|(from, _)| is_open(from)) || awaits.iter().any(|(_, o)| unknown(*o));
        if !waits {
            let machine = self.out.machines.remove(&id);
            self.cut(id);
            let running = machine.map(|m| RunningMachine {
                place: m.place,
                iterator: m.iterator,
                is_void: m.is_void,
            });
            self.out
                .running
                .extend(running.map(|m| (id, Running::Machine(m))));
        }
    }
}
