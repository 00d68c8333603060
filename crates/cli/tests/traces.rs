//! The real recordings of the repository: what the program says of them must be what is known of them.

use serde_json::{Map, Value};
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn testdumps() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdumps")
}

fn run(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_asynctriage"))
        .arg("trace")
        .args(args)
        .current_dir(testdumps())
        .env_remove("CLICOLOR_FORCE")
        .env("COLUMNS", "100")
        .output()
        .expect("the program starts")
}

fn shown(args: &[&str]) -> String {
    let output = run(args);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{args:?}: {errors}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn report(file: &str) -> Value {
    let text = shown(&[
        file,
        "--markers",
        "Asynctriage-Markers",
        "--format",
        "json",
        "--all",
    ]);
    serde_json::from_str(&text).expect("a report")
}

fn recordings() -> Vec<String> {
    let entries = std::fs::read_dir(testdumps()).expect("the repository has its recordings");
    let names = entries.filter_map(|e| e.ok()?.file_name().into_string().ok());
    let mut all: Vec<String> = names
        .filter_map(|n| n.strip_suffix(".nettrace.gz").map(str::to_owned))
        .collect();
    all.sort();
    assert!(all.len() >= 4, "some recordings are missing: {all:?}");
    all
}

/// What the truth has, the report must have; chains and flags in any order, and of chains only the keys that the truth
/// has.
fn compare(at: &str, truth: &Value, report: &Value) {
    match (truth, report) {
        (Value::Object(truth), Value::Object(report)) if is_tree(at) => {
            for (key, value) in truth {
                let inner = format!("{at}.{key}");
                compare(&inner, value, report.get(key).unwrap_or(&Value::Null));
            }
        }
        (Value::Array(truth), Value::Array(report)) => {
            assert_eq!(sorted(truth), sorted(report), "{at}");
        }
        _ => assert_eq!(truth, report, "{at}"),
    }
}

/// Objects that may have more keys than the truth; all others are compared as wholes.
fn is_tree(at: &str) -> bool {
    ["", ".container", ".async", ".tpl"].contains(&at)
}

fn sorted(list: &[Value]) -> Vec<String> {
    const OF_CHAIN: [&str; 5] = ["family", "state", "count", "frames", "names"];
    let mut texts: Vec<String> = list
        .iter()
        .map(|item| match item {
            Value::Object(all) => {
                let kept = all.iter().filter(|(k, _)| OF_CHAIN.contains(&k.as_str()));
                let kept: Map<String, Value> = kept.map(|(k, v)| (k.clone(), v.clone())).collect();
                Value::Object(kept).to_string()
            }
            other => other.to_string(),
        })
        .collect();
    texts.sort();
    texts
}

fn check(folder: &Path, name: &str) {
    let truth = std::fs::read_to_string(folder.join(format!("{name}.truth.json")))
        .expect("each recording has its truth");
    let truth: Value = serde_json::from_str(&truth).expect("the truth is well formed");
    let file = folder.join(format!("{name}.nettrace.gz"));
    compare("", &truth, &report(file.to_str().expect("a path")));
}

#[test]
fn every_recording_shows_what_is_known_of_it() {
    for name in recordings() {
        check(&testdumps(), &name);
    }
}

#[test]
fn every_recording_reads_well() {
    for name in recordings() {
        let text = shown(&[
            &format!("{name}.nettrace.gz"),
            "--markers",
            "Asynctriage-Markers",
        ]);
        insta::assert_snapshot!(format!("trace_{name}"), text);
    }
}

#[test]
fn json_and_details() {
    let file = "norundown-runtimeasync-11.0.0.nettrace.gz";
    insta::assert_snapshot!("trace_json", shown(&[file, "--format", "json"]));
    let file = "operations-runtimeasync-11.0.0.nettrace.gz";
    insta::assert_snapshot!("trace_verbose", shown(&[file, "-v"]));
}

#[test]
fn records_one_by_one() {
    let file = "operations-runtimeasync-11.0.0.nettrace.gz";
    let text = shown(&[file, "--records"]);
    assert_eq!(text.lines().count(), 1_805);
    let first: Vec<&str> = text.lines().take(12).collect();
    insta::assert_snapshot!("trace_records", first.join("\n"));
}

/// Each statement of the report names its record; that record says the same.
#[test]
fn statements_can_be_checked_with_the_records() {
    let file = "http-mixed-11.0.0.nettrace.gz";
    let rows = shown(&[file, "--records", "--format", "json"]);
    let mut by_place: HashMap<(String, u64), Value> = HashMap::new();
    for row in rows.lines() {
        let row: Value = serde_json::from_str(row).expect("a row");
        let batch = row["batch"].as_str().expect("an offset").to_owned();
        by_place.insert((batch, row["index"].as_u64().expect("a number")), row);
    }
    let report = report(file);
    let mut checked = 0;
    for chain in report["chains"].as_array().expect("chains") {
        for member in chain["members"].as_array().expect("members") {
            let kinds = [
                ("created", "Create"),
                ("resumed", "Resume"),
                ("suspended", "Suspend"),
            ];
            for (moment, kind) in kinds {
                let Some(moment) = member.get(moment) else {
                    continue;
                };
                let place = &moment["record"];
                let batch = place["batch"].as_str().expect("an offset").to_owned();
                let row = &by_place[&(batch, place["index"].as_u64().expect("a number"))];
                assert_eq!(row["ticks"], moment["ticks"]);
                assert_eq!(row["os_thread"], moment["os_thread"]);
                assert!(row["kind"].as_str().expect("a kind").starts_with(kind));
                if kind != "Suspend" {
                    assert_eq!(row["dispatcher"], member["dispatcher"]);
                }
                checked += 1;
            }
        }
    }
    assert!(checked > 60, "{checked}");
}

#[test]
fn the_file_is_named_by_its_hash() {
    let file = "forever-runtimeasync-11.0.0.nettrace.gz";
    let bytes = std::fs::read(testdumps().join(file)).expect("it is there");
    let hash: String = Sha256::digest(bytes)
        .iter()
        .map(|b| format!("{b:02x}"))
        .collect();
    assert_eq!(report(file)["sha256"], hash);
    assert!(shown(&[file, "-v"]).contains(&format!("sha256 {hash}")));
}

/// Recordings with a dump of the same process, taken while all waited.
const JOINED: [&str; 2] = ["chain-11.0.0", "semaphore-norundown-11.0.0"];

fn joined(recording: &str, dump: &str) -> Value {
    let recording = format!("joined/{recording}.nettrace.gz");
    let dump = format!("joined/{dump}.dmp.gz");
    let text = shown(&[&recording, "--dump", &dump, "--format", "json"]);
    serde_json::from_str(&text).expect("a report")
}

/// Names of the application's frames, of all chains in the recording; and how many chains have each list.
fn own_frames(report: &Value) -> Vec<(u64, Vec<String>)> {
    let chains = report["chains"].as_array().expect("chains").iter();
    let mut all: Vec<_> = chains
        .map(|chain| {
            let frames = chain["frames"].as_array().expect("frames").iter();
            let names = frames.filter_map(|f| f["method"].as_str().map(str::to_owned));
            let own = names.filter(|n| n.starts_with("Scenarios."));
            (chain["count"].as_u64().expect("a number"), own.collect())
        })
        .collect();
    all.sort();
    all
}

#[test]
fn recordings_are_joined_with_dumps_of_the_same_process() {
    for name in JOINED {
        let path = testdumps().join(format!("joined/{name}.truth.json"));
        let truth = std::fs::read_to_string(path).expect("each pair has its truth");
        let truth: Value = serde_json::from_str(&truth).expect("the truth is well formed");
        let chains = truth["chains"].as_array().expect("chains").iter();
        let mut expected: Vec<(u64, Vec<String>)> = chains
            .map(|chain| {
                let frames = chain["frames"].as_array().expect("frames").iter();
                let names = frames.filter_map(|f| f.as_str()?.split('@').next());
                let count = chain["count"].as_u64().expect("a number");
                (count, names.map(str::to_owned).collect())
            })
            .collect();
        expected.sort();
        let report = joined(name, name);
        assert_eq!(own_frames(&report), expected, "{name}");
        let all: u64 = expected.iter().map(|(count, _)| count).sum();
        let join = &report["join"];
        for key in ["joined", "frames_equal"] {
            assert_eq!(join[key], all, "{name}: {key}");
        }
        for key in ["frames_differ", "only_in_dump", "only_in_recording"] {
            assert_eq!(join[key], 0, "{name}: {key}");
        }
        let frames = report["chains"][0]["frames"].as_array().expect("frames");
        let of_dump = frames.iter().filter(|f| f["from_dump"] == true).count();
        let is_unnamed = name.contains("norundown");
        assert_eq!(
            of_dump > 0,
            is_unnamed,
            "{name}: {of_dump} names of the dump"
        );
    }
}

#[test]
fn a_join_reads_well() {
    for name in JOINED {
        let (recording, dump) = (
            format!("joined/{name}.nettrace.gz"),
            format!("joined/{name}.dmp.gz"),
        );
        let text = shown(&[&recording, "--dump", &dump, "--symbols", "."]);
        insta::assert_snapshot!(format!("trace_joined_{name}"), text);
    }
}

#[test]
fn a_dump_of_another_process_is_refused() {
    let [chain, semaphore] = JOINED;
    let report = joined(semaphore, chain);
    let why = report["join"]["refused"].as_str().expect("it is refused");
    assert!(why.contains("the dump is of process"), "{why}");
    assert_eq!(report["join"]["joined"], 0);
    let frames = report["chains"][0]["frames"].as_array().expect("frames");
    assert!(frames.iter().all(|f| f.get("from_dump").is_none()));
    let unnamed = frames
        .iter()
        .filter(|f| f["address"] != "0x0000000000000000");
    for frame in unnamed {
        let why = frame["unresolved"].as_str().expect("a reason");
        assert!(why.contains("--dump"), "{why}");
    }
}

/// The program counts its operations and ends with some that never go on: what is proved to wait are those, or nothing
/// is proved; the others had moved on in records that were not handed over.
#[test]
fn no_more_waits_are_listed_than_the_program_has() {
    let folder = testdumps().join("count");
    let truth = std::fs::read_to_string(folder.join("truth.json")).expect("the truth");
    let truth: Map<String, Value> = serde_json::from_str(&truth).expect("well formed");
    assert_eq!(truth.len(), 3);
    for (name, want) in &truth {
        let report = report(&format!("count/{name}.nettrace.gz"));
        let horizon = &report["async"]["at_horizon"];
        for key in ["waiting", "state_unknown"] {
            assert_eq!(horizon[key], want[key], "{name}: {key}");
        }
        assert!(
            horizon["waiting"].as_u64() <= want["stuck"].as_u64(),
            "{name}"
        );
        let attached = want.get("attached").unwrap_or(&Value::Null);
        assert_eq!(&report["completeness"]["attached"], attached, "{name}");
    }
}

#[test]
fn markers_are_as_asked_for_or_strict_says_no() {
    let strict = |markers: &str, expect: &[&str]| {
        let file = "operations-runtimeasync-11.0.0.nettrace.gz";
        run(&[&[file, "--markers", markers, "--strict"], expect].concat())
    };
    let exact = ["--expect", "begin,1,2,3,4,end"];
    let output = strict("Asynctriage-Markers", &exact);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let output = strict("Asynctriage-Markers", &["--expect", "begin,1,2,3,end"]);
    assert_eq!(output.status.code(), Some(5));
    let output = strict("Asynctriage-Marker", &[]);
    assert_eq!(output.status.code(), Some(5));
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(
        text.contains("the recording has Asynctriage-Markers"),
        "{text}"
    );
    let output = strict("Asynctriage-Markers:Begin=begin,Fin=end", &[]);
    assert_eq!(output.status.code(), Some(5));
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("no event Fin"), "{text}");
}

#[test]
fn a_time_line_is_a_page_of_its_own_and_never_overwrites() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("timelines");
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).expect("the target folder is writable");
    let page = folder.join("page.html");
    let page_name = page.to_str().expect("a path");
    let file = "operations-runtimeasync-11.0.0.nettrace.gz";
    let draw = |more: &[&str]| run(&[&[file, "--timeline", page_name], more].concat());
    let read = || std::fs::read_to_string(&page).expect("the page is there");

    let output = draw(&[]);
    assert!(output.status.success());
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("Figures"), "the report is printed as well");
    let drawn = read();
    assert!(drawn.starts_with("<!doctype html>") && drawn.ends_with("</html>\n"));
    assert!(drawn.contains("1 operation, 200 activations."), "{drawn}");
    for outside in ["http:", "https:", "src=", "@import"] {
        assert!(!drawn.contains(outside), "it fetches {outside}");
    }

    std::fs::write(&page, "mine").expect("writable");
    assert_eq!(draw(&[]).status.code(), Some(2));
    assert_eq!(read(), "mine");
    assert!(draw(&["--force"]).status.success());
    assert_eq!(read(), drawn);

    let copy = folder.join("copy.nettrace.gz");
    std::fs::copy(testdumps().join(file), &copy).expect("writable");
    let copy = copy.to_str().expect("a path");
    let over_itself = run(&[copy, "--timeline", copy, "--force"]);
    assert_eq!(over_itself.status.code(), Some(2));
}

#[test]
fn exports_are_what_other_tools_read() {
    let export = |form: &str| {
        shown(&[
            "operations-runtimeasync-11.0.0.nettrace.gz",
            "--export",
            form,
            "--markers",
            "Asynctriage-Markers",
        ])
    };
    let chrome: Value = serde_json::from_str(&export("chrome")).expect("JSON");
    let events = chrome["traceEvents"].as_array().expect("a list");
    let of = |phase: &str| events.iter().filter(|e| e["ph"] == phase).count();
    assert_eq!(
        (of("X"), of("s"), of("f")),
        (200, 199, 199),
        "activations and what lies between"
    );
    assert_eq!(
        (of("b"), of("e")),
        (1, 0),
        "one operation, which runs at the end"
    );
    assert_eq!(events.iter().filter(|e| e["cat"] == "marker").count(), 600);
    let speedscope: Value = serde_json::from_str(&export("speedscope")).expect("JSON");
    let mut open = 0_i64;
    for event in speedscope["profiles"][0]["events"]
        .as_array()
        .expect("a list")
    {
        open += if event["type"] == "O" { 1 } else { -1 };
        assert!(open >= 0);
    }
    assert_eq!(open, 0);
    let folded = export("folded");
    let ran = folded
        .lines()
        .find(|l| l.starts_with("[ran];"))
        .expect("it ran");
    let (stack, micros) = ran.rsplit_once(' ').expect("a number");
    assert!(
        stack.contains(';') && micros.parse::<u64>().is_ok(),
        "{ran}"
    );
    assert!(folded.contains("[waited];"), "{folded}");
}

#[test]
fn folders_for_modules_are_refused_without_a_dump() {
    let file = "operations-runtimeasync-11.0.0.nettrace.gz";
    let output = run(&[file, "--sysroot", "/"]);
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("add --dump"), "{said}");
}

#[test]
fn other_files_are_refused_by_name() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("no-recordings");
    std::fs::create_dir_all(&folder).expect("the target folder is writable");
    std::fs::write(folder.join("text"), "not a recording\n").expect("writable");
    std::fs::write(folder.join("cut"), "Nettrace\x14\0").expect("writable");
    std::fs::write(folder.join("new"), b"Nettrace\0\0\0\0\x07\0\0\0\0\0\0\0").expect("writable");
    let all: Vec<String> = ["text", "cut", "new", "missing"]
        .map(|name| {
            let output = Command::new(env!("CARGO_BIN_EXE_asynctriage"))
                .args(["trace", name])
                .current_dir(&folder)
                .output()
                .expect("the program starts");
            assert_eq!(output.status.code(), Some(3), "{name}");
            format!("$ {name}\n{}", String::from_utf8_lossy(&output.stderr))
        })
        .to_vec();
    insta::assert_snapshot!("trace_refused", all.join("\n"));
}
