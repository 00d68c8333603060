//! Which events are asked for.

use std::fmt;
use std::str::FromStr;

/// A provider of events and what of it is asked for. As text: `NAME[:KEYWORDS[:LEVEL[:ARGUMENTS]]]`, keywords in
/// hexadecimal, as dotnet-trace writes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Provider {
    /// Its name; case does not matter to the runtime.
    pub name: String,
    /// Groups of events, a bit each.
    pub keywords: u64,
    /// How much detail: 0 always, 1 critical, 2 error, 3 warning, 4 informational, 5 verbose.
    pub level: u32,
    /// What the provider itself understands, often `Key=Value;Key=Value`; mostly empty.
    pub arguments: String,
}

/// Names of levels, by number.
const LEVELS: [&str; 6] = [
    "logalways",
    "critical",
    "error",
    "warning",
    "informational",
    "verbose",
];

impl Provider {
    /// A provider without arguments.
    #[must_use]
    pub fn new(name: &str, keywords: u64, level: u32) -> Self {
        Self {
            name: name.to_owned(),
            keywords,
            level,
            arguments: String::new(),
        }
    }
}

impl fmt::Display for Provider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:0x{:X}:{}", self.name, self.keywords, self.level)?;
        if self.arguments.is_empty() {
            return Ok(());
        }
        write!(f, ":{}", self.arguments)
    }
}

/// Why a text names no provider.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseProviderError {
    /// Nothing before the first colon.
    #[error("the name of the provider is missing")]
    Name,
    /// Not a hexadecimal number of 64 bits.
    #[error("{0:?} is not a hexadecimal number of at most 16 digits")]
    Keywords(String),
    /// Not one of the levels.
    #[error("{0:?} is not a level: 0 to 5, or a word from LogAlways to Verbose")]
    Level(String),
}

impl FromStr for Provider {
    type Err = ParseProviderError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut parts = text.splitn(4, ':');
        let name = parts.next().unwrap_or_default().trim();
        if name.is_empty() {
            return Err(ParseProviderError::Name);
        }
        let mut part = || parts.next().unwrap_or_default();
        Ok(Self {
            name: name.to_owned(),
            keywords: keywords(part())?,
            level: level(part())?,
            arguments: part().to_owned(),
        })
    }
}

fn keywords(text: &str) -> Result<u64, ParseProviderError> {
    let digits = text.trim();
    if digits.is_empty() {
        return Ok(u64::MAX);
    }
    let digits = digits.strip_prefix("0x").unwrap_or(digits);
    u64::from_str_radix(digits, 16).map_err(|_| ParseProviderError::Keywords(text.to_owned()))
}

fn level(text: &str) -> Result<u32, ParseProviderError> {
    let word = text.trim().to_ascii_lowercase();
    if word.is_empty() {
        return Ok(5);
    }
    let number = word.parse().ok().filter(|n| *n <= 5);
    let named = || LEVELS.iter().position(|l| *l == word);
    number
        .or_else(|| u32::try_from(named()?).ok())
        .ok_or_else(|| ParseProviderError::Level(text.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_notation_of_dotnet_trace_is_read_and_written() {
        let all: Provider = "My-Events".parse().expect("a bare name");
        assert_eq!(all, Provider::new("My-Events", u64::MAX, 5));
        let full: Provider = "A:0x3ff:Informational:k=v:w".parse().expect("all parts");
        assert_eq!((full.keywords, full.level), (0x3ff, 4));
        assert_eq!(full.arguments, "k=v:w");
        assert_eq!(full.to_string(), "A:0x3FF:4:k=v:w");
        assert_eq!("A::3".parse(), Ok(Provider::new("A", u64::MAX, 3)));
        assert_eq!("A:10".parse(), Ok(Provider::new("A", 0x10, 5)));
    }

    #[test]
    fn mistakes_are_named() {
        for (text, error) in [
            ("", ParseProviderError::Name),
            (":1:1", ParseProviderError::Name),
            ("A:xyz", ParseProviderError::Keywords("xyz".into())),
            ("A:-1", ParseProviderError::Keywords("-1".into())),
            ("A:1:6", ParseProviderError::Level("6".into())),
            ("A:1:loud", ParseProviderError::Level("loud".into())),
        ] {
            assert_eq!(text.parse::<Provider>(), Err(error), "{text}");
        }
    }
}
