//! Text out of the dump, made harmless for a terminal.
//!
//! Type names, thread names and paths come from a file that nobody vouches for. Control characters, escape sequences,
//! characters that turn the direction of writing and characters that nobody sees are written as escapes.

use std::fmt::Write;

/// `text` with everything escaped that a terminal would act on or not show; all but ASCII as well when `ascii` is set.
pub(crate) fn clean(text: &str, ascii: bool) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            _ if is_harmful(c) => escape(&mut out, c),
            _ if ascii && !c.is_ascii() => match plain_glyph(c) {
                Some(glyph) => out.push_str(glyph),
                None => escape(&mut out, c),
            },
            _ => out.push(c),
        }
    }
    out
}

fn escape(out: &mut String, c: char) {
    // writing to a String cannot fail
    let _ = write!(out, "\\u{{{:x}}}", u32::from(c));
}

/// Controls, bidirectional controls, invisible characters, separators of lines, private use and tags.
fn is_harmful(c: char) -> bool {
    c.is_control()
        || matches!(u32::from(c),
            0x00ad | 0x034f | 0x061c | 0x115f | 0x1160 | 0x17b4 | 0x17b5 | 0x180b..=0x180f
            | 0x200b..=0x200f | 0x2028..=0x202e | 0x2060..=0x206f | 0x3164 | 0xfe00..=0xfe0f | 0xfeff
            | 0xffa0 | 0xfff0..=0xfffb | 0xe000..=0xf8ff | 0x1_bca0..=0x1_bca3 | 0x1_d173..=0x1_d17a
            | 0xe_0000..=0x10_ffff)
}

/// What the renderers' own drawing characters look like in ASCII.
fn plain_glyph(c: char) -> Option<&'static str> {
    Some(match c {
        '│' => "|",
        '├' => "+",
        '└' => "`",
        '─' => "-",
        '×' => "x",
        '…' => "...",
        '→' => "->",
        '·' => ".",
        _ => return None,
    })
}
