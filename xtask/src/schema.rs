//! The JSON schemas of the documents.

use crate::shell::{cargo, output, root};
use anyhow::{Context, Result, bail};
use serde_json::{Map, Value};

/// Where they are kept, one file for each kind of document. A new kind needs a file to begin with: `{}`.
pub(crate) const FOLDER: &str = "crates/report/schemas";

/// The files, and the kind of document that each describes.
pub(crate) fn files() -> impl Iterator<Item = (String, &'static str)> {
    let kinds = asynctriage_report::SCHEMAS.iter().map(|(kind, _)| *kind);
    kinds.map(|kind| (format!("{FOLDER}/{kind}.json"), kind))
}

pub(crate) fn run(args: &[String]) -> Result<()> {
    let only_compares = match args {
        [] => false,
        [flag] if flag == "--check" => true,
        _ => bail!("usage: cargo xtask schema [--check]"),
    };
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
    let current: Map<String, Value> = serde_json::from_slice(&output(cargo(&print))?)?;
    for (file, kind) in files() {
        let schema = current.get(kind).with_context(|| kind.to_owned())?;
        let text = format!("{}\n", serde_json::to_string_pretty(schema)?);
        let path = root().join(&file);
        let is_current = std::fs::read_to_string(&path).is_ok_and(|written| written == text);
        match (is_current, only_compares) {
            (true, _) => {}
            (false, true) => bail!("{file} does not fit the model: run `cargo xtask schema`"),
            (false, false) => std::fs::write(&path, text).context(file)?,
        }
    }
    Ok(())
}
