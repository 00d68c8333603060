//! Which function has an instruction of managed code (x64), and with that how to leave it: entries like those of images'
//! function tables, behind the header of each of the JIT's methods, and in one table for each ReadyToRun image.

use super::range::{Code, CodeKind};
use crate::runtime::Runtime;
use asynctriage_dump::{Addr, Memory};
use asynctriage_image::pe::{Covering, Function, FunctionTable};
use asynctriage_image::r2r::ReadyToRun;
use asynctriage_image::unwind::Arm64Function;

/// Parts of one method that are looked at: its body, and a handler each.
const MAX_PARTS: u32 = 4096;

impl Runtime<'_> {
    /// What has the instruction at an address of managed code; `None` when the dump lacks the entries that tell.
    pub(crate) fn managed_covering(&self, at: Addr, code: &Code) -> Option<Covering> {
        match code.kind {
            CodeKind::Jit { header } => self.jit_covering(at, code.start, header),
            CodeKind::ReadyToRun { image } => {
                let rva = u32::try_from(at.since(image)?).ok()?;
                self.compiled_functions(image, at)?
                    .covering(self.memory, rva)
            }
        }
    }

    /// The same for the JIT's code; `None` also where the layouts lack the entries.
    fn jit_covering(&self, at: Addr, start: Addr, header: Addr) -> Option<Covering> {
        let o = &self.offsets.code_header;
        let entries = header + o.unwind_entries?;
        // the body comes first, and begins with the method: all numbers are distances from the same place
        let body = self.memory.u32(entries)?;
        let parts = Parts {
            base: start.back(body.into()),
            count: self.memory.u32(header + o.unwind_count?)?,
            entries,
        };
        parts.covering(self.memory, u32::try_from(at.since(parts.base)?).ok()?)
    }

    /// The functions of the ReadyToRun image that begins at `base` and has the code at `at`.
    fn compiled_functions(&self, base: Addr, at: Addr) -> Option<FunctionTable> {
        let known = &self.code.functions;
        if let Some(found) = known.read().ok().and_then(|k| k.get(&base).copied()) {
            return found;
        }
        let read = self.known_functions(base, at).or_else(|| {
            let image = self.compiled_image(base)?;
            ReadyToRun::of(self.memory, &image.pe)?.function_table()
        });
        let read = read.filter(|table| table.is_held(self.memory));
        if let Ok(mut known) = known.write() {
            known.insert(base, read);
        }
        read
    }

    /// What the runtime keeps of the image's table: of composite images it is that of all their assemblies.
    fn known_functions(&self, base: Addr, at: Addr) -> Option<FunctionTable> {
        let (table, count) = self.known_entries(base, at)?;
        Some(FunctionTable::new(base, table, count))
    }

    fn known_entries(&self, base: Addr, at: Addr) -> Option<(Addr, u32)> {
        let (m, l) = (self.memory, self.layout());
        let module = self.code_section(at)?.module.non_null()?;
        let info = m
            .ptr(module + l.get("Module", "ReadyToRunInfo")?)?
            .non_null()?;
        let table = m.ptr(info + l.get("ReadyToRunInfo", "RuntimeFunctions")?)?;
        let count = m.u32(info + l.get("ReadyToRunInfo", "NumRuntimeFunctions")?)?;
        (table > base && count > 0).then_some((table, count))
    }
}

impl Runtime<'_> {
    /// The function that has the instruction at an address of managed code (arm64): entries without ends, which their
    /// unwind information tells. `None` when the dump lacks what tells it.
    pub(crate) fn arm64_function(&self, at: Addr) -> Option<Arm64Function> {
        let code = self.code_at(at)?;
        let (base, entries, count) = match code.kind {
            CodeKind::Jit { header } => {
                let o = &self.offsets.code_header;
                let entries = header + o.unwind_entries?;
                let body = self.memory.u32(entries)?;
                let count = self.memory.u32(header + o.unwind_count?)?.min(MAX_PARTS);
                (code.start.back(body.into()), entries, count)
            }
            CodeKind::ReadyToRun { image } => {
                let (entries, count) = self.known_entries(image, at)?;
                (image, entries, count)
            }
        };
        let rva = u32::try_from(at.since(base)?).ok()?;
        let entry = |index: u32| {
            let place = entries.element(index.into(), Arm64Function::SIZE);
            Arm64Function::read(self.memory, base, place)
        };
        let (mut low, mut high) = (0, count);
        while low < high {
            let middle = low.midpoint(high);
            if entry(middle)?.begin <= rva {
                low = middle.saturating_add(1);
            } else {
                high = middle;
            }
        }
        let function = entry(low.checked_sub(1)?)?;
        let length = function.length(self.memory)?;
        (rva.checked_sub(function.begin)? < length).then_some(function)
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
        let many = vec![body; 4097];
        assert_eq!(covering(4096, &many, 0x90), Some(Covering::Nothing));
        assert_eq!(covering(4097, &many, 0x90), None, "more than are looked at");
    }
}
