//! Look-up in the export directory.

use super::PeImage;
use crate::bytes::{compare_c_str, prefix};
use asynctriage_dump::{Addr, Memory};
use goblin::pe::export::{ExportDirectoryTable, SIZEOF_EXPORT_DIRECTORY_TABLE};
use std::cmp::Ordering;

/// More names than any image exports; ends the search in a malformed directory.
const MAX_NAMES: u32 = 1 << 20;

pub(super) fn find(image: &PeImage, memory: &dyn Memory, name: &str) -> Option<Addr> {
    let directory = image.exports.non_empty()?;
    let bytes = prefix(
        memory,
        image.rva_to_addr(directory.rva)?,
        SIZEOF_EXPORT_DIRECTORY_TABLE as u64,
    );
    let table = ExportDirectoryTable::parse(&bytes, 0).ok()?;
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
    // an address inside the directory itself is the text "image.name" of a forwarded export
    let forwarded = rva
        .checked_sub(directory.rva)
        .is_some_and(|at| at < directory.size);
    if forwarded {
        None
    } else {
        image.rva_to_addr(rva)
    }
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
