//! The table of an image's functions (`.pdata`): where each begins and ends, and how to leave it (x64).
//!
//! Linkers write it for native code, crossgen for ReadyToRun code; Windows itself needs it to leave a frame.

use super::PeImage;
use asynctriage_dump::{Addr, Memory};

/// The unwind information of an entry with this bit is another entry.
const INDIRECT: u32 = 1;
/// Entries that lead to one another; linkers write one such step at most.
const MAX_STEPS: usize = 8;
/// `IMAGE_FILE_MACHINE_AMD64`.
const X64: u16 = 0x8664;
/// What dumps keep or leave out as a whole.
const PAGE: u64 = 4096;
/// Pages that are passed over on the way to one that the dump holds; the largest tables have some thousand.
const MAX_ABSENT: usize = 4096;
/// Entries of one table.
const MAX_FUNCTIONS: u32 = 1 << 24;

/// A function, or a part of one that stands apart. All numbers are distances from `base`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Function {
    /// What the numbers are counted from: the load address of the image, or the begin of the JIT's code.
    pub base: Addr,
    /// The first instruction.
    pub begin: u32,
    /// Behind the last one.
    pub end: u32,
    /// `UNWIND_INFO`.
    pub unwind: u32,
}

impl Function {
    /// Bytes of an entry: begin, end and unwind information.
    pub const SIZE: u64 = 12;

    /// The entry at an address; `None` when the dump lacks it.
    #[must_use]
    pub fn read(memory: &dyn Memory, base: Addr, at: Addr) -> Option<Self> {
        Some(Self {
            base,
            begin: memory.u32(at)?,
            end: memory.u32(at + 4)?,
            unwind: memory.u32(at + 8)?,
        })
    }

    /// The entry itself, or the one that it stands for.
    #[must_use]
    pub fn direct(self, memory: &dyn Memory) -> Option<Self> {
        let mut function = self;
        for _ in 0..MAX_STEPS {
            if function.unwind & INDIRECT == 0 {
                return Some(function);
            }
            let at = self.base + u64::from(function.unwind & !INDIRECT);
            function = Self::read(memory, self.base, at)?;
        }
        None
    }

    /// Whether it has the instruction at this distance from the base.
    #[must_use]
    pub fn contains(&self, rva: u32) -> bool {
        self.begin <= rva && rva < self.end
    }
}

/// What a table says of an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Covering {
    /// This function has it.
    Function(Function),
    /// None has it: code that calls nothing and leaves the stack as it was, or no code at all.
    Nothing,
}

/// The functions of one image, in the order of their begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FunctionTable {
    base: Addr,
    at: Addr,
    count: u32,
}

impl FunctionTable {
    /// A table of so many entries at `at`, whose numbers are distances from `base`.
    #[must_use]
    pub fn new(base: Addr, at: Addr, count: u32) -> Self {
        Self {
            base,
            at,
            count: count.min(MAX_FUNCTIONS),
        }
    }

    pub(super) fn of(image: &PeImage) -> Option<Self> {
        let range = image
            .exceptions
            .non_empty()
            .filter(|_| image.machine == X64)?;
        let count = u64::from(range.size).checked_div(Function::SIZE)?;
        let at = image.rva_to_addr(range.rva)?;
        Some(Self::new(image.base, at, u32::try_from(count).ok()?))
    }

    /// What all numbers are counted from.
    #[must_use]
    pub fn base(&self) -> Addr {
        self.base
    }

    /// Number of entries.
    #[must_use]
    pub fn len(&self) -> u32 {
        self.count
    }

    /// Whether there is no entry.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    fn begin(&self, memory: &dyn Memory, index: u32) -> Option<u32> {
        memory.u32(self.at.element(index.into(), Function::SIZE))
    }

    /// The entry with this number.
    #[must_use]
    pub fn get(&self, memory: &dyn Memory, index: u32) -> Option<Function> {
        let there = index < self.count;
        let at = self.at.element(index.into(), Function::SIZE);
        there.then(|| Function::read(memory, self.base, at))?
    }

    /// How many entries begin at or before a place; `None` when the dump lacks the entries that tell.
    #[must_use]
    pub fn begun(&self, memory: &dyn Memory, rva: u32) -> Option<u32> {
        let (mut low, mut high) = (0, self.count);
        while low < high {
            let middle = low.midpoint(high);
            if self.begin(memory, middle)? <= rva {
                low = middle.saturating_add(1);
            } else {
                high = middle;
            }
        }
        Some(low)
    }

    /// What has the instruction at `rva`; `None` when the dump lacks the entries that tell. Heap dumps hold the pages of a
    /// table that walks of the process's own stacks have touched: an entry counts where its own end proves that it covers
    /// the place, and none does where two neighbours prove it.
    #[must_use]
    pub fn covering(&self, memory: &dyn Memory, rva: u32) -> Option<Covering> {
        let (mut low, mut high) = (0, self.count);
        let mut last = None;
        while low < high {
            let Some((index, function)) = self.near(memory, low, high) else {
                break;
            };
            if function.begin <= rva {
                last = Some(function);
                low = index.saturating_add(1);
            } else {
                high = index;
            }
        }
        match last.filter(|f| f.contains(rva)) {
            Some(function) => Some(Covering::Function(function)),
            // entries between are missing, and one of them may have it
            None if low < high => None,
            None => Some(Covering::Nothing),
        }
    }

    /// The entry in the middle of a range, or the next one that the dump holds: above it, else below.
    fn near(&self, memory: &dyn Memory, low: u32, high: u32) -> Option<(u32, Function)> {
        let middle = low.midpoint(high);
        let held = |index: u32| {
            let found = self.get(memory, index)?;
            // trimmed dumps have zeros for what was not read
            (found.end != 0).then_some((index, found))
        };
        let page = |index: u32| {
            self.at
                .element(index.into(), Function::SIZE)
                .without(PAGE.wrapping_sub(1))
        };
        let number = |at: Addr| u32::try_from(at.since(self.at)?.checked_div(Function::SIZE)?).ok();
        let mut index = middle;
        let mut pages = 0..MAX_ABSENT;
        while index < high && pages.next().is_some() {
            if let Some(found) = held(index) {
                return Some(found);
            }
            // the first one that begins in the next page
            let behind = (page(index) + PAGE).back(1);
            index = number(behind)?.max(index).checked_add(1)?;
        }
        let mut index = middle;
        for _ in 0..MAX_ABSENT {
            // the last one that ends before the page
            index = number(page(index))?.checked_sub(1)?;
            if index < low {
                return None;
            }
            if let Some(found) = held(index) {
                return Some(found);
            }
        }
        None
    }

    /// Whether the dump holds any of the entries.
    #[must_use]
    pub fn is_held(&self, memory: &dyn Memory) -> bool {
        self.near(memory, 0, self.count).is_some()
    }
}

#[cfg(test)]
mod tests;
