//! Rules for `Cargo.toml` files.

use super::tree::{File, Tree};

/// Outside the workspace, so they cannot inherit from it.
const OUTSIDE: &str = "examples/";
/// The one crate that maps files.
const MAPPING: (&str, &str) = ("memmap2", "dump");

pub(super) fn check(tree: &Tree) -> Vec<String> {
    let manifests = tree.0.iter().filter(|f| f.path.ends_with("/Cargo.toml"));
    manifests
        .filter(|f| !f.path.starts_with(OUTSIDE))
        .flat_map(manifest)
        .collect()
}

fn manifest(file: &File) -> Vec<String> {
    let mut complaints = Vec::new();
    for entry in dependencies(&file.text) {
        if !entry.contains("workspace = true") {
            complaints.push(format!(
                "{}: `{entry}` must come from the workspace",
                file.path
            ));
        }
        if entry.starts_with(MAPPING.0) && file.crate_folder() != Some(MAPPING.1) {
            complaints.push(format!(
                "{}: only crates/{} may use {}",
                file.path, MAPPING.1, MAPPING.0
            ));
        }
    }
    complaints
}

/// The entries of all tables of dependencies.
fn dependencies(manifest: &str) -> impl Iterator<Item = &str> {
    let mut inside = false;
    let lines = manifest
        .lines()
        .map(str::trim)
        .filter(|l| !l.is_empty() && !l.starts_with('#'));
    lines.filter(move |line| {
        if line.starts_with('[') {
            inside = line.ends_with("dependencies]");
            return false;
        }
        inside
    })
}

#[cfg(test)]
mod tests {
    use super::super::tree::tree;
    use super::*;

    #[test]
    fn versions_live_in_the_workspace_only() {
        let text = "[package]\nname = \"x\"\n[dependencies]\n# c\na.workspace = true\nb = { workspace = true }\nc = \"1\"\n[features]\nd = []\n[dev-dependencies]\ne = { path = \"..\" }\n";
        let found = check(&tree([("crates/x/Cargo.toml", text), ("Cargo.toml", text)]));
        assert_eq!(
            found,
            [
                "crates/x/Cargo.toml: `c = \"1\"` must come from the workspace",
                "crates/x/Cargo.toml: `e = { path = \"..\" }` must come from the workspace",
            ]
        );
    }

    #[test]
    fn only_the_dump_crate_maps_files() {
        let text = "[dependencies]\nmemmap2.workspace = true\n";
        assert_eq!(check(&tree([("crates/dump/Cargo.toml", text)])), [""; 0]);
        assert_eq!(check(&tree([("crates/clr/Cargo.toml", text)])).len(), 1);
    }
}
