//! Compressed numbers inside blobs (ECMA-335 II.23.2), read from front to back.

/// Takes the first byte off `rest`.
pub(crate) fn byte(rest: &mut &[u8]) -> Option<u8> {
    let (first, tail) = rest.split_first()?;
    *rest = tail;
    Some(*first)
}

/// Takes an unsigned number off `rest`.
pub(crate) fn unsigned(rest: &mut &[u8]) -> Option<u32> {
    sized(rest).map(|(value, _)| value)
}

/// Takes a signed number off `rest`: rotated left by one, so that its sign is the lowest bit.
pub(crate) fn signed(rest: &mut &[u8]) -> Option<i32> {
    let (value, bits) = sized(rest)?;
    let magnitude = i32::try_from(value >> 1).ok()?;
    if value & 1 == 0 {
        return Some(magnitude);
    }
    let sign = 1_i32.checked_shl(bits.checked_sub(1)?)?;
    magnitude.checked_sub(sign)
}

/// Takes a 32-bit number that is not compressed off `rest`.
pub(crate) fn u32(rest: &mut &[u8]) -> Option<u32> {
    let (first, tail) = rest.split_first_chunk()?;
    *rest = tail;
    Some(u32::from_le_bytes(*first))
}

/// A number and how many bits its form has.
fn sized(rest: &mut &[u8]) -> Option<(u32, u32)> {
    let first = u32::from(byte(rest)?);
    let (mask, more, bits) = match first {
        0..=0x7f => return Some((first, 7)),
        0x80..=0xbf => (0x3f, 1, 14),
        0xc0..=0xdf => (0x1f, 3, 29),
        _ => return None,
    };
    let mut value = first & mask;
    for _ in 0..more {
        value = value << 8 | u32::from(byte(rest)?);
    }
    Some((value, bits))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_examples_of_the_standard() {
        let cases: [(&[u8], u32); 5] = [
            (&[0x03], 3),
            (&[0x80, 0x80], 0x80),
            (&[0xbf, 0xff], 0x3fff),
            (&[0xc0, 0, 0x40, 0], 0x4000),
            (&[0xdf, 0xff, 0xff, 0xff], 0x1fff_ffff),
        ];
        for (mut bytes, value) in cases {
            assert_eq!(unsigned(&mut bytes), Some(value));
            assert!(bytes.is_empty());
        }
        let cases: [(&[u8], i32); 8] = [
            (&[0x06], 3),
            (&[0x7b], -3),
            (&[0x80, 0x80], 64),
            (&[0x01], -64),
            (&[0xc0, 0, 0x40, 0], 8192),
            (&[0x80, 0x01], -8192),
            (&[0xdf, 0xff, 0xff, 0xfe], 268_435_455),
            (&[0xc0, 0, 0, 0x01], -268_435_456),
        ];
        for (mut bytes, value) in cases {
            assert_eq!(signed(&mut bytes), Some(value));
        }
        assert_eq!(unsigned(&mut &[0xe0, 0, 0, 0][..]), None);
        assert_eq!(unsigned(&mut &[0x80][..]), None);
    }
}
