//! Who refers to some objects: the references of the heap followed against their direction.

use super::index::{Bits, Heap};
use super::references::Scan;
use super::segments::Segment;
use crate::runtime::Runtime;
use asynctriage_dump::Addr;
use rayon::prelude::*;
use rustc_hash::{FxHashMap, FxHashSet};

/// Bytes of a segment that one task looks at.
const CHUNK: u64 = 2 << 20;
/// What is left when the search ends early.
const LEFT: &str = "parts of the heap, for who refers to what";
/// Where the whole of a chunk is not there, what is of it is read by these.
const PAGE: u64 = 4096;
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
    first: u64,
    /// From the first to the last.
    range: u64,
    filter: Vec<u64>,
}

impl Wanted {
    fn new(objects: FxHashSet<Addr>) -> Self {
        let words = (objects.len().saturating_mul(BITS_EACH) >> 6)
            .max(64)
            .next_power_of_two()
            .min(MAX_FILTER);
        let first = objects.iter().min().map_or(0, |a| a.0);
        let last = objects.iter().max().map_or(0, |a| a.0);
        let mut out = Self {
            objects,
            first,
            range: last.saturating_sub(first),
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
        if object.0.wrapping_sub(self.first) > self.range {
            return false;
        }
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
    /// The references from objects of the heap to `targets`, `limit` at most. Reads every word of the heap once, and asks only
    /// of those that name a target which object they belong to; objects that are garbage count as well.
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
        let chunks: Vec<(Addr, u64)> = heap
            .shape
            .segments
            .iter()
            .zip(&heap.starts)
            .flat_map(|(segment, starts)| chunks_of(segment, starts))
            .collect();
        let found = chunks
            .par_iter()
            .map_init(FxHashMap::default, |scans, (start, len)| {
                self.referrers_in(heap, *start, *len, &wanted, scans, limit)
            });
        let mut references: Vec<Reference> = found.flatten_iter().collect();
        references.sort_unstable();
        let is_cut = references.len() > limit || self.budget().is_over();
        references.truncate(limit);
        Referrers { references, is_cut }
    }

    fn referrers_in(
        &self,
        heap: &Heap,
        start: Addr,
        len: u64,
        wanted: &Wanted,
        scans: &mut FxHashMap<Addr, Scan>,
        limit: usize,
    ) -> Vec<Reference> {
        let mut out = Vec::new();
        if self.budget().leaves(LEFT, || Some(1)) {
            return out;
        }
        let mut found = |slot, target| {
            // one more than the limit tells that there are more
            if out.len() > limit {
                return;
            }
            if let Some(holder) = self.holder_of(heap, slot, scans) {
                out.push(Reference {
                    target,
                    holder,
                    slot,
                });
            }
        };
        if let Some(bytes) = self.memory.slice(start, len) {
            words_of(bytes, start, wanted, &mut found);
            return out;
        }
        let (mut at, end) = (start, start + len);
        while at < end {
            let rest = PAGE.saturating_sub(at.0 & (PAGE - 1));
            let rest = rest.min(end.since(at).unwrap_or(0));
            if let Some(bytes) = self.memory.slice(at, rest) {
                words_of(bytes, at, wanted, &mut found);
            }
            at = at + rest;
        }
        out
    }

    /// The object that a word belongs to, if the word is one of its references.
    fn holder_of(
        &self,
        heap: &Heap,
        slot: Addr,
        scans: &mut FxHashMap<Addr, Scan>,
    ) -> Option<Addr> {
        let holder = heap.object_at_or_before(slot)?;
        let mt = Addr(self.memory.u64(holder)? & !7);
        let scan = scans.entry(mt).or_insert_with_key(|mt| self.scan_of(*mt));
        scan.has(self.memory, holder, slot).then_some(holder)
    }
}

/// The parts of a segment that are looked at one by one.
fn chunks_of(segment: &Segment, starts: &Bits) -> impl Iterator<Item = (Addr, u64)> + use<> {
    let start = segment.start;
    let len = segment.end.since(start).unwrap_or(0).min(starts.bytes());
    (0..len.div_ceil(CHUNK)).map(move |chunk| {
        let before = chunk.saturating_mul(CHUNK);
        (start + before, len.saturating_sub(before).min(CHUNK))
    })
}

/// Calls `found` with the address and the value of every word that names what is wanted.
fn words_of(bytes: &[u8], start: Addr, wanted: &Wanted, found: &mut impl FnMut(Addr, Addr)) {
    for (i, word) in bytes.as_chunks::<8>().0.iter().enumerate() {
        let value = Addr(u64::from_le_bytes(*word));
        if wanted.has(value) {
            found(start.element(i as u64, 8), value);
        }
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
