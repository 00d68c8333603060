//! The contract of the JSON documents: each says its kind and is valid by the schema of that kind, and so are those that
//! earlier versions wrote (`reports/`, named by their kinds).

use asynctriage_report::{Report, SCHEMAS, from_json, schema_id};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

fn testdumps() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdumps")
}

fn output(args: &[&str]) -> Value {
    let output = Command::new(env!("CARGO_BIN_EXE_asynctriage"))
        .args(args)
        .current_dir(testdumps())
        .output()
        .expect("the program starts");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{args:?}: {said}");
    serde_json::from_slice(&output.stdout).expect("JSON")
}

fn schema_of(kind: &str) -> Value {
    let found = SCHEMAS.iter().find(|(k, _)| *k == kind);
    let (_, text) = found.unwrap_or_else(|| panic!("no schema of {kind}"));
    serde_json::from_str(text).expect("JSON")
}

/// What speaks against a value, by the keywords that our schemas use; others are refused.
fn faults(root: &Value, schema: &Value, value: &Value, at: &str, out: &mut Vec<String>) {
    let Some(rules) = schema.as_object() else {
        // `true` allows everything
        return;
    };
    let mut fault = |what: &str| out.push(format!("{at}: {what}: {value}"));
    let mut below = Vec::new();
    for (keyword, rule) in rules {
        match keyword.as_str() {
            "$schema" | "$id" | "$defs" | "title" | "description" | "default" | "format" => {}
            "$ref" => {
                let name = rule.as_str().and_then(|r| r.strip_prefix("#/$defs/"));
                let target = name.map_or(root, |n| &root["$defs"][n]);
                below.push((target, value, at.to_owned()));
            }
            "type" => {
                let words = rule
                    .as_array()
                    .cloned()
                    .unwrap_or_else(|| vec![rule.clone()]);
                if !words
                    .iter()
                    .any(|w| is_of(w.as_str().unwrap_or_default(), value))
                {
                    fault("type");
                }
            }
            "const" if rule != value => fault("const"),
            "enum" if !rule.as_array().is_some_and(|all| all.contains(value)) => fault("enum"),
            "const" | "enum" => {}
            "pattern" => {
                assert_eq!(rule, "^0x[0-9a-f]{16}$", "no other pattern is known here");
                let digits = value.as_str().and_then(|t| t.strip_prefix("0x"));
                let is_hex = |b: u8| b.is_ascii_digit() || (b'a'..=b'f').contains(&b);
                if !digits.is_some_and(|d| d.len() == 16 && d.bytes().all(is_hex)) {
                    fault("pattern");
                }
            }
            "minimum" if value.as_f64() < rule.as_f64() => fault("minimum"),
            "maximum" if value.as_f64() > rule.as_f64() => fault("maximum"),
            "minimum" | "maximum" => {}
            "required" => {
                let missing = |f: &&Value| value.get(f.as_str().unwrap_or_default()).is_none();
                if let Some(field) = rule.as_array().into_iter().flatten().find(missing) {
                    fault(&format!("required {field}"));
                }
            }
            "anyOf" | "oneOf" => {
                let fits = |s: &&Value| {
                    let mut found = Vec::new();
                    faults(root, s, value, at, &mut found);
                    found.is_empty()
                };
                if !rule.as_array().into_iter().flatten().any(|s| fits(&s)) {
                    fault(keyword);
                }
            }
            "allOf" => {
                let all = rule.as_array().into_iter().flatten();
                below.extend(all.map(|s| (s, value, at.to_owned())));
            }
            "properties" => {
                for (name, schema) in rule.as_object().into_iter().flatten() {
                    if let Some(field) = value.get(name) {
                        below.push((schema, field, format!("{at}.{name}")));
                    }
                }
            }
            "additionalProperties" | "patternProperties" => {
                let known = rules.get("properties");
                for (name, field) in value.as_object().into_iter().flatten() {
                    if rule.is_object() && known.is_none_or(|k| k.get(name).is_none()) {
                        let schema = match keyword.as_str() {
                            "patternProperties" => rule.as_object().and_then(|r| r.values().next()),
                            _ => Some(rule),
                        };
                        below.push((schema.expect("one"), field, format!("{at}.{name}")));
                    }
                }
            }
            "items" => {
                for (i, item) in value.as_array().into_iter().flatten().enumerate() {
                    below.push((rule, item, format!("{at}[{i}]")));
                }
            }
            "minItems" | "maxItems" | "prefixItems" => {}
            other => panic!("{at}: what does {other} mean?"),
        }
    }
    for (schema, value, at) in below {
        faults(root, schema, value, &at, out);
    }
}

fn is_of(word: &str, value: &Value) -> bool {
    match word {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        _ => false,
    }
}

#[track_caller]
fn assert_valid(kind: &str, value: &Value) {
    let schema = schema_of(kind);
    let mut found = Vec::new();
    faults(&schema, &schema, value, kind, &mut found);
    assert!(found.is_empty(), "{found:#?}");
}

#[test]
fn every_command_writes_what_its_schema_says() {
    const CHAIN: &str = "chain-10.0.15.dmp.gz";
    const LOCKS: &str = "locks-10.0.15.dmp.gz";
    let tasks = output(&["tasks", CHAIN, "--format", "json"]);
    let object = tasks["tasks"][0]["address"].as_str().expect("an address");
    let all: [(&str, &[&str]); 20] = [
        ("report", &[CHAIN, "--locals", "--all"]),
        ("report", &["web-11.0.0.dmp.gz", "--timings"]),
        ("report", &["threads", LOCKS, "-v"]),
        ("brief", &["web-11.0.0.dmp.gz", "--brief"]),
        ("diff", &["diff", CHAIN, CHAIN]),
        ("services", &["join", CHAIN, "web-11.0.0.dmp.gz"]),
        (
            "trace",
            &["trace", "operations-runtimeasync-11.0.0.nettrace.gz"],
        ),
        ("tasks", &["tasks", CHAIN, "--completed"]),
        ("heap", &["heap", CHAIN]),
        ("object", &["show", CHAIN, object]),
        ("objects", &["heap", CHAIN, "--type", "String", "--objects"]),
        (
            "objects",
            &["find", CHAIN, "--string", "a", "--show-values"],
        ),
        ("item", &["show", LOCKS, "F1"]),
        ("item", &["show", CHAIN, "C1.1"]),
        ("why", &["why", CHAIN, "C1"]),
        ("roots", &["root", CHAIN, object]),
        ("stacks", &["threads", "--merged", LOCKS]),
        ("runtimes", &["runtimes"]),
        ("runbook", &["runbook", "hang"]),
        ("runbooks", &["runbook"]),
    ];
    for (kind, args) in all {
        let format: &[&str] = if kind == "brief" {
            &[]
        } else {
            &["--format", "json"]
        };
        let document = output(&[args, format].concat());
        assert_eq!(document["kind"], kind, "{args:?}");
        assert_eq!(document["$schema"], schema_id(kind));
        assert!(document["schema_version"].is_string(), "{args:?}");
        assert_valid(kind, &document);
    }
}

#[test]
fn what_earlier_versions_wrote_is_still_valid() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/reports");
    let mut seen = 0;
    for file in std::fs::read_dir(folder).expect("the folder") {
        let path = file.expect("an entry").path();
        let name = path.file_stem().expect("a name").to_string_lossy();
        let kind = name.split('-').next().expect("a kind");
        let text = std::fs::read_to_string(&path).expect("text");
        let document: Value = serde_json::from_str(&text).expect("JSON");
        assert_valid(kind, &document);
        if kind == "report" {
            let report: Report = from_json(&text).expect("a report");
            assert!(!report.chains.is_empty() || !report.threads.is_empty());
        }
        seen += 1;
    }
    assert!(seen >= 10, "{seen}");
}

#[test]
fn the_schema_notices_what_is_wrong() {
    let schema = schema_of("report");
    let mut report = output(&["chain-10.0.15.dmp.gz", "--format", "json"]);
    report["chains"][0]["id"] = 1.into();
    report["kind"] = "brief".into();
    let mut found = Vec::new();
    faults(&schema, &schema, &report, "", &mut found);
    assert_eq!(found.len(), 2, "{found:?}");
}

#[test]
fn a_report_of_a_later_version_can_be_read() {
    let mut report = output(&["locks-10.0.15.dmp.gz", "--format", "json"]);
    report["findings"][0]["kind"] = "a-new-kind".into();
    report["news"] = 1.into();
    assert_valid("report", &report);
    let read: Report = from_json(&report.to_string()).expect("a report");
    assert_eq!(read.findings[0].kind.as_str(), "other");
}

#[test]
fn schemas_are_part_of_the_program() {
    let named = output(&["schema", "why"]);
    assert_eq!(named, schema_of("why"));
    let list = Command::new(env!("CARGO_BIN_EXE_asynctriage"))
        .arg("schema")
        .output()
        .expect("the program starts");
    let list = String::from_utf8(list.stdout).expect("UTF-8");
    assert!(
        SCHEMAS.iter().all(|(kind, _)| list.contains(kind)),
        "{list}"
    );
}
