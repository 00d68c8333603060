//! Which parts of the JIT's code belong to a method (x64): entries like those of images' function tables, behind the
//! method's header. On Windows they also tell how to leave it.

use super::range::CodeKind;
use crate::runtime::Runtime;
use asynctriage_dump::{Addr, Memory};
use asynctriage_image::pe::{Covering, Function};

/// Parts of one method that are looked at: its body, and a handler each.
const MAX_PARTS: u32 = 256;

impl Runtime<'_> {
    /// What of its method has the instruction at an address of the JIT's code (x64; on Windows 8.0 to 10.0). The numbers
    /// of a part are distances from the begin of the code range. `None` where that is not known: for code of images, where
    /// the layouts lack the entries, and where the dump does.
    pub(crate) fn jit_covering(&self, at: Addr) -> Option<Covering> {
        let CodeKind::Jit { header } = self.code_at(at)?.kind else {
            return None;
        };
        let o = &self.offsets.code_header;
        let base = self.code_section(at)?.begin;
        let parts = Parts {
            base,
            count: self.memory.u32(header + o.unwind_count?)?,
            entries: header + o.unwind_entries?,
        };
        parts.covering(self.memory, u32::try_from(at.since(base)?).ok()?)
    }
}

/// The parts of one method.
#[derive(Clone, Copy)]
struct Parts {
    base: Addr,
    count: u32,
    entries: Addr,
}

impl Parts {
    fn covering(self, memory: &dyn Memory, rva: u32) -> Option<Covering> {
        for i in 0..self.count.min(MAX_PARTS) {
            let at = self.entries.element(i.into(), Function::SIZE);
            let part = Function::read(memory, self.base, at)?;
            if part.contains(rva) {
                return Some(Covering::Function(part));
            }
        }
        // every method has a body, and one of the parts that were not looked at may have it
        let is_all = (1..=MAX_PARTS).contains(&self.count);
        is_all.then_some(Covering::Nothing)
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::Bytes;
    use super::*;

    const BASE: Addr = Addr(0x7000_0000);
    const ENTRIES: Addr = Addr(0x5000);

    /// A method that counts so many parts, with entries for those that the dump holds.
    fn covering(count: u32, held: &[[u32; 3]], rva: u32) -> Option<Covering> {
        let words = held.as_flattened().iter();
        let memory = Bytes::at(ENTRIES, words.flat_map(|w| w.to_le_bytes()).collect());
        let parts = Parts {
            base: BASE,
            count,
            entries: ENTRIES,
        };
        parts.covering(&memory, rva)
    }

    fn part([begin, end, unwind]: [u32; 3]) -> Option<Covering> {
        Some(Covering::Function(Function {
            base: BASE,
            begin,
            end,
            unwind,
        }))
    }

    #[test]
    fn a_part_has_the_instructions_from_its_begin_to_its_end() {
        let (body, handler) = ([0x40, 0x80, 0x200], [0x90, 0xa0, 0x210]);
        assert_eq!(covering(2, &[body, handler], 0x40), part(body));
        assert_eq!(covering(2, &[body, handler], 0x9f), part(handler));
        for between in [0x3f, 0x80, 0xa0] {
            let found = covering(2, &[body, handler], between);
            assert_eq!(found, Some(Covering::Nothing), "{between:x}");
        }
    }

    #[test]
    fn nothing_is_said_before_all_parts_were_seen() {
        let body = [0x40, 0x80, 0x200];
        assert_eq!(covering(2, &[body], 0x40), part(body));
        assert_eq!(covering(2, &[body], 0x90), None, "the second is missing");
        assert_eq!(covering(1, &[], 0x40), None);
        assert_eq!(covering(0, &[body], 0x90), None, "every method has a body");
        let many = vec![body; 257];
        assert_eq!(covering(256, &many, 0x90), Some(Covering::Nothing));
        assert_eq!(covering(257, &many, 0x90), None, "more than are looked at");
    }
}
