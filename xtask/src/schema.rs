//! The JSON schemas of the reports.

use crate::shell::{cargo, output, root};
use anyhow::{Context, Result, bail};

/// The files, and what the example is asked for.
pub(crate) const FILES: [(&str, &str); 9] = [
    ("crates/report/schema.json", "dump"),
    ("crates/report/brief-schema.json", "brief"),
    ("crates/report/observe-schema.json", "observe"),
    ("crates/report/trace-schema.json", "trace"),
    ("crates/report/services-schema.json", "services"),
    ("crates/report/diff-schema.json", "diff"),
    ("crates/report/manifest-schema.json", "manifest"),
    ("crates/report/claims-schema.json", "claims"),
    ("crates/report/verify-schema.json", "verify"),
];

pub(crate) fn run(args: &[String]) -> Result<()> {
    FILES
        .iter()
        .try_for_each(|(file, report)| one(args, file, report))
}

fn one(args: &[String], file: &str, report: &str) -> Result<()> {
    let print = [
        "run",
        "--quiet",
        "-p",
        "asynctriage-report",
        "--features",
        "schema",
        "--example",
        "schema",
        "--",
        report,
    ];
    let current = output(cargo(&print))?;
    let path = root().join(file);
    let written = std::fs::read(&path).unwrap_or_default();
    match (args, written == current) {
        ([flag], true) if flag == "--check" => Ok(()),
        ([flag], false) if flag == "--check" => {
            bail!("{file} does not fit the model: run `cargo xtask schema`")
        }
        ([], _) => std::fs::write(&path, current).with_context(|| file.to_owned()),
        _ => bail!("usage: cargo xtask schema [--check]"),
    }
}
