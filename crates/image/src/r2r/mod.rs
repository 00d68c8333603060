//! ReadyToRun images: functions compiled ahead of time, and what the compiler noted of them (versions 9 to 26).
//!
//! Sections are found through the header; all numbers inside are relative to the image. Dumps often lack the tables, and
//! then there is nothing here: the runtime's own maps say more.

mod instances;
mod native;

use crate::pe::{FunctionTable, PeImage};
use asynctriage_dump::{Addr, Memory};
use std::fmt;

pub use instances::InstanceMethod;

const SIGNATURE: u32 = 0x0052_5452;
const HEADER: u64 = 16;
const SECTION: u64 = 12;
const MAX_SECTIONS: u32 = 256;
/// Section types.
const RUNTIME_FUNCTIONS: u32 = 102;
const DEBUG_INFO: u32 = 105;
const DELAY_LOAD_THUNKS: u32 = 106;
const INSTANCE_ENTRY_POINTS: u32 = 109;
const MAX_FUNCTIONS: u32 = 1 << 24;
/// `IMAGE_FILE_MACHINE_AMD64`, and the bits that images for Linux have flipped.
const AMD64: u16 = 0x8664;
const AMD64_LINUX: u16 = AMD64 ^ 0x7b79;

/// The ReadyToRun part of an image.
#[derive(Clone, Copy)]
pub struct ReadyToRun<'i> {
    memory: &'i dyn Memory,
    image: &'i PeImage,
    header: Addr,
    sections: u32,
}

impl fmt::Debug for ReadyToRun<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReadyToRun")
            .field("header", &self.header)
            .field("sections", &self.sections)
            .finish_non_exhaustive()
    }
}

impl<'i> ReadyToRun<'i> {
    /// `None` for images without, or when the dump lacks the header.
    #[must_use]
    pub fn of(memory: &'i dyn Memory, image: &'i PeImage) -> Option<Self> {
        let header = image.rva_to_addr(image.cli?.managed_native_header?.rva)?;
        (memory.u32(header)? == SIGNATURE).then_some(Self {
            memory,
            image,
            header,
            sections: memory.u32(header + 12)?.min(MAX_SECTIONS),
        })
    }

    /// RVA and length of a section.
    fn section(&self, kind: u32) -> Option<(u32, u32)> {
        let entries = (0..self.sections).map(|i| (self.header + HEADER).element(i.into(), SECTION));
        let found = entries
            .into_iter()
            .find(|e| self.memory.u32(*e) == Some(kind))?;
        Some((self.memory.u32(found + 4)?, self.memory.u32(found + 8)?))
    }

    /// Bytes of one entry of the function table: begin, end and unwind data on x64, without the end elsewhere.
    fn stride(&self) -> u32 {
        if matches!(self.image.machine, AMD64 | AMD64_LINUX) {
            12
        } else {
            8
        }
    }

    /// Number of functions.
    #[must_use]
    pub fn functions(&self) -> u32 {
        let size = self.section(RUNTIME_FUNCTIONS).map_or(0, |s| s.1);
        size.checked_div(self.stride())
            .unwrap_or(0)
            .min(MAX_FUNCTIONS)
    }

    /// The table of the functions with their ends and how to leave them (x64).
    #[must_use]
    pub fn function_table(&self) -> Option<FunctionTable> {
        let (table, _) = self.section(RUNTIME_FUNCTIONS)?;
        let is_x64 = matches!(self.image.machine, AMD64 | AMD64_LINUX);
        let at = self.image.rva_to_addr(table).filter(|_| is_x64)?;
        Some(FunctionTable::new(self.image.base, at, self.functions()))
    }

    /// RVA of the first instruction of a function.
    #[must_use]
    pub fn function_start(&self, index: u32) -> Option<u32> {
        let (table, size) = self.section(RUNTIME_FUNCTIONS)?;
        let at = index.checked_mul(self.stride()).filter(|o| *o < size)?;
        self.memory
            .u32(self.image.rva_to_addr(table.checked_add(at)?)?)
    }

    /// The last function that begins at or before an RVA.
    #[must_use]
    pub fn function_at(&self, rva: u32) -> Option<u32> {
        let (mut low, mut high) = (0, self.functions());
        while low < high {
            let middle = low.midpoint(high);
            if self.function_start(middle)? <= rva {
                low = middle.saturating_add(1);
            } else {
                high = middle;
            }
        }
        low.checked_sub(1)
    }

    /// RVA of the stubs that methods call others through before these are known.
    #[must_use]
    pub fn thunks(&self) -> Option<u32> {
        self.section(DELAY_LOAD_THUNKS).map(|s| s.0)
    }

    /// Where the debug info of a function is.
    #[must_use]
    pub fn debug_info(&self, function: u32) -> Option<Addr> {
        let reader = self.reader();
        let at = reader.array_element(self.section(DEBUG_INFO)?.0, function)?;
        // equal blobs are stored once: a distance back, or 0 when it follows
        let (back, next) = reader.unsigned(at)?;
        let rva = if back == 0 {
            next
        } else {
            at.checked_sub(back)?
        };
        self.image.rva_to_addr(rva)
    }

    /// The methods that the image has code for beside those of its own table: instances of generic methods, methods of
    /// other modules, and the suspensible forms of async methods.
    pub fn instances(&self) -> Vec<InstanceMethod> {
        self.section(INSTANCE_ENTRY_POINTS)
            .and_then(|(rva, _)| instances::read(self.reader(), rva))
            .unwrap_or_default()
    }

    fn reader(&self) -> native::Reader<'i> {
        native::Reader {
            memory: self.memory,
            image: self.image,
        }
    }
}

#[cfg(test)]
mod tests;
