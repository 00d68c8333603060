//! A file as memory, its first byte at address 0.

use asynctriage_dump::{Addr, Fault, FaultReason, Memory};

/// The bytes of a file.
#[derive(Clone, Copy, Debug)]
pub(super) struct FileMemory<'a>(pub(super) &'a [u8]);

impl Memory for FileMemory<'_> {
    fn slice(&self, addr: Addr, len: u64) -> Option<&[u8]> {
        let start = usize::try_from(addr.0).ok()?;
        let end = start.checked_add(usize::try_from(len).ok()?)?;
        self.0.get(start..end)
    }

    fn run(&self, addr: Addr) -> u64 {
        (self.0.len() as u64).saturating_sub(addr.0)
    }

    fn why_not(&self, addr: Addr, len: u64) -> Option<Fault> {
        let there = self.run(addr).min(len);
        (there < len).then(|| Fault {
            addr: addr + there,
            len: len.saturating_sub(there),
            reason: FaultReason::Unmapped,
        })
    }
}
