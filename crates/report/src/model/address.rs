//! Addresses of the dumped process, written as text: JSON numbers lose the upper bits in many readers.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::str::FromStr;

/// A virtual address of the dumped process; `"0x00007f1234567890"` in JSON and in text.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Address(pub u64);

/// A text that is not an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseAddressError(String);

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "0x{:016x}", self.0)
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for ParseAddressError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "'{}' is not an address: up to 16 hexadecimal digits are expected, with or without 0x",
            self.0.escape_debug()
        )
    }
}

impl std::error::Error for ParseAddressError {}

impl FromStr for Address {
    type Err = ParseAddressError;

    /// Hexadecimal with or without `0x`; a backtick in the middle, as debuggers write it, is allowed.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let error = || ParseAddressError(text.chars().take(40).collect());
        let digits = text
            .strip_prefix("0x")
            .or_else(|| text.strip_prefix("0X"))
            .unwrap_or(text);
        let digits: String = digits.chars().filter(|c| *c != '`').collect();
        if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_hexdigit()) {
            return Err(error());
        }
        u64::from_str_radix(&digits, 16)
            .map(Self)
            .map_err(|_| error())
    }
}

impl From<u64> for Address {
    fn from(address: u64) -> Self {
        Self(address)
    }
}

impl Serialize for Address {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Address {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(feature = "schema")]
impl schemars::JsonSchema for Address {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Address".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "description": "A virtual address of the dumped process.",
            "type": "string",
            "pattern": "^0x[0-9a-f]{16}$"
        })
    }
}
