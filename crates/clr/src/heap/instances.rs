//! The objects of some types.

use super::index::Heap;
use crate::runtime::Runtime;
use asynctriage_dump::Addr;
use rayon::prelude::*;

/// Words of a segment's bits that one task looks at: 2 MB of heap.
pub(super) const CHUNK: usize = 1 << 12;

impl Heap {
    /// Parts of all segments for tasks of their own: the segment, and the first word of its bits.
    pub(super) fn chunks(&self) -> Vec<(usize, usize)> {
        (0..self.starts.len())
            .flat_map(|segment| {
                let words = self.starts.get(segment).map_or(0, |s| s.0.len());
                let chunks = 0..words.div_ceil(CHUNK);
                chunks.map(move |chunk| (segment, chunk.saturating_mul(CHUNK)))
            })
            .collect()
    }

    /// The objects with one of these MethodTables, by address. Looks at every object once.
    pub fn addresses_of(
        &self,
        rt: &Runtime<'_>,
        mut wanted: Vec<Addr>,
    ) -> std::vec::IntoIter<Addr> {
        if wanted.is_empty() {
            return Vec::new().into_iter();
        }
        wanted.sort_unstable();
        let is_wanted = |object: &Addr| {
            let mt = rt.memory.ptr(*object).unwrap_or_default().without(7);
            wanted.binary_search(&mt).is_ok()
        };
        let chunks = self.chunks();
        let found = chunks.par_iter().flat_map_iter(|(segment, first)| {
            let is_over = rt
                .budget()
                .leaves("parts of the heap, searched by type", || Some(1));
            let words = if is_over { 0 } else { CHUNK };
            let objects = self.objects_in_words(*segment, *first, words);
            objects.filter(&is_wanted)
        });
        let mut out: Vec<Addr> = found.collect();
        out.sort_unstable();
        out.into_iter()
    }
}
