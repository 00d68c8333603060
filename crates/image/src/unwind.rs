//! The way from a function to its caller, by the tables that compilers leave for exceptions.
//!
//! ELF images on x64 and arm64: `.eh_frame`, found through `PT_GNU_EH_FRAME`; it is mapped, so dumps hold it where they
//! hold the image's read-only pages. Code of no image is taken to keep frame pointers, as the JIT's does.
//!
//! Windows on x64: [`WindowsFrames`]. There managed code keeps no frame pointers, and has entries like native code.

mod entries;
mod epilogue;
mod windows;

use crate::elf::ElfImage;
use asynctriage_dump::{Addr, Memory, Registers};
use entries::Entries;
use framehop::{ExplicitModuleSectionInfo, FrameAddress, Module, Unwinder as _};
use framehop::{aarch64, x86_64};
use std::sync::OnceLock;

pub use windows::WindowsFrames;

/// The longest table that is taken; that of libcoreclr.so has 400 KiB.
const MAX_TABLE: u64 = 64 << 20;
/// The longest header of a table: an entry of 8 bytes for each function.
const MAX_HEADER: u64 = 16 << 20;
/// How every linker begins a header: version 1, pointer to the table as `DW_EH_PE_pcrel | DW_EH_PE_sdata4`, count as
/// `DW_EH_PE_udata4`, entries as `DW_EH_PE_datarel | DW_EH_PE_sdata4`.
const HEADER_START: [u8; 4] = [1, 0x1b, 0x03, 0x3b];
/// `e_machine` of the two architectures.
const X64: u16 = 62;
const ARM64: u16 = 183;

/// Unwinds frames of the images that it was given.
pub struct Unwinder<'m> {
    memory: &'m dyn Memory,
    arm64: bool,
    /// The bits of a return address that are the address (arm64).
    code_mask: u64,
    /// By their begins.
    images: Vec<Covered<'m>>,
    /// Frame pointers only, for code of no image.
    bare: Tables<'m>,
}

/// An image, with its table once a stack leads there: most images are on no stack.
struct Covered<'m> {
    elf: ElfImage,
    start: Addr,
    end: Addr,
    /// `None` for one without a table, or of another architecture.
    tables: OnceLock<Option<(Entries<'m>, Tables<'m>)>>,
}

enum Tables<'m> {
    X64(x86_64::UnwinderX86_64<&'m [u8]>),
    Arm64(aarch64::UnwinderAarch64<&'m [u8]>),
}

impl std::fmt::Debug for Unwinder<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Unwinder")
            .field("images", &self.images.len())
            .finish_non_exhaustive()
    }
}

/// A frame on the way out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame {
    /// The instruction pointer of the innermost frame, else the address that the call below returns to.
    pub ip: Addr,
    /// The stack pointer in this frame. On x64 the return address of the call below stands directly under it.
    pub sp: Addr,
}

/// A walk from frame to frame, innermost first, which ends at the root and where tables or stack are missing.
pub trait FrameWalk: Iterator<Item = Frame> {
    /// Whether the walk has ended at the thread's first function.
    #[must_use]
    fn reached_root(&self) -> bool;
}

/// The frames of one thread, innermost first; ends at the root, and where the tables or the stack are missing.
pub struct Frames<'u, 'm> {
    unwinder: &'u Unwinder<'m>,
    state: State,
    next: Option<FrameAddress>,
    root: bool,
}

enum State {
    X64(x86_64::UnwindRegsX86_64, Box<x86_64::CacheX86_64>),
    Arm64(aarch64::UnwindRegsAarch64, Box<aarch64::CacheAarch64>),
}

impl std::fmt::Debug for Frames<'_, '_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Frames")
            .field("next", &self.next)
            .finish_non_exhaustive()
    }
}

impl<'m> Unwinder<'m> {
    /// Will take the tables of these images as stacks lead there. `code_mask`: the bits of a return address on arm64 that
    /// are the address; signatures of pointer authentication stand above them.
    pub fn new<'i>(
        memory: &'m dyn Memory,
        arm64: bool,
        code_mask: u64,
        images: impl Iterator<Item = &'i ElfImage>,
    ) -> Self {
        let images = images.map(|elf| Covered {
            start: elf.base,
            end: elf.base + elf.size(),
            elf: elf.clone(),
            tables: OnceLock::new(),
        });
        let mut images: Vec<_> = images.collect();
        images.sort_by_key(|i| i.start);
        Self {
            memory,
            arm64,
            code_mask,
            images,
            bare: Tables::new(arm64),
        }
    }

    /// The frames of a thread with these registers.
    #[must_use]
    pub fn frames(&self, registers: &Registers) -> Frames<'_, 'm> {
        Frames {
            unwinder: self,
            state: match registers {
                Registers::X64(r) => {
                    let mut regs =
                        x86_64::UnwindRegsX86_64::new(r.rip, registers.sp().0, registers.fp().0);
                    for (name, value) in ORDER.into_iter().zip(r.general) {
                        regs.set(name, value);
                    }
                    State::X64(regs, Box::default())
                }
                Registers::Arm64(r) => {
                    let link = r.x.get(30).copied().unwrap_or_default();
                    let regs = aarch64::UnwindRegsAarch64::new_with_ptr_auth_mask(
                        aarch64::PtrAuthMask(self.code_mask),
                        link,
                        r.sp,
                        registers.fp().0,
                    );
                    State::Arm64(regs, Box::default())
                }
            },
            next: Some(FrameAddress::InstructionPointer(registers.pc().0)),
            root: false,
        }
    }

    /// What tells how code at an address leaves; `None` when nothing does: frame pointers are no rule of native images.
    fn tables_at(&self, ip: Addr) -> Option<&Tables<'m>> {
        let behind = self.images.partition_point(|i| i.start <= ip);
        let image = behind.checked_sub(1).and_then(|i| self.images.get(i));
        let Some(image) = image.filter(|i| ip < i.end) else {
            return Some(&self.bare);
        };
        let read = || Tables::of(self.memory, self.arm64, &image.elf);
        let (entries, tables) = image.tables.get_or_init(read).as_ref()?;
        entries
            .lead_out_of(ip.0.wrapping_sub(image.elf.bias))
            .then_some(tables)
    }
}

impl<'m> Tables<'m> {
    fn new(arm64: bool) -> Self {
        if arm64 {
            Self::Arm64(aarch64::UnwinderAarch64::new())
        } else {
            Self::X64(x86_64::UnwinderX86_64::new())
        }
    }

    fn of(memory: &'m dyn Memory, arm64: bool, image: &ElfImage) -> Option<(Entries<'m>, Self)> {
        let table = Table::find(memory, image)?;
        let linked = |at: Addr| at.0.wrapping_sub(image.bias);
        let entries = Entries::read(
            (linked(table.header_at), table.header),
            (linked(table.frames_at), table.frames),
        )?;
        let module = table.module(image);
        let mut tables = Self::new(arm64);
        match (&mut tables, image.machine) {
            (Self::X64(u), X64) => u.add_module(module),
            (Self::Arm64(u), ARM64) => u.add_module(module),
            _ => return None,
        }
        Some((entries, tables))
    }
}

/// The registers in the order of [`asynctriage_dump::X64Registers::general`].
const ORDER: [x86_64::Reg; 16] = {
    use x86_64::Reg as R;
    [
        R::RAX,
        R::RCX,
        R::RDX,
        R::RBX,
        R::RSP,
        R::RBP,
        R::RSI,
        R::RDI,
        R::R8,
        R::R9,
        R::R10,
        R::R11,
        R::R12,
        R::R13,
        R::R14,
        R::R15,
    ]
};

impl FrameWalk for Frames<'_, '_> {
    fn reached_root(&self) -> bool {
        self.root
    }
}

impl Iterator for Frames<'_, '_> {
    type Item = Frame;

    fn next(&mut self) -> Option<Frame> {
        let address = self.next.take()?;
        let frame = Frame {
            ip: Addr(address.address()),
            sp: Addr(match &self.state {
                State::X64(regs, _) => regs.sp(),
                State::Arm64(regs, _) => regs.sp(),
            }),
        };
        let memory = self.unwinder.memory;
        let mut read = |at: u64| memory.u64(Addr(at)).ok_or(());
        let tables = self.unwinder.tables_at(Addr(address.address_for_lookup()));
        let Some(tables) = tables else {
            return Some(frame);
        };
        let up = match (tables, &mut self.state) {
            (Tables::X64(tables), State::X64(regs, cache)) => {
                tables.unwind_frame(address, regs, cache, &mut read)
            }
            (Tables::Arm64(tables), State::Arm64(regs, cache)) => {
                tables.unwind_frame(address, regs, cache, &mut read)
            }
            _ => return Some(frame),
        };
        self.root = up == Ok(None);
        self.next = up
            .ok()
            .flatten()
            .and_then(FrameAddress::from_return_address);
        Some(frame)
    }
}

/// The two parts of an image's table.
struct Table<'m> {
    header_at: Addr,
    header: &'m [u8],
    frames_at: Addr,
    frames: &'m [u8],
}

impl<'m> Table<'m> {
    fn find(memory: &'m dyn Memory, image: &ElfImage) -> Option<Self> {
        let (header_at, len) = image.eh_frame_hdr?;
        let header = memory.slice(header_at, len.min(MAX_HEADER))?;
        let pointer = *header.get(4..)?.first_chunk()?;
        if !header.starts_with(&HEADER_START) {
            return None;
        }
        let frames_at = (header_at + 4) + i64::from(i32::from_le_bytes(pointer)).cast_unsigned();
        // its length stands nowhere in what is mapped: it ends at the latest with its segment
        let segment = image.segments.iter().find(|s| s.contains(frames_at))?;
        let room = (segment.addr + segment.mem_size).since(frames_at)?;
        let len = room.min(memory.run(frames_at)).min(MAX_TABLE);
        Some(Self {
            header_at,
            header,
            frames_at,
            frames: memory.slice(frames_at, len).filter(|f| !f.is_empty())?,
        })
    }

    fn module(&self, image: &ElfImage) -> Module<&'m [u8]> {
        let linked = |at: Addr, bytes: &[u8]| {
            let start = at.0.wrapping_sub(image.bias);
            start..start.saturating_add(bytes.len() as u64)
        };
        let sections = ExplicitModuleSectionInfo {
            eh_frame_hdr_svma: Some(linked(self.header_at, self.header)),
            eh_frame_hdr: Some(self.header),
            eh_frame_svma: Some(linked(self.frames_at, self.frames)),
            eh_frame: Some(self.frames),
            ..ExplicitModuleSectionInfo::default()
        };
        let range = image.base.0..(image.base + image.size()).0;
        Module::new(String::new(), range, image.bias, sections)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::elf::tests::library;
    use crate::test_memory::Pieces;
    use asynctriage_dump::{Arm64Registers, X64Registers};
    use proptest::prelude::*;

    const BASE: u64 = 0x7fff_0000_0000;
    const STACK: u64 = 0x7ffe_0000_0000;
    /// Where `library` has its table, and where this test puts the frames and the one function.
    const HEADER: usize = 0xe00;
    const FRAMES: usize = 0xe40;
    const FUNCTION: usize = 0x200;

    fn put(image: &mut [u8], at: usize, words: &[u32]) {
        for (slot, word) in image[at..].chunks_exact_mut(4).zip(words) {
            slot.copy_from_slice(&word.to_le_bytes());
        }
    }

    fn distance(to: usize, from: usize) -> u32 {
        (to as u32).wrapping_sub(from as u32)
    }

    /// A library with one function of 0x100 bytes whose frame takes 0x30 bytes.
    fn image() -> Vec<u8> {
        let mut image = library(&[]);
        let entry = [distance(FUNCTION, HEADER), distance(FRAMES + 24, HEADER)];
        put(
            &mut image,
            HEADER,
            &[0x3b03_1b01, distance(FRAMES, HEADER + 4), 1],
        );
        put(&mut image, HEADER + 12, &entry);
        // version 1, "zR", factors 1 and -8, return address in 16; CFA is rsp + 8, return address at CFA - 8
        let common = b"\x01zR\0\x01\x78\x10\x01\x1b\x0c\x07\x08\x90\x01\0\0";
        put(&mut image, FRAMES, &[20, 0]);
        image[FRAMES + 8..][..16].copy_from_slice(common);
        let begin = distance(FUNCTION, FRAMES + 32);
        // CFA is rsp + 0x30
        put(
            &mut image,
            FRAMES + 24,
            &[16, 28, begin, 0x100, 0x0030_0e00, 0],
        );
        image
    }

    fn stack() -> Vec<u8> {
        let mut words = vec![0_u64; 32];
        words[5] = 0x5000_0010; // in front of CFA: the caller, code of no image
        words[10] = STACK + 8 * 20; // its frame pointer points here
        words[11] = 0x5000_0020;
        words[20] = 0;
        words[21] = 0x5000_0030;
        words.iter().flat_map(|w| w.to_le_bytes()).collect()
    }

    fn registers() -> Registers {
        let mut general = [0; 16];
        general[4] = STACK;
        general[5] = STACK + 8 * 10;
        Registers::X64(X64Registers {
            general,
            rip: BASE + FUNCTION as u64 + 0x10,
            ..X64Registers::default()
        })
    }

    fn walk(memory: &Pieces) -> (Vec<(u64, u64)>, bool) {
        let image = ElfImage::parse(memory, Addr(BASE)).expect("the library is whole");
        let unwinder = Unwinder::new(memory, false, u64::MAX, std::iter::once(&image));
        let mut frames = unwinder.frames(&registers());
        let mut all = Vec::new();
        while let Some(frame) = frames.next().filter(|_| all.len() < 100) {
            all.push((frame.ip.0, frame.sp.0));
        }
        (all, frames.reached_root())
    }

    #[test]
    fn tables_lead_out_of_images_and_frame_pointers_out_of_other_code() {
        let memory = Pieces::default().with(BASE, image()).with(STACK, stack());
        let (frames, root) = walk(&memory);
        let expected = [
            (BASE + 0x210, STACK),
            (0x5000_0010, STACK + 0x30),
            (0x5000_0020, STACK + 8 * 12),
            (0x5000_0030, STACK + 8 * 22),
        ];
        assert_eq!(frames, expected);
        assert!(root);
    }

    #[test]
    fn an_image_without_a_table_ends_the_walk() {
        let mut bytes = image();
        bytes[HEADER + 1] = 0xff;
        let memory = Pieces::default().with(BASE, bytes).with(STACK, stack());
        assert_eq!(walk(&memory), (vec![(BASE + 0x210, STACK)], false));
    }

    #[test]
    fn signatures_of_arm64_are_taken_off_return_addresses() {
        let signed = |at: u64| at | 0x0035 << 48;
        let mut words = vec![0_u64; 32];
        words[10] = STACK + 8 * 20;
        words[11] = signed(0x5000_0020);
        words[20] = STACK + 8 * 30;
        words[21] = signed(0x5000_0030);
        let stack: Vec<u8> = words.iter().flat_map(|w| w.to_le_bytes()).collect();
        let memory = Pieces::default().with(STACK, stack);
        let mut x = [0; 31];
        (x[29], x[30]) = (STACK + 8 * 10, signed(0x5000_0010));
        let registers = Registers::Arm64(Arm64Registers {
            x,
            sp: STACK,
            pc: 0x5000_0004,
            ..Arm64Registers::default()
        });
        let mask = u64::MAX >> 16;
        let unwinder = Unwinder::new(&memory, true, mask, std::iter::empty());
        let ips: Vec<u64> = unwinder.frames(&registers).map(|f| f.ip.0).collect();
        assert_eq!(ips, [0x5000_0004, 0x5000_0020, 0x5000_0030]);
    }

    #[test]
    fn a_missing_stack_ends_the_walk() {
        let memory = Pieces::default().with(BASE, image());
        assert_eq!(walk(&memory), (vec![(BASE + 0x210, STACK)], false));
    }

    #[test]
    fn an_expression_that_jumps_back_ends_the_walk() {
        let mut bytes = image();
        // CFA is an expression of one jump to itself
        put(&mut bytes, FRAMES + 24, &[20]);
        put(&mut bytes, FRAMES + 40, &[0x2f03_0f00, 0x0000_fffd]);
        let memory = Pieces::default().with(BASE, bytes).with(STACK, stack());
        assert_eq!(walk(&memory), (vec![(BASE + 0x210, STACK)], false));
    }

    #[test]
    fn an_entry_that_is_cut_ends_the_walk() {
        let mut bytes = image();
        put(&mut bytes, FRAMES + 40, &[0x2f03_0f00]);
        let memory = Pieces::default().with(BASE, bytes).with(STACK, stack());
        assert_eq!(walk(&memory), (vec![(BASE + 0x210, STACK)], false));
    }

    #[test]
    fn code_that_no_entry_covers_ends_the_walk() {
        let mut bytes = image();
        put(&mut bytes, FRAMES + 36, &[0x8]);
        let memory = Pieces::default().with(BASE, bytes).with(STACK, stack());
        assert_eq!(walk(&memory), (vec![(BASE + 0x210, STACK)], false));
    }

    proptest! {
        #[test]
        fn damaged_tables_do_no_harm(at in 0_usize..0x70, bytes in prop::collection::vec(any::<u8>(), 1..24)) {
            let mut damaged = image();
            damaged[HEADER + at..][..bytes.len()].copy_from_slice(&bytes);
            let memory = Pieces::default().with(BASE, damaged).with(STACK, stack());
            prop_assert!(!walk(&memory).0.is_empty());
        }
    }
}
