//! Secrets that a program holds in texts, characters, bytes, structures, messages and statements show in no output of any
//! command unless they are asked for.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Command, Output};

/// The program puts this word, or its first letters, wherever data can stand.
const DUMP: &str = "canary-10.0.15.dmp.gz";
/// The word as text, by letters, as UTF-16 and as bytes.
const CANARIES: [&str; 4] = ["CANARY", "'C'", "43 00 41 00", "43 41 4e 41"];

/// Every command that reads a dump, with all that makes it say more.
const COMMANDS: [&[&str]; 17] = [
    &[DUMP],
    &[DUMP, "-v", "--all", "--locals"],
    &[DUMP, "--format", "json", "--all", "--locals"],
    &[DUMP, "--format", "html", "--all", "--locals"],
    &[DUMP, "--format", "markdown", "--all", "--locals"],
    &[DUMP, "--format", "dot", "--all"],
    &[DUMP, "--brief"],
    &["postmortem", DUMP],
    &["crash", DUMP, "-v", "--all", "--locals"],
    &["oom", DUMP, "-v", "--all"],
    &["tree", DUMP, "-v", "--all"],
    &["threads", DUMP, "-v", "--all"],
    &["requests", DUMP, "-v", "--all"],
    &["queue", DUMP, "-v", "--all"],
    &["locks", DUMP, "-v", "--all"],
    &["tasks", DUMP, "--all", "--completed"],
    &["heap", DUMP, "--all"],
];

fn run(args: &[&str]) -> Output {
    let dumps = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdumps");
    Command::new(env!("CARGO_BIN_EXE_asynctriage"))
        .args(args)
        .current_dir(dumps)
        .env_remove("CLICOLOR_FORCE")
        .output()
        .expect("the program starts")
}

fn output(args: &[&str]) -> String {
    let output = run(args);
    assert!(output.status.success(), "{args:?}");
    String::from_utf8(output.stdout).expect("UTF-8")
}

/// The addresses that a text names.
fn addresses(text: &str) -> BTreeSet<String> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric());
    let addresses = words.filter(|w| w.starts_with("0x") && w.len() == 18);
    addresses.map(str::to_owned).collect()
}

/// What `show` says of every object that any output leads to.
fn objects(from: &str, more: &[&str]) -> Vec<(String, String)> {
    let mut open: Vec<String> = addresses(from).into_iter().collect();
    let mut seen = BTreeSet::new();
    let mut out = Vec::new();
    while let Some(address) = open.pop().filter(|_| seen.len() < 400) {
        if !seen.insert(address.clone()) {
            continue;
        }
        let shown = run(&[&["show", DUMP, &address, "--all"], more].concat());
        if shown.status.success() {
            let text = String::from_utf8(shown.stdout).expect("UTF-8");
            open.extend(addresses(&text));
            out.push((address, text));
        }
    }
    out
}

#[test]
fn no_command_shows_a_secret() {
    let mut all = String::new();
    for command in COMMANDS {
        let text = output(command);
        for canary in CANARIES {
            assert!(!text.contains(canary), "{command:?} shows {canary:?}");
        }
        all.push_str(&text);
    }
    let objects = objects(&all, &[]);
    assert!(objects.len() > 20, "{}", objects.len());
    for (address, text) in objects {
        for canary in CANARIES {
            assert!(
                !text.contains(canary),
                "show {address} shows {canary:?}:\n{text}"
            );
        }
    }
}

/// Otherwise the test above would pass for a dump without secrets.
#[test]
fn all_of_them_show_when_they_are_asked_for() {
    let report = output(&[DUMP, "-v", "--all", "--locals", "--show-values"]);
    assert!(report.contains("\"CANARYTEXT\""), "{report}");
    assert!(report.contains("no account of CANARYNAME"), "{report}");
    let objects = objects(&report, &["--show-values"]);
    for canary in CANARIES {
        let is_shown = objects.iter().any(|(_, text)| text.contains(canary));
        assert!(is_shown, "{canary:?} is in no object");
    }
    let sql = "select u.\"Id\" from ? u where u.name = ? and ? = ?";
    assert!(
        report.contains(sql),
        "literals of statements never show: {report}"
    );
}

/// Bytes that hold the word as UTF-8 or UTF-16.
fn holds(bytes: &[u8], word: &str) -> bool {
    let wide: Vec<u8> = word.encode_utf16().flat_map(u16::to_le_bytes).collect();
    let has = |needle: &[u8]| bytes.windows(needle.len()).any(|w| w == needle);
    has(word.as_bytes()) || has(&wide)
}

/// Reports, tables and the bytes behind claims; the small dump is as secret as the dump, as the manifest says.
#[test]
fn no_report_in_a_bundle_of_evidence_holds_a_secret() {
    let folder = tempfile::tempdir().expect("a folder");
    let bundle = folder.path().join("evidence");
    let to = bundle.to_str().expect("UTF-8");
    let output = run(&["export", DUMP, "-o", to, "--all", "--locals"]);
    assert!(output.status.success(), "{output:?}");
    let files = std::fs::read_dir(&bundle).expect("a folder").flatten();
    let paths = files.map(|f| f.path());
    let reports: Vec<_> = paths
        .filter(|p| p.is_file() && p.extension().is_none_or(|e| e != "gz"))
        .collect();
    assert!(reports.len() > 12, "{reports:?}");
    for path in reports {
        let bytes = std::fs::read(&path).expect("readable");
        for canary in CANARIES {
            assert!(
                !holds(&bytes, canary),
                "{} holds {canary:?}",
                path.display()
            );
        }
    }
}
