//! A layout that was laid over a dump and checked there.

use crate::descriptor::Descriptor;
use crate::layout::{Layout, MissingField, Offsets};
use crate::locate::{DacTablePlace, Found};
use crate::runtime::Globals;
use asynctriage_dump::{Addr, Memory};

/// Entries of `g_dacTable` that are looked at when an index does not hold what the layout table says (11.0.0 has fewer).
const DAC_ENTRIES: u64 = 160;

/// A layout that passed the checks.
pub(crate) struct Fitted {
    pub(crate) layout: Layout,
    pub(crate) offsets: Offsets,
    pub(crate) globals: Globals,
    pub(crate) checks: Vec<String>,
    pub(crate) product_version: Option<String>,
}

impl Fitted {
    pub(crate) fn try_new(
        memory: &dyn Memory,
        found: &Found,
        mut layout: Layout,
    ) -> Result<Self, String> {
        let mut checks = vec![format!("built-in table {}", layout.name())];
        let descriptor = found.descriptor.and_then(|h| Descriptor::read(memory, h));
        let mut product_version = None;
        if let Some(d) = descriptor {
            product_version = d.texts.get("RuntimeProductVersionString").cloned();
            let differing = layout.lay_over_descriptor(d.types);
            checks.push(format!(
                "contract descriptor in the dump: {} offsets, {differing} differ from the table",
                layout.from_descriptor()
            ));
        }
        let offsets = Offsets::resolve(&layout).map_err(|e: MissingField| e.to_string())?;
        if matches!(found.dac_table, DacTablePlace::ByGcEntry(_)) {
            checks.push("g_dacTable found by its content: the dump lacks the symbols".into());
        }
        let globals = DacTable {
            memory,
            layout: &layout,
            offsets: &offsets,
            at: found
                .dac_table
                .start(&layout)
                .ok_or("the table has no index for the GC's data table")?,
        }
        .globals(&mut checks)?;
        Ok(Self {
            layout,
            offsets,
            globals,
            checks,
            product_version,
        })
    }
}

/// `g_dacTable`: an array of pointers to the runtime's variables, its order fixed by the minor version.
struct DacTable<'a> {
    memory: &'a dyn Memory,
    layout: &'a Layout,
    offsets: &'a Offsets,
    at: Addr,
}

impl DacTable<'_> {
    fn entry(&self, index: u64) -> Option<Addr> {
        self.memory
            .ptr(self.memory.ptr(self.at.element(index, 8))?)?
            .non_null()
    }

    /// The variable at its index when it passes the test, else the only nearby entry that does: servicing releases
    /// have moved the tail of the table (8.0.34).
    fn find(
        &self,
        variable: &'static str,
        checks: &mut Vec<String>,
        test: impl Fn(Addr) -> bool,
    ) -> Result<Addr, String> {
        let index = self
            .layout
            .dac_index(variable)
            .ok_or_else(|| format!("{variable} has no index in the table"))?;
        if let Some(value) = self.entry(index).filter(|v| test(*v)) {
            return Ok(value);
        }
        let elsewhere =
            (0..DAC_ENTRIES).find_map(|i| Some((i, self.entry(i).filter(|v| test(*v))?)));
        let (at, value) = elsewhere.ok_or_else(|| {
            format!("{variable} is neither at index {index} of g_dacTable nor elsewhere in it")
        })?;
        checks.push(format!(
            "{variable} stands at index {at} of g_dacTable, not at {index}"
        ));
        Ok(value)
    }

    /// Component size, base size and parent of what may be a MethodTable.
    fn shape(&self, mt: Addr) -> Option<(u32, u32, Addr)> {
        let o = &self.offsets.method_table;
        let flags = self.memory.u32(mt + o.flags)?;
        let component = if flags & 0x8000_0000 == 0 {
            0
        } else {
            flags & 0xffff
        };
        Some((
            component,
            self.memory.u32(mt + o.base_size)?,
            self.memory.ptr(mt + o.parent)?,
        ))
    }

    fn globals(&self, checks: &mut Vec<String>) -> Result<Globals, String> {
        let m = self.memory;
        let string_mt = self.find("StringMethodTable", checks, |mt| {
            self.shape(mt).is_some_and(|(c, b, _)| c == 2 && b == 22)
        })?;
        let free_mt = self.find("FreeObjectMethodTable", checks, |mt| {
            self.shape(mt).is_some_and(|(c, b, _)| c == 1 && b == 24)
        })?;
        let object_mt = self.find("ObjectMethodTable", checks, |mt| {
            self.shape(mt)
                .is_some_and(|(c, b, p)| c == 0 && b == 24 && p.is_null())
                && self.shape(string_mt).is_some_and(|(_, _, p)| p == mt)
        })?;
        let vars = &self.offsets.gc_vars;
        let gc_vars = self.find("GcDacVars", checks, |v| {
            let size = m.u64(v + vars.generation_size);
            let count = m.u64(v + vars.generation_count);
            m.u8(v + vars.major) == Some(2)
                && size.is_some_and(|s| (64..0x400).contains(&s))
                && count == Some(5)
        })?;
        let store = &self.offsets.thread_store;
        let thread_store = self.find("ThreadStore", checks, |s| {
            let count = m.u32(s + store.count);
            count.is_some_and(|c| (1..1 << 20).contains(&c))
                && m.ptr(s + store.first).is_some_and(|l| m.readable(l, 8))
        })?;
        let core_lib = m
            .ptr(string_mt + self.offsets.method_table.module)
            .ok_or("System.String names no module")?;
        let app_domain = self
            .layout
            .dac_index("AppDomain")
            .and_then(|i| self.entry(i))
            .unwrap_or_default();
        let continuation_class = self
            .layout
            .dac_index("ContinuationSingletonEEClass")
            .and_then(|i| self.entry(i))
            .unwrap_or_default();
        let code_range_map = self
            .layout
            .dac_index("CodeRangeMap")
            .and_then(|i| self.entry(i))
            .unwrap_or_default();
        checks.push("MethodTables of Object, String and free space, the GC's data table and the thread list have the expected shape".into());
        Ok(Globals {
            dac_table: self.at,
            thread_store,
            gc_vars,
            app_domain,
            free_mt,
            string_mt,
            object_mt,
            core_lib,
            continuation_class,
            code_range_map,
        })
    }
}
