//! Rules of the repository that no other tool checks.
//!
//! Every rule is a function from what it looks at to a list of complaints, so that its tests need no repository.

mod code;
mod edges;
mod files;
mod folders;
mod manifests;
mod runbooks;
mod sources;
mod tree;

use crate::shell::{cargo, output, root};
use anyhow::{Result, bail};
use tree::Tree;

pub(crate) fn run(_: &[String]) -> Result<()> {
    let tree = Tree::read(&root())?;
    let metadata = serde_json::from_slice(&output(cargo(&[
        "metadata",
        "--no-deps",
        "--format-version",
        "1",
    ]))?)?;
    let rules = [
        edges::check(&metadata),
        files::check(&tree),
        folders::check(&tree),
        manifests::check(&tree),
        runbooks::check(&tree, &runbooks::known_kinds()),
        sources::check(&tree),
    ];
    let complaints: Vec<_> = rules.into_iter().flatten().collect();
    if complaints.is_empty() {
        println!("tidy: {} files are in order", tree.0.len());
        return Ok(());
    }
    bail!("tidy:\n  {}", complaints.join("\n  "))
}
