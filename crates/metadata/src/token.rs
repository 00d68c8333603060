//! Tokens: a table number and a row.

use crate::table::{Coded, Table};
use std::fmt;

/// A metadata token: table number in the upper byte, row (from 1) below; row 0 is nil.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Token(pub u32);

/// A [`Token`] that stands for a type: `TypeDef`, `TypeRef` or `TypeSpec`.
pub type TypeToken = Token;

impl Token {
    /// The token of a row; the upper byte of `rid` is cut off.
    #[must_use]
    pub const fn new(table: Table, rid: u32) -> Self {
        Self((table as u32) << 24 | rid & 0x00ff_ffff)
    }

    /// The table; `None` for numbers that are no table, such as that of user strings.
    #[must_use]
    pub const fn table(self) -> Option<Table> {
        Table::from_number((self.0 >> 24) as u8)
    }

    /// The row, from 1; 0 is nil.
    #[must_use]
    pub const fn rid(self) -> u32 {
        self.0 & 0x00ff_ffff
    }

    /// Whether it stands for nothing.
    #[must_use]
    pub const fn is_nil(self) -> bool {
        self.rid() == 0
    }

    /// What a coded index stands for; `None` when its tag is not used.
    pub(crate) fn decode(coded: Coded, value: u32) -> Option<Self> {
        let tag = value & !(u32::MAX << coded.bits());
        let table = coded.tables().get(tag as usize).copied().flatten()?;
        Some(Self::new(table, value >> coded.bits()))
    }

    /// The coded index that stands for this token; `None` when it cannot.
    pub(crate) fn encode(self, coded: Coded) -> Option<u32> {
        let table = self.table()?;
        let tag = coded.tables().iter().position(|t| *t == Some(table))?;
        Some(self.rid() << coded.bits() | u32::try_from(tag).ok()?)
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "0x{:08x}", self.0)
    }
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn coded_indices_go_both_ways() {
        let token = Token::new(Table::TypeRef, 0x123);
        assert_eq!(token.encode(Coded::TypeDefOrRef), Some(0x123 << 2 | 1));
        assert_eq!(
            Token::decode(Coded::TypeDefOrRef, 0x123 << 2 | 1),
            Some(token)
        );
        assert_eq!(Token::decode(Coded::TypeDefOrRef, 3), None);
        assert_eq!(
            Token::new(Table::Field, 1).encode(Coded::TypeDefOrRef),
            None
        );
        assert_eq!(format!("{token}"), "0x01000123");
    }
}
