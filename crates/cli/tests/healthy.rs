//! A process that is well must not be called ill, and what threads wait for besides tasks and monitors must be named.

use std::path::Path;
use std::process::Command;

fn report(dump: &str, args: &[&str]) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdumps");
    let output = Command::new(env!("CARGO_BIN_EXE_asynctriage"))
        .args(args)
        .arg(dump)
        .current_dir(folder)
        .env_remove("CLICOLOR_FORCE")
        .env("COLUMNS", "200")
        .output()
        .expect("the program starts");
    assert!(output.status.success(), "{dump} {args:?}");
    String::from_utf8(output.stdout).expect("text")
}

fn findings(dump: &str) -> Vec<(String, String, String)> {
    let report: serde_json::Value =
        serde_json::from_str(&report(dump, &["--format", "json"])).expect("a report");
    let text = |f: &serde_json::Value, key: &str| f[key].as_str().expect("a word").to_owned();
    let findings = report["findings"].as_array().expect("findings").iter();
    findings
        .map(|f| (text(f, "severity"), text(f, "kind"), text(f, "title")))
        .collect()
}

/// Services that wait for a timer, for items of a channel and of a BlockingCollection, and for a semaphore as a signal.
#[test]
fn an_idle_web_service_raises_no_warning() {
    let findings = findings("web-idle-11.0.0.dmp.gz");
    let loud: Vec<_> = findings.iter().filter(|(s, _, _)| s != "info").collect();
    assert!(loud.is_empty(), "{loud:?}");
}

#[test]
fn deadlocks_over_reader_writer_locks_mutexes_and_joins_are_found() {
    let findings = findings("rwlock-11.0.0.dmp.gz");
    for (a, b) in [
        ("'a'", "'b'"),
        ("'reader-then-lock'", "'lock-then-writer'"),
        ("'mutex-x-y'", "'mutex-y-x'"),
        ("'join-1'", "'join-2'"),
    ] {
        let is_it = |title: &str| title.contains(a) && title.contains(b);
        let found: Vec<_> = findings.iter().filter(|(_, _, t)| is_it(t)).collect();
        assert_eq!(found.len(), 1, "{a} and {b}: {findings:?}");
        assert_eq!(found[0].0, "critical");
    }
    let critical = findings.iter().filter(|(s, _, _)| s == "critical");
    assert_eq!(critical.count(), 4, "{findings:?}");
}

#[test]
fn stacks_begin_with_native_frames_and_say_who_holds_what() {
    let folded = report("rwlock-11.0.0.dmp.gz", &["threads", "--width", "200"]);
    assert!(folded.contains("native frames of libc.so.6"), "{folded}");
    assert!(!folded.contains("libc.so.6!"), "{folded}");
    let text = report("rwlock-11.0.0.dmp.gz", &["threads", "--width", "200", "-v"]);
    for part in [
        "libc.so.6!",
        "for reading, held by 'b'",
        "entered for writing, by the lock's own field",
        "entered for reading, by the thread's own count",
        "the end of thread 'join-2'",
        "\"main\"",
    ] {
        assert!(text.contains(part), "{part} is missing in:\n{text}");
    }
}
