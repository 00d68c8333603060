//! The committed schemas are those of the model.

use asynctriage_report::{
    brief_schema, claims_schema, diff_schema, json, manifest_schema, observe_schema, schema,
    services_schema, trace_schema, verify_schema,
};
use serde_json::Value;

fn is_current(schema: &Value, committed: &str, file: &str) {
    let current = json(schema).expect("a schema holds no numbers that JSON lacks");
    assert!(current == committed, "{file} is stale: cargo xtask schema");
    assert_eq!(schema["required"], serde_json::json!(["schema_version"]));
}

#[test]
fn the_committed_schemas_are_current_and_require_only_what_a_reader_cannot_do_without() {
    let dump = schema();
    is_current(&dump, include_str!("../schema.json"), "schema.json");
    assert!(dump["$defs"]["Address"]["pattern"].is_string());
    is_current(
        &brief_schema(),
        include_str!("../brief-schema.json"),
        "brief-schema.json",
    );
    is_current(
        &trace_schema(),
        include_str!("../trace-schema.json"),
        "trace-schema.json",
    );
    is_current(
        &observe_schema(),
        include_str!("../observe-schema.json"),
        "observe-schema.json",
    );
    is_current(
        &services_schema(),
        include_str!("../services-schema.json"),
        "services-schema.json",
    );
    is_current(
        &diff_schema(),
        include_str!("../diff-schema.json"),
        "diff-schema.json",
    );
    is_current(
        &manifest_schema(),
        include_str!("../manifest-schema.json"),
        "manifest-schema.json",
    );
    is_current(
        &claims_schema(),
        include_str!("../claims-schema.json"),
        "claims-schema.json",
    );
    is_current(
        &verify_schema(),
        include_str!("../verify-schema.json"),
        "verify-schema.json",
    );
}
