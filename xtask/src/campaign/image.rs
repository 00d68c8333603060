//! Where things are in the file of a dump, read crudely and on its own: what is tried must not tell where to try it.

use std::ops::Range;

/// The parts of a dump's file.
#[derive(Debug, Default)]
pub(super) struct Image {
    /// Where the list of parts begins, how many it has, and how many bytes each takes.
    pub(super) list: (usize, usize, usize),
    /// Notes, or streams of a minidump other than memory.
    pub(super) notes: Vec<Range<usize>>,
    /// First address, place in the file, bytes.
    memory: Vec<(u64, usize, usize)>,
}

fn number(bytes: &[u8], at: usize, len: usize) -> Option<u64> {
    let bytes = bytes.get(at..at.checked_add(len)?)?;
    Some(bytes.iter().rev().fold(0, |n, b| n << 8 | u64::from(*b)))
}

impl Image {
    pub(super) fn of(bytes: &[u8]) -> Self {
        let read = match bytes.get(..4) {
            Some(b"\x7fELF") => Self::core(bytes),
            Some(b"MDMP") => Self::minidump(bytes),
            _ => None,
        };
        read.unwrap_or_default()
    }

    fn core(bytes: &[u8]) -> Option<Self> {
        let start = number(bytes, 32, 8)? as usize;
        let count = number(bytes, 56, 2)? as usize;
        let mut out = Self {
            list: (start, count, 56),
            ..Self::default()
        };
        for i in 0..count {
            let at = start + 56 * i;
            let field = |offset| number(bytes, at + offset, 8);
            let (place, address, len) = (field(8)? as usize, field(16)?, field(32)? as usize);
            match number(bytes, at, 4)? {
                1 if len > 0 => out.memory.push((address, place, len)),
                4 if len > 0 => out.notes.push(place..place + len),
                _ => {}
            }
        }
        Some(out)
    }

    fn minidump(bytes: &[u8]) -> Option<Self> {
        const MEMORY64_LIST: u64 = 9;
        let count = number(bytes, 8, 4)? as usize;
        let start = number(bytes, 12, 4)? as usize;
        let mut out = Self {
            list: (start, count, 12),
            ..Self::default()
        };
        for i in 0..count {
            let field = |offset| number(bytes, start + 12 * i + offset, 4);
            let (kind, len, place) = (field(0)?, field(4)? as usize, field(8)? as usize);
            if kind != MEMORY64_LIST {
                out.notes.push(place..place + len);
                continue;
            }
            let ranges = number(bytes, place, 8)? as usize;
            let mut data = number(bytes, place + 8, 8)? as usize;
            for r in 0..ranges {
                let address = number(bytes, place + 16 + 16 * r, 8)?;
                let len = number(bytes, place + 24 + 16 * r, 8)? as usize;
                out.memory.push((address, data, len));
                data += len;
            }
        }
        Some(out)
    }

    /// Where an address is in the file.
    pub(super) fn place(&self, address: u64) -> Option<usize> {
        let found = self
            .memory
            .iter()
            .find(|(start, _, len)| address >= *start && address - start < *len as u64);
        found.map(|(start, place, _)| place + (address - start) as usize)
    }
}
