//! Findings: what is wrong, how sure that is, what shows it.

use super::{Address, Confidence, FindingKind, Severity};
use serde::{Deserialize, Serialize};

/// Something that the person on call should know first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Finding {
    /// Name of the finding within this report, `f1` for the first.
    #[serde(default)]
    pub id: String,
    /// Equal for the same finding about the same methods of the program in any dump, whatever the counts: made of the kind and
    /// of the program's innermost methods of its chains, else of the title without its numbers.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub signature: String,
    /// What it is about.
    pub kind: FindingKind,
    /// How much it matters.
    #[serde(default)]
    pub severity: Severity,
    /// One line.
    #[serde(default)]
    pub title: String,
    /// What happened, naming threads, methods and objects.
    #[serde(default)]
    pub text: String,
    /// How sure it is.
    #[serde(default)]
    pub confidence: Confidence,
    /// What in the dump shows it.
    #[serde(default)]
    pub evidence: Vec<Evidence>,
    /// The groups of chains it explains, by id.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub chains: Vec<String>,
    /// What to do about it now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_step: Option<String>,
    /// The runbook that treats it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runbook: Option<String>,
}

impl Finding {
    /// A finding without text, evidence and runbook yet; likely until said otherwise.
    #[must_use]
    pub fn new(kind: FindingKind, severity: Severity, title: impl Into<String>) -> Self {
        Self {
            id: String::new(),
            signature: String::new(),
            kind,
            severity,
            title: title.into(),
            text: String::new(),
            confidence: Confidence::default(),
            evidence: Vec::new(),
            chains: Vec::new(),
            next_step: None,
            runbook: None,
        }
    }
}

/// One fact of the dump that a finding rests on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Evidence {
    /// Name of the fact within this report, `E1` for the first.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub id: String,
    /// The fact.
    pub what: String,
    /// Where it stands.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub address: Option<Address>,
    /// How it was read.
    pub how: String,
}
