//! From frame to frame on arm64: native code of Linux by `.eh_frame`, code of no image by its frame pointers, which the
//! JIT keeps there.

use super::{Break, Frame, FrameWalk, Unwinder};
use asynctriage_dump::{Addr, Arm64Registers};

/// DWARF numbers of registers.
const FP: u16 = 29;
const LINK: u16 = 30;
const SP: u16 = 31;
/// The registers that calls keep: x19 to x29, and the stack pointer.
const KEPT: std::ops::RangeInclusive<u16> = 19..=29;

/// The frames of one thread, innermost first; ends at the root, and where tables or stack are missing.
pub struct Arm64Frames<'u, 'm> {
    unwinder: &'u Unwinder<'m>,
    /// x0 to x30 and the stack pointer, as far as they are known.
    registers: [Option<u64>; 32],
    pc: u64,
    interrupted: bool,
    next: Option<Frame>,
    end: Option<Result<(), Break>>,
}

impl std::fmt::Debug for Arm64Frames<'_, '_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Arm64Frames")
            .field("next", &self.next)
            .finish_non_exhaustive()
    }
}

impl<'u, 'm> Arm64Frames<'u, 'm> {
    /// The frames of a thread with these registers.
    #[must_use]
    pub fn new(unwinder: &'u Unwinder<'m>, registers: &Arm64Registers) -> Self {
        let mut all = [None; 32];
        let values = registers.x.iter().copied().chain([registers.sp]);
        for (slot, value) in all.iter_mut().zip(values) {
            *slot = Some(value);
        }
        let mut frames = Self {
            unwinder,
            registers: all,
            pc: registers.pc,
            interrupted: true,
            next: None,
            end: None,
        };
        frames.next = Some(frames.frame());
        frames
    }

    fn get(&self, register: u16) -> Option<u64> {
        self.registers.get(usize::from(register)).copied().flatten()
    }

    fn set(&mut self, register: u16, value: Option<u64>) {
        if let Some(slot) = self.registers.get_mut(usize::from(register)) {
            *slot = value;
        }
    }

    fn frame(&self) -> Frame {
        Frame {
            ip: Addr(self.pc),
            sp: Addr(self.get(SP).unwrap_or_default()),
            fp: self.get(FP).map(Addr),
            is_interrupted: self.interrupted,
        }
    }

    /// Makes the registers those of the caller; false when there is none.
    fn step(&mut self) -> Result<bool, Break> {
        let interrupted = std::mem::replace(&mut self.interrupted, false);
        let before = self.get(SP);
        let at = if interrupted {
            Addr(self.pc)
        } else {
            Addr(self.pc).back(1)
        };
        let ip = if self.unwinder.covers(at) {
            self.leave_by_row(at)?
        } else {
            Some(self.leave_by_pointer()?)
        };
        let ip = ip
            .map(|ip| ip & self.unwinder.code_mask)
            .filter(|ip| *ip != 0);
        let Some(ip) = ip else {
            return Ok(false);
        };
        // a function that takes no stack leaves it as it is
        if self.get(SP) < before || (self.get(SP) == before && ip == self.pc) {
            return Err(Break::NotUpwards);
        }
        self.pc = ip;
        Ok(true)
    }

    fn leave_by_row(&mut self, at: Addr) -> Result<Option<u64>, Break> {
        let caller = self
            .unwinder
            .leave(at, true, &|register| self.get(register))?;
        for register in (0..32).filter(|r| !KEPT.contains(r)) {
            self.set(register, None);
        }
        self.set(SP, Some(caller.sp));
        for (register, value) in &caller.saved {
            self.set(*register, *value);
        }
        self.interrupted = caller.is_interrupted;
        Ok(caller.ip)
    }

    fn leave_by_pointer(&mut self) -> Result<u64, Break> {
        let at = self.get(FP).ok_or(Break::UnknownRegister)?;
        let read = |at: u64| {
            let value = self.unwinder.memory.u64(Addr(at));
            value.ok_or(Break::NoStack(Addr(at)))
        };
        let (fp, ip) = (read(at)?, read(at.wrapping_add(8))?);
        self.registers = [None; 32];
        self.set(FP, Some(fp));
        self.set(SP, Some(at.wrapping_add(16)));
        self.set(LINK, Some(ip));
        Ok(ip)
    }
}

impl FrameWalk for Arm64Frames<'_, '_> {
    fn end(&self) -> Option<Result<(), Break>> {
        self.end
    }
}

impl Iterator for Arm64Frames<'_, '_> {
    type Item = Frame;

    fn next(&mut self) -> Option<Frame> {
        let frame = self.next.take()?;
        match self.step() {
            Ok(true) => self.next = Some(self.frame()),
            Ok(false) => self.end = Some(Ok(())),
            Err(why) => self.end = Some(Err(why)),
        }
        Some(frame)
    }
}
