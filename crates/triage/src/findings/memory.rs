//! Memory that suspended methods keep alive, and finished methods that are still there.

use super::{Draft, Facts, fact};
use crate::words::{listed, several};
use asynctriage_async_graph::{AsyncFrame, Class, Machine, NodeId};
use asynctriage_clr::{FieldKind, Runtime};
use asynctriage_dump::Addr;
use asynctriage_metadata::names::{LocalName, hoisted_local};
use asynctriage_report::{Confidence, Finding, FindingKind, Severity};
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::Arc;

/// Bytes of one method's locals from which on they are worth a finding.
const LARGE: u64 = 10 << 20;
/// Share of the heap from which on it is a warning, as a divisor.
const SHARE: u64 = 4;
/// Objects that are weighed in all; beyond, the sizes are lower bounds.
const MAX_OBJECTS: usize = 5_000_000;
/// Collections inside collections that are followed.
const MAX_DEPTH: u32 = 4;
/// Locals that the text names.
const MAX_LOCALS: usize = 8;
/// Finished methods of one kind from which on they are looked at.
const MANY_FINISHED: u64 = 1000;

pub(super) fn find(facts: Facts<'_, '_, '_>) -> Vec<Finding> {
    let mut out = retained(facts);
    out.extend(finished(facts));
    out
}

/// What the suspended frames of one method hold.
#[derive(Default)]
struct Method {
    frames: u64,
    bytes: u64,
    example: Option<Addr>,
    locals: FxHashMap<String, Local>,
}

#[derive(Default)]
struct Local {
    bytes: u64,
    largest: u64,
    type_name: String,
    elements: u64,
}

fn retained(facts: Facts<'_, '_, '_>) -> Vec<Finding> {
    let mut scale = Scale {
        rt: facts.a.rt,
        seen: FxHashSet::default(),
    };
    let mut methods: FxHashMap<Arc<str>, Method> = FxHashMap::default();
    let mut types: FxHashMap<Addr, (Arc<str>, Vec<HeldLocal>)> = FxHashMap::default();
    let mut machines: Vec<(&NodeId, &Machine)> = facts.a.graph.machines.iter().collect();
    machines.sort_unstable_by_key(|(id, _)| **id);
    for (id, machine) in machines {
        let ty = &machine.place.ty;
        let (name, locals) = types
            .entry(ty.mt)
            .or_insert_with(|| (facts.a.frame_name(*id), held_locals(scale.rt, machine)));
        if !methods.contains_key(name) {
            methods.insert(Arc::clone(name), Method::default());
        }
        let Some(method) = methods.get_mut(name) else {
            continue;
        };
        method.frames = method.frames.saturating_add(1);
        for local in locals.iter() {
            let held = scale.rt.memory().ptr(machine.place.base + local.offset);
            if let Some(object) = held.and_then(Addr::non_null) {
                add_local(&mut scale, method, &local.name, object);
            }
        }
        if method.example.is_none() {
            method.example = facts.a.graph.object(*id).map(|n| n.addr);
        }
    }
    let mut operations: Vec<_> = facts.a.graph.operations.values().collect();
    operations.sort_unstable_by_key(|o| o.frames.first().map(|f| f.continuation));
    for frame in operations.into_iter().flat_map(|o| o.async_frames()) {
        let method = methods.entry(Arc::clone(&frame.name)).or_default();
        method.frames = method.frames.saturating_add(1);
        weigh_variables(&mut scale, facts, frame, method);
        method.example.get_or_insert(frame.continuation);
    }
    let heap = facts.a.graph.heap.bytes();
    let mut large: Vec<_> = methods
        .into_iter()
        .filter(|(_, m)| m.bytes >= LARGE)
        .collect();
    large.sort_unstable_by(|a, b| b.1.bytes.cmp(&a.1.bytes).then_with(|| a.0.cmp(&b.0)));
    large
        .into_iter()
        .map(|(name, method)| describe(&name, method, heap))
        .collect()
}

/// A local that the machines of a type refer to objects by.
struct HeldLocal {
    /// `local 'name'`.
    name: String,
    /// From the start of the machine's fields.
    offset: u64,
}

fn held_locals(rt: &Runtime<'_>, machine: &Machine) -> Vec<HeldLocal> {
    let fields = machine.place.fields(rt);
    let references = fields.filter(|f| f.kind == FieldKind::Reference);
    let locals = references.filter_map(|field| {
        let name = match hoisted_local(&field.name)? {
            LocalName::Local(name) | LocalName::Captured(name) | LocalName::Original(name) => name,
            _ => return None,
        };
        Some(HeldLocal {
            name: format!("local '{name}'"),
            offset: field.offset,
        })
    });
    locals.collect()
}

/// The variables of a runtime-async method, whose locals have names in the symbols only: arrays, texts and collections.
fn weigh_variables(
    scale: &mut Scale<'_, '_>,
    facts: Facts<'_, '_, '_>,
    frame: &AsyncFrame,
    method: &mut Method,
) {
    let continuation = frame.continuation;
    let mut held = Vec::new();
    scale
        .rt
        .for_each_reference(continuation, &mut |slot, target| held.push((slot, target)));
    for (slot, object) in held {
        if scale.is_collection(object, 0) {
            let name = facts.a.slot_name(frame, slot);
            add_local(scale, method, &name, object);
        }
    }
}

fn add_local(scale: &mut Scale<'_, '_>, method: &mut Method, name: &str, object: Addr) {
    let bytes = scale.weigh(object);
    method.bytes = method.bytes.saturating_add(bytes);
    if !method.locals.contains_key(name) {
        method.locals.insert(name.to_owned(), Local::default());
    }
    let Some(entry) = method.locals.get_mut(name) else {
        return;
    };
    entry.bytes = entry.bytes.saturating_add(bytes);
    if bytes > entry.largest {
        entry.largest = bytes;
        entry.type_name = scale
            .rt
            .type_of(object)
            .map(|t| scale.rt.name(&t).to_string())
            .unwrap_or_default();
        entry.elements = elements(scale.rt, object);
    }
}

/// Elements of an array or list.
fn elements(rt: &Runtime<'_>, object: Addr) -> u64 {
    rt.array_len(object)
        .or_else(|| rt.field_u32(object, "_size").map(u64::from))
        .or_else(|| rt.field_u32(object, "_count").map(u64::from))
        .unwrap_or(0)
}

/// Adds up sizes, every object once.
struct Scale<'r, 'd> {
    rt: &'r Runtime<'d>,
    seen: FxHashSet<Addr>,
}

impl Scale<'_, '_> {
    /// Whether an object is made to hold others or plain data; a stream's buffer counts when the local is the stream.
    fn is_collection(&self, object: Addr, depth: u32) -> bool {
        let Some(ty) = self.rt.type_of(object) else {
            return false;
        };
        let name = self.rt.definition_name(&ty);
        ty.is_array()
            || name.starts_with("System.Collections.")
            || &*name == "System.String"
            || depth == 0 && &*name == "System.IO.MemoryStream"
    }

    /// The size of an object and, where it is a collection, of what it holds. Objects of the program are not followed:
    /// they lead to everything.
    fn weigh(&mut self, object: Addr) -> u64 {
        let mut bytes: u64 = 0;
        let mut todo = vec![(object, 0_u32)];
        while let Some((at, depth)) = todo.pop() {
            if self.seen.len() >= MAX_OBJECTS || !self.seen.insert(at) {
                continue;
            }
            let Some(ty) = self.rt.type_of(at) else {
                continue;
            };
            bytes = bytes.saturating_add(self.rt.object_size(at, &ty));
            if ty.has_references() && depth < MAX_DEPTH && self.is_collection(at, depth) {
                self.rt.for_each_reference(at, &mut |_, target| {
                    todo.push((target, depth.saturating_add(1)));
                });
            }
        }
        bytes
    }
}

fn describe(name: &str, method: Method, heap: u64) -> Finding {
    let mut locals: Vec<_> = method
        .locals
        .into_iter()
        .filter(|(_, l)| l.bytes > 0)
        .collect();
    locals.sort_unstable_by(|a, b| b.1.bytes.cmp(&a.1.bytes).then_with(|| a.0.cmp(&b.0)));
    let texts: Vec<String> = locals
        .iter()
        .take(MAX_LOCALS)
        .map(|(name, l)| {
            let many = if l.elements > 0 {
                format!(", up to {} elements", l.elements)
            } else {
                String::new()
            };
            format!("{name} ({}{many}) {}", l.type_name, size(l.bytes))
        })
        .collect();
    let warn = method.bytes >= heap.checked_div(SHARE).unwrap_or(0);
    Draft {
        kind: FindingKind::RetainedByStateMachine,
        severity: if warn { Severity::Warning } else { Severity::Info },
        confidence: Confidence::Certain,
        title: format!(
            "{} suspended {name} keep {} alive",
            method.frames,
            size(method.bytes)
        ),
        text: format!(
            "{} suspended {name} retain {} in their locals, of a heap of {}: {}. A local lives as long as the method is suspended.",
            method.frames,
            size(method.bytes),
            size(heap),
            listed(&texts)
        ),
        next: "see what these methods wait for; drop large locals before the await, or limit how many run at once",
        runbook: "retained-by-state-machine",
        evidence: vec![fact(
            format!("one of the {} suspended {name}", method.frames),
            method.example,
            "sizes of the objects that its hoisted locals refer to, and of what their collections hold",
        )],
    }
    .finish()
}

fn size(bytes: u64) -> String {
    let mib = bytes >> 20;
    if mib > 0 {
        format!("{mib} MiB")
    } else {
        format!("{} KiB", bytes >> 10)
    }
}

/// Finished async methods whose objects something still refers to.
fn finished(facts: Facts<'_, '_, '_>) -> Vec<Finding> {
    let mut by_type: FxHashMap<Addr, Vec<Addr>> = FxHashMap::default();
    for node in facts
        .a
        .graph
        .completed
        .iter()
        .filter(|n| n.class == Class::Box)
    {
        by_type.entry(node.mt).or_default().push(node.addr);
    }
    by_type.retain(|_, boxes| boxes.len() as u64 >= MANY_FINISHED);
    if by_type.is_empty() {
        return Vec::new();
    }
    let all: Vec<Addr> = by_type.values().flatten().copied().collect();
    let alive = facts.a.reached(all);
    let mut found: Vec<(u64, Finding)> = by_type
        .into_iter()
        .filter_map(|(mt, boxes)| {
            let kept: Vec<Addr> = boxes.into_iter().filter(|b| alive.contains(b)).collect();
            let count = kept.len() as u64;
            let first = kept.first().copied().filter(|_| count >= MANY_FINISHED)?;
            Some((count, finished_finding(facts, mt, count, first)))
        })
        .collect();
    found.sort_by_key(|(n, _)| std::cmp::Reverse(*n));
    found.into_iter().map(|(_, f)| f).collect()
}

fn finished_finding(facts: Facts<'_, '_, '_>, mt: Addr, count: u64, first: Addr) -> Finding {
    let node = asynctriage_async_graph::Node {
        addr: first,
        mt,
        class: Class::Box,
    };
    let method = facts
        .a
        .box_method(node)
        .map_or_else(|| facts.a.type_name(mt).to_string(), |m| m.to_string());
    Draft {
        kind: FindingKind::CompletedNotCollected,
        severity: Severity::Info,
        confidence: Confidence::Certain,
        title: format!("{} of {method} have ended and are still kept", several(count, "task")),
        text: format!(
            "{count} tasks of {method} have ended, but something still refers to them, so they and their results stay in memory."
        ),
        next: "find the list, dictionary or field that keeps the finished tasks (`asynctriage show ADDRESS` of one of them)",
        runbook: "completed-not-collected",
        evidence: vec![fact(
            format!("one of the {count} finished {method}"),
            Some(first),
            "completed by m_stateFlags and reached from a root of the garbage collector",
        )],
    }
    .finish()
}
