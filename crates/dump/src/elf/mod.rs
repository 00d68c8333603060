//! ELF cores: header, segments, notes.

mod notes;
mod nt;
mod segments;

pub(crate) use notes::{Notes, Writer};
pub(crate) use segments::{Extent, Segments, note_ranges};

use object::LittleEndian;
use object::elf::{
    ELFCLASS64, ELFDATA2LSB, EM_AARCH64, EM_X86_64, ET_CORE, FileHeader64, ProgramHeader64,
};
use object::pod;
use object::read::elf::FileHeader;

use crate::{Arch, OpenError};

/// A file header as cores of supported machines have it.
pub(crate) type Header = FileHeader64<LittleEndian>;
/// An entry of the segment list.
pub(crate) type ProgramHeader = ProgramHeader64<LittleEndian>;
/// The one byte order.
pub(crate) const LE: LittleEndian = LittleEndian;

/// The fixed parts of a core.
#[derive(Debug)]
pub(crate) struct Core<'a> {
    pub(crate) header: &'a Header,
    pub(crate) arch: Arch,
    /// The segment list, as far as the file holds it.
    pub(crate) headers: &'a [ProgramHeader],
    /// Entries of the segment list that the file ends before.
    pub(crate) lost_headers: u64,
    /// Where the segment list ends in the file.
    pub(crate) lists_end: u64,
}

impl<'a> Core<'a> {
    /// Reads the headers of a core that [`crate::sniff`] recognised.
    pub(crate) fn parse(file: &'a [u8]) -> Result<Self, OpenError> {
        let header = file_header(file)?;
        let arch = match header.e_machine.get(LE) {
            EM_X86_64 => Arch::X64,
            EM_AARCH64 => Arch::Arm64,
            other => return Err(OpenError::Machine(other.0)),
        };
        let (headers, lost_headers) = program_headers(header, file)?;
        let len = size_of_val(headers) as u64;
        Ok(Self {
            header,
            arch,
            headers,
            lost_headers,
            lists_end: header.e_phoff.get(LE).saturating_add(len),
        })
    }
}

fn file_header(file: &[u8]) -> Result<&Header, OpenError> {
    let (header, _) =
        pod::from_bytes::<Header>(file).map_err(|()| damaged("the file ends inside its header"))?;
    let ident = &header.e_ident;
    if ident.class != ELFCLASS64 {
        return Err(OpenError::ThirtyTwoBit);
    }
    if ident.data != ELFDATA2LSB {
        return Err(OpenError::BigEndian);
    }
    if header.e_type.get(LE) != ET_CORE || !header.is_supported() {
        return Err(damaged("its header is not that of a core"));
    }
    Ok(header)
}

/// The segment list as far as the file goes, and how many entries are missing.
fn program_headers<'a>(
    header: &Header,
    file: &'a [u8],
) -> Result<(&'a [ProgramHeader], u64), OpenError> {
    if let Ok(all) = header.program_headers(LE, file) {
        return Ok((all, 0));
    }
    let size = size_of::<ProgramHeader>();
    if usize::from(header.e_phentsize.get(LE)) != size {
        return Err(damaged("its segment list has entries of a wrong size"));
    }
    let count = header
        .phnum(LE, file)
        .map_err(|e| damaged(&e.to_string()))?;
    let start = usize::try_from(header.e_phoff.get(LE)).unwrap_or(usize::MAX);
    let table = file
        .get(start..)
        .ok_or_else(|| damaged("the file ends before its segment list"))?;
    let there = table
        .len()
        .checked_div(size)
        .unwrap_or(0)
        .min(count as usize);
    let (headers, _) = pod::slice_from_bytes(table, there)
        .map_err(|()| damaged("its segment list is misplaced"))?;
    Ok((headers, u64::from(count).saturating_sub(there as u64)))
}

fn damaged(why: &str) -> OpenError {
    OpenError::Damaged(why.to_owned())
}
