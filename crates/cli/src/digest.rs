//! SHA-256 of files and texts, as hexadecimal digits.

use sha2::{Digest, Sha256};
use std::fmt::Write as _;
use std::io::{self, Read};

/// What is read at a time.
const BLOCK: usize = 1 << 20;

/// The hash of bytes.
pub(crate) fn sha256(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

/// The hash of parts, one behind the other.
pub(crate) fn sha256_of_parts<'a>(parts: impl Iterator<Item = &'a [u8]>) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update(part);
    }
    hex(&hash.finalize())
}

/// The hash of what a reader gives; `None` when `ends` says that it is no longer wanted.
pub(crate) fn sha256_of(
    mut from: impl Read,
    ends: impl Fn() -> bool,
) -> io::Result<Option<String>> {
    let mut hash = Sha256::new();
    let mut block = vec![0; BLOCK];
    loop {
        let read = from.read(&mut block)?;
        if read == 0 {
            return Ok(Some(hex(&hash.finalize())));
        }
        if ends() {
            return Ok(None);
        }
        hash.update(block.get(..read).unwrap_or_default());
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut out, byte| {
        // writing to a String cannot fail
        let _ = write!(out, "{byte:02x}");
        out
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_ways_to_a_hash_give_the_same() {
        let expected = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(sha256(b"abc"), expected);
        assert_eq!(sha256_of_parts([&b"a"[..], b"bc"].into_iter()), expected);
        let read = sha256_of(&b"abc"[..], || false);
        assert_eq!(read.unwrap().as_deref(), Some(expected));
        assert_eq!(sha256_of(&b"abc"[..], || true).unwrap(), None);
    }
}
