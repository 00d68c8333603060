//! Which dumps were tried: the data file of the test of that name, and the table in the README that is made from it.

use crate::shell::{cargo, root, run as show};
use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

const DATA: &str = "crates/cli/tests/matrix.json";
const README: &str = "README.md";
const BEGIN: &str = "<!-- matrix: written by `cargo xtask matrix DIR` -->\n";
const END: &str = "<!-- end of matrix -->";

pub(crate) fn run(args: &[String]) -> Result<()> {
    let [arg] = args else {
        bail!("usage: cargo xtask matrix DIR, or --table to write the table only, or --check")
    };
    let check = arg == "--check";
    if !check && arg != "--table" {
        let mut test = cargo(&[
            "test",
            "-p",
            "asynctriage",
            "--test",
            "matrix",
            "--",
            "of_a_folder",
        ]);
        test.env("ASYNCTRIAGE_DUMPS", std::path::absolute(arg)?)
            .env("ASYNCTRIAGE_MATRIX", root().join(DATA));
        show(test)?;
    }
    let data = std::fs::read_to_string(root().join(DATA)).with_context(|| DATA.to_owned())?;
    let rows: Vec<Value> = serde_json::from_str(&data).with_context(|| DATA.to_owned())?;
    let readme = std::fs::read_to_string(root().join(README))?;
    let current = with_table(&readme, &table(&rows)).context("the README lacks the markers")?;
    if check && current != readme {
        bail!("the README's table is not that of {DATA}: run `cargo xtask matrix --table`");
    }
    std::fs::write(root().join(README), current).with_context(|| README.to_owned())
}

/// The text with the table between the markers.
fn with_table(readme: &str, table: &str) -> Option<String> {
    let (before, rest) = readme.split_once(BEGIN)?;
    let (_, after) = rest.split_once(END)?;
    Some(format!("{before}{BEGIN}{table}{END}{after}"))
}

/// Dumps of one platform and kind.
#[derive(Default)]
struct Tried {
    runtimes: BTreeSet<Vec<u32>>,
    collectors: BTreeSet<String>,
    dumps: u64,
    with_chains: u64,
    refused: u64,
    /// In how many dumps a part of the report lacks something.
    gaps: BTreeMap<String, u64>,
}

/// A row for each platform and kind of dump, with how many were tried and what came of them.
fn table(rows: &[Value]) -> String {
    let mut all: BTreeMap<(&str, &str), Tried> = BTreeMap::new();
    let text = |row: &'_ Value, field: &str| row[field].as_str().unwrap_or_default().to_owned();
    for row in rows {
        let key = |field: &str| {
            row[field]
                .as_str()
                .filter(|t| !t.is_empty())
                .unwrap_or("unknown")
        };
        let tried = all.entry((key("platform"), key("container"))).or_default();
        tried.dumps += 1;
        tried.with_chains += u64::from(row["chains"].as_u64().is_some_and(|n| n > 0));
        tried.refused += u64::from(!row["refused"].is_null());
        let version = text(row, "runtime");
        let numbers: Vec<u32> = version.split('.').filter_map(|n| n.parse().ok()).collect();
        tried
            .runtimes
            .extend((!numbers.is_empty()).then_some(numbers));
        tried
            .collectors
            .extend(Some(text(row, "gc")).filter(|gc| !gc.is_empty()));
        for gap in row["gaps"].as_array().into_iter().flatten() {
            *tried
                .gaps
                .entry(gap.as_str().unwrap_or_default().to_owned())
                .or_default() += 1;
        }
    }
    let head = "| process | dump | runtimes | GC | tried | with chains | refused | gaps in |\n| --- | --- | --- | --- | --- | --- | --- | --- |\n";
    let lines = all.iter().map(|((platform, container), t)| {
        let versions = t.runtimes.iter().map(|v| {
            let parts: Vec<_> = v.iter().map(u32::to_string).collect();
            parts.join(".")
        });
        let gaps = t.gaps.iter().map(|(section, n)| format!("{section} {n}"));
        let cells = [
            (*platform).to_owned(),
            (*container).to_owned(),
            listed(versions),
            t.collectors.iter().cloned().collect::<Vec<_>>().join("; "),
            t.dumps.to_string(),
            t.with_chains.to_string(),
            t.refused.to_string(),
            listed(gaps),
        ];
        format!("| {} |\n", cells.join(" | "))
    });
    std::iter::once(head.to_owned()).chain(lines).collect()
}

fn listed(items: impl Iterator<Item = String>) -> String {
    items.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn row(runtime: &str, chains: u64, refused: Option<&str>) -> Value {
        json!({
            "platform": "linux x64", "container": "elf-core heap", "runtime": runtime,
            "gc": "server, regions", "chains": chains, "gaps": ["names"], "refused": refused,
        })
    }

    #[test]
    fn dumps_of_a_kind_are_added_up() {
        let rows = [
            row("10.0.15", 5, None),
            row("8.0.34", 0, None),
            row("", 0, Some("why")),
        ];
        let table = table(&rows);
        let line = table.lines().last().unwrap();
        assert_eq!(
            line,
            "| linux x64 | elf-core heap | 8.0.34, 10.0.15 | server, regions | 3 | 1 | 1 | names 3 |"
        );
    }

    #[test]
    fn only_what_stands_between_the_markers_changes() {
        let readme = format!("a\n{BEGIN}old\n{END}\nb");
        let expected = format!("a\n{BEGIN}new\n{END}\nb");
        assert_eq!(with_table(&readme, "new\n"), Some(expected));
        assert_eq!(with_table("without", "new\n"), None);
    }
}
