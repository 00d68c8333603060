//! Bundles of evidence: what is exported holds, and whatever is changed in it is found.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn dumps() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdumps")
}

fn run(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_asynctriage"))
        .args(args)
        .current_dir(dumps())
        .env_remove("CLICOLOR_FORCE")
        .output()
        .expect("the program starts")
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).expect("UTF-8")
}

/// Exports into a folder or archive and answers with the seal.
fn export(input: &str, to: &Path, more: &[&str]) -> String {
    let to = to.to_str().expect("UTF-8");
    let output = run(&[&["export", input, "-o", to], more].concat());
    assert!(output.status.success(), "{input}: {output:?}");
    let said = stdout(&output);
    let seal = said.lines().find_map(|l| l.strip_prefix("seal "));
    seal.expect("the seal").to_owned()
}

fn verify(bundle: &Path, more: &[&str]) -> (Option<i32>, serde_json::Value) {
    let bundle = bundle.to_str().expect("UTF-8");
    let output = run(&[&["verify", bundle, "--format", "json"], more].concat());
    let report = serde_json::from_slice(&output.stdout).unwrap_or_default();
    (output.status.code(), report)
}

/// The checks that came out like this.
fn checks(report: &serde_json::Value, state: &str) -> Vec<String> {
    let all = report["checks"].as_array().cloned().unwrap_or_default();
    let of_state = all.iter().filter(|c| c["state"] == state);
    of_state
        .map(|c| format!("{}: {}", c["what"].as_str().unwrap_or_default(), c["why"]))
        .collect()
}

/// All files below a folder.
fn files(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut out = BTreeMap::new();
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            out.extend(files(&path));
        } else {
            out.insert(path.clone(), fs::read(&path).expect("readable"));
        }
    }
    out
}

#[test]
fn what_was_exported_holds_on_every_platform() {
    let folder = tempfile::tempdir().expect("a folder");
    let inputs: [(&str, &[&str]); 7] = [
        (
            "mixed-10.0.15.dmp.gz",
            &["--locals", "--symbols", "Scenarios.pdb"],
        ),
        ("web-11.0.0.dmp.gz", &["--all", "--symbols", "."]),
        ("semaphore-win-10.0.15.dmp.gz", &[]),
        ("chain-arm64-10.0.15.dmp.gz", &[]),
        ("chain-gcore-runtimeasync-11.0.0.dmp.gz", &[]),
        ("canary-10.0.15.dmp.gz", &["--locals", "--show-values"]),
        ("oom-10.0.15.dmp.gz", &["--locals"]),
    ];
    for (dump, more) in inputs {
        let bundle = folder.path().join(dump);
        let seal = export(dump, &bundle, more);
        let (code, report) = verify(&bundle, &["--dump", dump, "--seal", &seal]);
        assert_eq!(checks(&report, "broken"), [""; 0], "{dump}");
        assert_eq!(checks(&report, "not-checked"), [""; 0], "{dump}");
        assert_eq!(
            (code, report["holds"].as_bool()),
            (Some(0), Some(true)),
            "{dump}"
        );
        assert!(bundle.join("trimmed.dmp.gz").is_file(), "{dump}");
    }
    // symbols go with it, so that lines come again where they are not at hand
    let claims = fs::read_to_string(folder.path().join("web-11.0.0.dmp.gz/report.json"));
    assert!(claims.expect("a report").contains("\"line\":"));
    assert!(
        folder
            .path()
            .join("web-11.0.0.dmp.gz/symbols/WebIncident.pdb")
            .is_file()
    );
}

#[test]
fn one_changed_byte_of_any_file_is_found() {
    let folder = tempfile::tempdir().expect("a folder");
    let bundle = folder.path().join("evidence");
    export("semaphore-10.0.15.dmp.gz", &bundle, &[]);
    let all = files(&bundle);
    assert!(all.len() > 12, "{:?}", all.keys());
    for (file, bytes) in &all {
        for at in [0, bytes.len() / 2, bytes.len() - 1] {
            let mut changed = bytes.clone();
            changed[at] ^= 1;
            fs::write(file, &changed).expect("writable");
            let (code, report) = verify(&bundle, &[]);
            let broken = checks(&report, "broken");
            assert_eq!(code, Some(1), "byte {at} of {}: {report}", file.display());
            let name = file.file_name().and_then(|n| n.to_str()).expect("a name");
            assert!(
                broken
                    .iter()
                    .any(|b| b.starts_with(name) || b.starts_with("SHA256SUMS")),
                "{name}: {broken:?}"
            );
        }
        fs::remove_file(file).expect("removable");
        assert_eq!(
            verify(&bundle, &[]).0,
            Some(1),
            "without {}",
            file.display()
        );
        fs::write(file, bytes).expect("writable");
    }
    fs::write(bundle.join("more.txt"), "x").expect("writable");
    assert_eq!(verify(&bundle, &[]).0, Some(1), "a file too many");
    fs::remove_file(bundle.join("more.txt")).expect("removable");
    assert_eq!(verify(&bundle, &[]).0, Some(0), "all is as it was");
}

/// Who changes a file and its hashes is found by the other ways.
#[test]
fn a_report_that_the_dump_does_not_give_is_found() {
    let folder = tempfile::tempdir().expect("a folder");
    let (bundle, other) = (folder.path().join("a"), folder.path().join("b"));
    let seal = export("semaphore-10.0.15.dmp.gz", &bundle, &[]);
    export("chain-10.0.15.dmp.gz", &other, &[]);
    // another dump's bundle is whole, but has another seal
    assert_eq!(verify(&other, &[]).0, Some(0));
    assert_eq!(verify(&other, &["--seal", &seal]).0, Some(1));
    assert_eq!(
        verify(&bundle, &["--dump", "chain-10.0.15.dmp.gz"]).0,
        Some(1)
    );
    // the report of one dump with the small dump of another
    fs::copy(other.join("trimmed.dmp.gz"), bundle.join("trimmed.dmp.gz")).expect("copied");
    let (_, report) = verify(&bundle, &[]);
    let broken = checks(&report, "broken").join("\n");
    assert!(
        broken.contains("the trimmed dump gives the same outputs"),
        "{broken}"
    );
}

#[test]
fn archives_hold_the_same_and_are_found_changed() {
    let folder = tempfile::tempdir().expect("a folder");
    for name in ["e.tar", "e.tar.gz", "e.tar.zst"] {
        let bundle = folder.path().join(name);
        let seal = export("chain-10.0.15.dmp.gz", &bundle, &[]);
        let (code, report) = verify(&bundle, &["--seal", &seal]);
        assert_eq!(code, Some(0), "{name}: {report}");
        let bytes = fs::read(&bundle).expect("readable");
        for part in 1..8 {
            let mut changed = bytes.clone();
            changed[bytes.len() * part / 8] ^= 0x10;
            fs::write(&bundle, &changed).expect("writable");
            let code = verify(&bundle, &[]).0;
            assert!(matches!(code, Some(1 | 3)), "{name}, {part}: {code:?}");
        }
        let is_kept = run(&[
            "export",
            "chain-10.0.15.dmp.gz",
            "-o",
            bundle.to_str().expect("UTF-8"),
        ]);
        assert_eq!(
            is_kept.status.code(),
            Some(2),
            "{name} is replaced with --force only"
        );
    }
}

#[test]
fn recordings_are_evidence_too() {
    let folder = tempfile::tempdir().expect("a folder");
    let recording = "forever-runtimeasync-11.0.0.nettrace.gz";
    let bundle = folder.path().join("evidence");
    let seal = export(recording, &bundle, &[]);
    let (code, report) = verify(&bundle, &["--dump", recording, "--seal", &seal]);
    assert_eq!(checks(&report, "broken"), [""; 0]);
    assert_eq!((code, checks(&report, "not-checked").len()), (Some(0), 0));
    // a batch's hash is that of its bytes
    let batches = fs::read_to_string(bundle.join("batches.jsonl")).expect("batches");
    let batch: serde_json::Value =
        serde_json::from_str(batches.lines().last().expect("a batch")).expect("JSON");
    let at = batch["batch"].as_str().and_then(|a| a.strip_prefix("0x"));
    let at = usize::from_str_radix(at.expect("a place"), 16).expect("a number");
    let length = usize::try_from(batch["bytes"].as_u64().expect("a size")).expect("small");
    let mut plain = Vec::new();
    let packed = fs::File::open(dumps().join(recording)).expect("readable");
    std::io::Read::read_to_end(&mut flate2::read::GzDecoder::new(packed), &mut plain)
        .expect("gzip");
    use sha2::Digest as _;
    let hash = sha2::Sha256::digest(&plain[at..at + length]);
    let hash: String = hash.iter().map(|b| format!("{b:02x}")).collect();
    assert_eq!(batch["sha256"], hash);
    for (file, bytes) in files(&bundle) {
        let mut changed = bytes.clone();
        changed[bytes.len() / 2] ^= 1;
        fs::write(&file, &changed).expect("writable");
        assert_eq!(verify(&bundle, &[]).0, Some(1), "{}", file.display());
        fs::write(&file, bytes).expect("writable");
    }
}

/// What claims say of the bytes is what `show` says of the object.
#[test]
fn claims_name_bytes_and_commands() {
    let folder = tempfile::tempdir().expect("a folder");
    let bundle = folder.path().join("evidence");
    export("semaphore-10.0.15.dmp.gz", &bundle, &[]);
    let read = |name: &str| -> serde_json::Value {
        serde_json::from_slice(&fs::read(bundle.join(name)).expect("readable")).expect("JSON")
    };
    let (claims, report) = (read("claims.json"), read("report.json"));
    let all = claims["claims"].as_array().expect("claims");
    let has = |id: &str| all.iter().any(|c| c["id"] == id);
    for finding in report["findings"].as_array().expect("findings") {
        for evidence in finding["evidence"].as_array().expect("evidence") {
            assert!(has(evidence["id"].as_str().expect("an id")), "{evidence}");
        }
    }
    assert!(has("C1/0") && has("C1/leaf") && has("H1"));
    let frame = &report["chains"][0]["frames"][0];
    let places = claims["places"].as_array().expect("places");
    let place = places.iter().find(|p| p["address"] == frame["address"]);
    let place = place.expect("the frame's object");
    let state = place["fields"].as_array().expect("fields").iter();
    let state = state
        .clone()
        .find(|f| f["name"] == "<>1__state")
        .expect("the state");
    assert_eq!(state["says"], frame["await_index"].to_string());
    let byte = frame["await_index"]
        .as_u64()
        .map(|n| format!("{n:02x} 00 00 00"));
    assert_eq!(state["bytes"].as_str(), byte.as_deref());
    let commands = place["commands"].to_string();
    assert!(
        commands.contains("dumpobj 0x") && commands.contains("dumpasync"),
        "{commands}"
    );
    let slot = places.iter().find(|p| p["kind"] == "slot").expect("a slot");
    assert!(
        slot["bytes"].is_string() && slot["says"].is_string(),
        "{slot}"
    );
}

#[test]
fn a_trimmed_dump_gives_the_same_report() {
    let folder = tempfile::tempdir().expect("a folder");
    for dump in ["mixed-10.0.15.dmp.gz", "locks-win-10.0.15.dmp.gz"] {
        for name in ["small.dmp", "small.dmp.gz"] {
            let small = folder.path().join(name);
            let small = small.to_str().expect("UTF-8");
            let output = run(&["trim", dump, "-o", small, "--force"]);
            assert!(output.status.success(), "{output:?}");
            let report = |of: &str| {
                let output = run(&[of, "--format", "json", "--all", "--locals"]);
                let mut report: serde_json::Value =
                    serde_json::from_slice(&output.stdout).expect("JSON");
                report["dump"] = serde_json::Value::Null;
                report
            };
            assert_eq!(report(small), report(dump), "{dump} as {name}");
        }
    }
    let output = run(&[
        "trim",
        "README.md",
        "-o",
        folder.path().join("x").to_str().expect("UTF-8"),
    ]);
    assert_eq!(output.status.code(), Some(3));
}
