//! Words of a stack that may be return addresses into managed code, where nothing leads from frame to frame.
//!
//! Stacks hold much that only looks like one: what calls have left that have returned since, pointers to methods, and
//! pointers to data of images, which lie between methods. What cannot be a return address by the code around it is left
//! out, as far as the dump holds that code; the rest is possible, not certain.

use super::{FrameSource, MAX_FRAMES, StackFrame};
use crate::code::{Code, CodeKind, MethodRef};
use crate::native::CompiledImage;
use crate::runtime::Runtime;
use asynctriage_dump::{Addr, Arch};
use asynctriage_image::pe::{Covering, RvaRange};
use rustc_hash::FxHashMap;

/// Words that are tested one by one.
const MAX_SCAN: u64 = 32 << 10;
/// The longest call instruction of x64.
const LONGEST_CALL: usize = 7;

impl Runtime<'_> {
    pub(super) fn scanned_frames(&self, start: Addr, end: Addr) -> Vec<StackFrame> {
        let words = end
            .since(start)
            .unwrap_or(0)
            .checked_div(8)
            .unwrap_or(0)
            .min(MAX_SCAN);
        let slots = (0..words).map(|i| start.element(i, 8));
        // the same addresses stand on a stack again and again
        let mut methods = FxHashMap::default();
        let frames = slots.filter_map(|slot| {
            let ip = self.return_address(slot)?;
            let method = methods
                .entry(ip)
                .or_insert_with(|| self.method_at_return(ip));
            Some(StackFrame {
                ip,
                slot,
                method: (*method)?,
                source: FrameSource::StackScan,
            })
        });
        frames.take(MAX_FRAMES).collect()
    }

    /// The method that a call may return to.
    fn method_at_return(&self, ip: Addr) -> Option<MethodRef> {
        let code = self.code_at(ip.back(1))?;
        let method = self.method_of_desc(code.desc)?;
        self.may_return_to(ip, &code).then_some(method)
    }

    /// Whether a call can return to an address inside this code: nothing that is known speaks against it.
    fn may_return_to(&self, ip: Addr, code: &Code) -> bool {
        let begins_here = || self.code_at(ip).is_some_and(|c| c.start == ip);
        self.is_in_body(ip.back(1), code) != Some(false)
            && self.follows_call(ip) != Some(false)
            && !begins_here()
    }

    /// Whether an instruction belongs to the body of some function, by the tables of functions; `None` when the dump
    /// lacks them, and where they tell no ends (arm64, ReadyToRun code of Linux).
    fn is_in_body(&self, at: Addr, code: &Code) -> Option<bool> {
        if self.dump.target.arch != Arch::X64 {
            return None;
        }
        if let CodeKind::ReadyToRun { image } = code.kind
            && self.is_outside_of_methods(at, image) == Some(true)
        {
            return Some(false);
        }
        Some(self.managed_covering(at, code)? != Covering::Nothing)
    }

    /// Whether no method of an image can stand at an address. Headers tell where code stands, also in dumps that lack the
    /// code and the table.
    fn is_outside_of_methods(&self, at: Addr, image: Addr) -> Option<bool> {
        let image = &*self.compiled_image(image)?;
        let pe = &image.pe;
        let rva = u32::try_from(at.since(pe.base)?).ok()?;
        let is_inside = |c: RvaRange| rva.checked_sub(c.rva).is_some_and(|d| d < c.size);
        let may_be_code = pe.may_execute(at) && pe.code.non_empty().is_none_or(is_inside);
        Some(!may_be_code || self.is_behind_methods(at, image))
    }

    /// Compilers put the stubs that methods are called through behind all methods: so it is where no method that is known
    /// stands behind them.
    fn is_behind_methods(&self, at: Addr, image: &CompiledImage) -> bool {
        let module = self.code_section(at).and_then(|s| s.module.non_null());
        let last = module.and_then(|m| self.entry_points(m).last());
        image
            .thunks
            .zip(last)
            .is_some_and(|(thunks, last)| last < thunks && thunks <= at)
    }

    /// Whether a call instruction stands in front of an address; `None` when the dump lacks the code there.
    fn follows_call(&self, ip: Addr) -> Option<bool> {
        match self.dump.target.arch {
            Arch::X64 => {
                let mut code = [0; LONGEST_CALL];
                let start = ip.back(LONGEST_CALL as u64);
                self.memory
                    .read_into(start, &mut code)
                    .then(|| ends_with_call(&code))
            }
            Arch::Arm64 => Some(is_arm64_call(self.memory.u32(ip.back(4))?)),
        }
    }
}

/// Whether the last instruction may be a call: `e8` with a distance, or `ff /2` with any operand (x64).
fn ends_with_call(code: &[u8; LONGEST_CALL]) -> bool {
    if matches!(code, [_, _, 0xe8, ..]) {
        return true;
    }
    // ModRM stands behind `ff`, then what its addressing needs
    (0..code.len()).any(|at| match code.get(at..) {
        Some([0xff, operand, rest @ ..]) if operand >> 3 & 7 == 2 => {
            rest.len() == operand_length(*operand, rest)
        }
        _ => false,
    })
}

/// Bytes behind a ModRM byte, by it and the SIB byte that may follow.
fn operand_length(operand: u8, rest: &[u8]) -> usize {
    let (mode, base) = (operand >> 6, operand & 7);
    let has_sib = mode != 3 && base == 4;
    // the SIB byte names the base, when there is one; number 5 stands for none, and a displacement of four bytes
    let base = match rest {
        [sib, ..] if has_sib => sib & 7,
        _ => base,
    };
    let displacement = match mode {
        0 if base == 5 => 4,
        1 => 1,
        2 => 4,
        _ => 0,
    };
    usize::from(has_sib).saturating_add(displacement)
}

/// `bl`, and `blr` with or without a check of a signature.
fn is_arm64_call(instruction: u32) -> bool {
    const BL: u32 = 0x9400_0000;
    const BLR: u32 = 0xd63f_0000;
    const BLR_SIGNED: u32 = 0xd63f_0800;
    instruction & 0xfc00_0000 == BL
        || instruction & 0xffff_fc1f == BLR
        || instruction & 0xfeff_f800 == BLR_SIGNED
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_of_x64_are_known_by_their_end() {
        for call in [
            [0x90, 0x90, 0xe8, 1, 2, 3, 4],             // call near
            [0x90, 0xff, 0x15, 1, 2, 3, 4],             // call [rip + n]
            [0x90, 0x90, 0x90, 0x90, 0x90, 0xff, 0xd0], // call rax
            [0x90, 0x90, 0x90, 0x90, 0x41, 0xff, 0xd3], // call r11
            [0x90, 0x90, 0x90, 0x90, 0xff, 0x50, 0x18], // call [rax + 24]
            [0x90, 0xff, 0x90, 1, 2, 3, 4],             // call [rax + n]
            [0x90, 0x90, 0x90, 0xff, 0x54, 0x24, 0x40], // call [rsp + 64]
            [0xff, 0x94, 0x24, 1, 2, 3, 4],             // call [rsp + n]
            [0x90, 0x90, 0x90, 0x90, 0xff, 0x14, 0xc8], // call [rax + rcx * 8]
            [0xff, 0x14, 0x25, 1, 2, 3, 4],             // call [n]
            [0xff, 0x14, 0xc5, 1, 2, 3, 4],             // call [rax * 8 + n]
            [0x90, 0x90, 0x90, 0xff, 0x54, 0xc5, 0x10], // call [rbp + rax * 8 + 16]
        ] {
            assert!(ends_with_call(&call), "{call:x?}");
        }
        for other in [
            [0x90; LONGEST_CALL],
            [0x90, 0x90, 0x90, 0x90, 0x90, 0xff, 0xe0], // jmp rax
            [0x90, 0x90, 0x90, 0xe8, 1, 2, 3],          // in the middle of a call
            [0x90, 0x90, 0xff, 0x15, 1, 2, 3],
            [0x90, 0xff, 0x14, 0x25, 1, 2, 3],
            [0x90, 0x90, 0x90, 0x90, 0xff, 0x14, 0x25],
        ] {
            assert!(!ends_with_call(&other), "{other:x?}");
        }
    }

    #[test]
    fn calls_of_arm64_are_known_by_their_instruction() {
        // bl, blr x1, blraaz x8, blrab x8, x9
        for call in [0x9700_0010, 0xd63f_0020, 0xd63f_091f, 0xd73f_0d09] {
            assert!(is_arm64_call(call), "{call:x}");
        }
        // b, br x1, ret, nop
        for other in [0x1400_0010, 0xd61f_0020, 0xd65f_03c0, 0xd503_201f] {
            assert!(!is_arm64_call(other), "{other:x}");
        }
    }
}
