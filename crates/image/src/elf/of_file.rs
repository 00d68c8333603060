//! Names of functions that only the file of an image has: of all functions in `.symtab`, where it was not stripped, or
//! of most in the packed `.gnu_debugdata`, which Fedora and its kin leave in stripped files.

use lzma_rust2::XzReader;
use object::read::elf::ElfFile64;
use object::{LittleEndian, Object as _, ObjectSection as _, ObjectSymbol as _, SymbolKind};
use std::io::Read as _;

/// Most functions of one file that are kept: libcoreclr.so has some 60,000.
const MAX_FUNCTIONS: usize = 1 << 19;
/// The longest name that is kept, in bytes.
const MAX_NAME: usize = 512;
/// The largest unpacked `.gnu_debugdata` that is read: those of large libraries have some MiB.
const MAX_UNPACKED: u64 = 64 << 20;
/// Memory that unpacking may take, in KiB.
const MAX_UNPACKING: u32 = 128 << 10;

type Elf<'f> = ElfFile64<'f, LittleEndian>;

/// The functions that the file of an image names.
#[derive(Debug, Default)]
pub struct FileSymbols {
    /// Begin as linked, length in bytes and name, by begin.
    functions: Vec<(u64, u64, Box<str>)>,
}

impl FileSymbols {
    /// Reads them from the bytes of a file; empty when it is no ELF image or names none.
    #[must_use]
    pub fn read(file: &[u8]) -> Self {
        let Ok(elf) = Elf::parse(file) else {
            return Self::default();
        };
        let mut functions = functions(&elf);
        if let Some(unpacked) = debug_data(&elf)
            && let Ok(elf) = Elf::parse(unpacked.as_slice())
        {
            functions.extend(self::functions(&elf));
        }
        functions.truncate(MAX_FUNCTIONS);
        functions.sort_unstable();
        Self { functions }
    }

    /// The function that has the code at an address of the image as it was linked: its begin there, and its name, C++
    /// ones without their parameters.
    #[must_use]
    pub fn function(&self, linked: u64) -> Option<(u64, String)> {
        let behind = self.functions.partition_point(|(b, ..)| *b <= linked);
        let (begin, len, name) = self.functions.get(behind.checked_sub(1)?)?;
        let is_inside = linked.checked_sub(*begin)? < *len;
        is_inside.then(|| (*begin, readable(name)))
    }
}

fn functions(elf: &Elf<'_>) -> Vec<(u64, u64, Box<str>)> {
    let defined = elf
        .symbols()
        .filter(|s| s.is_definition() && s.kind() == SymbolKind::Text && s.size() > 0);
    let named = defined.filter_map(|s| {
        let name = s
            .name()
            .ok()
            .filter(|n| !n.is_empty() && n.len() <= MAX_NAME)?;
        Some((s.address(), s.size(), name.into()))
    });
    named.take(MAX_FUNCTIONS).collect()
}

fn debug_data(elf: &Elf<'_>) -> Option<Vec<u8>> {
    let packed = elf.section_by_name(".gnu_debugdata")?.data().ok()?;
    let mut unpacked = Vec::new();
    XzReader::new_mem_limit(packed, false, MAX_UNPACKING)
        .take(MAX_UNPACKED)
        .read_to_end(&mut unpacked)
        .ok()?;
    Some(unpacked)
}

fn readable(name: &str) -> String {
    let options = cpp_demangle::DemangleOptions::new()
        .no_params()
        .no_return_type();
    let symbol = cpp_demangle::Symbol::new(name).ok();
    symbol
        .and_then(|s| s.demangle_with_options(&options).ok())
        .unwrap_or_else(|| name.to_owned())
}

/// The files are libraries of one C++ source, with two functions of its own that `entry` calls, `hidden(int)` and
/// `shop::Till::count(int)`: one as linked, one stripped, with its symbols packed as Fedora does it.
#[cfg(test)]
mod tests {
    use super::*;

    const LINKED: &[u8] = include_bytes!("../../tests/data/symbols.so");
    const STRIPPED: &[u8] = include_bytes!("../../tests/data/symbols-packed.so");

    #[test]
    fn functions_that_are_not_exported_have_names() {
        for file in [LINKED, STRIPPED] {
            let symbols = FileSymbols::read(file);
            let name = |at| symbols.function(at);
            assert_eq!(name(0x1ca), Some((0x1ca, "hidden".into())));
            assert_eq!(name(0x1d2), Some((0x1ce, "shop::Till::count".into())));
            assert_eq!(name(0x1d5), Some((0x1d3, "entry".into())));
            assert_eq!(name(0x1c9), None);
            assert_eq!(name(0x1000), None);
        }
    }

    #[test]
    fn damaged_files_name_nothing_wrong() {
        for file in [LINKED, STRIPPED] {
            for at in 0..file.len() {
                let mut bytes = file.to_vec();
                bytes[at] ^= 0xff;
                let _ = FileSymbols::read(&bytes).function(0x1d2);
                let _ = FileSymbols::read(&file[..at]).function(0x1d2);
            }
        }
    }
}
