//! Saved reports with other values in them: whatever they hold, each form of them is written, and no text of a process
//! becomes more than text.

use crate::random::Random;
use crate::seeds::testdump;
use asynctriage_dump::Dump;
use asynctriage_report::{self as report, Part, Report, TextOptions};
use asynctriage_triage::{Options, analyse};
use serde_json::Value;

/// Texts that somebody would act on who takes them for more than text.
const TEXTS: [&str; 6] = [
    "</script><b id=fuzzed>",
    "\u{1b}[31mred",
    "a\nb\r\n| c | `d` |",
    "\u{202e}turned\u{0}",
    "",
    "<!--\u{7f}]]>&quot;\"'",
];
const NUMBERS: [f64; 6] = [0.0, -1.0, 1e300, 4_294_967_296.0, 1.5, 9e18];

#[expect(clippy::expect_used, reason = "the repository has them")]
pub(crate) fn seeds() -> Vec<Vec<u8>> {
    let names = ["mixed-10.0.15.dmp.gz", "never-10.0.15.dmp.gz"];
    let report = |name: &&str| {
        let dump = Dump::from_bytes(testdump(name)).expect("a dump");
        let report = analyse(&dump, &Options::default()).expect("a report");
        report::json(&report).expect("JSON").into_bytes()
    };
    names.iter().map(report).collect()
}

/// Changes some values of the JSON.
pub(crate) fn change(seed: &[u8], random: &mut Random) -> Vec<u8> {
    let Ok(mut value) = serde_json::from_slice(seed) else {
        return Vec::new();
    };
    for _ in 0..random.of(&[1, 4, 32]) {
        change_one(&mut value, random);
    }
    serde_json::to_vec(&value).unwrap_or_default()
}

/// Goes down a way by chance and changes what stands at its end.
fn change_one(value: &mut Value, random: &mut Random) {
    match value {
        Value::Object(fields) if !fields.is_empty() => {
            let at = random.index(fields.len());
            if random.index(64) == 0 {
                let key = fields.keys().nth(at).cloned().unwrap_or_default();
                fields.remove(&key);
            } else if let Some(field) = fields.values_mut().nth(at) {
                change_one(field, random);
            }
        }
        Value::Array(items) if !items.is_empty() => {
            let at = random.index(items.len());
            match random.index(32) {
                0 => drop(items.remove(at)),
                1 => {
                    let again = items.get(at).cloned().unwrap_or_default();
                    items.push(again);
                }
                2 => items.clear(),
                _ => {
                    if let Some(item) = items.get_mut(at) {
                        change_one(item, random);
                    }
                }
            }
        }
        Value::String(text) => random.of(&TEXTS).clone_into(text),
        Value::Number(_) => {
            let number = random.of(&NUMBERS);
            *value = if number.fract() == 0.0 && (0.0..1e18).contains(&number) {
                (number as u64).into()
            } else {
                number.into()
            };
        }
        Value::Bool(yes) => *yes = !*yes,
        other => *other = random.of(&TEXTS).into(),
    }
}

pub(crate) fn run(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let Ok(saved) = report::from_json::<Report>(&text) else {
        return;
    };
    for options in [wide(), narrow()] {
        let mut forms = vec![
            report::text(&saved, &options),
            report::tree(&saved, &options),
        ];
        for part in [
            Part::Threads,
            Part::Requests,
            Part::Queue,
            Part::Locks,
            Part::Crash,
            Part::Oom,
        ] {
            forms.push(report::part(&saved, part, &options));
        }
        for form in &forms {
            let acts = |c: char| c.is_control() && c != '\n' || c == '\u{202e}';
            assert!(!form.contains(acts), "a terminal would act on it");
        }
    }
    let page = asynctriage_pages::html(&saved).expect("a page");
    assert!(!page.contains("<b id=fuzzed"), "markup in the page");
    let _ = asynctriage_pages::markdown(&saved);
    let _ = asynctriage_pages::postmortem(&saved);
    let _ = asynctriage_pages::dot(&saved);
    let brief = report::json(&report::brief(&saved)).expect("JSON");
    assert!(
        brief.len() < 8 << 10,
        "the short form has {} bytes",
        brief.len()
    );
    let again = report::json(&saved).expect("JSON");
    assert!(report::from_json::<Report>(&again).is_ok());
}

fn wide() -> TextOptions {
    TextOptions {
        rows: None,
        verbose: 2,
        ..TextOptions::default()
    }
}

fn narrow() -> TextOptions {
    TextOptions {
        width: 20,
        unicode: false,
        ..TextOptions::default()
    }
}
