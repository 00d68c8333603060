//! What may be said of the data of the dumped process. Passwords, names and card numbers stand in strings, arrays,
//! structures, messages, paths and statements alike, so every text that the program did not give as a name goes through
//! here, whatever output it is for.

mod address;
mod literals;
mod statement;

pub(crate) use address::{is_known_method, origin, without_secrets};
pub(crate) use literals::Literals;
pub(crate) use statement::{Dialect, statement};

pub(crate) use crate::options::Values;
use address::{path, segments_of};

/// Bytes of a structure that are written out.
const MAX_BYTES: usize = 32;

impl Values {
    /// A text of `length` UTF-16 units, which is only read when it is to show; it need not be in the dump.
    pub(crate) fn text(self, length: u64, text: impl FnOnce() -> Option<String>) -> String {
        let known = match self {
            Self::Shown => text(),
            Self::Hidden => return format!("text of {length} characters"),
        };
        known.map_or_else(
            || format!("{length} characters that are not in the dump"),
            |text| format!("\"{text}\""),
        )
    }

    /// A UTF-16 unit: one character of what may be a text.
    pub(crate) fn character(self, unit: u16) -> String {
        match self {
            Self::Shown => {
                char::from_u32(unit.into()).map_or_else(|| unit.to_string(), |c| format!("{c:?}"))
            }
            Self::Hidden => "a character".into(),
        }
    }

    /// A byte: one of what may be a text or a key.
    pub(crate) fn byte(self, byte: u8) -> String {
        match self {
            Self::Shown => byte.to_string(),
            Self::Hidden => "a byte".into(),
        }
    }

    /// The first bytes of `len`: of a structure that nobody takes apart, which may hold characters.
    pub(crate) fn bytes(self, first: &[u8], len: u64) -> String {
        match self {
            Self::Shown => {
                let bytes = first.iter().take(MAX_BYTES);
                let bytes: Vec<String> = bytes.map(|b| format!("{b:02x}")).collect();
                bytes.join(" ")
            }
            Self::Hidden if len == 1 => "1 byte".into(),
            Self::Hidden => format!("{len} bytes"),
        }
    }

    /// What an exception says: what of it stands in the code of the program, or how much there is.
    pub(crate) fn message(self, text: &str, literals: &Literals) -> String {
        if self == Self::Shown {
            return format!("'{text}'");
        }
        match literals.shown(text) {
            Some(shown) => format!("'{shown}'"),
            None => format!("(message of {})", characters(text)),
        }
    }

    /// The path of a request, without its query.
    pub(crate) fn path(self, text: &str) -> String {
        path(text, self)
    }

    /// Where a call goes, without credentials and query.
    pub(crate) fn address(self, uri: &str) -> String {
        match uri.split_once("://") {
            Some((_, rest)) => {
                let origin = origin(uri).unwrap_or_default();
                format!("{origin}{}", path(segments_of(rest), self))
            }
            None => path(uri, self),
        }
    }

    /// The program and the assembly that it runs, without their arguments.
    pub(crate) fn command_line(self, line: &str) -> String {
        if self == Self::Shown {
            return line.to_owned();
        }
        let is_program = |word: &str| {
            let word = word.to_ascii_lowercase();
            word == "exec" || word.ends_with(".dll") || word.ends_with(".exe")
        };
        let mut words = line.split_whitespace();
        let mut out: Vec<&str> = words.next().into_iter().collect();
        let mut rest = words.peekable();
        while let Some(word) = rest.next_if(|w| is_program(w)) {
            out.push(word);
        }
        if rest.peek().is_some() {
            out.push("…");
        }
        out.join(" ")
    }
}

fn characters(text: &str) -> String {
    match text.chars().count() {
        1 => "1 character".into(),
        n => format!("{n} characters"),
    }
}

#[cfg(test)]
mod tests {
    use super::Values::{Hidden, Shown};

    #[test]
    fn data_is_told_by_its_size() {
        let size = || Some("Größe".to_owned());
        assert_eq!(Hidden.text(5, size), "text of 5 characters");
        assert_eq!(Shown.text(5, size), "\"Größe\"");
        assert_eq!(
            Shown.text(5, || None),
            "5 characters that are not in the dump"
        );
        assert_eq!(Hidden.character(83), "a character");
        assert_eq!(Shown.character(83), "'S'");
        assert_eq!(Shown.character(0xD800), "55296");
        assert_eq!(Hidden.byte(83), "a byte");
        assert_eq!(Hidden.bytes(&[83, 0], 8), "8 bytes");
        assert_eq!(Shown.bytes(&[83, 0], 8), "53 00");
    }

    #[test]
    fn a_message_that_is_no_literal_is_told_by_its_size() {
        let none = super::Literals::default();
        let said = "no row for bob@example.org";
        assert_eq!(Hidden.message(said, &none), "(message of 26 characters)");
        assert_eq!(Shown.message("no", &none), "'no'");
    }

    #[test]
    fn a_command_line_keeps_the_program() {
        let line = "/usr/bin/dotnet exec /app/App.dll --password=x y.dll";
        assert_eq!(
            Hidden.command_line(line),
            "/usr/bin/dotnet exec /app/App.dll …"
        );
        assert_eq!(Shown.command_line(line), line);
        assert_eq!(Hidden.command_line("/app/App"), "/app/App");
        assert_eq!(Hidden.command_line("/app/App secret"), "/app/App …");
    }

    #[test]
    fn addresses_keep_their_server_and_known_words() {
        let shown = |uri| Hidden.address(uri);
        assert_eq!(
            shown("http://u:p@h:1/orders/x?y=z#t"),
            "http://h:1/orders/…"
        );
        assert_eq!(shown("https://10.0.0.1:443"), "https://10.0.0.1");
        assert_eq!(shown("https://h?x@y"), "https://h");
        assert_eq!(shown("http://u:p@h\\secret"), "http://h/…");
        assert_eq!(shown("/relative/secret"), "/…/…");
        assert_eq!(Shown.address("http://u:p@h/secret?y"), "http://h/secret");
    }
}
