//! A smaller dump that holds only what was read.

mod minidump;

use std::io::{self, Write};
use std::ops::Range;

use object::elf::{
    PN_XNUM, PT_LOAD, PT_NOTE, ProgramFlags, ProgramType, SHT_NULL, SectionHeader64,
};
use object::pod::bytes_of;
use object::{LittleEndian, U16, U32, U64};

use crate::elf::{Core, Extent, Header, LE, ProgramHeader, note_ranges};
use crate::record::{PAGE, Recorder};
use crate::{Container, Dump, OpenError};

/// Why a dump cannot be trimmed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TrimError {
    /// It is not known what was read.
    #[error("the dump was opened without recording what is read")]
    NotRecorded,
    /// Of minidumps only those with a list of 64-bit ranges, full ones, can be trimmed.
    #[error(
        "the minidump has no list of 64-bit ranges, as full ones have: only those can be trimmed"
    )]
    NoList,
    /// The headers would be larger than any use of the result.
    #[error("the trimmed dump would need more than {MAX_HEADERS} regions")]
    TooManyRegions,
    /// The headers of the dump cannot be read again.
    #[error(transparent)]
    Headers(#[from] OpenError),
    /// The result cannot be written.
    #[error("cannot write the trimmed dump: {0}")]
    Write(#[from] io::Error),
}

/// Most segments of a trimmed dump.
const MAX_HEADERS: usize = 1 << 22;

/// Writes a dump that holds the notes of `dump` whole, and of its memory only the pages read so far. Inside those, lines
/// of 64 bytes that were not read are blank, so that the result packs well: it answers the same questions, no others.
///
/// Everything else stays listed, as segments without bytes: reads there fail with
/// [`NotDumped`](crate::FaultReason::NotDumped), and with [`Truncated`](crate::FaultReason::Truncated) where the dump
/// itself was cut. Returns the size of the result in bytes.
///
/// # Errors
/// When the dump was opened without [`record_pages`](crate::OpenOptions::record_pages), or `out` fails.
pub fn trim(dump: &Dump, out: &mut dyn Write) -> Result<u64, TrimError> {
    let recorder = dump.memory.recorder().ok_or(TrimError::NotRecorded)?;
    let file = dump.memory.file();
    if dump.container == Container::Minidump {
        return minidump::write(file, recorder, &dump.memory.touched(), out);
    }
    let core = Core::parse(file)?;
    let notes: Vec<_> = note_ranges(&core, file)
        .into_iter()
        .filter_map(|n| file.get(n))
        .collect();
    let kept = dump.memory.touched();
    let parts = parts(&core, &kept, dump.file_len)?;
    let plan = Plan::new(&notes, parts.len(), &kept);
    plan.write_headers(&core, &parts, out)?;
    plan.write_bytes(file, recorder, out)?;
    Ok(plan.end)
}

/// A segment of the result.
#[derive(Clone, Copy, Debug)]
struct Part {
    start: u64,
    size: u64,
    flags: ProgramFlags,
    bytes: Source,
}

/// Where the bytes of a segment are.
#[derive(Clone, Copy, Debug)]
enum Source {
    /// From this position of the old file on.
    Old(u64),
    /// Left out.
    None,
    /// Past the end of the old file, and of the new one.
    Lost,
}

/// Cuts the segments of `core` into kept and dropped parts.
fn parts(core: &Core<'_>, kept: &[Range<u64>], file_len: u64) -> Result<Vec<Part>, TrimError> {
    let mut out = Vec::new();
    for header in core.headers.iter().filter(|h| h.p_type.get(LE) == PT_LOAD) {
        Cutter {
            extent: Extent::new(header, file_len),
            flags: header.p_flags.get(LE),
            out: &mut out,
        }
        .cut(kept)?;
    }
    Ok(out)
}

/// Cuts one segment.
struct Cutter<'a> {
    extent: Extent,
    flags: ProgramFlags,
    out: &'a mut Vec<Part>,
}

impl Cutter<'_> {
    fn cut(mut self, kept: &[Range<u64>]) -> Result<(), TrimError> {
        let Extent {
            offset,
            dumped,
            filed,
            size,
            ..
        } = self.extent;
        let end = offset.saturating_add(dumped);
        let first = kept.partition_point(|k| k.end <= offset);
        let mut at = 0;
        for part in kept
            .get(first..)
            .unwrap_or_default()
            .iter()
            .take_while(|k| k.start < end)
        {
            let from = part.start.max(offset);
            let (skip, stop) = (
                from.saturating_sub(offset),
                part.end.min(end).saturating_sub(offset),
            );
            self.push(at, skip, Source::None)?;
            self.push(skip, stop, Source::Old(from))?;
            at = stop;
        }
        self.push(at, dumped, Source::None)?;
        self.push(dumped, filed, Source::Lost)?;
        self.push(filed, size, Source::None)
    }

    /// Adds the bytes `from..to` of the segment, unless there are none.
    fn push(&mut self, from: u64, to: u64, bytes: Source) -> Result<(), TrimError> {
        let Some(size) = to.checked_sub(from).filter(|s| *s > 0) else {
            return Ok(());
        };
        if self.out.len() >= MAX_HEADERS {
            return Err(TrimError::TooManyRegions);
        }
        self.out.push(Part {
            start: self.extent.start.saturating_add(from),
            size,
            flags: self.flags,
            bytes,
        });
        Ok(())
    }
}

/// Where everything goes in the new file: header, the count of segments when it needs room of its own, segment list,
/// notes, and from a page boundary on the kept parts of the old file in their old order, each once.
struct Plan<'a> {
    /// Number of segments.
    headers: u64,
    /// The note segments.
    notes: &'a [&'a [u8]],
    notes_at: u64,
    data_at: u64,
    /// The kept parts of the old file.
    kept: &'a [Range<u64>],
    /// For each of them, its distance from `data_at`.
    moved: Vec<u64>,
    end: u64,
}

const HEADER: u64 = size_of::<Header>() as u64;
const SECTION: u64 = size_of::<SectionHeader64<LittleEndian>>() as u64;
const SEGMENT: u64 = size_of::<ProgramHeader>() as u64;

impl<'a> Plan<'a> {
    fn new(notes: &'a [&'a [u8]], parts: usize, kept: &'a [Range<u64>]) -> Self {
        let headers = (parts as u64).saturating_add(notes.len() as u64);
        let notes_at = list_at(headers).saturating_add(headers.saturating_mul(SEGMENT));
        let notes_len = notes.iter().map(|n| padded(n)).fold(0, u64::saturating_add);
        let data_at = round_up(notes_at.saturating_add(notes_len), PAGE);
        let mut at = 0_u64;
        let mut moved = Vec::with_capacity(kept.len());
        for part in kept {
            moved.push(at);
            at = at.saturating_add(part.end.saturating_sub(part.start));
        }
        Self {
            headers,
            notes,
            notes_at,
            data_at,
            kept,
            moved,
            end: data_at.saturating_add(at),
        }
    }

    /// Where `offset` of the old file, which is kept, stands in the new one.
    fn new_offset(&self, offset: u64) -> u64 {
        let index = self.kept.partition_point(|k| k.end <= offset);
        let start = self.kept.get(index).map_or(offset, |k| k.start);
        let moved = self.moved.get(index).copied().unwrap_or_default();
        self.data_at
            .saturating_add(moved)
            .saturating_add(offset.saturating_sub(start))
    }

    fn write_headers(
        &self,
        core: &Core<'_>,
        parts: &[Part],
        out: &mut dyn Write,
    ) -> io::Result<()> {
        let (header, section) = self.file_header(core.header);
        out.write_all(bytes_of(&header))?;
        if let Some(section) = &section {
            out.write_all(bytes_of(section))?;
        }
        let mut at = self.notes_at;
        for note in self.notes {
            let len = note.len() as u64;
            out.write_all(bytes_of(&segment(
                PT_NOTE,
                ProgramFlags::default(),
                at,
                0,
                len,
                0,
            )))?;
            at = at.saturating_add(padded(note));
        }
        for part in parts {
            let (offset, filed) = match part.bytes {
                Source::Old(offset) => (self.new_offset(offset), part.size),
                Source::Lost => (self.end, part.size),
                Source::None => (self.end, 0),
            };
            let segment = segment(PT_LOAD, part.flags, offset, part.start, filed, part.size);
            out.write_all(bytes_of(&segment))?;
        }
        Ok(())
    }

    /// The old file's header with its lists moved. Many segments are counted in createdump's way: in one section
    /// header right behind the file header.
    fn file_header(&self, old: &Header) -> (Header, Option<SectionHeader64<LittleEndian>>) {
        let counted = u16::try_from(self.headers).ok().filter(|n| *n < PN_XNUM);
        let mut header = *old;
        header.e_phoff = U64::new(LE, list_at(self.headers));
        header.e_phnum = U16::new(LE, counted.unwrap_or(PN_XNUM));
        header.e_shoff = U64::new(LE, if counted.is_none() { HEADER } else { 0 });
        header.e_shentsize = U16::new(LE, if counted.is_none() { SECTION as u16 } else { 0 });
        header.e_shnum = U16::new(LE, u16::from(counted.is_none()));
        header.e_shstrndx = U16::new(LE, Default::default());
        (
            header,
            counted.is_none().then(|| count_section(self.headers)),
        )
    }

    fn write_bytes(&self, file: &[u8], recorder: &Recorder, out: &mut dyn Write) -> io::Result<()> {
        let mut at = self.notes_at;
        for note in self.notes {
            out.write_all(note)?;
            pad(padded(note).saturating_sub(note.len() as u64), out)?;
            at = at.saturating_add(padded(note));
        }
        pad(self.data_at.saturating_sub(at), out)?;
        for part in self.kept {
            let range = usize::try_from(part.start)
                .ok()
                .zip(usize::try_from(part.end).ok());
            let bytes = range.and_then(|(from, to)| file.get(from..to));
            let mut bytes = bytes.unwrap_or_default().to_vec();
            recorder.blank_unread(part.start, &mut bytes);
            out.write_all(&bytes)?;
        }
        Ok(())
    }
}

/// Where the list of `count` segments begins.
fn list_at(count: u64) -> u64 {
    if count < u64::from(PN_XNUM) {
        HEADER
    } else {
        HEADER.saturating_add(SECTION)
    }
}

/// Room for a note segment: a multiple of 8 suits every reader.
fn padded(notes: &[u8]) -> u64 {
    round_up(notes.len() as u64, 8)
}

fn round_up(len: u64, to: u64) -> u64 {
    len.checked_next_multiple_of(to).unwrap_or(len)
}

/// Writes `len` zeros, at most a page.
fn pad(len: u64, out: &mut dyn Write) -> io::Result<()> {
    const ZEROS: [u8; PAGE as usize] = [0; PAGE as usize];
    out.write_all(
        ZEROS
            .get(..usize::try_from(len).unwrap_or(0))
            .unwrap_or_default(),
    )
}

fn segment(
    kind: ProgramType,
    flags: ProgramFlags,
    offset: u64,
    addr: u64,
    filed: u64,
    size: u64,
) -> ProgramHeader {
    ProgramHeader {
        p_type: U32::new(LE, kind),
        p_flags: U32::new(LE, flags),
        p_offset: U64::new(LE, offset),
        p_vaddr: U64::new(LE, addr),
        p_paddr: U64::new(LE, 0),
        p_filesz: U64::new(LE, filed),
        p_memsz: U64::new(LE, size),
        // parts may begin anywhere in a page when the old file was not laid out in pages, as gdb's are not
        p_align: U64::new(LE, 1),
    }
}

fn count_section(count: u64) -> SectionHeader64<LittleEndian> {
    SectionHeader64 {
        sh_name: U32::new(LE, 0),
        sh_type: U32::new(LE, SHT_NULL),
        sh_flags: U64::new(LE, Default::default()),
        sh_addr: U64::new(LE, 0),
        sh_offset: U64::new(LE, 0),
        sh_size: U64::new(LE, 1),
        sh_link: U32::new(LE, 0),
        sh_info: U32::new(LE, u32::try_from(count).unwrap_or(u32::MAX)),
        sh_addralign: U64::new(LE, 0),
        sh_entsize: U64::new(LE, 0),
    }
}
