//! The JSON schemas of [`Report`], [`Brief`], [`TraceReport`], [`ObserveReport`], [`ServicesReport`], [`DiffReport`],
//! and of the files of a bundle of evidence: [`Manifest`], [`ClaimsReport`] and [`VerifyReport`].

use super::{
    Brief, ClaimsReport, DiffReport, Manifest, ObserveReport, Report, ServicesReport, TraceReport,
    VerifyReport,
};

/// The JSON schema of the report of a dump, as committed beside the crate.
#[must_use]
pub fn schema() -> serde_json::Value {
    schemars::schema_for!(Report).to_value()
}

/// The JSON schema of the short form of a report, as committed beside the crate.
#[must_use]
pub fn brief_schema() -> serde_json::Value {
    schemars::schema_for!(Brief).to_value()
}

/// The JSON schema of the report of a recording, as committed beside the crate.
#[must_use]
pub fn trace_schema() -> serde_json::Value {
    schemars::schema_for!(TraceReport).to_value()
}

/// The JSON schema of the report of an experiment, as committed beside the crate.
#[must_use]
pub fn observe_schema() -> serde_json::Value {
    schemars::schema_for!(ObserveReport).to_value()
}

/// The JSON schema of the picture of several dumps, as committed beside the crate.
#[must_use]
pub fn services_schema() -> serde_json::Value {
    schemars::schema_for!(ServicesReport).to_value()
}

/// The JSON schema of dumps compared, as committed beside the crate.
#[must_use]
pub fn diff_schema() -> serde_json::Value {
    schemars::schema_for!(DiffReport).to_value()
}

/// The JSON schema of the manifest of a bundle of evidence, as committed beside the crate.
#[must_use]
pub fn manifest_schema() -> serde_json::Value {
    schemars::schema_for!(Manifest).to_value()
}

/// The JSON schema of what the statements of a report rest on, as committed beside the crate.
#[must_use]
pub fn claims_schema() -> serde_json::Value {
    schemars::schema_for!(ClaimsReport).to_value()
}

/// The JSON schema of the check of a bundle, as committed beside the crate.
#[must_use]
pub fn verify_schema() -> serde_json::Value {
    schemars::schema_for!(VerifyReport).to_value()
}
