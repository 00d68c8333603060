//! Pages of an image that the loader of Windows changes, because the image does not stand where it was linked.

use super::memory::FileMemory;
use crate::pe::PeImage;
use asynctriage_dump::{Addr, Dump, HostFile, Memory, Under};
use std::collections::BTreeMap;

const PAGE: usize = 4096;
/// Longest relocation table that is read; that of coreclr.dll has 40 KiB.
const MAX_TABLE: u64 = 16 << 20;
/// `IMAGE_REL_BASED_DIR64`.
const DIR64: u16 = 10;

/// The pages with addresses in them that the dump lacks, as the loader would have left them at `base`.
pub(super) fn pages(dump: &Dump, image: &PeImage, file: &FileMemory<'_>, base: Addr) -> Vec<Under> {
    let delta = base.0.wrapping_sub(image.preferred_base());
    if delta == 0 {
        return Vec::new();
    }
    let (mut bytes, mut starts) = (Vec::new(), Vec::new());
    for (page, places) in places(image, file).unwrap_or_default() {
        let start = base + u64::from(page);
        if dump.memory.run(start) >= PAGE as u64 {
            continue;
        }
        if let Some(changed) = changed(image, file, page, &places, delta) {
            starts.push(start);
            bytes.extend(changed);
        }
    }
    let made = HostFile::from(bytes);
    let offsets = (0_u64..).step_by(PAGE);
    starts
        .into_iter()
        .zip(offsets)
        .map(|(start, offset)| Under {
            start,
            file: made.clone(),
            offset,
            len: PAGE as u64,
        })
        .collect()
}

/// By page: where in it addresses stand.
fn places(image: &PeImage, file: &FileMemory<'_>) -> Option<BTreeMap<u32, Vec<usize>>> {
    let range = image.relocations()?;
    let memory: &dyn Memory = file;
    let table = memory.bytes(image.rva_to_addr(range.rva)?, range.size.into(), MAX_TABLE)?;
    let mut out: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
    let mut rest = table.as_slice();
    while let Some((head, tail)) = rest.split_first_chunk::<8>() {
        let [p0, p1, p2, p3, s0, s1, s2, s3] = *head;
        let page = u32::from_le_bytes([p0, p1, p2, p3]);
        let size = u32::from_le_bytes([s0, s1, s2, s3]) as usize;
        let Some((entries, next)) = size
            .checked_sub(head.len())
            .and_then(|len| tail.split_at_checked(len))
        else {
            break;
        };
        let entries = entries.as_chunks::<2>().0.iter().copied();
        let entries = entries.map(u16::from_le_bytes).filter(|e| e >> 12 == DIR64);
        out.entry(page)
            .or_default()
            .extend(entries.map(|e| usize::from(e & 0xFFF)));
        rest = next;
    }
    Some(out)
}

/// A page with `delta` added to the addresses in it.
fn changed(
    image: &PeImage,
    file: &FileMemory<'_>,
    page: u32,
    places: &[usize],
    delta: u64,
) -> Option<Vec<u8>> {
    let at = image.rva_to_addr(page)?;
    let mut bytes = file.slice(at, file.run(at).min(PAGE as u64))?.to_vec();
    bytes.resize(PAGE, 0);
    for place in places {
        let word = bytes
            .get_mut(*place..)
            .and_then(<[u8]>::first_chunk_mut::<8>);
        // an address that crosses into the next page would be torn; linkers align them
        if let Some(word) = word {
            *word = u64::from_le_bytes(*word).wrapping_add(delta).to_le_bytes();
        }
    }
    Some(bytes)
}
