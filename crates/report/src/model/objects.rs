//! Lists of objects: those of a type, and texts that hold something.

use super::views::current;
use super::{Address, Gap, is_zero};
use serde::{Deserialize, Serialize};

/// Objects of the heap that were asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct ObjectsReport {
    /// [`super::SCHEMA_VERSION`] of the writer.
    #[serde(default = "current")]
    pub schema_version: String,
    /// The dump, as the user gave it.
    pub dump: String,
    /// What was asked for, in words.
    pub asked: String,
    /// How many there are.
    pub count: u64,
    /// Their bytes, without what they refer to.
    pub bytes: u64,
    /// The objects by address.
    pub objects: Vec<ObjectRow>,
    /// Objects above the limit.
    #[serde(skip_serializing_if = "is_zero")]
    pub left_out: u64,
    /// What could not be read.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub gaps: Vec<Gap>,
}

impl Default for ObjectsReport {
    fn default() -> Self {
        Self {
            schema_version: current(),
            dump: String::new(),
            asked: String::new(),
            count: 0,
            bytes: 0,
            objects: Vec::new(),
            left_out: 0,
            gaps: Vec::new(),
        }
    }
}

/// One object of a list.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct ObjectRow {
    /// Where it is.
    pub address: Address,
    /// Raw name of its type.
    #[serde(rename = "type")]
    pub type_name: String,
    /// Its bytes, without what it refers to.
    pub size: u64,
    /// Elements of arrays and collections, characters of texts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub length: Option<u64>,
    /// The method of a box, the state of a task, the text around what was looked for.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub text: String,
}

/// The elements of a collection.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Elements {
    /// What it is: `List`, `Dictionary`, `ConcurrentQueue` and so on.
    pub collection: String,
    /// How many it has; left out when a concurrent collection was not read to its end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub count: Option<u64>,
    /// The elements, in the order that a `foreach` has.
    pub rows: Vec<ElementRow>,
    /// Whether there are more.
    pub is_cut: bool,
}

/// One element of a collection.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct ElementRow {
    /// The key of a dictionary in words, else the place from 0.
    pub key: String,
    /// The value in words.
    pub value: String,
    /// Raw name of the type of the object that it refers to.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub type_name: Option<String>,
    /// The object that it refers to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub link: Option<Address>,
    /// The object that the key is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key_link: Option<Address>,
}
