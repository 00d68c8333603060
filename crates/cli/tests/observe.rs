//! `observe` with a command that poses as a .NET process, and with a real one where there is one.
#![cfg(unix)]

mod support;

use serde_json::Value;
use std::io::Write;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use support::{answer, info, read_command};

/// The name of the test below, which is the command of the others.
const POSE: &str = "pose_as_a_runtime";

/// Announces itself as a runtime does, does what it is told, and prints times that depend only on what is recorded.
#[test]
#[expect(clippy::exit, reason = "it poses as a program")]
fn pose_as_a_runtime() {
    let Ok(port) = std::env::var("DOTNET_DiagnosticPorts") else {
        return;
    };
    let path = port.strip_suffix(",suspend").expect("it has to wait");
    let pid = u64::from(std::process::id());
    let (mut providers, mut session) = (0, None);
    loop {
        let mut stream = UnixStream::connect(path).expect("the port listens");
        let announcement = [&b"ADVR_V1\0"[..], &[1; 16], &pid.to_le_bytes(), &[0, 0]];
        stream.write_all(&announcement.concat()).expect("read");
        match read_command(&mut stream).expect("a command") {
            (4, 4, _) => answer(&mut stream, &info(pid, "11.0.0")),
            (2, 5, payload) => {
                providers = payload[17];
                answer(&mut stream, &[1; 8]);
                session = Some(stream);
            }
            (4, 1, _) => {
                answer(&mut stream, &[]);
                break;
            }
            other => panic!("{other:?} is not expected"),
        }
    }
    if let Some(mut stream) = session {
        stream
            .write_all(&vec![b'.'; 1000 * usize::from(providers)])
            .expect("read");
    }
    let elapsed = if providers > 1 { 200 } else { 100 };
    let checksum = match std::env::var("POSE").as_deref() {
        Ok("differs") => pid,
        _ => 5050,
    };
    println!("\nelapsed_ms={elapsed}.25 checksum={checksum}");
    if std::env::var("POSE").as_deref() == Ok("fails") {
        eprintln!("out of luck");
        std::process::exit(3);
    }
}

/// A folder of its own for each test, emptied, with the command in it.
fn folder(test: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("observe-{}-{test}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).expect("writable");
    let own = std::env::current_exe().expect("running");
    std::os::unix::fs::symlink(own, folder.join("app")).expect("writable");
    folder
}

fn observe(folder: &Path, args: &[&str], pose: &str) -> Output {
    Command::new(env!("CARGO_BIN_EXE_asynctriage"))
        .arg("observe")
        .args(args)
        .args(["--", "./app", "--exact", POSE, "--nocapture"])
        .current_dir(folder)
        .env("TMPDIR", folder)
        .env("POSE", pose)
        .env_remove("CLICOLOR_FORCE")
        .output()
        .expect("the program starts")
}

/// What a user sees, without the machine.
fn shown(output: &Output) -> String {
    let text = format!(
        "exit {}\n--- out\n{}--- err\n{}",
        output.status.code().expect("no signal"),
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    let processors = std::thread::available_parallelism().expect("known");
    let s = if processors.get() == 1 { "" } else { "s" };
    text.replace(&format!("{processors} processor{s};"), "N processors;")
}

#[test]
fn three_modes_are_run_in_an_order_by_chance() {
    let folder = folder("three");
    let args = [
        "-n",
        "5",
        "--seed",
        "3",
        "--markers",
        "Mine:1:4",
        "--traces",
        "kept",
    ];
    let output = observe(&folder, &args, "");
    insta::assert_snapshot!("three_modes", shown(&output));
    let kept: std::collections::BTreeMap<_, _> = std::fs::read_dir(folder.join("kept"))
        .expect("made")
        .map(|entry| entry.expect("readable"))
        .map(|e| {
            let name = e.file_name().to_string_lossy().into_owned();
            (name, e.metadata().expect("there").len())
        })
        .collect();
    // the round that does not count is not kept
    assert_eq!(kept.len(), 10);
    assert_eq!(
        (kept["1-markers.nettrace"], kept["5-profiler.nettrace"]),
        (1000, 2000)
    );
    // nothing else stays behind
    let left = std::fs::read_dir(&folder).expect("readable").count();
    assert_eq!(left, 2, "the command and the recordings");
    std::fs::remove_dir_all(folder).expect("ours");
}

#[test]
fn the_answer_for_programs() {
    let folder = folder("json");
    let output = observe(&folder, &["-n", "5", "--format", "json"], "");
    let report: Value = serde_json::from_slice(&output.stdout).expect("a report");
    assert_eq!(report["timer"]["name"], "elapsed_ms");
    assert_eq!(report["result"]["same"], true);
    assert_eq!(
        report["modes"][0]["milliseconds"],
        serde_json::json!([100.25, 100.25, 100.25, 100.25, 100.25])
    );
    // without markers there are two modes, and one provider takes no time here
    assert_eq!(report["modes"].as_array().map(Vec::len), Some(2));
    assert_eq!(report["comparisons"][0]["verdict"], "none-shown");
    assert_eq!(report["comparisons"][0]["probability"], 1.0);
    assert!(report["comparisons"][0]["ratio"].is_null());
    std::fs::remove_dir_all(folder).expect("ours");
}

#[test]
fn different_work_is_not_compared() {
    let folder = folder("differs");
    let args = [
        "-n",
        "4",
        "--markers",
        "Mine",
        "--strict",
        "--format",
        "json",
    ];
    let output = observe(&folder, &args, "differs");
    assert_eq!(output.status.code(), Some(5));
    let report: Value = serde_json::from_slice(&output.stdout).expect("a report");
    assert_eq!(report["result"]["same"], false);
    assert_eq!(report["gaps"][0]["id"], "results-differ");
    for comparison in report["comparisons"].as_array().expect("three pairs") {
        assert_eq!(comparison["verdict"], "not-comparable");
    }
    std::fs::remove_dir_all(folder).expect("ours");
}

#[test]
fn a_command_that_fails_ends_the_experiment() {
    let folder = folder("fails");
    let failed = observe(&folder, &["-n", "1"], "fails");
    let no_runtime = Command::new(env!("CARGO_BIN_EXE_asynctriage"))
        .args(["observe", "--", "true"])
        .current_dir(&folder)
        .env("TMPDIR", &folder)
        .output()
        .expect("the program starts");
    let old = observe(&folder, &["--traces", "."], "");
    let all = [failed, no_runtime, old].map(|output| shown(&output));
    insta::assert_snapshot!("failures", all.join("\n\n"));
    std::fs::remove_dir_all(folder).expect("ours");
}

/// A real program is observed, when this machine has a runtime: `ASYNCTRIAGE_DOTNET` names its host, or PATH has it.
#[test]
fn a_real_program_is_observed() {
    let Some(dotnet) = support::dotnet() else {
        return;
    };
    let folder = folder("real");
    let output = Command::new(env!("CARGO_BIN_EXE_asynctriage"))
        .args([
            "observe",
            "-n",
            "1",
            "--markers",
            "Awaits-Markers",
            "--format",
            "json",
        ])
        .args([
            "--providers",
            "System.Threading.Tasks.TplEventSource:1FF:5",
            "--strict",
            "--",
        ])
        .arg(dotnet)
        .arg(support::program())
        .arg("20")
        .current_dir(&folder)
        .output()
        .expect("the program starts");
    assert_eq!(output.status.code(), Some(0), "{}", shown(&output));
    let report: Value = serde_json::from_slice(&output.stdout).expect("a report");
    assert_eq!(report["timer"]["kind"], "program");
    // 1 + 2 + ... + 20
    assert_eq!(
        report["result"]["values"],
        serde_json::json!([{"value": "210", "runs": 3}])
    );
    let bytes = |mode: usize| {
        report["modes"][mode]["bytes"][0]
            .as_u64()
            .expect("recorded")
    };
    assert!(bytes(2) > bytes(1) && bytes(1) > 100, "{report}");
    std::fs::remove_dir_all(folder).expect("ours");
}
