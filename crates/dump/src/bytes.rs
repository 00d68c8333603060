//! Little-endian numbers at positions inside a byte slice.

/// `N` bytes at `at`.
pub(crate) fn array<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..)?.first_chunk().copied()
}

/// The 16-bit number at `at`.
pub(crate) fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    array(bytes, at).map(u16::from_le_bytes)
}

/// The 32-bit number at `at`.
pub(crate) fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    array(bytes, at).map(u32::from_le_bytes)
}

/// The 64-bit number at `at`.
pub(crate) fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    array(bytes, at).map(u64::from_le_bytes)
}

/// Consecutive 64-bit numbers.
pub(crate) fn words(bytes: &[u8]) -> impl Iterator<Item = u64> + '_ {
    bytes
        .as_chunks::<8>()
        .0
        .iter()
        .copied()
        .map(u64::from_le_bytes)
}

/// The text up to the first NUL; `None` when there is none.
pub(crate) fn text(bytes: &[u8]) -> Option<String> {
    let text = bytes.split(|b| *b == 0).next().filter(|t| !t.is_empty())?;
    Some(String::from_utf8_lossy(text).into_owned())
}
