//! Texts that stand in the code of the program: those are no data of anybody.
//!
//! The runtime keeps literals of strings in its frozen heap (8.0 to 11.0), where nothing else puts strings. What of a
//! message stands there may be shown; what was put between is left out.

use asynctriage_clr::{Heap, Runtime, SegmentKind};
use rustc_hash::FxHashMap;

/// Literals that are looked at.
const MAX_LITERALS: usize = 200_000;
/// Characters of a literal from which on it is left out: nobody puts pages into a message.
const MAX_LEN: usize = 256;
/// Letters that a literal has to have: texts could be put together from shorter ones.
const MIN_LETTERS: usize = 3;
/// A message of which less than this part are literals is left out, as a divisor of its letters.
const MOST: usize = 2;
/// Bytes of a message that are looked through.
const MAX_MESSAGE: usize = 2048;
/// What is left out though it stands in the code: somebody has put a password there.
const SUSPICIOUS: [&str; 9] = [
    "secret",
    "passw",
    "pwd",
    "token",
    "apikey",
    "api key",
    "api-key",
    "credential",
    "bearer",
];

/// The literals by their first two characters, the longest first.
#[derive(Debug, Default)]
pub(crate) struct Literals(FxHashMap<(char, char), Vec<String>>);

impl Literals {
    /// Those of a process.
    pub(crate) fn read(rt: &Runtime<'_>, heap: &Heap) -> Self {
        let segments = heap.shape.segments.iter().enumerate();
        let frozen = segments.filter(|(_, s)| s.kind == SegmentKind::Frozen);
        let objects = frozen.flat_map(|(index, _)| heap.objects_in(index));
        Self::of(objects.take(MAX_LITERALS).filter_map(|o| rt.text(o)))
    }

    fn of(texts: impl Iterator<Item = String>) -> Self {
        let mut out: FxHashMap<_, Vec<String>> = FxHashMap::default();
        for text in texts.filter(|t| is_plain(t)) {
            if let Some(key) = start(&text) {
                out.entry(key).or_default().push(text);
            }
        }
        for alike in out.values_mut() {
            alike.sort_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
            alike.dedup();
        }
        Self(out)
    }

    /// The message with `…` for what is no literal; `None` when too little of it is one to say anything.
    pub(super) fn shown(&self, message: &str) -> Option<String> {
        let mut out = String::new();
        let (mut rest, mut before, mut any) =
            (message.get(..MAX_MESSAGE).unwrap_or(message), ' ', false);
        while let Some(c) = rest.chars().next() {
            if let Some(literal) = self.at(before, rest) {
                out.push_str(literal);
                any = true;
                before = literal.chars().next_back().unwrap_or(' ');
                rest = rest.get(literal.len()..).unwrap_or_default();
                continue;
            }
            if c.is_whitespace() {
                out.push(c);
            } else if out.trim_end().ends_with('…') {
                out.truncate(out.trim_end().len());
            } else {
                out.push('…');
            }
            before = c;
            rest = rest.get(c.len_utf8()..).unwrap_or_default();
        }
        let letters = |text: &str| text.chars().filter(|c| c.is_alphanumeric()).count();
        (any && letters(&out) >= letters(message).div_ceil(MOST)).then_some(out)
    }

    /// The longest literal that `text` begins with and that cuts no word in two.
    fn at(&self, before: char, text: &str) -> Option<&str> {
        let alike = self.0.get(&start(text)?)?;
        let cuts =
            |a: char, b: Option<char>| a.is_alphanumeric() && b.is_some_and(char::is_alphanumeric);
        let found = alike.iter().find(|literal| {
            let Some(behind) = text.strip_prefix(literal.as_str()) else {
                return false;
            };
            let last = literal.chars().next_back().unwrap_or(' ');
            !cuts(before, literal.chars().next()) && !cuts(last, behind.chars().next())
        });
        found.map(String::as_str)
    }
}

fn start(text: &str) -> Option<(char, char)> {
    let mut chars = text.chars();
    Some((chars.next()?, chars.next()?))
}

fn is_plain(literal: &str) -> bool {
    let lower = literal.to_lowercase();
    literal.len() <= MAX_LEN
        && literal.chars().filter(|c| c.is_alphabetic()).count() >= MIN_LETTERS
        && !literal.contains(['=', '@'])
        && !literal.contains("://")
        && !SUSPICIOUS.iter().any(|word| lower.contains(word))
}

#[cfg(test)]
mod tests {
    use super::Literals;

    fn shown(literals: &[&str], message: &str) -> Option<String> {
        Literals::of(literals.iter().map(|l| (*l).to_owned())).shown(message)
    }

    #[test]
    fn of_a_message_only_literals_show() {
        let code = [
            "payment ",
            " rejected",
            "pay",
            "bob",
            "ledger is out of balance",
        ];
        assert_eq!(
            shown(&code, "payment 4711 rejected").as_deref(),
            Some("payment … rejected")
        );
        assert_eq!(
            shown(&code, "ledger is out of balance").as_deref(),
            Some("ledger is out of balance")
        );
        assert_eq!(
            shown(&code, "payment by Jane Doe rejected").as_deref(),
            Some("payment … rejected")
        );
        assert_eq!(shown(&code, "payments"), None, "no part of a word");
        assert_eq!(shown(&code, "a very long story about pay"), None);
        assert_eq!(shown(&code, "bobby tables"), None);
        assert_eq!(shown(&code, ""), None);
    }

    #[test]
    fn passwords_in_code_do_not_show() {
        let code = [
            "Password=hunter",
            "my secret",
            "https://u:p@h/x",
            "ab",
            "the TOKEN abc",
        ];
        for message in code {
            assert_eq!(shown(&code, message), None, "{message}");
        }
    }
}
