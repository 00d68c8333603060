//! Types of this module: rows, nesting, full names, look-up by name.

use crate::metadata::Metadata;
use crate::source::Source;
use crate::table::{Coded, Table};
use crate::token::TypeToken;
use std::collections::HashMap;
use std::fmt;

/// Types nested deeper than this have no name. Compilers stop long before.
const MAX_NESTING: usize = 64;
/// Types with longer names, nesting included, have none. The longest of .NET's own libraries has 250 bytes.
const MAX_FULL_NAME: usize = 16 << 10;
/// Bytes of names that an index holds at most. Those of .NET's largest library take 1 MiB.
const MAX_INDEX: usize = 64 << 20;
/// `TypeAttributes.VisibilityMask`; values above 1 are those of nested types.
const VISIBILITY: u32 = 7;

/// A type of this module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TypeDef {
    /// `TypeAttributes`.
    pub flags: u32,
    /// Own name as it stands in metadata, such as ``List`1``.
    pub name: String,
    /// Namespace; empty for nested types.
    pub namespace: String,
    /// Base type; nil for interfaces, `System.Object` and `<Module>`.
    pub extends: TypeToken,
    /// First row of its fields; see [`Metadata::field_rids_of_type`].
    pub field_list: u32,
    /// First row of its methods; see [`Metadata::method_rids_of_type`].
    pub method_list: u32,
}

impl TypeDef {
    /// Whether the type stands within another one.
    #[must_use]
    pub const fn is_nested(&self) -> bool {
        self.flags & VISIBILITY > 1
    }

    /// Whether no type derives from it.
    #[must_use]
    pub const fn is_sealed(&self) -> bool {
        self.flags & 0x100 != 0
    }
}

/// Namespace and names of a type, outermost first, as they stand in metadata.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct TypePath {
    /// Namespace of the outermost type; may be empty.
    pub namespace: String,
    /// ``AsyncTaskMethodBuilder`1``, ``AsyncStateMachineBox`1``.
    pub segments: Vec<String>,
}

impl fmt::Display for TypePath {
    /// ``Namespace.Outer`1+Inner`1``.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.namespace.is_empty() {
            write!(f, "{}.", self.namespace)?;
        }
        for (i, segment) in self.segments.iter().enumerate() {
            f.write_str(if i > 0 { "+" } else { "" })?;
            f.write_str(segment)?;
        }
        Ok(())
    }
}

/// All types of a module by full name, for callers who look up many.
#[derive(Clone, Debug, Default)]
pub struct TypeIndex {
    by_name: HashMap<String, u32>,
}

impl TypeIndex {
    /// Row of the type with this full name (``Namespace.Outer`1+Inner``). The first one when a name occurs twice.
    #[must_use]
    pub fn get(&self, full_name: &str) -> Option<u32> {
        self.by_name.get(full_name).copied()
    }

    /// All full names with their rows, in no order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, u32)> {
        self.by_name.iter().map(|(name, rid)| (name.as_str(), *rid))
    }

    /// How many names there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.by_name.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.by_name.is_empty()
    }
}

impl<S: Source> Metadata<S> {
    /// A type by its row, from 1.
    #[must_use]
    pub fn type_def(&self, rid: u32) -> Option<TypeDef> {
        let row = self.row(Table::TypeDef, rid)?;
        Some(TypeDef {
            flags: row.cell(0),
            name: self.name(row.cell(1))?,
            namespace: self.namespace(row.cell(2))?,
            extends: row.coded(3, Coded::TypeDefOrRef),
            field_list: row.cell(4),
            method_list: row.cell(5),
        })
    }

    /// The type that this one is nested in.
    #[must_use]
    pub fn enclosing(&self, rid: u32) -> Option<u32> {
        let row = self.rows_where(Table::NestedClass, 0, rid).next()?;
        self.cell(Table::NestedClass, row, 1)
    }

    /// Namespace and names of a type and those that it is nested in; `None` when one cannot be read, or when they
    /// contain each other.
    #[must_use]
    pub fn type_path(&self, rid: u32) -> Option<TypePath> {
        self.path_of(rid, |inner| self.enclosing(inner))
    }

    fn path_of(&self, rid: u32, enclosing: impl Fn(u32) -> Option<u32>) -> Option<TypePath> {
        let mut path = TypePath::default();
        let mut rid = rid;
        let mut length = 0_usize;
        while path.segments.len() < MAX_NESTING && length < MAX_FULL_NAME {
            let row = self.row(Table::TypeDef, rid)?;
            let name = self.name(row.cell(1))?;
            length = length.saturating_add(name.len());
            path.segments.push(name);
            if row.cell(0) & VISIBILITY <= 1 {
                path.namespace = self.namespace(row.cell(2))?;
                path.segments.reverse();
                return Some(path);
            }
            rid = enclosing(rid)?;
        }
        None
    }

    /// Full name of a type as it stands in metadata: ``Namespace.Outer`1+Inner`1``.
    #[must_use]
    pub fn full_name(&self, rid: u32) -> Option<String> {
        self.type_path(rid).map(|path| path.to_string())
    }

    /// The top-level type with this namespace and name (with its arity: ``List`1``). Goes through all types: use
    /// [`Metadata::type_index`] to look up many.
    #[must_use]
    pub fn find_type(&self, namespace: &str, name: &str) -> Option<u32> {
        (1..=self.rows(Table::TypeDef)).find(|rid| {
            self.row(Table::TypeDef, *rid).is_some_and(|row| {
                row.cell(0) & VISIBILITY <= 1
                    && self.string_is(row.cell(1), name)
                    && self.string_is(row.cell(2), namespace)
            })
        })
    }

    /// The type `name` that is nested directly in type `outer`.
    #[must_use]
    pub fn find_nested_type(&self, outer: u32, name: &str) -> Option<u32> {
        self.nested_types(outer).find(|rid| {
            self.cell(Table::TypeDef, *rid, 1)
                .is_some_and(|offset| self.string_is(offset, name))
        })
    }

    /// The types that are nested directly in type `outer`. Goes through all nested types.
    pub fn nested_types(&self, outer: u32) -> impl Iterator<Item = u32> + '_ {
        (1..=self.rows(Table::NestedClass))
            .filter(move |row| self.cell(Table::NestedClass, *row, 1) == Some(outer))
            .filter_map(|row| self.cell(Table::NestedClass, row, 0))
    }

    /// Reads the names of all types once.
    #[must_use]
    pub fn type_index(&self) -> TypeIndex {
        let outer: HashMap<u32, u32> = (1..=self.rows(Table::NestedClass))
            .filter_map(|row| {
                Some((
                    self.cell(Table::NestedClass, row, 0)?,
                    self.cell(Table::NestedClass, row, 1)?,
                ))
            })
            .collect();
        let mut by_name = HashMap::new();
        let mut bytes = 0_usize;
        for rid in 1..=self.rows(Table::TypeDef) {
            if let Some(path) = self.path_of(rid, |inner| outer.get(&inner).copied()) {
                let name = path.to_string();
                bytes = bytes.saturating_add(name.len());
                if bytes > MAX_INDEX {
                    break;
                }
                by_name.entry(name).or_insert(rid);
            }
        }
        TypeIndex { by_name }
    }
}
