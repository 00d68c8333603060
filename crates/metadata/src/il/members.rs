//! The methods and fields that instructions name, as they stand in the source.

use crate::metadata::Metadata;
use crate::names::{self, hoisted_local};
use crate::signature::{MethodSig, SigType};
use crate::source::Source;
use crate::table::{Coded, Table};
use crate::token::Token;
use crate::types::TypePath;

/// Longest chain of enclosing types of a reference.
const MAX_NESTING: usize = 64;
/// Parameters of a method that are looked at.
const MAX_PARAMS: usize = 4096;
/// Where the methods are declared that make an awaitable out of an awaitable.
const AWAITABLES: [&str; 2] = ["System.Threading.Tasks", "System.Runtime.CompilerServices"];

impl<S: Source> Metadata<S> {
    /// The method behind an instantiation.
    pub(super) fn generic_definition(&self, method: Token) -> Option<Token> {
        if method.table()? != Table::MethodSpec {
            return Some(method);
        }
        let row = self.row(Table::MethodSpec, method.rid())?;
        Some(row.coded(0, Coded::MethodDefOrRef))
    }

    /// The signature of a called method.
    pub(super) fn callee_signature(&self, method: Token) -> Option<MethodSig> {
        let method = self.generic_definition(method)?;
        match method.table()? {
            Table::MethodDef => self.method_signature(method.rid()),
            Table::MemberRef => {
                MethodSig::parse(&self.blob(self.member_ref(method.rid())?.signature)?)
            }
            _ => None,
        }
    }

    /// The name of a called method as it stands in metadata.
    pub(super) fn callee_name(&self, method: Token) -> Option<String> {
        let method = self.generic_definition(method)?;
        match method.table()? {
            Table::MethodDef => self.string(self.cell(Table::MethodDef, method.rid(), 3)?),
            Table::MemberRef => self.string(self.cell(Table::MemberRef, method.rid(), 1)?),
            _ => None,
        }
    }

    /// Whether a method returns what stands for its first value when that is awaited: the awaiter, or the task with
    /// another behaviour.
    pub(super) fn is_face_of_awaited(&self, method: Token) -> bool {
        match self.callee_name(method).as_deref() {
            Some("GetAwaiter") => true,
            Some("ConfigureAwait" | "AsTask" | "Preserve") => self
                .callee_owner(method)
                .is_some_and(|owner| AWAITABLES.contains(&owner.namespace.as_str())),
            _ => false,
        }
    }

    /// Whether a method returns what an await results in.
    pub(super) fn is_result_of_await(&self, method: Token) -> bool {
        match self.callee_name(method).as_deref() {
            Some("GetResult") => self
                .callee_owner(method)
                .is_some_and(|owner| AWAITABLES.contains(&owner.namespace.as_str())),
            Some("Await") => self.suspends(method) == Some(true),
            _ => false,
        }
    }

    /// The full name of the type that a call names; of an instantiation that of its definition.
    pub(super) fn callee_class(&self, method: Token) -> Option<String> {
        let path = self.callee_owner(method)?;
        let name = path.segments.join("+");
        Some(if path.namespace.is_empty() {
            name
        } else {
            format!("{}.{name}", path.namespace)
        })
    }

    pub(super) fn callee_owner(&self, method: Token) -> Option<TypePath> {
        let method = self.generic_definition(method)?;
        let owner = match method.table()? {
            Table::MethodDef => Token::new(Table::TypeDef, self.method_owner(method.rid())?),
            Table::MemberRef => self.member_ref(method.rid())?.class,
            _ => return None,
        };
        self.path_of_token(owner)
    }

    /// The path of a type; of an instantiation that of its definition.
    fn path_of_token(&self, ty: Token) -> Option<TypePath> {
        match ty.table()? {
            Table::TypeDef => self.type_path(ty.rid()),
            Table::TypeRef => self.type_ref_path(ty.rid()),
            Table::TypeSpec => match self.type_spec(ty.rid())? {
                SigType::GenericInst { ty, .. } | SigType::Class(ty) | SigType::ValueType(ty)
                    if ty.table() != Some(Table::TypeSpec) =>
                {
                    self.path_of_token(ty)
                }
                _ => None,
            },
            _ => None,
        }
    }

    fn type_ref_path(&self, rid: u32) -> Option<TypePath> {
        let mut reference = self.type_ref(rid)?;
        let mut segments = vec![reference.name];
        while reference.scope.table() == Some(Table::TypeRef) {
            if segments.len() >= MAX_NESTING {
                return None;
            }
            reference = self.type_ref(reference.scope.rid())?;
            segments.push(reference.name);
        }
        segments.reverse();
        Some(TypePath {
            namespace: reference.namespace,
            segments,
        })
    }

    /// `Type.Method`, or `Type.Property` for a getter; without namespace and generic arguments.
    pub(super) fn callee_text(&self, method: Token) -> Option<String> {
        let name = self.callee_name(method)?;
        let name = name.strip_prefix("get_").unwrap_or(&name);
        let path = self.callee_owner(method)?;
        Some(names::method(&without_namespace(path), &[], name, &[]))
    }

    /// The type that a constructor makes, without namespace and generic arguments.
    pub(super) fn callee_type_text(&self, constructor: Token) -> Option<String> {
        let path = without_namespace(self.callee_owner(constructor)?);
        Some(names::state_machine_method(&path, &[]).text)
    }

    /// The name of a field as it stands in metadata.
    pub(super) fn field_name_of(&self, field: Token) -> Option<String> {
        match field.table()? {
            Table::Field => self.string(self.cell(Table::Field, field.rid(), 1)?),
            Table::MemberRef => self.string(self.cell(Table::MemberRef, field.rid(), 1)?),
            _ => None,
        }
    }

    /// What a field is in the source: a field, an automatic property, or a variable that the compiler made a field of.
    pub(super) fn field_text(&self, field: Token) -> Option<String> {
        let name = self.field_name_of(field)?;
        if let Some(property) = name
            .strip_prefix('<')
            .and_then(|rest| rest.strip_suffix(">k__BackingField"))
        {
            return Some(property.to_owned());
        }
        hoisted_local(&name)?.source_name().map(str::to_owned)
    }

    /// The name of an argument of a method, by its number; 0 is `this` where there is one.
    #[must_use]
    pub fn argument_name(&self, method: u32, number: u16) -> Option<String> {
        let definition = self.method(method)?;
        let sequence = if definition.is_static() {
            number.checked_add(1)?
        } else if number == 0 {
            return Some("this".to_owned());
        } else {
            number
        };
        let params = self.list(Table::MethodDef, method, 5, Table::Param);
        let param = params
            .take(MAX_PARAMS)
            .find(|p| self.cell(Table::Param, *p, 1) == Some(sequence.into()))?;
        self.string(self.cell(Table::Param, param, 2)?)
            .filter(|name| !name.is_empty())
    }
}

fn without_namespace(path: TypePath) -> TypePath {
    TypePath {
        namespace: String::new(),
        ..path
    }
}
