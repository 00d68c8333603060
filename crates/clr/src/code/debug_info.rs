//! Debug info of compiled methods (.NET 11): which native offset belongs to which IL offset, and what each suspension
//! point keeps.
//!
//! A stream of numbers, three bits in each nibble, the most significant first, its high bit set while more follow; the
//! low nibble of a byte comes first. A number 0 at the start announces the sizes of six parts, else it is the size of
//! the first part and the second follows; the parts stand behind, each from a byte boundary on.

use asynctriage_dump::{Addr, Memory};
use std::collections::BTreeSet;

/// Bytes of the head that tells the sizes: six numbers of at most eleven nibbles.
const MAX_HEAD: u64 = 40;
/// Bytes of one part; the largest methods stay far below.
pub(super) const MAX_PART: u64 = 1 << 20;
/// The parts that are read.
const BOUNDS: usize = 0;
const POINTS: usize = 5;
pub(super) const MAX_ITEMS: u32 = 1 << 20;
/// What is added to IL offsets so that the three special values in front of 0 fit in.
pub(super) const IL_BIAS: u32 = 3;
/// What is added to variable numbers likewise.
const VAR_BIAS: i64 = 6;
/// Flag of a bound: the call suspends.
const ASYNC: u64 = 4;
pub(super) const FLAG_BITS: u32 = 3;
/// Bytes of a call in IL, such as that of `AsyncHelpers.Await`.
const CALL: u32 = 5;
/// Bytes of IL that hold an await which the compiler can leave out, and the least in front of another: two calls, as
/// the task must be one that is known to have ended, and what is awaited next.
const ROOM: u32 = 2 * CALL + 1;
/// Number of the variable that holds the generic context of shared code.
pub const GENERIC_CONTEXT: i64 = -3;

/// A native offset and the IL offset that it belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bound {
    /// Bytes from the start of the method's code.
    pub native: u32,
    /// Bytes from the start of its IL; `None` for prologs, epilogs and code without a place in the IL.
    pub il: Option<u32>,
    /// Whether the method can suspend there.
    pub suspends: bool,
}

/// Which await of its method one is, from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AwaitNumber {
    /// This one.
    Exact(u32),
    /// This one or a later one: the IL is not there, and compiled code lacks awaits of what has always ended (11.0.0).
    AtLeast(u32),
}

impl AwaitNumber {
    /// The number, exact or the least.
    #[must_use]
    pub fn least(self) -> u32 {
        match self {
            Self::Exact(number) | Self::AtLeast(number) => number,
        }
    }

    /// The number, when it is exact.
    #[must_use]
    pub fn exact(self) -> Option<u32> {
        match self {
            Self::Exact(number) => Some(number),
            Self::AtLeast(_) => None,
        }
    }
}

/// A suspension point.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AsyncPoint {
    /// Bytes from the start of the method's code.
    pub native: u32,
    /// Variables that the continuation keeps: number (arguments first, `this` is 0) and offset from the object's start.
    pub variables: Vec<(i64, u32)>,
}

/// Debug info of one method.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DebugInfo {
    /// By native offset.
    pub bounds: Vec<Bound>,
    /// In the order of the code; empty for methods of images.
    pub points: Vec<AsyncPoint>,
}

impl DebugInfo {
    /// Reads the debug info at `at`; `None` when it cannot be read or makes no sense.
    #[must_use]
    pub fn read(memory: &dyn Memory, at: Addr) -> Option<Self> {
        let head = memory.bytes(at, readable(memory, at, MAX_HEAD), MAX_HEAD)?;
        let mut numbers = Nibbles::new(&head);
        let first = numbers.unsigned()?;
        let mut sizes = [0_u64; 6];
        if first == 0 {
            for size in &mut sizes {
                *size = numbers.unsigned()?.into();
            }
        } else {
            sizes[0] = first.into();
            sizes[1] = numbers.unsigned()?.into();
        }
        let start = at + numbers.bytes() as u64;
        let part = |index: usize| match sizes.get(index).copied() {
            None | Some(0) => Some(Vec::new()),
            Some(size) => {
                let before = sizes.iter().take(index);
                let before = before.fold(0_u64, |sum, s| sum.saturating_add(*s));
                memory.bytes(start + before, size, MAX_PART)
            }
        };
        Some(Self {
            bounds: packed_bounds(&part(BOUNDS)?, FLAG_BITS)?,
            points: points(&part(POINTS)?)?,
        })
    }

    /// The IL offset of the await that suspends at a native offset: that of the call itself, or, where the compiler put
    /// the awaited method's code in place of the call, that of the statement before it.
    #[must_use]
    pub fn suspension_il(&self, native: u32) -> Option<u32> {
        let mut here = self.bounds.iter().filter(|b| b.native == native);
        if let Some(exact) = here.clone().find(|b| b.suspends) {
            return exact.il;
        }
        if let Some(il) = here.find_map(|b| b.il) {
            return Some(il);
        }
        let before = self.bounds.iter().filter(|b| b.native < native);
        let nearest = before.filter(|b| b.il.is_some()).max_by_key(|b| b.native)?;
        // another suspension's call says nothing of what follows it
        nearest.il.filter(|_| !nearest.suspends)
    }

    /// Which await of the method stands at an IL offset, from the compiled code alone. `None` when the IL in front of
    /// all code has room for an await: then one was likely left out there.
    #[must_use]
    pub fn await_number(&self, il: u32) -> Option<AwaitNumber> {
        let flagged = self.bounds.iter().filter(|b| b.suspends);
        let points = self.points.iter().map(|p| self.suspension_il(p.native));
        let sites: BTreeSet<u32> = flagged
            .map(|b| b.il)
            .chain(points)
            .flatten()
            .filter(|site| *site < il)
            .collect();
        let first = self.bounds.iter().filter_map(|b| b.il).min()?;
        if first >= ROOM && first < il {
            return None;
        }
        let number = u32::try_from(sites.len()).ok()?;
        let mut from = 0_u32;
        let roomy = sites.into_iter().chain([il]).any(|site| {
            let room = site.saturating_sub(from);
            from = site.saturating_add(CALL);
            room >= ROOM
        });
        Some(if roomy {
            AwaitNumber::AtLeast(number)
        } else {
            AwaitNumber::Exact(number)
        })
    }
}

/// As many bytes as can be read, `want` at most: the head may be the last thing in a piece of the dump.
pub(super) fn readable(memory: &dyn Memory, at: Addr, want: u64) -> u64 {
    (1..=want)
        .rev()
        .find(|n| memory.readable(at, *n))
        .unwrap_or(0)
}

/// Entries of fixed width behind a count and two widths: flags, native offset from the one before, IL offset.
pub(super) fn packed_bounds(bytes: &[u8], flag_bits: u32) -> Option<Vec<Bound>> {
    if bytes.is_empty() {
        return Some(Vec::new());
    }
    let mut numbers = Nibbles::new(bytes);
    let count = numbers.unsigned()?.min(MAX_ITEMS);
    let native_bits = numbers.unsigned()?.checked_add(1)?;
    let il_bits = numbers.unsigned()?.checked_add(1)?;
    if native_bits > 32 || il_bits > 32 {
        return None;
    }
    let mut bits = Bits {
        bytes: bytes.get(numbers.bytes()..)?,
        at: 0,
    };
    let mut native = 0_u32;
    let mut out = Vec::new();
    for _ in 0..count {
        let flags = bits.take(flag_bits)?;
        native = native.wrapping_add(u32::try_from(bits.take(native_bits)?).ok()?);
        let il = u32::try_from(bits.take(il_bits)?).ok()?;
        out.push(Bound {
            native,
            il: il.checked_sub(IL_BIAS),
            suspends: flags & ASYNC != 0,
        });
    }
    Some(out)
}

/// Two counts; per point the distance from the one before and its number of variables; then all variables.
fn points(bytes: &[u8]) -> Option<Vec<AsyncPoint>> {
    if bytes.is_empty() {
        return Some(Vec::new());
    }
    let mut numbers = Nibbles::new(bytes);
    let count = numbers.unsigned()?.min(MAX_ITEMS);
    numbers.unsigned()?;
    let mut native = 0_i64;
    let mut heads = Vec::new();
    for _ in 0..count {
        native = native.wrapping_add(numbers.signed()?);
        heads.push((u32::try_from(native).ok()?, numbers.unsigned()?));
    }
    let mut out = Vec::new();
    for (native, count) in heads {
        let mut variables = Vec::new();
        for _ in 0..count.min(MAX_ITEMS) {
            let number = i64::from(numbers.unsigned()?).checked_sub(VAR_BIAS)?;
            variables.push((number, numbers.unsigned()?));
        }
        out.push(AsyncPoint { native, variables });
    }
    Some(out)
}

pub(super) struct Nibbles<'b> {
    bytes: &'b [u8],
    at: usize,
}

impl<'b> Nibbles<'b> {
    pub(super) fn new(bytes: &'b [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    fn nibble(&mut self) -> Option<u8> {
        let byte = *self.bytes.get(self.at >> 1)?;
        let high = self.at & 1 == 1;
        self.at = self.at.checked_add(1)?;
        Some(if high { byte >> 4 } else { byte & 0xf })
    }

    pub(super) fn unsigned(&mut self) -> Option<u32> {
        let mut value = 0_u32;
        loop {
            let nibble = self.nibble()?;
            // eleven nibbles hold 33 bits: what is lost on top was never written
            value = value << 3 | u32::from(nibble & 7);
            if nibble & 8 == 0 {
                return Some(value);
            }
        }
    }

    /// The sign stands in the lowest bit.
    fn signed(&mut self) -> Option<i64> {
        let value = self.unsigned()?;
        let half = i64::from(value >> 1);
        Some(if value & 1 == 1 {
            half.wrapping_neg()
        } else {
            half
        })
    }

    /// Bytes used so far, the one begun included.
    pub(super) fn bytes(&self) -> usize {
        self.at.div_ceil(2)
    }
}

/// Bits from the lowest of each byte on.
struct Bits<'b> {
    bytes: &'b [u8],
    at: usize,
}

impl Bits<'_> {
    fn take(&mut self, count: u32) -> Option<u64> {
        let mut value = 0_u64;
        for i in 0..count {
            let byte = *self.bytes.get(self.at >> 3)?;
            let bit = byte >> (self.at & 7) & 1;
            value |= u64::from(bit).checked_shl(i)?;
            self.at = self.at.checked_add(1)?;
        }
        Some(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::code::testing::Bytes;

    /// Of a method with one await, compiled by the JIT of 11.0.0.
    const ONE_AWAIT: &str = "a0b4010005195602041a4e620ad20034c4620334c41a05ba0025c0052789c37a53a961c0056689c37a53b97189c37a53e90111bd16e700";

    fn blob(text: &str) -> Bytes {
        let digits = text
            .as_bytes()
            .chunks(2)
            .map(|d| str::from_utf8(d).unwrap());
        Bytes::at(
            Addr(0x1000),
            digits.map(|d| u8::from_str_radix(d, 16).unwrap()).collect(),
        )
    }

    #[test]
    fn a_real_blob_tells_its_suspension() {
        let info = DebugInfo::read(&blob(ONE_AWAIT), Addr(0x1000)).unwrap();
        let natives: Vec<_> = info.bounds.iter().map(|b| b.native).collect();
        assert_eq!(natives, [0, 67, 143, 169, 175, 283, 289, 324, 347]);
        assert_eq!(info.suspension_il(175), Some(46));
        // in the prolog, behind a statement, behind another suspension
        assert_eq!(info.suspension_il(60), None);
        assert_eq!(info.suspension_il(150), Some(16));
        assert_eq!(info.suspension_il(400), None);
        let point = AsyncPoint {
            native: 175,
            variables: vec![(1, 48)],
        };
        assert_eq!(info.points, [point]);
    }

    /// Debug info with bounds at these IL offsets, 100 bytes of code each; those with `true` suspend.
    fn info(bounds: &[(u32, bool)]) -> DebugInfo {
        let bound = |(at, (il, suspends)): (u32, &(u32, bool))| Bound {
            native: 100 * at,
            il: Some(*il),
            suspends: *suspends,
        };
        DebugInfo {
            bounds: (0..).zip(bounds).map(bound).collect(),
            points: Vec::new(),
        }
    }

    #[test]
    fn awaits_without_room_for_another_have_their_number() {
        use AwaitNumber::Exact;
        let tight = info(&[(0, false), (10, true), (25, true)]);
        assert_eq!(tight.await_number(10), Some(Exact(0)));
        assert_eq!(tight.await_number(25), Some(Exact(1)));
        // the same await in two copies of a loop
        let twice = info(&[(0, false), (9, true), (9, true), (20, true)]);
        assert_eq!(twice.await_number(20), Some(Exact(1)));
    }

    #[test]
    fn awaits_behind_room_for_another_have_a_least_number() {
        use AwaitNumber::{AtLeast, Exact};
        let wide = info(&[(0, false), (9, true), (41, true), (50, true)]);
        assert_eq!(wide.await_number(9), Some(Exact(0)));
        assert_eq!(wide.await_number(41), Some(AtLeast(1)));
        assert_eq!(wide.await_number(50), Some(AtLeast(2)));
    }

    #[test]
    fn awaits_behind_il_without_code_have_no_number() {
        // 11.0.0: `await Task.CompletedTask.ConfigureAwait(false)` in front of the statement at 16
        let real = DebugInfo::read(&blob(ONE_AWAIT), Addr(0x1000)).unwrap();
        assert_eq!(real.await_number(46), None);
        assert_eq!(info(&[(6, true)]).await_number(6).unwrap().exact(), Some(0));
        assert_eq!(info(&[]).await_number(6), None);
    }

    #[test]
    fn points_that_only_tell_their_statement_count() {
        let mut merged = info(&[(0, false), (6, false), (20, true)]);
        merged.points.push(AsyncPoint {
            native: 150,
            variables: Vec::new(),
        });
        assert_eq!(merged.await_number(20).map(AwaitNumber::least), Some(1));
    }

    #[test]
    fn a_blob_that_is_cut_off_is_none() {
        for len in 0..ONE_AWAIT.len() / 2 {
            assert_eq!(
                DebugInfo::read(&blob(&ONE_AWAIT[..2 * len]), Addr(0x1000)),
                None,
                "{len}"
            );
        }
    }
}
