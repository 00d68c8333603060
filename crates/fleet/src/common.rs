//! What many dumps have in common.

use asynctriage_report::{FleetReport, FleetSignature};
use rustc_hash::{FxHashMap, FxHashSet};
use serde_json::{Map, Value};

/// Adds up rows of dumps and findings, in any order of the findings, once their dumps are known.
#[derive(Debug, Default)]
pub struct Common {
    report: FleetReport,
    /// Process and time of each dump.
    dumps: FxHashMap<String, (String, Option<String>)>,
    signatures: FxHashMap<String, Seen>,
}

#[derive(Debug, Default)]
struct Seen {
    row: FleetSignature,
    dumps: FxHashSet<String>,
    processes: FxHashSet<String>,
}

impl Common {
    /// A row of the table of dumps.
    pub fn dump(&mut self, row: &Map<String, Value>) {
        let text = |name: &str| row.get(name).and_then(Value::as_str).unwrap_or_default();
        let counts = &mut self.report;
        let count = match text("status") {
            "read" => &mut counts.read,
            "partial" => &mut counts.partial,
            "refused" => &mut counts.refused,
            _ => &mut counts.failed,
        };
        *count = count.saturating_add(1);
        let id = text("dump_id").to_owned();
        // a dump that does not tell its process stands for one of its own
        let process = match text("process") {
            "" => id.clone(),
            named => named.to_owned(),
        };
        let time = Some(text("time").to_owned()).filter(|t| !t.is_empty());
        self.dumps.insert(id, (process, time));
    }

    /// A row of the table of findings.
    pub fn finding(&mut self, row: &Map<String, Value>) {
        let text = |name: &str| row.get(name).and_then(Value::as_str).unwrap_or_default();
        if text("severity") == "info" {
            return;
        }
        let signature = text("signature");
        let seen = self.signatures.entry(signature.to_owned()).or_default();
        if seen.row.signature.is_empty() {
            seen.row.signature = signature.to_owned();
            seen.row.kind = text("kind").to_owned();
            seen.row.severity = text("severity").to_owned();
            seen.row.title = text("title").to_owned();
        }
        let id = text("dump_id");
        seen.dumps.insert(id.to_owned());
        let Some((process, time)) = self.dumps.get(id) else {
            return;
        };
        seen.processes.insert(process.clone());
        let Some(time) = time else { return };
        let row = &mut seen.row;
        if row.first_seen.as_ref().is_none_or(|first| time < first) {
            row.first_seen = Some(time.clone());
        }
        if row.last_seen.as_ref().is_none_or(|last| time > last) {
            row.last_seen = Some(time.clone());
        }
    }

    /// The signatures that most dumps have come first.
    #[must_use]
    pub fn finish(self) -> FleetReport {
        let mut report = self.report;
        let rows = self.signatures.into_values().map(|seen| FleetSignature {
            dumps: seen.dumps.len() as u64,
            processes: seen.processes.len() as u64,
            ..seen.row
        });
        report.signatures = rows.collect();
        report.signatures.sort_by(|a, b| {
            let key =
                |s: &FleetSignature| (std::cmp::Reverse(s.processes), std::cmp::Reverse(s.dumps));
            key(a)
                .cmp(&key(b))
                .then_with(|| a.signature.cmp(&b.signature))
        });
        report
    }
}
