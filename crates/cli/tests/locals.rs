//! What waiting methods keep, on real dumps.

use serde_json::Value;
use std::path::Path;
use std::process::Command;

fn run(args: &[&str]) -> Vec<u8> {
    let output = Command::new(env!("CARGO_BIN_EXE_asynctriage"))
        .args(args)
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdumps"))
        .env("COLUMNS", "100")
        .output()
        .expect("the program starts");
    assert!(
        output.status.success(),
        "{args:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    output.stdout
}

fn json(args: &[&str]) -> Value {
    let args = [args, &["--format", "json"]].concat();
    serde_json::from_slice(&run(&args)).expect("JSON")
}

/// The group whose innermost method is this one.
fn group<'r>(report: &'r Value, method: &str) -> &'r Value {
    let groups = report["chains"].as_array().expect("chains");
    let found = groups.iter().find(|g| g["frames"][0]["method"] == method);
    found.unwrap_or_else(|| panic!("no chain of {method}"))
}

fn local<'r>(group: &'r Value, name: &str) -> &'r Value {
    let locals = group["frames"][0]["locals"].as_array().expect("locals");
    let found = locals.iter().find(|l| l["name"] == name);
    found.unwrap_or_else(|| panic!("no local {name}: {locals:?}"))
}

/// Three methods hold an array of a mebibyte and a list of 2000 lines each; `line 7 of import 1` and the like.
#[test]
fn locals_retain_what_a_count_of_the_heap_says() {
    let dump = "oom-10.0.15.dmp.gz";
    let report = json(&[dump, "--locals"]);
    let imports = group(&report, "Scenarios.Oom.Import");
    let (array, list) = (24 + (1 << 20), 32);
    let digits = 10 + 2 * 90 + 3 * 900 + 4 * 1000;
    let characters = 2000 * ("line  of import 1".len() as u64) + digits;
    let lines = list + (24 + 8 * 2000) + 2000 * 22 + 2 * characters;
    assert_eq!(local(imports, "buffer")["retained_bytes"], array);
    assert_eq!(local(imports, "lines")["bytes"], list);
    assert_eq!(local(imports, "lines")["retained_bytes"], lines);
    assert_eq!(imports["retained_bytes"], 3 * (array + lines));
    assert_eq!(imports["members"][2]["retained_bytes"], array + lines);

    let heap = json(&["heap", dump, "--type", "System.Byte[]"]);
    let bytes = &heap["types"][0]["bytes"];
    assert_eq!(*bytes, 3 * array + 24, "the fourth one is empty");
}

/// What several chains refer to is kept by none of them alone.
#[test]
fn what_chains_share_counts_for_none() {
    let report = json(&["semaphore-10.0.15.dmp.gz", "--locals"]);
    let groups = report["chains"].as_array().expect("chains");
    assert!(!groups.is_empty());
    for group in groups {
        assert_eq!(group["retained_bytes"], 0, "{group}");
    }
}

/// Without locals nothing is worked out.
#[test]
fn sizes_are_told_on_request() {
    let report = json(&["oom-10.0.15.dmp.gz"]);
    let imports = group(&report, "Scenarios.Oom.Import");
    assert!(imports["retained_bytes"].is_null() && imports["frames"][0]["locals"].is_null());
}

#[test]
fn locals_read_well() {
    let text = |args: &[&str]| String::from_utf8_lossy(&run(args)).into_owned();
    insta::assert_snapshot!(
        "locals",
        text(&["oom-10.0.15.dmp.gz", "--locals", "--symbols", "."])
    );
    insta::assert_snapshot!(
        "locals_with_values",
        text(&[
            "oom-10.0.15.dmp.gz",
            "--locals",
            "--show-values",
            "--symbols",
            "."
        ])
    );
    insta::assert_snapshot!(
        "locals_without_symbols",
        text(&["iterators-runtimeasync-11.0.0.dmp.gz", "--locals"])
    );
}
