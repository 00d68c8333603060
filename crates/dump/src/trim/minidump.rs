//! Minidumps with a list of 64-bit ranges, as full ones have: all else in the file stays where it was, and the list and
//! the bytes that were read stand behind it.

use super::TrimError;
use crate::bytes::{u32_at, u64_at};
use crate::record::Recorder;
use std::io::Write;
use std::ops::Range;

/// Number of the stream with the list.
const MEMORY_64_LIST: u32 = 9;
/// Most streams that are looked at; dbgcore writes 17.
const MAX_STREAMS: u32 = 4096;
const STREAM: usize = 12;
const ENTRY: u64 = 16;

/// A part of the memory that is kept: its address, and where its bytes are in the old file.
struct Part {
    addr: u64,
    bytes: Range<u64>,
}

/// Writes the small minidump; returns its size in bytes.
pub(super) fn write(
    file: &[u8],
    recorder: &Recorder,
    kept: &[Range<u64>],
    out: &mut dyn Write,
) -> Result<u64, TrimError> {
    let list = List::find(file).ok_or(TrimError::NoList)?;
    let parts = list.kept(kept);
    let entries = (parts.len() as u64).saturating_mul(ENTRY);
    let size = entries.saturating_add(ENTRY);
    let head = list.head(file, size).ok_or(TrimError::NoList)?;
    let data_at = (head.len() as u64).saturating_add(size);
    out.write_all(&head)?;
    out.write_all(&(parts.len() as u64).to_le_bytes())?;
    out.write_all(&data_at.to_le_bytes())?;
    let mut end = data_at;
    for part in &parts {
        let len = part.bytes.end.saturating_sub(part.bytes.start);
        out.write_all(&part.addr.to_le_bytes())?;
        out.write_all(&len.to_le_bytes())?;
        end = end.saturating_add(len);
    }
    for part in &parts {
        let range = usize::try_from(part.bytes.start)
            .ok()
            .zip(usize::try_from(part.bytes.end).ok());
        let bytes = range.and_then(|(from, to)| file.get(from..to));
        let mut bytes = bytes.unwrap_or_default().to_vec();
        recorder.blank_unread(part.bytes.start, &mut bytes);
        out.write_all(&bytes)?;
    }
    Ok(end)
}

/// The list of ranges in the old file.
struct List<'f> {
    /// Where the directory speaks of it.
    entry: usize,
    /// Where the bytes of its ranges begin.
    data: u64,
    /// Address and size of each.
    ranges: &'f [[u8; ENTRY as usize]],
    file_len: u64,
}

impl<'f> List<'f> {
    fn find(file: &'f [u8]) -> Option<Self> {
        let count = u32_at(file, 8)?.min(MAX_STREAMS);
        let directory = usize::try_from(u32_at(file, 12)?).ok()?;
        let mut entries = (0..count).filter_map(|i| {
            let at = usize::try_from(i).ok()?.checked_mul(STREAM)?;
            directory.checked_add(at)
        });
        let entry = entries.find(|at| u32_at(file, *at) == Some(MEMORY_64_LIST))?;
        let at = usize::try_from(u32_at(file, entry.checked_add(8)?)?).ok()?;
        let list = file.get(at..)?;
        let count = usize::try_from(u64_at(list, 0)?).ok()?;
        let ranges = list.get(ENTRY as usize..)?.as_chunks().0;
        Some(Self {
            entry,
            data: u64_at(list, 8)?,
            ranges: ranges.get(..count)?,
            file_len: file.len() as u64,
        })
    }

    /// The parts of the ranges that lie in `kept`, by their place in the file.
    fn kept(&self, kept: &[Range<u64>]) -> Vec<Part> {
        let mut out = Vec::new();
        let mut at = self.data;
        for range in self.ranges {
            let (Some(addr), Some(size)) = (u64_at(range, 0), u64_at(range, 8)) else {
                continue;
            };
            let end = at.saturating_add(size).min(self.file_len);
            let first = kept.partition_point(|k| k.end <= at);
            let inside = kept.iter().skip(first).take_while(|k| k.start < end);
            out.extend(inside.map(|k| {
                let from = k.start.max(at);
                Part {
                    addr: addr.saturating_add(from.saturating_sub(at)),
                    bytes: from..k.end.min(end),
                }
            }));
            at = at.saturating_add(size);
        }
        out
    }

    /// All in front of the ranges' bytes, with a list of `size` bytes to follow. Writers put the bytes last.
    fn head(&self, file: &[u8], size: u64) -> Option<Vec<u8>> {
        let mut head = file.get(..usize::try_from(self.data).ok()?)?.to_vec();
        head.resize(head.len().checked_next_multiple_of(8)?, 0);
        let at = u32::try_from(head.len()).ok()?;
        let fields = head.get_mut(self.entry.checked_add(4)?..)?;
        fields
            .get_mut(..4)?
            .copy_from_slice(&u32::try_from(size).ok()?.to_le_bytes());
        fields.get_mut(4..8)?.copy_from_slice(&at.to_le_bytes());
        Some(head)
    }
}
