//! The two lists of memory of a minidump, and what the process had mapped.

use ::minidump::format::{MINIDUMP_MEMORY_INFO, MINIDUMP_STREAM_TYPE as Stream, MemoryProtection};
use ::minidump::{MinidumpMemoryInfo, MinidumpMemoryInfoList};

use super::File;
use crate::bytes::{u32_at, u64_at};
use crate::pieces::{Content, Piece};
use crate::{Access, Addr, Contradictions, Region, Truncation};

/// `MEM_COMMIT`.
const COMMITTED: u32 = 0x1000;
/// Size of an entry of either list.
const ENTRY: usize = 16;

/// Memory as the dump lists it.
#[derive(Debug, Default)]
pub(super) struct Lists {
    pub(super) pieces: Vec<Piece>,
    pub(super) regions: Vec<Region>,
    /// What the file ends before.
    pub(super) lost: Truncation,
    /// What contradicts the lists.
    pub(super) contradictions: Contradictions,
}

impl Lists {
    /// Reads Memory64List (full dumps) and MemoryList (all others) of `file`; where both hold an address the first
    /// wins.
    pub(super) fn read(dump: &File<'_>, file: &[u8]) -> Self {
        let mut out = Self::default();
        out.add_list64(stream(dump, file, Stream::Memory64ListStream), file.len());
        out.add_list(stream(dump, file, Stream::MemoryListStream), file.len());
        if out.lost == Truncation::default() && lists_are_cut(dump, file) {
            out.lost.lost_headers = 1;
        }
        if out.lost != Truncation::default() {
            out.contradictions = Contradictions::default();
        }
        let held = joined(&out.pieces);
        match dump.get_stream::<MinidumpMemoryInfoList<'_>>() {
            Ok(info) => out.add_info(&info, &held),
            Err(error) => {
                tracing::debug!(%error, "no list of the regions of the process");
                out.regions = held.iter().map(|part| region(*part)).collect();
            }
        }
        out
    }

    /// Memory64List: count, position of the bytes in the file, then address and size of each range, whose bytes
    /// follow one another.
    fn add_list64(&mut self, list: &[u8], file_len: usize) {
        let (Some(count), Some(mut offset)) = (u64_at(list, 0), u64_at(list, 8)) else {
            return;
        };
        let entries = list.get(ENTRY..).unwrap_or_default().as_chunks::<ENTRY>().0;
        let entries = entries.get(..to_usize(count)).unwrap_or(entries);
        let ranges = entries
            .iter()
            .filter_map(|e| Some((u64_at(e, 0)?, u64_at(e, 8)?)));
        let ranges: Vec<(u64, u64)> = ranges.collect();
        for (start, size) in &ranges {
            self.add(*start, *size, offset, file_len as u64);
            offset = offset.saturating_add(*size);
        }
        let ends = ranges
            .iter()
            .map(|(from, size)| (*from, from.saturating_add(*size)));
        self.contradictions.entries = ranges.len();
        self.contradictions.check_order(ends);
        self.count_lost(count, entries.len());
    }

    /// MemoryList: count, then address, size and position in the file of each range.
    fn add_list(&mut self, list: &[u8], file_len: usize) {
        let Some(count) = u32_at(list, 0) else {
            return;
        };
        // writers that align the entries leave four bytes behind the count
        let len = to_usize(count.into()).saturating_mul(ENTRY);
        let padded = list.len() == len.saturating_add(8);
        let entries = list.get(if padded { 8 } else { 4 }..).unwrap_or_default();
        let entries = entries.as_chunks::<ENTRY>().0;
        for entry in entries.iter().take(to_usize(count.into())) {
            if let (Some(start), Some(size), Some(offset)) =
                (u64_at(entry, 0), u32_at(entry, 8), u32_at(entry, 12))
            {
                self.add(start, size.into(), offset.into(), file_len as u64);
            }
        }
        self.count_lost(count.into(), entries.len());
    }

    fn add(&mut self, start: u64, size: u64, offset: u64, file_len: u64) {
        let end = start.saturating_add(size);
        let there = file_len.saturating_sub(offset).min(size);
        let cut = start.saturating_add(there).min(end);
        let parts = [
            (start, cut, Content::At(offset)),
            (cut, end, Content::Truncated),
        ];
        self.pieces
            .extend(parts.into_iter().filter(|(from, to, _)| from < to).map(
                |(start, end, content)| Piece {
                    start,
                    end,
                    content,
                },
            ));
        let missing = end.saturating_sub(cut);
        self.lost.missing_bytes = self.lost.missing_bytes.saturating_add(missing);
        self.lost.regions = self.lost.regions.saturating_add(usize::from(missing > 0));
    }

    fn count_lost(&mut self, listed: u64, there: usize) {
        let lost = listed.saturating_sub(there as u64);
        self.lost.lost_headers = self.lost.lost_headers.saturating_add(lost);
    }

    /// What the process had mapped: the regions, and holes where the dump holds nothing of it.
    fn add_info(&mut self, info: &MinidumpMemoryInfoList<'_>, held: &[(u64, u64)]) {
        for MinidumpMemoryInfo { raw, .. } in info.iter().filter(|i| i.raw.state == COMMITTED) {
            let (start, end) = (
                raw.base_address,
                raw.base_address.saturating_add(raw.region_size),
            );
            self.pieces.push(Piece {
                start,
                end,
                content: Content::NotDumped,
            });
            let at = held.partition_point(|(from, _)| *from <= start);
            let part = at.checked_sub(1).and_then(|i| held.get(i));
            let dumped = part.map_or(0, |(_, to)| (*to).min(end).saturating_sub(start));
            self.regions.push(Region {
                start: Addr(start),
                size: end.saturating_sub(start),
                dumped,
                access: access(raw),
            });
        }
    }
}

/// Whether the file ends inside a list of memory, or before it: not even the number of entries may be known then.
fn lists_are_cut(dump: &File<'_>, file: &[u8]) -> bool {
    let lists = [Stream::Memory64ListStream, Stream::MemoryListStream].map(|s| s as u32);
    let mut streams = dump.all_streams();
    streams.any(|s| {
        let start = s.location.rva as usize;
        let end = start.saturating_add(s.location.data_size as usize);
        lists.contains(&s.stream_type) && end > file.len()
    })
}

/// The bytes of a stream as far as the file goes; empty when there is none.
fn stream<'a>(dump: &File<'a>, file: &'a [u8], wanted: Stream) -> &'a [u8] {
    let entry = dump
        .all_streams()
        .find(|s| s.stream_type == wanted as u32)
        .map(|s| &s.location);
    let Some(location) = entry else { return &[] };
    let clip = |at: usize| at.min(file.len());
    let start = location.rva as usize;
    let end = start.saturating_add(location.data_size as usize);
    file.get(clip(start)..clip(end)).unwrap_or_default()
}

/// What is held, as ranges from and to, by address and joined where they touch.
fn joined(pieces: &[Piece]) -> Vec<(u64, u64)> {
    let held = pieces
        .iter()
        .filter(|p| matches!(p.content, Content::At(_)));
    let mut all: Vec<_> = held.map(|p| (p.start, p.end)).collect();
    all.sort_unstable();
    let mut out: Vec<(u64, u64)> = Vec::new();
    for (start, end) in all {
        match out.last_mut() {
            Some((_, to)) if *to >= start => *to = end.max(*to),
            _ => out.push((start, end)),
        }
    }
    out
}

/// A region of which nothing is known but that it is in the dump.
fn region((start, end): (u64, u64)) -> Region {
    let size = end.saturating_sub(start);
    Region {
        start: Addr(start),
        size,
        dumped: size,
        access: Access {
            read: true,
            ..Access::default()
        },
    }
}

fn access(info: &MINIDUMP_MEMORY_INFO) -> Access {
    use MemoryProtection as P;
    let protection = P::from_bits_truncate(info.protection) & P::ACCESS_MASK;
    let any = |of: P| protection.intersects(of);
    Access {
        read: !any(P::PAGE_NOACCESS | P::PAGE_EXECUTE) && !protection.is_empty(),
        write: any(P::PAGE_READWRITE
            | P::PAGE_WRITECOPY
            | P::PAGE_EXECUTE_READWRITE
            | P::PAGE_EXECUTE_WRITECOPY),
        execute: any(P::PAGE_EXECUTE
            | P::PAGE_EXECUTE_READ
            | P::PAGE_EXECUTE_READWRITE
            | P::PAGE_EXECUTE_WRITECOPY),
    }
}

fn to_usize(count: u64) -> usize {
    usize::try_from(count).unwrap_or(usize::MAX)
}
