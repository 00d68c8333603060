//! The committed schema is the schema of the model.

#[test]
fn schema_json_is_current() {
    let current = asynctriage_report::json(&asynctriage_report::schema())
        .expect("a schema holds no numbers that JSON lacks");
    assert!(
        current == include_str!("../schema.json"),
        "schema.json is stale: cargo run -p asynctriage-report --features schema --example schema > crates/report/schema.json"
    );
}

#[test]
fn trace_schema_json_is_current() {
    let current = asynctriage_report::json(&asynctriage_report::trace_schema())
        .expect("a schema holds no numbers that JSON lacks");
    assert!(
        current == include_str!("../trace-schema.json"),
        "trace-schema.json is stale: cargo run -p asynctriage-report --features schema --example schema -- trace > \
         crates/report/trace-schema.json"
    );
    let schema = asynctriage_report::trace_schema();
    assert_eq!(schema["required"], serde_json::json!(["schema_version"]));
}

#[test]
fn schema_requires_only_what_a_reader_cannot_do_without() {
    let schema = asynctriage_report::schema();
    assert_eq!(schema["required"], serde_json::json!(["schema_version"]));
    assert!(schema["$defs"]["Address"]["pattern"].is_string());
}
