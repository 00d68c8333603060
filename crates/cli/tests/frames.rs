//! Managed frames of every thread against those of another reader, Microsoft's ClrMD 4.2: none may be missing, and none of
//! those that are called exact may be more.

use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A folder with more dumps, as `SET/NAME.KIND.dmp`, and one with their frames, as `SET_NAME.json`.
const DUMPS: &str = "ASYNCTRIAGE_DUMPS";
const FRAMES: &str = "ASYNCTRIAGE_FRAMES";
/// Where both are when nothing names them: `dumps` is unpacked there by whoever has the sets.
const SHARED: &str = "../../../shared/oracle/frames";

/// By thread: instruction pointer, stack pointer and method of each frame, innermost first.
type Frames = BTreeMap<String, Vec<(String, String, String)>>;

fn testdumps() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdumps")
}

fn threads(dump: &Path) -> Vec<Value> {
    let output = Command::new(env!("CARGO_BIN_EXE_asynctriage"))
        .args(["threads", "-v", "--format", "json"])
        .arg(dump)
        .output()
        .expect("the program starts");
    let report: Value = serde_json::from_slice(&output.stdout).expect("a report");
    report["threads"].as_array().expect("threads").clone()
}

/// The last part of a method's name: the two readers write types, arguments and local functions in ways of their own.
fn bare(method: &str) -> String {
    let method = method.split('(').next().unwrap_or_default();
    let method = match (method.find("g__"), method.find('|')) {
        (Some(from), Some(to)) if from < to => &method[from + 3..to],
        _ => method,
    };
    let mut depth = 0_u32;
    let outside = |c: &char| {
        depth += u32::from(*c == '<');
        let outside = depth == 0;
        depth -= u32::from(*c == '>' && depth > 0);
        outside
    };
    let plain: String = method.chars().filter(outside).collect();
    let plain = plain.split(['[', '`']).next().unwrap_or_default();
    let parts = plain.trim_end_matches('.').rsplit('.');
    parts.map(str::to_owned).next().unwrap_or_default()
}

/// What differs, in words.
fn differences(dump: &Path, wanted: &Frames) -> Vec<String> {
    let threads = threads(dump);
    let mut out = Vec::new();
    for (thread, theirs) in wanted {
        let id: u64 = thread.parse().expect("a number");
        let row = threads.iter().find(|t| t["os_id"] == id);
        let frames = row.and_then(|t| t["frames"].as_array()).cloned();
        let frames: Vec<Value> = frames.unwrap_or_default();
        let managed = frames.iter().filter(|f| f["native"] != true);
        let ours: Vec<(u64, String, bool)> = managed
            .map(|f| {
                let address = f["address"].as_str().unwrap_or_default();
                let address = u64::from_str_radix(address.trim_start_matches("0x"), 16);
                let method = bare(f["method"].as_str().unwrap_or_default());
                (
                    address.unwrap_or_default(),
                    method,
                    f["standing"] == "exact",
                )
            })
            .collect();
        let address =
            |text: &String| u64::from_str_radix(text.trim_start_matches("0x"), 16).unwrap_or(0);
        for (ip, _, method) in theirs {
            // of a call out of managed code the two name different instructions
            let same =
                |(at, name, _): &(u64, String, bool)| *at == address(ip) || *name == bare(method);
            if !ours.iter().any(same) {
                out.push(format!(
                    "{}: thread {thread} lacks {method}",
                    dump.display()
                ));
            }
        }
        for (at, name, _) in ours.iter().filter(|(_, _, is_exact)| *is_exact) {
            let same = |(ip, _, method): &(String, String, String)| {
                address(ip) == *at || bare(method) == *name
            };
            if !theirs.iter().any(same) {
                out.push(format!(
                    "{}: thread {thread} has {name} at {at:#x}",
                    dump.display()
                ));
            }
        }
    }
    out
}

fn read(file: &Path) -> Frames {
    let text = std::fs::read(file).expect("the file is there");
    serde_json::from_slice(&text).expect("frames by thread")
}

#[test]
fn frames_of_a_small_dump_are_those_of_another_reader() {
    let wanted = read(&testdumps().join("locks-10.0.15.frames.json"));
    let count: usize = wanted.values().map(Vec::len).sum();
    assert_eq!(count, 27);
    let dump = testdumps().join("locks-10.0.15.dmp.gz");
    assert_eq!(differences(&dump, &wanted), [""; 0]);
}

#[test]
fn frames_of_whole_dumps_are_those_of_another_reader() {
    let Some(dumps) = std::env::var_os(DUMPS).map(PathBuf::from) else {
        println!("skipped: {DUMPS} names no folder with dumps");
        return;
    };
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    let frames = std::env::var_os(FRAMES).map_or_else(|| manifest.join(SHARED), PathBuf::from);
    let Ok(files) = std::fs::read_dir(&frames) else {
        println!("skipped: there is no {}", frames.display());
        return;
    };
    for file in files {
        let file = file.expect("a file").path();
        let stem = file
            .file_stem()
            .and_then(|s| s.to_str())
            .unwrap_or_default();
        let (set, name) = stem.rsplit_once('_').expect("SET_NAME");
        let dump = dumps.join(set).join(format!("{name}.heap.dmp"));
        if !dump.exists() {
            println!("skipped: there is no {}", dump.display());
            continue;
        }
        assert_eq!(differences(&dump, &read(&file)), [""; 0]);
    }
}
