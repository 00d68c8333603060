//! Cells and their types.

use serde_json::Value;

/// A column of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    /// Its name.
    pub name: &'static str,
    /// What its cells hold; each may be empty.
    pub kind: Kind,
    /// What it says, with its unit.
    pub about: &'static str,
}

/// Type of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// UTF-8.
    Text,
    /// A whole number of 64 bits with a sign.
    Int,
    /// A number of 64 bits with a fraction.
    Double,
    /// Yes or no.
    Bool,
}

impl Kind {
    /// Its name in the schema.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Int => "int64",
            Self::Double => "double",
            Self::Bool => "boolean",
        }
    }
}

/// What stands in a row under a column.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    /// Nothing: not known, or there is none.
    Null,
    /// A text.
    Text(String),
    /// A whole number.
    Int(i64),
    /// A number with a fraction.
    Double(f64),
    /// Yes or no.
    Bool(bool),
}

impl Cell {
    /// As a value of JSON.
    #[must_use]
    pub fn to_json(&self) -> Value {
        match self {
            Self::Null => Value::Null,
            Self::Text(text) => Value::from(text.as_str()),
            Self::Int(number) => Value::from(*number),
            Self::Double(number) => Value::from(*number),
            Self::Bool(is) => Value::from(*is),
        }
    }

    /// A value of JSON as a cell of a column; empty when it is of another type.
    #[must_use]
    pub fn from_json(value: Option<&Value>, kind: Kind) -> Self {
        let Some(value) = value else {
            return Self::Null;
        };
        let cell = match kind {
            Kind::Text => value.as_str().map(|t| Self::Text(t.to_owned())),
            Kind::Int => value.as_i64().map(Self::Int),
            Kind::Double => value.as_f64().map(Self::Double),
            Kind::Bool => value.as_bool().map(Self::Bool),
        };
        cell.unwrap_or(Self::Null)
    }
}

/// A text; an empty one says nothing.
pub(super) fn text(text: &str) -> Cell {
    if text.is_empty() {
        Cell::Null
    } else {
        Cell::Text(text.to_owned())
    }
}

pub(super) fn opt(of: Option<&String>) -> Cell {
    of.map_or(Cell::Null, |t| text(t))
}

pub(super) fn int(number: u64) -> Cell {
    Cell::Int(i64::try_from(number).unwrap_or(i64::MAX))
}

pub(super) fn opt_int(number: Option<u64>) -> Cell {
    number.map_or(Cell::Null, int)
}

pub(super) fn double(number: Option<f64>) -> Cell {
    number
        .filter(|n| n.is_finite())
        .map_or(Cell::Null, Cell::Double)
}

pub(super) fn count(of: usize) -> Cell {
    int(of as u64)
}
