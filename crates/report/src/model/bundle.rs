//! Evidence that leaves the machine: what is in a bundle, and what a check of it says.

use super::views::current;
use super::{Tool, is_false, is_zero};
use serde::{Deserialize, Serialize};

/// What a bundle of evidence holds, and how each of its files was made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Manifest {
    /// [`super::SCHEMA_VERSION`] of the writer.
    #[serde(default = "current")]
    pub schema_version: String,
    /// Who made it.
    pub tool: Tool,
    /// When, in UTC as RFC 3339, by the clock of the machine that made it.
    pub created: String,
    /// What everything in it was made of.
    pub source: BundleSource,
    /// What was asked for: what is needed to make the same outputs again.
    pub options: BundleOptions,
    /// The managed modules of the process.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub modules: Vec<BundleModule>,
    /// Files of this machine that completed the dump: images and symbols.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<BundleExtra>,
    /// The small dump from which the same outputs come.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trimmed: Option<BundleTrimmed>,
    /// What the bundle should have and lacks, and why.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub lacks: Vec<String>,
    /// Every file but the manifest and the list of hashes, by path.
    pub outputs: Vec<BundleFile>,
}

impl Default for Manifest {
    fn default() -> Self {
        Self {
            schema_version: current(),
            tool: Tool::default(),
            created: String::new(),
            source: BundleSource::default(),
            options: BundleOptions::default(),
            modules: Vec::new(),
            files: Vec::new(),
            trimmed: None,
            lacks: Vec::new(),
            outputs: Vec::new(),
        }
    }
}

/// The dump or recording.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct BundleSource {
    /// As the user gave it.
    pub path: String,
    /// `dump` or `recording`.
    pub kind: String,
    /// Bytes of the file on the disk.
    pub bytes: u64,
    /// Hash of the file on the disk.
    pub sha256: String,
    /// Bytes of the dump or recording after unpacking.
    pub unpacked_bytes: u64,
}

/// What was asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct BundleOptions {
    /// Chains of the framework that wait for work, too.
    #[serde(skip_serializing_if = "is_false")]
    pub all: bool,
    /// Parameters and locals of waiting methods.
    #[serde(skip_serializing_if = "is_false")]
    pub locals: bool,
    /// Texts, messages and paths as they are.
    #[serde(skip_serializing_if = "is_false")]
    pub show_values: bool,
    /// The strict redaction, for files that leave the company.
    #[serde(skip_serializing_if = "is_false")]
    pub redacted: bool,
}

/// A managed module of the process.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct BundleModule {
    /// Simple name of its assembly.
    pub name: String,
    /// Where the process had it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Its module version id, which no two builds share.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mvid: Option<String>,
}

/// A file of the machine on which the bundle was made.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct BundleExtra {
    /// The file.
    pub path: String,
    /// Its hash.
    pub sha256: String,
    /// What shows that it belongs to the process.
    pub because: String,
    /// Its copy in the bundle; images are not copied.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub copy: Option<String>,
}

/// The small dump.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct BundleTrimmed {
    /// Its file in the bundle.
    pub path: String,
    /// Its bytes after unpacking.
    pub unpacked_bytes: u64,
    /// Fields of the report that its own report has otherwise, because they say where and how large the file is.
    pub own_fields: Vec<String>,
    /// What was blanked in it, and what had to stay.
    pub blanked: Vec<String>,
}

/// A file of a bundle.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct BundleFile {
    /// Its path in the bundle, with `/`.
    pub path: String,
    /// Its size.
    pub bytes: u64,
    /// Its hash.
    pub sha256: String,
    /// What it is.
    pub what: String,
}

/// What a check of a bundle found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct VerifyReport {
    /// [`super::SCHEMA_VERSION`] of the writer.
    #[serde(default = "current")]
    pub schema_version: String,
    /// The bundle, as the user gave it.
    pub bundle: String,
    /// Whether everything that was checked holds.
    pub holds: bool,
    /// Hash over the bundle's list of hashes: whoever noted it elsewhere knows that nothing was replaced.
    pub seal: String,
    /// What was checked, in that order.
    pub checks: Vec<Check>,
    /// Checks that hold and are not listed.
    #[serde(skip_serializing_if = "is_zero")]
    pub left_out: u64,
}

impl Default for VerifyReport {
    fn default() -> Self {
        Self {
            schema_version: current(),
            bundle: String::new(),
            holds: false,
            seal: String::new(),
            checks: Vec::new(),
            left_out: 0,
        }
    }
}

/// One thing that was checked.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Check {
    /// What.
    pub what: String,
    /// What came out.
    pub state: CheckState,
    /// What is otherwise than it should be, or why it was not checked.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub why: String,
}

/// What a check came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum CheckState {
    /// As it should be.
    Holds,
    /// Not so.
    Broken,
    /// Nothing can be said.
    #[default]
    NotChecked,
}

impl VerifyReport {
    /// Adds a check; `why` says what is broken.
    pub fn add(&mut self, what: impl Into<String>, broken: Option<String>) {
        self.checks.push(Check {
            what: what.into(),
            state: if broken.is_some() {
                CheckState::Broken
            } else {
                CheckState::Holds
            },
            why: broken.unwrap_or_default(),
        });
    }

    /// Adds what was not checked.
    pub fn skip(&mut self, what: impl Into<String>, why: impl Into<String>) {
        self.checks.push(Check {
            what: what.into(),
            state: CheckState::NotChecked,
            why: why.into(),
        });
    }

    /// Whether nothing is broken.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.checks.iter().all(|c| c.state != CheckState::Broken)
    }
}
