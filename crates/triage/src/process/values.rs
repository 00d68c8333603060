//! Values of fields and variables in words.

use asynctriage_clr::Runtime;
use asynctriage_dump::Addr;

/// System.Char among the CorElementTypes.
pub(crate) const CHAR: u32 = 0x03;

/// A reference in words: a text by its length unless values are wanted.
pub(crate) fn reference_text(rt: &Runtime<'_>, link: Option<Addr>, values: bool) -> String {
    let Some(object) = link else {
        return "null".into();
    };
    match rt.text_length(object) {
        Some(_) if values => match rt.text(object) {
            Some(text) => format!("\"{text}\""),
            None => object.to_string(),
        },
        Some(length) => format!("text of {length} characters"),
        None => object.to_string(),
    }
}

/// A number, truth value or character in words; a character, which may be part of a secret, only when values are wanted.
pub(crate) fn primitive_text(
    rt: &Runtime<'_>,
    at: Addr,
    element_type: u32,
    values: bool,
) -> String {
    let m = rt.memory();
    let text = match element_type {
        0x02 => m.u8(at).map(|v| (v != 0).to_string()),
        CHAR if !values => Some("a character".to_owned()),
        CHAR => m
            .u16(at)
            .map(|v| char::from_u32(v.into()).map_or_else(|| v.to_string(), |c| format!("{c:?}"))),
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
