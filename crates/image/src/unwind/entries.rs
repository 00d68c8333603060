//! Which entries of an unwind table are followed.
//!
//! framehop follows frame pointers where no entry covers an address or one cannot be read, and evaluates expressions without a limit of
//! steps, so that one that jumps backwards never ends. Here both are refused before it sees them. Compilers write no
//! jumps: the expressions that real tables have are those of PLTs and of signal frames.

use gimli::{
    BaseAddresses, CallFrameInstruction, CallFrameInstructionIter, EhFrame, EhFrameHdr,
    EhFrameOffset, EndianSlice, FrameDescriptionEntry, LittleEndian, Operation, ParsedEhFrameHdr,
    UnwindExpression, UnwindSection,
};

type Bytes<'m> = EndianSlice<'m, LittleEndian>;

/// The longest entry that is looked at, in bytes; real ones have some hundred.
const MAX_ENTRY: usize = 64 << 10;

/// The entries of a table.
pub(super) struct Entries<'m> {
    header: ParsedEhFrameHdr<Bytes<'m>>,
    frames: EhFrame<Bytes<'m>>,
    bases: BaseAddresses,
}

impl<'m> Entries<'m> {
    /// Reads a table by its two parts, each with its linked address.
    pub(super) fn read(header: (u64, &'m [u8]), frames: (u64, &'m [u8])) -> Option<Self> {
        let bases = BaseAddresses::default()
            .set_eh_frame_hdr(header.0)
            .set_eh_frame(frames.0);
        let mut section = EhFrame::new(frames.1, LittleEndian);
        section.set_address_size(8);
        Some(Self {
            header: EhFrameHdr::new(header.1, LittleEndian)
                .parse(&bases, 8)
                .ok()?,
            frames: section,
            bases,
        })
    }

    /// Whether an entry covers a linked address, and can be followed in bounded time.
    pub(super) fn lead_out_of(&self, at: u64) -> bool {
        let entry = self.entry(at).filter(|e| e.contains(at));
        entry.is_some_and(|entry| {
            let common = entry.cie();
            let short = entry.entry_len() <= MAX_ENTRY && common.entry_len() <= MAX_ENTRY;
            short
                && self.is_straight(&entry, common.instructions(&self.frames, &self.bases))
                && self.is_straight(&entry, entry.instructions(&self.frames, &self.bases))
        })
    }

    /// The entry that the header names for a linked address.
    fn entry(&self, at: u64) -> Option<FrameDescriptionEntry<Bytes<'m>>> {
        let found = self.header.table()?.lookup(at, &self.bases).ok()?;
        let start = self.header.eh_frame_ptr().direct().ok()?;
        let offset = found.direct().ok()?.checked_sub(start)?;
        let offset = EhFrameOffset(usize::try_from(offset).ok()?);
        let common = EhFrame::cie_from_offset;
        self.frames
            .fde_from_offset(&self.bases, offset, common)
            .ok()
    }

    /// Whether all instructions can be read and no expression jumps.
    fn is_straight(
        &self,
        entry: &FrameDescriptionEntry<Bytes<'m>>,
        mut instructions: CallFrameInstructionIter<'_, Bytes<'m>>,
    ) -> bool {
        loop {
            match instructions.next() {
                Ok(Some(i)) if expression(&i).is_none_or(|e| self.ends(entry, &e)) => {}
                Ok(None) => return true,
                Ok(Some(_)) | Err(_) => return false,
            }
        }
    }

    fn ends(
        &self,
        entry: &FrameDescriptionEntry<Bytes<'m>>,
        expression: &UnwindExpression<usize>,
    ) -> bool {
        let Ok(expression) = expression.get(&self.frames) else {
            return false;
        };
        let mut operations = expression.operations(entry.cie().encoding());
        loop {
            match operations.next() {
                Ok(Some(Operation::Skip { .. } | Operation::Bra { .. })) | Err(_) => return false,
                Ok(Some(_)) => {}
                Ok(None) => return true,
            }
        }
    }
}

/// The expression that an instruction brings.
fn expression(instruction: &CallFrameInstruction<usize>) -> Option<UnwindExpression<usize>> {
    use CallFrameInstruction as I;
    match instruction {
        I::DefCfaExpression { expression }
        | I::Expression { expression, .. }
        | I::ValExpression { expression, .. } => Some(*expression),
        _ => None,
    }
}
