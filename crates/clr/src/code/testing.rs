//! Memory made of bytes.

use asynctriage_dump::{Addr, Fault, FaultReason, Memory};

/// Bytes at one place, and nothing else.
pub(super) struct Bytes {
    start: Addr,
    bytes: Vec<u8>,
}

impl Bytes {
    pub(super) fn at(start: Addr, bytes: Vec<u8>) -> Self {
        Self { start, bytes }
    }
}

impl Memory for Bytes {
    fn slice(&self, addr: Addr, len: u64) -> Option<&[u8]> {
        let from = usize::try_from(addr.since(self.start)?).ok()?;
        self.bytes
            .get(from..from.checked_add(usize::try_from(len).ok()?)?)
    }

    fn run(&self, addr: Addr) -> u64 {
        let end = self.start + self.bytes.len() as u64;
        if addr < self.start {
            0
        } else {
            end.since(addr).unwrap_or(0)
        }
    }

    fn why_not(&self, addr: Addr, len: u64) -> Option<Fault> {
        let reason = FaultReason::Unmapped;
        self.slice(addr, len)
            .is_none()
            .then_some(Fault { addr, len, reason })
    }
}
