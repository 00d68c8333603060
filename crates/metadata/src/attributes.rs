//! Custom attributes.

use crate::metadata::Metadata;
use crate::signature::{MethodSig, Primitive, SigType};
use crate::source::Source;
use crate::table::{Coded, Table};
use crate::token::Token;

/// A custom attribute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CustomAttribute {
    /// Full name of the attribute's type, such as `System.Runtime.CompilerServices.AsyncStateMachineAttribute`.
    pub type_name: String,
    /// Its constructor: `MethodDef` or `MemberRef`.
    pub constructor: Token,
    /// Offset of its arguments in `#Blob`; see [`Metadata::attribute_args`].
    pub value: u32,
}

/// A positional argument of a custom attribute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AttributeArg {
    /// A whole number, a character or a truth value; unsigned 64-bit numbers keep their bits.
    Int(i64),
    /// A text, or the name of a type given with `typeof`; `None` for null.
    String(Option<String>),
}

impl<S: Source> Metadata<S> {
    /// The custom attributes of what `parent` stands for.
    pub fn custom_attributes(&self, parent: Token) -> impl Iterator<Item = CustomAttribute> + '_ {
        let rows = parent
            .encode(Coded::HasCustomAttribute)
            .map(|value| self.rows_where(Table::CustomAttribute, 0, value));
        rows.into_iter()
            .flatten()
            .filter_map(|rid| self.custom_attribute(rid))
    }

    fn custom_attribute(&self, rid: u32) -> Option<CustomAttribute> {
        let row = self.row(Table::CustomAttribute, rid)?;
        let constructor = row.coded(1, Coded::CustomAttributeType);
        let owner = match constructor.table()? {
            Table::MethodDef => Token::new(Table::TypeDef, self.method_owner(constructor.rid())?),
            Table::MemberRef => self
                .row(Table::MemberRef, constructor.rid())?
                .coded(0, Coded::MemberRefParent),
            _ => return None,
        };
        Some(CustomAttribute {
            type_name: self.token_name(owner)?,
            constructor,
            value: row.cell(2),
        })
    }

    /// The positional arguments of an attribute. `None` when one of them is something else than a text, a type, a whole
    /// number, a character or a truth value.
    #[must_use]
    pub fn attribute_args(&self, attribute: &CustomAttribute) -> Option<Vec<AttributeArg>> {
        let signature = match attribute.constructor.table()? {
            Table::MethodDef => self.method_signature(attribute.constructor.rid())?,
            _ => MethodSig::parse(
                &self.blob(self.member_ref(attribute.constructor.rid())?.signature)?,
            )?,
        };
        let blob = self.blob(attribute.value)?;
        let mut rest = blob.strip_prefix(&[1, 0])?;
        signature
            .params
            .iter()
            .map(|ty| self.attribute_arg(ty, &mut rest))
            .collect()
    }

    fn attribute_arg(&self, ty: &SigType, rest: &mut &[u8]) -> Option<AttributeArg> {
        match ty {
            SigType::Primitive(primitive) => int_arg(*primitive, rest),
            SigType::String => text_arg(rest),
            SigType::Class(token) if self.token_name(*token)? == "System.Type" => text_arg(rest),
            _ => None,
        }
    }
}

fn take<'a>(rest: &mut &'a [u8], count: usize) -> Option<&'a [u8]> {
    let (head, tail) = rest.split_at_checked(count)?;
    *rest = tail;
    Some(head)
}

fn int_arg(primitive: Primitive, rest: &mut &[u8]) -> Option<AttributeArg> {
    let signed = match primitive {
        Primitive::Void
        | Primitive::Single
        | Primitive::Double
        | Primitive::IntPtr
        | Primitive::UIntPtr => {
            return None;
        }
        Primitive::SByte | Primitive::Int16 | Primitive::Int32 | Primitive::Int64 => true,
        _ => false,
    };
    let bytes = take(rest, primitive.size())?;
    let filler = if signed && bytes.last()? & 0x80 != 0 {
        0xff
    } else {
        0
    };
    let mut wide = [filler; 8];
    wide.get_mut(..bytes.len())?.copy_from_slice(bytes);
    Some(AttributeArg::Int(i64::from_le_bytes(wide)))
}

/// A text with its compressed length in front; 0xff is null.
fn text_arg(rest: &mut &[u8]) -> Option<AttributeArg> {
    let first = *take(rest, 1)?.first()?;
    let length = match first {
        0xff => return Some(AttributeArg::String(None)),
        0..=0x7f => usize::from(first),
        0x80..=0xbf => usize::from(first & 0x3f) << 8 | usize::from(*take(rest, 1)?.first()?),
        _ => return None,
    };
    let text = String::from_utf8_lossy(take(rest, length)?).into_owned();
    Some(AttributeArg::String(Some(text)))
}
