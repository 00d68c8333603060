//! The answers of the subcommands that look at one thing only.

use super::{Address, Gap, LeafKind, SCHEMA_VERSION, is_zero};
use serde::{Deserialize, Serialize};

pub(super) fn current() -> String {
    SCHEMA_VERSION.to_owned()
}

/// What the heap holds, by type.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct HeapReport {
    /// [`SCHEMA_VERSION`] of the writer.
    #[serde(default = "current")]
    pub schema_version: String,
    /// Objects, free ones not counted.
    pub objects: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Objects that are free space.
    pub free_objects: u64,
    /// Bytes of free space.
    pub free_bytes: u64,
    /// Places where no object could be read.
    pub invalid_objects: u64,
    /// Bytes that such places cost.
    pub skipped_bytes: u64,
    /// The types, in the order that the user asked for.
    pub types: Vec<TypeRow>,
    /// Types above the limit.
    #[serde(skip_serializing_if = "is_zero")]
    pub types_left_out: u64,
    /// What could not be read.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub gaps: Vec<Gap>,
}

impl Default for HeapReport {
    fn default() -> Self {
        Self {
            schema_version: current(),
            objects: 0,
            bytes: 0,
            free_objects: 0,
            free_bytes: 0,
            invalid_objects: 0,
            skipped_bytes: 0,
            types: Vec::new(),
            types_left_out: 0,
            gaps: Vec::new(),
        }
    }
}

/// The objects of one type.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct TypeRow {
    /// Raw name of the type.
    pub name: String,
    /// Its method table.
    pub method_table: Address,
    /// How many objects.
    pub count: u64,
    /// Their bytes, without what they refer to.
    pub bytes: u64,
}

/// The tasks of the process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct TaskReport {
    /// [`SCHEMA_VERSION`] of the writer.
    #[serde(default = "current")]
    pub schema_version: String,
    /// The tasks.
    pub tasks: Vec<TaskRow>,
    /// Tasks above the limit or outside the filters.
    #[serde(skip_serializing_if = "is_zero")]
    pub left_out: u64,
    /// What could not be read.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub gaps: Vec<Gap>,
}

impl Default for TaskReport {
    fn default() -> Self {
        Self {
            schema_version: current(),
            tasks: Vec::new(),
            left_out: 0,
            gaps: Vec::new(),
        }
    }
}

/// One task, async method or continuation.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct TaskRow {
    /// Where it is.
    pub address: Address,
    /// Raw name of its type.
    #[serde(rename = "type")]
    pub type_name: String,
    /// As `Task.Status` would say it, in words: `waiting`, `running`, `completed`, `faulted`, `cancelled`, `queued`.
    pub status: String,
    /// The method, when it is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub method: Option<String>,
    /// The number in the state machine's state field.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<i32>,
    /// What it awaits, in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waits_on: Option<String>,
    /// The kind of that, when it is the end of a chain.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub leaf: Option<LeafKind>,
    /// What will run after it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub continuation: Option<String>,
}

/// One object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct ObjectReport {
    /// [`SCHEMA_VERSION`] of the writer.
    #[serde(default = "current")]
    pub schema_version: String,
    /// Where it is.
    pub address: Address,
    /// Raw name of its type.
    #[serde(rename = "type")]
    pub type_name: String,
    /// Its method table.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub method_table: Option<Address>,
    /// Its bytes, without what it refers to.
    pub size: u64,
    /// What it means: the method of a box, the state of a task, the text of a string.
    pub decoded: Vec<Decoded>,
    /// The elements of a collection of .NET.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub elements: Option<super::Elements>,
    /// Its fields, or the elements of an array.
    pub fields: Vec<FieldRow>,
    /// Fields or elements above the limit.
    #[serde(skip_serializing_if = "is_zero")]
    pub fields_left_out: u64,
    /// Objects with a reference to it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub referenced_by: Vec<super::ObjectRef>,
    /// Such objects above the limit.
    #[serde(skip_serializing_if = "is_zero")]
    pub referenced_by_left_out: u64,
}

impl Default for ObjectReport {
    fn default() -> Self {
        Self {
            schema_version: current(),
            address: Address::default(),
            type_name: String::new(),
            method_table: None,
            size: 0,
            decoded: Vec::new(),
            elements: None,
            fields: Vec::new(),
            fields_left_out: 0,
            referenced_by: Vec::new(),
            referenced_by_left_out: 0,
        }
    }
}

/// One thing that an object means.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Decoded {
    /// What it is.
    pub name: String,
    /// What it says.
    pub value: String,
}

/// One field of an object.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct FieldRow {
    /// Bytes from the start of the object.
    pub offset: u64,
    /// Its name in the metadata.
    pub name: String,
    /// Its type in the metadata.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub declared_type: Option<String>,
    /// The type of the object that it refers to, when that is another one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub actual_type: Option<String>,
    /// The value in words.
    pub value: String,
    /// The object that it refers to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub link: Option<Address>,
}
