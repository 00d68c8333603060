//! Which objects the roots reach.

use super::index::{Bits, Heap, Reachable};
use super::references::{RefMap, slots};
use crate::runtime::Runtime;
use asynctriage_dump::Addr;
use rustc_hash::FxHashMap;

impl Runtime<'_> {
    /// Marks everything that `roots` reach, directly or through other objects. Words that are no object are ignored,
    /// so stacks may be given as they are; a pointer into the middle of an object keeps it alive.
    #[must_use]
    pub fn mark(&self, heap: &Heap, roots: impl IntoIterator<Item = Addr>) -> Reachable {
        let marks = heap
            .shape
            .segments
            .iter()
            .zip(&heap.starts)
            .map(|(_, s)| Bits(vec![0; s.0.len()]))
            .collect();
        let mut marker = Marker {
            rt: self,
            heap,
            marks,
            maps: FxHashMap::default(),
            todo: Vec::new(),
            count: 0,
        };
        for root in roots {
            let object = if heap.is_object(root) {
                Some(root)
            } else {
                marker.interior(root)
            };
            if let Some(object) = object {
                marker.push(object);
                marker.drain();
            }
        }
        Reachable {
            marks: marker.marks,
            count: marker.count,
        }
    }
}

struct Marker<'a, 'd> {
    rt: &'a Runtime<'d>,
    heap: &'a Heap,
    marks: Vec<Bits>,
    maps: FxHashMap<u64, (u64, u64, RefMap)>,
    todo: Vec<Addr>,
    count: u64,
}

impl Marker<'_, '_> {
    /// The object that an address points into.
    fn interior(&self, addr: Addr) -> Option<Addr> {
        let object = self.heap.object_at_or_before(addr)?;
        let ty = self.rt.type_of(object)?;
        (addr < object + self.rt.object_size(object, &ty) && ty.mt != self.rt.globals.free_mt)
            .then_some(object)
    }

    fn push(&mut self, object: Addr) {
        let Some(index) = self.heap.segment_index(object) else {
            return;
        };
        let offset = self
            .heap
            .shape
            .segments
            .get(index)
            .and_then(|s| object.since(s.start));
        let (Some(starts), Some(marks), Some(offset)) = (
            self.heap.starts.get(index),
            self.marks.get_mut(index),
            offset,
        ) else {
            return;
        };
        if starts.get(offset) && !marks.get(offset) {
            marks.set(offset);
            self.count = self.count.saturating_add(1);
            self.todo.push(object);
        }
    }

    fn drain(&mut self) {
        let memory = self.rt.memory;
        let mut found = Vec::new();
        while let Some(object) = self.todo.pop() {
            let Some(mt) = memory.u64(object) else {
                continue;
            };
            let rt = self.rt;
            let (base, component, map) = self.maps.entry(mt & !7).or_insert_with_key(|mt| {
                let ty = rt.ty(Addr(*mt));
                let (base, component) = ty.as_ref().map_or((0, 0), |t| {
                    (u64::from(t.base_size), u64::from(t.component_size))
                });
                (base, component, rt.ref_map(Addr(*mt)))
            });
            if matches!(map, RefMap::None) {
                continue;
            }
            let elements = if *component == 0 {
                0
            } else {
                memory.u32(object + 8).map_or(0, u64::from)
            };
            let size = base.saturating_add(component.saturating_mul(elements));
            slots(memory, map, object, size, &mut |_, target| {
                found.push(target);
            });
            for target in found.drain(..) {
                self.push(target);
            }
        }
    }
}
