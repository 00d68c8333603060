//! Which methods the code of a method calls, for whoever follows calls from module to module.

use super::{CALL, CALLVIRT, instructions};
use crate::metadata::Metadata;
use crate::signature::{MethodSig, SigType};
use crate::source::Source;
use crate::table::Table;
use crate::token::Token;

const CALLI: u16 = 0x29;
const NEWOBJ: u16 = 0x73;

/// How an instruction calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallForm {
    /// The method that it names.
    Direct,
    /// The method that it names, or one that overrides or implements it.
    Virtual,
    /// A constructor, for a new object.
    New,
    /// What a pointer leads to.
    Indirect,
}

/// An instruction that calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call {
    /// Its offset.
    pub at: u32,
    /// How it calls.
    pub form: CallForm,
    /// What it names: a method, or the signature behind a pointer.
    pub token: Token,
}

/// All calls in a method's code, in its order.
pub fn all_calls(code: &[u8]) -> impl Iterator<Item = Call> {
    instructions(code).filter_map(|i| {
        let form = match i.opcode {
            CALL => CallForm::Direct,
            CALLVIRT => CallForm::Virtual,
            NEWOBJ => CallForm::New,
            CALLI => CallForm::Indirect,
            _ => return None,
        };
        Some(Call {
            at: i.at,
            form,
            token: i.token()?,
        })
    })
}

/// What a call names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Named {
    /// A method of this module, by its row.
    Own(u32),
    /// A method of a type that this module refers to, or instantiates.
    Member {
        /// `TypeDef` or `TypeRef`; of an instantiation its definition.
        class: Token,
        /// Its name.
        name: String,
        /// Its signature, with the type's generic parameters as such.
        signature: MethodSig,
    },
}

impl<S: Source> Metadata<S> {
    /// What the token of a call names; of an instantiated method its definition.
    #[must_use]
    pub fn named_method(&self, token: Token) -> Option<Named> {
        let method = self.generic_definition(token)?;
        if method.table()? == Table::MethodDef {
            return Some(Named::Own(method.rid()));
        }
        let member =
            (method.table()? == Table::MemberRef).then(|| self.member_ref(method.rid()))??;
        if member.class.table()? == Table::MethodDef {
            return Some(Named::Own(member.class.rid()));
        }
        Some(Named::Member {
            class: self.class_of(member.class)?,
            name: member.name,
            signature: MethodSig::parse(&self.blob(member.signature)?)?,
        })
    }

    /// The definition behind an instantiation.
    fn class_of(&self, class: Token) -> Option<Token> {
        match class.table()? {
            Table::TypeDef | Table::TypeRef => Some(class),
            Table::TypeSpec => match self.type_spec(class.rid())? {
                SigType::GenericInst { ty, .. } | SigType::Class(ty) | SigType::ValueType(ty) => {
                    matches!(ty.table(), Some(Table::TypeDef | Table::TypeRef)).then_some(ty)
                }
                _ => None,
            },
            _ => None,
        }
    }

    /// The method of a type with a name and a signature as another module writes it; `None` when several fit.
    #[must_use]
    pub fn method_like<T: Source>(
        &self,
        class: u32,
        name: &str,
        signature: &MethodSig,
        other: &Metadata<T>,
    ) -> Option<u32> {
        let fits = |own: &MethodSig| {
            let mut params = own.params.iter().zip(&signature.params);
            (own.has_this(), own.generic_params, own.params.len())
                == (
                    signature.has_this(),
                    signature.generic_params,
                    signature.params.len(),
                )
                && params.all(|(a, b)| self.type_text(a) == other.type_text(b))
        };
        let mut found = self.method_rids_of_type(class).filter(|rid| {
            let method = self.method(*rid);
            method.is_some_and(|m| m.name == name)
                && self.method_signature(*rid).is_some_and(|s| fits(&s))
        });
        let first = found.next()?;
        found.next().is_none().then_some(first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_say_how_they_call() {
        let code = [
            0x02, // ldarg.0
            0x28, 1, 0, 0, 0x0a, // call
            0x6f, 2, 0, 0, 0x06, // callvirt
            0x73, 3, 0, 0, 0x06, // newobj
            0x29, 4, 0, 0, 0x11, // calli
            0x2a, // ret
        ];
        let calls: Vec<_> = all_calls(&code)
            .map(|c| (c.at, c.form, c.token.0))
            .collect();
        let expected = [
            (1, CallForm::Direct, 0x0a00_0001),
            (6, CallForm::Virtual, 0x0600_0002),
            (11, CallForm::New, 0x0600_0003),
            (16, CallForm::Indirect, 0x1100_0004),
        ];
        assert_eq!(calls, expected);
    }
}
