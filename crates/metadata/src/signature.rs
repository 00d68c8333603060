//! Types and methods written as blobs (ECMA-335 II.23.2).

use crate::compressed;
use crate::table::Coded;
use crate::token::{Token, TypeToken};

/// Deepest nesting of a signature that is read.
const MAX_DEPTH: usize = 64;
/// Most parts of a signature that are read.
const MAX_PARTS: usize = 4096;

/// A type that has a code of its own in signatures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the names of the .NET types")]
pub enum Primitive {
    Void,
    Boolean,
    Char,
    SByte,
    Byte,
    Int16,
    UInt16,
    Int32,
    UInt32,
    Int64,
    UInt64,
    Single,
    Double,
    IntPtr,
    UIntPtr,
}

impl Primitive {
    /// `System.Int32` and the like.
    #[must_use]
    pub const fn full_name(self) -> &'static str {
        match self {
            Self::Void => "System.Void",
            Self::Boolean => "System.Boolean",
            Self::Char => "System.Char",
            Self::SByte => "System.SByte",
            Self::Byte => "System.Byte",
            Self::Int16 => "System.Int16",
            Self::UInt16 => "System.UInt16",
            Self::Int32 => "System.Int32",
            Self::UInt32 => "System.UInt32",
            Self::Int64 => "System.Int64",
            Self::UInt64 => "System.UInt64",
            Self::Single => "System.Single",
            Self::Double => "System.Double",
            Self::IntPtr => "System.IntPtr",
            Self::UIntPtr => "System.UIntPtr",
        }
    }

    /// Size of a value in bytes on 64-bit targets; 0 for `Void`.
    #[must_use]
    pub const fn size(self) -> usize {
        match self {
            Self::Void => 0,
            Self::Boolean | Self::SByte | Self::Byte => 1,
            Self::Char | Self::Int16 | Self::UInt16 => 2,
            Self::Int32 | Self::UInt32 | Self::Single => 4,
            Self::Int64 | Self::UInt64 | Self::Double | Self::IntPtr | Self::UIntPtr => 8,
        }
    }

    /// Its number in signatures (ECMA-335 II.23.1.16).
    #[must_use]
    pub const fn element_type(self) -> u8 {
        match self {
            Self::Void => 0x01,
            Self::Boolean => 0x02,
            Self::Char => 0x03,
            Self::SByte => 0x04,
            Self::Byte => 0x05,
            Self::Int16 => 0x06,
            Self::UInt16 => 0x07,
            Self::Int32 => 0x08,
            Self::UInt32 => 0x09,
            Self::Int64 => 0x0a,
            Self::UInt64 => 0x0b,
            Self::Single => 0x0c,
            Self::Double => 0x0d,
            Self::IntPtr => 0x18,
            Self::UIntPtr => 0x19,
        }
    }

    const fn from_code(code: u8) -> Option<Self> {
        Some(match code {
            0x01 => Self::Void,
            0x02 => Self::Boolean,
            0x03 => Self::Char,
            0x04 => Self::SByte,
            0x05 => Self::Byte,
            0x06 => Self::Int16,
            0x07 => Self::UInt16,
            0x08 => Self::Int32,
            0x09 => Self::UInt32,
            0x0a => Self::Int64,
            0x0b => Self::UInt64,
            0x0c => Self::Single,
            0x0d => Self::Double,
            0x18 => Self::IntPtr,
            0x19 => Self::UIntPtr,
            _ => return None,
        })
    }
}

/// A type as a signature writes it. Custom modifiers and the mark of pinned locals are left out.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum SigType {
    /// A number, a character, a truth value, or nothing.
    Primitive(Primitive),
    /// `System.String`.
    String,
    /// `System.Object`.
    Object,
    /// `System.TypedReference`.
    TypedByRef,
    /// A reference type that is not generic.
    Class(TypeToken),
    /// A value type that is not generic.
    ValueType(TypeToken),
    /// A generic type with its arguments.
    GenericInst {
        /// Whether it is a value type.
        value_type: bool,
        /// The generic type.
        ty: TypeToken,
        /// Its arguments, those of enclosing types first.
        args: Vec<SigType>,
    },
    /// Generic parameter of the type, from 0.
    Var(u32),
    /// Generic parameter of the method, from 0.
    MVar(u32),
    /// An array with one dimension that begins at 0.
    SzArray(Box<SigType>),
    /// Any other array.
    Array {
        /// What it holds.
        element: Box<SigType>,
        /// Number of dimensions.
        rank: u32,
    },
    /// An unmanaged pointer.
    Ptr(Box<SigType>),
    /// A managed reference: `ref`, `in`, `out`.
    ByRef(Box<SigType>),
    /// A function pointer.
    FnPtr(Box<MethodSig>),
}

/// What a method takes and returns.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct MethodSig {
    /// Calling convention and flags, the first byte of the signature.
    pub convention: u8,
    /// How many generic parameters the method itself has.
    pub generic_params: u32,
    /// What it returns.
    pub return_type: SigType,
    /// Its parameters, without `this`.
    pub params: Vec<SigType>,
}

impl MethodSig {
    /// Reads the signature of a method (of a `MethodDef`, a `MemberRef` or a call site).
    #[must_use]
    pub fn parse(blob: &[u8]) -> Option<Self> {
        Decoder::new(blob).method(0)
    }

    /// Whether it is called on an object.
    #[must_use]
    pub const fn has_this(&self) -> bool {
        self.convention & 0x20 != 0
    }
}

impl SigType {
    /// Reads a type, as type specifications hold it.
    #[must_use]
    pub fn parse(blob: &[u8]) -> Option<Self> {
        Decoder::new(blob).ty(0)
    }

    /// Reads the signature of a field.
    #[must_use]
    pub fn parse_field(blob: &[u8]) -> Option<Self> {
        let mut decoder = Decoder::new(blob);
        (decoder.byte()? & 0x0f == 0x06).then_some(())?;
        decoder.ty(0)
    }
}

/// Reads a signature from front to back.
struct Decoder<'a> {
    rest: &'a [u8],
    parts_left: usize,
}

impl<'a> Decoder<'a> {
    const fn new(rest: &'a [u8]) -> Self {
        Self {
            rest,
            parts_left: MAX_PARTS,
        }
    }

    fn byte(&mut self) -> Option<u8> {
        compressed::byte(&mut self.rest)
    }

    fn number(&mut self) -> Option<u32> {
        compressed::unsigned(&mut self.rest)
    }

    fn token(&mut self) -> Option<TypeToken> {
        Token::decode(Coded::TypeDefOrRef, self.number()?)
    }

    fn boxed(&mut self, depth: usize) -> Option<Box<SigType>> {
        self.ty(depth).map(Box::new)
    }

    fn ty(&mut self, depth: usize) -> Option<SigType> {
        self.parts_left = self.parts_left.checked_sub(1)?;
        if depth > MAX_DEPTH {
            return None;
        }
        let deeper = depth.checked_add(1)?;
        let code = self.type_code()?;
        if let Some(primitive) = Primitive::from_code(code) {
            return Some(SigType::Primitive(primitive));
        }
        Some(match code {
            0x0e => SigType::String,
            0x0f => SigType::Ptr(self.boxed(deeper)?),
            0x10 => SigType::ByRef(self.boxed(deeper)?),
            0x11 => SigType::ValueType(self.token()?),
            0x12 => SigType::Class(self.token()?),
            0x13 => SigType::Var(self.number()?),
            0x14 => self.array(deeper)?,
            0x15 => self.generic_instance(deeper)?,
            0x16 => SigType::TypedByRef,
            0x1b => SigType::FnPtr(Box::new(self.method(deeper)?)),
            0x1c => SigType::Object,
            0x1d => SigType::SzArray(self.boxed(deeper)?),
            0x1e => SigType::MVar(self.number()?),
            _ => return None,
        })
    }

    /// The next code of a type, behind modifiers (0x1f, 0x20), the sentinel of variable arguments (0x41) and the mark
    /// of pinned locals (0x45).
    fn type_code(&mut self) -> Option<u8> {
        loop {
            match self.byte()? {
                0x1f | 0x20 => {
                    self.number()?;
                }
                0x41 | 0x45 => {}
                code => return Some(code),
            }
        }
    }

    fn array(&mut self, depth: usize) -> Option<SigType> {
        let element = self.boxed(depth)?;
        let rank = self.number()?;
        // Sizes, then lower bounds, each with their number in front.
        for _ in 0..2 {
            for _ in 0..self.number()? {
                self.number()?;
            }
        }
        Some(SigType::Array { element, rank })
    }

    fn generic_instance(&mut self, depth: usize) -> Option<SigType> {
        let value_type = match self.byte()? {
            0x11 => true,
            0x12 => false,
            _ => return None,
        };
        let ty = self.token()?;
        let count = self.number()?;
        Some(SigType::GenericInst {
            value_type,
            ty,
            args: self.types(count, depth)?,
        })
    }

    /// `count` types; the parts that are left bound it, and nothing is reserved for it.
    fn types(&mut self, count: u32, depth: usize) -> Option<Vec<SigType>> {
        (0..count).map(|_| self.ty(depth)).collect()
    }

    fn method(&mut self, depth: usize) -> Option<MethodSig> {
        let convention = self.byte()?;
        // Fields, locals, properties and method instantiations begin with 6, 7, 8 and 10.
        if matches!(convention & 0x0f, 0x06 | 0x07 | 0x0a) {
            return None;
        }
        let generic_params = if convention & 0x10 != 0 {
            self.number()?
        } else {
            0
        };
        let count = self.number()?;
        let return_type = self.ty(depth)?;
        Some(MethodSig {
            convention,
            generic_params,
            return_type,
            params: self.types(count, depth)?,
        })
    }
}

#[cfg(test)]
mod tests;
