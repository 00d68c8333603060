//! The debug directory: which symbol file belongs to the image.

use super::{PeImage, PeLayout};
use asynctriage_dump::{Addr, Memory};

/// Size of a debug directory entry.
const ENTRY: u32 = 28;
/// Most entries that are looked at; real images have up to five.
const MAX_ENTRIES: u32 = 64;
/// `IMAGE_DEBUG_TYPE_CODEVIEW`.
const CODE_VIEW: u32 = 2;
/// `IMAGE_DEBUG_TYPE_EMBEDDED_PORTABLE_PDB`.
const EMBEDDED: u32 = 17;
/// Minor version of an entry that names a portable PDB: `MP`.
const PORTABLE: u16 = 0x504d;
/// Signature of the record: `RSDS`.
const RSDS: u32 = 0x5344_5352;
/// Longest path that is kept, in bytes.
const MAX_PATH: u64 = 1024;

/// The record that ties an image to its symbol file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CodeView {
    /// Identifier of the build, in the byte order of the file.
    pub guid: [u8; 16],
    /// How often the symbol file was rewritten; 1 for portable PDBs.
    pub age: u32,
    /// The path that the compiler wrote the symbol file to.
    pub path: String,
    /// Whether the symbol file is a portable PDB.
    pub portable: bool,
}

impl PeImage {
    /// Where the portable PDB inside the image is, packed, with its length in bytes.
    #[must_use]
    pub fn embedded_pdb(&self, memory: &dyn Memory) -> Option<(Addr, u32)> {
        let mut entries = entries(self)?;
        let entry = entries.find(|e| memory.u32(*e + 12) == Some(EMBEDDED))?;
        Some((data(self, memory, entry)?, memory.u32(entry + 16)?))
    }

    /// Whether the image names no symbol file: it was built without one, or somebody removed the record, as trimming does
    /// for libraries that come without symbols. `false` when the dump lacks the entries.
    #[must_use]
    pub fn is_without_symbols(&self, memory: &dyn Memory) -> bool {
        let Some(mut entries) = entries(self) else {
            return self.debug.non_empty().is_none();
        };
        entries.all(|entry| {
            let kind = memory.u32(entry + 12);
            kind.is_some_and(|k| k != CODE_VIEW && k != EMBEDDED)
        })
    }
}

fn entries(image: &PeImage) -> Option<impl Iterator<Item = Addr>> {
    let directory = image.debug.non_empty()?;
    let start = image.rva_to_addr(directory.rva)?;
    let count = directory.size.checked_div(ENTRY)?.min(MAX_ENTRIES);
    Some((0..count).map(move |i| start.element(i.into(), ENTRY.into())))
}

/// Where the data of an entry is.
fn data(image: &PeImage, memory: &dyn Memory, entry: Addr) -> Option<Addr> {
    match image.layout {
        PeLayout::Loaded => image.rva_to_addr(memory.u32(entry + 20)?),
        PeLayout::Flat => Some(image.base + u64::from(memory.u32(entry + 24)?)),
    }
}

pub(super) fn code_view(image: &PeImage, memory: &dyn Memory) -> Option<CodeView> {
    // ahead-of-time compiled images have two records: the one of the native symbols and, behind it, that of the assembly
    let records = entries(image)?.filter_map(|entry| record(image, memory, entry));
    let mut all: Vec<_> = records.collect();
    let best = all.iter().position(|r| r.portable).unwrap_or(0);
    (best < all.len()).then(|| all.swap_remove(best))
}

fn record(image: &PeImage, memory: &dyn Memory, entry: Addr) -> Option<CodeView> {
    if memory.u32(entry + 12)? != CODE_VIEW {
        return None;
    }
    let at = data(image, memory, entry)?;
    if memory.u32(at)? != RSDS {
        return None;
    }
    let mut guid = [0; 16];
    memory.read_into(at + 4, &mut guid).then_some(())?;
    Some(CodeView {
        guid,
        age: memory.u32(at + 20)?,
        path: memory.c_str(at + 24, MAX_PATH)?,
        portable: memory.u16(entry + 10)? == PORTABLE,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pe::tests::{DIRECTORIES, data, header, put, text};
    use crate::test_memory::Pieces;

    const BASE: u64 = 0x10_0000;

    fn is_without(header: Vec<u8>, rest: bool) -> bool {
        let mut memory = Pieces::default();
        let file = if rest {
            [header, text(), data()].concat()
        } else {
            header
        };
        memory = memory.with(BASE, file);
        let image = PeImage::parse(&memory, Addr(BASE), PeLayout::Flat).unwrap();
        image.is_without_symbols(&memory)
    }

    #[test]
    fn an_image_that_names_no_symbols_is_told_from_one_that_is_not_dumped() {
        assert!(!is_without(header(), true), "it names them");
        assert!(!is_without(header(), false), "nobody knows");
        let mut none = header();
        put(&mut none, DIRECTORIES + 6 * 8, &[0, 0]);
        assert!(
            is_without(none, false),
            "the header says that there is none"
        );
    }
}
