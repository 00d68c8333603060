//! Prints the JSON schemas of all kinds of documents, as one object; the files beside the crate are made of them.

use asynctriage_report::{SCHEMAS, schema};
use serde_json::{Map, Value};
use std::io::{Write, stdout};

fn main() -> std::io::Result<()> {
    let kinds = SCHEMAS.iter().map(|(kind, _)| *kind);
    let all: Map<String, Value> = kinds
        .filter_map(|kind| Some((kind.to_owned(), schema(kind)?)))
        .collect();
    stdout().write_all(Value::Object(all).to_string().as_bytes())
}
