//! The table of an ELF image: `.eh_frame`, found through `PT_GNU_EH_FRAME`.

use super::dwarf::{Bytes, Row};
use super::{ARM64, Break, X64};
use crate::elf::ElfImage;
use asynctriage_dump::{Addr, Memory};
use gimli::{
    BaseAddresses, EhFrame, EhFrameOffset, FrameDescriptionEntry, LittleEndian, UnwindContext,
    UnwindSection,
};
use std::collections::HashMap;
use std::sync::{Arc, RwLock};

/// The longest table that is taken; that of libcoreclr.so has 400 KiB.
const MAX_TABLE: u64 = 64 << 20;
/// The longest header of a table: an entry of 8 bytes for each function.
const MAX_HEADER: u64 = 16 << 20;
/// The longest entry that is looked at, in bytes; real ones have some hundred.
const MAX_ENTRY: usize = 64 << 10;
/// Rows that are kept: threads stand at the same places again and again.
const MAX_ROWS: usize = 1 << 16;
/// How every linker begins a header: version 1, pointer to the table as `DW_EH_PE_pcrel | DW_EH_PE_sdata4`, count as
/// `DW_EH_PE_udata4`, entries as `DW_EH_PE_datarel | DW_EH_PE_sdata4`.
const HEADER_START: [u8; 4] = [1, 0x1b, 0x03, 0x3b];
/// Bytes of a header in front of its entries, and of an entry: the begin of a function, and where its own entry is, both
/// from the begin of the header.
const HEADER: u64 = 12;
const ENTRY: u64 = 8;
/// Bytes of the length that entries of the table begin with, which does not count itself.
const LENGTH: u64 = 4;

/// The entries of one image.
pub(super) struct Table<'m> {
    memory: &'m dyn Memory,
    header_at: Addr,
    /// Functions that the header lists.
    count: u64,
    frames_at: Addr,
    pub(super) frames: EhFrame<Bytes<'m>>,
    bases: BaseAddresses,
    /// What is added to a linked address.
    bias: u64,
    known: RwLock<HashMap<u64, Result<Arc<Row>, Break>>>,
}

impl<'m> Table<'m> {
    /// `None` for an image of another architecture, and when the dump lacks the table.
    pub(super) fn read(memory: &'m dyn Memory, arm64: bool, image: &ElfImage) -> Option<Self> {
        if image.machine != if arm64 { ARM64 } else { X64 } {
            return None;
        }
        let (header_at, len) = image.eh_frame_hdr?;
        memory.peek(header_at, len.min(MAX_HEADER))?;
        let header = memory.slice(header_at, HEADER)?;
        let pointer = *header.get(4..)?.first_chunk()?;
        let count = u32::from_le_bytes(*header.get(8..)?.first_chunk()?);
        if !header.starts_with(&HEADER_START) {
            return None;
        }
        let room = len
            .min(MAX_HEADER)
            .checked_sub(HEADER)?
            .checked_div(ENTRY)?;
        let frames_at = (header_at + 4) + i64::from(i32::from_le_bytes(pointer)).cast_unsigned();
        // its length stands nowhere in what is mapped: it ends at the latest with its segment
        let segment = image.segments.iter().find(|s| s.contains(frames_at))?;
        let space = (segment.addr + segment.mem_size).since(frames_at)?;
        let len = space.min(memory.run(frames_at)).min(MAX_TABLE);
        let frames = memory.peek(frames_at, len).filter(|f| !f.is_empty())?;
        let linked = |at: Addr| at.0.wrapping_sub(image.bias);
        let bases = BaseAddresses::default()
            .set_eh_frame_hdr(linked(header_at))
            .set_eh_frame(linked(frames_at));
        let mut section = EhFrame::new(frames, LittleEndian);
        section.set_address_size(8);
        Some(Self {
            memory,
            header_at,
            count: u64::from(count).min(room),
            frames_at,
            frames: section,
            bases,
            bias: image.bias,
            known: RwLock::default(),
        })
    }

    /// What holds at an address.
    pub(super) fn row(&self, at: Addr) -> Result<Arc<Row>, Break> {
        let linked = at.0.wrapping_sub(self.bias);
        if let Some(row) = self.known.read().ok().and_then(|k| k.get(&linked).cloned()) {
            return row;
        }
        let row = self.read_row(linked).map(Arc::new);
        if let Ok(mut known) = self.known.write()
            && known.len() < MAX_ROWS
        {
            known.insert(linked, row.clone());
        }
        row
    }

    fn read_row(&self, linked: u64) -> Result<Row, Break> {
        let entry = self.entry(linked).filter(|e| e.contains(linked));
        let entry = entry.ok_or(Break::NoEntry)?;
        let common = entry.cie();
        if entry.entry_len() > MAX_ENTRY || common.entry_len() > MAX_ENTRY {
            return Err(Break::BadEntry);
        }
        let mut context = UnwindContext::new();
        let row = entry.unwind_info_for_address(&self.frames, &self.bases, &mut context, linked);
        let row = row.map_err(|_| Break::BadEntry)?;
        Ok(Row {
            cfa: row.cfa().clone(),
            rules: row.registers().cloned().collect(),
            return_register: common.return_address_register(),
            encoding: common.encoding(),
            is_signal: entry.is_signal_trampoline(),
        })
    }

    /// The entry that the header names for a linked address: that of the last function that begins at or before it.
    fn entry(&self, at: u64) -> Option<FrameDescriptionEntry<Bytes<'m>>> {
        let at = Addr(at.wrapping_add(self.bias));
        let (mut low, mut high) = (0, self.count);
        while low < high {
            let middle = low.midpoint(high);
            let (start, _) = self.listed(middle)?;
            if start <= at {
                low = middle.saturating_add(1);
            } else {
                high = middle;
            }
        }
        let (_, found) = self.listed(low.checked_sub(1)?)?;
        let offset = usize::try_from(found.since(self.frames_at)?).ok()?;
        let common = EhFrame::cie_from_offset;
        let entry = self
            .frames
            .fde_from_offset(&self.bases, EhFrameOffset(offset), common)
            .ok()?;
        // so that a trimmed dump keeps them
        for (offset, len) in [
            (entry.offset(), entry.entry_len()),
            (entry.cie().offset(), entry.cie().entry_len()),
        ] {
            let len = LENGTH.saturating_add(len as u64);
            self.memory.slice(self.frames_at + offset as u64, len)?;
        }
        Some(entry)
    }

    /// A line of the header: where a function begins, and where its entry is.
    fn listed(&self, index: u64) -> Option<(Addr, Addr)> {
        let bytes = self
            .memory
            .slice(self.header_at + HEADER + index.checked_mul(ENTRY)?, ENTRY)?;
        let place = |bytes: &[u8]| {
            let distance = i32::from_le_bytes(*bytes.first_chunk()?);
            Some(self.header_at + i64::from(distance).cast_unsigned())
        };
        Some((place(bytes)?, place(bytes.get(4..)?)?))
    }
}
