//! From a state number to the line of code: where the test programs await is known from their source, so every frame of
//! theirs in every dump must say that and nothing else.

use serde_json::Value;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A folder with more dumps of the same programs, as `SET/NAME.KIND.dmp`.
const DUMPS: &str = "ASYNCTRIAGE_DUMPS";
/// A folder with the programs in folders of their own, for dumps that lack their code.
const PROGRAMS: &str = "ASYNCTRIAGE_PROGRAMS";
/// The programs whose source the table tells.
const NAMES: [&str; 7] = [
    "states",
    "names",
    "iterators",
    "chain",
    "semaphore",
    "mixed",
    "web",
];

/// A line of the table.
struct Await {
    method: String,
    number: u64,
    place: String,
    call: String,
}

fn table() -> Vec<Await> {
    let lines = include_str!("truth_table.txt").lines();
    let of_line = |line: &str| {
        let [method, number, place, call] = line.split('\t').collect::<Vec<_>>()[..] else {
            panic!("a line of the table is not well formed: {line}");
        };
        Await {
            method: method.into(),
            number: number.parse().expect("a number"),
            place: place.into(),
            call: call.into(),
        }
    };
    lines.filter(|l| !l.starts_with('#')).map(of_line).collect()
}

/// What must be known of each frame.
#[derive(Clone, Copy)]
struct Known {
    /// Whether the code is there; without it what is awaited may be missing, but not wrong.
    calls: bool,
    lines: bool,
}

fn testdumps() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdumps")
}

fn report(dump: &Path, options: &[&str]) -> Value {
    let output = Command::new(env!("CARGO_BIN_EXE_asynctriage"))
        .arg(dump)
        .args(["--format", "json", "--all"])
        .args(options)
        .output()
        .expect("the program starts");
    assert!(
        output.status.success(),
        "{}: {}",
        dump.display(),
        String::from_utf8_lossy(&output.stderr)
    );
    serde_json::from_slice(&output.stdout).expect("a report")
}

/// `Store<String>.LoadAsync<Int32>` without what shared code may not tell, and without the number of a lambda.
fn plain(method: &str) -> String {
    let mut depth = 0_u32;
    let outside = method.chars().filter(|c| {
        depth += u32::from(*c == '<');
        let outside = depth == 0;
        depth -= u32::from(*c == '>');
        outside
    });
    outside.collect()
}

/// Compares each method of the program with the table; returns the awaits that were seen.
fn check(dump: &Path, report: &Value, known: Known) -> BTreeSet<(String, u64)> {
    let table = table();
    let groups = report["chains"].as_array().expect("chains");
    let frames = groups
        .iter()
        .flat_map(|g| g["frames"].as_array().expect("frames"));
    let own = frames.filter(|f| f["is_framework"] != true && !f["await_index"].is_null());
    let mut seen = BTreeSet::new();
    for frame in own {
        let method = plain(frame["method"].as_str().expect("method"));
        let number = frame["await_index"].as_u64().expect("await");
        let about = format!("{}: {method}@{number}", dump.display());
        let row = table
            .iter()
            .find(|a| (a.method.as_str(), a.number) == (&method, number));
        let row = row.unwrap_or_else(|| panic!("{about} is not in the table"));
        let call = frame["awaits"].as_str();
        assert!(
            call == Some(&row.call) || call.is_none() && !known.calls,
            "{about} awaits {call:?}, not {}",
            row.call
        );
        let place = frame["file"].as_str().map(|file| {
            let name = file.rsplit(['/', '\\']).next().expect("a name");
            format!("{name}:{}", frame["line"])
        });
        let wanted = known.lines.then(|| row.place.clone());
        assert_eq!(place, wanted, "{about}");
        seen.insert((method, number));
    }
    seen
}

/// A dump with the code of the program in it, with and without its symbols.
fn with_and_without_symbols(name: &str, awaits: usize) {
    let dump = testdumps().join(format!("{name}.dmp.gz"));
    let symbols = testdumps();
    let symbols = symbols.to_str().expect("a path");
    let mut known = Known {
        calls: true,
        lines: false,
    };
    let bare = check(&dump, &report(&dump, &[]), known);
    known.lines = true;
    let lines = check(&dump, &report(&dump, &["--symbols", symbols]), known);
    assert_eq!(bare, lines);
    assert_eq!(bare.len(), awaits, "{name}: {bare:?}");
}

#[test]
fn optimised_state_machines_stand_where_the_source_says() {
    with_and_without_symbols("iterators-10.0.15", 4);
    with_and_without_symbols("mixed-10.0.15", 44);
}

#[test]
fn debug_state_machines_stand_where_the_source_says() {
    with_and_without_symbols("states-debug-10.0.15", 6);
    with_and_without_symbols("iterators-debug-10.0.15", 4);
}

#[test]
fn runtime_async_methods_stand_where_the_source_says() {
    with_and_without_symbols("states-runtimeasync-11.0.0", 6);
    with_and_without_symbols("iterators-runtimeasync-11.0.0", 4);
}

/// The symbols are inside the program. Its code was changed so that awaiters keep what they held when the method goes on.
#[test]
fn old_awaiters_and_embedded_symbols_change_nothing() {
    let dump = testdumps().join("stale-10.0.15.dmp.gz");
    let known = Known {
        calls: true,
        lines: true,
    };
    let report = report(&dump, &[]);
    assert_eq!(check(&dump, &report, known).len(), 5);
    for group in report["chains"].as_array().expect("chains") {
        let innermost = &group["frames"][0];
        if innermost["method"] == "Spots.Program.Several" {
            assert_eq!(group["leaf"]["kind"], "task-completion-source");
            assert!(group["leaf"]["confidence"].is_null());
            let evidence = group["leaf"]["evidence"].as_str().expect("evidence");
            // at await 1 the awaiters of the other types have not been used yet
            let old = innermost["await_index"] != 1;
            assert_eq!(evidence.contains("hold old values"), old, "{evidence}");
        }
    }
}

/// The steps that the symbols list stand for the code.
#[test]
fn symbols_tell_the_lines_of_dumps_without_code() {
    for name in ["states-10.0.15", "names-10.0.15", "chain-8.0.34"] {
        let dump = testdumps().join(format!("{name}.dmp.gz"));
        let symbols = testdumps();
        let options = ["--symbols", symbols.to_str().expect("a path")];
        let known = Known {
            calls: false,
            lines: true,
        };
        assert!(!check(&dump, &report(&dump, &options), known).is_empty());
    }
}

fn subfolders(of: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(of).expect("a folder");
    let paths = entries.filter_map(|e| Some(e.ok()?.path()));
    let mut folders: Vec<PathBuf> = paths.filter(|p| p.is_dir()).collect();
    folders.sort();
    folders
}

/// The dumps of the programs in a folder, by their names.
fn dumps_in(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).expect("a folder");
    let paths = entries.filter_map(|e| Some(e.ok()?.path()));
    let mut dumps: Vec<PathBuf> = paths
        .filter(|p| {
            let name = p.file_name().and_then(|n| n.to_str()).unwrap_or_default();
            NAMES.iter().any(|n| {
                name.strip_prefix(n)
                    .is_some_and(|rest| rest.starts_with('.') && rest.ends_with(".dmp"))
            })
        })
        .collect();
    dumps.sort();
    dumps
}

#[test]
fn all_dumps_of_a_folder_stand_where_the_source_says() {
    let Some(folder) = std::env::var_os(DUMPS) else {
        eprintln!("skipped: {DUMPS} names no folder with dumps");
        return;
    };
    let programs = std::env::var_os(PROGRAMS).map(|p| subfolders(Path::new(&p)));
    let known = Known {
        calls: programs.is_some(),
        lines: programs.is_some(),
    };
    let folders = programs.unwrap_or_default();
    let options: Vec<&str> = folders
        .iter()
        .flat_map(|f| ["--module-path", f.to_str().expect("a path")])
        .collect();
    let mut checked = 0;
    for set in subfolders(Path::new(&folder)) {
        for dump in dumps_in(&set) {
            let seen = check(&dump, &report(&dump, &options), known);
            eprintln!("{}: {} awaits", dump.display(), seen.len());
            checked += seen.len();
        }
    }
    assert!(checked > 0, "{DUMPS} holds no dump of the programs");
}
