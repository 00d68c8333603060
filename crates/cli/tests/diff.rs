//! `asynctriage diff` over two real dumps of one process.

use std::process::Command;

fn dump(name: &str) -> String {
    format!("{}/../../testdumps/{name}", env!("CARGO_MANIFEST_DIR"))
}

fn saved(name: &str) -> String {
    format!("{}/tests/diff/{name}", env!("CARGO_MANIFEST_DIR"))
}

fn run(args: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_asynctriage"))
        .args(args)
        .output()
        .expect("the program runs");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).expect("UTF-8")
}

fn states(json: &str) -> Vec<(String, String, u64, u64)> {
    let report: serde_json::Value = serde_json::from_str(json).expect("JSON");
    let groups = report["groups"].as_array().expect("groups").iter();
    let row = |g: &serde_json::Value| {
        let text = |key: &str| g[key].as_str().unwrap_or_default().to_owned();
        let number = |key: &str| g[key].as_u64().unwrap_or_default();
        (
            text("method"),
            text("state"),
            number("unmoved"),
            number("moved"),
        )
    };
    groups.map(row).collect()
}

#[test]
fn what_is_stuck_what_leaks_and_what_gets_on() {
    // reports of two real dumps, of which what a comparison does not read was left out
    let (first, second) = (saved("progress.json"), saved("progress.2.json"));
    // in the order of time, whatever the order of the arguments; without the command as well
    let compared = run(&[&second, &first, "--format", "json"]);
    let row = |method: &str, state: &str, unmoved, moved| {
        (
            format!("Scenarios.Progress.{method}"),
            state.to_owned(),
            unmoved,
            moved,
        )
    };
    let expected = [
        row("Stuck", "stuck", 5, 0),
        row("Orphan", "leaking", 11, 0),
        row("Step", "progressing", 0, 3),
        row("Leaker", "progressing", 0, 1),
    ];
    assert_eq!(states(&compared), expected);
    let text = run(&["diff", &first, &second]);
    assert!(text.contains("11 > 41  +8.6 a second"), "{text}");
    assert!(
        text.contains("chains of the last dump: 5 stuck, 41 leaking, 4 progressing"),
        "{text}"
    );
}

#[test]
fn a_dump_and_itself() {
    let one = dump("chain-10.0.15.dmp.gz");
    let text = run(&["diff", &one, &one]);
    assert!(text.contains("unknown  nothing moved;"), "{text}");
    let known = run(&["diff", &one, &one, "--apart", "3"]);
    assert!(known.contains("stuck  nothing moved;"), "{known}");
}

/// The same scenario with another runtime, compiled another way.
#[test]
fn builds_for_other_runtimes_align() {
    let (classic, new) = (
        dump("states-10.0.15.dmp.gz"),
        dump("states-runtimeasync-11.0.0.dmp.gz"),
    );
    let compared = run(&["diff", &classic, &new, "--format", "json"]);
    let states = states(&compared);
    assert!(!states.is_empty());
    assert!(
        states.iter().all(|(_, state, ..)| state == "unknown"),
        "none is new or gone: {states:?}"
    );
}
