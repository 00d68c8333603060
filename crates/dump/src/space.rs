//! The memory of the process as one address space.

use std::ops::Range;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::backing::Backing;
use crate::pieces::{Content, Piece, flatten};
use crate::record::Recorder;
use crate::under::{HostFile, Under};
use crate::{Addr, Fault, FaultReason, Memory};

/// What the process could do with a region.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Access {
    /// Loads.
    pub read: bool,
    /// Stores.
    pub write: bool,
    /// Instruction fetches.
    pub execute: bool,
}

/// One region of the process as the dump lists it; regions may touch, and in a hostile dump overlap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Region {
    /// First address.
    pub start: Addr,
    /// Bytes that the process had mapped.
    pub size: u64,
    /// How many of them, counted from the start, the dump file really holds.
    pub dumped: u64,
    /// The access rights that the dump states.
    pub access: Access,
}

impl Region {
    /// The first address above the region.
    #[must_use]
    pub fn end(&self) -> Addr {
        self.start + self.size
    }
}

/// Addresses whose bytes stand side by side in a file.
#[derive(Clone, Copy, Debug)]
struct Span {
    start: u64,
    end: u64,
    offset: usize,
    /// 0 for the dump, else one above the position among the files laid under it.
    file: u32,
}

/// Addresses that are known and not readable.
#[derive(Clone, Copy, Debug)]
struct Hole {
    start: u64,
    end: u64,
    reason: FaultReason,
}

/// How many spans are remembered.
const REMEMBERED: usize = 64;

/// The spans that were met last, each in the place that its address gives it: what is read next mostly lies beside what
/// was read before. A wrong number costs a search and nothing else.
#[derive(Debug)]
struct Remembered([AtomicU32; REMEMBERED]);

impl Default for Remembered {
    fn default() -> Self {
        Self([const { AtomicU32::new(0) }; REMEMBERED])
    }
}

impl Remembered {
    /// Heap segments and images begin at multiples of 64 KiB.
    #[inline]
    fn place(&self, addr: u64) -> Option<&AtomicU32> {
        let mixed = (addr >> 16) ^ (addr >> 22);
        self.0.get(mixed as usize % REMEMBERED)
    }
}

/// The memory of the process, as far as the dump holds it, or files laid under it do.
///
/// Lookups try the span that was met last nearby, else search the spans of the file; they allocate nothing, take no lock
/// and may run on any number of threads.
#[derive(Debug)]
pub struct AddressSpace {
    backing: Backing,
    /// `start` of each span, in an array of its own: the search then touches eight keys for each cache line.
    starts: Vec<u64>,
    spans: Vec<Span>,
    remembered: Remembered,
    holes: Vec<Hole>,
    regions: Vec<Region>,
    recorder: Option<Recorder>,
    /// Files of this machine that have what the dump lacks.
    under: Vec<HostFile>,
}

impl AddressSpace {
    /// An address space over `backing`; `pieces` in the order of the dump's headers.
    pub(crate) fn new(
        backing: Backing,
        pieces: Vec<Piece>,
        mut regions: Vec<Region>,
        record: bool,
    ) -> Self {
        regions.sort_by_key(|r| r.start);
        let recorder = record.then(|| Recorder::new(backing.len() as u64));
        let mut space = Self {
            backing,
            starts: Vec::new(),
            spans: Vec::new(),
            remembered: Remembered::default(),
            holes: Vec::new(),
            regions,
            recorder,
            under: Vec::new(),
        };
        space.build(pieces);
        space
    }

    /// Sets what is readable and what is not.
    fn build(&mut self, pieces: Vec<Piece>) {
        self.spans.clear();
        self.holes.clear();
        for piece in flatten(pieces) {
            self.add(piece);
        }
        self.starts = self.spans.iter().map(|s| s.start).collect();
    }

    /// Makes bytes of other files readable where the dump has none.
    pub(crate) fn lay_under(&mut self, parts: Vec<Under>) {
        let mut pieces = self.pieces();
        for part in parts {
            let there = (part.file.len() as u64).saturating_sub(part.offset);
            self.under.push(part.file);
            let number = u32::try_from(self.under.len()).unwrap_or(u32::MAX);
            pieces.push(Piece {
                start: part.start.0,
                end: part.start.0.saturating_add(part.len.min(there)),
                content: Content::Under(number, part.offset),
            });
        }
        self.build(pieces);
    }

    /// What the space was built of.
    fn pieces(&self) -> Vec<Piece> {
        let spans = self.spans.iter().map(|s| Piece {
            start: s.start,
            end: s.end,
            content: match s.file {
                0 => Content::At(s.offset as u64),
                file => Content::Under(file, s.offset as u64),
            },
        });
        let holes = self.holes.iter().map(|h| Piece {
            start: h.start,
            end: h.end,
            content: match h.reason {
                FaultReason::Truncated => Content::Truncated,
                _ => Content::NotDumped,
            },
        });
        spans.chain(holes).collect()
    }

    fn add(&mut self, piece: Piece) {
        let Piece {
            start,
            end,
            content,
        } = piece;
        let (file, offset) = match content {
            Content::At(offset) => (0, offset),
            Content::Under(file, offset) => (file, offset),
            Content::NotDumped => return self.add_hole(start, end, FaultReason::NotDumped),
            Content::Truncated => return self.add_hole(start, end, FaultReason::Truncated),
        };
        match usize::try_from(offset) {
            Ok(offset) => self.spans.push(Span {
                start,
                end,
                offset,
                file,
            }),
            Err(_) => self.add_hole(start, end, FaultReason::Truncated),
        }
    }

    fn add_hole(&mut self, start: u64, end: u64, reason: FaultReason) {
        self.holes.push(Hole { start, end, reason });
    }

    /// Memory made of `pieces`, for tests: readable and writable, not executable.
    ///
    /// Pieces stay apart even where they touch, so that a test can make a value straddle two of them. Where they
    /// overlap the first one given wins.
    #[must_use]
    pub fn from_pieces(pieces: Vec<(Addr, Vec<u8>)>) -> Self {
        let access = Access {
            read: true,
            write: true,
            execute: false,
        };
        Self::from_regions(
            pieces
                .into_iter()
                .map(|(addr, bytes)| (addr, bytes, access))
                .collect(),
        )
    }

    /// Like [`AddressSpace::from_pieces`], with access rights.
    #[must_use]
    pub fn from_regions(pieces: Vec<(Addr, Vec<u8>, Access)>) -> Self {
        let (mut bytes, mut list, mut regions) = (Vec::new(), Vec::new(), Vec::new());
        for (start, piece, access) in pieces {
            let size = piece.len() as u64;
            let content = Content::At(bytes.len() as u64);
            list.push(Piece {
                start: start.0,
                end: start.0.saturating_add(size),
                content,
            });
            regions.push(Region {
                start,
                size,
                dumped: size,
                access,
            });
            bytes.extend_from_slice(&piece);
            // a gap in the backing keeps neighbours from being joined
            bytes.push(0);
        }
        Self::new(Backing::Owned(bytes), list, regions, false)
    }

    /// Everything readable, in address order; each item can be taken with one [`Memory::slice`].
    ///
    /// Segments that go on both in memory and in the file are one item.
    pub fn ranges(&self) -> impl Iterator<Item = (Addr, u64)> + '_ {
        self.spans
            .iter()
            .map(|s| (Addr(s.start), s.end.wrapping_sub(s.start)))
    }

    /// The regions as the dump lists them, by address, with access rights: what to scan.
    #[must_use]
    pub fn regions(&self) -> &[Region] {
        &self.regions
    }

    /// The readable parts of `len` bytes at `addr`, in address order, without copying.
    pub fn iter_pieces(&self, addr: Addr, len: u64) -> impl Iterator<Item = (Addr, &[u8])> + '_ {
        self.spans_within(addr, len)
            .filter_map(|(at, len)| Some((at, self.slice(at, len)?)))
    }

    /// Like [`AddressSpace::iter_pieces`], but leaves no mark in the page record.
    ///
    /// For searches over much memory: read what was found once more through [`Memory`], and a trimmed dump keeps the
    /// finds without everything that was looked through.
    pub fn scan_pieces(&self, addr: Addr, len: u64) -> impl Iterator<Item = (Addr, &[u8])> + '_ {
        self.spans_within(addr, len)
            .filter_map(|(at, len)| Some((at, self.locate(at, len)?.2)))
    }

    fn spans_within(&self, addr: Addr, len: u64) -> impl Iterator<Item = (Addr, u64)> + '_ {
        let end = addr.0.saturating_add(len);
        let first = self
            .starts
            .partition_point(|s| *s <= addr.0)
            .saturating_sub(1);
        let spans = self.spans.get(first..).unwrap_or_default();
        spans
            .iter()
            .take_while(move |s| s.start < end)
            .filter_map(move |s| {
                let from = s.start.max(addr.0);
                let len = s.end.min(end).checked_sub(from).filter(|l| *l > 0)?;
                Some((Addr(from), len))
            })
    }

    /// How many of `len` bytes at `addr` the headers of the dump claim, readable or not.
    pub(crate) fn listed(&self, addr: Addr, len: u64) -> u64 {
        let end = addr.0.saturating_add(len);
        let dumped = self.spans_within(addr, len).map(|(_, l)| l);
        let first = self.holes.partition_point(|h| h.end <= addr.0);
        let holes = self.holes.get(first..).unwrap_or_default().iter();
        let missing = holes
            .take_while(|h| h.start < end)
            .map(|h| h.end.min(end).saturating_sub(h.start.max(addr.0)));
        dumped.chain(missing).fold(0, u64::saturating_add)
    }

    /// The parts of the dump file read so far, in order and in whole 4 KiB pages.
    ///
    /// Empty unless the dump was opened with [`record_pages`](crate::OpenOptions::record_pages).
    #[must_use]
    pub fn touched(&self) -> Vec<Range<u64>> {
        self.recorder
            .as_ref()
            .map(Recorder::touched)
            .unwrap_or_default()
    }

    /// The record of what was read, when there is one.
    pub(crate) fn recorder(&self) -> Option<&Recorder> {
        self.recorder.as_ref()
    }

    /// Whether the byte at `addr` comes from a file of this machine rather than from the dump.
    #[must_use]
    pub fn is_laid_under(&self, addr: Addr) -> bool {
        self.span(addr).is_some_and(|s| s.file != 0)
    }

    /// The dump file itself.
    pub(crate) fn file(&self) -> &[u8] {
        &self.backing
    }

    #[inline]
    fn span(&self, addr: Addr) -> Option<&Span> {
        let place = self.remembered.place(addr.0)?;
        let last = place.load(Ordering::Relaxed) as usize;
        let span = self.spans.get(last);
        if let Some(span) = span.filter(|s| s.start <= addr.0 && addr.0 < s.end) {
            return Some(span);
        }
        let above = self.starts.partition_point(|s| *s <= addr.0);
        let index = above.wrapping_sub(1);
        let span = self.spans.get(index).filter(|s| addr.0 < s.end)?;
        place.store(u32::try_from(index).unwrap_or(0), Ordering::Relaxed);
        Some(span)
    }

    /// In which file and where in it `len` bytes at `addr` stand, and the bytes.
    #[inline]
    fn locate(&self, addr: Addr, len: u64) -> Option<(u32, usize, &[u8])> {
        let span = self.span(addr)?;
        if len > span.end.wrapping_sub(addr.0) {
            return None;
        }
        // a span lies inside its file, so these fit; a wrong span would fail in `get`
        let from = span
            .offset
            .wrapping_add(addr.0.wrapping_sub(span.start) as usize);
        let file: &[u8] = match span.file.checked_sub(1) {
            None => &self.backing,
            Some(under) => self.under.get(under as usize)?,
        };
        let bytes = file.get(from..from.wrapping_add(len as usize))?;
        Some((span.file, from, bytes))
    }
}

impl Memory for AddressSpace {
    #[inline]
    fn slice(&self, addr: Addr, len: u64) -> Option<&[u8]> {
        let (file, from, bytes) = self.locate(addr, len)?;
        if let Some(recorder) = self.recorder.as_ref().filter(|_| file == 0) {
            recorder.mark(from as u64, len);
        }
        Some(bytes)
    }

    fn peek(&self, addr: Addr, len: u64) -> Option<&[u8]> {
        let (file, from, bytes) = self.locate(addr, len)?;
        if let Some(recorder) = self.recorder.as_ref().filter(|_| file == 0) {
            recorder.keep(from as u64, len);
        }
        Some(bytes)
    }

    #[inline]
    fn run(&self, addr: Addr) -> u64 {
        self.span(addr).map_or(0, |s| s.end.wrapping_sub(addr.0))
    }

    fn why_not(&self, addr: Addr, len: u64) -> Option<Fault> {
        let (mut at, mut left) = (addr, len);
        while left > 0 {
            let run = self.run(at).min(left);
            if run == 0 {
                return Some(Fault {
                    addr: at,
                    len: left,
                    reason: self.reason(at),
                });
            }
            (at, left) = (at + run, left.wrapping_sub(run));
        }
        None
    }
}

impl AddressSpace {
    /// Why the unreadable address `addr` is.
    fn reason(&self, addr: Addr) -> FaultReason {
        let above = self.holes.partition_point(|h| h.start <= addr.0);
        let hole = self
            .holes
            .get(above.wrapping_sub(1))
            .filter(|h| addr.0 < h.end);
        hole.map_or(FaultReason::Unmapped, |h| h.reason)
    }
}
