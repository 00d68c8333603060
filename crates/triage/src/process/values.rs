//! Values of fields and variables in words.

use super::private::Values;
use asynctriage_clr::Runtime;
use asynctriage_dump::Addr;

/// A reference in words.
pub(crate) fn reference_text(rt: &Runtime<'_>, link: Option<Addr>, values: Values) -> String {
    let Some(object) = link else {
        return "null".into();
    };
    match rt.text_length(object) {
        Some(length) => values.text(length, || rt.text(object)),
        None => object.to_string(),
    }
}

/// A number, truth value or character in words.
pub(crate) fn primitive_text(
    rt: &Runtime<'_>,
    at: Addr,
    element_type: u32,
    values: Values,
) -> String {
    let m = rt.memory();
    let text = match element_type {
        0x02 => m.u8(at).map(|v| (v != 0).to_string()),
        0x03 => m.u16(at).map(|unit| values.character(unit)),
        0x04 => m.u8(at).map(|v| v.cast_signed().to_string()),
        0x05 => m.u8(at).map(|v| v.to_string()),
        0x06 => m.u16(at).map(|v| v.cast_signed().to_string()),
        0x07 => m.u16(at).map(|v| v.to_string()),
        0x08 => m.i32(at).map(|v| v.to_string()),
        0x09 => m.u32(at).map(|v| v.to_string()),
        0x0a => m.i64(at).map(|v| v.to_string()),
        0x0c => m.u32(at).map(|v| f32::from_bits(v).to_string()),
        0x0d => m.u64(at).map(|v| f64::from_bits(v).to_string()),
        _ => m.u64(at).map(|v| v.to_string()),
    };
    text.unwrap_or_else(|| "unreadable".into())
}

/// A structure that nobody takes apart.
pub(crate) fn structure_text(rt: &Runtime<'_>, at: Addr, len: u64, values: Values) -> String {
    rt.memory()
        .bytes(at, len.min(32), 32)
        .map_or_else(|| "unreadable".into(), |bytes| values.bytes(&bytes, len))
}
