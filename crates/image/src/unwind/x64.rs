//! From frame to frame on x64: native code of Linux by `.eh_frame`, all other code by its `UNWIND_INFO`.
//!
//! Windows has the latter for native code; ReadyToRun code and the JIT's have it on every system. goblin's and framehop's own
//! ways through it are not taken: they follow entries that lead back to each other without an end, trust the ends of
//! functions, and want a table where the JIT keeps an entry beside each method.

mod codes;
mod epilogue;

use super::{Break, Frame, FrameWalk, Rules, Unwinder};
use crate::bytes::prefix;
use crate::pe::Function;
use asynctriage_dump::{Addr, Memory, X64Registers};
use codes::{Info, Operation};
use epilogue::{Exit, Part};

/// Parts of one function that lead to one another.
const MAX_CHAIN: usize = 32;
/// The longest end of a function, in bytes.
const MAX_EPILOGUE: u64 = 64;
/// Bytes that hold every end of a function: eight registers, the stack pointer, and a jump.
const WHOLE_EPILOGUE: usize = 32;
/// Positions of registers among the general ones.
const RBX: usize = 3;
const RSP: usize = 4;
const RBP: usize = 5;
/// The registers that calls keep: the same on all systems but for rsi and rdi, which Windows adds.
const KEPT: u16 = 1 << RBX | 1 << RSP | 1 << RBP | 0xf000;
const KEPT_ON_WINDOWS: u16 = KEPT | 1 << 6 | 1 << 7;
/// Where an interrupted function's instruction and stack pointers stand in what the processor pushed.
const MACHINE_IP: u64 = 0;
const MACHINE_SP: u64 = 24;
/// DWARF numbers of the general registers, in the order of [`X64Registers::general`].
const DWARF: [u16; 16] = [0, 2, 1, 3, 7, 6, 4, 5, 8, 9, 10, 11, 12, 13, 14, 15];

/// The frames of one thread, innermost first; ends at the root, and where a step cannot be proved.
pub struct X64Frames<'u, 'm, F> {
    unwinder: &'u Unwinder<'m>,
    rules: F,
    registers: X64Registers,
    /// A bit per general register whose value is known.
    known: u16,
    /// Whether the instruction pointer is that of an interrupted function, not one that a call returns to.
    interrupted: bool,
    next: Option<Frame>,
    end: Option<Result<(), Break>>,
}

impl<F> std::fmt::Debug for X64Frames<'_, '_, F> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("X64Frames")
            .field("next", &self.next)
            .finish_non_exhaustive()
    }
}

impl<'u, 'm, F: Fn(Addr) -> Result<Rules, Break>> X64Frames<'u, 'm, F> {
    /// The frames of a thread with these registers. `rules` says how code at an address is left.
    pub fn new(unwinder: &'u Unwinder<'m>, registers: &X64Registers, rules: F) -> Self {
        let mut frames = Self {
            unwinder,
            rules,
            registers: registers.clone(),
            known: u16::MAX,
            interrupted: true,
            next: None,
            end: None,
        };
        frames.next = Some(frames.frame());
        frames
    }

    /// The frames from a function on that a call returns to, when only its stack and frame pointers (rsp and rbp) are
    /// known. The walk ends where a function has put its frame into another register.
    pub fn behind_call(unwinder: &'u Unwinder<'m>, ip: Addr, sp: Addr, fp: Addr, rules: F) -> Self {
        let mut registers = X64Registers {
            rip: ip.0,
            ..X64Registers::default()
        };
        for (register, value) in [(RSP, sp), (RBP, fp)] {
            if let Some(slot) = registers.general.get_mut(register) {
                *slot = value.0;
            }
        }
        let mut frames = Self {
            known: 1 << RSP | 1 << RBP,
            interrupted: false,
            ..Self::new(unwinder, &registers, rules)
        };
        frames.next = Some(frames.frame());
        frames
    }

    fn memory(&self) -> &'m dyn Memory {
        self.unwinder.memory
    }

    fn frame(&self) -> Frame {
        Frame {
            ip: Addr(self.registers.rip),
            sp: Addr(self.sp()),
            fp: self.get(5).map(Addr),
            is_proved: true,
            is_interrupted: self.interrupted,
        }
    }

    fn sp(&self) -> u64 {
        self.registers.general.get(RSP).copied().unwrap_or_default()
    }

    /// Makes the registers those of the caller; false when there is none.
    fn step(&mut self) -> Result<bool, Break> {
        let ip = Addr(self.registers.rip);
        let before = self.sp();
        let interrupted = std::mem::replace(&mut self.interrupted, false);
        // a call that never returns may be the last instruction of its function
        let at = if interrupted { ip } else { ip.back(1) };
        match (self.rules)(at)? {
            Rules::Codes(function) => {
                self.known &= KEPT_ON_WINDOWS;
                self.leave(function, at, interrupted)?;
            }
            Rules::Return if interrupted => self.pop_return()?,
            // whoever calls has an entry
            Rules::Return => return Err(Break::NoEntry),
            Rules::EhFrame => {
                if !self.leave_by_row(at)? {
                    return Ok(false);
                }
                // such code says so when it has no caller
                if self.registers.rip == 0 {
                    return Err(Break::NotCode);
                }
            }
        }
        // a caller's part of the stack lies above; what leads back would lead around for ever
        if self.sp() <= before || self.sp() & 7 != 0 {
            return Err(Break::NotUpwards);
        }
        // the system leaves a null where the first function would return to
        Ok(self.registers.rip != 0)
    }

    /// Leaves a function of an ELF image.
    fn leave_by_row(&mut self, at: Addr) -> Result<bool, Break> {
        let register = |dwarf: u16| {
            let position = DWARF.iter().position(|d| *d == dwarf)?;
            self.get(u8::try_from(position).ok()?)
        };
        let caller = self.unwinder.leave(at, false, &register)?;
        self.known &= KEPT;
        self.set(RSP, caller.sp);
        for (dwarf, value) in &caller.saved {
            let position = DWARF.iter().position(|d| d == dwarf);
            match (position, value) {
                (Some(position), Some(value)) => self.set(position, *value),
                (Some(position), None) => self.known &= !(1 << (position & 15)),
                (None, _) => {}
            }
        }
        self.interrupted = caller.is_interrupted;
        self.registers.rip = caller.ip.unwrap_or(0);
        Ok(caller.ip.is_some())
    }

    fn pop_return(&mut self) -> Result<(), Break> {
        self.registers.rip = self.pop()?;
        Ok(())
    }

    fn read(&self, at: u64) -> Result<u64, Break> {
        self.memory().u64(Addr(at)).ok_or(Break::NoStack(Addr(at)))
    }

    fn pop(&mut self) -> Result<u64, Break> {
        let at = self.sp();
        let value = self.read(at)?;
        self.set(RSP, at.wrapping_add(8));
        Ok(value)
    }

    /// `None` when nothing has told the register's value yet.
    fn get(&self, register: u8) -> Option<u64> {
        let is_known = self.known.checked_shr(register.into())? & 1 != 0;
        let value = self.registers.general.get(usize::from(register));
        value.copied().filter(|_| is_known)
    }

    fn set(&mut self, register: usize, value: u64) {
        if let Some(slot) = self.registers.general.get_mut(register) {
            *slot = value;
            self.known |= 1 << (register & 15);
        }
    }

    fn leave(&mut self, function: Function, at: Addr, interrupted: bool) -> Result<(), Break> {
        let rva = at.since(function.base).and_then(|d| u32::try_from(d).ok());
        let rva = rva.ok_or(Break::BadEntry)?;
        let mut part = function.direct(self.memory()).ok_or(Break::NoTable)?;
        let bottom = self.sp();
        for index in 0..MAX_CHAIN {
            let info = Info::of(self.memory(), &part).ok_or(Break::NoTable)?;
            let is_first = index == 0;
            if is_first && interrupted && self.finish(&part, &info, rva)? {
                return Ok(());
            }
            // of a function that was interrupted in its first instructions, what they have done so far
            let done = is_first.then(|| rva.wrapping_sub(part.begin));
            if self.undo(&info, bottom, done)? {
                return Ok(());
            }
            let Some([begin, end, unwind]) = info.chained else {
                return self.pop_return();
            };
            let next = Function {
                base: part.base,
                begin,
                end,
                unwind,
            };
            part = next.direct(self.memory()).ok_or(Break::NoTable)?;
        }
        Err(Break::BadEntry)
    }

    /// Does what is left when the function was interrupted in its last instructions; false when it was not.
    fn finish(&mut self, part: &Function, info: &Info, rva: u32) -> Result<bool, Break> {
        if rva.wrapping_sub(part.begin) < u32::from(info.prologue) {
            return Ok(false);
        }
        let left = u64::from(part.end.saturating_sub(rva)).min(MAX_EPILOGUE);
        let code = prefix(self.memory(), part.base + u64::from(rva), left);
        let Some((parts, exit)) = epilogue::read(&code, info.frame_register) else {
            // no end begins here, unless it lies where the dump has nothing
            let is_cut = (code.len() as u64) < left && code.len() < WHOLE_EPILOGUE;
            return if is_cut {
                Err(Break::NoCode)
            } else {
                Ok(false)
            };
        };
        if let Exit::Jump(distance) = exit
            && !self.is_exit(part, rva, distance, !parts.is_empty())
        {
            return Ok(false);
        }
        for step in parts {
            match step {
                Part::Add(bytes) => self.set(RSP, self.sp().wrapping_add_signed(bytes)),
                Part::FromFrame(bytes) => {
                    let frame = self.get(info.frame_register);
                    let frame = frame.ok_or(Break::UnknownRegister)?;
                    self.set(RSP, frame.wrapping_add_signed(bytes));
                }
                Part::Pop(register) => {
                    let value = self.pop()?;
                    self.set(usize::from(register), value);
                }
            }
        }
        self.pop_return().map(|()| true)
    }

    /// Whether a jump leaves the function, instead of going on in another part of it.
    fn is_exit(&self, part: &Function, rva: u32, distance: i64, has_popped: bool) -> bool {
        let target = i64::from(rva).checked_add(distance);
        let Some(target) = target.and_then(|t| u32::try_from(t).ok()) else {
            // far away
            return true;
        };
        if part.contains(target) {
            return false;
        }
        has_popped || {
            let other = (self.rules)(part.base + u64::from(target));
            let Ok(Rules::Codes(other)) = other else {
                return true;
            };
            let info = Info::of(self.memory(), &other);
            other.begin == target && info.is_some_and(|i| i.chained.is_none())
        }
    }

    /// Undoes what the first instructions of a function did to the stack; `done` is how far they were executed, all of
    /// them when it is `None`. True when what the processor pushed was reached, and with it the caller's pointers.
    fn undo(&mut self, info: &Info, bottom: u64, done: Option<u32>) -> Result<bool, Break> {
        let is_done = |behind: u8| done.is_none_or(|d| u32::from(behind) <= d);
        let mut sets = info.codes.iter();
        let has_frame = info.frame_register != 0
            && sets.all(|c| c.operation != Operation::SetFrame || is_done(c.behind));
        let frame = if has_frame {
            let register = self.get(info.frame_register);
            let register = register.ok_or(Break::UnknownRegister)?;
            register.wrapping_sub(info.frame_offset.into())
        } else {
            bottom
        };
        for code in info.codes.iter().filter(|c| is_done(c.behind)) {
            match code.operation {
                Operation::Push(register) => {
                    let value = self.pop()?;
                    self.set(usize::from(register), value);
                }
                Operation::Allocate(bytes) => {
                    self.set(RSP, self.sp().wrapping_add(bytes.into()));
                }
                Operation::SetFrame => self.set(RSP, frame),
                Operation::Save(register, offset) => {
                    let value = self.read(frame.wrapping_add(offset.into()))?;
                    self.set(usize::from(register), value);
                }
                Operation::MachineFrame(has_error_code) => {
                    return self.pop_machine_frame(has_error_code).map(|()| true);
                }
                // nobody is asked for the others; the ends of functions are recognised by themselves
                Operation::Other => {}
            }
        }
        Ok(false)
    }

    fn pop_machine_frame(&mut self, has_error_code: bool) -> Result<(), Break> {
        let at = self
            .sp()
            .wrapping_add(u64::from(has_error_code).wrapping_mul(8));
        self.registers.rip = self.read(at.wrapping_add(MACHINE_IP))?;
        let sp = self.read(at.wrapping_add(MACHINE_SP))?;
        self.set(RSP, sp);
        self.interrupted = true;
        Ok(())
    }
}

impl<F: Fn(Addr) -> Result<Rules, Break>> FrameWalk for X64Frames<'_, '_, F> {
    fn end(&self) -> Option<Result<(), Break>> {
        self.end
    }
}

impl<F: Fn(Addr) -> Result<Rules, Break>> Iterator for X64Frames<'_, '_, F> {
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

#[cfg(test)]
mod tests;
