//! What the built-in list keeps of a build of System.Private.CoreLib: its types in the order of their rows, with the
//! shapes of their fields.

use asynctriage_metadata::{Metadata, Primitive, SigType, Source, Table, TypeToken};
use std::sync::Arc;

/// `FieldAttributes.Literal`: a constant, of which the runtime knows nothing.
const LITERAL: u16 = 0x40;
/// Namespaces whose members keep their names; elsewhere only types do.
const NAMED: [&str; 4] = [
    "System.Threading",
    "System.Runtime.CompilerServices",
    "System.Collections",
    "System",
];
/// The namespaces below `NAMED` whose methods keep their names, too: what threads block in.
const METHODS_NAMED: &str = "System.Threading";

/// A build of System.Private.CoreLib.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CoreLibBuild {
    /// Version and platform, as `10.0.15 linux-x64`.
    pub label: Arc<str>,
    /// Major version.
    pub major: u32,
    /// Identity of the build.
    pub mvid: [u8; 16],
    /// Its types; the first one has row 1.
    pub(super) types: Vec<ListedType>,
}

/// A type.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ListedType {
    /// Empty for nested types.
    pub(super) namespace: Arc<str>,
    /// As in the metadata, with its arity.
    pub(super) name: Arc<str>,
    /// Row of the type that it is nested in, or 0.
    pub(super) enclosing: u32,
    /// Row of its base class when that is a type of CoreLib, or 0.
    pub(super) parent: u32,
    /// In the order of their rows; constants included.
    pub(super) fields: Vec<ListedField>,
    /// Names of its methods in the order of their rows; empty where none is kept.
    pub(super) methods: Vec<Arc<str>>,
}

/// A field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ListedField {
    /// Empty when it is not kept.
    pub(super) name: Arc<str>,
    /// Whether it belongs to the type.
    pub(super) is_static: bool,
    /// What it holds.
    pub(super) shape: Shape,
}

/// What a field holds, as far as a signature tells it without other types.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    /// A constant: it takes a row and nothing else.
    Literal,
    /// What a type argument says.
    Any,
    /// A reference.
    Reference,
    /// A structure or an enumeration.
    Value,
    /// A primitive of so many bytes.
    Primitive(u8),
    /// A pointer or a native integer.
    Native,
}

impl CoreLibBuild {
    /// Reads a build out of its metadata.
    #[must_use]
    pub fn read<S: Source>(metadata: &Metadata<S>, label: &str) -> Option<Self> {
        let types = (1..=metadata.rows(Table::TypeDef)).map(|rid| listed_type(metadata, rid));
        Some(Self {
            label: label.into(),
            major: metadata.assembly_version()?.major.into(),
            mvid: metadata.mvid()?,
            types: types.collect::<Option<_>>()?,
        })
    }

    /// How many types, methods and fields it has.
    #[must_use]
    pub fn counts(&self) -> [u32; 3] {
        let sum = |of: fn(&ListedType) -> usize| {
            let all = self.types.iter().map(of).fold(0, usize::saturating_add);
            u32::try_from(all).unwrap_or(u32::MAX)
        };
        [
            sum(|_| 1),
            sum(|t| t.methods.len()),
            sum(|t| t.fields.len()),
        ]
    }

    /// A type by its row.
    pub(super) fn get(&self, rid: u32) -> Option<&ListedType> {
        self.types.get(usize::try_from(rid.checked_sub(1)?).ok()?)
    }
}

fn listed_type<S: Source>(metadata: &Metadata<S>, rid: u32) -> Option<ListedType> {
    let def = metadata.type_def(rid)?;
    let outermost = metadata.type_path(rid)?.namespace;
    let inside = |of: &str| {
        let rest = outermost.strip_prefix(of);
        rest.is_some_and(|r| r.is_empty() || of != "System" && r.starts_with('.'))
    };
    let named = NAMED.iter().any(|n| inside(n));
    let keep = |name: String, kept: bool| if kept { name.into() } else { Arc::default() };
    let fields = metadata.field_rids_of_type(rid).map(|field| {
        let of = metadata.field(field)?;
        Some(ListedField {
            is_static: of.is_static(),
            shape: if of.flags & LITERAL == 0 {
                shape(&metadata.field_type(field)?)
            } else {
                Shape::Literal
            },
            name: keep(of.name, named && of.flags & LITERAL == 0),
        })
    });
    let methods = metadata.method_rids_of_type(rid);
    let methods = methods.map(|m| Some(keep(metadata.method(m)?.name, inside(METHODS_NAMED))));
    Some(ListedType {
        parent: parent(metadata, def.extends),
        enclosing: metadata.enclosing(rid).unwrap_or(0),
        namespace: def.namespace.into(),
        name: def.name.into(),
        fields: fields.collect::<Option<_>>()?,
        methods: methods.collect::<Option<_>>()?,
    })
}

/// Row of the base class, the definition of a generic one; 0 for those of other modules.
fn parent<S: Source>(metadata: &Metadata<S>, extends: TypeToken) -> u32 {
    let definition = match extends.table() {
        Some(Table::TypeSpec) => match metadata.type_spec(extends.rid()) {
            Some(SigType::GenericInst { ty, .. }) => ty,
            _ => return 0,
        },
        _ => extends,
    };
    if definition.table() == Some(Table::TypeDef) {
        definition.rid()
    } else {
        0
    }
}

fn shape(ty: &SigType) -> Shape {
    match ty {
        SigType::Primitive(Primitive::IntPtr | Primitive::UIntPtr)
        | SigType::Ptr(_)
        | SigType::FnPtr(_)
        | SigType::ByRef(_) => Shape::Native,
        SigType::Primitive(p) => Shape::Primitive(u8::try_from(p.size()).unwrap_or(0)),
        SigType::ValueType(_)
        | SigType::TypedByRef
        | SigType::GenericInst {
            value_type: true, ..
        } => Shape::Value,
        SigType::Var(_) | SigType::MVar(_) => Shape::Any,
        SigType::String
        | SigType::Object
        | SigType::Class(_)
        | SigType::GenericInst {
            value_type: false, ..
        }
        | SigType::SzArray(_)
        | SigType::Array { .. } => Shape::Reference,
    }
}

/// How many constants stand before the first field that the runtime knows of.
pub(super) fn leading_constants(ty: &ListedType) -> u32 {
    let leading = ty.fields.iter().take_while(|f| f.shape == Shape::Literal);
    u32::try_from(leading.count()).unwrap_or(u32::MAX)
}
