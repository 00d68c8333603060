//! The licences of the crates that are compiled into the program: most ask that their text goes with every copy.

use crate::shell::{cargo, output};
use anyhow::{Context, Result};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;

/// What file names a licence has, without what follows them.
const NAMES: [&str; 5] = ["license", "licence", "copying", "notice", "unlicense"];

/// What the program is linked from: no tests, no build scripts, none of what they use.
pub(super) struct Linked {
    metadata: Value,
    ids: BTreeSet<String>,
}

impl Linked {
    /// Asks cargo.
    pub(super) fn of(target: &str) -> Result<Self> {
        let args = [
            "metadata",
            "--format-version",
            "1",
            "--locked",
            "--filter-platform",
            target,
        ];
        let metadata: Value = serde_json::from_slice(&output(cargo(&args))?)?;
        let ids = linked(&metadata).context("cargo metadata has no graph of crates")?;
        Ok(Self { metadata, ids })
    }

    /// The crates of other people, by name and version.
    pub(super) fn foreign(&self) -> impl Iterator<Item = &Value> {
        let packages = self.metadata["packages"].as_array().into_iter().flatten();
        let used = packages.filter(|p| {
            p["source"].is_string() && p["id"].as_str().is_some_and(|id| self.ids.contains(id))
        });
        let by_name: BTreeMap<String, &Value> = used.map(|p| (title(p), p)).collect();
        by_name.into_values()
    }
}

/// Name and version.
fn title(package: &Value) -> String {
    let text = |key: &str| package[key].as_str().unwrap_or_default();
    format!("{} {}", text("name"), text("version"))
}

/// Each crate with its version and licence, then the texts, each once with the crates that bring it.
pub(super) fn collect(linked: &Linked) -> Result<String> {
    let mut text = String::from("asynctriage contains these crates under these licences:\n\n");
    let mut owners: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for package in linked.foreign() {
        let licence = package["license"].as_str().unwrap_or("see its text");
        writeln!(text, "{}: {licence}", title(package))?;
        let manifest = Path::new(package["manifest_path"].as_str().unwrap_or_default());
        for licence in texts(manifest.parent().unwrap_or(manifest))? {
            owners.entry(licence).or_default().push(title(package));
        }
    }
    let mut owners: Vec<_> = owners.into_iter().map(|(l, names)| (names, l)).collect();
    owners.sort();
    for (names, licence) in owners {
        let line = "=".repeat(80);
        writeln!(
            text,
            "\n{line}\n{}:\n\n{}",
            names.join(", "),
            licence.trim_end()
        )?;
    }
    Ok(text)
}

fn linked(metadata: &Value) -> Option<BTreeSet<String>> {
    let nodes = metadata["resolve"]["nodes"].as_array()?;
    let nodes: BTreeMap<&str, &Value> = nodes
        .iter()
        .filter_map(|n| Some((n["id"].as_str()?, n)))
        .collect();
    let packages = metadata["packages"].as_array()?;
    let program = packages.iter().find(|p| p["name"] == "asynctriage")?;
    let mut open = vec![program["id"].as_str()?];
    let mut seen = BTreeSet::new();
    while let Some(id) = open.pop() {
        if !seen.insert(id.to_owned()) {
            continue;
        }
        let uses = nodes.get(id).and_then(|n| n["deps"].as_array());
        let normal = uses.into_iter().flatten().filter(|d| {
            let kinds = d["dep_kinds"].as_array();
            kinds.is_some_and(|k| k.iter().any(|k| k["kind"].is_null()))
        });
        open.extend(normal.filter_map(|d| d["pkg"].as_str()));
    }
    Some(seen)
}

/// The texts in a crate's folder, in the order of their names.
fn texts(folder: &Path) -> Result<Vec<String>> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().to_lowercase();
        if NAMES.iter().any(|n| name.starts_with(n)) && entry.file_type()?.is_file() {
            files.push(entry.path());
        }
    }
    files.sort();
    files
        .iter()
        .map(|f| std::fs::read_to_string(f).with_context(|| f.display().to_string()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::targets;

    #[test]
    fn what_is_linked_is_named_with_its_licence_and_tests_are_not() {
        let linked = Linked::of(&targets::host().unwrap()).unwrap();
        let all = collect(&linked).unwrap();
        for (name, licence) in [
            ("clap", "MIT OR Apache-2.0"),
            ("memmap2", "MIT OR Apache-2.0"),
        ] {
            let line = all.lines().find(|l| l.starts_with(&format!("{name} ")));
            assert!(line.unwrap().ends_with(licence), "{line:?}");
        }
        assert!(all.contains("Permission is hereby granted"));
        for test_only in ["insta ", "proptest ", "clap_mangen ", "asynctriage-dump "] {
            assert!(
                !all.lines().any(|l| l.starts_with(test_only)),
                "{test_only}"
            );
        }
    }
}
