//! Fields of types: where they are, what they hold, how they are found by name.

use super::{Field, FieldKind, Fields, Type};
use crate::runtime::Runtime;
use asynctriage_dump::Addr;
use asynctriage_metadata::SigType;
use rustc_hash::FxHashMap;
use std::sync::Arc;

const MAX_FIELDS: u64 = 1 << 14;

impl Runtime<'_> {
    /// The fields that the type itself declares, instance fields first.
    #[must_use]
    pub fn own_fields(&self, ty: &Type) -> Arc<[Field]> {
        Arc::clone(
            ty.fields
                .get_or_init(|| self.read_fields(ty).unwrap_or_default().into()),
        )
    }

    fn read_fields(&self, ty: &Type) -> Option<Vec<Field>> {
        if ty.is_array() || ty.mt == self.globals.free_mt || self.is_dynamic_continuation(ty.mt) {
            return None;
        }
        let (m, o) = (self.memory, &self.offsets);
        let canonical = self.canonical(ty.mt)?;
        let class = m.ptr(canonical + o.method_table.class)?;
        let (instance, statics) = self.field_counts(class)?;
        let inherited = match m.ptr(canonical + o.method_table.parent)?.non_null() {
            Some(parent) => {
                self.field_counts(m.ptr(self.canonical(parent)? + o.method_table.class)?)?
                    .0
            }
            None => 0,
        };
        let count = instance
            .checked_sub(inherited)?
            .checked_add(statics)?
            .min(MAX_FIELDS);
        let list = m.ptr(class + o.class.field_list)?;
        let module = self.module(ty.module);
        let field = |i: u64| {
            let desc = list.element(i, o.field_desc.size);
            let (d1, d2) = (
                m.u32(desc + o.field_desc.dword1)?,
                m.u32(desc + o.field_desc.dword2)?,
            );
            let rid = d1 & 0x00ff_ffff;
            let element_type = d2 >> 27;
            let name = module
                .metadata
                .as_ref()
                .and_then(|md| md.field(rid))
                .map_or_else(|| format!("0x04{rid:06x}"), |f| f.name);
            Some(Field {
                name: name.into(),
                offset: u64::from(d2 & 0x07ff_ffff),
                kind: FieldKind::from_element_type(element_type),
                element_type,
                is_static: d1 & 1 << 24 != 0,
                is_thread_static: d1 & 1 << 25 != 0,
                rid,
                module: ty.module,
                owner: ty.mt,
            })
        };
        (0..count).map(field).collect()
    }

    /// Instance fields with the inherited ones, and statics.
    fn field_counts(&self, class: Addr) -> Option<(u64, u64)> {
        let (m, o) = (self.memory, &self.offsets.class);
        if let (Some(instance), Some(statics)) = (o.instance_fields, o.static_fields) {
            return Some((
                u64::from(m.u16(class + instance)?),
                u64::from(m.u16(class + statics)?),
            ));
        }
        // 8.0: the numbers stand behind the class in a u32 array at an offset that a byte tells
        let at = class + u64::from(m.u8(class + o.packed?)?);
        Some((u64::from(m.u32(at)?), u64::from(m.u32(at + 8)?)))
    }

    /// The instance field that a name means, base classes included, as [`Fields`] says.
    #[must_use]
    pub fn instance_field(&self, ty: &Type, name: &str) -> Option<Field> {
        self.instance_fields(ty).get(name).cloned()
    }

    /// All instance fields, those of base classes included.
    #[must_use]
    pub fn instance_fields<'t>(&self, ty: &'t Type) -> &'t Fields {
        ty.all_fields.get_or_init(|| {
            // whether .NET declares it, how far up, and the field
            let mut all: Vec<(bool, usize, Field)> = Vec::new();
            for (up, level) in self.hierarchy(ty.mt).enumerate() {
                let ships = self.module(level.module).ships_with_dotnet;
                let own = self.own_fields(&level);
                let own = own.iter().filter(|f| !f.is_static);
                all.extend(own.map(|f| (ships, up, f.clone())));
            }
            all.sort_unstable_by_key(|(_, _, f)| (f.offset, f.rid));
            let mut by_name: FxHashMap<Arc<str>, usize> = FxHashMap::default();
            let rank = |index: usize| all.get(index).map(|(ships, up, _)| (!ships, *up));
            for (index, (.., field)) in all.iter().enumerate() {
                let chosen = by_name.entry(Arc::clone(&field.name)).or_insert(index);
                if rank(index) < rank(*chosen) {
                    *chosen = index;
                }
            }
            Fields {
                all: all.into_iter().map(|(.., field)| field).collect(),
                by_name,
            }
        })
    }

    /// Where the next instance field behind an offset begins; `None` behind the last one.
    pub(crate) fn next_field_offset(&self, ty: &Type, offset: u64) -> Option<u64> {
        let fields = &self.instance_fields(ty).all;
        let behind = fields.partition_point(|f| f.offset <= offset);
        fields.get(behind).map(|f| f.offset)
    }

    /// The declared type of a field.
    #[must_use]
    pub fn field_signature(&self, field: &Field) -> Option<SigType> {
        self.module(field.module)
            .metadata
            .as_ref()?
            .field_type(field.rid)
    }

    /// The definition name of the type that a field is declared with, as
    /// ``System.Threading.Tasks.Sources.ManualResetValueTaskSourceCore`1``; `None` for primitives and type variables.
    #[must_use]
    pub fn field_type_name(&self, field: &Field) -> Option<String> {
        let module = self.module(field.module);
        let metadata = module.metadata.as_ref()?;
        match metadata.field_type(field.rid)? {
            SigType::Class(token) | SigType::ValueType(token) => metadata.token_name(token),
            SigType::GenericInst { ty, .. } => metadata.token_name(ty),
            _ => None,
        }
    }
}
