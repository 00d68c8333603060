//! Columns of numbers in few bytes: seven bits a byte, differences where they are small, base64.

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Bytes as text.
pub(super) fn base64(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len().div_ceil(3).saturating_mul(4));
    for group in bytes.chunks(3) {
        let byte = |place: usize| u32::from(group.get(place).copied().unwrap_or(0));
        let word = (byte(0) << 16) | (byte(1) << 8) | byte(2);
        for (place, shift) in [18, 12, 6, 0].into_iter().enumerate() {
            let index = word.wrapping_shr(shift) & 63;
            let letter = ALPHABET.get(index as usize).copied().unwrap_or(b'A');
            out.push(if place > group.len() {
                '='
            } else {
                letter.into()
            });
        }
    }
    out
}

/// Numbers as they are.
pub(super) fn numbers(all: impl IntoIterator<Item = u64>) -> String {
    let mut bytes = Vec::new();
    for number in all {
        push(&mut bytes, number);
    }
    base64(&bytes)
}

/// Numbers that rise, as differences.
pub(super) fn rising(all: impl IntoIterator<Item = u64>) -> String {
    let mut last = 0_u64;
    numbers(all.into_iter().map(|number| {
        let step = number.saturating_sub(last);
        last = last.max(number);
        step
    }))
}

/// Numbers near one another, as differences; odd ones are negative.
pub(super) fn near(all: impl IntoIterator<Item = u64>) -> String {
    let mut last = 0_u64;
    numbers(all.into_iter().map(|number| {
        let step = match number.checked_sub(last) {
            Some(up) => up.saturating_mul(2),
            None => last
                .saturating_sub(number)
                .saturating_mul(2)
                .saturating_sub(1),
        };
        last = number;
        step
    }))
}

/// Equal bytes that follow one another as their count less one and the byte.
pub(super) fn runs(bytes: &[u8]) -> String {
    let mut out = Vec::new();
    for run in bytes.chunk_by(|a, b| a == b) {
        for part in run.chunks(256) {
            let count = u8::try_from(part.len().saturating_sub(1)).unwrap_or(u8::MAX);
            out.extend([count, part.first().copied().unwrap_or(0)]);
        }
    }
    base64(&out)
}

fn push(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push((number & 0x7f) as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_the_usual_one() {
        for (bytes, text) in [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foobar", "Zm9vYmFy"),
        ] {
            assert_eq!(base64(bytes.as_bytes()), text);
        }
    }

    #[test]
    fn columns_are_short() {
        assert_eq!(numbers([1, 300]), base64(&[1, 0xac, 2]));
        assert_eq!(rising([1_000, 1_001, 1_003]), numbers([1_000, 1, 2]));
        assert_eq!(near([5, 3, 4]), numbers([10, 3, 2]));
        let many = [7; 300];
        assert_eq!(runs(&many), base64(&[255, 7, 43, 7]));
    }
}
