//! The page for browsers in a real browser: it opens, answers to clicks, keys and searches, follows its own links, raises no
//! error and fetches nothing. Skipped by name where no Chromium is found.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest, Sha256};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// What a visitor does; every line that comes out is a failure, but for the last.
const VISIT: &str = include_str!("support/visit.js");

/// A browser of this machine; says that the test is skipped where there is none.
#[expect(clippy::print_stdout, reason = "says that a test is skipped")]
fn browser() -> Option<PathBuf> {
    let named = std::env::var_os("ASYNCTRIAGE_BROWSER").map(PathBuf::from);
    let found = named.or_else(|| {
        let path = std::env::var_os("PATH")?;
        let names = ["chromium", "chromium-browser", "google-chrome", "chrome"];
        let files = std::env::split_paths(&path).flat_map(|p| names.map(|n| p.join(n)));
        files.into_iter().find(|f| f.is_file())
    });
    if found.is_none() {
        println!("skipped: no Chromium on the path, and ASYNCTRIAGE_BROWSER names none");
    }
    found
}

fn asynctriage(args: &[&str]) -> Output {
    let dumps = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdumps");
    Command::new(env!("CARGO_BIN_EXE_asynctriage"))
        .args(args)
        .current_dir(dumps)
        .output()
        .expect("the program starts")
}

/// Opens a page with the visitor in it and answers with what it told.
fn visit(browser: &Path, page: &str, folder: &Path) -> Vec<String> {
    let hash = STANDARD.encode(Sha256::digest(VISIT.as_bytes()));
    let visited = page
        .replacen("script-src '", &format!("script-src 'sha256-{hash}' '"), 1)
        .replacen("</body>", &format!("<script>{VISIT}</script></body>"), 1);
    assert!(
        visited.len() > page.len() + VISIT.len(),
        "the visitor is in the page"
    );
    let file = folder.join("visited.html");
    std::fs::write(&file, visited).expect("writable");
    let output = Command::new(browser)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--dump-dom"])
        .args(["--enable-logging=stderr", "--virtual-time-budget=60000"])
        .args(["--disable-background-networking", "--window-size=1300,1000"])
        .args(["--host-resolver-rules=MAP * ~NOTFOUND"])
        .arg(format!(
            "--user-data-dir={}",
            folder.join("profile").display()
        ))
        .arg(format!("file://{}", file.display()))
        .output()
        .expect("the browser starts");
    let log = String::from_utf8_lossy(&output.stderr);
    let console: Vec<&str> = log.lines().filter(|l| l.contains("CONSOLE")).collect();
    assert_eq!(console, [""; 0]);
    let dom = String::from_utf8_lossy(&output.stdout);
    let told = dom.rsplit_once(">TOLD\n").map(|(_, t)| t);
    let told = told.and_then(|t| t.split_once("\nEND"));
    let (told, _) = told.unwrap_or_else(|| panic!("the visitor told nothing: {log}"));
    told.lines().map(str::to_owned).collect()
}

/// Whether nothing failed, and after how many milliseconds the page stood.
fn opened(told: &[String]) -> u64 {
    let failures: Vec<&String> = told.iter().filter(|l| l.starts_with("FAILED")).collect();
    assert!(failures.is_empty(), "{failures:#?}");
    let last = told.last().and_then(|l| l.strip_prefix("opened after "));
    last.and_then(|ms| ms.parse().ok()).expect("the last line")
}

#[test]
fn pages_of_real_dumps_answer_to_a_visitor() {
    let Some(browser) = browser() else {
        return;
    };
    let folder = tempfile::tempdir().expect("a folder");
    for dump in ["web-11.0.0.dmp.gz", "mixed-10.0.15.dmp.gz"] {
        let output = asynctriage(&[dump, "--format", "html", "--locals"]);
        assert!(output.status.success(), "{dump}");
        let page = String::from_utf8(output.stdout).expect("UTF-8");
        opened(&visit(&browser, &page, folder.path()));
    }
}

#[test]
fn fifty_thousand_chains_open_at_once() {
    let Some(browser) = browser() else {
        return;
    };
    let folder = tempfile::tempdir().expect("a folder");
    let output = asynctriage(&["web-11.0.0.dmp.gz", "--format", "json", "--all"]);
    let mut report: serde_json::Value = serde_json::from_slice(&output.stdout).expect("a report");
    // 5,000 groups of 10 chains each, made of the dump's own
    let all = report["chains"].as_array().expect("chains");
    let longest = all
        .iter()
        .max_by_key(|c| c["frames"].as_array().map(Vec::len));
    let group = longest.expect("a chain").clone();
    let groups = (1..=5_000).map(|n| {
        let mut group = group.clone();
        group["id"] = format!("C{n}").into();
        group["count"] = 10.into();
        group["frames"][0]["method"] = format!("Shop.Step{n}.RunAsync").into();
        group["members"] = (1..=10)
            .map(|m| serde_json::json!({ "id": format!("C{n}.{m}"), "boxes": ["0x00007f0000000000"] }))
            .collect();
        group
    });
    report["chains"] = groups.collect();
    let saved = folder.path().join("report.json");
    std::fs::write(&saved, report.to_string()).expect("writable");
    let output = asynctriage(&["render", saved.to_str().expect("UTF-8"), "--format", "html"]);
    assert!(output.status.success());
    let page = String::from_utf8(output.stdout).expect("UTF-8");
    let opened = opened(&visit(&browser, &page, folder.path()));
    // 1.7 to 2.1 s on two busy cores; tests may have less
    assert!(opened < 10_000, "{opened} ms");
}
