//! Reading objects and values by the names of their fields.

use crate::runtime::Runtime;
use crate::types::{Field, FieldKind, Type};
use asynctriage_dump::Addr;
use asynctriage_metadata::{SigType, Table};
use std::sync::Arc;

/// Characters of a string that are read unless all are asked for.
const MAX_TEXT: u64 = 4096;
/// Elements of an array or list that are handed out at most.
const MAX_ELEMENTS: u64 = 1 << 24;
/// Bytes of the MethodTable word in front of an object's fields.
pub(crate) const OBJECT_HEAD: u64 = 8;

/// A place in memory that has a type: the fields of an object, or a value type inside one.
#[derive(Clone, Debug)]
pub struct Place {
    /// Where its first field would be.
    pub base: Addr,
    /// Its exact type.
    pub ty: Arc<Type>,
}

impl Runtime<'_> {
    /// Size of an object in bytes, without alignment padding.
    #[must_use]
    pub fn object_size(&self, object: Addr, ty: &Type) -> u64 {
        let elements = if ty.component_size == 0 {
            0
        } else {
            self.memory.u32(object + 8).map_or(0, u64::from)
        };
        u64::from(ty.base_size)
            .saturating_add(u64::from(ty.component_size).saturating_mul(elements))
    }

    /// The fields of the object at `object`.
    #[must_use]
    pub fn place(&self, object: Addr) -> Option<Place> {
        Some(Place {
            base: object.non_null()? + OBJECT_HEAD,
            ty: self.type_of(object)?,
        })
    }

    /// Where an instance field of an object is.
    #[must_use]
    pub fn field_addr(&self, object: Addr, name: &str) -> Option<Addr> {
        self.place(object).and_then(|p| p.addr(self, name))
    }

    /// A reference or pointer field of an object; `None` for null and for fields that do not exist.
    #[must_use]
    pub fn reference(&self, object: Addr, name: &str) -> Option<Addr> {
        self.memory.ptr(self.field_addr(object, name)?)?.non_null()
    }

    /// A 32-bit field of an object.
    #[must_use]
    pub fn field_u32(&self, object: Addr, name: &str) -> Option<u32> {
        self.memory.u32(self.field_addr(object, name)?)
    }

    /// A signed 32-bit field of an object.
    #[must_use]
    pub fn field_i32(&self, object: Addr, name: &str) -> Option<i32> {
        self.memory.i32(self.field_addr(object, name)?)
    }

    /// A one-byte field of an object.
    #[must_use]
    pub fn field_u8(&self, object: Addr, name: &str) -> Option<u8> {
        self.memory.u8(self.field_addr(object, name)?)
    }

    /// A 64-bit field of an object.
    #[must_use]
    pub fn field_u64(&self, object: Addr, name: &str) -> Option<u64> {
        self.memory.u64(self.field_addr(object, name)?)
    }

    /// The definition name of an object's type.
    #[must_use]
    pub fn object_type_name(&self, object: Addr) -> Option<Arc<str>> {
        self.type_of(object).map(|t| self.definition_name(&t))
    }

    /// The name of an enumeration's member that a field holds, from the metadata of the enumeration.
    #[must_use]
    pub fn enum_text(&self, object: Addr, name: &str) -> Option<String> {
        let place = self.place(object)?;
        let field = self.instance_field(&place.ty, name)?;
        let FieldKind::Primitive(size) = field.kind else {
            return None;
        };
        let at = place.at(&field);
        let value = match size {
            1 => u64::from(self.memory.u8(at)?),
            2 => u64::from(self.memory.u16(at)?),
            4 => u64::from(self.memory.u32(at)?),
            _ => self.memory.u64(at)?,
        };
        let SigType::ValueType(token) = self.field_signature(&field)? else {
            return None;
        };
        let module = self.module(field.module);
        let metadata = module.metadata.as_ref()?;
        let defined = token.table() == Some(Table::TypeDef);
        defined.then(|| metadata.enum_member(token.rid(), value))?
    }

    /// The text of a System.String; of a long one the begin, and how long it is.
    #[must_use]
    pub fn text(&self, string: Addr) -> Option<String> {
        let length = self.text_length(string)?;
        let mut text = self.text_begin(string, length.min(MAX_TEXT))?;
        if length > MAX_TEXT {
            text.push_str(&format!("... ({length} characters in all)"));
        }
        Some(text)
    }

    /// The text of a System.String, however long it is.
    #[must_use]
    pub fn whole_text(&self, string: Addr) -> Option<String> {
        self.text_begin(string, self.text_length(string)?)
    }

    /// How many characters, as UTF-16 counts them, a System.String has.
    #[must_use]
    pub fn text_length(&self, string: Addr) -> Option<u64> {
        if self.memory.ptr(string)?.without(7) != self.globals.string_mt {
            return None;
        }
        Some(u64::from(self.memory.u32(string + 8)?))
    }

    fn text_begin(&self, string: Addr, length: u64) -> Option<String> {
        let bytes = length.saturating_mul(2);
        let bytes = self.memory.bytes(string + 12, bytes, bytes)?;
        let units = bytes
            .as_chunks::<2>()
            .0
            .iter()
            .map(|c| u16::from_le_bytes(*c));
        Some(
            char::decode_utf16(units)
                .map(|c| c.unwrap_or(char::REPLACEMENT_CHARACTER))
                .collect(),
        )
    }

    /// The text in a string field of an object.
    #[must_use]
    pub fn field_text(&self, object: Addr, name: &str) -> Option<String> {
        self.text(self.reference(object, name)?)
    }

    /// Number of elements of an array.
    #[must_use]
    pub fn array_len(&self, array: Addr) -> Option<u64> {
        self.type_of(array).filter(|t| t.is_array())?;
        self.memory.u32(array + 8).map(u64::from)
    }

    /// Where the elements of an array of any rank begin, how large one is and how many there are.
    #[must_use]
    pub fn vector(&self, array: Addr) -> Option<(Addr, u64, u64)> {
        let ty = self.type_of(array).filter(|t| t.is_array())?;
        let len = u64::from(self.memory.u32(array + 8)?).min(MAX_ELEMENTS);
        // the base size counts the word in front of the object, its MethodTable, its length, and the bounds of its ranks
        let data = u64::from(ty.base_size).checked_sub(OBJECT_HEAD)?;
        Some((array + data, u64::from(ty.component_size), len))
    }

    /// The references in a vector, from `first` on, `count` at most; nulls are kept.
    pub fn vector_references(
        &self,
        array: Addr,
        first: u64,
        count: u64,
    ) -> impl Iterator<Item = Addr> + '_ {
        let (start, stride, len) = self
            .vector(array)
            .filter(|(_, stride, _)| *stride == 8)
            .unwrap_or_default();
        (first..len.min(first.saturating_add(count)))
            .map_while(move |i| self.memory.ptr(start.element(i, stride)))
    }

    /// The items of a `List<T>` of references, nulls left out; slots beyond its size hold leftovers and are not read.
    pub fn list_items(&self, list: Addr) -> impl Iterator<Item = Addr> + '_ {
        let items = self.reference(list, "_items").unwrap_or_default();
        let size = self.field_u32(list, "_size").map_or(0, u64::from);
        self.vector_references(items, 0, size)
            .filter(|a| !a.is_null())
    }

    /// Element type of an array type, or the type that a type handle means.
    #[must_use]
    pub fn element_type(&self, array: Addr) -> Option<Arc<Type>> {
        let ty = self.type_of(array).filter(|t| t.is_array())?;
        self.ty(self
            .memory
            .ptr(ty.mt + self.offsets.method_table.per_inst)?)
    }
}

impl Place {
    /// Where a field is.
    #[must_use]
    pub fn addr(&self, rt: &Runtime<'_>, name: &str) -> Option<Addr> {
        rt.instance_fields(&self.ty)
            .get(name)
            .map(|f| self.base + f.offset)
    }

    /// Where a field is.
    #[must_use]
    pub fn at(&self, field: &Field) -> Addr {
        self.base + field.offset
    }

    /// All instance fields, those of base classes included, in the order of their offsets.
    pub fn fields<'t>(&'t self, rt: &Runtime<'_>) -> std::slice::Iter<'t, Field> {
        rt.instance_fields(&self.ty).values()
    }

    /// A reference field; `None` for null.
    #[must_use]
    pub fn reference(&self, rt: &Runtime<'_>, name: &str) -> Option<Addr> {
        rt.memory.ptr(self.addr(rt, name)?)?.non_null()
    }

    /// Bytes from a field to the next one, or to the end of an object of `size` bytes: how far an inline value reaches
    /// at most.
    #[must_use]
    pub fn extent(&self, rt: &Runtime<'_>, field: &Field) -> u64 {
        let next = rt.next_field_offset(&self.ty, field.offset);
        // the base size counts the object header and the MethodTable word, of value types as well
        let head = OBJECT_HEAD.saturating_mul(2);
        let end = next.unwrap_or_else(|| u64::from(self.ty.base_size).saturating_sub(head));
        end.saturating_sub(field.offset)
    }

    /// The references that stand in a field: itself, or those inside an inline value.
    pub fn references_in<'r>(
        &self,
        rt: &'r Runtime<'_>,
        field: &Field,
    ) -> impl Iterator<Item = Addr> + 'r {
        let start = self.at(field);
        let words = match field.kind {
            FieldKind::Reference => 1,
            FieldKind::ValueType => self.extent(rt, field).checked_div(8).unwrap_or(0).min(64),
            FieldKind::Primitive(_) | FieldKind::Native => 0,
        };
        (0..words).filter_map(move |i| rt.memory.ptr(start.element(i, 8))?.non_null())
    }
}
