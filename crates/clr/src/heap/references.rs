//! References of an object, from the GCDesc in front of its MethodTable (the same in 8.0 to 11.0).

use crate::runtime::Runtime;
use asynctriage_dump::{Addr, Memory};
use std::sync::Arc;

/// Runs of references in one type; state machines with many locals have a few dozen.
const MAX_SERIES: u64 = 1 << 14;

/// Where the references of a type's instances are.
#[derive(Clone, Debug)]
enum RefMap {
    /// No references.
    None,
    /// Runs: offset of the first slot, and its length in bytes less the object's size.
    Series(Arc<[(u64, i64)]>),
    /// Arrays of structures: offset of the first element, then per element: slots and bytes to skip, over and over.
    Repeat(u64, Arc<[(u32, u32)]>),
}

/// What looking through the objects of one type needs to know of it.
pub(super) struct Scan {
    base: u64,
    component: u64,
    map: RefMap,
}

impl Scan {
    /// Calls `found` with every reference slot of an object and what it holds, nulls left out.
    pub(super) fn for_each(
        &self,
        memory: &dyn Memory,
        object: Addr,
        found: &mut dyn FnMut(Addr, Addr),
    ) {
        if matches!(self.map, RefMap::None) {
            return;
        }
        slots(memory, &self.map, object, self.size(memory, object), found);
    }

    fn size(&self, memory: &dyn Memory, object: Addr) -> u64 {
        let elements = if self.component == 0 {
            0
        } else {
            memory.u32(object + 8).map_or(0, u64::from)
        };
        self.base
            .saturating_add(self.component.saturating_mul(elements))
    }

    /// Whether a word is one of an object's reference slots.
    pub(super) fn has(&self, memory: &dyn Memory, object: Addr, slot: Addr) -> bool {
        let Some(offset) = slot.since(object) else {
            return false;
        };
        let is_in = |start: u64, len: u64| {
            let into = offset.checked_sub(start);
            into.is_some_and(|into| into.saturating_add(8) <= len && into & 7 == 0)
        };
        let size = self.size(memory, object);
        match &self.map {
            RefMap::None => false,
            RefMap::Series(series) => series.iter().any(|(start, less)| {
                let len = size.checked_add_signed(*less).unwrap_or(0);
                let end = start.checked_add(len);
                end.is_some_and(|end| end <= size) && is_in(*start, len)
            }),
            RefMap::Repeat(start, items) => {
                let into = offset.checked_sub(*start);
                let into = into.filter(|_| offset.saturating_add(16) <= size);
                let Some(mut rest) = into.and_then(|i| i.checked_rem(stride(items))) else {
                    return false;
                };
                for (count, skip) in items.iter() {
                    let len = u64::from(*count).saturating_mul(8);
                    if rest < len {
                        return rest & 7 == 0;
                    }
                    let Some(after) = rest.checked_sub(len.saturating_add(u64::from(*skip))) else {
                        return false;
                    };
                    rest = after;
                }
                false
            }
        }
    }

    /// Adds what an object refers to.
    pub(super) fn targets(&self, memory: &dyn Memory, object: Addr, found: &mut Vec<Addr>) {
        self.for_each(memory, object, &mut |_, target| found.push(target));
    }
}

impl Runtime<'_> {
    pub(super) fn scan_of(&self, mt: Addr) -> Scan {
        let (base, component) = self.ty(mt).map_or((0, 0), |t| {
            (u64::from(t.base_size), u64::from(t.component_size))
        });
        Scan {
            base,
            component,
            map: self.ref_map(mt),
        }
    }

    fn ref_map(&self, mt: Addr) -> RefMap {
        let Some(ty) = self.ty(mt).filter(|t| t.has_references()) else {
            return RefMap::None;
        };
        self.read_ref_map(ty.mt).unwrap_or(RefMap::None)
    }

    fn read_ref_map(&self, mt: Addr) -> Option<RefMap> {
        let m = self.memory;
        let count = m.i64(mt.back(8))?;
        let runs = count.unsigned_abs();
        if runs == 0 || runs > MAX_SERIES {
            return None;
        }
        if count > 0 {
            let series = (0..runs).map(|k| {
                let at = mt.back(8).back(16_u64.wrapping_mul(k.wrapping_add(1)));
                Some((m.u64(at + 8)?, m.i64(at)?))
            });
            return Some(RefMap::Series(series.collect::<Option<_>>()?));
        }
        let items = (0..runs).map(|j| {
            let at = mt.back(24).back(8_u64.wrapping_mul(j));
            Some((m.u32(at)?, m.u32(at + 4)?))
        });
        Some(RefMap::Repeat(
            m.u64(mt.back(16))?,
            items.collect::<Option<_>>()?,
        ))
    }

    /// Calls `found` with the address of every reference slot of an object and what it holds, nulls left out.
    pub fn for_each_reference(&self, object: Addr, found: &mut dyn FnMut(Addr, Addr)) {
        let Some(ty) = self.type_of(object) else {
            return;
        };
        let size = self.object_size(object, &ty);
        slots(self.memory, &self.ref_map(ty.mt), object, size, found);
    }
}

/// Walks the slots that a map describes in an object of `size` bytes.
fn slots(
    memory: &dyn Memory,
    map: &RefMap,
    object: Addr,
    size: u64,
    found: &mut dyn FnMut(Addr, Addr),
) {
    match map {
        RefMap::None => {}
        RefMap::Series(series) => {
            for (start, less) in series.iter() {
                let len = size.checked_add_signed(*less).unwrap_or(0);
                if start.checked_add(len).is_some_and(|end| end <= size) {
                    run(memory, object + *start, len, found);
                }
            }
        }
        RefMap::Repeat(start, items) => {
            let (mut at, end) = (object + *start, object + size.saturating_sub(8));
            let stride = stride(items);
            while stride > 0 && at < end {
                for (count, skip) in items.iter() {
                    let len = u64::from(*count)
                        .saturating_mul(8)
                        .min(end.since(at).unwrap_or(0));
                    run(memory, at, len, found);
                    at = at + len + u64::from(*skip);
                }
            }
        }
    }
}

/// Bytes of one element of an array of structures.
fn stride(items: &[(u32, u32)]) -> u64 {
    let bytes = |(count, skip): &(u32, u32)| {
        let slots = u64::from(*count).saturating_mul(8);
        slots.saturating_add(u64::from(*skip))
    };
    items.iter().map(bytes).fold(0, u64::saturating_add)
}

fn run(memory: &dyn Memory, start: Addr, len: u64, found: &mut dyn FnMut(Addr, Addr)) {
    if let Some(bytes) = memory.slice(start, len) {
        for (i, word) in bytes.as_chunks::<8>().0.iter().enumerate() {
            let value = u64::from_le_bytes(*word);
            if value != 0 {
                found(start.element(i as u64, 8), Addr(value));
            }
        }
        return;
    }
    for i in 0..len.checked_div(8).unwrap_or(0) {
        let slot = start.element(i, 8);
        if let Some(value) = memory.ptr(slot).and_then(Addr::non_null) {
            found(slot, value);
        }
    }
}
