//! MethodTables: shape, name, fields of any object or value type.

mod fields;

use crate::runtime::Runtime;
use asynctriage_dump::Addr;
use rustc_hash::FxHashMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock, RwLock};

/// Flags of the first MethodTable word (8.0 to 11.0).
mod flags {
    pub(super) const HAS_COMPONENT_SIZE: u32 = 0x8000_0000;
    pub(super) const CONTAINS_REFERENCES: u32 = 0x0100_0000;
    pub(super) const CATEGORY: u32 = 0x000f_0000;
    pub(super) const ARRAY_CATEGORY: u32 = 0x000c_0000;
    pub(super) const ARRAY: u32 = 0x0008_0000;
    pub(super) const GENERICS: u32 = 0x0000_0030;
}

/// TypeHandles have bit 1 set when they point to a TypeDesc rather than a MethodTable.
const TYPE_DESC: u64 = 2;
/// Generic arguments nested deeper than this are cut off in names.
const MAX_NAME_DEPTH: u32 = 48;
/// Bytes after which further generic arguments are cut off in a name.
const MAX_NAME: usize = 16 << 10;
/// Base classes above one another.
const MAX_PARENTS: usize = 64;
const MAX_TYPE_ARGS: u64 = 256;
/// The largest base size that is believed: real ones stay far below, a torn word does not.
const MAX_BASE_SIZE: u32 = 1 << 27;

/// What a field holds, as the runtime's CorElementType groups it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldKind {
    /// A primitive of this many bytes.
    Primitive(u8),
    /// A reference to an object.
    Reference,
    /// A structure, inline.
    ValueType,
    /// An unmanaged pointer or native integer.
    Native,
}

impl FieldKind {
    fn from_element_type(code: u32) -> Self {
        match code {
            0x02 | 0x04 | 0x05 => Self::Primitive(1),
            0x03 | 0x06 | 0x07 => Self::Primitive(2),
            0x08 | 0x09 | 0x0c => Self::Primitive(4),
            0x0a | 0x0b | 0x0d => Self::Primitive(8),
            0x11 => Self::ValueType,
            0x0f | 0x18 | 0x19 | 0x1b => Self::Native,
            _ => Self::Reference,
        }
    }
}

/// A field of a type.
#[derive(Clone, Debug)]
pub struct Field {
    /// Name in the metadata; its token, as `0x04000012`, when that cannot be read.
    pub name: Arc<str>,
    /// Offset in bytes: from behind the MethodTable word of an object, from the start of a value type. For statics,
    /// from the start of the area of the field's kind.
    pub offset: u64,
    /// What it holds.
    pub kind: FieldKind,
    /// CorElementType.
    pub element_type: u32,
    /// Whether it is static.
    pub is_static: bool,
    /// Whether it is thread static.
    pub is_thread_static: bool,
    /// Row of the field in its module's metadata.
    pub rid: u32,
    /// Module of the class that declares it.
    pub module: Addr,
    /// MethodTable of the class that declares it, as a base class of the type asked.
    pub owner: Addr,
}

/// A type of the process.
#[derive(Debug)]
pub struct Type {
    /// Its MethodTable.
    pub mt: Addr,
    /// First word of the MethodTable.
    pub flags: u32,
    /// Size of an instance in bytes, header word included; what arrays and strings have beside their elements.
    pub base_size: u32,
    /// Bytes per element of arrays and strings, else 0.
    pub component_size: u32,
    /// MethodTable of the base class; null for System.Object and interfaces.
    pub parent: Addr,
    /// Module that defines it.
    pub module: Addr,
    /// Row of its definition in that module's metadata; 0 for arrays, free space and continuations.
    pub rid: u32,
    name: OnceLock<Arc<str>>,
    definition: OnceLock<Arc<str>>,
    fields: OnceLock<Arc<[Field]>>,
    all_fields: OnceLock<Fields>,
}

/// The instance fields of a type, those of its base classes included, in the order of their offsets.
///
/// A class may have a field of the same name as one of its base classes. A name means the field that .NET's own class
/// declares, as those are the names that readers ask for; else that of the most derived class.
#[derive(Debug, Default)]
pub struct Fields {
    all: Box<[Field]>,
    by_name: FxHashMap<Arc<str>, usize>,
}

impl Fields {
    /// The field that a name means.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Field> {
        self.all.get(*self.by_name.get(name)?)
    }

    /// Whether a field has that name.
    #[must_use]
    pub fn contains_key(&self, name: &str) -> bool {
        self.by_name.contains_key(name)
    }

    /// All of them, by offset.
    pub fn values(&self) -> std::slice::Iter<'_, Field> {
        self.all.iter()
    }
}

impl Type {
    /// Whether instances hold references to other objects.
    #[must_use]
    pub fn has_references(&self) -> bool {
        self.flags & flags::CONTAINS_REFERENCES != 0
    }

    /// Whether this is an array type.
    #[must_use]
    pub fn is_array(&self) -> bool {
        self.flags & flags::HAS_COMPONENT_SIZE != 0
            && self.flags & flags::ARRAY_CATEGORY == flags::ARRAY
    }

    /// Whether instances are structures.
    #[must_use]
    pub fn is_value_type(&self) -> bool {
        matches!(self.flags & flags::CATEGORY, 0x4_0000..=0x7_0000)
    }

    /// Whether instances are numbers, truth values, characters or members of enumerations.
    pub(crate) fn is_primitive(&self) -> bool {
        matches!(self.flags & flags::CATEGORY, 0x6_0000 | 0x7_0000)
    }

    fn is_generic_instance(&self) -> bool {
        self.flags & flags::HAS_COMPONENT_SIZE == 0
            && matches!(self.flags & flags::GENERICS, 0x10 | 0x20)
    }
}

/// How much may still be written of a name: damaged types may be their own arguments, many times over.
struct Room {
    depth: u32,
    bytes: usize,
}

impl Room {
    fn new() -> Self {
        Self {
            depth: MAX_NAME_DEPTH,
            bytes: MAX_NAME,
        }
    }

    /// Takes bytes; whether there were as many.
    fn take(&mut self, bytes: usize) -> bool {
        let rest = self.bytes.checked_sub(bytes);
        self.bytes = rest.unwrap_or(0);
        rest.is_some()
    }
}

#[derive(Default)]
pub(crate) struct TypeCache {
    by_mt: RwLock<FxHashMap<Addr, Option<Arc<Type>>>>,
}

impl Runtime<'_> {
    /// The type of a MethodTable; `None` when nothing there looks like one.
    #[must_use]
    pub fn ty(&self, mt: Addr) -> Option<Arc<Type>> {
        if let Some(known) = self
            .types
            .by_mt
            .read()
            .ok()
            .and_then(|t| t.get(&mt).cloned())
        {
            return known;
        }
        let ty = self.read_type(mt).map(Arc::new);
        if let Ok(mut all) = self.types.by_mt.write() {
            all.insert(mt, ty.clone());
        }
        ty
    }

    fn read_type(&self, mt: Addr) -> Option<Type> {
        if !self.plausible_type(mt) {
            return None;
        }
        let (m, o) = (self.memory, &self.offsets.method_table);
        let flags = m.u32(mt + o.flags)?;
        let rid = match (o.flags2, o.rid16) {
            (_, Some(rid16)) => u32::from(m.u16(mt + rid16)?),
            (Some(flags2), None) => m.u32(mt + flags2)? >> 8,
            (None, None) => 0,
        };
        Some(Type {
            mt,
            flags,
            base_size: m.u32(mt + o.base_size)?,
            component_size: if flags & flags::HAS_COMPONENT_SIZE == 0 {
                0
            } else {
                flags & 0xffff
            },
            parent: m.ptr(mt + o.parent)?,
            module: m.ptr(mt + o.module)?,
            rid: if mt == self.globals.free_mt { 0 } else { rid },
            name: OnceLock::new(),
            definition: OnceLock::new(),
            fields: OnceLock::new(),
            all_fields: OnceLock::new(),
        })
    }

    /// Whether a MethodTable stands at `mt`: its EEClass must point back to it. Free space has no EEClass, and all
    /// continuation types of .NET 11 share one.
    fn plausible_type(&self, mt: Addr) -> bool {
        if mt == self.globals.free_mt {
            return true;
        }
        let (m, o) = (self.memory, &self.offsets);
        let size_fits = || {
            let base = m.u32(mt + o.method_table.base_size)?;
            Some(base < MAX_BASE_SIZE)
        };
        let class_fits = || {
            let canonical = self.canonical(mt)?;
            let class = m.ptr(canonical + o.method_table.class)?;
            let back = m.ptr(class + o.class.method_table)?;
            Some(
                back == canonical || (!class.is_null() && class == self.globals.continuation_class),
            )
        };
        mt.0 & 7 == 0 && size_fits() == Some(true) && class_fits() == Some(true)
    }

    /// The MethodTable that shared code is compiled for: itself unless bit 0 of the EEClass word says otherwise.
    pub(crate) fn canonical(&self, mt: Addr) -> Option<Addr> {
        let word = self.memory.ptr(mt + self.offsets.method_table.class)?;
        Some(if word.0 & 1 == 0 { mt } else { word.without(1) })
    }

    /// Whether instances are continuations of runtime-async methods (.NET 11).
    #[must_use]
    pub fn is_dynamic_continuation(&self, mt: Addr) -> bool {
        let class = self.globals.continuation_class;
        !class.is_null() && self.memory.ptr(mt + self.offsets.method_table.class) == Some(class)
    }

    /// The type of the object at `object`; the GC's mark bits in its first word are ignored.
    #[must_use]
    pub fn type_of(&self, object: Addr) -> Option<Arc<Type>> {
        self.ty(self.memory.ptr(object)?.without(7))
    }

    /// The type's full name with exact generic arguments, as
    /// ``System.Collections.Generic.List`1<System.String>``; never empty.
    #[must_use]
    pub fn name(&self, ty: &Type) -> Arc<str> {
        Arc::clone(
            ty.name
                .get_or_init(|| self.make_name(ty, &mut Room::new()).into()),
        )
    }

    /// The full name of a type handle, TypeDescs included.
    #[must_use]
    pub fn handle_name(&self, handle: Addr) -> String {
        self.handle_name_at(handle, &mut Room::new())
    }

    /// The name of the generic definition, as ``System.Collections.Generic.List`1``: nested types behind `+`.
    #[must_use]
    pub fn definition_name(&self, ty: &Type) -> Arc<str> {
        Arc::clone(
            ty.definition
                .get_or_init(|| self.make_definition_name(ty).into()),
        )
    }

    fn make_definition_name(&self, ty: &Type) -> String {
        if ty.mt == self.globals.free_mt {
            return "Free".into();
        }
        if self.is_dynamic_continuation(ty.mt) {
            return "Continuation".into();
        }
        let module = self.module(ty.module);
        let named = module.metadata.as_ref().and_then(|m| m.full_name(ty.rid));
        named.unwrap_or_else(|| {
            module.unnamed.store(true, Ordering::Relaxed);
            let of = if module.name.is_empty() {
                format!("module {}", ty.module)
            } else {
                module.name.clone()
            };
            format!("{of}!0x02{:06x}", ty.rid)
        })
    }

    fn make_name(&self, ty: &Type, room: &mut Room) -> String {
        let Some(depth) = room.depth.checked_sub(1) else {
            return "...".into();
        };
        let outer = std::mem::replace(&mut room.depth, depth);
        let name = self.make_name_inside(ty, room);
        room.depth = outer;
        name
    }

    fn make_name_inside(&self, ty: &Type, room: &mut Room) -> String {
        if ty.is_array() {
            let element = self
                .memory
                .ptr(ty.mt + self.offsets.method_table.per_inst)
                .unwrap_or_default();
            return format!(
                "{}{}",
                self.handle_name_at(element, room),
                self.rank_suffix(ty)
            );
        }
        let mut name = self.make_definition_name(ty);
        room.take(name.len());
        let args = self.type_args(ty);
        if !args.is_empty() {
            let args: Vec<_> = args.iter().map(|a| self.handle_name_at(*a, room)).collect();
            name.push('<');
            name.push_str(&args.join(","));
            name.push('>');
        }
        name
    }

    fn handle_name_at(&self, handle: Addr, room: &mut Room) -> String {
        if !room.take(1) {
            return "...".into();
        }
        if handle.0 & TYPE_DESC != 0 {
            return self.type_desc_name(handle.without(3), room);
        }
        let Some(ty) = self.ty(handle) else {
            return format!("type {handle}");
        };
        match ty.name.get() {
            Some(known) if room.take(known.len()) => known.to_string(),
            Some(_) => "...".into(),
            None => self.make_name(&ty, room),
        }
    }

    /// Pointers, references and type variables: CorElementType in the low byte of the first word (9.0 to 11.0).
    fn type_desc_name(&self, desc: Addr, room: &mut Room) -> String {
        let code = self.memory.u32(desc).unwrap_or(0) & 0xff;
        let mut inner = || {
            let Some(depth) = room.depth.checked_sub(1) else {
                return "...".into();
            };
            let offset = self.layout().get("ParamTypeDesc", "TypeArg").unwrap_or(16);
            let arg = self.memory.ptr(desc + offset).unwrap_or_default();
            let outer = std::mem::replace(&mut room.depth, depth);
            let name = self.handle_name_at(arg, room);
            room.depth = outer;
            name
        };
        match code {
            0x0f => format!("{}*", inner()),
            0x10 => format!("{}&", inner()),
            0x1b => "method pointer".into(),
            _ => "T".into(),
        }
    }

    /// `[]` or, for arrays that are not vectors, `[,]`: every dimension adds 8 bytes of bounds to the base size of 24.
    fn rank_suffix(&self, ty: &Type) -> String {
        if ty.flags & flags::CATEGORY == 0x000a_0000 || ty.base_size <= 24 {
            return "[]".into();
        }
        let rank = ty
            .base_size
            .saturating_sub(24)
            .checked_div(8)
            .unwrap_or(1)
            .clamp(1, 32);
        let commas = usize::try_from(rank.saturating_sub(1)).unwrap_or(0);
        if commas == 0 {
            "[*]".into()
        } else {
            format!("[{}]", ",".repeat(commas))
        }
    }

    /// The exact generic arguments, as type handles; empty for types that have none.
    #[must_use]
    pub fn type_args(&self, ty: &Type) -> Vec<Addr> {
        if ty.is_generic_instance() {
            self.read_type_args(ty).unwrap_or_default()
        } else {
            Vec::new()
        }
    }

    /// Counts stand just before the dictionaries; the type's own dictionary is the last one.
    fn read_type_args(&self, ty: &Type) -> Option<Vec<Addr>> {
        let (m, g) = (self.memory, &self.offsets.generics);
        let dictionaries = m.ptr(ty.mt + self.offsets.method_table.per_inst)?;
        let info = dictionaries.back(8);
        let count = u64::from(m.u16(info + g.dictionaries)?);
        let args = u64::from(m.u16(info + g.arguments)?).min(MAX_TYPE_ARGS);
        let own = m.ptr(dictionaries.element(count.checked_sub(1)?, 8))?;
        (0..args).map(|i| m.ptr(own.element(i, 8))).collect()
    }

    /// A type and its base classes, the type first.
    pub fn hierarchy(&self, mt: Addr) -> impl Iterator<Item = Arc<Type>> + '_ {
        std::iter::successors(self.ty(mt), |t| {
            t.parent.non_null().and_then(|p| self.ty(p))
        })
        .take(MAX_PARENTS)
    }

    /// The interfaces that a type implements, inherited ones included, as MethodTables.
    pub fn interfaces(&self, ty: &Type) -> impl Iterator<Item = Addr> + '_ {
        let (m, o) = (self.memory, &self.offsets.method_table);
        let count = m.u16(ty.mt + o.interface_count).map_or(0, u64::from);
        let map = m.ptr(ty.mt + o.interfaces).unwrap_or_default();
        (0..count).map_while(move |i| m.ptr(map.element(i, 8)))
    }

    /// Whether the type or one of its base classes has this definition name.
    #[must_use]
    pub fn is_a(&self, mt: Addr, definition: &str) -> bool {
        self.hierarchy(mt)
            .any(|t| *self.definition_name(&t) == *definition)
    }
}
