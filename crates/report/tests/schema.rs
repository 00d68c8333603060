//! The committed schemas are those of the model, and hold what readers rely on.

use asynctriage_report::{SCHEMAS, schema, schema_id};
use serde_json::{Value, json};

#[test]
fn the_committed_schemas_are_current() {
    for (kind, committed) in SCHEMAS {
        let current = schema(kind).expect("each kind has a type");
        let committed: Value = serde_json::from_str(committed).expect("JSON");
        assert!(current == committed, "{kind} is stale: cargo xtask schema");
    }
    assert!(schema("reports").is_none());
}

#[test]
fn each_schema_names_its_kind_and_requires_only_what_a_reader_cannot_do_without() {
    for (kind, committed) in SCHEMAS {
        let schema: Value = serde_json::from_str(committed).expect("JSON");
        assert_eq!(schema["$id"], schema_id(kind));
        assert_eq!(schema["properties"]["kind"], json!({ "const": kind }));
        let required = schema["required"].as_array();
        let optional = |f: &Value| {
            !["schema_version", "id", "what", "value"].contains(&f.as_str().unwrap_or_default())
        };
        assert!(
            !required.into_iter().flatten().any(optional),
            "{kind}: {required:?}"
        );
    }
}

#[test]
fn lists_of_words_are_open() {
    let (_, report) = SCHEMAS[0];
    let report: Value = serde_json::from_str(report).expect("JSON");
    assert!(report["$defs"]["Address"]["pattern"].is_string());
    let kinds = &report["$defs"]["FindingKind"]["anyOf"];
    assert_eq!(kinds[1]["type"], "string");
}
