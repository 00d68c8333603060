//! Entries of functions with the usual first and last instructions, which take no more than a word.

use super::codes::{FIRST_KEPT, FP, LINK, Sequence, Undo};

/// The largest stack that one instruction takes together with saving x29 and x30, and without.
const MAX_WITH_PAIR: u32 = 512;
const MAX_ALONE: u32 = 4080;

/// What the word says.
#[derive(Clone, Copy, Debug)]
pub(super) struct Packed {
    /// Bytes of the function.
    pub(super) length: u32,
    /// Whether the part has the instructions of a begin and an end.
    has_ends: bool,
    floats: u32,
    integers: u32,
    homes: bool,
    chain: Chain,
    frame: u32,
}

/// What is done with x29 and x30.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Chain {
    /// They stay where they are.
    None,
    /// x30 is saved.
    Link,
    /// Both are saved and x29 points to them; the return address may be signed.
    Frame { is_signed: bool },
}

/// The instructions of a packed function, in the order in which they are undone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Ends {
    pub(super) prologue: Sequence,
    /// The return not among them; `None` when this part of the function has no end.
    pub(super) epilogue: Option<Vec<Undo>>,
}

impl Packed {
    /// Takes a word apart that says that it is packed.
    pub(super) fn new(word: u32) -> Self {
        let field = |shift: u32, bits: u32| {
            let ones = 1_u32.checked_shl(bits).unwrap_or(0).saturating_sub(1);
            word.checked_shr(shift).unwrap_or(0) & ones
        };
        let floats = field(13, 3);
        Self {
            length: field(2, 11).saturating_mul(4),
            has_ends: field(0, 2) == 1,
            floats: if floats == 0 {
                0
            } else {
                floats.saturating_add(1)
            },
            integers: field(16, 4),
            homes: field(20, 1) != 0,
            chain: match field(21, 2) {
                0 => Chain::None,
                1 => Chain::Link,
                other => Chain::Frame {
                    is_signed: other == 2,
                },
            },
            frame: field(23, 9).saturating_mul(16),
        }
    }

    /// The instructions that the word stands for; `None` for a word that no function can have.
    pub(super) fn ends(&self) -> Option<Ends> {
        let links = if self.chain == Chain::Link { 8 } else { 0 };
        let integers = self.integers.checked_mul(8)?.checked_add(links)?;
        let homes = if self.homes { 64 } else { 0 };
        let floats = self.floats.checked_mul(8)?;
        let all = integers.checked_add(floats)?.checked_add(homes)?;
        let saved = all.checked_next_multiple_of(16)?;
        let locals = self.frame.checked_sub(saved)?;
        let is_framed = matches!(self.chain, Chain::Frame { .. });
        if self.integers > 10 || (is_framed && locals == 0) {
            return None;
        }
        // from here on in the order in which they are undone
        let mut saves = self.saves(integers);
        saves.reverse();
        let mut homes = vec![Undo::Nothing; if self.homes { 4 } else { 0 }];
        // the first instruction moves the stack pointer by all that is saved
        let first = saves.last_mut();
        if let Some(Undo::Load { then, .. }) = first {
            *then = saved;
        } else if let Some(first) = homes.last_mut() {
            *first = Undo::Free(saved);
            saves.extend(homes.pop());
        }
        let locals = self.locals(locals);
        let signature = (self.chain == Chain::Frame { is_signed: true }).then_some(Undo::Nothing);
        let sets_frame = is_framed.then_some(Undo::FromFrame(0));
        let prologue = sets_frame.iter().chain(&locals).chain(&homes);
        let epilogue = locals.iter().chain(&saves).chain(&signature);
        let codes: Vec<Undo> = prologue.chain(&saves).chain(&signature).copied().collect();
        Some(Ends {
            prologue: Sequence {
                own: if self.has_ends { codes.len() } else { 0 },
                codes,
            },
            epilogue: self.has_ends.then(|| epilogue.copied().collect()),
        })
    }

    /// What saves registers that calls keep, in the order of the instructions.
    fn saves(&self, integers: u32) -> Vec<Undo> {
        let mut out = Vec::new();
        let kept = u32::from(FIRST_KEPT)..;
        let kept = kept.take(self.integers as usize);
        let mut left: Vec<u8> = kept.filter_map(|r| u8::try_from(r).ok()).collect();
        if self.chain == Chain::Link {
            left.push(LINK);
        }
        for (pair, at) in left.chunks(2).zip((0..).step_by(16)) {
            // an even number of registers leaves x30 for itself
            let registers = [pair.first().copied(), pair.get(1).copied()];
            out.push(load(registers, at));
        }
        let pairs = self.floats.div_ceil(2);
        for pair in 0..pairs {
            let at = integers.saturating_add(pair.saturating_mul(16));
            out.push(load([None; 2], at));
        }
        out
    }

    /// What makes room for local variables, and saves x29 and x30 below them.
    fn locals(&self, bytes: u32) -> Vec<Undo> {
        let pair = |then| Undo::Load {
            registers: [Some(FP), Some(LINK)],
            at: 0,
            then,
        };
        let is_framed = matches!(self.chain, Chain::Frame { .. });
        if is_framed && bytes <= MAX_WITH_PAIR {
            return vec![pair(bytes)];
        }
        let mut out: Vec<Undo> = is_framed.then(|| pair(0)).into_iter().collect();
        let far = bytes.saturating_sub(MAX_ALONE);
        out.extend([far, bytes.min(MAX_ALONE)].map(Undo::Free));
        out.retain(|u| *u != Undo::Free(0));
        out
    }
}

fn load(registers: [Option<u8>; 2], at: u32) -> Undo {
    Undo::Load {
        registers,
        at,
        then: 0,
    }
}
