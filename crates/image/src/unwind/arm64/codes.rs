//! The codes of arm64's unwind information: what each instruction of a function's begin did to stack and registers.
//!
//! They stand in the order in which they are undone. Nearly every code stands for one instruction, so that of a function
//! that was interrupted in its first or last instructions those that count can be told.

/// Position of the stack pointer behind x0 to x30.
pub(super) const SP: u8 = 31;
/// x29 and x30: the frame pointer and the link register.
pub(super) const FP: u8 = 29;
pub(super) const LINK: u8 = 30;
/// The first of the registers that calls keep.
pub(super) const FIRST_KEPT: u8 = 19;

/// What undoes an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Undo {
    /// The stack pointer grows.
    Free(u32),
    /// The stack pointer stands so many bytes below the frame pointer.
    FromFrame(u32),
    /// Registers are read at the stack pointer and `at`, and the stack pointer grows by `then`.
    Load {
        /// One or two registers; none for those that hold floating-point numbers.
        registers: [Option<u8>; 2],
        at: u32,
        then: u32,
    },
    /// The processor left stack pointer and instruction pointer on the stack.
    MachineFrame,
    /// Above this the instruction pointer is not one that a call returns to.
    Interrupted,
    /// Nothing that matters here.
    Nothing,
    /// What cannot be undone from a dump: its size depends on the processor, or it is not known.
    Unknown,
}

/// The codes of one sequence.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Sequence {
    /// In the order in which they are undone.
    pub(super) codes: Vec<Undo>,
    /// How many of them stand for instructions of this part of the function; those of its host follow.
    pub(super) own: usize,
}

impl Sequence {
    /// Codes that all stand for instructions of this part of the function.
    pub(super) fn all_own(codes: Vec<Undo>) -> Self {
        Self {
            own: codes.len(),
            codes,
        }
    }

    /// How many instructions of this part of the function the codes stand for.
    pub(super) fn instructions(&self) -> u32 {
        u32::try_from(self.own).unwrap_or(u32::MAX)
    }
}

/// Codes of one function that are looked at: what its header can count.
const MAX_CODES: usize = 255 * 4;

/// Registers that were saved side by side.
#[derive(Clone, Copy)]
struct Pair {
    first: u8,
    is_integer: bool,
    at: u32,
}

/// Reads a sequence up to its end; `None` when it has none.
pub(super) fn read(bytes: &[u8]) -> Option<Sequence> {
    let mut sequence = Sequence::default();
    let mut own = None;
    // "the next pair" stands before the pair that it comes next to
    let mut waiting: Vec<usize> = Vec::new();
    let mut rest = bytes;
    for _ in 0..MAX_CODES {
        let (code, tail) = split(rest)?;
        rest = tail;
        match code {
            [0xe4, ..] => {
                sequence.own = own.unwrap_or(sequence.codes.len());
                return Some(sequence);
            }
            [0xe5, ..] => own = own.or(Some(sequence.codes.len())),
            [0xe6, ..] => {
                waiting.push(sequence.codes.len());
                sequence.codes.push(Undo::Unknown);
            }
            _ => {
                let (undo, pair) = undo(code);
                if let Some(pair) = pair {
                    next_pairs(&mut sequence.codes, &waiting, pair);
                }
                waiting.clear();
                sequence.codes.push(undo);
            }
        }
    }
    None
}

/// Writes what "the next pair" means; the last of them is the nearest to the pair.
fn next_pairs(codes: &mut [Undo], waiting: &[usize], pair: Pair) {
    for (index, steps) in waiting.iter().rev().zip(1_u8..) {
        let first = pair.first.saturating_add(steps.saturating_mul(2));
        let last = if pair.is_integer { LINK } else { SP };
        let second = first.saturating_add(1);
        if let Some(slot) = codes.get_mut(*index)
            && second <= last
        {
            *slot = Undo::Load {
                registers: integers([first, second], pair.is_integer),
                at: pair.at.saturating_add(u32::from(steps).saturating_mul(16)),
                then: 0,
            };
        }
    }
}

/// Takes the first code off.
fn split(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let length = match bytes.first()? {
        0xc0..=0xdf | 0xe2 | 0xf8 => 2,
        0xe7 | 0xf9 => 3,
        0xe0 | 0xfa => 4,
        0xfb => 5,
        _ => 1,
    };
    bytes.split_at_checked(length)
}

fn integers(registers: [u8; 2], are_integers: bool) -> [Option<u8>; 2] {
    registers.map(|r| Some(r).filter(|_| are_integers))
}

fn load(registers: [Option<u8>; 2], at: u32) -> Undo {
    Undo::Load {
        registers,
        at,
        then: 0,
    }
}

/// Saved while the stack pointer moved down by `then`.
fn pop(registers: [Option<u8>; 2], then: u32) -> Undo {
    Undo::Load {
        registers,
        at: 0,
        then,
    }
}

/// What a code of one or more bytes undoes, and the pair that it saved where further ones can follow.
fn undo(code: &[u8]) -> (Undo, Option<Pair>) {
    let alone = |undo| (undo, None);
    match *code {
        [low @ 0x00..=0x1f] => alone(Undo::Free(u32::from(low).saturating_mul(16))),
        [low @ 0x20..=0x3f] => {
            let then = u32::from(low & 0x1f).saturating_mul(8);
            paired(FIRST_KEPT, true, Place::Moved(then))
        }
        [low @ 0x40..=0x7f] => alone(load([Some(FP), Some(LINK)], eights(low))),
        [low @ 0x80..=0xbf] => alone(pop([Some(FP), Some(LINK)], further(low))),
        [high @ 0xc0..=0xc7, low] => {
            let units = u32::from(u16::from_be_bytes([high & 7, low]));
            alone(Undo::Free(units.saturating_mul(16)))
        }
        [high @ 0xc8..=0xde, low] => saved(u16::from_be_bytes([high, low])),
        [0xe0, a, b, c] => {
            let units = u32::from_be_bytes([0, a, b, c]);
            alone(Undo::Free(units.saturating_mul(16)))
        }
        [0xe1] => alone(Undo::FromFrame(0)),
        [0xe2, low] => alone(Undo::FromFrame(u32::from(low).saturating_mul(8))),
        [0xe7, which, place] => any_register(which, place),
        // no operation, and the signature of a return address, which is masked away
        [0xe3 | 0xfc] => alone(Undo::Nothing),
        [0xe9] => alone(Undo::MachineFrame),
        [0xec] => alone(Undo::Interrupted),
        _ => alone(Undo::Unknown),
    }
}

fn eights(low: u8) -> u32 {
    u32::from(low & 0x3f).saturating_mul(8)
}

/// Where a register moved the stack pointer, the number counts from one.
fn further(low: u8) -> u32 {
    eights(low).saturating_add(8)
}

/// Where a pair stands.
#[derive(Clone, Copy)]
enum Place {
    /// Above the stack pointer.
    At(u32),
    /// At the stack pointer, which moved down by so much.
    Moved(u32),
}

fn paired(first: u8, is_integer: bool, place: Place) -> (Undo, Option<Pair>) {
    let registers = integers([first, first.saturating_add(1)], is_integer);
    let (undo, at) = match place {
        Place::At(at) => (load(registers, at), at),
        Place::Moved(then) => (pop(registers, then), 0),
    };
    let pair = Pair {
        first,
        is_integer,
        at,
    };
    (undo, Some(pair))
}

/// Codes of two bytes that save registers: five to eight bits say which code, then follow register and place.
fn saved(code: u16) -> (Undo, Option<Pair>) {
    let [_, low] = code.to_be_bytes();
    let four = FIRST_KEPT.saturating_add(field(code, 6, 4));
    let three = field(code, 6, 3);
    let float = three.saturating_add(8);
    let moved_by_five = u32::from(low & 0x1f).saturating_mul(8).saturating_add(8);
    let single = |register: u8| [Some(register), None];
    match code >> 9 {
        0x64 | 0x65 => paired(four, true, Place::At(eights(low))),
        0x66 | 0x67 => paired(four, true, Place::Moved(further(low))),
        0x68 | 0x69 => (load(single(four), eights(low)), None),
        0x6a => {
            let register = FIRST_KEPT.saturating_add(field(code, 5, 4));
            (pop(single(register), moved_by_five), None)
        }
        0x6b => {
            let register = FIRST_KEPT.saturating_add(three.saturating_mul(2));
            (load([Some(register), Some(LINK)], eights(low)), None)
        }
        0x6c => paired(float, false, Place::At(eights(low))),
        0x6d => paired(float, false, Place::Moved(further(low))),
        0x6e => (load([None; 2], eights(low)), None),
        0x6f => (pop([None; 2], moved_by_five), None),
        _ => (Undo::Unknown, None),
    }
}

/// Bits of a code from `shift` on.
fn field(code: u16, shift: u32, bits: u32) -> u8 {
    let ones = 1_u16.checked_shl(bits).unwrap_or(0).saturating_sub(1);
    let value = code.checked_shr(shift).unwrap_or(0) & ones;
    u8::try_from(value).unwrap_or(0)
}

/// Any register, alone or with the next one, which compilers use for calling conventions of their own.
fn any_register(which: u8, place: u8) -> (Undo, Option<Pair>) {
    let (is_pair, moves) = (which & 0x40 != 0, which & 0x20 != 0);
    let kind = place >> 6;
    let units = u32::from(place & 0x3f).saturating_add(u32::from(moves));
    let size = if moves || is_pair || kind == 2 { 16 } else { 8 };
    let bytes = units.saturating_mul(size);
    let first = which & 0x1f;
    let second = first.saturating_add(1);
    let last = if is_pair { second } else { first };
    if which & 0x80 != 0 || kind == 3 || (kind == 0 && last > LINK) {
        return (Undo::Unknown, None);
    }
    let registers = [Some(first), is_pair.then_some(second)].map(|r| r.filter(|_| kind == 0));
    let undo = if moves {
        pop(registers, bytes)
    } else {
        load(registers, bytes)
    };
    (undo, None)
}
