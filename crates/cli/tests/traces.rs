//! The real recordings of the repository: what the program says of them must be what is known of them.

use serde_json::{Map, Value};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn testdumps() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdumps")
}

fn run(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_asynctriage"))
        .arg("trace")
        .args(args)
        .current_dir(testdumps())
        .env_remove("CLICOLOR_FORCE")
        .env("COLUMNS", "100")
        .output()
        .expect("the program starts")
}

fn shown(args: &[&str]) -> String {
    let output = run(args);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{args:?}: {errors}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn report(file: &str) -> Value {
    let text = shown(&[
        file,
        "--markers",
        "Asynctriage-Markers",
        "--format",
        "json",
        "--all",
    ]);
    serde_json::from_str(&text).expect("a report")
}

fn recordings() -> Vec<String> {
    let entries = std::fs::read_dir(testdumps()).expect("the repository has its recordings");
    let names = entries.filter_map(|e| e.ok()?.file_name().into_string().ok());
    let mut all: Vec<String> = names
        .filter_map(|n| n.strip_suffix(".nettrace.gz").map(str::to_owned))
        .collect();
    all.sort();
    assert!(all.len() >= 4, "some recordings are missing: {all:?}");
    all
}

/// What the truth has, the report must have; chains and flags in any order, and of chains only the keys that the truth
/// has.
fn compare(at: &str, truth: &Value, report: &Value) {
    match (truth, report) {
        (Value::Object(truth), Value::Object(report)) if is_tree(at) => {
            for (key, value) in truth {
                let inner = format!("{at}.{key}");
                compare(&inner, value, report.get(key).unwrap_or(&Value::Null));
            }
        }
        (Value::Array(truth), Value::Array(report)) => {
            assert_eq!(sorted(truth), sorted(report), "{at}");
        }
        _ => assert_eq!(truth, report, "{at}"),
    }
}

/// Objects that may have more keys than the truth; all others are compared as wholes.
fn is_tree(at: &str) -> bool {
    ["", ".container", ".async", ".tpl"].contains(&at)
}

fn sorted(list: &[Value]) -> Vec<String> {
    const OF_CHAIN: [&str; 5] = ["family", "state", "count", "frames", "names"];
    let mut texts: Vec<String> = list
        .iter()
        .map(|item| match item {
            Value::Object(all) => {
                let kept = all.iter().filter(|(k, _)| OF_CHAIN.contains(&k.as_str()));
                let kept: Map<String, Value> = kept.map(|(k, v)| (k.clone(), v.clone())).collect();
                Value::Object(kept).to_string()
            }
            other => other.to_string(),
        })
        .collect();
    texts.sort();
    texts
}

fn check(folder: &Path, name: &str) {
    let truth = std::fs::read_to_string(folder.join(format!("{name}.truth.json")))
        .expect("each recording has its truth");
    let truth: Value = serde_json::from_str(&truth).expect("the truth is well formed");
    let file = folder.join(format!("{name}.nettrace.gz"));
    compare("", &truth, &report(file.to_str().expect("a path")));
}

#[test]
fn every_recording_shows_what_is_known_of_it() {
    for name in recordings() {
        check(&testdumps(), &name);
    }
}

#[test]
fn every_recording_reads_well() {
    for name in recordings() {
        let text = shown(&[
            &format!("{name}.nettrace.gz"),
            "--markers",
            "Asynctriage-Markers",
        ]);
        insta::assert_snapshot!(format!("trace_{name}"), text);
    }
}

#[test]
fn json_and_details() {
    let file = "norundown-runtimeasync-11.0.0.nettrace.gz";
    insta::assert_snapshot!("trace_json", shown(&[file, "--format", "json"]));
    let file = "operations-runtimeasync-11.0.0.nettrace.gz";
    insta::assert_snapshot!("trace_verbose", shown(&[file, "-v"]));
}

#[test]
fn records_one_by_one() {
    let file = "operations-runtimeasync-11.0.0.nettrace.gz";
    let text = shown(&[file, "--records"]);
    assert_eq!(text.lines().count(), 1_805);
    let first: Vec<&str> = text.lines().take(12).collect();
    insta::assert_snapshot!("trace_records", first.join("\n"));
}

/// Each statement of the report names its record; that record says the same.
#[test]
fn statements_can_be_checked_with_the_records() {
    let file = "http-mixed-11.0.0.nettrace.gz";
    let rows = shown(&[file, "--records", "--format", "json"]);
    let mut by_place: HashMap<(String, u64), Value> = HashMap::new();
    for row in rows.lines() {
        let row: Value = serde_json::from_str(row).expect("a row");
        let batch = row["batch"].as_str().expect("an offset").to_owned();
        by_place.insert((batch, row["index"].as_u64().expect("a number")), row);
    }
    let report = report(file);
    let mut checked = 0;
    for chain in report["chains"].as_array().expect("chains") {
        for member in chain["members"].as_array().expect("members") {
            let kinds = [
                ("created", "Create"),
                ("resumed", "Resume"),
                ("suspended", "Suspend"),
            ];
            for (moment, kind) in kinds {
                let Some(moment) = member.get(moment) else {
                    continue;
                };
                let place = &moment["record"];
                let batch = place["batch"].as_str().expect("an offset").to_owned();
                let row = &by_place[&(batch, place["index"].as_u64().expect("a number"))];
                assert_eq!(row["ticks"], moment["ticks"]);
                assert_eq!(row["os_thread"], moment["os_thread"]);
                assert!(row["kind"].as_str().expect("a kind").starts_with(kind));
                if kind != "Suspend" {
                    assert_eq!(row["dispatcher"], member["dispatcher"]);
                }
                checked += 1;
            }
        }
    }
    assert!(checked > 60, "{checked}");
}

#[test]
fn other_files_are_refused_by_name() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("no-recordings");
    std::fs::create_dir_all(&folder).expect("the target folder is writable");
    std::fs::write(folder.join("text"), "not a recording\n").expect("writable");
    std::fs::write(folder.join("cut"), "Nettrace\x14\0").expect("writable");
    std::fs::write(folder.join("new"), b"Nettrace\0\0\0\0\x07\0\0\0\0\0\0\0").expect("writable");
    let all: Vec<String> = ["text", "cut", "new", "missing"]
        .map(|name| {
            let output = Command::new(env!("CARGO_BIN_EXE_asynctriage"))
                .args(["trace", name])
                .current_dir(&folder)
                .output()
                .expect("the program starts");
            assert_eq!(output.status.code(), Some(3), "{name}");
            format!("$ {name}\n{}", String::from_utf8_lossy(&output.stderr))
        })
        .to_vec();
    insta::assert_snapshot!("trace_refused", all.join("\n"));
}
