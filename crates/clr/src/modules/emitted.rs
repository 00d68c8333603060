//! Metadata of modules that the program emitted with System.Reflection.Emit: no image has it.
//!
//! The runtime writes it out anew after each type that was made, as a debugger would want it, and keeps the newest copy:
//! from 9.0 on its length and then its bytes behind a pointer of the module, in 8.0 in a buffer object.

use crate::runtime::Runtime;
use asynctriage_dump::Addr;

/// More than any program emits.
const MAX_EMITTED: u32 = 256 << 20;

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
}
