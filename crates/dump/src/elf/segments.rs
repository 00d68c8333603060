//! The segment list as pieces of address space.

use std::ops::Range;

use object::elf::{PF_R, PF_W, PF_X, PT_LOAD, PT_NOTE, PT_NULL};

use super::{Core, LE, ProgramHeader};
use crate::pieces::{Content, Piece};
use crate::{Access, Addr, Contradictions, Region, Truncation};

/// The smallest page.
const PAGE: u64 = 4096;

/// What the `PT_LOAD` entries say.
#[derive(Debug, Default)]
pub(crate) struct Segments {
    pub(crate) pieces: Vec<Piece>,
    pub(crate) regions: Vec<Region>,
    /// Bytes and segments past the end of the file.
    pub(crate) lost: Truncation,
    /// What contradicts the list.
    pub(crate) contradictions: Contradictions,
}

impl Segments {
    /// Reads the segment list of `core`, whose file has `file_len` bytes.
    pub(crate) fn read(core: &Core<'_>, file_len: u64) -> Self {
        let mut out = Self::default();
        out.lost.lost_headers = core.lost_headers;
        for header in core.headers.iter().filter(|h| h.p_type.get(LE) == PT_LOAD) {
            out.add(header, file_len);
        }
        if out.lost == Truncation::default() {
            out.contradictions = contradictions(core, file_len);
        }
        out
    }

    fn add(&mut self, header: &ProgramHeader, file_len: u64) {
        let part = Extent::new(header, file_len);
        let (dumped, filed, end) = part.limits();
        self.pieces.extend(
            [
                Piece {
                    start: part.start,
                    end: dumped,
                    content: Content::At(part.offset),
                },
                Piece {
                    start: dumped,
                    end: filed,
                    content: Content::Truncated,
                },
                Piece {
                    start: filed,
                    end,
                    content: Content::NotDumped,
                },
            ]
            .into_iter()
            .filter(|p| p.start < p.end),
        );
        self.lost.missing_bytes = self
            .lost
            .missing_bytes
            .saturating_add(filed.saturating_sub(dumped));
        self.lost.regions = self
            .lost
            .regions
            .saturating_add(usize::from(filed > dumped));
        self.regions.push(Region {
            start: Addr(part.start),
            size: end.saturating_sub(part.start),
            dumped: dumped.saturating_sub(part.start),
            access: access(header),
        });
    }
}

/// What the list says against itself. Of a file that is cut it says nothing more.
fn contradictions(core: &Core<'_>, file_len: u64) -> Contradictions {
    let all = || core.headers.iter().filter(|h| h.p_type.get(LE) != PT_NULL);
    // gdb writes regions wherever it stands, and what is cut from such a core begins anywhere; others write pages
    let filed = |h: &&ProgramHeader| h.p_type.get(LE) == PT_LOAD && h.p_filesz.get(LE) > 0;
    let in_pages = all()
        .find(filed)
        .is_none_or(|h| h.p_offset.get(LE).is_multiple_of(PAGE));
    let page = if in_pages { PAGE } else { 1 };
    let mut out = Contradictions {
        entries: all().count(),
        strange: all().filter(|h| is_strange(h, page)).count(),
        ..Contradictions::default()
    };
    let loads = all().filter(|h| h.p_type.get(LE) == PT_LOAD);
    out.check_order(loads.map(|h| {
        let (_, _, end) = Extent::new(h, file_len).limits();
        (h.p_vaddr.get(LE), end)
    }));
    let mut parts: Vec<(u64, u64)> = all()
        .map(|h| (h.p_offset.get(LE), h.p_filesz.get(LE)))
        .map(|(from, size)| (from, from.saturating_add(size)))
        .collect();
    parts.push((0, core.lists_end));
    // what stands behind is the list of sections, where there is one
    let end = parts.iter().map(|(_, to)| *to).max().unwrap_or(0);
    let has_sections = core.header.e_shoff.get(LE) != 0;
    out.check_parts(parts, if has_sections { end } else { file_len });
    out
}

/// Whether no system writes such an entry: cores have notes and regions, and regions are pages.
fn is_strange(header: &ProgramHeader, page: u64) -> bool {
    match header.p_type.get(LE) {
        PT_NOTE => false,
        PT_LOAD => {
            let (size, filed) = (header.p_memsz.get(LE), header.p_filesz.get(LE));
            let flags = header.p_flags.get(LE);
            flags.0 & !(PF_R | PF_W | PF_X).0 != 0
                || !header.p_vaddr.get(LE).is_multiple_of(page)
                || !size.is_multiple_of(page)
                || filed > size
        }
        _ => true,
    }
}

/// One `PT_LOAD` entry, clipped to the file and to the address space.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Extent {
    /// First address.
    pub(crate) start: u64,
    /// Where its bytes begin in the file.
    pub(crate) offset: u64,
    /// Bytes that the file really holds.
    pub(crate) dumped: u64,
    /// Bytes that the file should hold.
    pub(crate) filed: u64,
    /// Bytes that the process had.
    pub(crate) size: u64,
}

impl Extent {
    /// The extent of `header` in a file of `file_len` bytes.
    pub(crate) fn new(header: &ProgramHeader, file_len: u64) -> Self {
        let (start, offset) = (header.p_vaddr.get(LE), header.p_offset.get(LE));
        let room = u64::MAX.wrapping_sub(start);
        let filed = header.p_filesz.get(LE).min(room);
        let size = header.p_memsz.get(LE).min(room).max(filed);
        Self {
            start,
            offset,
            dumped: filed.min(file_len.saturating_sub(offset)),
            filed,
            size,
        }
    }

    /// The addresses after the dumped, the filed and all bytes.
    fn limits(&self) -> (u64, u64, u64) {
        let up = |len| self.start.saturating_add(len);
        (up(self.dumped), up(self.filed), up(self.size))
    }
}

fn access(header: &ProgramHeader) -> Access {
    let flags = header.p_flags.get(LE);
    Access {
        read: flags.contains(PF_R),
        write: flags.contains(PF_W),
        execute: flags.contains(PF_X),
    }
}

/// Where the note segments stand in `file`, each as far as it goes; together no longer than the file, so that a core
/// that lists the same notes again and again costs no more than an honest one.
pub(crate) fn note_ranges(core: &Core<'_>, file: &[u8]) -> Vec<Range<usize>> {
    let mut budget = file.len();
    let mut out = Vec::new();
    for header in core.headers.iter().filter(|h| h.p_type.get(LE) == PT_NOTE) {
        let clip = |at: u64| usize::try_from(at).unwrap_or(usize::MAX).min(file.len());
        let start = clip(header.p_offset.get(LE));
        let end = clip(
            header
                .p_offset
                .get(LE)
                .saturating_add(header.p_filesz.get(LE)),
        );
        let Some(rest) = budget.checked_sub(end.saturating_sub(start)) else {
            break;
        };
        budget = rest;
        out.push(start..end);
    }
    out
}
