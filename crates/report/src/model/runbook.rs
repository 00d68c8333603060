//! Pages of the runbook.

use serde::{Deserialize, Serialize};

/// A page: what a finding means, how sure it is, what to look at next, what fixes it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct RunbookPage {
    /// [`SCHEMA_VERSION`](super::SCHEMA_VERSION) of the writer; in lists it stands once, before the pages.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub schema_version: String,
    /// What findings call it.
    pub name: String,
    /// Its heading.
    pub title: String,
    /// Kinds of findings that it treats.
    pub findings: Vec<String>,
    /// The page as Markdown; left out in lists.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

/// All pages, without their texts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct RunbookList {
    /// [`SCHEMA_VERSION`](super::SCHEMA_VERSION) of the writer.
    pub schema_version: String,
    /// The pages by name.
    pub pages: Vec<RunbookPage>,
}
