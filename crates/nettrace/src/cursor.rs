//! Numbers and texts, read from front to back.

use crate::Text;

/// What is left of some bytes, and where in the file it begins. Every read is checked and moves behind what it read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cursor<'a> {
    rest: &'a [u8],
    /// Where in the file they end: reads then only shorten `rest`.
    end: u64,
}

impl<'a> Cursor<'a> {
    /// `offset` is where `bytes` begin in the file.
    pub(crate) fn new(bytes: &'a [u8], offset: u64) -> Self {
        Self {
            rest: bytes,
            end: offset.wrapping_add(bytes.len() as u64),
        }
    }

    /// Where in the file the next read begins.
    pub(crate) fn offset(&self) -> u64 {
        self.end.wrapping_sub(self.rest.len() as u64)
    }

    pub(crate) fn rest(&self) -> &'a [u8] {
        self.rest
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    pub(crate) fn take(&mut self, len: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(len)?;
        self.rest = rest;
        Some(taken)
    }

    /// The next `len` bytes as a cursor of their own.
    pub(crate) fn part(&mut self, len: usize) -> Option<Self> {
        let offset = self.offset();
        Some(Self::new(self.take(len)?, offset))
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (taken, rest) = self.rest.split_first_chunk::<N>()?;
        self.rest = rest;
        Some(*taken)
    }

    #[inline]
    pub(crate) fn u8(&mut self) -> Option<u8> {
        let (first, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(*first)
    }

    pub(crate) fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_le_bytes)
    }

    pub(crate) fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    pub(crate) fn i32(&mut self) -> Option<i32> {
        self.array().map(i32::from_le_bytes)
    }

    pub(crate) fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }

    /// A length or a count that the format writes as a signed number of 32 bits; negative ones are none.
    pub(crate) fn length(&mut self) -> Option<usize> {
        usize::try_from(self.i32()?).ok()
    }

    /// A number of at most 64 bits in groups of seven, the lowest first (ULEB128).
    #[inline]
    pub(crate) fn varuint64(&mut self) -> Option<u64> {
        let first = self.u8()?;
        if first < 0x80 {
            return Some(u64::from(first));
        }
        let mut value = u64::from(first & 0x7f);
        for shift in (7..64).step_by(7) {
            let byte = self.u8()?;
            let group = u64::from(byte & 0x7f);
            // the tenth byte holds the highest bit alone
            if shift == 63 && group > 1 {
                return None;
            }
            value |= group << shift;
            if byte < 0x80 {
                return Some(value);
            }
        }
        None
    }

    /// The same, of at most 32 bits.
    #[inline]
    pub(crate) fn varuint32(&mut self) -> Option<u32> {
        u32::try_from(self.varuint64()?).ok()
    }

    /// A signed number in groups of seven bits, its sign in the lowest bit.
    pub(crate) fn varint64(&mut self) -> Option<i64> {
        let raw = self.varuint64()?;
        Some((raw >> 1).cast_signed() ^ (raw & 1).cast_signed().wrapping_neg())
    }

    /// UTF-16 text up to its NUL, which is read too.
    pub(crate) fn text(&mut self) -> Option<Text<'a>> {
        let units = self.rest.chunks_exact(2).position(|unit| unit == [0, 0])?;
        let bytes = self.take(units.checked_mul(2)?)?;
        self.take(2)?;
        Some(Text::new(bytes))
    }

    /// UTF-8 text behind its length in bytes; what is no UTF-8 is replaced.
    pub(crate) fn utf8(&mut self) -> Option<String> {
        let len = usize::try_from(self.varuint32()?).ok()?;
        Some(String::from_utf8_lossy(self.take(len)?).into_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn varuint64(bytes: &[u8]) -> Option<u64> {
        Cursor::new(bytes, 0).varuint64()
    }

    #[test]
    fn numbers_in_groups_of_seven_bits() {
        assert_eq!(varuint64(&[0x7f]), Some(0x7f));
        assert_eq!(varuint64(&[0x80, 0x01]), Some(0x80));
        let all = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01];
        assert_eq!(varuint64(&all), Some(u64::MAX));
        let mut cursor = Cursor::new(&[0x80, 0x80, 0x80, 0x80, 0x10], 0);
        assert_eq!(cursor.varuint32(), None);
        let signed = |byte| Cursor::new(&[byte], 0).varint64();
        assert_eq!(
            [signed(0), signed(1), signed(2), signed(3)],
            [Some(0), Some(-1), Some(1), Some(-2)]
        );
    }

    #[test]
    fn numbers_that_end_too_late_are_none() {
        assert_eq!(varuint64(&[0x80]), None);
        assert_eq!(varuint64(&[0xff; 11]), None);
        assert_eq!(
            varuint64(&[0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x02]),
            None
        );
    }

    #[test]
    fn reads_keep_the_place_in_the_file() {
        let mut cursor = Cursor::new(&[1, 2, 0, 0, 0, b'x', 0, 0, 0, 9], 100);
        assert_eq!((cursor.u8(), cursor.u32()), (Some(1), Some(2)));
        assert_eq!(cursor.text().map(|t| t.to_string()).as_deref(), Some("x"));
        assert_eq!((cursor.offset(), cursor.rest()), (109, &[9][..]));
        assert!(cursor.u16().is_none() && cursor.text().is_none());
        assert_eq!(cursor.offset(), 109, "a read that fails takes nothing");
    }
}
