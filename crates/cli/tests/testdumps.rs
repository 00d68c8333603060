//! The real dumps of the repository: what the program finds must be what is known of them.

use serde::Deserialize;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// What is known of a dump, from the program that was dumped.
#[derive(Deserialize)]
struct Truth {
    runtime: String,
    objects: u64,
    chains: Vec<Chain>,
    /// Methods that wait for what nothing can complete.
    #[serde(default)]
    lost: Vec<String>,
}

/// Chains whose frames of the application are these, innermost first, as `Method@await`, or `Method@await+` where that is
/// the least that the await can be.
#[derive(Deserialize)]
struct Chain {
    count: u64,
    leaf: String,
    #[serde(default)]
    root: Option<String>,
    frames: Vec<String>,
}

fn testdumps() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdumps")
}

fn run(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_asynctriage"))
        .args(args)
        .current_dir(testdumps())
        .env_remove("CLICOLOR_FORCE")
        .env("COLUMNS", "100")
        .output()
        .expect("the program starts")
}

fn dumps() -> Vec<String> {
    let entries = std::fs::read_dir(testdumps()).expect("the repository has its dumps");
    let names = entries.filter_map(|e| e.ok()?.file_name().into_string().ok());
    let mut dumps: Vec<String> = names
        .filter_map(|n| n.strip_suffix(".dmp.gz").map(str::to_owned))
        .collect();
    dumps.sort();
    assert!(dumps.len() >= 5, "some dumps are missing: {dumps:?}");
    dumps
}

/// The frames of the application in a group of the report.
fn own_frames(group: &serde_json::Value) -> Vec<String> {
    let frames = group["frames"].as_array().expect("frames");
    let carries = |f: &serde_json::Value| {
        let kind = f["kind"].as_str().unwrap_or_default();
        matches!(kind, "combinator" | "continue-with")
    };
    let own = frames
        .iter()
        .filter(|f| f["is_framework"] != true && !carries(f));
    own.map(|f| {
        let method = f["method"].as_str().expect("method");
        let later = if f["await_index_least"] == true {
            "+"
        } else {
            ""
        };
        f["await_index"]
            .as_u64()
            .map_or_else(|| method.to_owned(), |n| format!("{method}@{n}{later}"))
    })
    .collect()
}

#[test]
fn every_dump_shows_the_chains_that_its_program_told_of() {
    for name in dumps() {
        let truth = std::fs::read_to_string(testdumps().join(format!("{name}.truth.json")))
            .expect("each dump has its truth");
        let truth: Truth = serde_json::from_str(&truth).expect("the truth is well formed");
        let output = run(&[&format!("{name}.dmp.gz"), "--format", "json"]);
        assert!(
            output.status.success(),
            "{name}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        let report: serde_json::Value = serde_json::from_slice(&output.stdout).expect("a report");
        assert_eq!(
            report["runtime"]["version"],
            truth.runtime.as_str(),
            "{name}"
        );
        assert_eq!(report["heap"]["objects"], truth.objects, "{name}");
        assert_eq!(report["heap"]["invalid_objects"], 0, "{name}");
        let mut groups: Vec<&serde_json::Value> = report["chains"]
            .as_array()
            .expect("chains")
            .iter()
            .filter(|g| !own_frames(g).is_empty())
            .collect();
        for chain in &truth.chains {
            let fits = |g: &serde_json::Value| {
                let root = chain
                    .root
                    .as_ref()
                    .is_none_or(|r| g["root"]["text"].as_str().is_some_and(|t| t.contains(r)));
                own_frames(g) == chain.frames && g["leaf"]["kind"] == chain.leaf.as_str() && root
            };
            let found: u64 = groups
                .iter()
                .filter(|g| fits(g))
                .filter_map(|g| g["count"].as_u64())
                .sum();
            assert_eq!(found, chain.count, "{name}: {:?}", chain.frames);
            groups.retain(|g| !fits(g));
        }
        let invented: Vec<_> = groups.iter().map(|g| own_frames(g)).collect();
        assert!(invented.is_empty(), "{name}: {invented:?}");
        assert_eq!(lost(&report), truth.lost, "{name}");
    }
}

/// The methods that findings say wait for ever. None is certain of it: one reference that damage took away looks the same.
fn lost(report: &serde_json::Value) -> Vec<String> {
    let findings = report["findings"].as_array().expect("findings").iter();
    let mut lost: Vec<String> = findings
        .filter(|f| f["kind"] == "never-completes")
        .map(|f| {
            assert_eq!(f["confidence"], "likely");
            let title = f["title"].as_str().expect("title");
            let method = title.split(" in ").nth(1).expect("a method");
            method.split(" for ").next().expect("a method").to_owned()
        })
        .collect();
    lost.sort();
    lost
}

/// The text as a user sees it. The symbol file is given, so that it is the same where the program was built.
#[test]
fn every_dump_reads_well() {
    for name in dumps() {
        let output = run(&[&format!("{name}.dmp.gz"), "--symbols", "."]);
        insta::assert_snapshot!(
            format!("testdump_{name}"),
            String::from_utf8_lossy(&output.stdout)
        );
    }
}

#[test]
fn other_commands_answer_on_a_real_dump() {
    let shown = |args: &[&str]| {
        let output = run(args);
        assert!(
            output.status.success(),
            "{args:?}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    insta::assert_snapshot!(
        "real_threads_win",
        shown(&["threads", "locks-win-10.0.15.dmp.gz"])
    );
    insta::assert_snapshot!("real_tree", shown(&["tree", "semaphore-10.0.15.dmp.gz"]));
    insta::assert_snapshot!(
        "real_heap",
        shown(&["heap", "semaphore-10.0.15.dmp.gz", "--limit", "12"])
    );
    insta::assert_snapshot!(
        "real_tasks",
        shown(&["tasks", "semaphore-10.0.15.dmp.gz", "--limit", "5"])
    );
}

/// Changes a file so that it fails a check of its own.
type Harm = fn(&mut Vec<u8>);

/// The checks of a packed file are said first, are a gap and fail `--strict`, for dumps and recordings.
#[test]
fn packed_files_that_fail_their_own_checks_are_said_to() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let broken = |name: &str, file: &str, harm: Harm| {
        let mut bytes = std::fs::read(testdumps().join(name)).expect("the file");
        harm(&mut bytes);
        let path = folder.join(file);
        std::fs::write(&path, bytes).expect("the target folder is writable");
        path.to_str().expect("a path").to_owned()
    };
    let harms: [(&str, Harm); 4] = [
        ("another checksum or length", |bytes| {
            let at = bytes.len() - 8;
            bytes[at] ^= 1;
        }),
        ("another checksum or length", |bytes| {
            let at = bytes.len() - 1;
            bytes[at] ^= 1;
        }),
        ("ends before its checksum", |bytes| {
            bytes.truncate(bytes.len() - 8);
        }),
        ("goes on behind its end", |bytes| bytes.extend(b"more")),
    ];
    for (said, harm) in harms {
        let dump = broken("semaphore-10.0.15.dmp.gz", "faulty.dmp.gz", harm);
        let text = run(&[&dump, "--strict"]);
        assert_eq!(text.status.code(), Some(5), "{said}");
        let text = String::from_utf8_lossy(&text.stdout).into_owned();
        let first: String = text.lines().take(3).collect();
        assert!(first.contains("DAMAGED") && first.contains(said), "{text}");
        for command in [&[&*dump][..], &["heap", &dump], &["tasks", &dump]] {
            let json = run(&[command, &["--format", "json"]].concat());
            let json: serde_json::Value = serde_json::from_slice(&json.stdout).expect("JSON");
            let gaps = json["gaps"].as_array().expect("gaps");
            let is_said = |gap: &serde_json::Value| {
                gap["section"] == "dump" && gap["why"].as_str().is_some_and(|w| w.contains(said))
            };
            assert!(gaps.iter().any(is_said), "{command:?}: {gaps:?}");
            let findings = json["findings"].as_array().into_iter().flatten();
            let mut certain = findings.filter(|f| f["confidence"] == "certain");
            if said.contains("checksum or length") {
                assert_eq!(certain.next(), None, "bytes of it are wrong");
            }
        }
        let recording = "forever-runtimeasync-11.0.0.nettrace.gz";
        let recording = broken(recording, "faulty.nettrace.gz", harm);
        let trace = run(&["trace", &recording, "--strict"]);
        assert_eq!(trace.status.code(), Some(5));
        let trace = String::from_utf8_lossy(&trace.stdout).into_owned();
        assert!(trace.contains("packed-fault"), "{trace}");
    }
}

/// A dump that was cut off, anywhere, gives a report or one clear error; never a panic.
#[test]
fn cut_dumps_are_used_as_far_as_they_go() {
    let whole = std::fs::read(testdumps().join("chain-10.0.15.dmp.gz")).expect("the dump");
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join("cut.dmp.gz");
    for tenth in 0..10 {
        std::fs::write(&file, &whole[..whole.len() * tenth / 10])
            .expect("the target folder is writable");
        let output = run(&[file.to_str().expect("a path"), "--format", "json"]);
        let code = output.status.code();
        assert!(
            matches!(code, Some(0 | 3 | 4)),
            "cut at {tenth}/10: exit {code:?}"
        );
        if code != Some(0) {
            let errors = String::from_utf8_lossy(&output.stderr);
            assert!(
                errors.starts_with("error: ") && errors.contains("next: "),
                "{errors}"
            );
            assert!(output.stdout.is_empty());
        }
    }
}
