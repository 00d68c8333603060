//! The JSON schema of the report.

use crate::shell::{cargo, output, root};
use anyhow::{Context, Result, bail};

const FILE: &str = "crates/report/schema.json";

pub(crate) fn run(args: &[String]) -> Result<()> {
    let print = [
        "run",
        "--quiet",
        "-p",
        "asynctriage-report",
        "--features",
        "schema",
        "--example",
        "schema",
    ];
    let current = output(cargo(&print))?;
    let path = root().join(FILE);
    let written = std::fs::read(&path).unwrap_or_default();
    match (args, written == current) {
        ([flag], true) if flag == "--check" => Ok(()),
        ([flag], false) if flag == "--check" => {
            bail!("{FILE} does not fit the model: run `cargo xtask schema`")
        }
        ([], _) => std::fs::write(&path, current).with_context(|| FILE.to_owned()),
        _ => bail!("usage: cargo xtask schema [--check]"),
    }
}
