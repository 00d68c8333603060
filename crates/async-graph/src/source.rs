//! Value-task sources: where they keep who waits, and whether they have completed.
//!
//! A source that has completed and is not used again keeps whom it resumed, so that alone says nothing. Its own state does:
//! `_completed` of the structure that most sources embed, `_completionReserved` of the operations of channels.

use crate::class::source_cores;
use crate::graph::Node;
use asynctriage_clr::{Field, FieldKind, Runtime};
use asynctriage_dump::Addr;
use rustc_hash::FxHashMap;
use std::sync::{Arc, RwLock};

/// Where sources of one type keep what counts, from the object.
#[derive(Debug, Default)]
struct Shape {
    /// Each slot for who waits, with the byte that tells whether the source has completed.
    slots: Vec<(u64, Option<u64>)>,
}

/// What is known of types of sources.
#[derive(Debug, Default)]
pub(crate) struct Sources {
    shapes: RwLock<FxHashMap<Addr, Arc<Shape>>>,
}

impl Sources {
    /// The slots for who waits, of parts of a source that have not completed.
    pub(crate) fn waiting(&self, rt: &Runtime<'_>, node: Node) -> impl Iterator<Item = Addr> {
        let shape = self.shape(rt, node.mt);
        let is_open = |done: Option<u64>| {
            let byte = done.and_then(|offset| rt.memory().u8(node.addr + offset));
            byte.unwrap_or(0) == 0
        };
        let slots = shape.slots.iter().filter(|(_, done)| is_open(*done));
        let slots: Vec<Addr> = slots.map(|(slot, _)| node.addr + *slot).collect();
        slots.into_iter()
    }

    fn shape(&self, rt: &Runtime<'_>, mt: Addr) -> Arc<Shape> {
        if let Some(known) = self.shapes.read().ok().and_then(|s| s.get(&mt).cloned()) {
            return known;
        }
        let shape = Arc::new(shape(rt, mt).unwrap_or_default());
        if let Ok(mut all) = self.shapes.write() {
            all.insert(mt, Arc::clone(&shape));
        }
        shape
    }
}

fn shape(rt: &Runtime<'_>, mt: Addr) -> Option<Shape> {
    let ty = rt.ty(mt)?;
    let from_object = |offset: u64| offset.saturating_add(8);
    let mut slots = Vec::new();
    if let Some(state) = rt.instance_field(&ty, "_continuationState") {
        // an int up to 9.0, a bool from 10.0; the low byte tells in either
        let done = rt.instance_field(&ty, "_completionReserved");
        slots.push((
            from_object(state.offset),
            done.map(|f| from_object(f.offset)),
        ));
    }
    for core in source_cores(rt, &ty) {
        // the core's first two words are the callback and its state (8.0 to 11.0)
        let state = from_object(core.offset).saturating_add(8);
        let done = completed_offset(rt, &core);
        let done = done.map(|o| from_object(core.offset).saturating_add(o));
        slots.push((state, done));
    }
    Some(Shape { slots })
}

/// Where a core keeps whether it has completed, from its start. It is laid out as every structure with automatic layout:
/// references first, then numbers by size, in order of declaration, then structures (8.0 to 11.0).
fn completed_offset(rt: &Runtime<'_>, core: &Field) -> Option<u64> {
    // callback, its state, context, error; then the version, and behind it whether it has completed
    const WITHOUT_RESULT: u64 = 4 * 8 + 2;
    let result: u64 = match rt.argument_kind(core, 0)? {
        FieldKind::Reference | FieldKind::Native => 8,
        FieldKind::Primitive(size) => size.into(),
        FieldKind::ValueType => 0,
    };
    Some(result.saturating_add(WITHOUT_RESULT))
}
