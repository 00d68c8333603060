//! Out of functions of arm64 by Windows' unwind information (`.pdata` and `.xdata`), which ReadyToRun code and the
//! JIT's have on every system.
//!
//! An entry is the begin of a function and a word: the distance of its codes, or the usual instructions in packed form.

mod codes;
mod packed;

use crate::bytes::prefix;
use asynctriage_dump::{Addr, Memory};
use codes::{FIRST_KEPT, FP, LINK, SP, Sequence, Undo};
use packed::Packed;

/// The two low bits of the word: the rest is a distance, or packed.
const FORM: u32 = 3;
const DISTANCE: u32 = 0;
const PACKED: [u32; 2] = [1, 2];
/// Bytes of an instruction.
const INSTRUCTION: u32 = 4;
/// The largest number of words of codes, and of ends.
const MAX_ENDS: u32 = 0xffff;
const MAX_WORDS: u32 = 0xff;
/// The bits of a length or a place, in instructions.
const LENGTH: u32 = 0x3_ffff;
/// Where an interrupted function's stack and instruction pointers stand in what the processor pushed.
const MACHINE_SP: u64 = 0;
const MACHINE_IP: u64 = 8;

/// A function, or a part of one that stands apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arm64Function {
    /// What numbers are counted from: the load address of the image, or the begin of the JIT's code.
    pub base: Addr,
    /// The first instruction.
    pub begin: u32,
    /// The distance of the unwind information, or the information itself.
    pub unwind: u32,
}

/// Why a function cannot be left.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum Arm64Error {
    /// The unwind information is not in the dump.
    #[error("its unwind information is not in the dump")]
    NoTable,
    /// The unwind information is malformed, or of a kind that a dump does not suffice for.
    #[error("its unwind information cannot be followed")]
    BadEntry,
    /// A word of the stack is not in the dump.
    #[error("the dump lacks its stack at {0}")]
    NoStack(Addr),
    /// It needs a register that nothing has told.
    #[error("a register that it needs is not known")]
    UnknownRegister,
}

/// x0 to x30 and the stack pointer, as far as they are known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Arm64State {
    registers: [Option<u64>; 32],
}

/// How a function was left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Left {
    /// Where its caller goes on.
    pub ip: u64,
    /// Whether the caller did not call but was interrupted there.
    pub is_interrupted: bool,
}

impl Arm64State {
    /// A register by its number; 31 is the stack pointer.
    #[must_use]
    pub fn get(&self, register: u8) -> Option<u64> {
        self.registers.get(usize::from(register)).copied().flatten()
    }

    /// Sets a register by its number; 31 is the stack pointer.
    pub fn set(&mut self, register: u8, value: Option<u64>) {
        if let Some(slot) = self.registers.get_mut(usize::from(register)) {
            *slot = value;
        }
    }

    fn need(&self, register: u8) -> Result<u64, Arm64Error> {
        self.get(register).ok_or(Arm64Error::UnknownRegister)
    }
}

/// What of a function counts at one of its instructions.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Information {
    /// Bytes of the function.
    length: u32,
    prologue: Sequence,
    /// The last of its ends that begins at or before the instruction: where, and what its instructions undo.
    end: Option<(u32, Sequence)>,
}

impl Arm64Function {
    /// Bytes of an entry.
    pub const SIZE: u64 = 8;

    /// The entry at an address; `None` when the dump lacks it.
    #[must_use]
    pub fn read(memory: &dyn Memory, base: Addr, at: Addr) -> Option<Self> {
        Some(Self {
            base,
            begin: memory.u32(at)?,
            unwind: memory.u32(at + 4)?,
        })
    }

    /// Bytes of the function; `None` when the dump lacks its unwind information.
    #[must_use]
    pub fn length(&self, memory: &dyn Memory) -> Option<u32> {
        if PACKED.contains(&(self.unwind & FORM)) {
            return Some(Packed::new(self.unwind).length);
        }
        let header = memory.u32(self.base + u64::from(self.unwind))?;
        Some((header & LENGTH).saturating_mul(INSTRUCTION))
    }

    /// Makes the registers those of the caller. `ip` is where the function was interrupted, or where a call in it
    /// returns to.
    ///
    /// # Errors
    /// [`Arm64Error`] when it is not known how; the registers are of no use then.
    pub fn leave(
        &self,
        memory: &dyn Memory,
        ip: Addr,
        is_interrupted: bool,
        state: &mut Arm64State,
    ) -> Result<Left, Arm64Error> {
        let offset = ip
            .since(self.base + u64::from(self.begin))
            .and_then(|o| u32::try_from(o).ok())
            .ok_or(Arm64Error::BadEntry)?;
        let information = self.information(memory, offset)?;
        if offset > information.length {
            return Err(Arm64Error::BadEntry);
        }
        let mut left = Left {
            ip: 0,
            is_interrupted: false,
        };
        let mut machine_ip = None;
        for undo in information.at(offset, is_interrupted) {
            match undo {
                Undo::Interrupted => left.is_interrupted = true,
                Undo::MachineFrame => {
                    left.is_interrupted = true;
                    machine_ip = Some(pop_machine_frame(memory, state)?);
                }
                _ => apply(undo, memory, state)?,
            }
        }
        left.ip = match machine_ip {
            Some(ip) => ip,
            None => state.need(LINK)?,
        };
        for register in (0..FIRST_KEPT).chain([LINK]) {
            state.set(register, None);
        }
        Ok(left)
    }

    fn information(&self, memory: &dyn Memory, offset: u32) -> Result<Information, Arm64Error> {
        match self.unwind & FORM {
            DISTANCE => self.unpacked(memory, offset),
            form if PACKED.contains(&form) => {
                let packed = Packed::new(self.unwind);
                let ends = packed.ends().ok_or(Arm64Error::BadEntry)?;
                let end = ends.epilogue.map(Sequence::all_own);
                Ok(Information {
                    length: packed.length,
                    prologue: ends.prologue,
                    end: end.and_then(|e| last_end(packed.length, e)),
                })
            }
            _ => Err(Arm64Error::BadEntry),
        }
    }

    fn unpacked(&self, memory: &dyn Memory, offset: u32) -> Result<Information, Arm64Error> {
        let mut at = self.base + u64::from(self.unwind);
        let mut word = || {
            let word = memory.u32(at).ok_or(Arm64Error::NoTable);
            at = at + 4;
            word
        };
        let header = Header::new(&mut word)?;
        // where an end begins, and where its codes do
        let mut scope: Option<(u32, u32)> = None;
        if !header.has_one_end {
            for _ in 0..header.ends {
                let word = word()?;
                let begin = (word & LENGTH).saturating_mul(INSTRUCTION);
                if begin <= offset && scope.is_none_or(|(last, _)| last <= begin) {
                    scope = Some((begin, word >> 22));
                }
            }
        }
        let size = header.words.saturating_mul(4);
        let bytes = prefix(memory, at, size.into());
        if bytes.len() < size as usize {
            return Err(Arm64Error::NoTable);
        }
        let sequence = |from: u32| {
            let part = bytes.get(from as usize..).unwrap_or_default();
            codes::read(part).ok_or(Arm64Error::BadEntry)
        };
        let end = match scope {
            _ if header.has_one_end => last_end(header.length, sequence(header.ends)?),
            Some((begin, from)) => Some((begin, sequence(from)?)),
            None => None,
        };
        Ok(Information {
            length: header.length,
            prologue: sequence(0)?,
            end,
        })
    }
}

/// The place of an end whose return is the last instruction of the function.
fn last_end(length: u32, codes: Sequence) -> Option<(u32, Sequence)> {
    let bytes = codes
        .instructions()
        .saturating_add(1)
        .saturating_mul(INSTRUCTION);
    Some((length.checked_sub(bytes)?, codes))
}

/// The first word or two of unwind information.
struct Header {
    length: u32,
    /// Whether the one end stands last, and `ends` is where its codes begin.
    has_one_end: bool,
    ends: u32,
    words: u32,
}

impl Header {
    fn new(word: &mut impl FnMut() -> Result<u32, Arm64Error>) -> Result<Self, Arm64Error> {
        let first = word()?;
        let (mut ends, mut words) = (first >> 22 & 31, first >> 27);
        if ends == 0 && words == 0 {
            let further = word()?;
            (ends, words) = (further & MAX_ENDS, further >> 16 & MAX_WORDS);
        }
        // of the versions of the format there is but one
        if first >> 18 & 3 != 0 {
            return Err(Arm64Error::BadEntry);
        }
        Ok(Self {
            length: (first & LENGTH).saturating_mul(INSTRUCTION),
            has_one_end: first >> 21 & 1 != 0,
            ends,
            words,
        })
    }
}

impl Information {
    /// What is to be undone at an instruction.
    fn at(&self, offset: u32, is_interrupted: bool) -> impl Iterator<Item = Undo> + '_ {
        let done = offset.checked_div(INSTRUCTION).unwrap_or(0);
        let begun = self.prologue.instructions().saturating_sub(done);
        let end = self.end.as_ref().filter(|(begin, codes)| {
            let bytes = codes.instructions().saturating_mul(INSTRUCTION);
            // a call does not return into an end behind its first instruction
            is_interrupted && begun == 0 && offset.saturating_sub(*begin) <= bytes
        });
        let (codes, skip) = match end {
            // instructions of the end that are done need not be undone
            Some((begin, codes)) => {
                let done = offset.saturating_sub(*begin).checked_div(INSTRUCTION);
                (codes, done.unwrap_or(0))
            }
            // nor those of the begin that are still to come
            None => (&self.prologue, begun),
        };
        codes.codes.iter().skip(skip as usize).copied()
    }
}

fn apply(undo: Undo, memory: &dyn Memory, state: &mut Arm64State) -> Result<(), Arm64Error> {
    match undo {
        Undo::Free(bytes) => {
            let sp = state.need(SP)?;
            state.set(SP, Some(sp.wrapping_add(bytes.into())));
        }
        Undo::FromFrame(bytes) => {
            let fp = state.need(FP)?;
            state.set(SP, Some(fp.wrapping_sub(bytes.into())));
        }
        Undo::Load {
            registers,
            at,
            then,
        } => {
            let sp = state.need(SP)?;
            let slots = (0..)
                .step_by(8)
                .map(|i| sp.wrapping_add(at.into()).wrapping_add(i));
            for (register, slot) in registers.into_iter().zip(slots) {
                let Some(register) = register else { continue };
                if register > LINK {
                    return Err(Arm64Error::BadEntry);
                }
                let value = memory
                    .u64(Addr(slot))
                    .ok_or(Arm64Error::NoStack(Addr(slot)))?;
                state.set(register, Some(value));
            }
            state.set(SP, Some(sp.wrapping_add(then.into())));
        }
        Undo::Nothing => {}
        Undo::Unknown | Undo::MachineFrame | Undo::Interrupted => return Err(Arm64Error::BadEntry),
    }
    Ok(())
}

fn pop_machine_frame(memory: &dyn Memory, state: &mut Arm64State) -> Result<u64, Arm64Error> {
    let sp = state.need(SP)?;
    let read = |distance: u64| {
        let slot = Addr(sp.wrapping_add(distance));
        memory.u64(slot).ok_or(Arm64Error::NoStack(slot))
    };
    let (above, ip) = (read(MACHINE_SP)?, read(MACHINE_IP)?);
    state.set(SP, Some(above));
    Ok(ip)
}

#[cfg(test)]
mod tests;
