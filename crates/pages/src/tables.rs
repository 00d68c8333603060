//! A report as tables for spreadsheets and data frames.

use asynctriage_report::{Address, ChainGroup, Report};

/// A table as CSV: a row of names, then a row for each thing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    /// Its name, which is that of a file without its extension.
    pub name: &'static str,
    /// The text, as RFC 4180 has it.
    pub csv: String,
}

/// Findings, groups, chains, requests and threads, one table each. A cell that a spreadsheet would take for a formula begins with
/// an apostrophe.
#[must_use]
pub fn tables(report: &Report) -> Vec<Table> {
    vec![
        findings(report),
        groups(report),
        chains(report),
        requests(report),
        threads(report),
    ]
}

fn findings(report: &Report) -> Table {
    let rows = report.findings.iter().map(|f| {
        vec![
            f.id.clone(),
            f.kind.to_string(),
            f.severity.to_string(),
            f.confidence.to_string(),
            f.title.clone(),
            f.chains.join(" "),
            f.signature.clone(),
        ]
    });
    let names = [
        "id",
        "kind",
        "severity",
        "confidence",
        "title",
        "chains",
        "signature",
    ];
    table("findings", &names, rows)
}

fn groups(report: &Report) -> Table {
    let rows = report.chains.iter().map(|c| {
        let waiting = c.waiting_seconds.as_ref();
        vec![
            c.id.clone(),
            c.count.to_string(),
            c.frames
                .first()
                .map(|f| f.method.clone())
                .unwrap_or_default(),
            outermost(c),
            c.leaf.kind.to_string(),
            c.leaf.text.clone(),
            c.root
                .as_ref()
                .map(|r| r.kind.to_string())
                .unwrap_or_default(),
            root(c),
            number(waiting.map(|w| w.min)),
            number(waiting.map(|w| w.median)),
            number(waiting.map(|w| w.max)),
            c.signature.clone(),
            c.app_signature.clone(),
        ]
    });
    let names = [
        "id",
        "count",
        "innermost_method",
        "outermost_method",
        "leaf_kind",
        "leaf",
        "root_kind",
        "root",
        "waiting_min_seconds",
        "waiting_median_seconds",
        "waiting_max_seconds",
        "signature",
        "app_signature",
    ];
    table("groups", &names, rows)
}

fn outermost(group: &ChainGroup) -> String {
    group
        .frames
        .last()
        .map(|f| f.method.clone())
        .unwrap_or_default()
}

fn root(group: &ChainGroup) -> String {
    group
        .root
        .as_ref()
        .map(|r| r.text.clone())
        .unwrap_or_default()
}

fn chains(report: &Report) -> Table {
    let rows = report.chains.iter().flat_map(|c| {
        c.members.iter().map(|m| {
            vec![
                m.id.clone(),
                c.id.clone(),
                m.leaf.clone().unwrap_or_else(|| c.leaf.text.clone()),
                m.root.clone().unwrap_or_else(|| root(c)),
                number(m.waiting_seconds),
                m.waits_on.map(|a| a.to_string()).unwrap_or_default(),
                addresses(&m.boxes),
            ]
        })
    });
    let names = [
        "id",
        "group",
        "leaf",
        "root",
        "waiting_seconds",
        "waits_on",
        "objects",
    ];
    table("chains", &names, rows)
}

fn requests(report: &Report) -> Table {
    let rows = report.requests.iter().map(|r| {
        let thread = r.details.get("thread").and_then(|t| t.as_str());
        vec![
            r.id.clone(),
            r.method.clone(),
            r.path.clone(),
            r.route.clone().unwrap_or_default(),
            number(r.age_seconds),
            r.chain.clone().unwrap_or_default(),
            thread.unwrap_or_default().to_owned(),
            r.connection.clone().unwrap_or_default(),
        ]
    });
    let names = [
        "id",
        "method",
        "path",
        "route",
        "age_seconds",
        "chain",
        "thread",
        "connection",
    ];
    table("requests", &names, rows)
}

fn threads(report: &Report) -> Table {
    let rows = report.threads.iter().map(|t| {
        let top = t.frames.iter().find(|f| !f.native && !f.is_framework);
        let held: Vec<&str> = t.holds.iter().map(|h| h.text.as_str()).collect();
        vec![
            t.os_id.to_string(),
            t.managed_id.map(|id| id.to_string()).unwrap_or_default(),
            t.name.clone().unwrap_or_default(),
            t.state.clone(),
            t.waits_on
                .as_ref()
                .map(|w| w.text.clone())
                .unwrap_or_default(),
            held.join("; "),
            top.map(|f| f.method.clone()).unwrap_or_default(),
            t.chain.clone().unwrap_or_default(),
            t.request.clone().unwrap_or_default(),
        ]
    });
    let names = [
        "os_id",
        "managed_id",
        "name",
        "state",
        "waits_on",
        "holds",
        "method",
        "chain",
        "request",
    ];
    table("threads", &names, rows)
}

fn number(value: Option<f64>) -> String {
    value.map(|v| v.to_string()).unwrap_or_default()
}

fn addresses(all: &[Address]) -> String {
    let all: Vec<String> = all.iter().map(Address::to_string).collect();
    all.join(" ")
}

fn table(name: &'static str, names: &[&str], rows: impl Iterator<Item = Vec<String>>) -> Table {
    let mut out = csv::Writer::from_writer(Vec::new());
    // writing to memory cannot fail, and every row has as many cells as there are names
    let _ = out.write_record(names);
    for row in rows {
        let _ = out.write_record(row.iter().map(|cell| harmless(cell)));
    }
    let bytes = out.into_inner().unwrap_or_default();
    Table {
        name,
        csv: String::from_utf8_lossy(&bytes).into_owned(),
    }
}

/// Spreadsheets calculate what begins like a formula, and the dump may be somebody else's.
fn harmless(cell: &str) -> String {
    if cell.starts_with(['=', '+', '-', '@', '\t', '\r']) {
        format!("'{cell}")
    } else {
        cell.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples;

    #[test]
    fn every_table_of_a_report() {
        let all = tables(&samples::deadlock());
        let text: Vec<String> = all
            .iter()
            .map(|t| format!("{}.csv\n{}", t.name, t.csv))
            .collect();
        insta::assert_snapshot!(text.join("\n"));
    }

    #[test]
    fn formulas_and_quotes_do_no_harm() {
        let row = vec!["=cmd|' /C calc'!A0".to_owned(), "a \"b\",\nc".to_owned()];
        let made = table("t", &["a", "b"], std::iter::once(row));
        assert_eq!(made.csv, "a,b\n'=cmd|' /C calc'!A0,\"a \"\"b\"\",\nc\"\n");
    }
}
