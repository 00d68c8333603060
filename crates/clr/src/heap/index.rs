//! What a walk over the heap leaves: counts, wanted objects, and which addresses are objects.

use super::segments::{HeapShape, Segment};
use crate::gap::Gap;
use asynctriage_dump::Addr;

/// Objects are aligned to this many bytes.
pub(super) const GRANULE: u64 = 8;

/// An object that the caller asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct HeapObject {
    /// Its address.
    pub addr: Addr,
    /// Its MethodTable.
    pub mt: Addr,
}

/// How many objects of a type there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TypeCount {
    /// The type.
    pub mt: Addr,
    /// Number of objects.
    pub count: u64,
    /// Their sizes added up, without alignment padding: what the runtime's own debugger support counts.
    pub bytes: u64,
}

/// A place in a segment where no object could be recognised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadObject {
    /// Where.
    pub addr: Addr,
    /// Bytes skipped until objects followed again.
    pub skipped: u64,
    /// Whether the bytes are absent from the dump, rather than wrong.
    pub absent: bool,
}

/// One bit per 8 bytes of a segment.
#[derive(Clone, Debug, Default)]
pub(super) struct Bits(pub(super) Vec<u64>);

impl Bits {
    pub(super) fn for_bytes(bytes: u64) -> Self {
        let words = bytes.div_ceil(GRANULE).div_ceil(64);
        Self(vec![0; usize::try_from(words).unwrap_or(0)])
    }

    /// Bytes of the segment that the bits stand for.
    pub(super) fn bytes(&self) -> u64 {
        (self.0.len() as u64).saturating_mul(GRANULE * 64)
    }

    pub(super) fn set(&mut self, offset: u64) {
        if let Some(word) = self
            .0
            .get_mut(usize::try_from(offset >> 9).unwrap_or(usize::MAX))
        {
            *word |= 1 << ((offset >> 3) & 63);
        }
    }

    pub(super) fn get(&self, offset: u64) -> bool {
        let word = self
            .0
            .get(usize::try_from(offset >> 9).unwrap_or(usize::MAX));
        word.is_some_and(|w| w & 1 << ((offset >> 3) & 63) != 0)
    }

    /// The last set bit at or below `offset`, as an offset.
    fn last_at_or_below(&self, offset: u64) -> Option<u64> {
        let mut index = usize::try_from(offset >> 9).ok()?;
        let mut word = *self.0.get(index)? & (u64::MAX >> (!(offset >> 3) & 63));
        loop {
            if word != 0 {
                let bit = u64::from(63_u32.saturating_sub(word.leading_zeros()));
                return Some(((index as u64) << 9) | (bit << 3));
            }
            index = index.checked_sub(1)?;
            word = *self.0.get(index)?;
        }
    }
}

/// The heap after a walk.
#[derive(Debug, Default)]
pub struct Heap {
    /// Segments and contexts.
    pub shape: HeapShape,
    /// Counts by type, most bytes first.
    pub types: Vec<TypeCount>,
    /// The objects that the caller wanted, by address.
    pub wanted: Vec<HeapObject>,
    /// Places that hold no object.
    pub bad: Vec<BadObject>,
    /// What could not be read.
    pub gaps: Vec<Gap>,
    pub(super) starts: Vec<Bits>,
}

impl Heap {
    /// Number of objects, free space included.
    #[must_use]
    pub fn objects(&self) -> u64 {
        self.types.iter().map(|t| t.count).sum()
    }

    /// Bytes of all objects, free space included.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.types.iter().map(|t| t.bytes).sum()
    }

    /// Places that hold something else than an object, those that the dump lacks not counted.
    #[must_use]
    pub fn invalid_places(&self) -> u64 {
        self.bad.iter().filter(|b| !b.absent).count() as u64
    }

    /// Bytes passed over because no object was recognised there.
    #[must_use]
    pub fn skipped_bytes(&self) -> u64 {
        self.bad
            .iter()
            .map(|b| b.skipped)
            .fold(0, u64::saturating_add)
    }

    /// Index of the segment that an address lies in.
    pub(super) fn segment_index(&self, addr: Addr) -> Option<usize> {
        let after = self.shape.segments.partition_point(|s| s.start <= addr);
        let index = after.checked_sub(1)?;
        (addr < self.shape.segments.get(index)?.end).then_some(index)
    }

    /// The segment that an address lies in.
    #[must_use]
    pub fn segment(&self, addr: Addr) -> Option<&Segment> {
        self.shape.segments.get(self.segment_index(addr)?)
    }

    /// Whether an object starts at this address.
    #[must_use]
    pub fn is_object(&self, addr: Addr) -> bool {
        let Some(index) = self.segment_index(addr).filter(|_| addr.0 & 7 == 0) else {
            return false;
        };
        let offset = self
            .shape
            .segments
            .get(index)
            .and_then(|s| addr.since(s.start));
        matches!((self.starts.get(index), offset), (Some(bits), Some(at)) if bits.get(at))
    }

    /// The objects of one segment, in order.
    pub fn objects_in(&self, segment: usize) -> impl Iterator<Item = Addr> + '_ {
        self.objects_in_words(segment, 0, usize::MAX)
    }

    /// The objects of a part of a segment, which is told in words of its bits.
    pub(super) fn objects_in_words(
        &self,
        segment: usize,
        first: usize,
        count: usize,
    ) -> impl Iterator<Item = Addr> + '_ {
        let start = self
            .shape
            .segments
            .get(segment)
            .map_or(Addr::NULL, |s| s.start);
        let words = self
            .starts
            .get(segment)
            .map_or(&[][..], |b| b.0.as_slice())
            .iter()
            .enumerate()
            .skip(first)
            .take(count);
        words.flat_map(move |(i, word)| {
            let bits = (0..64_u64).filter(move |b| word & 1 << b != 0);
            bits.map(move |b| start + ((i as u64) << 9 | b << 3))
        })
    }

    /// The last object that starts at or before an address of the same segment: what an interior pointer may mean.
    #[must_use]
    pub fn object_at_or_before(&self, addr: Addr) -> Option<Addr> {
        let index = self.segment_index(addr)?;
        let start = self.shape.segments.get(index)?.start;
        Some(
            start
                + self
                    .starts
                    .get(index)?
                    .last_at_or_below(addr.since(start)?)?,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_find_themselves_and_the_nearest_below() {
        let mut bits = Bits::for_bytes(4096);
        bits.set(0);
        bits.set(1024);
        assert!(bits.get(0) && bits.get(1024) && !bits.get(8) && !bits.get(1 << 40));
        assert_eq!(bits.last_at_or_below(1023), Some(0));
        assert_eq!(bits.last_at_or_below(1031), Some(1024));
        assert_eq!(bits.last_at_or_below(4000), Some(1024));
        assert_eq!(Bits::for_bytes(64).last_at_or_below(8), None);
    }
}
