//! Pages of the runbook.

use serde::{Deserialize, Serialize};

/// A page: what a finding means, how sure it is, what to look at next, what fixes it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct RunbookPage {
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
