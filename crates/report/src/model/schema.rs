//! The JSON schema of [`Report`].

use super::Report;

/// The JSON schema of the report, as committed beside the crate.
#[must_use]
pub fn schema() -> serde_json::Value {
    schemars::schema_for!(Report).to_value()
}
