//! Out of functions of x64 Windows, by their `UNWIND_INFO`: native code, ReadyToRun code and the JIT's.
//!
//! goblin decodes it. framehop's own way through it is not taken: it follows entries that lead back to each other without
//! an end, trusts the ends of functions, and wants a table where the JIT keeps an entry beside each method.

use super::epilogue::{self, Exit, Part};
use super::{Frame, FrameWalk};
use crate::bytes::prefix;
use crate::pe::{Covering, Function};
use asynctriage_dump::{Addr, Memory, X64Registers};
use goblin::pe::exception::{StackFrameOffset, UnwindCode, UnwindInfo, UnwindOperation};

/// Parts of one function that lead to one another.
const MAX_CHAIN: usize = 32;
/// The longest `UNWIND_INFO` up to the entry that it leads to: 255 codes, and one for alignment.
const MAX_INFO: u64 = 4 + 256 * 2 + 12;
/// The longest end of a function, in bytes.
const MAX_EPILOGUE: u64 = 64;
/// Positions of rsp and rbp among the registers.
const RSP: usize = 4;
const RBP: usize = 5;
/// Where an interrupted function's instruction and stack pointers stand in what the processor pushed.
const MACHINE_IP: u64 = 0;
const MACHINE_SP: u64 = 24;

/// The frames of one thread, innermost first; ends at the root, and where tables or stack are missing.
pub struct WindowsFrames<'m, F> {
    memory: &'m dyn Memory,
    covering: F,
    registers: X64Registers,
    /// A bit per general register whose value is known.
    known: u16,
    /// Whether the instruction pointer is that of an interrupted function, not one that a call returns to.
    interrupted: bool,
    next: Option<Frame>,
    root: bool,
}

impl<F> std::fmt::Debug for WindowsFrames<'_, F> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WindowsFrames")
            .field("next", &self.next)
            .finish_non_exhaustive()
    }
}

impl<'m, F: Fn(Addr) -> Option<Covering>> WindowsFrames<'m, F> {
    /// The frames of a thread with these registers. `covering` says what has the instruction at an address; `None` where
    /// that is not known.
    pub fn new(memory: &'m dyn Memory, registers: &X64Registers, covering: F) -> Self {
        let mut frames = Self {
            memory,
            covering,
            registers: registers.clone(),
            known: u16::MAX,
            interrupted: true,
            next: None,
            root: false,
        };
        frames.next = Some(frames.frame());
        frames
    }

    /// The frames from a function on that a call returns to, when only its stack and frame pointers (rsp and rbp) are
    /// known. The walk ends where a function has put its frame into another register.
    pub fn behind_call(memory: &'m dyn Memory, ip: Addr, sp: Addr, fp: Addr, covering: F) -> Self {
        let mut registers = X64Registers {
            rip: ip.0,
            ..X64Registers::default()
        };
        for (register, value) in [(RSP, sp), (RBP, fp)] {
            if let Some(slot) = registers.general.get_mut(register) {
                *slot = value.0;
            }
        }
        Self {
            known: 1 << RSP | 1 << RBP,
            interrupted: false,
            ..Self::new(memory, &registers, covering)
        }
    }

    fn frame(&self) -> Frame {
        Frame {
            ip: Addr(self.registers.rip),
            sp: Addr(self.sp()),
        }
    }

    fn sp(&self) -> u64 {
        self.registers.general.get(RSP).copied().unwrap_or_default()
    }

    /// Makes the registers those of the caller.
    fn step(&mut self) -> Option<()> {
        let ip = Addr(self.registers.rip);
        let before = self.sp();
        let interrupted = std::mem::replace(&mut self.interrupted, false);
        // a call that never returns may be the last instruction of its function
        let at = if interrupted { ip } else { ip.back(1) };
        match (self.covering)(at)? {
            Covering::Function(function) => self.leave(function, at, interrupted)?,
            // whoever calls has an entry
            Covering::Nothing if interrupted => self.pop_return()?,
            Covering::Nothing => return None,
        }
        // a caller's part of the stack lies above; what leads back would lead around for ever
        (self.sp() > before && self.sp() & 7 == 0).then_some(())
    }

    fn pop_return(&mut self) -> Option<()> {
        self.registers.rip = self.pop()?;
        Some(())
    }

    fn pop(&mut self) -> Option<u64> {
        let at = self.sp();
        let value = self.memory.u64(Addr(at))?;
        self.set(RSP, at.wrapping_add(8));
        Some(value)
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

    fn leave(&mut self, function: Function, at: Addr, interrupted: bool) -> Option<()> {
        let rva = u32::try_from(at.since(function.base)?).ok()?;
        let mut part = function.direct(self.memory)?;
        let bottom = self.sp();
        for index in 0..MAX_CHAIN {
            let bytes = prefix(self.memory, part.base + u64::from(part.unwind), MAX_INFO);
            let info = UnwindInfo::parse(&bytes, 0).ok()?;
            let is_first = index == 0;
            if is_first && interrupted && self.finish(&part, &info, rva)? {
                return Some(());
            }
            // of a function that was interrupted in its first instructions, what they have done so far
            let done = is_first.then(|| rva.wrapping_sub(part.begin));
            if self.undo(&info, bottom, done)? {
                return Some(());
            }
            let Some(next) = info.chained_info else {
                return self.pop_return();
            };
            let next = Function {
                base: part.base,
                begin: next.begin_address,
                end: next.end_address,
                unwind: next.unwind_info_address,
            };
            part = next.direct(self.memory)?;
        }
        None
    }

    /// Does what is left when the function was interrupted in its last instructions; false when it was not.
    fn finish(&mut self, part: &Function, info: &UnwindInfo<'_>, rva: u32) -> Option<bool> {
        let left = u64::from(part.end.saturating_sub(rva)).min(MAX_EPILOGUE);
        let code = prefix(self.memory, part.base + u64::from(rva), left);
        let Some((parts, exit)) = epilogue::read(&code, info.frame_register.0) else {
            return Some(false);
        };
        if let Exit::Jump(distance) = exit
            && !self.is_exit(part, rva, distance, !parts.is_empty())
        {
            return Some(false);
        }
        for step in parts {
            match step {
                Part::Add(bytes) => self.set(RSP, self.sp().wrapping_add_signed(bytes)),
                Part::FromFrame(bytes) => {
                    let frame = self.get(info.frame_register.0)?;
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
            let other = (self.covering)(part.base + u64::from(target));
            let Some(Covering::Function(other)) = other else {
                return true;
            };
            let info = prefix(self.memory, other.base + u64::from(other.unwind), MAX_INFO);
            let info = UnwindInfo::parse(&info, 0);
            other.begin == target && info.is_ok_and(|i| i.chained_info.is_none())
        }
    }

    /// Undoes what the first instructions of a function did to the stack; `done` is how far they were executed, all of
    /// them when it is `None`. True when what the processor pushed was reached, and with it the caller's pointers.
    fn undo(&mut self, info: &UnwindInfo<'_>, bottom: u64, done: Option<u32>) -> Option<bool> {
        let codes: Vec<UnwindCode> = info.unwind_codes().collect::<Result<_, _>>().ok()?;
        let is_done = |code: &UnwindCode| done.is_none_or(|d| u32::from(code.code_offset) <= d);
        let has_frame = info.frame_register.0 != 0 && {
            let mut sets = codes
                .iter()
                .filter(|c| c.operation == UnwindOperation::SetFPRegister);
            sets.all(is_done)
        };
        let frame = if has_frame {
            let offset = u64::from(info.frame_register_offset);
            self.get(info.frame_register.0)?.wrapping_sub(offset)
        } else {
            bottom
        };
        for code in codes.iter().filter(|c| is_done(c)) {
            match code.operation {
                UnwindOperation::PushNonVolatile(register) => {
                    let value = self.pop()?;
                    self.set(usize::from(register.0), value);
                }
                UnwindOperation::Alloc(bytes) => {
                    self.set(RSP, self.sp().wrapping_add(bytes.into()));
                }
                UnwindOperation::SetFPRegister => self.set(RSP, frame),
                UnwindOperation::SaveNonVolatile(
                    register,
                    StackFrameOffset::RSP(offset) | StackFrameOffset::FP(offset),
                ) => {
                    let value = self.memory.u64(Addr(frame.wrapping_add(offset.into())))?;
                    self.set(usize::from(register.0), value);
                }
                UnwindOperation::PushMachineFrame(has_error_code) => {
                    return self.pop_machine_frame(has_error_code).map(|()| true);
                }
                // nobody is asked for the others; the ends of functions are recognised by themselves
                _ => {}
            }
        }
        Some(false)
    }

    fn pop_machine_frame(&mut self, has_error_code: bool) -> Option<()> {
        let at = Addr(self.sp()) + u64::from(has_error_code).wrapping_mul(8);
        self.registers.rip = self.memory.u64(at + MACHINE_IP)?;
        let sp = self.memory.u64(at + MACHINE_SP)?;
        self.set(RSP, sp);
        self.interrupted = true;
        Some(())
    }
}

impl<F: Fn(Addr) -> Option<Covering>> FrameWalk for WindowsFrames<'_, F> {
    fn reached_root(&self) -> bool {
        self.root
    }
}

impl<F: Fn(Addr) -> Option<Covering>> Iterator for WindowsFrames<'_, F> {
    type Item = Frame;

    fn next(&mut self) -> Option<Frame> {
        let frame = self.next.take()?;
        if self.step().is_some() {
            // the system leaves a null where the first function would return to
            self.root = self.registers.rip == 0;
            self.next = (!self.root).then(|| self.frame());
        }
        Some(frame)
    }
}

#[cfg(test)]
mod tests;
