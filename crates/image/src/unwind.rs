//! The way from a function to its caller, by the tables that compilers leave for exceptions.
//!
//! Native code of ELF images: `.eh_frame`, which is mapped, so dumps hold it where they hold the image's read-only pages.
//! Native code of Windows, and managed code everywhere: `UNWIND_INFO` (x64). A step that no table proves is not taken.

mod arm64;
mod dwarf;
mod table;
mod walk_arm64;
mod x64;

use crate::elf::ElfImage;
use crate::pe::Function;
use asynctriage_dump::{Addr, Memory};
use dwarf::Caller;
use std::sync::OnceLock;
use table::Table;

pub use arm64::{Arm64Error, Arm64Function, Arm64State, Left};
pub use walk_arm64::Arm64Frames;
pub use x64::X64Frames;

/// `e_machine` of the two architectures.
const X64: u16 = 62;
const ARM64: u16 = 183;

/// A frame on the way out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame {
    /// Where it goes on: the address that the call below returns to, or where the system interrupted it.
    pub ip: Addr,
    /// The stack pointer in this frame. On x64 the return address of the call below stands directly under it.
    pub sp: Addr,
    /// The frame pointer (rbp, x29) in this frame, where it is known.
    pub fp: Option<Addr>,
    /// Whether tables prove the steps from the first frame to this one; else one went by a frame pointer.
    pub is_proved: bool,
    /// Whether the frame was interrupted at its address, as the innermost one was, and did not call.
    pub is_interrupted: bool,
}

impl Frame {
    /// An address inside the instruction that the frame stands at: a call that never returns may be the last one of its
    /// function.
    #[must_use]
    pub fn at(&self) -> Addr {
        if self.is_interrupted {
            self.ip
        } else {
            self.ip.back(1)
        }
    }
}

/// A walk from frame to frame, innermost first, which ends at the root, and where no further step is proved.
pub trait FrameWalk: Iterator<Item = Frame> {
    /// How the walk has ended, once it has: at the thread's first function, or why not.
    #[must_use]
    fn end(&self) -> Option<Result<(), Break>>;
}

/// Why a step from a frame to its caller could not be proved.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, thiserror::Error)]
pub enum Break {
    /// Neither an image nor managed code is known at the address.
    #[error("no code is known there")]
    NotCode,
    /// The table that tells it is not in the dump, or the image has none.
    #[error("its unwind table is not in the dump")]
    NoTable,
    /// The table is there, and has nothing for code that calls.
    #[error("no entry of the unwind table covers it")]
    NoEntry,
    /// The entry cannot be followed.
    #[error("its unwind information is malformed")]
    BadEntry,
    /// The instructions of an interrupted function are not in the dump, and it may be about to return.
    #[error("its instructions are not in the dump")]
    NoCode,
    /// A word of the stack is not in the dump.
    #[error("its part of the stack is not in the dump")]
    NoStack(Addr),
    /// It keeps its frame in a register that nothing has told.
    #[error("the register of its frame is not known")]
    UnknownRegister,
    /// The caller's part of the stack does not lie above its own.
    #[error("it leads back down the stack")]
    NotUpwards,
    /// More frames than are followed.
    #[error("the stack has more frames than are followed")]
    TooLong,
}

/// What tells how code is left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rules {
    /// The codes of a function.
    Codes(Function),
    /// Nothing: it calls nothing, and leaves the stack as it was.
    Return,
    /// The table of its ELF image.
    EhFrame,
}

/// Knows the tables of the ELF images that it was given.
pub struct Unwinder<'m> {
    memory: &'m dyn Memory,
    arm64: bool,
    /// The bits of a return address that are the address (arm64).
    code_mask: u64,
    /// By their begins.
    images: Vec<Covered<'m>>,
}

/// An image, with its table once a stack leads there: most images are on no stack.
struct Covered<'m> {
    elf: ElfImage,
    start: Addr,
    end: Addr,
    /// `None` for one without a table, or of another architecture.
    table: OnceLock<Option<Table<'m>>>,
}

impl std::fmt::Debug for Unwinder<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Unwinder")
            .field("images", &self.images.len())
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
            table: OnceLock::new(),
        });
        let mut images: Vec<_> = images.collect();
        images.sort_by_key(|i| i.start);
        Self {
            memory,
            arm64,
            code_mask,
            images,
        }
    }

    /// Whether an address lies in one of the images.
    #[must_use]
    pub fn covers(&self, at: Addr) -> bool {
        self.image_at(at).is_some()
    }

    fn image_at(&self, at: Addr) -> Option<&Covered<'m>> {
        let behind = self.images.partition_point(|i| i.start <= at);
        let image = behind.checked_sub(1).and_then(|i| self.images.get(i))?;
        (at < image.end).then_some(image)
    }

    /// The caller of a frame in an image.
    fn leave(
        &self,
        at: Addr,
        link: bool,
        register: &dyn Fn(u16) -> Option<u64>,
    ) -> Result<Caller, Break> {
        let image = self.image_at(at).ok_or(Break::NotCode)?;
        let read = || Table::read(self.memory, self.arm64, &image.elf);
        let table = image.table.get_or_init(read).as_ref();
        let table = table.ok_or(Break::NoTable)?;
        let row = table.row(at)?;
        let frame = dwarf::Frame {
            memory: self.memory,
            frames: &table.frames,
            register,
        };
        frame.leave(&row, link)
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

    fn registers() -> X64Registers {
        let mut general = [0; 16];
        general[4] = STACK;
        general[5] = STACK + 8 * 10;
        X64Registers {
            general,
            rip: BASE + FUNCTION as u64 + 0x10,
            ..X64Registers::default()
        }
    }

    /// The frames, and how the walk ended.
    type Walked = (Vec<(u64, u64)>, Option<Result<(), Break>>);

    fn walk(memory: &Pieces) -> Walked {
        let image = ElfImage::parse(memory, Addr(BASE)).expect("the library is whole");
        let unwinder = Unwinder::new(memory, false, u64::MAX, std::iter::once(&image));
        let rules = |at: Addr| match unwinder.covers(at) {
            true => Ok(Rules::EhFrame),
            false => Err(Break::NotCode),
        };
        let mut frames = X64Frames::new(&unwinder, &registers(), rules);
        let mut all = Vec::new();
        while let Some(frame) = frames.next().filter(|_| all.len() < 100) {
            all.push((frame.ip.0, frame.sp.0));
        }
        (all, frames.end())
    }

    #[test]
    fn tables_lead_out_of_images_and_nothing_out_of_other_code() {
        let memory = Pieces::default().with(BASE, image()).with(STACK, stack());
        let expected = vec![(BASE + 0x210, STACK), (0x5000_0010, STACK + 0x30)];
        assert_eq!(walk(&memory), (expected, Some(Err(Break::NotCode))));
    }

    /// What ends the walk at the first frame.
    fn breaks(memory: &Pieces) -> Break {
        let (frames, end) = walk(memory);
        assert_eq!(frames, [(BASE + 0x210, STACK)]);
        end.unwrap().unwrap_err()
    }

    #[test]
    fn an_image_without_a_table_ends_the_walk() {
        let mut bytes = image();
        bytes[HEADER + 1] = 0xff;
        let memory = Pieces::default().with(BASE, bytes).with(STACK, stack());
        assert_eq!(breaks(&memory), Break::NoTable);
    }

    #[test]
    fn a_frame_may_have_no_caller() {
        let mut bytes = image();
        // the return address is undefined
        put(&mut bytes, FRAMES + 40, &[0x0010_0700]);
        let memory = Pieces::default().with(BASE, bytes).with(STACK, stack());
        assert_eq!(walk(&memory), (vec![(BASE + 0x210, STACK)], Some(Ok(()))));
    }

    #[test]
    fn registers_that_no_rule_can_tell_are_not_taken_for_others() {
        let mut bytes = image();
        // CFA is r10 + 8, and nobody told r10 of a frame that was called; here it is told
        put(&mut bytes, FRAMES + 40, &[0x080a_0c00]);
        let memory = Pieces::default()
            .with(BASE, bytes.clone())
            .with(STACK, stack());
        assert_eq!(breaks(&memory), Break::NoStack(Addr(0)));
        // the return address is what r17 holds
        put(&mut bytes, FRAMES + 40, &[0x1110_0900]);
        let memory = Pieces::default().with(BASE, bytes).with(STACK, stack());
        assert_eq!(breaks(&memory), Break::UnknownRegister);
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
        let registers = Arm64Registers {
            x,
            sp: STACK,
            pc: 0x5000_0004,
            ..Arm64Registers::default()
        };
        let mask = u64::MAX >> 16;
        let unwinder = Unwinder::new(&memory, true, mask, std::iter::empty());
        let frames = Arm64Frames::new(&unwinder, &registers, |_| None);
        let ips: Vec<u64> = frames.map(|f| f.ip.0).collect();
        assert_eq!(ips, [0x5000_0004, 0x5000_0020, 0x5000_0030]);
    }

    #[test]
    fn a_missing_stack_ends_the_walk() {
        let memory = Pieces::default().with(BASE, image());
        assert_eq!(breaks(&memory), Break::NoStack(Addr(STACK + 0x28)));
    }

    #[test]
    fn an_expression_that_jumps_back_ends_the_walk() {
        let mut bytes = image();
        // CFA is an expression of one jump to itself
        put(&mut bytes, FRAMES + 24, &[20]);
        put(&mut bytes, FRAMES + 40, &[0x2f03_0f00, 0x0000_fffd]);
        let memory = Pieces::default().with(BASE, bytes).with(STACK, stack());
        assert_eq!(breaks(&memory), Break::BadEntry);
    }

    #[test]
    fn an_entry_that_is_cut_ends_the_walk() {
        let mut bytes = image();
        put(&mut bytes, FRAMES + 40, &[0x2f03_0f00]);
        let memory = Pieces::default().with(BASE, bytes).with(STACK, stack());
        assert_eq!(breaks(&memory), Break::BadEntry);
    }

    #[test]
    fn code_that_no_entry_covers_ends_the_walk() {
        let mut bytes = image();
        put(&mut bytes, FRAMES + 36, &[0x8]);
        let memory = Pieces::default().with(BASE, bytes).with(STACK, stack());
        assert_eq!(breaks(&memory), Break::NoEntry);
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
