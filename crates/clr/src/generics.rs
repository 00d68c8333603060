//! Generic arguments of the types that fields are declared with.

use crate::runtime::Runtime;
use crate::types::{Field, FieldKind, Type};
use asynctriage_dump::Addr;
use asynctriage_metadata::{Primitive, SigType, Table, TypeToken};

impl Runtime<'_> {
    /// Whether a field is declared as the type's generic argument with this number, counted from 0.
    #[must_use]
    pub fn is_type_variable(&self, field: &Field, number: u32) -> bool {
        self.field_signature(field) == Some(SigType::Var(number))
    }

    /// How a value of a generic argument is stored that the field's declared type has, as
    /// [`FieldKind::Primitive`] for `Core<int>`; `None` when that is not known.
    #[must_use]
    pub fn argument_kind(&self, field: &Field, number: usize) -> Option<FieldKind> {
        let SigType::GenericInst { args, .. } = self.field_signature(field)? else {
            return None;
        };
        match args.get(number)? {
            SigType::Primitive(primitive) => primitive_kind(*primitive),
            SigType::String
            | SigType::Object
            | SigType::Class(_)
            | SigType::SzArray(_)
            | SigType::Array { .. } => Some(FieldKind::Reference),
            SigType::GenericInst { value_type, .. } => Some(if *value_type {
                FieldKind::ValueType
            } else {
                FieldKind::Reference
            }),
            SigType::ValueType(token) => self.structure_kind(field.module, *token),
            SigType::Var(n) => {
                let owner = self.ty(field.owner)?;
                let handle = *self.type_args(&owner).get(usize::try_from(*n).ok()?)?;
                Some(self.stored(&*self.ty(handle)?))
            }
            _ => None,
        }
    }

    /// How values of a loaded type are stored: enumerations as their number.
    fn stored(&self, ty: &Type) -> FieldKind {
        if !ty.is_value_type() {
            return FieldKind::Reference;
        }
        let mut own = self
            .own_fields(ty)
            .iter()
            .filter(|f| !f.is_static)
            .cloned()
            .collect::<Vec<_>>();
        match (own.pop(), own.is_empty()) {
            (Some(only), true) if ty.is_primitive() => only.kind,
            _ => FieldKind::ValueType,
        }
    }

    /// A value type of metadata: an enumeration is the number that it is declared with.
    fn structure_kind(&self, module: Addr, token: TypeToken) -> Option<FieldKind> {
        let module = self.module(module);
        let metadata = module.metadata.as_ref()?;
        if token.table() == Some(Table::TypeDef) {
            return kind_of_definition(metadata, token.rid());
        }
        let name = metadata.token_name(token)?;
        let (namespace, name) = name.rsplit_once('.').unwrap_or(("", &name));
        self.modules_seen().iter().find_map(|m| {
            let metadata = m.metadata.as_ref()?;
            kind_of_definition(metadata, metadata.find_type(namespace, name)?)
        })
    }
}

fn kind_of_definition<S: asynctriage_metadata::Source>(
    metadata: &asynctriage_metadata::Metadata<S>,
    rid: u32,
) -> Option<FieldKind> {
    let base = metadata.token_name(metadata.type_def(rid)?.extends)?;
    if base != "System.Enum" {
        return Some(FieldKind::ValueType);
    }
    let mut fields = metadata.field_rids_of_type(rid);
    fields.find_map(|f| {
        let number = metadata.field(f).filter(|f| f.name == "value__");
        match number.and_then(|_| metadata.field_type(f))? {
            SigType::Primitive(primitive) => primitive_kind(primitive),
            _ => None,
        }
    })
}

fn primitive_kind(primitive: Primitive) -> Option<FieldKind> {
    Some(match primitive {
        Primitive::Boolean | Primitive::SByte | Primitive::Byte => FieldKind::Primitive(1),
        Primitive::Char | Primitive::Int16 | Primitive::UInt16 => FieldKind::Primitive(2),
        Primitive::Int32 | Primitive::UInt32 | Primitive::Single => FieldKind::Primitive(4),
        Primitive::Int64
        | Primitive::UInt64
        | Primitive::Double
        | Primitive::IntPtr
        | Primitive::UIntPtr => FieldKind::Primitive(8),
        Primitive::Void => return None,
    })
}
