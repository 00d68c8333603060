//! Which pages of the dump file were read: the base of trimming.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

/// Granularity of the record, in bytes of the dump file.
pub(crate) const PAGE: u64 = 4096;

/// Bits in one word of the bitmap.
const WORD: u64 = 64;

/// A bitmap with one bit for each page of the dump file.
#[derive(Debug)]
pub(crate) struct Recorder {
    words: Vec<AtomicU64>,
    file_len: u64,
}

impl Recorder {
    /// An empty record for a file of `file_len` bytes.
    pub(crate) fn new(file_len: u64) -> Self {
        let words = file_len.div_ceil(PAGE).div_ceil(WORD);
        Self {
            words: (0..words).map(|_| AtomicU64::new(0)).collect(),
            file_len,
        }
    }

    /// Marks the pages of `len` bytes at `offset`.
    pub(crate) fn mark(&self, offset: u64, len: u64) {
        let Some(last) = len.checked_sub(1).map(|l| offset.saturating_add(l) / PAGE) else {
            return;
        };
        let mut page = offset / PAGE;
        while page <= last {
            let end = (page | (WORD - 1)).min(last);
            self.mark_in_word(page, end);
            page = end.saturating_add(1);
        }
    }

    /// Marks the pages `from..=to`, which share one word.
    fn mark_in_word(&self, from: u64, to: u64) {
        let ones = u64::MAX >> (WORD - 1).saturating_sub(to.saturating_sub(from));
        let mask = ones << (from % WORD);
        let index = usize::try_from(from / WORD).unwrap_or(usize::MAX);
        let Some(word) = self.words.get(index) else {
            return;
        };
        // most pages are marked many times: looking first keeps the cache line shared between threads
        if word.load(Ordering::Relaxed) & mask != mask {
            word.fetch_or(mask, Ordering::Relaxed);
        }
    }

    /// The marked parts of the file, in order, joined where they touch.
    pub(crate) fn touched(&self) -> Vec<Range<u64>> {
        let mut out: Vec<Range<u64>> = Vec::new();
        for page in self.pages() {
            let start = page.saturating_mul(PAGE);
            let end = start.saturating_add(PAGE).min(self.file_len);
            match out.last_mut() {
                Some(last) if last.end == start => last.end = end,
                _ => out.push(start..end),
            }
        }
        out
    }

    fn pages(&self) -> impl Iterator<Item = u64> + '_ {
        (0_u64..).zip(&self.words).flat_map(|(index, word)| {
            let bits = word.load(Ordering::Relaxed);
            (0..WORD)
                .filter(move |bit| bits >> bit & 1 != 0)
                .map(move |bit| index.saturating_mul(WORD).saturating_add(bit))
        })
    }
}
