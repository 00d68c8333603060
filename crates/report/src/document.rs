//! What each JSON document says of itself: its schema and its kind.

use crate::{
    Brief, ClaimsReport, DiffReport, HeapReport, ItemReport, Manifest, MergedStacks, ObjectReport,
    ObjectsReport, ObserveReport, Report, RootsReport, RunbookList, RunbookPage, RuntimesReport,
    ServicesReport, TaskReport, TraceReport, VerifyReport, WhyReport,
};
use serde::Serialize;

/// An answer that is written as one JSON document. Its `kind` says which, and its schema has the same name.
pub trait Document: Serialize {
    /// The value of `kind`.
    const KIND: &'static str;
}

/// A document with what it says of itself, which comes first.
#[derive(Serialize)]
pub(crate) struct Envelope<'a, T> {
    #[serde(rename = "$schema")]
    schema: String,
    kind: &'static str,
    #[serde(flatten)]
    document: &'a T,
}

impl<'a, T: Document> Envelope<'a, T> {
    pub(crate) fn of(document: &'a T) -> Self {
        Self {
            schema: schema_id(T::KIND),
            kind: T::KIND,
            document,
        }
    }
}

/// The identity of a schema: the value of `$schema` in documents and of `$id` in the schema. It names and is no address;
/// `asynctriage schema KIND` prints the schema.
#[must_use]
pub fn schema_id(kind: &str) -> String {
    format!("urn:asynctriage:schema:{kind}:1")
}

/// Each kind of document once, with its type.
macro_rules! documents {
    ($($kind:literal $type:ty,)*) => {
        $(impl Document for $type {
            const KIND: &'static str = $kind;
        })*

        /// The kinds of documents, each with its JSON schema as committed beside the crate.
        pub const SCHEMAS: &[(&str, &str)] = &[
            $(($kind, include_str!(concat!("../schemas/", $kind, ".json"))),)*
        ];

        /// The JSON schema of a kind of document, made from its type; `None` for words that are no kind.
        #[cfg(feature = "schema")]
        #[must_use]
        pub fn schema(kind: &str) -> Option<serde_json::Value> {
            match kind {
                $($kind => Some(complete(schemars::schema_for!($type), $kind)),)*
                _ => None,
            }
        }
    };
}

documents! {
    "report" Report,
    "brief" Brief,
    "diff" DiffReport,
    "services" ServicesReport,
    "trace" TraceReport,
    "observe" ObserveReport,
    "tasks" TaskReport,
    "heap" HeapReport,
    "object" ObjectReport,
    "objects" ObjectsReport,
    "item" ItemReport<'_>,
    "why" WhyReport,
    "roots" RootsReport,
    "stacks" MergedStacks,
    "runtimes" RuntimesReport,
    "runbook" RunbookPage,
    "runbooks" RunbookList,
    "manifest" Manifest,
    "claims" ClaimsReport,
    "verify" VerifyReport,
}

/// Adds what all documents have, and opens the lists of words: a later version may know more of them.
#[cfg(feature = "schema")]
fn complete(schema: schemars::Schema, kind: &str) -> serde_json::Value {
    use serde_json::{Value, json};

    let mut schema = schema.to_value();
    if let Some(definitions) = schema.get_mut("$defs").and_then(Value::as_object_mut) {
        definitions.values_mut().for_each(open);
    }
    if let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) {
        properties.insert("$schema".into(), json!({ "type": "string" }));
        // reports that were written before documents had a kind are valid, too
        properties.insert("kind".into(), json!({ "const": kind }));
    }
    if let Some(schema) = schema.as_object_mut() {
        schema.insert("$id".into(), schema_id(kind).into());
    }
    schema
}

/// An open list of words, which has `other`, becomes one of these words, or another word.
#[cfg(feature = "schema")]
fn open(definition: &mut serde_json::Value) {
    use serde_json::{Value, json};

    let is_other = |v: &Value| v.get("const").or(Some(v)).is_some_and(|w| w == "other");
    let has_other = |list: &str| {
        let words = definition.get(list).and_then(Value::as_array);
        words.into_iter().flatten().any(is_other)
    };
    if has_other("oneOf") || has_other("enum") {
        let known = definition.take();
        *definition = json!({
            "anyOf": [known, { "type": "string", "description": "A word of a later version: read it as `other`." }]
        });
    }
}
