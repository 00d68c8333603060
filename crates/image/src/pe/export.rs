//! Look-up in the export directory.

use super::{Covering, PeImage};
use crate::bytes::{compare_c_str, prefix};
use asynctriage_dump::{Addr, Memory};
use goblin::pe::export::{ExportDirectoryTable, SIZEOF_EXPORT_DIRECTORY_TABLE};
use std::cmp::Ordering;

/// More names than any image exports; ends the search in a malformed directory.
const MAX_NAMES: u32 = 1 << 20;
/// The longest function that is believed to be one although no entry of the function table tells its end: those of
/// ntdll.dll that enter the kernel have 32 bytes.
const MAX_LEAF: u32 = 64;

pub(super) fn find(image: &PeImage, memory: &dyn Memory, name: &str) -> Option<Addr> {
    let table = directory(image, memory)?;
    let index = index_of(image, memory, &table, name)?;
    let ordinal = memory.u16(
        image
            .rva_to_addr(table.ordinal_table_rva)?
            .element(index.into(), 2),
    )?;
    if u32::from(ordinal) >= table.address_table_entries {
        return None;
    }
    let rva = memory.u32(
        image
            .rva_to_addr(table.export_address_table_rva)?
            .element(ordinal.into(), 4),
    )?;
    if is_forwarded(image, rva) {
        None
    } else {
        image.rva_to_addr(rva)
    }
}

fn directory(image: &PeImage, memory: &dyn Memory) -> Option<ExportDirectoryTable> {
    let at = image.rva_to_addr(image.exports.non_empty()?.rva)?;
    let bytes = prefix(memory, at, SIZEOF_EXPORT_DIRECTORY_TABLE as u64);
    ExportDirectoryTable::parse(&bytes, 0).ok()
}

/// Whether an export is one of another image: its address, inside the directory itself, is that of the text "image.name".
fn is_forwarded(image: &PeImage, rva: u32) -> bool {
    rva.checked_sub(image.exports.rva)
        .is_some_and(|at| at < image.exports.size)
}

/// Which name of the directory is `name`, by halving: linkers sort them by their bytes.
fn index_of(
    image: &PeImage,
    memory: &dyn Memory,
    table: &ExportDirectoryTable,
    name: &str,
) -> Option<u32> {
    let names = image.rva_to_addr(table.name_pointer_rva)?;
    let (mut low, mut high) = (0, table.number_of_name_pointers.min(MAX_NAMES));
    while low < high {
        let middle = low.midpoint(high);
        let text = image.rva_to_addr(memory.u32(names.element(middle.into(), 4))?)?;
        match compare_c_str(memory, text, name)? {
            Ordering::Equal => return Some(middle),
            Ordering::Less => low = middle.saturating_add(1),
            Ordering::Greater => high = middle,
        }
    }
    None
}

/// The exported functions by address, see [`PeImage::named_functions`].
pub(super) fn functions(image: &PeImage, memory: &dyn Memory) -> Vec<(Addr, u64, Addr)> {
    let mut begins = begins(image, memory).unwrap_or_default();
    begins.sort_unstable();
    begins.dedup_by_key(|(rva, _)| *rva);
    let lengths = begins.iter().enumerate().map(|(i, (rva, _))| {
        let next = begins
            .get(i.saturating_add(1))
            .map_or(u32::MAX, |(rva, _)| *rva);
        length(image, memory, *rva, next)
    });
    let found = begins
        .iter()
        .zip(lengths)
        .filter_map(|((rva, name), len)| Some((image.rva_to_addr(*rva)?, u64::from(len?), *name)));
    found.collect()
}

/// RVA and place of the name of every export of this image.
fn begins(image: &PeImage, memory: &dyn Memory) -> Option<Vec<(u32, Addr)>> {
    let table = directory(image, memory)?;
    let names = image.rva_to_addr(table.name_pointer_rva)?;
    let ordinals = image.rva_to_addr(table.ordinal_table_rva)?;
    let addresses = image.rva_to_addr(table.export_address_table_rva)?;
    let count = table.number_of_name_pointers.min(MAX_NAMES);
    let found = (0..count).map_while(|i| {
        let name = image.rva_to_addr(memory.u32(names.element(i.into(), 4))?)?;
        let ordinal = memory.u16(ordinals.element(i.into(), 2))?;
        let rva = memory.u32(addresses.element(ordinal.into(), 4))?;
        Some((rva, name))
    });
    Some(
        found
            .filter(|(rva, _)| !is_forwarded(image, *rva))
            .collect(),
    )
}

/// Bytes of the function that begins at `rva`; `None` when it is none, or begins inside of another one.
fn length(image: &PeImage, memory: &dyn Memory, rva: u32, next: u32) -> Option<u32> {
    let start = image.rva_to_addr(rva)?;
    if !image.may_execute(start) {
        return None;
    }
    let table = image.functions()?;
    match table.covering(memory, rva)? {
        Covering::Function(f) => (f.begin == rva).then(|| f.end.saturating_sub(rva)),
        Covering::Nothing => {
            let behind = table.get(memory, table.begun(memory, rva)?);
            let end = behind.map_or(u32::MAX, |f| f.begin).min(next);
            Some(end.saturating_sub(rva).min(MAX_LEAF))
        }
    }
}
