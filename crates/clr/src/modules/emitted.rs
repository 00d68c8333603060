//! Metadata and code of modules that the program emitted with System.Reflection.Emit: no image has it.
//!
//! The runtime writes it out anew after each type that was made, as a debugger would want it, and keeps the newest copy:
//! from 9.0 on its length and then its bytes behind a pointer of the module, in 8.0 in a buffer object. Where the IL of
//! each method stands it keeps in a hash table, again for debuggers.

use crate::runtime::Runtime;
use asynctriage_dump::Addr;
use asynctriage_metadata::{Table, Token};

/// More than any program emits.
const MAX_EMITTED: u32 = 256 << 20;
/// Entries of a table of code that are looked at.
const MAX_ENTRIES: u32 = 1 << 20;

impl Runtime<'_> {
    /// Where the metadata of an emitted module begins, and how long it is; `None` for modules of images.
    pub(super) fn emitted_metadata(&self, module: Addr) -> Option<(Addr, u32)> {
        let (m, o) = (self.memory, &self.offsets);
        let (start, len) = if let Some(slot) = o.module.emitted {
            let copy = m.ptr(module + slot)?.non_null()?;
            (copy + 4, m.u32(copy)?)
        } else {
            let buffer = m.ptr(module + o.module.emitted_buffer?)?.non_null()?;
            let start = m.ptr(buffer + o.text.buffer)?.non_null()?;
            (start, m.u32(buffer + o.text.size)?)
        };
        (1..=MAX_EMITTED).contains(&len).then_some((start, len))
    }

    /// Where the body of a method of an emitted module begins (10.0 and 11.0).
    pub(crate) fn emitted_body(&self, module: Addr, rid: u32) -> Option<Addr> {
        let (m, o) = (self.memory, &self.offsets.emitted_code);
        let wanted = Token::new(Table::MethodDef, rid);
        let known = m
            .ptr(module + self.offsets.module.emitted_code?)?
            .non_null()?;
        let table = m.ptr(known + o.table?)?.non_null()?;
        let count = m.u32(known + o.count?)?.min(MAX_ENTRIES);
        let mut entries = (0..u64::from(count)).map_while(|i| Some(table.element(i, o.size?)));
        let entry = entries.find(|at| o.token.and_then(|t| m.u32(*at + t)) == Some(wanted.0))?;
        m.ptr(entry + o.code?)?.non_null()
    }
}
