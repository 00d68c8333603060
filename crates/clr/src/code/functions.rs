//! How to leave code of the JIT on Windows: entries like those of images' function tables, behind the method's header.

use super::range::CodeKind;
use crate::runtime::Runtime;
use asynctriage_dump::Addr;
use asynctriage_image::pe::Function;

/// Parts of one method that are looked at: its body, and a handler each.
const MAX_PARTS: u32 = 1 << 12;
/// Bytes of an entry.
const ENTRY: u64 = 12;

impl Runtime<'_> {
    /// The part of a method's code that has the instruction at an address (x64 Windows; 8.0 to 10.0). Its numbers are
    /// distances from the begin of the code range. `None` for code of images.
    pub(crate) fn jit_function(&self, at: Addr) -> Option<Function> {
        let CodeKind::Jit { header } = self.code_at(at)?.kind else {
            return None;
        };
        let o = &self.offsets.code_header;
        let base = self.code_section(at)?.begin;
        let rva = u32::try_from(at.since(base)?).ok()?;
        let count = self.memory.u32(header + o.unwind_count?)?.min(MAX_PARTS);
        let entries = header + o.unwind_entries?;
        let parts = (0..count)
            .map_while(|i| Function::read(self.memory, base, entries.element(i.into(), ENTRY)));
        parts.into_iter().find(|f| f.contains(rva))
    }
}
