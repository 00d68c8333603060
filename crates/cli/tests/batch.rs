//! `asynctriage batch` over real dumps, and the queries of `runbooks/fleet` over its tables.

use asynctriage_fleet::{Origin, Store};
use asynctriage_report::{Finding, FindingKind, OutgoingCall, Report, Request, Severity};
use serde_json::json;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const DUMPS: [&str; 4] = [
    "semaphore-10.0.15",
    "semaphore-win-10.0.15",
    "locks-10.0.15",
    "shop-10.0.15",
];

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn run(args: &[&str], folder: &Path) -> Output {
    Command::new(env!("CARGO_BIN_EXE_asynctriage"))
        .args(args)
        .current_dir(folder)
        .output()
        .expect("the program runs")
}

/// Four dumps, one of them twice, one that is cut and one file that is none.
fn dumps() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let copy = |name: &str, to: &str| {
        let from = repository().join(format!("testdumps/{name}.dmp.gz"));
        fs::copy(from, folder.path().join(to)).expect("a copy");
    };
    fs::create_dir(folder.path().join("in")).expect("a folder");
    for name in DUMPS {
        copy(name, &format!("in/{name}.dmp.gz"));
    }
    copy("locks-10.0.15", "in/again.dmp.gz");
    fs::write(folder.path().join("in/broken.dmp"), "MDMP and no more").expect("a file");
    fs::write(folder.path().join("in/truth.json"), "{}").expect("a file");
    folder
}

/// The rows of a table, from the lines.
fn rows(out: &Path, table: &str) -> Vec<serde_json::Value> {
    let pattern = out.join(format!("ndjson/{table}/*/*/*.ndjson"));
    let files = glob::glob(&pattern.to_string_lossy()).expect("a pattern");
    let texts = files.map(|f| fs::read_to_string(f.expect("a file")).expect("a text"));
    texts
        .flat_map(|t| t.lines().map(str::to_owned).collect::<Vec<_>>())
        .map(|l| serde_json::from_str(&l).expect("a row"))
        .collect()
}

fn files(out: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let pattern = out.join("**/*.*");
    let files = glob::glob(&pattern.to_string_lossy())
        .expect("a pattern")
        .flatten();
    files
        .filter(|f| f.is_file() && f.extension().is_some_and(|e| e != "parquet"))
        .map(|f| (f.clone(), fs::read(f).expect("a file")))
        .collect()
}

#[test]
fn one_bad_dump_stops_nothing_and_what_is_done_stays() {
    let folder = dumps();
    let out = folder.path().join("out");
    let first = run(
        &["batch", "in", "-o", "out", "--width", "120"],
        folder.path(),
    );
    assert!(
        first.status.success(),
        "{}",
        String::from_utf8_lossy(&first.stderr)
    );
    let said = String::from_utf8(first.stdout).expect("UTF-8");
    assert!(said.starts_with("4 dumps read, 1 refused.\n"), "{said}");
    assert!(
        said.contains("in/broken.dmp") && said.contains("SemaphoreSlim"),
        "{said}"
    );
    let dumps = rows(&out, "dumps");
    assert_eq!(dumps.len(), 5, "the copy has no row of its own");
    let refused: Vec<_> = dumps.iter().filter(|d| d["status"] == "refused").collect();
    assert_eq!(refused[0]["path"], "in/broken.dmp");
    assert!(
        refused[0]["error"]
            .as_str()
            .is_some_and(|e| e.contains("in/broken.dmp") || e.contains("broken"))
    );
    assert!(!rows(&out, "chains").is_empty() && !rows(&out, "findings").is_empty());
    assert!(!rows(&out, "waits").is_empty());

    // all of it is done: the second run reads nothing, and takes no notice of a new time of a file
    let before = files(&out);
    let touched = fs::File::options()
        .append(true)
        .open(folder.path().join("in/locks-10.0.15.dmp.gz"));
    let now = std::time::SystemTime::now();
    touched.and_then(|f| f.set_modified(now)).expect("a time");
    let second = run(
        &["batch", "in/*.dmp*", "-o", "out", "--width", "120"],
        folder.path(),
    );
    assert!(second.status.success());
    let after = files(&out);
    let changed: Vec<_> = after
        .iter()
        .filter(|(f, bytes)| before.get(*f) != Some(bytes))
        .map(|(f, _)| f.file_name().expect("a name"))
        .collect();
    assert!(changed.is_empty(), "{changed:?}");
}

#[test]
fn parts_together_read_what_one_run_reads() {
    let folder = dumps();
    for part in ["0/3", "1/3", "2/3"] {
        let args = ["batch", "in", "-o", "parts", "--shard", part, "--jobs", "1"];
        assert!(run(&args, folder.path()).status.success());
    }
    assert!(
        run(&["batch", "in", "-o", "one"], folder.path())
            .status
            .success()
    );
    for table in ["dumps", "chains", "findings", "requests", "calls", "waits"] {
        let sorted = |out: &str| {
            let mut rows = rows(&folder.path().join(out), table);
            for row in &mut rows {
                for own in ["shard", "seconds", "path", "modified_ns"] {
                    row.as_object_mut().expect("an object").remove(own);
                }
            }
            let mut rows: Vec<String> = rows.iter().map(ToString::to_string).collect();
            rows.sort();
            rows
        };
        assert_eq!(sorted("parts"), sorted("one"), "{table}");
    }
}

#[test]
fn a_list_names_dumps_and_what_is_not_there_is_said() {
    let folder = dumps();
    fs::write(
        folder.path().join("list"),
        "in/locks-10.0.15.dmp.gz\n\nin/sem*win*\n",
    )
    .expect("a file");
    let listed = run(
        &["batch", "--list", "list", "-o", "out", "--no-parquet"],
        folder.path(),
    );
    assert!(listed.status.success());
    assert_eq!(rows(&folder.path().join("out"), "dumps").len(), 2);
    assert!(!folder.path().join("out/parquet").exists());
    let missing = run(&["batch", "in/none.dmp", "-o", "other"], folder.path());
    assert_eq!(missing.status.code(), Some(3));
    assert!(!folder.path().join("other").exists());
}

/// A Python that has DuckDB; says that the test is skipped where there is none.
#[expect(clippy::print_stdout, reason = "says that a test is skipped")]
fn python() -> Option<PathBuf> {
    let named = std::env::var_os("ASYNCTRIAGE_PYTHON").map(PathBuf::from);
    let python = named.unwrap_or_else(|| "python3".into());
    let has_it = Command::new(&python)
        .args(["-c", "import duckdb"])
        .output()
        .is_ok_and(|o| o.status.success());
    if !has_it {
        println!(
            "skipped: {} has no duckdb, and ASYNCTRIAGE_PYTHON names none that has",
            python.display()
        );
    }
    has_it.then_some(python)
}

/// The rows of a query of `runbooks/fleet` over the tables in `out`.
fn query(python: &Path, out: &Path, name: &str) -> Vec<Vec<serde_json::Value>> {
    let script = "\
import duckdb, json, sys
db = duckdb.connect()
for file in sys.argv[1:-1]:
    db.execute(open(file).read())
print(json.dumps(db.execute(open(sys.argv[-1]).read()).fetchall(), default=str))";
    let queries = repository()
        .join("runbooks/fleet")
        .canonicalize()
        .expect("the queries");
    let output = Command::new(python)
        .args(["-c", script])
        .arg(queries.join("views.sql"))
        .arg(queries.join(name))
        .current_dir(out)
        .output()
        .expect("Python runs");
    assert!(
        output.status.success(),
        "{name}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    serde_json::from_slice(&output.stdout).expect("rows")
}

#[test]
fn queries_run_over_real_dumps() {
    let Some(python) = python() else { return };
    let folder = dumps();
    let out = folder.path().join("out");
    assert!(
        run(&["batch", "in", "-o", "out"], folder.path())
            .status
            .success()
    );
    let signatures = query(&python, &out, "signatures.sql");
    let worse = rows(&out, "findings")
        .iter()
        .filter(|f| f["severity"] != "info")
        .count() as u64;
    let common = Store::open(&out, (0, 1)).and_then(|s| s.common());
    let common = common.expect("findings");
    let known: BTreeMap<&str, u64> = common
        .signatures
        .iter()
        .map(|s| (s.signature.as_str(), s.dumps))
        .collect();
    assert!(worse > 0 && signatures.len() == known.len());
    for row in &signatures {
        let signature = row[0].as_str().expect("a signature");
        assert_eq!(known.get(signature).copied(), row[2].as_u64());
    }
    assert!(
        query(&python, &out, "new.sql").is_empty(),
        "one release of each"
    );
    let asked: usize = query(&python, &out, "dependencies.sql").len();
    assert_eq!(asked > 0, !rows(&out, "calls").is_empty());
}

/// A request with ids that end in the given digits.
fn request(trace: u8, span: u8, parent: Option<u8>, calls: &[u8]) -> Request {
    let id = |n: u8| format!("{n:032x}");
    let call = |span: &u8| OutgoingCall {
        text: "GET http://next".into(),
        server: "http://next".into(),
        trace_id: Some(id(trace)),
        span_id: Some(id(*span)),
        object: None,
    };
    Request {
        id: format!("R{span}"),
        method: "GET".into(),
        path: "/x".into(),
        trace_id: Some(id(trace)),
        span_id: Some(id(span)),
        parent_span_id: parent.map(id),
        calls: calls.iter().map(call).collect(),
        ..Request::default()
    }
}

#[test]
fn queries_follow_requests_and_tell_what_a_release_brought() {
    let Some(python) = python() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let store = Store::open(folder.path(), (0, 1)).expect("a store");
    let put = |id: &str,
               service: &str,
               release: &str,
               day: &str,
               requests: Vec<Request>,
               found: &[&str]| {
        let mut report = Report::default();
        report.process.entry_assembly = Some(service.into());
        report.process.entry_version = Some(release.into());
        report.process.container = Some(format!("pod-{id}"));
        report.dump.time = Some(format!("{day}T00:00:00Z"));
        report.requests = requests;
        report
            .chains
            .push(asynctriage_report::ChainGroup::default());
        report.threads.push(asynctriage_report::Thread {
            waits_on: Some(asynctriage_report::ObjectRef::default()),
            ..asynctriage_report::Thread::default()
        });
        for signature in found {
            let mut finding = Finding::new(FindingKind::Bottleneck, Severity::Warning, "title");
            finding.signature = (*signature).into();
            report.findings.push(finding);
        }
        let origin = Origin {
            id: id.into(),
            ..Origin::default()
        };
        store.put(&origin, &report, None).expect("rows");
    };
    // trace 1 goes through all three, trace 2 begins in the middle and fans out, trace 3 calls what no dump shows
    put(
        "a",
        "Gate",
        "1.0",
        "2026-01-01",
        vec![request(1, 10, None, &[11]), request(3, 30, None, &[31])],
        &["old", "both"],
    );
    put(
        "b",
        "Mid",
        "1.0",
        "2026-01-01",
        vec![
            request(1, 12, Some(11), &[13]),
            request(2, 20, None, &[21, 22]),
        ],
        &[],
    );
    put(
        "c",
        "Leaf",
        "1.0",
        "2026-01-01",
        vec![
            request(1, 14, Some(13), &[]),
            request(2, 23, Some(21), &[]),
            request(2, 24, Some(22), &[]),
        ],
        &[],
    );
    put(
        "d",
        "Gate",
        "1.1",
        "2026-01-02",
        Vec::new(),
        &["both", "fresh"],
    );
    put("e", "Gate", "1.1", "2026-01-03", Vec::new(), &["fresh"]);
    store.pack().expect("Parquet");
    let ways: Vec<_> = query(&python, folder.path(), "paths.sql")
        .iter()
        .map(|row| json!([row[1], row[3]]))
        .collect();
    let two = "Mid GET /x -> Leaf GET /x".to_owned();
    let three = "Gate GET /x -> Mid GET /x -> Leaf GET /x".to_owned();
    assert_eq!(json!(ways), json!([[3, three], [2, two], [2, two]]));
    let new = query(&python, folder.path(), "new.sql");
    let new: Vec<_> = new
        .iter()
        .map(|r| json!([r[0], r[1], r[2], r[3]]))
        .collect();
    assert_eq!(json!(new), json!([["Gate", "1.1", "fresh", 2]]));
    let signatures = query(&python, folder.path(), "signatures.sql");
    let pods: Vec<_> = signatures.iter().map(|r| json!([r[0], r[3]])).collect();
    assert_eq!(json!(pods), json!([["both", 2], ["fresh", 2], ["old", 1]]));
    assert_eq!(query(&python, folder.path(), "dependencies.sql")[0][1], 5);
}

/// The name of the folder with the dumps of whole scenarios, in the environment.
const SCENARIOS: &str = "ASYNCTRIAGE_DUMPS";

#[test]
fn the_ways_of_an_incident_are_those_that_join_finds() {
    let Some(python) = python() else { return };
    let services = std::env::var_os(SCENARIOS).map(|d| PathBuf::from(d).join("services-11.0.0"));
    let Some(services) = services.filter(|s| s.is_dir()) else {
        println!("skipped: {SCENARIOS} names no folder with services-11.0.0");
        return;
    };
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().join("out");
    let named = services.to_string_lossy();
    assert!(
        run(&["batch", &named, "-o", "out"], folder.path())
            .status
            .success()
    );
    let ways = query(&python, &out, "paths.sql");
    let dumps = ["gateway", "orders", "stock"]
        .map(|n| services.join(format!("{n}.heap.dmp")).display().to_string());
    let mut args = vec!["join", "--format", "json"];
    args.extend(dumps.iter().map(String::as_str));
    let joined = run(&args, folder.path());
    let joined: serde_json::Value = serde_json::from_slice(&joined.stdout).expect("JSON");
    let paths = joined["paths"].as_array().expect("paths");
    let mut found: Vec<_> = ways
        .iter()
        .map(|w| (w[0].to_string(), w[1].as_u64()))
        .collect();
    let hops = |p: &serde_json::Value| p["hops"].as_array().map(|h| h.len() as u64);
    let mut expected: Vec<_> = paths
        .iter()
        .map(|p| (p["trace_id"].to_string(), hops(p)))
        .collect();
    found.sort();
    expected.sort();
    assert_eq!((found.len(), &found), (8, &expected));
}
