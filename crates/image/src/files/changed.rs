//! Which parts of a mapped file the process may have changed: the file says nothing about them.
//!
//! Whole cores of gdb and of the kernel (filters 0x01, 0x21 and 0x33; 10.0.15 and 11.0.0 on x64) hold every page of a
//! file that the process had changed: of 11,505 to 12,668 pages that files had to lend each, all were as the process had
//! them. Where a core is cut, or a minidump leaves variables out, the pages that it lacks may be changed ones: variables,
//! and what the loader had relocated before it was made read-only, which linkers put among the variables.

use crate::elf::ElfImage;
use asynctriage_dump::{Addr, Dump, Under};

/// Key of the page size in the auxiliary vector.
const AT_PAGESZ: u64 = 6;
/// The size of a page where the dump does not tell it.
const PAGE: u64 = 4096;

/// First address and first address above.
pub(super) type Range = (Addr, Addr);

/// What the process could write to by the dump's own list: by address, none touches another.
pub(super) struct Writable(Vec<Range>);

impl Writable {
    pub(super) fn of(dump: &Dump) -> Self {
        let regions = dump.memory.regions().iter().filter(|r| r.access.write);
        let mut merged: Vec<Range> = Vec::new();
        // they come by address
        for region in regions {
            match merged.last_mut() {
                Some((_, end)) if *end >= region.start => *end = region.end().max(*end),
                _ => merged.push((region.start, region.end())),
            }
        }
        Self(merged)
    }

    /// The parts without these ranges, and without `variables`.
    pub(super) fn keep_out(&self, parts: &[Under], variables: &[Range]) -> Vec<Under> {
        let constant = parts.iter().flat_map(|part| outside(part, variables));
        constant
            .flat_map(|part| outside(&part, self.near(&part)))
            .collect()
    }

    /// Those that a part may touch.
    fn near(&self, part: &Under) -> &[Range] {
        let first = self.0.partition_point(|(_, end)| *end <= part.start);
        let behind = self
            .0
            .partition_point(|(start, _)| *start < part.start + part.len);
        self.0.get(first..behind).unwrap_or_default()
    }
}

/// The size of a page of the process: 4 KiB, on arm64 also 16 or 64.
pub(super) fn page_size(dump: &Dump) -> u64 {
    let said = dump.process.auxiliary(AT_PAGESZ);
    said.filter(|s| s.is_power_of_two()).unwrap_or(PAGE)
}

/// Where an ELF image of the process has its variables, in whole pages.
pub(super) fn variables(image: &ElfImage, page: u64) -> Vec<Range> {
    let low_bits = page.wrapping_sub(1);
    let pages = image.writable_segments().map(|s| {
        let end = s.addr + s.mem_size;
        (
            s.addr.without(low_bits),
            (end + low_bits).without(low_bits).max(end),
        )
    });
    let mut pages: Vec<Range> = pages.collect();
    pages.sort_unstable();
    pages
}

/// What of a part lies outside of ranges, which come by their begins.
fn outside(part: &Under, changed: &[Range]) -> Vec<Under> {
    let (mut out, mut at) = (Vec::new(), part.start);
    let end = part.start + part.len;
    let piece = |from: Addr, to: Addr| Under {
        start: from,
        file: part.file.clone(),
        offset: part
            .offset
            .saturating_add(from.since(part.start).unwrap_or(0)),
        len: to.since(from).unwrap_or(0),
    };
    for (start, above) in changed {
        if at < *start {
            out.push(piece(at, end.min(*start)));
        }
        at = at.max(*above);
    }
    if at < end {
        out.push(piece(at, end));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use asynctriage_dump::HostFile;

    #[test]
    fn parts_are_cut_around_what_was_changed() {
        let part = Under {
            start: Addr(0x1000),
            file: HostFile::from(vec![0; 0x4000]),
            offset: 0x100,
            len: 0x3000,
        };
        let cut = |changed: &[(u64, u64)]| {
            let changed: Vec<Range> = changed.iter().map(|(s, e)| (Addr(*s), Addr(*e))).collect();
            let parts = outside(&part, &changed).into_iter();
            parts
                .map(|p| (p.start.0, p.offset, p.len))
                .collect::<Vec<_>>()
        };
        let whole = [(0x1000, 0x100, 0x3000)];
        assert_eq!(cut(&[]), whole);
        assert_eq!(cut(&[(0, 0x1000), (0x4000, u64::MAX)]), whole);
        assert_eq!(cut(&[(0, 0x2000)]), [(0x2000, 0x1100, 0x2000)]);
        assert_eq!(
            cut(&[(0x1800, 0x3000), (0x2000, 0x2800)]),
            [(0x1000, 0x100, 0x800), (0x3000, 0x2100, 0x1000)]
        );
        assert_eq!(cut(&[(0, u64::MAX)]), []);
    }
}
