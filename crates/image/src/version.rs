//! The version text that every build of the runtime carries among its variables.

use crate::elf::ElfImage;
use asynctriage_dump::{Addr, Memory};
use memchr::memmem::Finder;

/// What stands before the version; the rest of the text is ` @Commit: ` and a hash.
const MARK: &[u8] = b"@(#)Version ";
/// Most bytes of one range that are searched; the variables of libcoreclr.so take less than 2 MiB.
const MAX_RANGE: u64 = 64 << 20;
/// Bytes that are copied at a time.
const CHUNK: u64 = 64 << 10;
/// Longest version text: `10.0.1526.12345`, with room.
const MAX_TEXT: usize = 32;
/// Smallest unit that a dump holds or lacks.
const PAGE: u64 = 4096;

/// The version of the runtime whose library is `image`, such as `8.0.34`; `None` when the dump lacks the page that the
/// text is in, as createdump makes them: the dumps of 11.0 have it, those of 8.0 to 10.0 do not.
#[must_use]
pub fn version_text(memory: &dyn Memory, image: &ElfImage) -> Option<String> {
    image
        .writable_segments()
        .find_map(|s| find(memory, s.addr, s.mem_size.min(MAX_RANGE)))
}

fn find(memory: &dyn Memory, start: Addr, len: u64) -> Option<String> {
    let finder = Finder::new(MARK);
    let mut done = 0;
    while done < len {
        let bytes = crate::bytes::prefix(memory, start + done, CHUNK.min(len.saturating_sub(done)));
        if let Some(version) = finder
            .find_iter(&bytes)
            .find_map(|at| decode(bytes.get(at.checked_add(MARK.len())?..)?))
        {
            return Some(version);
        }
        done = done.saturating_add(next_chunk(start + done, bytes.len() as u64));
    }
    None
}

/// How far to go on from `at` after `read` bytes: chunks overlap by one text, and a missing page is skipped.
fn next_chunk(at: Addr, read: u64) -> u64 {
    let overlap = MARK.len().saturating_add(MAX_TEXT) as u64;
    let to_page_end = PAGE.saturating_sub(at.0 % PAGE);
    if read == CHUNK {
        read.saturating_sub(overlap)
    } else {
        read.max(1)
            .next_multiple_of(PAGE)
            .min(read.saturating_add(to_page_end))
    }
}

/// `8.0.3426.12345 @Commit: ..` is 8.0.34: the third number is the patch and, in the last two digits, the year.
fn decode(text: &[u8]) -> Option<String> {
    let numbers = text
        .get(..text.len().min(MAX_TEXT))?
        .split(|b| !b.is_ascii_digit() && *b != b'.')
        .next()?;
    let mut parts = std::str::from_utf8(numbers)
        .ok()?
        .split('.')
        .map(|n| n.parse::<u32>().ok());
    let (major, minor, build) = (parts.next()??, parts.next()??, parts.next()??);
    parts.next()??;
    Some(format!("{major}.{minor}.{}", build.checked_div(100)?))
}
