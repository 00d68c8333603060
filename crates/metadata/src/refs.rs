//! References to other modules, and printable names of tokens and signatures.

use crate::metadata::Metadata;
use crate::signature::{MethodSig, SigType};
use crate::source::Source;
use crate::table::{Coded, Table};
use crate::token::{Token, TypeToken};

/// Longest chain of enclosing types of a reference, and deepest nesting of a printed type.
const MAX_DEPTH: usize = 64;
/// Most parts of a printed type: type specifications can refer to each other and grow without end.
const MAX_PARTS: usize = 2048;
/// A printed type ends after about this many bytes.
const MAX_TEXT: usize = 16 << 10;

/// A type of another module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TypeRef {
    /// Where it is: `AssemblyRef`, `ModuleRef`, `Module`, or the `TypeRef` that it is nested in.
    pub scope: Token,
    /// Own name as it stands in metadata.
    pub name: String,
    /// Namespace; empty for nested types.
    pub namespace: String,
}

/// A field or method of another module, or of an instantiated type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberRef {
    /// Whose member: `TypeDef`, `TypeRef`, `TypeSpec`, `ModuleRef` or `MethodDef`.
    pub class: Token,
    /// Its name.
    pub name: String,
    /// Offset of its signature in `#Blob`.
    pub signature: u32,
}

impl<S: Source> Metadata<S> {
    /// A type reference by its row, from 1.
    #[must_use]
    pub fn type_ref(&self, rid: u32) -> Option<TypeRef> {
        let row = self.row(Table::TypeRef, rid)?;
        Some(TypeRef {
            scope: row.coded(0, Coded::ResolutionScope),
            name: self.string(row.cell(1))?,
            namespace: self.string(row.cell(2))?,
        })
    }

    /// Full name of a type reference: ``Namespace.Outer`1+Inner``.
    #[must_use]
    pub fn type_ref_full_name(&self, rid: u32) -> Option<String> {
        let mut reference = self.type_ref(rid)?;
        let mut names = vec![reference.name];
        while reference.scope.table() == Some(Table::TypeRef) {
            if names.len() >= MAX_DEPTH {
                return None;
            }
            reference = self.type_ref(reference.scope.rid())?;
            names.push(reference.name);
        }
        names.reverse();
        let dot = if reference.namespace.is_empty() {
            ""
        } else {
            "."
        };
        Some(format!("{}{dot}{}", reference.namespace, names.join("+")))
    }

    /// Simple name of the assembly that a type reference points to; `None` when it points elsewhere.
    #[must_use]
    pub fn type_ref_assembly(&self, rid: u32) -> Option<String> {
        let mut scope = Token::new(Table::TypeRef, rid);
        for _ in 0..MAX_DEPTH {
            match scope.table()? {
                Table::TypeRef => {
                    scope = self
                        .row(Table::TypeRef, scope.rid())?
                        .coded(0, Coded::ResolutionScope);
                }
                Table::AssemblyRef => return self.assembly_ref_name(scope.rid()),
                _ => return None,
            }
        }
        None
    }

    /// Simple name of a referenced assembly.
    #[must_use]
    pub fn assembly_ref_name(&self, rid: u32) -> Option<String> {
        self.string(self.cell(Table::AssemblyRef, rid, 6)?)
    }

    /// A member reference by its row, from 1.
    #[must_use]
    pub fn member_ref(&self, rid: u32) -> Option<MemberRef> {
        let row = self.row(Table::MemberRef, rid)?;
        Some(MemberRef {
            class: row.coded(0, Coded::MemberRefParent),
            name: self.string(row.cell(1))?,
            signature: row.cell(2),
        })
    }

    /// A type specification by its row, from 1.
    #[must_use]
    pub fn type_spec(&self, rid: u32) -> Option<SigType> {
        SigType::parse(&self.blob(self.cell(Table::TypeSpec, rid, 0)?)?)
    }

    /// A printable name of a `TypeDef`, `TypeRef` or `TypeSpec`, such as
    /// ``System.Collections.Generic.List`1<System.String>``. Generic parameters print as `!0` (type) and `!!0` (method).
    #[must_use]
    pub fn token_name(&self, token: TypeToken) -> Option<String> {
        match token.table()? {
            Table::TypeDef => self.full_name(token.rid()),
            Table::TypeRef => self.type_ref_full_name(token.rid()),
            Table::TypeSpec => Some(self.type_text(&self.type_spec(token.rid())?)),
            _ => None,
        }
    }

    /// A printable form of a type, as [`Metadata::token_name`] writes it. What cannot be read prints as its token, what
    /// is too deep or too long as `...`.
    #[must_use]
    pub fn type_text(&self, ty: &SigType) -> String {
        let mut printer = Printer {
            metadata: self,
            out: String::new(),
            parts_left: MAX_PARTS,
        };
        printer.ty(ty, 0);
        printer.out
    }
}

struct Printer<'a, S> {
    metadata: &'a Metadata<S>,
    out: String,
    parts_left: usize,
}

impl<S: Source> Printer<'_, S> {
    fn ty(&mut self, ty: &SigType, depth: usize) {
        self.parts_left = self.parts_left.saturating_sub(1);
        if self.parts_left == 0 || depth > MAX_DEPTH || self.out.len() > MAX_TEXT {
            self.out.push_str("...");
            return;
        }
        let deeper = depth.saturating_add(1);
        match ty {
            SigType::Primitive(primitive) => self.out.push_str(primitive.full_name()),
            SigType::String => self.out.push_str("System.String"),
            SigType::Object => self.out.push_str("System.Object"),
            SigType::TypedByRef => self.out.push_str("System.TypedReference"),
            SigType::Class(token) | SigType::ValueType(token) => self.token(*token, deeper),
            SigType::GenericInst { ty, args, .. } => {
                self.token(*ty, deeper);
                self.out.push('<');
                self.types(args, deeper);
                self.out.push('>');
            }
            SigType::Var(number) => self.out.push_str(&format!("!{number}")),
            SigType::MVar(number) => self.out.push_str(&format!("!!{number}")),
            SigType::SzArray(element) => self.suffixed(element, "[]", deeper),
            SigType::Array { element, rank } => {
                let commas = usize::try_from(rank.saturating_sub(1)).unwrap_or(0).min(32);
                self.suffixed(element, &format!("[{}]", ",".repeat(commas)), deeper);
            }
            SigType::Ptr(target) => self.suffixed(target, "*", deeper),
            SigType::ByRef(target) => self.suffixed(target, "&", deeper),
            SigType::FnPtr(signature) => self.function_pointer(signature, deeper),
        }
    }

    fn types(&mut self, types: &[SigType], depth: usize) {
        for (i, ty) in types.iter().enumerate() {
            self.out.push_str(if i > 0 { "," } else { "" });
            self.ty(ty, depth);
        }
    }

    fn suffixed(&mut self, ty: &SigType, suffix: &str, depth: usize) {
        self.ty(ty, depth);
        self.out.push_str(suffix);
    }

    fn function_pointer(&mut self, signature: &MethodSig, depth: usize) {
        self.out.push_str("method<");
        self.types(&signature.params, depth);
        self.out
            .push_str(if signature.params.is_empty() { "" } else { "," });
        self.ty(&signature.return_type, depth);
        self.out.push('>');
    }

    fn token(&mut self, token: TypeToken, depth: usize) {
        if token.table() == Some(Table::TypeSpec) {
            if let Some(ty) = self.metadata.type_spec(token.rid()) {
                return self.ty(&ty, depth);
            }
        } else if let Some(name) = self.metadata.token_name(token) {
            return self.out.push_str(&name);
        }
        self.out.push_str(&token.to_string());
    }
}
