//! Who refers to some objects: the references of the heap followed against their direction.

use super::index::Heap;
use super::instances::CHUNK;
use super::references::Scan;
use crate::runtime::Runtime;
use asynctriage_dump::Addr;
use rayon::prelude::*;
use rustc_hash::{FxHashMap, FxHashSet};

/// Bits of the filter for one object that is looked for.
const BITS_EACH: usize = 16;
/// Words of the filter at most.
const MAX_FILTER: usize = 1 << 16;

/// A reference from one object of the heap to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Reference {
    /// What is referred to.
    pub target: Addr,
    /// The object that refers to it.
    pub holder: Addr,
    /// Where in the holder the reference stands.
    pub slot: Addr,
}

/// References to some objects.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Referrers {
    /// All references, by target, holder and slot.
    pub references: Vec<Reference>,
    /// Whether there were more than were asked for.
    pub is_cut: bool,
}

impl Referrers {
    /// The references to one object.
    #[must_use]
    pub fn of(&self, target: Addr) -> &[Reference] {
        let start = self.references.partition_point(|r| r.target < target);
        let rest = self.references.get(start..).unwrap_or_default();
        let count = rest.partition_point(|r| r.target == target);
        rest.get(..count).unwrap_or_default()
    }
}

/// Objects that are looked for, with a filter in front: nearly every reference of a heap leads to something else.
struct Wanted {
    objects: FxHashSet<Addr>,
    filter: Vec<u64>,
}

impl Wanted {
    fn new(objects: FxHashSet<Addr>) -> Self {
        let words = (objects.len().saturating_mul(BITS_EACH) >> 6)
            .max(64)
            .next_power_of_two()
            .min(MAX_FILTER);
        let mut out = Self {
            objects,
            filter: vec![0; words],
        };
        for object in &out.objects {
            let (word, bit) = place(*object, words);
            if let Some(word) = out.filter.get_mut(word) {
                *word |= bit;
            }
        }
        out
    }

    fn has(&self, object: Addr) -> bool {
        let (word, bit) = place(object, self.filter.len());
        self.filter.get(word).is_some_and(|w| w & bit != 0) && self.objects.contains(&object)
    }
}

/// Word and bit of an object in a filter whose length is a power of two.
fn place(object: Addr, words: usize) -> (usize, u64) {
    // objects stand at multiples of eight; the multiplication spreads them over the high bits
    let hash = (object.0 >> 3).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
    let word = usize::try_from(hash >> 6).unwrap_or(0) & words.saturating_sub(1);
    (word, 1 << (hash & 63))
}

impl Runtime<'_> {
    /// The references from objects of the heap to `targets`, `limit` at most. Looks at every object once; those that are
    /// garbage count as well.
    #[must_use]
    pub fn referrers(
        &self,
        heap: &Heap,
        targets: impl IntoIterator<Item = Addr>,
        limit: usize,
    ) -> Referrers {
        let wanted = Wanted::new(targets.into_iter().collect());
        if wanted.objects.is_empty() {
            return Referrers::default();
        }
        let chunks = heap.chunks();
        let found = chunks
            .par_iter()
            .map_init(FxHashMap::default, |scans, (segment, first)| {
                self.referrers_in(
                    heap.objects_in_words(*segment, *first, CHUNK),
                    &wanted,
                    scans,
                    limit,
                )
            });
        let mut references: Vec<Reference> = found.flatten_iter().collect();
        references.sort_unstable();
        let is_cut = references.len() > limit;
        references.truncate(limit);
        Referrers { references, is_cut }
    }

    fn referrers_in(
        &self,
        objects: impl Iterator<Item = Addr>,
        wanted: &Wanted,
        scans: &mut FxHashMap<u64, Scan>,
        limit: usize,
    ) -> Vec<Reference> {
        let mut out = Vec::new();
        for holder in objects {
            let header = self.memory.u64(holder).unwrap_or(0) & !7;
            let scan = scans
                .entry(header)
                .or_insert_with_key(|mt| self.scan_of(Addr(*mt)));
            scan.for_each(self.memory, holder, &mut |slot, target| {
                // one more than the limit tells that there are more
                if wanted.has(target) && out.len() <= limit {
                    out.push(Reference {
                        target,
                        holder,
                        slot,
                    });
                }
            });
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_filter_lets_nothing_through_that_is_not_wanted() {
        let wanted = Wanted::new((0..1000_u64).map(|i| Addr(0x7000_0000 + i * 24)).collect());
        let hits = (0..24_000_u64).filter(|i| wanted.has(Addr(0x7000_0000 + i)));
        assert_eq!(hits.count(), 1000);
    }

    #[test]
    fn references_of_one_object_are_found_among_those_of_others() {
        let reference = |target, holder| Reference {
            target: Addr(target),
            holder: Addr(holder),
            slot: Addr(holder + 8),
        };
        let all = Referrers {
            references: vec![
                reference(16, 1),
                reference(32, 2),
                reference(32, 3),
                reference(48, 4),
            ],
            is_cut: false,
        };
        assert_eq!(all.of(Addr(32)), &all.references[1..3]);
        assert!(all.of(Addr(40)).is_empty());
    }
}
