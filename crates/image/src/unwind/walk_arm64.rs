//! From frame to frame on arm64: native code of Linux by `.eh_frame`, managed code by its unwind codes. Where a dump lacks
//! those, by the frame pointers that managed code keeps there; what lies behind such a step is not proved.

use super::{Arm64Function, Arm64State, Break, Frame, FrameWalk, Unwinder};
use asynctriage_dump::{Addr, Arm64Registers};

/// DWARF numbers of registers.
const FP: u16 = 29;
const LINK: u16 = 30;
const SP: u16 = 31;
/// The registers that calls keep: x19 to x29, and the stack pointer.
const KEPT: std::ops::RangeInclusive<u16> = 19..=29;

/// The frames of one thread, innermost first; ends at the root, and where tables or stack are missing.
pub struct Arm64Frames<'u, 'm, F> {
    unwinder: &'u Unwinder<'m>,
    function: F,
    /// x0 to x30 and the stack pointer, as far as they are known.
    registers: [Option<u64>; 32],
    pc: u64,
    is_proved: bool,
    interrupted: bool,
    next: Option<Frame>,
    end: Option<Result<(), Break>>,
}

impl<F> std::fmt::Debug for Arm64Frames<'_, '_, F> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Arm64Frames")
            .field("next", &self.next)
            .finish_non_exhaustive()
    }
}

impl<'u, 'm, F: Fn(Addr) -> Option<Arm64Function>> Arm64Frames<'u, 'm, F> {
    /// The frames of a thread with these registers. `function` says which function managed code at an address belongs
    /// to; `None` where that is not known.
    pub fn new(unwinder: &'u Unwinder<'m>, registers: &Arm64Registers, function: F) -> Self {
        let mut all = [None; 32];
        let values = registers.x.iter().copied().chain([registers.sp]);
        for (slot, value) in all.iter_mut().zip(values) {
            *slot = Some(value);
        }
        let mut frames = Self {
            unwinder,
            function,
            registers: all,
            pc: registers.pc,
            is_proved: true,
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
            is_proved: self.is_proved,
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
        } else if let Some(ip) = self.leave_by_codes(at, interrupted) {
            Some(ip)
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

    fn leave_by_codes(&mut self, at: Addr, interrupted: bool) -> Option<u64> {
        let function = (self.function)(at)?;
        let mut state = Arm64State::default();
        for (number, value) in (0_u8..).zip(self.registers) {
            state.set(number, value);
        }
        let memory = self.unwinder.memory;
        let left = function.leave(memory, Addr(self.pc), interrupted, &mut state);
        let left = left.ok()?;
        for (number, slot) in (0_u8..).zip(&mut self.registers) {
            *slot = state.get(number);
        }
        self.interrupted = left.is_interrupted;
        Some(left.ip)
    }

    fn leave_by_pointer(&mut self) -> Result<u64, Break> {
        let at = self.get(FP).ok_or(Break::UnknownRegister)?;
        let read = |at: u64| {
            let value = self.unwinder.memory.u64(Addr(at));
            value.ok_or(Break::NoStack(Addr(at)))
        };
        let (fp, ip) = (read(at)?, read(at.wrapping_add(8))?);
        self.is_proved = false;
        self.registers = [None; 32];
        self.set(FP, Some(fp));
        self.set(SP, Some(at.wrapping_add(16)));
        self.set(LINK, Some(ip));
        Ok(ip)
    }
}

impl<F: Fn(Addr) -> Option<Arm64Function>> FrameWalk for Arm64Frames<'_, '_, F> {
    fn end(&self) -> Option<Result<(), Break>> {
        self.end
    }
}

impl<F: Fn(Addr) -> Option<Arm64Function>> Iterator for Arm64Frames<'_, '_, F> {
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
