//! Layouts of the notes that matter; all measured on cores of createdump, gdb and the kernel.

use crate::bytes::{array, text, u16_at, u32_at, u64_at, words};
use crate::registers::{Arm64Registers, X64Registers};
use crate::{Addr, Arch, MappedFile, Registers, ThreadSnapshot};

/// `pr_reg` inside `struct elf_prstatus`, on both machines.
const REGISTERS: usize = 112;
/// Longest path that is kept, as the kernel's `PATH_MAX`.
const PATH_MAX: usize = 4096;
/// Most entries of NT_FILE that are kept: 16 times the kernel's default limit of mappings.
const MAX_FILES: u64 = 1 << 20;

/// Bytes of a file; no system maps larger ones.
const MAX_FILE: u64 = 1 << 48;

/// Types of notes that systems write under the name CORE: threads' registers of both kinds, the process, the platform,
/// the auxiliary vector, signals, mapped files; gdb has a few of its own.
pub(super) const KINDS: [u32; 11] = [1, 2, 3, 4, 5, 6, 10, 13, 20, 0x5349_4749, 0x4649_4C45];

/// NT_PRSTATUS: a thread.
pub(super) fn thread(desc: &[u8], arch: Arch) -> Option<ThreadSnapshot> {
    let registers = desc.get(REGISTERS..)?;
    Some(ThreadSnapshot {
        id: u32_at(desc, 32)?,
        signal: u16_at(desc, 12).map(u32::from).filter(|s| *s != 0),
        registers: match arch {
            Arch::X64 => Registers::X64(x64(registers)?),
            Arch::Arm64 => Registers::Arm64(arm64(registers)?),
        },
        name: None,
        teb: None,
    })
}

/// `struct user_regs_struct` of x64.
fn x64(bytes: &[u8]) -> Option<X64Registers> {
    let [
        r15,
        r14,
        r13,
        r12,
        rbp,
        rbx,
        r11,
        r10,
        r9,
        r8,
        rax,
        rcx,
        rdx,
        rsi,
        rdi,
        _,
        rip,
        _,
        rflags,
        rsp,
        _,
        fs_base,
    ] = numbers(bytes)?;
    let general = [
        rax, rcx, rdx, rbx, rsp, rbp, rsi, rdi, r8, r9, r10, r11, r12, r13, r14, r15,
    ];
    Some(X64Registers {
        general,
        rip,
        rflags,
        fs_base,
    })
}

/// `struct user_pt_regs` of arm64.
fn arm64(bytes: &[u8]) -> Option<Arm64Registers> {
    let x = numbers(bytes)?;
    let [sp, pc, pstate] = numbers(bytes.get(31 * 8..)?)?;
    Some(Arm64Registers {
        x,
        sp,
        pc,
        pstate,
        tpidr: None,
    })
}

fn numbers<const N: usize>(bytes: &[u8]) -> Option<[u64; N]> {
    let mut out = [0; N];
    let mut count = 0_usize;
    for (slot, word) in out.iter_mut().zip(words(bytes)) {
        *slot = word;
        count = count.saturating_add(1);
    }
    (count == N).then_some(out)
}

/// NT_PRPSINFO: process id, name of the program, and the begin of the command line (createdump leaves it empty).
pub(super) fn process(desc: &[u8]) -> Option<(u32, Option<String>, Option<String>)> {
    let name = array::<16>(desc, 40)?;
    let arguments = array::<80>(desc, 56)?;
    Some((
        u32_at(desc, 24)?,
        text(&name),
        text(&arguments).map(|a| a.trim_end().to_owned()),
    ))
}

/// NT_SIGINFO: the signal; `None` when there was none.
pub(super) fn signal(desc: &[u8]) -> Option<u32> {
    u32_at(desc, 0).filter(|s| *s != 0)
}

/// NT_AUXV: pairs up to the terminating zero.
pub(super) fn auxv(desc: &[u8]) -> Vec<(u64, u64)> {
    let pairs = desc.as_chunks::<16>().0.iter();
    let pairs = pairs.filter_map(|p| Some((u64_at(p, 0)?, u64_at(p, 8)?)));
    // the kernel writes about twenty; the bound is for hostile input
    pairs.take_while(|(key, _)| *key != 0).take(256).collect()
}

/// NT_FILE: mapped files. Their offsets are counted in a unit that the note states: createdump writes 4096,
/// gdb 1, the kernel its page size. With them the number of entries that have no name, of names without an entry, and of
/// entries that end before they begin or stand below the one before.
pub(super) fn files(desc: &[u8]) -> (Vec<MappedFile>, usize) {
    let (Some(count), Some(unit)) = (u64_at(desc, 0), u64_at(desc, 8)) else {
        return (Vec::new(), 1);
    };
    let listed = count;
    let table = desc.get(16..).unwrap_or_default();
    let entries = table.as_chunks::<24>().0;
    let count = usize::try_from(count.min(MAX_FILES))
        .unwrap_or(0)
        .min(entries.len());
    let names = table.get(count.saturating_mul(24)..).unwrap_or_default();
    // each name ends with a zero
    let all = names.split(|b| *b == 0);
    let named = all.clone().filter(|n| !n.is_empty()).count();
    let empty = all.take(count).filter(|n| n.is_empty()).count();
    let names = names.split(|b| *b == 0);
    let entries = entries.iter().take(count);
    let files: Vec<MappedFile> = entries
        .zip(names)
        .filter_map(|(entry, name)| file(entry, name, unit))
        .collect();
    let listed = usize::try_from(listed).unwrap_or(usize::MAX);
    let broken = listed.abs_diff(named).max(empty).max(disordered(&files));
    (files, broken)
}

/// Entries that end before they begin, such as stand below the end of the one before, and parts of files that are larger
/// than any.
fn disordered(files: &[MappedFile]) -> usize {
    let mut last = Addr::NULL;
    let mut count = 0_usize;
    for file in files {
        let is_large = file.file_offset > MAX_FILE;
        if file.start < last || file.end <= file.start || is_large {
            count = count.saturating_add(1);
        }
        last = file.end;
    }
    count
}

fn file(entry: &[u8], name: &[u8], unit: u64) -> Option<MappedFile> {
    let name = name.get(..PATH_MAX).unwrap_or(name);
    Some(MappedFile {
        path: String::from_utf8_lossy(name).into_owned(),
        start: Addr(u64_at(entry, 0)?),
        end: Addr(u64_at(entry, 8)?),
        file_offset: u64_at(entry, 16)?.saturating_mul(unit),
        stamp: None,
    })
}
