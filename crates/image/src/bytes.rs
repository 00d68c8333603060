//! Typed reads on top of [`Memory`].

use asynctriage_dump::{Addr, Memory};
use object::pod::{Pod, from_bytes};
use std::cmp::Ordering;

/// Size of the largest header structure that is read with [`pod`].
const LARGEST: usize = 64;

/// The structure at `addr`, at most 64 bytes long.
pub(crate) fn pod<T: Pod>(memory: &dyn Memory, addr: Addr) -> Option<T> {
    let mut buffer = [0; LARGEST];
    let bytes = buffer.get_mut(..size_of::<T>())?;
    if !memory.read_into(addr, bytes) {
        return None;
    }
    from_bytes::<T>(bytes).ok().map(|(value, _)| *value)
}

/// As many bytes from `addr` on as the dump holds without a gap, at most `cap`.
pub(crate) fn prefix(memory: &dyn Memory, addr: Addr, cap: u64) -> Vec<u8> {
    let mut out = Vec::new();
    loop {
        let done = out.len() as u64;
        let at = addr + done;
        let len = memory.run(at).min(cap.saturating_sub(done));
        match memory.slice(at, len) {
            Some(piece) if !piece.is_empty() => out.extend_from_slice(piece),
            _ => return out,
        }
    }
}

/// The order of the NUL-terminated text at `addr` against `text`; `None` when the dump lacks bytes that decide it.
pub(crate) fn compare_c_str(memory: &dyn Memory, addr: Addr, text: &str) -> Option<Ordering> {
    for (at, expected) in (0u64..).zip(text.bytes().chain([0])) {
        let order = memory.u8(addr + at)?.cmp(&expected);
        if order.is_ne() {
            return Some(order);
        }
    }
    Some(Ordering::Equal)
}
