//! Symbol files that are right, foreign, of another form or damaged: a line is right or missing.

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

fn testdumps() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdumps")
}

fn run(dump: &str, options: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_asynctriage"))
        .arg(testdumps().join(dump))
        .args(options)
        .env("COLUMNS", "100")
        .output()
        .expect("the program starts");
    assert!(output.status.success(), "{dump} {options:?}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// With a folder of symbols: the lines of all frames of the program, and why some are missing.
fn lines_and_gaps(dump: &str, symbols: &Path) -> (Vec<Option<u64>>, Vec<String>) {
    let symbols = symbols.to_str().expect("a path");
    let text = run(dump, &["--format", "json", "--all", "--symbols", symbols]);
    let report: Value = serde_json::from_str(&text).expect("JSON");
    let groups = report["chains"].as_array().expect("chains");
    let frames = groups
        .iter()
        .flat_map(|g| g["frames"].as_array().expect("frames"));
    let own = frames.filter(|f| f["is_framework"] != true && !f["await_index"].is_null());
    let lines = own.map(|f| f["line"].as_u64()).collect();
    let gaps = report["gaps"].as_array().expect("gaps").iter();
    // the small dumps lack unwind tables
    let gaps = gaps.filter(|g| g["section"] != "threads");
    let why = gaps.map(|g| format!("{} {}", g["why"], g["remedy"]));
    (lines, why.collect())
}

/// The symbols of a build of the programs.
fn symbols_of(id: &str) -> Vec<u8> {
    let path = testdumps().join(format!("Scenarios.pdb/{id}FFFFFFFF/Scenarios.pdb"));
    std::fs::read(path).expect("the repository has them")
}

const RELEASE: &str = "2EC0A2D6C6704738A71276AAD7027C77";
const DEBUG: &str = "3E9D634A5E354076B42EA247BF0A58AE";

/// A folder with a file in the place of the symbols.
fn folder(name: &str, bytes: &[u8]) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("symbols-{name}"));
    std::fs::create_dir_all(&path).expect("the target folder is writable");
    std::fs::write(path.join("Scenarios.pdb"), bytes).expect("the target folder is writable");
    path
}

#[test]
fn files_that_are_not_its_symbols_give_no_lines_and_are_named() {
    let mut windows = b"Microsoft C/C++ MSF 7.00\r\n\x1aDS\0\0\0".to_vec();
    windows.resize(4096, 0);
    let cases: [(&str, &[u8], &str); 3] = [
        ("foreign", &symbols_of(DEBUG), "is of another build"),
        ("windows", &windows, "a Windows PDB, which is not read"),
        ("text", b"no symbols at all", "is no symbol file"),
    ];
    for (name, bytes, why) in cases {
        let (lines, gaps) = lines_and_gaps("iterators-10.0.15.dmp.gz", &folder(name, bytes));
        assert!(
            !lines.is_empty() && lines.iter().all(Option::is_none),
            "{name}"
        );
        let named = gaps.iter().any(|g| g.contains(why) && g.contains(RELEASE));
        assert!(named, "{name}: {gaps:?}");
    }
}

#[test]
fn cut_symbols_give_right_lines_or_none() {
    let whole = symbols_of(RELEASE);
    let dump = "mixed-10.0.15.dmp.gz";
    let (right, gaps) = lines_and_gaps(dump, &folder("whole", &whole));
    assert!(
        right.iter().all(Option::is_some) && gaps.is_empty(),
        "{gaps:?}"
    );
    for tenth in 0..10 {
        let cut = &whole[..whole.len() * tenth / 10];
        let (lines, gaps) = lines_and_gaps(dump, &folder(&format!("cut{tenth}"), cut));
        assert_eq!(lines.len(), right.len());
        for (line, right) in lines.iter().zip(&right) {
            assert!(line.is_none() || line == right, "cut at {tenth}/10");
        }
        assert!(lines == right || !gaps.is_empty(), "cut at {tenth}/10");
    }
}

/// The map of the symbols stands in the report, and with the details of a frame.
#[test]
fn source_link_tells_where_the_source_is_published() {
    let dump = "stale-10.0.15.dmp.gz";
    let url = "https://example.org/spots/0123abcd/Spots.cs";
    let report: Value = serde_json::from_str(&run(dump, &["--format", "json"])).expect("JSON");
    let groups = report["chains"].as_array().expect("chains").iter();
    let spots = groups.filter(|g| g["frames"][0]["method"] == "Spots.Program.Several");
    let urls: Vec<&Value> = spots.map(|g| &g["frames"][0]["source_url"]).collect();
    assert_eq!(urls, [url; 4]);
    assert!(run(dump, &["-v"]).contains(url));
    assert!(!run(dump, &[]).contains(url));
}

/// Symbols are taken from where the dump says that the module was, unless that is forbidden.
#[cfg(unix)]
#[test]
fn symbols_beside_the_module_of_the_process_can_be_left_alone() {
    // as long as the path in the dump, so that it can stand in its place
    let packed =
        std::fs::File::open(testdumps().join("mixed-10.0.15.dmp.gz")).expect("it is there");
    let mut core = Vec::new();
    std::io::Read::read_to_end(&mut flate2::read::GzDecoder::new(packed), &mut core)
        .expect("whole");
    let name = "Scenarios";
    let file = format!("/{name}.dll\0");
    let end = core.windows(file.len()).position(|w| w == file.as_bytes());
    let end = end.expect("the list of mapped files names it");
    let at = core[..end]
        .iter()
        .rposition(|b| *b == 0)
        .expect("a name before it")
        + 1;
    let beside = format!("/tmp/at{:09}", std::process::id());
    assert_eq!(beside.len(), end - at);
    std::fs::create_dir_all(&beside).expect("the folder for temporary files is writable");
    std::fs::write(format!("{beside}/{name}.pdb"), symbols_of(RELEASE)).expect("as above");
    core[at..at + beside.len()].copy_from_slice(beside.as_bytes());
    let dump = Path::new(env!("CARGO_TARGET_TMPDIR")).join("beside.dmp");
    std::fs::write(&dump, core).expect("the target folder is writable");
    let dump = dump.to_str().expect("a path");
    let (with, without) = (
        run(dump, &["--all"]),
        run(dump, &["--all", "--no-mapped-files"]),
    );
    std::fs::remove_dir_all(&beside).expect("it was made above");
    assert!(with.contains(".cs:"), "{with}");
    assert!(!without.contains(".cs:"), "{without}");
    assert!(
        without.contains("Scenarios.pdb with the identifier"),
        "{without}"
    );
}
