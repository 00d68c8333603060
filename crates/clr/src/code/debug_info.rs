//! Debug info of compiled methods (.NET 11): which native offset belongs to which IL offset, and what each suspension
//! point keeps.
//!
//! A stream of numbers, three bits in each nibble, the most significant first, its high bit set while more follow; the
//! low nibble of a byte comes first. A number 0 at the start announces the sizes of six parts, else it is the size of
//! the first part and the second follows; the parts stand behind, each from a byte boundary on.

use asynctriage_dump::{Addr, Memory};

/// Bytes of the head that tells the sizes: six numbers of at most eleven nibbles.
const MAX_HEAD: u64 = 40;
/// Bytes of one part; the largest methods stay far below.
const MAX_PART: u64 = 1 << 20;
/// The parts that are read.
const BOUNDS: usize = 0;
const POINTS: usize = 5;
const MAX_ITEMS: u32 = 1 << 20;
/// What is added to IL offsets so that the three special values in front of 0 fit in.
const IL_BIAS: u32 = 3;
/// What is added to variable numbers likewise.
const VAR_BIAS: i64 = 6;
/// Flag of a bound: the call suspends.
const ASYNC: u64 = 4;
const FLAG_BITS: u32 = 3;
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
            bounds: bounds(&part(BOUNDS)?)?,
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

    /// The IL offsets of all suspensions, ascending.
    #[must_use]
    pub fn suspensions(&self) -> Vec<u32> {
        let mut all: Vec<_> = self
            .bounds
            .iter()
            .filter(|b| b.suspends)
            .filter_map(|b| b.il)
            .collect();
        all.sort_unstable();
        all.dedup();
        all
    }
}

/// As many bytes as can be read, `want` at most: the head may be the last thing in a piece of the dump.
fn readable(memory: &dyn Memory, at: Addr, want: u64) -> u64 {
    (1..=want)
        .rev()
        .find(|n| memory.readable(at, *n))
        .unwrap_or(0)
}

/// Entries of fixed width behind a count and two widths: flags, native offset from the one before, IL offset.
fn bounds(bytes: &[u8]) -> Option<Vec<Bound>> {
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
        let flags = bits.take(FLAG_BITS)?;
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

struct Nibbles<'b> {
    bytes: &'b [u8],
    at: usize,
}

impl<'b> Nibbles<'b> {
    fn new(bytes: &'b [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    fn nibble(&mut self) -> Option<u8> {
        let byte = *self.bytes.get(self.at >> 1)?;
        let high = self.at & 1 == 1;
        self.at = self.at.checked_add(1)?;
        Some(if high { byte >> 4 } else { byte & 0xf })
    }

    fn unsigned(&mut self) -> Option<u32> {
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
    fn bytes(&self) -> usize {
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
        assert_eq!(info.suspensions(), [46]);
        let point = AsyncPoint {
            native: 175,
            variables: vec![(1, 48)],
        };
        assert_eq!(info.points, [point]);
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
