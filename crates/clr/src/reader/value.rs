//! What fields and elements hold.

use super::object::{Object, field_of, fields_of};
use crate::objects::Place;
use crate::runtime::Runtime;
use crate::types::{Field, FieldKind, Type};
use asynctriage_dump::Addr;
use asynctriage_metadata::{SigType, Table, TypeToken};
use std::fmt;
use std::sync::Arc;

/// What a field or an element holds.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Value<'r, 'd> {
    /// There is no such field.
    Missing,
    /// Its memory is not in the dump.
    Unreadable,
    /// No object.
    Null,
    /// An object.
    Object(Object<'r, 'd>),
    /// A structure, inline.
    Structure(Structure<'r, 'd>),
    /// A truth value.
    Bool(bool),
    /// A UTF-16 code unit.
    Char(u16),
    /// A byte: texts and keys are made of such.
    Byte(u8),
    /// A signed number, or a member of an enumeration over one.
    Signed(i64),
    /// An unsigned number, or a member of an enumeration over one.
    Unsigned(u64),
    /// A floating-point number.
    Float(f64),
    /// A native integer or an unmanaged pointer.
    Pointer(Addr),
}

/// A structure inside an object or an array.
#[derive(Clone)]
pub struct Structure<'r, 'd> {
    rt: &'r Runtime<'d>,
    base: Addr,
    /// Its exact type, where that is known.
    ty: Option<Arc<Type>>,
    /// Bytes that it takes at most.
    len: u64,
}

impl fmt::Debug for Structure<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.base, self.type_name().unwrap_or_default())
    }
}

impl PartialEq for Structure<'_, '_> {
    fn eq(&self, other: &Self) -> bool {
        self.base == other.base
    }
}

impl<'r, 'd> Structure<'r, 'd> {
    /// Where its first byte is.
    #[must_use]
    pub fn address(&self) -> Addr {
        self.base
    }

    /// Bytes that it takes at most.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether it takes no bytes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The name of its type with exact generic arguments; `None` when the dump does not tell which type it is.
    #[must_use]
    pub fn type_name(&self) -> Option<Arc<str>> {
        self.ty.as_ref().map(|t| self.rt.name(t))
    }

    /// A field by its name, as [`Object::field`] finds it.
    #[must_use]
    pub fn field(&self, name: &str) -> Value<'r, 'd> {
        self.place()
            .map_or(Value::Missing, |place| field_of(self.rt, &place, name))
    }

    /// All fields with their names in metadata.
    #[must_use]
    pub fn fields(&self) -> Vec<(Arc<str>, Value<'r, 'd>)> {
        self.place()
            .map(|place| fields_of(self.rt, &place))
            .unwrap_or_default()
    }

    fn place(&self) -> Option<Place> {
        Some(Place {
            base: self.base,
            ty: Arc::clone(self.ty.as_ref()?),
        })
    }
}

impl<'r, 'd> Value<'r, 'd> {
    /// A field of the object or structure; [`Value::Missing`] of anything else.
    #[must_use]
    pub fn field(&self, name: &str) -> Self {
        match self {
            Self::Object(object) => object.field(name),
            Self::Structure(structure) => structure.field(name),
            _ => Self::Missing,
        }
    }

    /// The object, if it is one.
    #[must_use]
    pub fn as_object(&self) -> Option<&Object<'r, 'd>> {
        match self {
            Self::Object(object) => Some(object),
            _ => None,
        }
    }

    /// The whole text of a `System.String`.
    #[must_use]
    pub fn as_text(&self) -> Option<String> {
        self.as_object()?.text()
    }

    /// The number, where it fits.
    #[must_use]
    pub fn as_i64(&self) -> Option<i64> {
        match self {
            Self::Signed(n) => Some(*n),
            Self::Unsigned(n) => i64::try_from(*n).ok(),
            Self::Byte(n) => Some((*n).into()),
            _ => None,
        }
    }

    /// The number, where it is not negative.
    #[must_use]
    pub fn as_u64(&self) -> Option<u64> {
        match self {
            Self::Signed(n) => u64::try_from(*n).ok(),
            Self::Unsigned(n) => Some(*n),
            Self::Byte(n) => Some((*n).into()),
            _ => None,
        }
    }

    /// The truth value.
    #[must_use]
    pub fn as_bool(&self) -> Option<bool> {
        match self {
            Self::Bool(truth) => Some(*truth),
            _ => None,
        }
    }

    /// Whether it is a reference to nothing.
    #[must_use]
    pub fn is_null(&self) -> bool {
        matches!(self, Self::Null)
    }

    /// What a reference at an address leads to.
    pub(super) fn reference(rt: &'r Runtime<'d>, at: Addr) -> Self {
        match rt.memory.ptr(at) {
            None => Self::Unreadable,
            Some(Addr::NULL) => Self::Null,
            Some(object) => Object::at(rt, object).map_or(Self::Unreadable, Self::Object),
        }
    }

    /// A value of a type at an address. Without a type it is a structure of `len` bytes that nobody can take apart.
    pub(super) fn of_type(rt: &'r Runtime<'d>, at: Addr, ty: Option<Arc<Type>>, len: u64) -> Self {
        match ty {
            Some(ty) if !ty.is_value_type() => Self::reference(rt, at),
            Some(ty) if ty.is_primitive() => {
                let own = rt.own_fields(&ty);
                let number = own.iter().find(|f| !f.is_static).map(|f| f.element_type);
                number.map_or(Self::Unreadable, |code| Self::primitive(rt, at, code))
            }
            ty => Self::Structure(Structure {
                rt,
                base: at,
                ty,
                len,
            }),
        }
    }

    /// A number, truth value or character, by its CorElementType.
    fn primitive(rt: &Runtime<'_>, at: Addr, element_type: u32) -> Self {
        let m = rt.memory;
        let value = match element_type {
            0x02 => m.u8(at).map(|v| Self::Bool(v != 0)),
            0x03 => m.u16(at).map(Self::Char),
            0x04 => m.u8(at).map(|v| Self::Signed(v.cast_signed().into())),
            0x05 => m.u8(at).map(Self::Byte),
            0x06 => m.u16(at).map(|v| Self::Signed(v.cast_signed().into())),
            0x07 => m.u16(at).map(|v| Self::Unsigned(v.into())),
            0x08 => m.i32(at).map(|v| Self::Signed(v.into())),
            0x09 => m.u32(at).map(|v| Self::Unsigned(v.into())),
            0x0a => m.i64(at).map(Self::Signed),
            0x0b => m.u64(at).map(Self::Unsigned),
            0x0c => m.u32(at).map(|v| Self::Float(f32::from_bits(v).into())),
            0x0d => m.u64(at).map(|v| Self::Float(f64::from_bits(v))),
            _ => m.ptr(at).map(Self::Pointer),
        };
        value.unwrap_or(Self::Unreadable)
    }
}

/// As C# would print it; objects but texts by type and address.
impl fmt::Display for Value<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing => f.write_str("(no such field)"),
            Self::Unreadable => f.write_str("(unreadable)"),
            Self::Null => f.write_str("null"),
            Self::Object(object) => match object.text() {
                Some(text) => f.write_str(&text),
                None => write!(f, "{} {}", object.type_name(), object.address()),
            },
            Self::Structure(s) => {
                let name = s.type_name();
                f.write_str(name.as_deref().unwrap_or("(structure)"))
            }
            Self::Bool(truth) => write!(f, "{truth}"),
            Self::Char(unit) => {
                let text = char::decode_utf16([*unit]).next().and_then(Result::ok);
                write!(f, "{}", text.unwrap_or(char::REPLACEMENT_CHARACTER))
            }
            Self::Byte(n) => write!(f, "{n}"),
            Self::Signed(n) => write!(f, "{n}"),
            Self::Unsigned(n) => write!(f, "{n}"),
            Self::Float(n) => write!(f, "{n}"),
            Self::Pointer(p) => write!(f, "{p}"),
        }
    }
}

pub(super) fn field_value<'r, 'd>(
    rt: &'r Runtime<'d>,
    place: &Place,
    field: &Field,
) -> Value<'r, 'd> {
    let at = place.at(field);
    match field.kind {
        FieldKind::Reference => Value::reference(rt, at),
        FieldKind::Primitive(_) | FieldKind::Native => Value::primitive(rt, at, field.element_type),
        FieldKind::ValueType => {
            Value::of_type(rt, at, rt.inline_type(field), place.extent(rt, field))
        }
    }
}

impl Runtime<'_> {
    /// The exact type of a structure that a field is declared with, where the dump tells it: a type of no arguments, or a
    /// type variable of the class.
    fn inline_type(&self, field: &Field) -> Option<Arc<Type>> {
        match self.field_signature(field)? {
            SigType::ValueType(token) => self.type_of_token(field.module, token),
            SigType::Var(n) => {
                let owner = self.ty(field.owner)?;
                self.ty(*self.type_args(&owner).get(usize::try_from(n).ok()?)?)
            }
            _ => None,
        }
    }

    fn type_of_token(&self, module: Addr, token: TypeToken) -> Option<Arc<Type>> {
        if token.table() == Some(Table::TypeDef) {
            return self.ty(self.loaded_type(module, token.rid())?);
        }
        let module = self.module(module);
        let name = module.metadata.as_ref()?.token_name(token)?;
        let (namespace, name) = name.rsplit_once('.').unwrap_or(("", &name));
        self.modules_seen().iter().find_map(|m| {
            let rid = m.metadata.as_ref()?.find_type(namespace, name)?;
            self.ty(self.loaded_type(m.addr, rid)?)
        })
    }
}
