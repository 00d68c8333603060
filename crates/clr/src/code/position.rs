//! Where in its IL a method stands, from the debug info of its compiled code.
//!
//! Up to 9.0 bounds are numbers in nibbles, in 10.0 they are packed like those of 11.0 with one flag less; in both a byte
//! of flags stands in front (8.0.34, 9.0.23, 10.0.15, x64).

use super::debug_info::{Bound, FLAG_BITS, IL_BIAS, MAX_ITEMS, MAX_PART, Nibbles};
use super::debug_info::{packed_bounds, readable};
use super::range::{Code, CodeKind};
use crate::runtime::Runtime;
use asynctriage_dump::{Addr, Memory};
use rustc_hash::FxHashMap;
use std::ops::Range;
use std::sync::Arc;

/// By the begin of the code.
pub(super) type Known = FxHashMap<Addr, Option<Arc<[Bound]>>>;

/// The byte of flags, and two sizes of at most eleven nibbles each.
const MAX_HEAD: u64 = 16;
/// Methods whose bounds are kept.
const MAX_KNOWN: usize = 1 << 12;
/// What tells that nothing but the two parts follows.
const PLAIN: u8 = 0;

impl Runtime<'_> {
    /// The IL offset of the code that an instruction belongs to: that of the call, or of the statement around it. For a
    /// return address ask for one byte less. `None` for code of images before 11.0, and where the dump lacks the debug
    /// info.
    #[must_use]
    pub fn il_offset(&self, ip: Addr) -> Option<u32> {
        let (native, bounds) = self.bounds_around(ip)?;
        il_at(native, &bounds)
    }

    /// The IL offsets of the statement that an instruction belongs to: up to the next one that the debug info tells.
    pub(super) fn statement(&self, ip: Addr) -> Option<Range<u32>> {
        let (native, bounds) = self.bounds_around(ip)?;
        let begin = il_at(native, &bounds)?;
        let behind = bounds.iter().filter_map(|b| b.il).filter(|il| *il > begin);
        Some(begin..behind.min().unwrap_or(u32::MAX))
    }

    fn bounds_around(&self, ip: Addr) -> Option<(u32, Arc<[Bound]>)> {
        let code = self.code_at(ip)?;
        let native = u32::try_from(ip.since(code.start)?).ok()?;
        Some((native, self.bounds(&code)?))
    }

    /// Threads stand in the same methods again and again: each is decoded once.
    fn bounds(&self, code: &Code) -> Option<Arc<[Bound]>> {
        let known = &self.code.bounds;
        if let Some(bounds) = known.read().ok().and_then(|k| k.get(&code.start).cloned()) {
            return bounds;
        }
        let bounds: Option<Arc<[Bound]>> = self.read_bounds(code).map(Into::into);
        if let Ok(mut known) = known.write()
            && known.len() < MAX_KNOWN
        {
            known.insert(code.start, bounds.clone());
        }
        bounds
    }

    fn read_bounds(&self, code: &Code) -> Option<Vec<Bound>> {
        let (major, _) = self.layout().version();
        if major >= 11 {
            let method = self.method_of_desc(code.desc)?;
            return Some(self.debug_info(code, &method)?.bounds);
        }
        let CodeKind::Jit { header } = code.kind else {
            return None;
        };
        let info = header + self.offsets.code_header.debug_info;
        let at = self.memory.ptr(info)?.non_null()?;
        older_bounds(self.memory, at, major >= 10)
    }
}

fn il_at(native: u32, bounds: &[Bound]) -> Option<u32> {
    let mut before = bounds.iter().filter(|b| b.native <= native);
    let mut nearest = before.next()?;
    for bound in before.filter(|b| b.il.is_some()) {
        if bound.native >= nearest.native {
            nearest = bound;
        }
    }
    nearest.il
}

fn older_bounds(memory: &dyn Memory, at: Addr, packed: bool) -> Option<Vec<Bound>> {
    let head = memory.bytes(at, readable(memory, at, MAX_HEAD), MAX_HEAD)?;
    let (flags, head) = head.split_first()?;
    if *flags != PLAIN {
        return None;
    }
    let mut numbers = Nibbles::new(head);
    let size = numbers.unsigned()?;
    numbers.unsigned()?;
    let start = at + 1 + numbers.bytes() as u64;
    let bytes = memory.bytes(start, size.into(), MAX_PART)?;
    if packed {
        packed_bounds(&bytes, FLAG_BITS.saturating_sub(1))
    } else {
        nibble_bounds(&bytes)
    }
}

/// A count; per bound the distance from the one before, the IL offset and where it comes from.
fn nibble_bounds(bytes: &[u8]) -> Option<Vec<Bound>> {
    let mut numbers = Nibbles::new(bytes);
    let count = numbers.unsigned()?.min(MAX_ITEMS);
    let mut native = 0_u32;
    let mut out = Vec::new();
    for _ in 0..count {
        native = native.wrapping_add(numbers.unsigned()?);
        let il = numbers.unsigned()?.checked_sub(IL_BIAS);
        numbers.unsigned()?;
        out.push(Bound {
            native,
            il,
            suspends: false,
        });
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::code::testing::Bytes;

    fn read(digits: &str, packed: bool) -> Vec<(u32, Option<u32>)> {
        let bytes = digits.as_bytes().chunks(2);
        let bytes = bytes.map(|d| u8::from_str_radix(str::from_utf8(d).unwrap(), 16).unwrap());
        let memory = Bytes::at(Addr(0x1000), bytes.collect());
        let bounds = older_bounds(&memory, Addr(0x1000), packed).unwrap();
        bounds.iter().map(|b| (b.native, b.il)).collect()
    }

    #[test]
    fn real_blobs_of_older_versions_tell_where_code_comes_from() {
        // 9.0.23, then 10.0.15
        assert_eq!(
            read("00090904214a232f0b0220024a04a7f442531a", false),
            [(0, None), (20, Some(0)), (78, Some(21)), (78, None)]
        );
        let bounds = read(
            "000b6939660202a2066e3bde5cba76dec942dc72f02efc02001e04030d04d7d02f34a5d1d02f35c501",
            true,
        );
        assert_eq!(bounds.len(), 11);
        assert_eq!(bounds[..2], [(0, None), (40, Some(0))]);
        assert!(bounds.is_sorted_by_key(|(native, _)| *native), "{bounds:?}");
    }

    #[test]
    fn what_stands_in_front_of_other_parts_is_not_read() {
        let memory = Bytes::at(Addr(0x1000), vec![1, 9, 9, 4, 0x21]);
        assert_eq!(older_bounds(&memory, Addr(0x1000), false), None);
    }
}
