//! The JIT's nibble maps: where in a code heap methods begin.
//!
//! One nibble per 32 bytes of code, eight of them in a u32, the first in its highest bits. A nibble is 0 when no method
//! begins in its 32 bytes, else 1 more than the start's distance in units of 4 bytes. Up to 9.0 finding a start means
//! to go back nibble by nibble; from 10.0 on a word that lies wholly inside a method holds the distance of its start.

use asynctriage_dump::{Addr, Memory};

const BUCKET_BITS: u32 = 5;
const BUCKET_MASK: u64 = 31;
const NIBBLES: u64 = 8;
/// Words that are gone back over at most: code of 64 MiB.
const MAX_WORDS: u64 = 1 << 18;
/// Low nibbles above this mark a word as a distance (10.0 and 11.0).
const LAST_PLAIN_NIBBLE: u32 = 8;

/// The map of one code heap.
pub(super) struct Map<'m> {
    pub(super) memory: &'m dyn Memory,
    /// The address that the first nibble speaks of.
    pub(super) base: Addr,
    /// The words.
    pub(super) words: Addr,
}

impl Map<'_> {
    fn word(&self, index: u64) -> Option<u32> {
        self.memory.u32(self.words.element(index, 4))
    }

    /// The start that nibble `at` of word `index` tells.
    fn start(&self, index: u64, at: u64, nibble: u32) -> Addr {
        let bucket = index.wrapping_mul(NIBBLES).wrapping_add(at);
        let distance = u64::from(nibble.wrapping_sub(1)).wrapping_mul(4);
        self.base.element(bucket, BUCKET_MASK.wrapping_add(1)) + distance
    }

    /// The last nibble of a word that is not 0, among the first `count`.
    fn last(&self, index: u64, word: u32, count: u64) -> Option<Addr> {
        (0..count.min(NIBBLES)).rev().find_map(|at| {
            let nibble = nibble(word, at);
            (nibble != 0).then(|| self.start(index, at, nibble))
        })
    }

    /// In the word that the address belongs to: its own nibble when the start is not behind it, else an earlier one.
    fn in_own_word(&self, ip: Addr) -> Option<(u64, u32, Option<Addr>)> {
        let delta = ip.since(self.base)?;
        let bucket = delta >> BUCKET_BITS;
        let (index, at) = (bucket / NIBBLES, bucket % NIBBLES);
        let word = self.word(index)?;
        let own = nibble(word, at);
        let fits = own != 0 && u64::from(own) <= ((delta & BUCKET_MASK) >> 2).wrapping_add(1);
        let count = if fits { at.wrapping_add(1) } else { at };
        Some((index, word, self.last(index, word, count)))
    }

    /// 8.0 and 9.0.
    pub(super) fn find_by_scanning(&self, ip: Addr) -> Option<Addr> {
        let (index, _, found) = self.in_own_word(ip)?;
        let earlier = || {
            let words = (0..index)
                .rev()
                .take(usize::try_from(MAX_WORDS).unwrap_or(0));
            let mut words = words.map_while(|i| Some((i, self.word(i)?)));
            let (i, word) = words.find(|(_, word)| *word != 0)?;
            self.last(i, word, NIBBLES)
        };
        found.or_else(earlier)
    }

    /// 10.0 and 11.0.
    pub(super) fn find_in_constant_time(&self, ip: Addr) -> Option<Addr> {
        let (index, word, found) = self.in_own_word(ip)?;
        if let Some(start) = self.distance(word) {
            return Some(start);
        }
        if found.is_some() {
            return found;
        }
        let before = index.checked_sub(1)?;
        let word = self.word(before)?;
        self.distance(word)
            .or_else(|| self.last(before, word, NIBBLES))
    }

    fn distance(&self, word: u32) -> Option<Addr> {
        let low = (word & 0xf).checked_sub(LAST_PLAIN_NIBBLE.wrapping_add(1))?;
        Some(self.base + u64::from(word & !0xf) + u64::from(low).wrapping_mul(4))
    }
}

fn nibble(word: u32, at: u64) -> u32 {
    let shift = 28_u64.saturating_sub(at.saturating_mul(4));
    word >> shift.min(28) & 0xf
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::code::testing::Bytes;

    const WORDS: Addr = Addr(0x1000);
    const CODE: Addr = Addr(0x10_0000);

    fn bytes(words: &[u32]) -> Bytes {
        Bytes::at(WORDS, words.iter().flat_map(|w| w.to_le_bytes()).collect())
    }

    fn map(memory: &Bytes) -> Map<'_> {
        Map {
            memory,
            base: CODE,
            words: WORDS,
        }
    }

    #[test]
    fn a_start_is_found_in_its_own_word_and_never_behind_the_address() {
        // starts at 0x20 * 1 + 8 and 0x20 * 5 + 4
        let memory = bytes(&[0x0300_0200]);
        let map = map(&memory);
        for find in [Map::find_by_scanning, Map::find_in_constant_time] {
            assert_eq!(find(&map, CODE + 0x28), Some(CODE + 0x28));
            assert_eq!(find(&map, CODE + 0x27), None);
            assert_eq!(find(&map, CODE + 0xa3), Some(CODE + 0x28));
            assert_eq!(find(&map, CODE + 0xa4), Some(CODE + 0xa4));
            assert_eq!(find(&map, CODE.back(1)), None);
        }
    }

    #[test]
    fn scanning_goes_back_over_empty_words() {
        let memory = bytes(&[0x0000_0010, 0, 0, 0]);
        let map = map(&memory);
        assert_eq!(map.find_by_scanning(CODE + 0x3ff), Some(CODE + 0xc0));
        // a word past the end of what was dumped
        assert_eq!(map.find_by_scanning(CODE + 0x400), None);
    }

    #[test]
    fn a_word_inside_a_method_tells_how_far_its_start_is() {
        // the method begins at 0xc4: 0xc0 in the upper bits, 1 unit more in the low nibble
        let memory = bytes(&[0x0000_0020, 0x0000_00ca, 0x0000_00ca, 0]);
        let map = map(&memory);
        assert_eq!(map.find_in_constant_time(CODE + 0x100), Some(CODE + 0xc4));
        assert_eq!(map.find_in_constant_time(CODE + 0x2ff), Some(CODE + 0xc4));
        assert_eq!(map.find_in_constant_time(CODE + 0x300), Some(CODE + 0xc4));
    }
}
