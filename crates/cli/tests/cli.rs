//! The program as a user meets it: help, usage errors, input errors, exit status.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

fn run_in(folder: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_asynctriage"))
        .args(args)
        .current_dir(folder)
        .env_remove("CLICOLOR_FORCE")
        .env("COLUMNS", "100")
        .output()
        .expect("the program starts")
}

/// A folder of its own for each test, emptied.
fn folder(test: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(test);
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).expect("the target folder is writable");
    folder
}

fn shown(output: &Output) -> String {
    format!(
        "exit {}\n--- out\n{}--- err\n{}",
        output.status.code().expect("no signal"),
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}

#[test]
fn help() {
    let folder = folder("help");
    insta::assert_snapshot!("help_short", shown(&run_in(&folder, &["-h"])));
    for args in [
        &["--help"][..],
        &["tree", "--help"],
        &["tasks", "--help"],
        &["heap", "--help"],
        &["show", "--help"],
        &["trace", "--help"],
        &["collect", "--help"],
        &["observe", "--help"],
    ] {
        let name = format!(
            "help_{}",
            args.first().expect("never empty").trim_start_matches('-')
        );
        insta::assert_snapshot!(name, shown(&run_in(&folder, args)));
    }
}

#[test]
#[cfg(target_os = "linux")]
fn a_limit_ends_the_analysis_and_the_exit_status_says_so() {
    let dump = "../../testdumps/mixed-10.0.15.dmp.gz";
    let run = |args: &[&str]| {
        let output = run_in(
            Path::new(env!("CARGO_MANIFEST_DIR")),
            &[&[dump], args].concat(),
        );
        (output.status.code(), shown(&output))
    };
    // so little that unpacking ends at once
    let (status, said) = run(&["--max-memory", "1"]);
    assert_eq!(status, Some(7), "{said}");
    assert!(said.contains("note: the analysis was ended"), "{said}");
    let (status, said) = run(&["--max-memory", "0", "--max-time", "0"]);
    assert_eq!(status, Some(0), "{said}");
    let (status, said) = run(&["--max-time", "soon"]);
    assert_eq!(status, Some(2), "{said}");
}

#[test]
fn no_argument_is_a_usage_error_with_help() {
    let output = run_in(&folder("none"), &[]);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("Usage: asynctriage"));
}

#[test]
fn usage_errors() {
    let folder = folder("usage");
    let cases: [&[&str]; 6] = [
        &["--format", "xml", "a.dmp"],
        &["show", "a.dmp", "zebra"],
        &["a.dmp", "--force"],
        &["a.dmp", "--limit", "3", "--all"],
        &["--format", "json"],
        &["a.dmp", "b.dmp"],
    ];
    let all: Vec<String> = cases
        .iter()
        .map(|args| format!("$ {}\n{}", args.join(" "), shown(&run_in(&folder, args))))
        .collect();
    insta::assert_snapshot!(all.join("\n"));
}

#[test]
fn inputs_that_are_no_dumps() {
    let folder = folder("inputs");
    std::fs::write(folder.join("empty.dmp"), "").expect("writable");
    std::fs::write(folder.join("text.dmp"), "not a dump at all\n").expect("writable");
    std::fs::create_dir(folder.join("folder.dmp")).expect("writable");
    let all: Vec<String> = ["missing.dmp", "empty.dmp", "text.dmp", "folder.dmp"]
        .map(|name| format!("$ {name}\n{}", shown(&run_in(&folder, &[name]))))
        .to_vec();
    insta::assert_snapshot!(all.join("\n"));
    for command in ["tree", "tasks", "heap"] {
        assert_eq!(
            run_in(&folder, &[command, "text.dmp"]).status.code(),
            Some(3),
            "{command}"
        );
    }
    assert_eq!(
        run_in(&folder, &["show", "text.dmp", "0x10"]).status.code(),
        Some(3)
    );
}

#[test]
fn a_dump_named_like_a_command_is_reached_by_its_path() {
    let folder = folder("named");
    std::fs::write(folder.join("tree"), "not a dump").expect("writable");
    assert_eq!(run_in(&folder, &["./tree"]).status.code(), Some(3));
    assert_eq!(run_in(&folder, &["tree"]).status.code(), Some(2));
}

#[test]
fn existing_files_and_the_dump_are_kept() {
    let folder = folder("kept");
    std::fs::write(folder.join("a.dmp"), "not a dump").expect("writable");
    std::fs::write(folder.join("old.json"), "old").expect("writable");
    std::fs::hard_link(folder.join("a.dmp"), folder.join("b.dmp")).expect("one file system");
    let cases: [&[&str]; 4] = [
        &["a.dmp", "-o", "old.json"],
        &["a.dmp", "-o", "a.dmp", "--force"],
        &["a.dmp", "-o", "b.dmp", "--force"],
        &["a.dmp", "-o", "."],
    ];
    let all: Vec<String> = cases
        .iter()
        .map(|args| format!("$ {}\n{}", args.join(" "), shown(&run_in(&folder, args))))
        .collect();
    insta::assert_snapshot!(all.join("\n"));
    assert_eq!(
        std::fs::read_to_string(folder.join("old.json")).expect("kept"),
        "old"
    );
    assert_eq!(
        std::fs::read_to_string(folder.join("a.dmp")).expect("kept"),
        "not a dump"
    );
}

#[cfg(unix)]
#[test]
fn reports_are_their_users_alone_and_go_into_no_link_or_pipe() {
    use std::os::unix::fs::{PermissionsExt as _, symlink};
    let folder = folder("alone");
    let dump = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdumps/chain-10.0.15.dmp.gz");
    let dump = dump.to_str().expect("a path");
    std::fs::write(folder.join("open"), "old").expect("writable");
    let new = run_in(&folder, &[dump, "-o", "new"]);
    let replaced = run_in(&folder, &[dump, "-o", "open", "--force"]);
    assert!(new.status.success() && replaced.status.success());
    for file in ["new", "open"] {
        let file = std::fs::metadata(folder.join(file)).expect("written");
        assert_eq!(file.permissions().mode() & 0o777, 0o600);
    }
    symlink("open", folder.join("link")).expect("writable");
    symlink("nowhere", folder.join("dangling")).expect("writable");
    let made = Command::new("mkfifo").arg(folder.join("pipe")).status();
    assert!(made.expect("mkfifo starts").success());
    let cases: [&[&str]; 4] = [
        &["x.dmp", "-o", "link", "--force"],
        &["x.dmp", "-o", "dangling"],
        &["x.dmp", "-o", "pipe"],
        &["x.dmp", "-o", "pipe", "--force"],
    ];
    let all: Vec<String> = cases
        .iter()
        .map(|args| format!("$ {}\n{}", args.join(" "), shown(&run_in(&folder, args))))
        .collect();
    insta::assert_snapshot!(all.join("\n"));
}

#[test]
fn a_dump_comes_through_a_pipe() {
    let folder = folder("piped");
    let piped = |args: &[&str], bytes: &[u8]| {
        let mut child = Command::new(env!("CARGO_BIN_EXE_asynctriage"))
            .args(args)
            .current_dir(&folder)
            .env_remove("CLICOLOR_FORCE")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program starts");
        let mut into = child.stdin.take().expect("piped");
        // a program that has seen enough closes the pipe
        let _ = into.write_all(bytes);
        drop(into);
        child.wait_with_output().expect("the program ends")
    };
    let real = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdumps/chain-10.0.15.dmp.gz");
    let packed = std::fs::read(real).expect("a dump of the repository");
    for command in ["tree", "heap", "tasks"] {
        assert_eq!(piped(&[command, "-"], &packed).status.code(), Some(0));
    }
    let report = piped(&["-", "--format", "json"], &packed).stdout;
    let report: serde_json::Value = serde_json::from_slice(&report).expect("JSON");
    assert_eq!(report["dump"]["path"], "the standard input");
    assert_eq!(report["chains"][0]["count"], 25);
    let refused = [("nothing", &b""[..]), ("text", b"not a dump at all\n")];
    let refused =
        refused.map(|(what, bytes)| format!("$ {what}\n{}", shown(&piped(&["-"], bytes))));
    insta::assert_snapshot!(refused.join("\n"));
}

#[test]
fn the_runtimes_that_can_be_read() {
    let folder = folder("runtimes");
    insta::assert_snapshot!(shown(&run_in(&folder, &["runtimes"])));
    let json = run_in(&folder, &["runtimes", "--format", "json"]).stdout;
    let report: serde_json::Value = serde_json::from_slice(&json).expect("JSON");
    let tables = report["tables"].as_array().expect("a list");
    assert!(tables.iter().any(|t| t["table"] == "linux-x64-11.0"));
}

#[test]
fn what_was_meant_is_said() {
    let testdumps = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdumps");
    let (chain, web) = ("chain-10.0.15.dmp.gz", "web-11.0.0.dmp.gz");
    for (args, said) in [
        (&["thread", web][..], "did you mean `asynctriage threads`?"),
        (&["thred"], "the command is `asynctriage threads`"),
        (
            &[chain, "--symbols", "nowhere"],
            "--symbols nowhere does not exist",
        ),
        (&[chain, "--module-path", chain], "is no folder"),
        (&["queue", web, "--method", "x"], "filters do not apply"),
    ] {
        let output = run_in(&testdumps, args);
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(error.contains(said), "{args:?}: {error}");
        assert_ne!(output.status.code(), Some(0), "{args:?}");
    }
    let help = run_in(&testdumps, &["help"]);
    assert_eq!(help.status.code(), Some(0));
}

#[test]
fn filters_ignore_case_and_take_findings_and_requests_along() {
    let testdumps = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdumps");
    let web = "web-11.0.0.dmp.gz";
    let json = |args: &[&str]| -> serde_json::Value {
        let output = run_in(&testdumps, &[args, &["--format", "json"]].concat());
        serde_json::from_slice(&output.stdout).expect("JSON")
    };
    let kept = json(&[web, "--method", "outboxWORKER"]);
    assert_eq!(kept["chains"].as_array().map(Vec::len), Some(1));
    assert_eq!(kept["findings"].as_array().map(Vec::len), Some(0));
    assert_eq!(kept["requests"].as_array().map(Vec::len), Some(0));
    assert_eq!(kept["left_out"]["requests"], 28);
    let merged = json(&["threads", "--merged", web]);
    assert_eq!(merged["threads"], 17);
}

/// The first look fits a screen.
#[test]
fn verdict_findings_requests_and_the_first_chain_fit_forty_lines() {
    let testdumps = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdumps");
    let output = run_in(&testdumps, &["web-11.0.0.dmp.gz", "--width", "120"]);
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    let lines = text.lines().take_while(|l| !l.starts_with("C2"));
    assert!(lines.count() <= 45, "{text}");
}

#[cfg(target_os = "linux")]
#[test]
fn a_report_that_cannot_be_written_has_a_status_of_its_own() {
    let testdumps = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdumps");
    let full = std::fs::File::options()
        .write(true)
        .open("/dev/full")
        .expect("the device");
    let status = Command::new(env!("CARGO_BIN_EXE_asynctriage"))
        .arg("chain-10.0.15.dmp.gz")
        .current_dir(testdumps)
        .stdout(full)
        .stderr(Stdio::null())
        .status()
        .expect("the program starts");
    assert_eq!(status.code(), Some(6));
}
