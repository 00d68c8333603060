//! What a report of a damaged file says, against that of the whole one.

use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// What is held against a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Verdict {
    /// Nothing, or the damage is told.
    Right,
    /// The program died.
    Crash,
    /// It did not end in time.
    Hang,
    /// What it wrote is no JSON.
    BadJson,
    /// A chain has frames that no chain of the whole file has in that order.
    Novel,
    /// Half as many chains again.
    Explode,
    /// A finding is certain of a kind that was not there.
    NewCertain,
    /// A certain finding is gone, or half of all chains.
    Lost,
}

impl Verdict {
    pub(super) const HITS: [Self; 7] = [
        Self::Crash,
        Self::Hang,
        Self::BadJson,
        Self::Novel,
        Self::Explode,
        Self::NewCertain,
        Self::Lost,
    ];

    pub(super) fn is_hit(self) -> bool {
        self != Self::Right
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Right => "right",
            Self::Crash => "crash",
            Self::Hang => "hang",
            Self::BadJson => "badjson",
            Self::Novel => "novel",
            Self::Explode => "explode",
            Self::NewCertain => "newcertain",
            Self::Lost => "lost",
        })
    }
}

/// The methods of a chain, what it waits for and what it belongs to.
type Shape = (Vec<String>, String, String);

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn list<'v>(report: &'v Value, key: &str) -> impl Iterator<Item = &'v Value> {
    report[key].as_array().into_iter().flatten()
}

fn chains(report: &Value) -> BTreeMap<Shape, u64> {
    let mut out = BTreeMap::new();
    for chain in list(report, "chains") {
        let methods = list(chain, "frames").map(|f| text(&f["method"])).collect();
        let shape = (
            methods,
            text(&chain["leaf"]["kind"]),
            text(&chain["root"]["kind"]),
        );
        *out.entry(shape).or_default() += chain["count"].as_u64().unwrap_or(0);
    }
    out
}

fn certain(report: &Value) -> BTreeSet<String> {
    let sure = list(report, "findings").filter(|f| f["confidence"] == "certain");
    sure.map(|f| text(&f["kind"])).collect()
}

/// What is said of the file itself: that it is cut, gaps of a dump, flags of a recording.
fn reservations(report: &Value) -> BTreeSet<String> {
    let gaps = list(report, "gaps").map(|g| format!("{}{}{}", g["section"], g["where"], g["why"]));
    let cut = (report["dump"]["truncated"] == true).then(|| "truncated".to_owned());
    gaps.chain(list(report, "flags").map(text))
        .chain(cut)
        .collect()
}

fn invalid(report: &Value) -> u64 {
    report["heap"]["invalid_objects"].as_u64().unwrap_or(0)
}

fn is_within(part: &[String], whole: &[String]) -> bool {
    part.is_empty() || whole.windows(part.len()).any(|w| w == part)
}

/// Compares the report of a damaged file with that of the whole one.
pub(super) fn compare(whole: &Value, damaged: &Value) -> Verdict {
    let is_told = reservations(damaged)
        .difference(&reservations(whole))
        .next()
        .is_some();
    if is_told || invalid(damaged) > invalid(whole) {
        return Verdict::Right;
    }
    let (have, had) = (chains(damaged), chains(whole));
    let is_known = |(methods, ..): &Shape| had.keys().any(|(w, ..)| is_within(methods, w));
    if !have.keys().all(is_known) {
        return Verdict::Novel;
    }
    let (have, had): (u64, u64) = (have.values().sum(), had.values().sum());
    if 2 * have > 3 * had + 6 {
        return Verdict::Explode;
    }
    if !certain(damaged).is_subset(&certain(whole)) {
        return Verdict::NewCertain;
    }
    if !certain(whole).is_subset(&certain(damaged)) || 2 * have < had {
        return Verdict::Lost;
    }
    Verdict::Right
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn report(methods: &[&str], count: u64) -> Value {
        let frames: Vec<Value> = methods.iter().map(|m| json!({ "method": m })).collect();
        json!({ "chains": [{ "frames": frames, "count": count }] })
    }

    #[test]
    fn what_is_said_without_reservation_is_judged() {
        let whole = report(&["A", "B", "C"], 4);
        assert_eq!(compare(&whole, &whole), Verdict::Right);
        assert_eq!(compare(&whole, &report(&["B", "C"], 4)), Verdict::Right);
        assert_eq!(compare(&whole, &report(&["A", "C"], 4)), Verdict::Novel);
        assert_eq!(compare(&whole, &report(&["A"], 10)), Verdict::Explode);
        assert_eq!(compare(&whole, &report(&["A"], 1)), Verdict::Lost);
        let mut sure = whole.clone();
        sure["findings"] = json!([{ "kind": "await-cycle", "confidence": "certain" }]);
        assert_eq!(compare(&whole, &sure), Verdict::NewCertain);
        assert_eq!(compare(&sure, &whole), Verdict::Lost);
    }

    #[test]
    fn damage_that_is_told_is_right() {
        let whole = report(&["A"], 4);
        let mut gap = report(&["X"], 4);
        gap["gaps"] = json!([{ "section": "heap", "where": "", "why": "torn" }]);
        assert_eq!(compare(&whole, &gap), Verdict::Right);
        let mut flag = report(&["X"], 4);
        flag["flags"] = json!(["container-damaged"]);
        assert_eq!(compare(&whole, &flag), Verdict::Right);
        let mut cut = report(&["X"], 4);
        cut["dump"] = json!({ "truncated": true });
        assert_eq!(compare(&whole, &cut), Verdict::Right);
        let mut heap = report(&["X"], 4);
        heap["heap"] = json!({ "invalid_objects": 1 });
        assert_eq!(compare(&whole, &heap), Verdict::Right);
    }
}
