//! The file: header, notes, segments.

use crate::space::Space;

const PAGE: usize = 4096;
/// Bytes of NT_PRSTATUS, and where the id and the registers stand in it.
const STATUS: usize = 336;
const STATUS_ID: usize = 32;
const STATUS_REGISTERS: usize = 112;
/// Registers in the kernel's order.
const RIP: usize = 16;
const RSP: usize = 19;

/// A thread of the process.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Status {
    pub(crate) id: u32,
    pub(crate) rip: u64,
    pub(crate) rsp: u64,
}

/// A mapped file: first address, first address above, path.
pub(crate) type Mapped = (u64, u64, String);

/// Writes the core.
pub(crate) fn write(space: &Space, pid: u32, threads: &[Status], files: &[Mapped]) -> Vec<u8> {
    let notes = notes(pid, threads, files);
    let count = space.stretches.len() + 1;
    let notes_at = 64 + 56 * count;
    let mut data_at = (notes_at + notes.len()).next_multiple_of(PAGE);
    let mut out = file_header(count);
    out.extend(program_header(4, 0, notes_at, 0, notes.len()));
    for s in &space.stretches {
        out.extend(program_header(1, s.flags, data_at, s.start, s.bytes.len()));
        data_at = (data_at + s.bytes.len()).next_multiple_of(PAGE);
    }
    out.extend(notes);
    for s in &space.stretches {
        out.resize(out.len().next_multiple_of(PAGE), 0);
        out.extend(&s.bytes);
    }
    out
}

fn file_header(count: usize) -> Vec<u8> {
    let mut out = b"\x7fELF\x02\x01\x01".to_vec();
    out.resize(16, 0);
    // a core, for AMD64, version 1
    out.extend([4_u16, 62].map(u16::to_le_bytes).concat());
    out.extend(1_u32.to_le_bytes());
    out.extend([0_u64, 64, 0].map(u64::to_le_bytes).concat());
    out.extend(0_u32.to_le_bytes());
    let count = u16::try_from(count).expect("few segments");
    out.extend([64, 56, count, 0, 0, 0].map(u16::to_le_bytes).concat());
    out
}

/// An entry of the list of segments.
pub(crate) fn program_header(
    kind: u32,
    flags: u32,
    offset: usize,
    addr: u64,
    size: usize,
) -> Vec<u8> {
    let mut out = [kind, flags].map(u32::to_le_bytes).concat();
    let numbers = [
        offset as u64,
        addr,
        addr,
        size as u64,
        size as u64,
        PAGE as u64,
    ];
    out.extend(numbers.map(u64::to_le_bytes).concat());
    out
}

/// In the order of createdump: the process, its auxiliary vector, its files, the threads.
fn notes(pid: u32, threads: &[Status], files: &[Mapped]) -> Vec<u8> {
    let mut info = vec![0; 136];
    info[24..28].copy_from_slice(&pid.to_le_bytes());
    info[40..43].copy_from_slice(b"app");
    let mut out = note(3, &info);
    out.extend(note(6, &[0; 16]));
    out.extend(note(0x4649_4c45, &file_note(files)));
    for thread in threads {
        let mut status = vec![0; STATUS];
        status[STATUS_ID..STATUS_ID + 4].copy_from_slice(&thread.id.to_le_bytes());
        for (register, value) in [(RIP, thread.rip), (RSP, thread.rsp)] {
            let at = STATUS_REGISTERS + 8 * register;
            status[at..at + 8].copy_from_slice(&value.to_le_bytes());
        }
        out.extend(note(1, &status));
    }
    out
}

fn note(kind: u32, desc: &[u8]) -> Vec<u8> {
    let mut out = [5, desc.len() as u32, kind].map(u32::to_le_bytes).concat();
    out.extend(b"CORE\0\0\0\0");
    out.extend(desc);
    out.resize(out.len().next_multiple_of(4), 0);
    out
}

fn file_note(files: &[Mapped]) -> Vec<u8> {
    let mut out = [files.len() as u64, PAGE as u64]
        .map(u64::to_le_bytes)
        .concat();
    for (start, end, _) in files {
        out.extend([*start, *end, 0].map(u64::to_le_bytes).concat());
    }
    for (.., path) in files {
        out.extend(path.bytes().chain([0]));
    }
    out
}
