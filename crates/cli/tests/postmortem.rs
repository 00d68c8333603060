//! Postmortems of real dumps: every id is known, every fact has a source, every number, name and duration stands in the report.

use asynctriage_report::{Report, count, duration, find, from_json, printable};
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

const DUMPS: [&str; 8] = [
    "web-11.0.0.dmp.gz",
    "mixed-10.0.15.dmp.gz",
    "locks-10.0.15.dmp.gz",
    "semaphore-win-10.0.15.dmp.gz",
    "oom-10.0.15.dmp.gz",
    "clients-10.0.15.dmp.gz",
    "never-10.0.15.dmp.gz",
    "chain-gcore-10.0.15.dmp.gz",
];

fn run(args: &[&str]) -> String {
    let dumps = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdumps");
    let output = Command::new(env!("CARGO_BIN_EXE_asynctriage"))
        .args(args)
        .current_dir(dumps)
        .output()
        .expect("the program starts");
    assert!(output.status.success(), "{args:?}");
    String::from_utf8(output.stdout).expect("UTF-8")
}

/// The text that Markdown shows.
fn shown(markdown: &str) -> String {
    let mut out = String::new();
    let mut chars = markdown.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => out.extend(chars.next()),
            _ => out.push(c),
        }
    }
    let entities = [("&lt;", "<"), ("&gt;", ">"), ("&#64;", "@"), ("&amp;", "&")];
    entities
        .iter()
        .fold(out, |text, (entity, c)| text.replace(entity, c))
}

/// Numbers, and names with dots in them.
fn tokens(text: &str) -> BTreeSet<String> {
    let words = text.split(|c: char| !(c.is_alphanumeric() || "._,/".contains(c)));
    let words = words.map(|w| w.trim_matches(|c: char| "._,/".contains(c)));
    let told = |w: &&str| {
        let number = w.chars().any(|c| c.is_ascii_digit());
        number || (w.contains('.') && w.chars().any(char::is_alphabetic))
    };
    words.filter(told).map(str::to_owned).collect()
}

/// What a report may be quoted with.
fn known(report: &Report, json: &Value) -> BTreeSet<String> {
    let mut known = BTreeSet::new();
    let mut open = vec![json];
    while let Some(value) = open.pop() {
        match value {
            Value::String(text) => known.extend(tokens(&printable(text))),
            Value::Array(all) => {
                known.insert(count(all.len() as u64));
                open.extend(all);
            }
            Value::Object(fields) => open.extend(fields.values()),
            Value::Number(n) => {
                known.extend(n.as_f64().map(duration).iter().flat_map(|d| tokens(d)));
                known.extend(n.as_u64().map(count));
                known.extend(n.as_u64().map(|n| n.to_string()));
                known.extend(
                    n.as_u64()
                        .map(asynctriage_report::bytes)
                        .iter()
                        .flat_map(|b| tokens(b)),
                );
            }
            _ => {}
        }
    }
    // counts that no field holds: of what the report lists
    let mut sums: Vec<u64> = vec![report.chains.iter().map(|c| c.count).sum()];
    sums.push(
        report
            .threads
            .iter()
            .filter(|t| t.waits_on.is_some())
            .count() as u64,
    );
    sums.extend(report.pool.as_ref().map(|p| p.queued.total()));
    let states = ["stuck", "progressing", "idle"];
    sums.extend(states.map(|state| {
        let of = report.chains.iter();
        let of = of.filter(|c| {
            c.verdict
                .as_ref()
                .is_some_and(|v| v.state.as_str() == state)
        });
        of.map(|c| c.count).sum::<u64>()
    }));
    for thread in &report.threads {
        let alike = report.threads.iter().filter(|t| {
            t.waits_on.as_ref().map(|w| &w.text) == thread.waits_on.as_ref().map(|w| &w.text)
        });
        let same_name = alike
            .clone()
            .filter(|t| t.name == thread.name && t.chain == thread.chain);
        sums.push(same_name.count() as u64);
    }
    for request in &report.requests {
        let path =
            |r: &asynctriage_report::Request| r.route.clone().unwrap_or_else(|| r.path.clone());
        let same = report.requests.iter();
        let same = same.filter(|r| r.method == request.method && path(r) == path(request));
        sums.push(same.clone().count() as u64);
        sums.push(same.filter(|r| r.chain.is_some()).count() as u64);
    }
    known.extend(sums.into_iter().map(count));
    known
}

#[test]
fn no_number_name_or_duration_lacks_a_source() {
    for dump in DUMPS {
        let json = run(&[dump, "--format", "json"]);
        let report: Report = from_json(&json).expect("a report");
        let value: Value = serde_json::from_str(&json).expect("JSON");
        let known = known(&report, &value);
        let draft = shown(&run(&["postmortem", dump]));
        // lines that say only how much more there is are counted by the report's own lists
        let lines = draft.lines().filter(|l| !l.starts_with("- and "));
        for line in lines {
            for token in tokens(line) {
                let is_id = find(&report, &token).is_some();
                assert!(known.contains(&token) || is_id, "{dump}: {token}: {line}");
            }
        }
    }
}

#[test]
fn every_fact_has_an_id_that_show_resolves() {
    for dump in DUMPS {
        let report: Report = from_json(&run(&[dump, "--format", "json"])).expect("a report");
        let draft = run(&["postmortem", dump]);
        let body = draft.lines().skip(3);
        let facts = body.filter(|l| {
            let static_text = l.is_empty() || l.starts_with('#') || l.contains("**to add**:");
            !static_text && l.chars().any(|c| c.is_ascii_digit())
        });
        let mut ids = BTreeSet::new();
        for line in facts {
            // ids stand in brackets that nothing escaped
            let cited: Vec<&str> = line
                .split('[')
                .skip(1)
                .filter_map(|t| Some(t.split_once(']')?.0))
                .filter(|id| find(&report, id).is_some())
                .collect();
            assert!(!cited.is_empty(), "{dump}: {line}");
            ids.extend(cited);
        }
        assert!(ids.len() > 3, "{dump}: {ids:?}");
    }
}

#[test]
fn ids_are_shown_from_a_dump_and_from_a_saved_report() {
    let folder = tempfile::tempdir().expect("a folder");
    let saved = folder.path().join("report.json");
    let saved = saved.to_str().expect("UTF-8");
    run(&["web-11.0.0.dmp.gz", "-o", saved]);
    for id in ["F1", "E1", "C1", "C1.1", "D1", "P1", "H1", "W1", "R1"] {
        let of_dump = run(&["show", "web-11.0.0.dmp.gz", id]);
        let of_report = run(&["show", saved, id]);
        // a report lists only some chains of a group
        assert!(of_dump == of_report || id == "C1", "{id}");
        assert!(!of_dump.trim().is_empty(), "{id}");
        let json: Value =
            serde_json::from_str(&run(&["show", saved, id, "--format", "json"])).expect("JSON");
        assert!(json["kind"].is_string(), "{id}");
    }
    insta::assert_snapshot!(run(&["show", saved, "E1"]));
}

#[test]
fn a_saved_report_becomes_all_forms_as_the_dump_does() {
    let folder = tempfile::tempdir().expect("a folder");
    let saved = folder.path().join("report.json");
    let saved = saved.to_str().expect("UTF-8");
    let dump = "mixed-10.0.15.dmp.gz";
    run(&[dump, "-o", saved]);
    for form in ["text", "json", "html", "markdown", "dot"] {
        let direct = run(&[dump, "--format", form]);
        assert!(
            direct == run(&["render", saved, "--format", form]),
            "{form}"
        );
    }
    let brief = run(&[dump, "--brief"]);
    assert!(brief.len() < 8_192 && brief == run(&["render", saved, "--brief"]));
    assert_eq!(run(&["postmortem", dump]), run(&["postmortem", saved]));
}
