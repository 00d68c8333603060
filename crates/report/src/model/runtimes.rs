//! What can be read, and on what evidence.

use super::SCHEMA_VERSION;
use super::views::current;
use serde::{Deserialize, Serialize};

/// The runtimes that can be read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct RuntimesReport {
    /// [`SCHEMA_VERSION`] of the writer.
    #[serde(default = "current")]
    pub schema_version: String,
    /// The built-in tables of layouts, by platform and version.
    pub tables: Vec<RuntimeTable>,
    /// What has to fit before a table is believed.
    pub checks: Vec<String>,
    /// What is recognised and refused by its name.
    pub refused: Vec<String>,
}

impl Default for RuntimesReport {
    fn default() -> Self {
        Self {
            schema_version: SCHEMA_VERSION.to_owned(),
            tables: Vec::new(),
            checks: Vec::new(),
            refused: Vec::new(),
        }
    }
}

/// A table of layouts: it serves every patch version of its minor version.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct RuntimeTable {
    /// The table's name; the `layouts` of a report's runtime name the one that was used.
    pub table: String,
    /// Operating system and processor, as `linux-x64`.
    pub platform: String,
    /// Major and minor version, as `10.0`.
    pub version: String,
    /// Whether such processes say themselves where most fields are; what they say wins.
    pub describes_itself: bool,
    /// Offsets and indices in the table.
    pub offsets: u64,
    /// What they rest on.
    pub evidence: Vec<String>,
}
