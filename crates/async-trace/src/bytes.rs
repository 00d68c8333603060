//! A cursor over the bytes of a batch.

/// What is left to read; each call takes from the front and leaves everything as it was when it fails.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cursor<'a> {
    rest: &'a [u8],
}

impl<'a> Cursor<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    pub(crate) fn rest(&self) -> &'a [u8] {
        self.rest
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    #[inline]
    pub(crate) fn u8(&mut self) -> Option<u8> {
        let (first, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(*first)
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (first, rest) = self.rest.split_first_chunk()?;
        self.rest = rest;
        Some(*first)
    }

    /// What has been read since `before`, which is an older state of this cursor.
    #[inline]
    pub(crate) fn read_since(&self, before: &Self) -> usize {
        before.rest.len().saturating_sub(self.rest.len())
    }

    #[inline]
    pub(crate) fn take(&mut self, len: usize) -> Option<&'a [u8]> {
        let (first, rest) = self.rest.split_at_checked(len)?;
        self.rest = rest;
        Some(first)
    }

    /// ULEB128 of at most ten bytes; the tenth may only hold the highest bit.
    #[inline]
    pub(crate) fn u64(&mut self) -> Option<u64> {
        if let Some((first, rest)) = self.rest.split_first()
            && *first < 0x80
        {
            self.rest = rest;
            return Some(u64::from(*first));
        }
        self.long().or_else(|| self.longest())
    }

    /// Two bytes and more. Up to eight are read at once: the first byte without the highest bit ends the number.
    #[inline]
    fn long(&mut self) -> Option<u64> {
        const HIGHEST: u64 = 0x8080_8080_8080_8080;
        let word = u64::from_le_bytes(*self.rest.first_chunk()?);
        let ends = !word & HIGHEST;
        if ends == 0 {
            return None;
        }
        // all bits up to the end of the last byte
        let used = word & (ends ^ ends.wrapping_sub(1)) & !HIGHEST;
        let pairs = (used & 0x007f_007f_007f_007f) | ((used & 0x7f00_7f00_7f00_7f00) >> 1);
        let fours = (pairs & 0x0000_3fff_0000_3fff) | ((pairs & 0x3fff_0000_3fff_0000) >> 2);
        let value = (fours & 0x0fff_ffff) | ((fours & 0x0fff_ffff_0000_0000) >> 4);
        let len = (ends.trailing_zeros() >> 3).saturating_add(1);
        self.rest = self.rest.get(len as usize..)?;
        Some(value)
    }

    /// Of any length, or close to the end of the batch: byte by byte.
    #[cold]
    fn longest(&mut self) -> Option<u64> {
        let mut value = 0_u64;
        let mut shift = 0_u32;
        for (index, byte) in self.rest.iter().enumerate() {
            let bits = u64::from(byte & 0x7f);
            if shift == 63 && bits > 1 || shift > 63 {
                return None;
            }
            value |= bits.wrapping_shl(shift);
            if byte & 0x80 == 0 {
                self.rest = self.rest.get(index.saturating_add(1)..)?;
                return Some(value);
            }
            shift = shift.saturating_add(7);
        }
        None
    }

    /// ULEB128 that fits 32 bits.
    pub(crate) fn u32(&mut self) -> Option<u32> {
        let before = *self;
        let value = self.u64().and_then(|v| u32::try_from(v).ok());
        if value.is_none() {
            *self = before;
        }
        value
    }

    /// Zigzag over ULEB128.
    pub(crate) fn i64(&mut self) -> Option<i64> {
        self.u64().map(zigzag)
    }

    /// Zigzag over ULEB128 that fits 32 bits.
    pub(crate) fn i32(&mut self) -> Option<i32> {
        self.u32()
            .and_then(|v| i32::try_from(zigzag(v.into())).ok())
    }
}

/// 0, −1, 1, −2, 2 for 0, 1, 2, 3, 4.
fn zigzag(value: u64) -> i64 {
    (value >> 1).cast_signed() ^ (value & 1).cast_signed().wrapping_neg()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variable_length_numbers_have_their_limits() {
        let read = |bytes: &[u8]| {
            let mut cursor = Cursor::new(bytes);
            (cursor.u64(), cursor.rest().len())
        };
        assert_eq!(read(&[0x7f]), (Some(127), 0));
        assert_eq!(read(&[0xf4, 0x99, 0x03, 1]), (Some(52_468), 1));
        let max = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1];
        assert_eq!(read(&max), (Some(u64::MAX), 0));
        let too_large = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2];
        assert_eq!(read(&too_large), (None, 10));
        let too_long = [
            0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0,
        ];
        assert_eq!(read(&too_long), (None, 11));
        assert_eq!(read(&[0x80]), (None, 1));
        assert_eq!(read(&[]), (None, 0));
    }

    #[test]
    fn both_ways_to_read_numbers_agree() {
        for bits in 0..64 {
            for value in [
                1_u64 << bits,
                (1 << bits) - 1,
                u64::MAX >> bits,
                0x0123_4567_89ab_cdef >> bits,
            ] {
                let mut bytes = Vec::new();
                crate::testing::number(&mut bytes, value);
                bytes.extend([0xff; 8]);
                let (mut fast, mut slow) = (Cursor::new(&bytes), Cursor::new(&bytes));
                assert_eq!((fast.u64(), slow.longest()), (Some(value), Some(value)));
                assert_eq!((fast.rest().len(), slow.rest().len()), (8, 8));
            }
        }
    }

    #[test]
    fn signed_numbers_are_zigzag() {
        let mut cursor = Cursor::new(&[0xe7, 0x08, 0x01, 0x02, 0]);
        assert_eq!(cursor.i64(), Some(-564));
        assert_eq!(cursor.i32(), Some(-1));
        assert_eq!(cursor.i32(), Some(1));
        assert_eq!(cursor.i64(), Some(0));
        assert_eq!(zigzag(u64::MAX), i64::MIN);
    }

    #[test]
    fn a_number_that_does_not_fit_is_not_taken() {
        let mut cursor = Cursor::new(&[0x80, 0x80, 0x80, 0x80, 0x10]);
        assert_eq!(cursor.u32(), None);
        assert_eq!(cursor.u64(), Some(1 << 32));
    }
}
