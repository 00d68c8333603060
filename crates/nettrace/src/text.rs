//! UTF-16 text where it stands in the file.

use std::fmt;

/// UTF-16 text of a payload, not decoded until it is asked for. What is no UTF-16 is shown as U+FFFD.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Text<'a> {
    bytes: &'a [u8],
}

impl<'a> Text<'a> {
    /// `bytes` without the NUL at the end.
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes }
    }

    /// The characters.
    pub fn chars(self) -> impl Iterator<Item = char> + 'a {
        let units = self
            .bytes
            .chunks_exact(2)
            .filter_map(|unit| unit.first_chunk().map(|unit| u16::from_le_bytes(*unit)));
        char::decode_utf16(units).map(|c| c.unwrap_or(char::REPLACEMENT_CHARACTER))
    }

    /// Whether there are no characters.
    pub fn is_empty(self) -> bool {
        self.bytes.is_empty()
    }
}

impl fmt::Display for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.chars().try_for_each(|c| fmt::Write::write_char(f, c))
    }
}

impl fmt::Debug for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.to_string())
    }
}

impl PartialEq<str> for Text<'_> {
    fn eq(&self, other: &str) -> bool {
        self.chars().eq(other.chars())
    }
}

impl PartialEq<&str> for Text<'_> {
    fn eq(&self, other: &&str) -> bool {
        *self == **other
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_shown_and_compared_as_it_reads() {
        let text = Text::new(&[b'a', 0, 0x3d, 0xd8, 0x00, 0xde]);
        assert_eq!(text, "a😀");
        assert_eq!(format!("{text} {text:?}"), "a😀 \"a😀\"");
        assert_eq!(Text::new(&[0x3d, 0xd8]).to_string(), "\u{fffd}");
        assert!(Text::default().is_empty() && text != "a");
    }
}
