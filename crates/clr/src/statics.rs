//! Static fields.

use crate::runtime::Runtime;
use crate::types::{Field, FieldKind};
use asynctriage_dump::Addr;

/// 9.0 and later keep class-initialisation state in bit 0 of the pointers to statics.
const NOT_INITIALISED: u64 = 1;

impl Runtime<'_> {
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
}
