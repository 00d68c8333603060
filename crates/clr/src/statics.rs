//! Static fields.

use crate::modules::Module;
use crate::runtime::Runtime;
use crate::threads::Thread;
use crate::types::{Field, FieldKind};
use asynctriage_dump::Addr;
use asynctriage_metadata::Table;
use std::sync::Arc;

/// 9.0 and later keep class-initialisation state in bit 0 of the pointers to statics.
const NOT_INITIALISED: u64 = 1;
/// Bytes in front of the elements of an array.
const ARRAY_HEAD: u64 = 16;

/// Where the statics of one type for one thread are: the high byte of an index (9.0 to 11.0).
mod tls {
    pub(super) const KIND_SHIFT: u32 = 24;
    pub(super) const INDEX: u32 = 0x00ff_ffff;
    /// The type has no statics on any thread yet.
    pub(super) const NEVER: u32 = u32::MAX;
    /// In an array; its first two numbers are not used.
    pub(super) const IN_ARRAY: u32 = 0;
    pub(super) const UNUSED: u64 = 2;
    /// Inside the thread's own structure.
    pub(super) const DIRECT: u32 = 2;
}

/// A static field of a non-generic type that holds a reference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StaticReference {
    /// Where the reference stands: in an array of the pinned or the frozen heap.
    pub slot: Addr,
    /// The type that declares it.
    pub mt: Addr,
    /// Its name in metadata.
    pub name: Arc<str>,
}

impl Runtime<'_> {
    /// The static reference fields of a module's non-generic types that the process has loaded. Those that are one per
    /// thread are left out.
    #[must_use]
    pub fn static_references(&self, module: &Module<'_>) -> Vec<StaticReference> {
        let rows = module
            .metadata
            .as_ref()
            .map_or(0, |m| m.rows(Table::TypeDef));
        let mut out = Vec::new();
        for rid in 1..=rows {
            let Some(ty) = self
                .loaded_type(module.addr, rid)
                .and_then(|mt| self.ty(mt))
            else {
                continue;
            };
            for field in self.own_fields(&ty).iter() {
                let is_one = field.is_static
                    && !field.is_thread_static
                    && field.kind == FieldKind::Reference;
                if let Some(slot) = is_one.then(|| self.static_slot(ty.mt, field)).flatten() {
                    out.push(StaticReference {
                        slot,
                        mt: ty.mt,
                        name: Arc::clone(&field.name),
                    });
                }
            }
        }
        out
    }

    /// Where a static field of a non-generic type is: for value types the boxed copy's data.
    #[must_use]
    pub fn static_addr(&self, mt: Addr, name: &str) -> Option<Addr> {
        let ty = self.ty(mt)?;
        let fields = self.own_fields(&ty);
        let field = fields
            .iter()
            .find(|f| f.is_static && !f.is_thread_static && *f.name == *name)?;
        let slot = self.static_slot(mt, field)?;
        match field.kind {
            FieldKind::ValueType => {
                Some(self.memory.ptr(slot)?.non_null()? + crate::objects::OBJECT_HEAD)
            }
            _ => Some(slot),
        }
    }

    /// A static reference; `None` for null.
    #[must_use]
    pub fn static_reference(&self, mt: Addr, name: &str) -> Option<Addr> {
        self.memory.ptr(self.static_addr(mt, name)?)?.non_null()
    }

    fn static_slot(&self, mt: Addr, field: &Field) -> Option<Addr> {
        let (m, o) = (self.memory, &self.offsets);
        let in_gc_area = matches!(field.kind, FieldKind::Reference | FieldKind::ValueType);
        if let Some(local_module) = o.module.local_module {
            // 8.0: one block per module; primitives count from its start, references from the area it points to
            let block = m
                .ptr(m.ptr(mt + o.method_table.module)? + local_module)?
                .non_null()?;
            let references = self.layout().get("DomainLocalModule", "GCStatics")?;
            let base = if in_gc_area {
                m.ptr(block + references)?.non_null()?
            } else {
                block
            };
            return Some(base + field.offset);
        }
        let size = self.layout().get("DynamicStaticsInfo", "Size")?;
        let info = m.ptr(mt + o.method_table.auxiliary)?.back(size);
        // the info names its type: the only check that it is there
        if m.ptr(info + self.layout().get("DynamicStaticsInfo", "MethodTable")?)? != mt {
            return None;
        }
        let area = if in_gc_area {
            "GCStatics"
        } else {
            "NonGCStatics"
        };
        let base = m
            .ptr(info + self.layout().get("DynamicStaticsInfo", area)?)?
            .without(NOT_INITIALISED)
            .non_null()?;
        Some(base + field.offset)
    }

    /// Where a thread static field of a non-generic type is for one thread; `None` when the thread has never used it.
    #[must_use]
    pub fn thread_static_addr(&self, thread: &Thread, mt: Addr, name: &str) -> Option<Addr> {
        let ty = self.ty(mt)?;
        let fields = self.own_fields(&ty);
        let field = fields
            .iter()
            .find(|f| f.is_thread_static && *f.name == *name)?;
        let in_gc_area = matches!(field.kind, FieldKind::Reference | FieldKind::ValueType);
        if let Some(table) = self.layout().get("Thread", "TlmTable") {
            return self.local_module_static(thread.addr + table, mt, field, in_gc_area);
        }
        let (m, l) = (self.memory, self.layout());
        let data = m.ptr(thread.addr + self.offsets.thread.tls?)?.non_null()?;
        // the structure names its thread: the only check that it is there
        if m.ptr(data + l.get("ThreadLocalData", "Thread")?)? != thread.addr {
            return None;
        }
        let info = m
            .ptr(mt + self.offsets.method_table.auxiliary)?
            .back(l.get("ThreadStaticsInfo", "Size")?);
        let which = if in_gc_area {
            "GCTlsIndex"
        } else {
            "NonGCTlsIndex"
        };
        let raw = m.u32(info + l.get("ThreadStaticsInfo", which)?)?;
        let index = u64::from(raw & tls::INDEX);
        match raw >> tls::KIND_SHIFT {
            _ if raw == tls::NEVER => None,
            tls::IN_ARRAY => {
                let array = m
                    .ptr(data + l.get("ThreadLocalData", "NonCollectibleTlsArrayData")?)?
                    .non_null()?;
                let index = index.checked_sub(tls::UNUSED)?;
                let holder = m.ptr((array + ARRAY_HEAD).element(index, 8))?.non_null()?;
                Some(holder + field.offset)
            }
            tls::DIRECT => Some(data + index + field.offset),
            _ => None,
        }
    }

    /// 8.0: one block per thread and module; primitives count from its start, references stand in an array.
    fn local_module_static(
        &self,
        table: Addr,
        mt: Addr,
        field: &Field,
        in_gc_area: bool,
    ) -> Option<Addr> {
        let (m, l) = (self.memory, self.layout());
        let module = m.ptr(mt + self.offsets.method_table.module)?;
        let index = u64::from(m.u32(module + l.get("Module", "ModuleIndex")?)?);
        let size = u64::from(m.u32(table + 8)?);
        let block = m
            .ptr(
                m.ptr(table)?
                    .element(index.checked_rem(size).filter(|i| *i == index)?, 8),
            )?
            .non_null()?;
        if !in_gc_area {
            return Some(block + field.offset);
        }
        let handle = m
            .ptr(block + l.get("ThreadLocalModule", "GCStaticsHandle")?)?
            .non_null()?;
        Some(m.ptr(handle)?.non_null()? + ARRAY_HEAD + field.offset)
    }
}
