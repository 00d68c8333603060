//! The heap: regions of one workstation heap, and the GC's table of data about them.

use crate::layout::gc;
use crate::space::{Id, Space};

/// Distance of the regions, and how far one is filled.
const DISTANCE: u64 = 0x40_0000;
const FULL: u64 = 0x10_0000;
/// First region.
const START: u64 = 0x7f20_0000_0000;
/// Objects begin behind this many bytes.
const HEAD: u64 = 0x28;
/// The region of pinned objects.
const PINNED: u64 = 0x7f60_0000_0000;

/// The heap as it grows.
#[derive(Debug)]
pub(crate) struct Heap {
    regions: Vec<Id>,
    pinned: Id,
}

impl Heap {
    pub(crate) fn new(space: &mut Space) -> Self {
        Self {
            regions: vec![region(space, START)],
            pinned: region(space, PINNED),
        }
    }

    /// Takes the place of an object.
    pub(crate) fn take(&mut self, space: &mut Space, size: u64) -> u64 {
        let begun = START + DISTANCE * (self.regions.len() as u64 - 1);
        if space.end(self.newest()) - begun > FULL {
            let next = region(space, begun + DISTANCE);
            self.regions.push(next);
        }
        space.take(self.newest(), size.next_multiple_of(8))
    }

    /// Takes the place of an object that never moves; statics live in such.
    pub(crate) fn take_pinned(&self, space: &mut Space, size: u64) -> u64 {
        space.take(self.pinned, size.next_multiple_of(8))
    }

    fn newest(&self) -> Id {
        self.regions[self.regions.len() - 1]
    }

    /// Writes the GC's data table and answers where it is. All regions are of generation 0, the last one is where
    /// allocations go. `invalid` is how often the collector has said that its structures are not valid.
    pub(crate) fn write(&self, space: &mut Space, native: Id, invalid: u32) -> u64 {
        let vars = space.take(native, gc::VARS_SIZE);
        space.put(vars, &[2, 4]);
        space.put_u64(vars + gc::GENERATION_SIZE, gc::GENERATION_BYTES);
        space.put_u64(vars + gc::GENERATION_COUNT, 5);
        let generations = space.take(native, 5 * gc::GENERATION_BYTES);
        space.put_u64(vars + gc::GENERATIONS, generations);
        let first = self.write_regions(space, native, &self.regions);
        let pinned = self.write_regions(space, native, &[self.pinned]);
        let slot = |n: usize| generations + n as u64 * gc::GENERATION_BYTES + gc::START_SEGMENT;
        space.put_u64(slot(0), first[0]);
        space.put_u64(slot(gc::PINNED), pinned[0]);
        let variables = space.take(native, 32);
        space.put_u64(variables, first[first.len() - 1]);
        space.put_u64(variables + 8, space.end(self.newest()));
        space.put_u64(vars + gc::EPHEMERAL, variables);
        space.put_u64(vars + gc::ALLOC_ALLOCATED, variables + 8);
        space.put_u64(vars + gc::INVALID_COUNT, variables + 16);
        space.put_u32(variables + 16, invalid);
        // no generation has an allocation start of its own where there are regions
        let fields = space.take(native, 16);
        space.put_u32(fields + 8, u32::MAX);
        space.put_u64(vars + gc::GENERATION_FIELDS, fields);
        vars
    }

    fn write_regions(&self, space: &mut Space, native: Id, regions: &[Id]) -> Vec<u64> {
        let take = |_| space.take(native, gc::REGION_SIZE);
        let at: Vec<u64> = (0..regions.len()).map(take).collect();
        for (i, (at_this, id)) in at.iter().zip(regions).enumerate() {
            let end = space.end(*id);
            let start = space.start(*id) + HEAD;
            // where the newest one ends stands elsewhere
            let allocated = if *id == self.newest() { start } else { end };
            space.put_u64(at_this + gc::ALLOCATED, allocated);
            space.put_u64(at_this + gc::MEM, start);
            space.put_u64(at_this + gc::NEXT, at.get(i + 1).copied().unwrap_or(0));
        }
        at
    }
}

fn region(space: &mut Space, start: u64) -> Id {
    let id = space.stretch(start);
    space.take(id, HEAD);
    id
}
