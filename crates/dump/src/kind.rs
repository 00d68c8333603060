//! What kind of dump it is, told by what is in it.

use object::elf::{PF_W, PT_LOAD};
use object::pod;

use crate::elf::{Header, LE, Notes, ProgramHeader, Writer};
use crate::{Addr, AddressSpace, DumpKind, MappedFile, Memory, ProcessFacts};

/// Key of the program's entry point in the auxiliary vector.
const AT_ENTRY: u64 = 9;
/// Mappings of one file that are measured; 11 shows six, arm64 nine.
const MAX_MAPPINGS: usize = 64;
/// Segments of one image that are looked at.
const MAX_SEGMENTS: u16 = 64;
const PAGE: u64 = 4096;

/// The kind of a dump with these notes.
///
/// The kinds of createdump do not say what they are, so it is measured how much of the runtime's own image they
/// list. Runtime file, 8 to 11, x64, arm64 and musl: full 97 to 100 %, all other kinds 13 to 16 %. Its zeroed data
/// (`.bss`): heap 100 %, mini and triage 15 %. Listed bytes count even where the file is cut or trimmed.
///
/// Triage is told as mini: both have the same notes to the byte, the same stacks and the same share of the runtime's
/// image (10.0); they differ in the few pages that the debugger support touched while it wrote them.
pub(crate) fn measure(memory: &AddressSpace, notes: &Notes) -> DumpKind {
    match notes.writer() {
        Writer::Gdb => DumpKind::Gcore,
        Writer::Kernel => DumpKind::Kernel,
        Writer::Createdump => createdump(memory, &notes.files, &notes.process),
        Writer::Unknown => DumpKind::Unknown,
    }
}

fn createdump(memory: &AddressSpace, files: &[MappedFile], process: &ProcessFacts) -> DumpKind {
    let Some(image) = runtime(files, process) else {
        return DumpKind::Unknown;
    };
    match share_of_file(memory, files, image) {
        90.. => DumpKind::Full,
        0..60 => match share_of_bss(memory, image.start) {
            Some(95..) => DumpKind::Heap,
            Some(0..60) => DumpKind::Mini,
            _ => DumpKind::Unknown,
        },
        _ => DumpKind::Unknown,
    }
}

/// The first mapping of the runtime: where createdump says, else by name, else the program (single-file apps).
fn runtime<'a>(files: &'a [MappedFile], process: &ProcessFacts) -> Option<&'a MappedFile> {
    let at = |addr: Addr| files.iter().find(move |f| f.start <= addr && addr < f.end);
    let named = || {
        files
            .iter()
            .find(|f| f.file_offset == 0 && f.path.ends_with("/libcoreclr.so"))
    };
    let first_of = |file: &MappedFile| {
        files
            .iter()
            .find(|f| f.file_offset == 0 && f.path == file.path)
    };
    let program = || {
        process
            .auxiliary(AT_ENTRY)
            .and_then(|entry| at(Addr(entry)))
            .and_then(first_of)
    };
    process
        .runtime_base
        .and_then(at)
        .or_else(named)
        .or_else(program)
}

/// How much of the mappings of `image`'s file the dump lists, in percent.
fn share_of_file(memory: &AddressSpace, files: &[MappedFile], image: &MappedFile) -> u64 {
    let mappings = files
        .iter()
        .filter(|f| f.path == image.path)
        .take(MAX_MAPPINGS);
    let (mut listed, mut total) = (0_u64, 0_u64);
    for file in mappings {
        let len = file.end.since(file.start).unwrap_or(0);
        listed = listed.saturating_add(memory.listed(file.start, len));
        total = total.saturating_add(len);
    }
    percent(listed, total)
}

/// How much of the zeroed data of the image at `base` the dump lists, in percent; `None` when it has none.
fn share_of_bss(memory: &AddressSpace, base: Addr) -> Option<u64> {
    let segments = image_segments(memory, base)?;
    let lowest = segments.iter().map(|s| s.p_vaddr.get(LE)).min()?;
    let bias = base.back(lowest & !(PAGE - 1));
    let data = segments
        .iter()
        .rfind(|s| s.p_flags.get(LE).contains(PF_W) && s.p_memsz.get(LE) > s.p_filesz.get(LE))?;
    let start = bias + data.p_vaddr.get(LE);
    // whole pages: the first is shared with the initialised data
    let from = (start + data.p_filesz.get(LE) + (PAGE - 1)).without(PAGE - 1);
    let to = (start + data.p_memsz.get(LE)).without(PAGE - 1);
    let len = to.since(from).filter(|l| *l > 0)?;
    Some(percent(memory.listed(from, len), len))
}

/// The `PT_LOAD` entries of the image mapped at `base`; its first page is in every kind of dump.
fn image_segments(memory: &AddressSpace, base: Addr) -> Option<Vec<ProgramHeader>> {
    let header = memory.slice(base, size_of::<Header>() as u64)?;
    let (header, _) = pod::from_bytes::<Header>(header).ok()?;
    let count = header.e_phnum.get(LE).min(MAX_SEGMENTS);
    let len = u64::from(count).saturating_mul(size_of::<ProgramHeader>() as u64);
    let table = memory.slice(base + header.e_phoff.get(LE), len)?;
    let (all, _) = pod::slice_from_bytes::<ProgramHeader>(table, usize::from(count)).ok()?;
    Some(
        all.iter()
            .filter(|s| s.p_type.get(LE) == PT_LOAD)
            .copied()
            .collect(),
    )
}

/// `part` of `total`, rounded down; 0 of nothing.
fn percent(part: u64, total: u64) -> u64 {
    part.saturating_mul(100).checked_div(total).unwrap_or(0)
}
