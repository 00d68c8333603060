//! The code ranges of the process.
//!
//! A tree of four levels of 256 entries over pieces of 128 KiB (bits 48 to 17 of the address; 8.0 to 11.0, linux-x64)
//! leads to fragments, each naming the RangeSection that describes the code there.

use super::nibble;
use crate::runtime::Runtime;
use asynctriage_dump::Addr;

const LEVELS: u32 = 4;
/// Bits of an address below those that the tree looks at.
const PIECE_BITS: u32 = 17;
/// Sections that share one piece of 128 KiB.
const MAX_FRAGMENTS: usize = 1024;
/// Bit 0 of a pointer in the tree: the section can be unloaded.
const COLLECTIBLE: u64 = 1;
/// RangeSection.Flags: neither JIT nor ReadyToRun code, but precode and stubs.
const RANGE_LIST: u32 = 4;
/// Values in front of a block of code that are no header: the kinds of stubs (8.0 to 11.0).
const LAST_STUB_KIND: u64 = 15;

/// Who compiled a method.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CodeKind {
    /// The JIT; the header in front of the code is there.
    Jit {
        /// The RealCodeHeader.
        header: Addr,
    },
    /// Ahead of time, in an image.
    ReadyToRun {
        /// Load address of the image.
        image: Addr,
    },
}

/// The code of one method.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Code {
    /// Where the method's code begins.
    pub start: Addr,
    /// Its MethodDesc.
    pub desc: Addr,
    /// Who compiled it.
    pub kind: CodeKind,
}

/// A RangeSection: the same kind of code from `begin` on.
pub(crate) struct Section {
    pub(crate) begin: Addr,
    /// HeapList of the JIT's code; null in images.
    heap_list: Addr,
    /// Module whose image it is; null for the JIT's code.
    pub(crate) module: Addr,
}

impl Runtime<'_> {
    /// The method whose code an address lies in. A return address stands behind its call: ask for one byte less.
    #[must_use]
    pub fn code_at(&self, ip: Addr) -> Option<Code> {
        let section = self.code_section(ip)?;
        match section.heap_list.non_null() {
            Some(heap) => self.jit_code(heap, ip),
            None => self.image_code(&section, ip),
        }
    }

    pub(crate) fn code_section(&self, ip: Addr) -> Option<Section> {
        let (m, o) = (self.memory, &self.offsets.fragment);
        let mut node = self.globals.code_range_map.non_null()?;
        for level in (0..LEVELS).rev() {
            let shift = PIECE_BITS.saturating_add(level.saturating_mul(8));
            let index = ip.0.checked_shr(shift)? & 0xff;
            node = m
                .ptr(node.element(index, 8))?
                .without(COLLECTIBLE)
                .non_null()?;
        }
        let mut fragment = Some(node);
        for _ in 0..MAX_FRAGMENTS {
            let at = fragment?;
            if m.ptr(at + o.begin)? <= ip && ip < m.ptr(at + o.end)? {
                return self.read_section(m.ptr(at + o.section)?.non_null()?);
            }
            fragment = m.ptr(at + o.next)?.without(COLLECTIBLE).non_null();
        }
        None
    }

    fn read_section(&self, at: Addr) -> Option<Section> {
        let (m, o) = (self.memory, &self.offsets.range_section);
        if m.u32(at + o.flags)? & RANGE_LIST != 0 {
            return None;
        }
        Some(Section {
            begin: m.ptr(at + o.begin)?,
            heap_list: m.ptr(at + o.heap_list)?,
            module: m.ptr(at + o.module)?,
        })
    }

    fn jit_code(&self, heap: Addr, ip: Addr) -> Option<Code> {
        let (m, o) = (self.memory, &self.offsets.code_heap);
        let map = nibble::Map {
            memory: m,
            base: m.ptr(heap + o.map_base)?,
            words: m.ptr(heap + o.header_map)?,
        };
        let start = match self.layout().get("Facts", "NibbleMap") {
            Some(2) => map.find_in_constant_time(ip)?,
            _ => map.find_by_scanning(ip)?,
        };
        let header = m.ptr(start.back(8))?;
        if header.0 <= LAST_STUB_KIND {
            return None;
        }
        Some(Code {
            start,
            desc: m
                .ptr(header + self.offsets.code_header.method_desc)?
                .non_null()?,
            kind: CodeKind::Jit { header },
        })
    }

    /// Every method that has ever run is in its image's map; the table of functions is often missing from dumps.
    fn image_code(&self, section: &Section, ip: Addr) -> Option<Code> {
        let entries = self.entry_points(section.module.non_null()?);
        let (start, desc) = entries.at_or_before(ip)?;
        (start >= section.begin).then_some(Code {
            start,
            desc,
            kind: CodeKind::ReadyToRun {
                image: section.begin,
            },
        })
    }
}
