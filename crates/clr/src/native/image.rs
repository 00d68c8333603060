//! A native image of the process: where it stands, and what its functions are called.

use asynctriage_dump::{Addr, Dump, HostFile, MappedFile, Memory, Os};
use asynctriage_image::elf::{ElfImage, FileSymbols};
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
    /// Its file, when one of this machine is in use.
    file: Option<HostFile>,
    /// Functions that only the file names.
    of_file: OnceLock<FileSymbols>,
}

#[derive(Debug)]
pub(super) enum Format {
    Elf(ElfImage),
    Pe(PeImage),
}

impl Image {
    pub(super) fn read(dump: &Dump, file: &MappedFile) -> Option<Self> {
        let memory: &dyn Memory = &dump.memory;
        let format = match dump.target.os {
            Os::Linux => Format::Elf(ElfImage::parse(memory, file.start).ok()?),
            Os::Windows => Format::Pe(PeImage::parse(memory, file.start, PeLayout::Loaded).ok()?),
        };
        let name = file.file_name().trim_end_matches(" (deleted)").to_owned();
        let used = dump.completion.used.iter().find(|u| u.module == file.path);
        Some(Self {
            format,
            name,
            functions: OnceLock::new(),
            file: used.map(|u| u.contents.clone()),
            of_file: OnceLock::new(),
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
        let exported = || self.exported_function(memory, at, ip);
        self.function_of_file(at, ip).or_else(exported)
    }

    fn exported_function(&self, memory: &dyn Memory, at: Addr, ip: Addr) -> Option<(String, u64)> {
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

    /// The same, by what the file of the image names besides exports.
    fn function_of_file(&self, at: Addr, ip: Addr) -> Option<(String, u64)> {
        let Format::Elf(elf) = &self.format else {
            return None;
        };
        let file = self.file.as_ref()?;
        let symbols = self.of_file.get_or_init(|| FileSymbols::read(file));
        let (begin, name) = symbols.function(at.0.wrapping_sub(elf.bias))?;
        Some((name, ip.since(Addr(begin) + elf.bias)?))
    }
}

/// What the function table of a PE image says of an address; `None` when the dump lacks the table.
pub(super) fn covering(memory: &dyn Memory, pe: &PeImage, at: Addr) -> Option<Covering> {
    let rva = u32::try_from(at.since(pe.base)?).ok()?;
    pe.functions()?.covering(memory, rva)
}
