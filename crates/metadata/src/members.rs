//! Fields, methods and generic parameters of this module.

use crate::metadata::Metadata;
use crate::signature::{MethodSig, SigType};
use crate::source::Source;
use crate::table::{Coded, Table};
use crate::token::Token;

/// Column of `TypeDef` that lists its fields.
const FIELD_LIST: usize = 4;
/// Column of `TypeDef` that lists its methods.
const METHOD_LIST: usize = 5;

/// A field of this module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// `FieldAttributes`.
    pub flags: u16,
    /// Its name, such as `<>1__state`.
    pub name: String,
    /// Offset of its signature in `#Blob`; see [`Metadata::field_type`].
    pub signature: u32,
}

impl Field {
    /// Whether it belongs to the type and not to each object.
    #[must_use]
    pub const fn is_static(&self) -> bool {
        self.flags & 0x10 != 0
    }
}

/// A method of this module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Method {
    /// Where its IL is, from the load address of the image; 0 when it has none.
    pub rva: u32,
    /// `MethodImplAttributes`.
    pub impl_flags: u16,
    /// `MethodAttributes`.
    pub flags: u16,
    /// Its name, such as `MoveNext`.
    pub name: String,
    /// Offset of its signature in `#Blob`; see [`Metadata::method_signature`].
    pub signature: u32,
    /// First row of its parameters.
    pub param_list: u32,
}

impl Method {
    /// Whether it is called without an object.
    #[must_use]
    pub const fn is_static(&self) -> bool {
        self.flags & 0x10 != 0
    }

    /// Whether a call may lead to a method that overrides it.
    #[must_use]
    pub const fn is_overridable(&self) -> bool {
        self.flags & 0x40 != 0 && self.flags & 0x20 == 0
    }

    /// Whether the JIT must not put its code into a caller's.
    #[must_use]
    pub const fn is_never_inlined(&self) -> bool {
        self.impl_flags & 0x8 != 0
    }

    /// Whether the runtime takes its object's lock around it.
    #[must_use]
    pub const fn is_synchronized(&self) -> bool {
        self.impl_flags & 0x20 != 0
    }

    /// Whether the runtime suspends it, without a state machine (.NET 11).
    #[must_use]
    pub const fn is_runtime_async(&self) -> bool {
        self.impl_flags & 0x2000 != 0
    }
}

/// A generic parameter of a type or of a method.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GenericParam {
    /// Its place, from 0.
    pub number: u16,
    /// Its name, such as `TResult`.
    pub name: String,
}

impl<S: Source> Metadata<S> {
    /// A field by its row, from 1.
    #[must_use]
    pub fn field(&self, rid: u32) -> Option<Field> {
        let row = self.row(Table::Field, rid)?;
        Some(Field {
            flags: row.short(0),
            name: self.string(row.cell(1))?,
            signature: row.cell(2),
        })
    }

    /// The fields of a type, in their order.
    pub fn field_rids_of_type(&self, type_rid: u32) -> impl Iterator<Item = u32> + '_ {
        self.list(Table::TypeDef, type_rid, FIELD_LIST, Table::Field)
    }

    /// Type of a field.
    #[must_use]
    pub fn field_type(&self, rid: u32) -> Option<SigType> {
        SigType::parse_field(&self.blob(self.cell(Table::Field, rid, 2)?)?)
    }

    /// The member of an enumeration with a value, the first when several have it.
    #[must_use]
    pub fn enum_member(&self, type_rid: u32, value: u64) -> Option<String> {
        let has_value = |rid: &u32| {
            let parent = Token::new(Table::Field, *rid).encode(Coded::HasConstant);
            let mut rows = parent
                .map(|p| self.rows_where(Table::Constant, 1, p))
                .into_iter()
                .flatten();
            rows.any(|row| self.constant(row) == Some(value))
        };
        let rid = self.field_rids_of_type(type_rid).find(has_value)?;
        Some(self.field(rid)?.name)
    }

    /// A whole number of up to eight bytes in the table of constants.
    fn constant(&self, row: u32) -> Option<u64> {
        let blob = self.blob(self.cell(Table::Constant, row, 2)?)?;
        (1..=8).contains(&blob.len()).then_some(())?;
        let bytes = blob.iter().rev();
        Some(bytes.fold(0, |sum, b| (sum << 8) | u64::from(*b)))
    }

    /// A method by its row, from 1.
    #[must_use]
    pub fn method(&self, rid: u32) -> Option<Method> {
        let row = self.row(Table::MethodDef, rid)?;
        Some(Method {
            rva: row.cell(0),
            impl_flags: row.short(1),
            flags: row.short(2),
            name: self.string(row.cell(3))?,
            signature: row.cell(4),
            param_list: row.cell(5),
        })
    }

    /// The methods of a type, in their order.
    pub fn method_rids_of_type(&self, type_rid: u32) -> impl Iterator<Item = u32> + '_ {
        self.list(Table::TypeDef, type_rid, METHOD_LIST, Table::MethodDef)
    }

    /// The type that a method belongs to.
    #[must_use]
    pub fn method_owner(&self, rid: u32) -> Option<u32> {
        self.owner(Table::MethodDef, METHOD_LIST, rid)
    }

    /// The type that a field belongs to.
    #[must_use]
    pub fn field_owner(&self, rid: u32) -> Option<u32> {
        self.owner(Table::Field, FIELD_LIST, rid)
    }

    /// Lists are in the order of the types, so the owner is the last type whose list begins at or before the member.
    fn owner(&self, table: Table, list_column: usize, rid: u32) -> Option<u32> {
        if !(1..=self.rows(table)).contains(&rid) {
            return None;
        }
        let index = match self.layout.indirection(table) {
            Some(pointers) => {
                (1..=self.rows(pointers)).find(|i| self.cell(pointers, *i, 0) == Some(rid))?
            }
            None => rid,
        };
        let after = self.lower_bound(Table::TypeDef, list_column, index.checked_add(1)?)?;
        after.checked_sub(1).filter(|owner| *owner > 0)
    }

    /// Return type and parameters of a method.
    #[must_use]
    pub fn method_signature(&self, rid: u32) -> Option<MethodSig> {
        MethodSig::parse(&self.blob(self.cell(Table::MethodDef, rid, 4)?)?)
    }

    /// Generic parameters of a `TypeDef` or `MethodDef`, in their order.
    pub fn generic_params(&self, owner: Token) -> impl Iterator<Item = GenericParam> + '_ {
        let rows = owner
            .encode(Coded::TypeOrMethodDef)
            .map(|owner| self.rows_where(Table::GenericParam, 2, owner));
        rows.into_iter().flatten().filter_map(|rid| {
            let row = self.row(Table::GenericParam, rid)?;
            Some(GenericParam {
                number: row.short(0),
                name: self.string(row.cell(3))?,
            })
        })
    }
}
