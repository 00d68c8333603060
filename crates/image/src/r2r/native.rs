//! The number and table formats that ReadyToRun images share with NativeAOT.

use crate::pe::PeImage;
use asynctriage_dump::Memory;

/// Elements of one block of a sparse array, as steps of its tree.
const BLOCK_BITS: u32 = 4;
const MAX_ENTRIES: usize = 1 << 22;

#[derive(Clone, Copy)]
pub(super) struct Reader<'i> {
    pub(super) memory: &'i dyn Memory,
    pub(super) image: &'i PeImage,
}

impl Reader<'_> {
    pub(super) fn byte(&self, rva: u32) -> Option<u8> {
        self.memory.u8(self.image.rva_to_addr(rva)?)
    }

    fn little_endian(&self, rva: u32, bytes: u32) -> Option<u32> {
        (0..bytes).try_fold(0, |value, i| {
            let byte = u32::from(self.byte(rva.checked_add(i)?)?);
            Some(value | byte.checked_shl(i.checked_mul(8)?)?)
        })
    }

    /// A number whose length the low bits of its first byte tell, and the RVA behind it.
    pub(super) fn unsigned(&self, rva: u32) -> Option<(u32, u32)> {
        let extra = self.byte(rva)?.trailing_ones().min(4);
        if extra == 4 {
            let start = rva.checked_add(1)?;
            return Some((self.little_endian(start, 4)?, start.checked_add(4)?));
        }
        let length = extra.checked_add(1)?;
        let value = self.little_endian(rva, length)?;
        Some((value.checked_shr(length)?, rva.checked_add(length)?))
    }

    /// The same with a sign.
    pub(super) fn signed(&self, rva: u32) -> Option<(i32, u32)> {
        let extra = self.byte(rva)?.trailing_ones().min(4);
        let (value, next) = self.unsigned(rva)?;
        if extra == 4 {
            return Some((value.cast_signed(), next));
        }
        // seven bits of value in each byte
        let unused = 32_u32.checked_sub(extra.checked_add(1)?.checked_mul(7)?)?;
        let signed = value.checked_shl(unused)?.cast_signed();
        Some((signed.checked_shr(unused)?, next))
    }

    /// Where element `index` of a sparse array begins; `None` for elements that are not there.
    pub(super) fn array_element(&self, array: u32, index: u32) -> Option<u32> {
        let (head, blocks) = self.unsigned(array)?;
        let (count, width) = (head >> 2, 1_u32.checked_shl(head & 3)?);
        if index >= count {
            return None;
        }
        let block = (index >> BLOCK_BITS).checked_mul(width)?;
        let distance = self.little_endian(blocks.checked_add(block)?, width)?;
        let mut at = blocks.checked_add(distance)?;
        for bit in (0..BLOCK_BITS).rev().map(|b| 1 << b) {
            let (value, next) = self.unsigned(at)?;
            if index & bit != 0 {
                if value & 2 != 0 {
                    at = at.checked_add(value >> 2)?;
                    continue;
                }
            } else if value & 1 != 0 {
                at = next;
                continue;
            }
            // a leaf: the only element below here
            let only = value & 3 == 0 && value >> 2 == index & 0xf;
            return only.then_some(next);
        }
        Some(at)
    }

    /// The payloads of all entries of a hash table.
    pub(super) fn table_entries(&self, table: u32) -> Option<Vec<u32>> {
        let header = self.byte(table)?;
        let base = table.checked_add(1)?;
        let width = 1_u32.checked_shl(u32::from(header & 3))?;
        let buckets = 1_u32.checked_shl(u32::from(header >> 2))?;
        let edge = |i: u32| {
            let at = base.checked_add(i.checked_mul(width)?)?;
            base.checked_add(self.little_endian(at, width)?)
        };
        let mut at = edge(0)?;
        let end = edge(buckets)?;
        let mut out = Vec::new();
        while at < end && out.len() < MAX_ENTRIES {
            // one byte of the hash, then the distance of the payload from here
            let here = at.checked_add(1)?;
            let (distance, next) = self.signed(here)?;
            out.push(here.checked_add_signed(distance)?);
            at = next;
        }
        Some(out)
    }
}
