//! Memory made of pieces, for tests.

use asynctriage_dump::{Addr, Fault, FaultReason, Memory};

/// Pieces of memory; what lies between them is missing.
#[derive(Default)]
pub(crate) struct Pieces(Vec<(Addr, Vec<u8>)>);

impl Pieces {
    pub(crate) fn with(mut self, addr: u64, bytes: impl Into<Vec<u8>>) -> Self {
        self.0.push((Addr(addr), bytes.into()));
        self
    }

    fn from(&self, addr: Addr) -> Option<&[u8]> {
        self.0.iter().find_map(|(start, bytes)| {
            bytes
                .get(usize::try_from(addr.since(*start)?).ok()?..)
                .filter(|b| !b.is_empty())
        })
    }
}

impl Memory for Pieces {
    fn slice(&self, addr: Addr, len: u64) -> Option<&[u8]> {
        self.from(addr)?.get(..usize::try_from(len).ok()?)
    }

    fn run(&self, addr: Addr) -> u64 {
        self.from(addr).map_or(0, |b| b.len() as u64)
    }

    fn why_not(&self, addr: Addr, len: u64) -> Option<Fault> {
        let (mut at, mut left) = (addr, len);
        while left > 0 {
            let run = self.run(at).min(left);
            if run == 0 {
                return Some(Fault {
                    addr: at,
                    len: left,
                    reason: FaultReason::NotDumped,
                });
            }
            (at, left) = (at + run, left - run);
        }
        None
    }
}
