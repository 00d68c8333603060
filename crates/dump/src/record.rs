//! Which parts of the dump file were read: the base of trimming.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

/// What a trimmed dump keeps or drops as a whole, in bytes of the dump file.
pub(crate) const PAGE: u64 = 4096;

/// Granularity of the record, in bytes: a page is 64 lines, one word of the bitmap.
pub(crate) const LINE: u64 = 64;

/// A bitmap with one bit for each line of the dump file.
#[derive(Debug)]
pub(crate) struct Recorder {
    pages: Vec<AtomicU64>,
    /// A bit for each page that is kept without marks: its bytes are blank unless marked.
    kept: Vec<AtomicU64>,
    file_len: u64,
}

impl Recorder {
    /// An empty record for a file of `file_len` bytes.
    pub(crate) fn new(file_len: u64) -> Self {
        let blank = |words: u64| (0..words).map(|_| AtomicU64::new(0)).collect();
        let pages = file_len.div_ceil(PAGE);
        Self {
            pages: blank(pages),
            kept: blank(pages.div_ceil(64)),
            file_len,
        }
    }

    /// Keeps the pages of `len` bytes at `offset`, so that they can be taken with one read; no byte of them is marked.
    pub(crate) fn keep(&self, offset: u64, len: u64) {
        let Some(last) = len.checked_sub(1).map(|l| offset.saturating_add(l)) else {
            return;
        };
        for page in offset / PAGE..=last / PAGE {
            let word = usize::try_from(page / 64).ok();
            if let Some(word) = word.and_then(|w| self.kept.get(w)) {
                word.fetch_or(1 << (page & 63), Ordering::Relaxed);
            }
        }
    }

    fn is_kept(&self, page: u64) -> bool {
        let word = usize::try_from(page / 64).ok();
        let word = word.and_then(|w| self.kept.get(w));
        word.is_some_and(|w| w.load(Ordering::Relaxed) >> (page & 63) & 1 != 0)
    }

    /// Marks the lines of `len` bytes at `offset`.
    pub(crate) fn mark(&self, offset: u64, len: u64) {
        let Some(last) = len.checked_sub(1).map(|l| offset.saturating_add(l)) else {
            return;
        };
        for page in offset / PAGE..=last / PAGE {
            let start = page.saturating_mul(PAGE);
            let from = offset.saturating_sub(start) / LINE;
            let to = (last.saturating_sub(start) / LINE).min(63);
            self.mark_lines(page, from, to);
        }
    }

    /// Marks the lines `from..=to` of a page.
    fn mark_lines(&self, page: u64, from: u64, to: u64) {
        let ones = u64::MAX >> 63_u64.saturating_sub(to.saturating_sub(from));
        let mask = ones << (from & 63);
        let index = usize::try_from(page).unwrap_or(usize::MAX);
        let Some(word) = self.pages.get(index) else {
            return;
        };
        // most lines are marked many times: looking first keeps the cache line shared between threads
        if word.load(Ordering::Relaxed) & mask != mask {
            word.fetch_or(mask, Ordering::Relaxed);
        }
    }

    /// The pages that are kept or have marks, in order, joined where they touch.
    pub(crate) fn touched(&self) -> Vec<Range<u64>> {
        let mut out: Vec<Range<u64>> = Vec::new();
        let marked = (0_u64..)
            .zip(&self.pages)
            .filter(|(page, w)| w.load(Ordering::Relaxed) != 0 || self.is_kept(*page));
        for (page, _) in marked {
            let start = page.saturating_mul(PAGE);
            let end = start.saturating_add(PAGE).min(self.file_len);
            match out.last_mut() {
                Some(last) if last.end == start => last.end = end,
                _ => out.push(start..end),
            }
        }
        out
    }

    /// Blanks the lines of `bytes`, which stand at `offset` of the file, that were not read.
    pub(crate) fn blank_unread(&self, offset: u64, bytes: &mut [u8]) {
        let mut at = offset;
        let mut rest = bytes;
        while !rest.is_empty() {
            let room = LINE.saturating_sub(at % LINE);
            let len = usize::try_from(room).unwrap_or(1).min(rest.len());
            let (line, after) = rest.split_at_mut(len);
            if !self.is_marked(at) {
                line.fill(0);
            }
            (at, rest) = (at.saturating_add(room), after);
        }
    }

    fn is_marked(&self, offset: u64) -> bool {
        let word = usize::try_from(offset / PAGE)
            .ok()
            .and_then(|i| self.pages.get(i));
        word.is_some_and(|w| w.load(Ordering::Relaxed) >> (offset / LINE % 64) & 1 != 0)
    }
}
