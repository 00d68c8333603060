//! Fields of events: their types, and their values in a payload.

use crate::Text;
use crate::cursor::Cursor;
use crate::header::DateTime;
use crate::rows::Guid;

/// A field of an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// Name of the parameter or property.
    pub name: String,
    /// Its type.
    pub kind: FieldType,
}

/// Types of fields. 20 and above exist in version 6 only.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FieldType {
    /// 1: fields, one behind the other.
    Object(Vec<Field>),
    /// 3: four bytes, 0 is false.
    Bool,
    /// 4: a UTF-16 unit.
    Utf16Unit,
    /// 5, 7, 9, 11: a signed number of so many bytes.
    Signed(u8),
    /// 6, 8, 10, 12: an unsigned number of so many bytes.
    Unsigned(u8),
    /// 13.
    F32,
    /// 14.
    F64,
    /// 16: eight numbers of 16 bits.
    DateTime,
    /// 17.
    Guid,
    /// 18: UTF-16 up to a NUL.
    Text,
    /// 19: a number of 16 bits, and so many elements.
    Array(Box<FieldType>),
    /// 20: signed, in groups of seven bits.
    VarInt,
    /// 21: unsigned, in groups of seven bits.
    VarUInt,
    /// 22: so many elements.
    FixedArray(Box<FieldType>, u16),
    /// 23: a UTF-8 unit.
    Utf8Unit,
    /// 24: elements elsewhere in the payload, counted from behind the field.
    RelativeLocation(Box<FieldType>),
    /// 25: elements elsewhere in the payload, counted from its beginning.
    Location(Box<FieldType>),
    /// 26: one byte, 0 is false.
    Bool8,
    /// Any other; neither its value nor what stands behind it can be read.
    Unknown(u32),
}

/// The value of a field.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Value<'a> {
    /// A Boolean.
    Bool(bool),
    /// A signed number of any size.
    Signed(i64),
    /// An unsigned number of any size, or a unit of UTF-8 or UTF-16.
    Unsigned(u64),
    /// A floating-point number of either size.
    Float(f64),
    /// A date.
    DateTime(DateTime),
    /// A GUID, in the order of its bytes.
    Guid(Guid),
    /// Text.
    Text(Text<'a>),
    /// The elements of an array, not decoded.
    Array {
        /// How many; none where elements elsewhere in the payload were named by their length in bytes.
        count: Option<u16>,
        /// Their bytes.
        bytes: &'a [u8],
    },
    /// The fields of an object, not decoded.
    Object(&'a [u8]),
}

impl Value<'_> {
    /// The value as a whole number; none for other values and for what does not fit.
    pub fn as_i64(&self) -> Option<i64> {
        match self {
            Self::Signed(value) => Some(*value),
            Self::Unsigned(value) => i64::try_from(*value).ok(),
            Self::Bool(value) => Some((*value).into()),
            _ => None,
        }
    }
}

impl std::fmt::Display for Value<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Bool(value) => value.fmt(f),
            Self::Signed(value) => value.fmt(f),
            Self::Unsigned(value) => value.fmt(f),
            Self::Float(value) => value.fmt(f),
            Self::DateTime(value) => value.fmt(f),
            Self::Guid(bytes) => {
                let [a, b, c, d, e, g, h, i, rest @ ..] = bytes;
                for byte in [d, c, b, a] {
                    write!(f, "{byte:02x}")?;
                }
                write!(f, "-{g:02x}{e:02x}-{i:02x}{h:02x}-")?;
                for (index, byte) in rest.iter().enumerate() {
                    write!(f, "{}{byte:02x}", if index == 2 { "-" } else { "" })?;
                }
                Ok(())
            }
            Self::Text(value) => value.fmt(f),
            Self::Array { bytes, .. } | Self::Object(bytes) => write!(f, "[{} bytes]", bytes.len()),
        }
    }
}

/// Values of an event that may take no bytes: objects without fields, arrays without elements. A trace has millions of
/// events, and each of them could ask for as many as its kind's description allows.
const WITHOUT_BYTES: u32 = 256;

/// What a description of fields may cost: they nest.
#[derive(Debug)]
pub(crate) struct Limits {
    depth: u32,
    fields: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            depth: 8,
            fields: 4096,
        }
    }
}

impl Limits {
    fn enter<T>(&mut self, inside: impl FnOnce(&mut Self) -> Option<T>) -> Option<T> {
        self.depth = self.depth.checked_sub(1)?;
        let found = inside(self);
        self.depth = self.depth.saturating_add(1);
        found
    }

    fn field(&mut self) -> Option<()> {
        self.fields = self.fields.checked_sub(1)?;
        Some(())
    }
}

/// Fields as version 4 writes them: a count, then type and name of each.
pub(crate) fn fields_1(row: &mut Cursor<'_>, limits: &mut Limits) -> Option<Vec<Field>> {
    limits.enter(|limits| {
        let mut fields = Vec::new();
        for _ in 0..row.length()? {
            limits.field()?;
            let kind = type_4(row, limits, fields_1)?;
            let name = row.text()?.to_string();
            fields.push(Field { name, kind });
        }
        Some(fields)
    })
}

/// Fields of the tag of version 5: each with its size, its name first.
pub(crate) fn fields_2(row: &mut Cursor<'_>, limits: &mut Limits) -> Option<Vec<Field>> {
    limits.enter(|limits| {
        let mut fields = Vec::new();
        for _ in 0..row.length()? {
            limits.field()?;
            // the size counts its own four bytes
            let size = row.length()?.checked_sub(4)?;
            let mut field = row.part(size)?;
            let name = field.text()?.to_string();
            let kind = type_4(&mut field, limits, fields_2)?;
            fields.push(Field { name, kind });
        }
        Some(fields)
    })
}

/// Fields of version 6.
pub(crate) fn fields_6(row: &mut Cursor<'_>, limits: &mut Limits) -> Option<Vec<Field>> {
    limits.enter(|limits| {
        let mut fields = Vec::new();
        for _ in 0..row.u16()? {
            limits.field()?;
            let size = usize::from(row.u16()?);
            let mut field = row.part(size)?;
            let name = field.utf8()?;
            let kind = type_6(&mut field, limits)?;
            fields.push(Field { name, kind });
        }
        Some(fields)
    })
}

type FieldReader = fn(&mut Cursor<'_>, &mut Limits) -> Option<Vec<Field>>;

/// A type of versions 4 and 5; `fields` reads the fields of an object.
fn type_4(row: &mut Cursor<'_>, limits: &mut Limits, fields: FieldReader) -> Option<FieldType> {
    let code = row.u32()?;
    match code {
        1 => fields(row, limits).map(FieldType::Object),
        19 => {
            let element = limits.enter(|limits| type_4(row, limits, fields))?;
            Some(FieldType::Array(Box::new(element)))
        }
        _ => Some(simple(code)),
    }
}

fn type_6(row: &mut Cursor<'_>, limits: &mut Limits) -> Option<FieldType> {
    let code = u32::from(row.u8()?);
    if code == 1 {
        return fields_6(row, limits).map(FieldType::Object);
    }
    if !matches!(code, 19 | 22 | 24 | 25) {
        return Some(simple(code));
    }
    let element = Box::new(limits.enter(|limits| type_6(row, limits))?);
    Some(match code {
        19 => FieldType::Array(element),
        22 => FieldType::FixedArray(element, row.u16()?),
        24 => FieldType::RelativeLocation(element),
        _ => FieldType::Location(element),
    })
}

/// A type without parts.
fn simple(code: u32) -> FieldType {
    match code {
        3 => FieldType::Bool,
        4 => FieldType::Utf16Unit,
        5 => FieldType::Signed(1),
        6 => FieldType::Unsigned(1),
        7 => FieldType::Signed(2),
        8 => FieldType::Unsigned(2),
        9 => FieldType::Signed(4),
        10 => FieldType::Unsigned(4),
        11 => FieldType::Signed(8),
        12 => FieldType::Unsigned(8),
        13 => FieldType::F32,
        14 => FieldType::F64,
        16 => FieldType::DateTime,
        17 => FieldType::Guid,
        18 => FieldType::Text,
        20 => FieldType::VarInt,
        21 => FieldType::VarUInt,
        23 => FieldType::Utf8Unit,
        26 => FieldType::Bool8,
        _ => FieldType::Unknown(code),
    }
}

/// The values of an event, in the order of its fields. Ends before the first field that does not fit into the payload
/// or whose type is not known: what stands behind it cannot be found either.
#[derive(Clone, Debug)]
pub struct Values<'k, 'a> {
    fields: std::slice::Iter<'k, Field>,
    payload: &'a [u8],
    cursor: Cursor<'a>,
    /// Values that may still be looked at: arrays nest, and elements may take no bytes.
    budget: u32,
}

impl<'k, 'a> Values<'k, 'a> {
    pub(crate) fn new(fields: &'k [Field], payload: &'a [u8]) -> Self {
        Self {
            fields: fields.iter(),
            payload,
            cursor: Cursor::new(payload, 0),
            budget: u32::try_from(payload.len())
                .unwrap_or(u32::MAX)
                .saturating_add(WITHOUT_BYTES),
        }
    }

    /// Bytes of the payload behind the values read so far.
    pub fn rest(&self) -> &'a [u8] {
        self.cursor.rest()
    }

    fn value(&mut self, kind: &FieldType) -> Option<Value<'a>> {
        self.budget = self.budget.checked_sub(1)?;
        let cursor = &mut self.cursor;
        Some(match kind {
            FieldType::Object(fields) => {
                let behind = self.skip(fields.iter().map(|field| &field.kind))?;
                Value::Object(behind)
            }
            FieldType::Bool => Value::Bool(cursor.u32()? != 0),
            FieldType::Bool8 => Value::Bool(cursor.u8()? != 0),
            FieldType::Signed(size) => Value::Signed(signed(cursor.take((*size).into())?)),
            FieldType::Unsigned(size) => Value::Unsigned(unsigned(cursor.take((*size).into())?)),
            FieldType::Utf16Unit => Value::Unsigned(cursor.u16()?.into()),
            FieldType::Utf8Unit => Value::Unsigned(cursor.u8()?.into()),
            FieldType::F32 => Value::Float(f32::from_bits(cursor.u32()?).into()),
            FieldType::F64 => Value::Float(f64::from_bits(cursor.u64()?)),
            FieldType::DateTime => Value::DateTime(DateTime::parse(cursor)?),
            FieldType::Guid => Value::Guid(cursor.array()?),
            FieldType::Text => Value::Text(cursor.text()?),
            FieldType::VarInt => Value::Signed(cursor.varint64()?),
            FieldType::VarUInt => Value::Unsigned(cursor.varuint64()?),
            FieldType::Array(element) => {
                let count = cursor.u16()?;
                self.elements(element, count)?
            }
            FieldType::FixedArray(element, count) => self.elements(element, *count)?,
            FieldType::RelativeLocation(_) => {
                let (at, len) = location(cursor.u32()?);
                elsewhere(cursor.rest(), at, len)?
            }
            FieldType::Location(_) => {
                let (at, len) = location(cursor.u32()?);
                elsewhere(self.payload, at, len)?
            }
            FieldType::Unknown(_) => return None,
        })
    }

    fn elements(&mut self, element: &FieldType, count: u16) -> Option<Value<'a>> {
        let bytes = self.skip(std::iter::repeat_n(element, count.into()))?;
        Some(Value::Array {
            count: Some(count),
            bytes,
        })
    }

    /// The bytes of the values of `kinds`.
    fn skip<'t>(&mut self, kinds: impl Iterator<Item = &'t FieldType>) -> Option<&'a [u8]> {
        let before = self.cursor.rest();
        for kind in kinds {
            self.value(kind)?;
        }
        let len = before.len().checked_sub(self.cursor.rest().len())?;
        before.get(..len)
    }
}

impl<'k, 'a> Iterator for Values<'k, 'a> {
    type Item = (&'k str, Value<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        let field = self.fields.next()?;
        let value = self.value(&field.kind);
        if value.is_none() {
            self.fields = [].iter();
        }
        Some((&field.name, value?))
    }
}

fn unsigned(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .rev()
        .fold(0, |value, byte| value << 8 | u64::from(*byte))
}

fn signed(bytes: &[u8]) -> i64 {
    let unused =
        64_u32.saturating_sub(u32::try_from(bytes.len()).map_or(64, |len| len.saturating_mul(8)));
    unsigned(bytes)
        .wrapping_shl(unused)
        .cast_signed()
        .wrapping_shr(unused)
}

/// Position in the lower half, length in bytes in the upper one.
fn location(word: u32) -> (usize, usize) {
    ((word & 0xffff) as usize, (word >> 16) as usize)
}

fn elsewhere(bytes: &[u8], at: usize, len: usize) -> Option<Value<'_>> {
    let bytes = bytes.get(at..)?.get(..len)?;
    Some(Value::Array { count: None, bytes })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn first(kind: FieldType, payload: &[u8]) -> Option<Value<'_>> {
        let fields = [Field {
            name: "f".into(),
            kind,
        }];
        let found = Values::new(&fields, payload).next()?.1;
        Some(found)
    }

    fn array(element: FieldType, count: u16) -> FieldType {
        FieldType::FixedArray(Box::new(element), count)
    }

    #[test]
    fn arrays_are_as_long_as_the_payload_allows() {
        let bytes = vec![1; 10_000];
        let all = Value::Array {
            count: Some(10_000),
            bytes: &bytes,
        };
        assert_eq!(
            first(array(FieldType::Unsigned(1), 10_000), &bytes),
            Some(all)
        );
        assert_eq!(first(array(FieldType::Unsigned(1), 10_001), &bytes), None);
    }

    #[test]
    fn elements_without_bytes_are_not_looked_at_for_ever() {
        let empty = || FieldType::Object(Vec::new());
        assert!(first(array(empty(), 100), &[]).is_some());
        assert_eq!(first(array(array(empty(), u16::MAX), u16::MAX), &[]), None);
        let mut fields = Values::new(&[], &[]);
        fields.value(&array(empty(), u16::MAX));
        assert_eq!(fields.budget, 0, "as much as was looked at");
    }
}
