//! A native image of the process: where it stands, and what its functions are called.

use asynctriage_dump::{Addr, MappedFile, Memory, Os};
use asynctriage_image::elf::ElfImage;
use asynctriage_image::pe::{Covering, PeImage, PeLayout};
use std::sync::OnceLock;

/// Longest name of a function.
const MAX_NAME: u64 = 512;

/// An image that the system loaded.
#[derive(Debug)]
pub(super) struct Image {
    pub(super) format: Format,
    /// Last part of its path.
    pub(super) name: String,
    /// Exported functions: begin, length and name.
    functions: OnceLock<Vec<(Addr, u64, Addr)>>,
}

#[derive(Debug)]
pub(super) enum Format {
    Elf(ElfImage),
    Pe(PeImage),
}

impl Image {
    pub(super) fn read(memory: &dyn Memory, os: Os, file: &MappedFile) -> Option<Self> {
        let format = match os {
            Os::Linux => Format::Elf(ElfImage::parse(memory, file.start).ok()?),
            Os::Windows => Format::Pe(PeImage::parse(memory, file.start, PeLayout::Loaded).ok()?),
        };
        let name = file.file_name().trim_end_matches(" (deleted)").to_owned();
        Some(Self {
            format,
            name,
            functions: OnceLock::new(),
        })
    }

    pub(super) fn base(&self) -> Addr {
        match &self.format {
            Format::Elf(elf) => elf.base,
            Format::Pe(pe) => pe.base,
        }
    }

    pub(super) fn end(&self) -> Addr {
        match &self.format {
            Format::Elf(elf) => elf.base + elf.size(),
            Format::Pe(pe) => pe.base + u64::from(pe.size_of_image),
        }
    }

    /// Whether code of the image can stand at an address.
    pub(super) fn may_execute(&self, ip: Addr) -> bool {
        match &self.format {
            Format::Elf(elf) => elf.segments.iter().any(|s| s.contains(ip)),
            Format::Pe(pe) => pe.may_execute(ip),
        }
    }

    /// The function that has the instruction at `at`, by name, and how far `ip` lies behind its begin.
    pub(super) fn function(
        &self,
        memory: &dyn Memory,
        at: Addr,
        ip: Addr,
    ) -> Option<(String, u64)> {
        let read = || match &self.format {
            Format::Elf(elf) => elf.functions(memory),
            Format::Pe(pe) => pe.named_functions(memory),
        };
        let all = self.functions.get_or_init(read);
        let behind = all.partition_point(|(start, _, _)| *start <= at);
        let (start, len, name) = all.get(behind.checked_sub(1)?)?;
        let inside = at.since(*start).is_some_and(|d| d < *len);
        inside.then_some((memory.c_str(*name, MAX_NAME)?, ip.since(*start)?))
    }
}

/// What the function table of a PE image says of an address; `None` when the dump lacks the table.
pub(super) fn covering(memory: &dyn Memory, pe: &PeImage, at: Addr) -> Option<Covering> {
    let rva = u32::try_from(at.since(pe.base)?).ok()?;
    pe.functions()?.covering(memory, rva)
}
