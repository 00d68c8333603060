//! ELF images as a Unix loader mapped them.

mod of_file;
mod symbols;
#[cfg(test)]
pub(crate) mod tests;

use crate::ImageError;
use crate::bytes::pod;
use asynctriage_dump::{Addr, Memory};
use object::LittleEndian as Le;
use object::elf;
use object::read::elf::NoteIterator;

pub use of_file::FileSymbols;

/// Most program headers that are looked at; libcoreclr.so has 11, the executables with the most have some 30.
const MAX_SEGMENTS: u16 = 256;
/// Longest note segment that is looked at; the ones of libcoreclr.so are below 100 bytes.
const MAX_NOTES: u64 = 64 << 10;

/// A part of the image that the loader mapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Where it begins in the process.
    pub addr: Addr,
    /// Bytes that came from the file.
    pub file_size: u64,
    /// Bytes in memory; those past `file_size` began as zeros.
    pub mem_size: u64,
    /// `PF_R` (4), `PF_W` (2), `PF_X` (1).
    pub flags: u32,
    /// Where it begins in the file of the image.
    pub file_offset: u64,
}

impl Segment {
    /// Whether the process could write to it.
    #[must_use]
    pub fn is_writable(&self) -> bool {
        self.flags & elf::PF_W.0 != 0
    }

    /// Whether it holds code.
    #[must_use]
    pub fn is_executable(&self) -> bool {
        self.flags & elf::PF_X.0 != 0
    }

    /// Whether `addr` lies in it.
    #[must_use]
    pub fn contains(&self, addr: Addr) -> bool {
        addr.since(self.addr).is_some_and(|at| at < self.mem_size)
    }
}

/// An ELF image in the memory of the process.
#[derive(Clone, Debug)]
pub struct ElfImage {
    /// Where the first byte of the file is mapped.
    pub base: Addr,
    /// What the loader added to every address that the linker wrote; wraps for images linked above where they landed.
    pub bias: u64,
    /// `e_machine`: 62 for x64, 183 for arm64.
    pub machine: u16,
    /// The mapped parts, in the order of the headers; never empty.
    pub segments: Vec<Segment>,
    /// Table of the frame unwinder (`PT_GNU_EH_FRAME`), with its length in bytes.
    pub eh_frame_hdr: Option<(Addr, u64)>,
    notes: Vec<(Addr, u64, u64)>,
    dynamic: Option<(Addr, u64)>,
}

impl ElfImage {
    /// Reads the image whose first byte is mapped at `base`.
    ///
    /// # Errors
    /// When the headers are not in the dump, or are not those of a 64-bit little-endian image with mapped parts.
    pub fn parse(memory: &dyn Memory, base: Addr) -> Result<Self, ImageError> {
        let header: elf::FileHeader64<Le> = pod(memory, base).ok_or(ImageError::NotDumped(base))?;
        let ident = header.e_ident;
        if ident.magic != elf::ELFMAG {
            return Err(ImageError::WrongMagic(base, "ELF"));
        }
        if ident.class != elf::ELFCLASS64 || ident.data != elf::ELFDATA2LSB {
            return Err(ImageError::Unsupported(base));
        }
        let headers = program_headers(memory, base, &header)?;
        let loads = || headers.iter().filter(|h| h.p_type.get(Le) == elf::PT_LOAD);
        // the header of the file is mapped by the part with the lowest file offset, so that one says where `base` was linked
        let first = loads()
            .min_by_key(|h| h.p_offset.get(Le))
            .ok_or_else(|| ImageError::Malformed(base, "nothing of it is mapped".into()))?;
        let linked_base = first.p_vaddr.get(Le).wrapping_sub(first.p_offset.get(Le));
        let bias = base.0.wrapping_sub(linked_base);
        let range = |h: &Header| (Addr(h.p_vaddr.get(Le)) + bias, h.p_memsz.get(Le));
        let find = |wanted| {
            headers
                .iter()
                .find(|h| h.p_type.get(Le) == wanted)
                .map(range)
        };
        let notes = headers.iter().filter(|h| h.p_type.get(Le) == elf::PT_NOTE);
        Ok(Self {
            base,
            bias,
            machine: header.e_machine.get(Le).0,
            segments: loads().map(|h| segment(h, bias)).collect(),
            eh_frame_hdr: find(elf::PT_GNU_EH_FRAME),
            notes: notes
                .map(|h| {
                    (
                        Addr(h.p_vaddr.get(Le)) + bias,
                        h.p_filesz.get(Le),
                        h.p_align.get(Le),
                    )
                })
                .collect(),
            dynamic: find(elf::PT_DYNAMIC),
        })
    }

    /// Where the exported symbol `name` is; `None` when the image does not define it or the dump lacks the tables.
    ///
    /// Reads what a debugger that wrote the dump has read for the same question, so that it also works in dumps that
    /// hold only the touched pages of the tables (createdump, 8.0 to 11.0).
    #[must_use]
    pub fn symbol(&self, memory: &dyn Memory, name: &str) -> Option<Addr> {
        let (addr, len) = self.dynamic?;
        symbols::Tables::read(memory, addr, len, self.base, self.bias)?.find(memory, name)
    }

    /// The exported functions, by address: begin, length in bytes, and where the name stands. Those whose part of the
    /// table is not in the dump are left out.
    #[must_use]
    pub fn functions(&self, memory: &dyn Memory) -> Vec<(Addr, u64, Addr)> {
        let tables = self
            .dynamic
            .and_then(|(addr, len)| symbols::Tables::read(memory, addr, len, self.base, self.bias));
        tables.map(|t| t.functions(memory)).unwrap_or_default()
    }

    /// The build identifier that the linker left in a note: 20 bytes in Microsoft's builds.
    #[must_use]
    pub fn build_id(&self, memory: &dyn Memory) -> Option<Vec<u8>> {
        self.notes.iter().find_map(|&(addr, len, align)| {
            build_id_in(&memory.bytes(addr, len, MAX_NOTES)?, align)
        })
    }

    /// The mapped parts that hold variables.
    pub fn writable_segments(&self) -> impl Iterator<Item = &Segment> {
        self.segments.iter().filter(|s| s.is_writable())
    }

    /// Bytes of the file up to the end of the last mapped part; what a file holds behind them is none of the loader's.
    #[must_use]
    pub fn file_size(&self) -> u64 {
        let parts = self.segments.iter();
        let ends = parts.map(|s| s.file_offset.saturating_add(s.file_size));
        ends.max().unwrap_or(0)
    }

    /// Bytes from [`ElfImage::base`] to the end of the highest mapped part.
    #[must_use]
    pub fn size(&self) -> u64 {
        let ends = self
            .segments
            .iter()
            .filter_map(|s| s.addr.since(self.base)?.checked_add(s.mem_size));
        ends.max().unwrap_or(0)
    }
}

type Header = elf::ProgramHeader64<Le>;

fn program_headers(
    memory: &dyn Memory,
    base: Addr,
    header: &elf::FileHeader64<Le>,
) -> Result<Vec<Header>, ImageError> {
    let count = header.e_phnum.get(Le);
    if usize::from(header.e_phentsize.get(Le)) != size_of::<Header>() || count > MAX_SEGMENTS {
        return Err(ImageError::Malformed(
            base,
            format!(
                "{count} program headers of {} bytes",
                header.e_phentsize.get(Le)
            ),
        ));
    }
    let table = base + header.e_phoff.get(Le);
    let at = |index| table.element(index, size_of::<Header>() as u64);
    (0..u64::from(count))
        .map(|i| pod(memory, at(i)).ok_or(ImageError::NotDumped(at(i))))
        .collect()
}

fn segment(header: &Header, bias: u64) -> Segment {
    Segment {
        addr: Addr(header.p_vaddr.get(Le)) + bias,
        file_size: header.p_filesz.get(Le),
        mem_size: header.p_memsz.get(Le),
        flags: header.p_flags.get(Le).0,
        file_offset: header.p_offset.get(Le),
    }
}

fn build_id_in(bytes: &[u8], align: u64) -> Option<Vec<u8>> {
    let mut notes = NoteIterator::<elf::FileHeader64<Le>>::new(Le, align, bytes).ok()?;
    while let Ok(Some(note)) = notes.next() {
        if note.name() == elf::ELF_NOTE_GNU && note.n_type(Le) == elf::NT_GNU_BUILD_ID {
            return Some(note.desc().to_vec());
        }
    }
    None
}
