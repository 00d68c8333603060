//! PE images: managed assemblies on every system, and the runtime itself on Windows.
//!
//! Only the header is given to the PE library; everything behind it is read from the memory of the process piece by
//! piece, because pages between the pieces may be missing from the dump.

mod debug;
mod export;
mod functions;
#[cfg(test)]
pub(crate) mod tests;

use crate::ImageError;
use crate::bytes::prefix;
use asynctriage_dump::{Addr, Memory};
use goblin::pe::data_directories::DataDirectory;
use goblin::pe::header::{
    DOS_MAGIC, Header, PE_MAGIC, PE_POINTER_OFFSET, SIZEOF_COFF_HEADER, SIZEOF_PE_MAGIC,
};
use goblin::pe::section_table::SectionTable;

pub use debug::CodeView;
pub use functions::{Covering, Function, FunctionTable};

/// Most bytes of the header that are looked at: one page, all that a reduced dump holds. Assemblies of .NET use 512.
const MAX_HEADER: u64 = 4096;
/// `IMAGE_SCN_MEM_WRITE`.
const WRITABLE: u32 = 0x8000_0000;
/// `IMAGE_SCN_MEM_EXECUTE`.
const EXECUTABLE: u32 = 0x2000_0000;

/// How the image stands in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PeLayout {
    /// As a loader maps it: every section at its own distance from the base.
    Loaded,
    /// As in the file: IL-only assemblies, assemblies loaded from bytes, bundles of single-file applications.
    Flat,
}

/// A range of an image, relative to its load address.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RvaRange {
    /// Distance of the first byte from the base of the loaded image.
    pub rva: u32,
    /// Length in bytes.
    pub size: u32,
}

impl RvaRange {
    /// `None` when the field that held it was left zero.
    #[must_use]
    pub fn non_empty(self) -> Option<Self> {
        (self.rva != 0 && self.size != 0).then_some(self)
    }
}

/// A section of the image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Section {
    /// Its name without the padding, such as `.text`.
    pub name: String,
    /// Where it belongs in the loaded image. The size is that in memory.
    pub range: RvaRange,
    /// Where it begins in the file.
    pub file_offset: u32,
    /// Bytes in the file; the rest of `range` is zero.
    pub file_size: u32,
    /// Whether the process could write to it.
    pub writable: bool,
    /// Whether the process could execute it.
    pub executable: bool,
}

/// The header that makes an image a managed assembly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CliHeader {
    /// ECMA-335 metadata.
    pub metadata: RvaRange,
    /// `COMIMAGE_FLAGS_*`; bit 0 says that there is nothing but IL, bit 2 that there is ReadyToRun code.
    pub flags: u32,
    /// Token of the entry method, 0 for libraries.
    pub entry_point: u32,
    /// Header of the ReadyToRun code (`RTR`), when the assembly was compiled ahead of time.
    pub managed_native_header: Option<RvaRange>,
}

/// A PE image in the memory of the process.
#[derive(Clone, Debug)]
pub struct PeImage {
    /// Address of its first byte.
    pub base: Addr,
    /// How it stands in memory.
    pub layout: PeLayout,
    /// Time stamp of the header, or the hash that deterministic builds put there.
    pub time_date_stamp: u32,
    /// Address that the image was linked for: pointers in the file assume it.
    pub preferred_base: u64,
    /// Bytes that the loaded image takes.
    pub size_of_image: u32,
    /// `IMAGE_FILE_MACHINE_*`; ReadyToRun images for Unix carry it with the bits of their system flipped.
    pub machine: u16,
    /// What the header says of all code together; compilers that make one section of code put all of it there.
    pub code: RvaRange,
    /// The sections in the order of the header; none of a loaded image when the dump lacks the list.
    pub sections: Vec<Section>,
    /// Present for managed assemblies whose CLI header the dump holds.
    pub cli: Option<CliHeader>,
    header_size: u32,
    exports: RvaRange,
    exceptions: RvaRange,
    debug: RvaRange,
    relocations: RvaRange,
}

impl PeImage {
    /// Reads the image whose first byte is at `base`.
    ///
    /// # Errors
    /// When the header is not in the dump, is longer than a page, or is not that of a PE32 or PE32+ image.
    pub fn parse(memory: &dyn Memory, base: Addr, layout: PeLayout) -> Result<Self, ImageError> {
        let malformed =
            |what: &dyn std::fmt::Display| ImageError::Malformed(base, what.to_string());
        let nt = &nt_headers(memory, base)?;
        // from the PE signature on: the DOS stub before it holds nothing of use and much that can be malformed
        let header = Header::parse_without_dos(nt).map_err(|e| malformed(&e))?;
        let optional = header
            .optional_header
            .ok_or_else(|| malformed(&"no optional header"))?;
        let mut table = SIZEOF_PE_MAGIC
            .saturating_add(SIZEOF_COFF_HEADER)
            .saturating_add(header.coff_header.size_of_optional_header.into());
        let sections = match header.coff_header.sections(nt, &mut table) {
            Ok(sections) => sections,
            // reduced minidumps end before the list; in a loaded image every address is known without it
            Err(_) if layout == PeLayout::Loaded => Vec::new(),
            Err(e) => return Err(malformed(&e)),
        };
        let directories = &optional.data_directories;
        let mut image = Self {
            base,
            layout,
            time_date_stamp: header.coff_header.time_date_stamp,
            preferred_base: optional.windows_fields.image_base,
            size_of_image: optional.windows_fields.size_of_image,
            machine: header.coff_header.machine,
            code: RvaRange {
                rva: u32::try_from(optional.standard_fields.base_of_code).unwrap_or(0),
                size: u32::try_from(optional.standard_fields.size_of_code).unwrap_or(0),
            },
            sections: sections.iter().map(section).collect(),
            cli: None,
            header_size: optional.windows_fields.size_of_headers,
            exports: range(directories.get_export_table()),
            exceptions: range(directories.get_exception_table()),
            debug: range(directories.get_debug_table()),
            relocations: range(directories.get_base_relocation_table()),
        };
        image.cli = range(directories.get_clr_runtime_header())
            .non_empty()
            .and_then(|r| image.cli_header(memory, r));
        Ok(image)
    }

    /// Where the byte that belongs at `rva` of the loaded image is; `None` when the image has no such byte, or when it is
    /// one of the zeros that only loading adds.
    #[must_use]
    pub fn rva_to_addr(&self, rva: u32) -> Option<Addr> {
        if self.layout == PeLayout::Loaded {
            return (rva < self.size_of_image).then(|| self.base + u64::from(rva));
        }
        let in_section = self.sections.iter().find_map(|s| {
            let at = rva
                .checked_sub(s.range.rva)
                .filter(|at| *at < s.file_size)?;
            Some(u64::from(s.file_offset).saturating_add(at.into()))
        });
        let in_header = (rva < self.header_size).then_some(u64::from(rva));
        in_section.or(in_header).map(|offset| self.base + offset)
    }

    /// Bytes of the headers, in the file and in memory.
    #[must_use]
    pub fn header_size(&self) -> u32 {
        self.header_size
    }

    /// The address that the image was linked for.
    #[must_use]
    pub fn preferred_base(&self) -> u64 {
        self.preferred_base
    }

    /// The list of the addresses inside the image; `None` when there are none.
    #[must_use]
    pub fn relocations(&self) -> Option<RvaRange> {
        self.relocations.non_empty()
    }

    /// Where the ECMA-335 metadata is, with its length in bytes; `None` for native images. The dump may lack it.
    #[must_use]
    pub fn metadata(&self) -> Option<(Addr, u32)> {
        let range = self.cli?.metadata.non_empty()?;
        Some((self.rva_to_addr(range.rva)?, range.size))
    }

    /// The record that ties the image to its symbol file.
    #[must_use]
    pub fn code_view(&self, memory: &dyn Memory) -> Option<CodeView> {
        debug::code_view(self, memory)
    }

    /// The address of an exported function or variable; `None` when there is none of that name, when the name stands
    /// for an export of another image, or when the dump lacks the tables.
    #[must_use]
    pub fn export(&self, memory: &dyn Memory, name: &str) -> Option<Addr> {
        export::find(self, memory, name)
    }

    /// The exported functions by address: begin, length in bytes and where the name stands. Functions that no entry of the
    /// function table begins with are short ones that call nothing.
    #[must_use]
    pub fn named_functions(&self, memory: &dyn Memory) -> Vec<(Addr, u64, Addr)> {
        export::functions(self, memory)
    }

    /// The table of the functions; `None` when the image has none, and of other processors than x64.
    #[must_use]
    pub fn functions(&self) -> Option<FunctionTable> {
        FunctionTable::of(self)
    }

    /// Whether code can stand at an address: it lies in the image, and in a section that can be executed as far as the
    /// dump tells.
    #[must_use]
    pub fn may_execute(&self, at: Addr) -> bool {
        let rva = at.since(self.base).and_then(|d| u32::try_from(d).ok());
        let Some(rva) = rva.filter(|r| *r < self.size_of_image) else {
            return false;
        };
        let inside = |s: &Section| {
            rva.checked_sub(s.range.rva)
                .is_some_and(|d| d < s.range.size)
        };
        let mut sections = self.sections.iter();
        self.sections.is_empty() || sections.any(|s| s.executable && inside(s))
    }

    /// Where the sections are that the process could write to, with the bytes that stand there.
    pub fn writable_sections(&self) -> impl Iterator<Item = (Addr, u64)> {
        let sections = self.sections.iter().filter(|s| s.writable);
        let len = |s: &Section| {
            if self.layout == PeLayout::Flat {
                s.range.size.min(s.file_size)
            } else {
                s.range.size
            }
        };
        sections.filter_map(move |s| Some((self.rva_to_addr(s.range.rva)?, u64::from(len(s)))))
    }

    fn cli_header(&self, memory: &dyn Memory, at: RvaRange) -> Option<CliHeader> {
        let start = self.rva_to_addr(at.rva)?;
        let range = |offset: u64| {
            Some(RvaRange {
                rva: memory.u32(start + offset)?,
                size: memory.u32(start + offset + 4)?,
            })
        };
        Some(CliHeader {
            metadata: range(8)?,
            flags: memory.u32(start + 16)?,
            entry_point: memory.u32(start + 20)?,
            managed_native_header: range(64)?.non_empty(),
        })
    }
}

/// The header from the PE signature on. Minidumps may lack what stands between it and the DOS header.
fn nt_headers(memory: &dyn Memory, base: Addr) -> Result<Vec<u8>, ImageError> {
    let wrong = || ImageError::WrongMagic(base, "PE");
    let magic = memory.u16(base).ok_or(ImageError::NotDumped(base))?;
    if magic != DOS_MAGIC {
        return Err(wrong());
    }
    let pointer = memory
        .u32(base + u64::from(PE_POINTER_OFFSET))
        .ok_or(ImageError::NotDumped(base))?;
    let len = MAX_HEADER.checked_sub(pointer.into()).ok_or_else(wrong)?;
    let nt = prefix(memory, base + u64::from(pointer), len);
    let magic = nt.first_chunk().ok_or(ImageError::NotDumped(base))?;
    if u32::from_le_bytes(*magic) == PE_MAGIC {
        Ok(nt)
    } else {
        Err(wrong())
    }
}

fn range(directory: Option<&DataDirectory>) -> RvaRange {
    directory
        .map(|d| RvaRange {
            rva: d.virtual_address,
            size: d.size,
        })
        .unwrap_or_default()
}

fn section(table: &SectionTable) -> Section {
    let name = table.name.split(|b| *b == 0).next().unwrap_or_default();
    Section {
        name: String::from_utf8_lossy(name).into_owned(),
        range: RvaRange {
            rva: table.virtual_address,
            size: table.virtual_size,
        },
        file_offset: table.pointer_to_raw_data,
        file_size: table.size_of_raw_data,
        writable: table.characteristics & WRITABLE != 0,
        executable: table.characteristics & EXECUTABLE != 0,
    }
}
