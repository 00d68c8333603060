//! The report: the only serialised model of asynctriage, and what a person reads of it.
//!
//! [`Report`] is the answer to a dump; [`HeapReport`], [`TaskReport`] and [`ObjectReport`] answer the narrower questions.
//! Each is written as JSON by [`json`] and can be read back, so that a report saved on one machine is rendered on another.
//! The functions [`text`](fn@text), [`tree`], [`heap`], [`tasks`] and [`object`] render them for a terminal.
//!
//! Everything here may hold text out of a hostile dump. The model keeps it as it is; the renderers let nothing through
//! that a terminal would act on.
#![cfg_attr(
    not(test),
    deny(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic,
        clippy::indexing_slicing,
        clippy::arithmetic_side_effects
    )
)]

mod document;
mod item;
mod model;
mod text;
pub mod timeline;

#[cfg(feature = "schema")]
pub use document::schema;
pub use document::{Document, SCHEMAS, schema_id};
pub use item::{Item, ItemReport, find};
pub use model::*;
pub use text::{
    Part, TextOptions, bytes, count, diff, duration, fleet, headline, heap, item, merged, object,
    objects, observe, part, printable, roots, runtimes, services, several, tasks, text, trace,
    trace_record, tree, verify, why,
};

/// A document as JSON: `$schema` and `kind` first, indented, keys in the order of the contract, a newline at the end.
///
/// # Errors
/// Those of the serialiser; the types of this crate give it no reason for any. A number that is not finite becomes null.
pub fn json<T: Document>(document: &T) -> serde_json::Result<String> {
    let mut out = serde_json::to_string_pretty(&document::Envelope::of(document))?;
    out.push('\n');
    Ok(out)
}

/// A report that was saved as JSON. Fields that it lacks have their defaults, those that are not known are passed over.
///
/// # Errors
/// When the text is no JSON, or a field holds something else than what it means.
pub fn from_json<T: serde::de::DeserializeOwned>(text: &str) -> serde_json::Result<T> {
    serde_json::from_str(text)
}

/// A row of a listing as JSON: one line with its newline.
///
/// # Errors
/// As [`json`].
pub fn json_line<T: serde::Serialize>(row: &T) -> serde_json::Result<String> {
    let mut out = serde_json::to_string(row)?;
    out.push('\n');
    Ok(out)
}
