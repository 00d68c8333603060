//! `UNWIND_INFO`: what the first instructions of a function did to the stack (x64).
//!
//! The format of Windows, which the runtime keeps on all systems. There is one more code on Linux, for frame registers that
//! stand far above the stack pointer; goblin refuses what has it.

use crate::bytes::prefix;
use crate::pe::Function;
use asynctriage_dump::Memory;

/// The longest one, up to the entry that it leads to: 255 codes, and one for alignment.
const MAX_INFO: u64 = 4 + 256 * 2 + 12;
/// It is not the function's own, but that of a part of it: an entry stands behind the codes.
const CHAINED: u8 = 4;

/// What is known of one part of a function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Info {
    /// Bytes of the first instructions.
    pub(super) prologue: u8,
    /// Number of the register that the frame stands in; 0 when it is the stack pointer.
    pub(super) frame_register: u8,
    /// How far above the stack pointer that register was set, in bytes.
    pub(super) frame_offset: u32,
    /// The last instruction first.
    pub(super) codes: Vec<Code>,
    /// Begin, end and information of the part that this one belongs to.
    pub(super) chained: Option<[u32; 3]>,
}

/// What one instruction did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Code {
    /// The place behind the instruction, from the begin of the function.
    pub(super) behind: u8,
    pub(super) operation: Operation,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operation {
    /// Pushed a register.
    Push(u8),
    /// Took so many bytes.
    Allocate(u32),
    /// Put the frame into its register.
    SetFrame,
    /// Stored a register so many bytes above the begin of the frame.
    Save(u8, u32),
    /// The processor pushed what it interrupted, with a code of the error or without.
    MachineFrame(bool),
    /// Nothing that a caller's registers need.
    Other,
}

impl Info {
    /// That of a function; `None` when the dump lacks it, and for what is no such information.
    pub(super) fn of(memory: &dyn Memory, function: &Function) -> Option<Self> {
        let at = function.base + u64::from(function.unwind);
        // most have ten codes
        Self::parse(&prefix(memory, at, 64)).or_else(|| Self::parse(&prefix(memory, at, MAX_INFO)))
    }

    fn parse(bytes: &[u8]) -> Option<Self> {
        let [head, prologue, count, frame, rest @ ..] = bytes else {
            return None;
        };
        let (version, flags) = (head & 7, head >> 3);
        if !matches!(version, 1 | 2) {
            return None;
        }
        let slots = rest.get(..usize::from(*count).checked_mul(2)?)?;
        let mut info = Self {
            prologue: *prologue,
            frame_register: frame & 0xf,
            frame_offset: u32::from(frame >> 4).wrapping_mul(16),
            codes: Vec::with_capacity((*count).into()),
            chained: None,
        };
        info.read_codes(slots.as_chunks().0, version)?;
        if flags & CHAINED != 0 {
            let behind = usize::from(*count).next_multiple_of(2).checked_mul(2)?;
            let entry = rest.get(behind..)?.first_chunk::<12>()?;
            let [begin, end, unwind] = entry.as_chunks().0 else {
                return None;
            };
            info.chained = Some([begin, end, unwind].map(|n| u32::from_le_bytes(*n)));
        }
        Some(info)
    }

    fn read_codes(&mut self, mut slots: &[[u8; 2]], version: u8) -> Option<()> {
        while let [[behind, what], rest @ ..] = slots {
            let (kind, operand) = (what & 0xf, what >> 4);
            let near = || rest.first().map(|n| u32::from(u16::from_le_bytes(*n)));
            let far = || match rest {
                [[a, b], [c, d], ..] => Some(u32::from_le_bytes([*a, *b, *c, *d])),
                _ => None,
            };
            let (operation, used) = match (kind, operand) {
                (0, register) => (Operation::Push(register), 0),
                (1, 0) => (Operation::Allocate(near()?.checked_mul(8)?), 1),
                (1, 1) => (Operation::Allocate(far()?), 2),
                (2, units) => (
                    Operation::Allocate(u32::from(units).wrapping_mul(8).wrapping_add(8)),
                    0,
                ),
                (3, _) => (Operation::SetFrame, 0),
                (4, register) => (Operation::Save(register, near()?.checked_mul(8)?), 1),
                (5, register) => (Operation::Save(register, far()?), 2),
                // where the ends of the function are; vector registers in the older version
                (6, _) => (Operation::Other, usize::from(version == 1)),
                (8, _) => (Operation::Other, 1),
                (7 | 9, _) => (Operation::Other, 2),
                (10, code @ (0 | 1)) => (Operation::MachineFrame(code == 1), 0),
                // the runtime's own, on Linux
                (11, _) if self.frame_register != 0 => {
                    self.frame_offset = far()?.checked_mul(16)?;
                    (Operation::SetFrame, 2)
                }
                _ => return None,
            };
            self.codes.push(Code {
                behind: *behind,
                operation,
            });
            slots = rest.get(used..)?;
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn all_codes_that_move_the_stack_are_read() {
        let bytes = [
            1,
            0x20,
            9,
            5 | 2 << 4, //
            0x20,
            0x03, // lea rbp, [rsp + 0x20]
            0x18,
            0x01,
            0x10,
            0x00, // sub rsp, 0x80
            0x10,
            0x34,
            0x02,
            0x00, // mov [rsp + 0x10], rbx
            0x08,
            0x22, // sub rsp, 0x18
            0x04,
            0x50, // push rbp
            0x02,
            0xc0, // push r12
            0x00,
            0x1a, // interrupted, with a code
        ];
        let info = Info::parse(&bytes).unwrap();
        let codes: Vec<_> = info.codes.iter().map(|c| (c.behind, c.operation)).collect();
        use Operation::*;
        let expected = [
            (0x20, SetFrame),
            (0x18, Allocate(0x80)),
            (0x10, Save(3, 0x10)),
            (0x08, Allocate(0x18)),
            (0x04, Push(5)),
            (0x02, Push(12)),
            (0x00, MachineFrame(true)),
        ];
        assert_eq!(codes, expected);
        assert_eq!((info.frame_register, info.frame_offset), (5, 0x20));
    }

    #[test]
    fn a_frame_register_may_stand_far_above_the_stack_pointer() {
        let bytes = [1, 0x10, 4, 0xf5, 0x10, 0x0b, 0x23, 0x01, 0, 0, 0x01, 0x50];
        let info = Info::parse(&bytes).unwrap();
        assert_eq!(info.frame_offset, 0x1230);
        assert_eq!(info.codes[0].operation, Operation::SetFrame);
        assert_eq!(info.codes[1].operation, Operation::Push(5));
        // without a frame register it means nothing
        assert_eq!(
            Info::parse(&[1, 0x10, 3, 0xf0, 0x10, 0x0b, 0x23, 0x01, 0, 0]),
            None
        );
    }

    #[test]
    fn what_is_cut_or_unknown_is_refused() {
        let no_code = [1, 4, 1, 0, 4, 0x0c];
        let cut = [1, 4, 2, 0, 4, 0x01];
        let other_version = [3, 4, 0, 0];
        for bytes in [&no_code[..], &cut, &other_version, &[]] {
            assert_eq!(Info::parse(bytes), None, "{bytes:x?}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_do_no_harm(bytes in prop::collection::vec(any::<u8>(), 0..600)) {
            if let Some(info) = Info::parse(&bytes) {
                prop_assert!(info.codes.len() <= 255);
            }
        }
    }
}
