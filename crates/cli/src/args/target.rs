//! What `show` is asked for.

use asynctriage_report::{Address, ParseAddressError};
use std::str::FromStr;

/// Digits of an id that could be an address as well: no object lies that low.
const MAX_DIGITS: usize = 6;

/// An object, or a part of the report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    Address(Address),
    Id(String),
}

impl FromStr for Target {
    type Err = ParseAddressError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if is_id(text) {
            return Ok(Self::Id(text.to_owned()));
        }
        text.parse().map(Self::Address)
    }
}

/// A letter and a number; one chain of a group has two numbers.
fn is_id(text: &str) -> bool {
    let mut chars = text.chars();
    let is_hex = match chars.next() {
        Some('G' | 'R' | 'T' | 'W' | 'P' | 'H') => false,
        Some('F' | 'E' | 'C' | 'D') => true,
        _ => return false,
    };
    let rest = chars.as_str();
    let (number, member) = rest.split_once('.').unwrap_or((rest, "0"));
    let digits = |t: &str| !t.is_empty() && t.bytes().all(|b| b.is_ascii_digit());
    digits(number) && digits(member) && (!is_hex || number.len() <= MAX_DIGITS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_and_addresses_are_told_apart() {
        for id in [
            "F1",
            "E17",
            "C3",
            "C3.1",
            "T4711",
            "W5",
            "G1",
            "D1",
            "P1",
            "H1",
            "R999999999",
        ] {
            assert_eq!(id.parse(), Ok(Target::Id(id.into())));
        }
        for (text, at) in [
            ("7f12000010a0", 0x7f12_0000_10a0),
            ("C0000000", 0xc000_0000),
            ("0xF1", 0xf1),
            ("f1", 0xf1),
        ] {
            assert_eq!(text.parse(), Ok(Target::Address(Address(at))));
        }
        for neither in ["", "T", "X1", "G1.", "T1.x"] {
            neither.parse::<Target>().unwrap_err();
        }
    }
}
