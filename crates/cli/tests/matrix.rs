//! Which dumps can be read, and what of them: every dump of the repository, and of a folder named by
//! `ASYNCTRIAGE_DUMPS` (`SET/NAME.KIND.dmp`, at any depth), against what `matrix.json` says was measured.
//!
//! `cargo xtask matrix DIR` measures anew and writes that file.

use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Exit status of a report, and of a dump that is refused with its reason.
const WRITTEN: i32 = 0;
const REFUSED: [i32; 2] = [3, 4];

fn here() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// Runs the program on a dump. What it shows: the folder and the name, container and kind of the file, system and
/// processor, version and garbage collector as far as known, figures, the parts of the report that lack something, and
/// why the dump was refused.
///
/// # Panics
/// When it neither reports nor says by name why it refuses.
fn measure(set: &str, file: &Path) -> Value {
    let output = Command::new(env!("CARGO_BIN_EXE_asynctriage"))
        .arg(file)
        .args(["--format", "json", "--no-mapped-files", "--all"])
        .output()
        .expect("the program starts");
    let code = output.status.code().expect("it ends by itself");
    let said = String::from_utf8_lossy(&output.stderr);
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    let refused = REFUSED.contains(&code).then(|| {
        let first = said.lines().next().unwrap_or_default();
        assert!(first.starts_with("error: "), "{name}: {said}");
        assert!(said.contains("next: "), "{name}: {said}");
        first
            .trim_start_matches("error: ")
            .replace(&*file.to_string_lossy(), &name)
    });
    assert!(
        code == WRITTEN || refused.is_some(),
        "{name}: exit {code}, {said}"
    );
    let report = serde_json::from_slice(&output.stdout).unwrap_or(Value::Null);
    let text =
        |part: &str, field: &str| report[part][field].as_str().unwrap_or_default().to_owned();
    let list = |part: &str| report[part].as_array().cloned().unwrap_or_default();
    let join = |a: String, b: String| format!("{a} {b}").trim().to_owned();
    let chains = list("chains");
    let gaps = list("gaps");
    // symbols lie where a program was built: there nothing is missing
    let is_of_symbols = |g: &&Value| g["why"].as_str().is_some_and(|w| w.starts_with("no lines"));
    let sections = gaps.iter().filter(|g| !is_of_symbols(g));
    let sections: BTreeSet<&str> = sections.filter_map(|g| g["section"].as_str()).collect();
    json!({
        "set": set,
        "dump": name,
        "container": join(text("dump", "format"), text("dump", "kind")),
        "platform": join(text("runtime", "os"), text("runtime", "arch")),
        "runtime": text("runtime", "version"),
        "gc": text("heap", "gc"),
        "chains": chains.iter().filter_map(|c| c["count"].as_u64()).sum::<u64>(),
        "threads": list("threads").len(),
        "objects": report["heap"]["objects"].as_u64().unwrap_or_default(),
        "gaps": sections,
        "refused": refused,
    })
}

/// The dumps below a folder, by path, with the name of the folder that each lies in.
fn dumps(folder: &Path) -> Vec<(String, PathBuf)> {
    let mut out = Vec::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(folder) = folders.pop() {
        let set = folder
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        for entry in std::fs::read_dir(&folder).expect("the folder can be read") {
            let entry = entry.expect("an entry");
            let name = entry.file_name().to_string_lossy().into_owned();
            if entry.file_type().expect("a type").is_dir() {
                folders.push(entry.path());
            } else if name.ends_with(".dmp") || name.ends_with(".dmp.gz") {
                out.push((set.clone(), entry.path()));
            }
        }
    }
    out.sort();
    out
}

fn known() -> Vec<Value> {
    let text = std::fs::read_to_string(here().join("tests/matrix.json")).expect("the data file");
    serde_json::from_str(&text).expect("the data file is well formed")
}

fn of_repository() -> Vec<Value> {
    let folder = here()
        .join("../../testdumps")
        .canonicalize()
        .expect("the folder");
    let all = dumps(&folder).into_iter();
    all.map(|(set, file)| measure(&set, &file)).collect()
}

/// Compares rows with those of the data file; what the file does not know only had to open or be refused by name.
fn compare(rows: &[Value]) {
    let known = known();
    for row in rows {
        let fitting = |k: &&Value| (&k["set"], &k["dump"]) == (&row["set"], &row["dump"]);
        if let Some(known) = known.iter().find(fitting) {
            assert_eq!(row, known);
        }
    }
}

#[test]
fn dumps_of_the_repository_give_what_was_measured() {
    let rows = of_repository();
    let names = |rows: &[Value]| -> BTreeSet<String> {
        let names = rows.iter().filter_map(|r| r["dump"].as_str());
        names.map(str::to_owned).collect()
    };
    let sets: BTreeSet<&str> = rows.iter().filter_map(|r| r["set"].as_str()).collect();
    let of_here = |r: &Value| r["set"].as_str().is_some_and(|set| sets.contains(set));
    let listed: Vec<Value> = known().into_iter().filter(of_here).collect();
    assert_eq!(names(&rows), names(&listed), "run `cargo xtask matrix DIR`");
    compare(&rows);
}

#[test]
fn dumps_of_a_folder_open_or_are_refused_by_name() {
    let Some(folder) = std::env::var_os("ASYNCTRIAGE_DUMPS").map(PathBuf::from) else {
        println!("skipped: ASYNCTRIAGE_DUMPS names no folder with dumps");
        return;
    };
    let mut rows: Vec<Value> = dumps(&folder)
        .iter()
        .map(|(set, file)| measure(set, file))
        .collect();
    assert!(!rows.is_empty(), "{} holds no dumps", folder.display());
    let Some(to) = std::env::var_os("ASYNCTRIAGE_MATRIX") else {
        return compare(&rows);
    };
    rows.extend(of_repository());
    let lines: Vec<String> = rows.iter().map(Value::to_string).collect();
    std::fs::write(to, format!("[\n{}\n]\n", lines.join(",\n"))).expect("the file can be written");
}
