//! What the statements of a report rest on: addresses, the bytes there, and how they were decoded.

use super::views::current;
use super::{Address, is_zero};
use serde::{Deserialize, Serialize};

/// The evidence of a report, down to bytes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct ClaimsReport {
    /// [`super::SCHEMA_VERSION`] of the writer.
    #[serde(default = "current")]
    pub schema_version: String,
    /// How to come to the commands of other tools that are named here.
    pub commands_of: String,
    /// The claims, in the order of the report.
    pub claims: Vec<Claim>,
    /// What stands at the addresses that claims name, by address.
    pub places: Vec<Place>,
    /// Claims above the limit.
    #[serde(skip_serializing_if = "is_zero")]
    pub claims_left_out: u64,
}

impl Default for ClaimsReport {
    fn default() -> Self {
        Self {
            schema_version: current(),
            commands_of: String::new(),
            claims: Vec::new(),
            places: Vec::new(),
            claims_left_out: 0,
        }
    }
}

/// One statement of the report.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Claim {
    /// Its id in the report: a piece of evidence `E1`, a request `R1`, a thread `T4711`, the pool `P1`; a frame is the group
    /// and its place from the innermost, `C1/0`, what the group waits for is `C1/leaf`.
    pub id: String,
    /// The finding or group that it belongs to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub of: Option<String>,
    /// The statement.
    pub says: String,
    /// How it was read.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub how: String,
    /// The addresses that it rests on; each is one of the places.
    pub at: Vec<Address>,
    /// Commands of other tools that show the same, besides those of the places.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub commands: Vec<String>,
}

/// What stands at an address.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Place {
    /// The address.
    pub address: Address,
    /// What it is.
    pub kind: PlaceKind,
    /// The object that it lies in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub object: Option<Address>,
    /// Raw name of the type of the object.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub type_name: Option<String>,
    /// Bytes of the object.
    #[serde(skip_serializing_if = "is_zero")]
    pub size: u64,
    /// The bytes there as hexadecimal, in the order of memory; what may be data of the process is left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes: Option<String>,
    /// What the bytes say, or the method of code.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub says: Option<String>,
    /// The fields of an object.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub fields: Vec<RawField>,
    /// Fields above the limit.
    #[serde(skip_serializing_if = "is_zero")]
    pub fields_left_out: u64,
    /// Commands of other tools that show the same.
    pub commands: Vec<String>,
}

/// What an address is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum PlaceKind {
    /// An object of the heap begins there.
    Object,
    /// A field inside an object.
    Slot,
    /// Code of a managed method.
    Code,
    /// Anything else: structures of the runtime, stacks.
    Memory,
    /// Nothing that can be read.
    #[default]
    Unreadable,
}

/// A field with its bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct RawField {
    /// Bytes from the start of the object.
    pub offset: u64,
    /// Its name in the metadata.
    pub name: String,
    /// Its type in the metadata.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub type_name: Option<String>,
    /// Its bytes as hexadecimal, in the order of memory; left out where the value is, too.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes: Option<String>,
    /// What they say.
    pub says: String,
}
