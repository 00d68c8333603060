//! The files of the repository.

use anyhow::{Context, Result};
use std::path::Path;

/// A file of the repository.
#[derive(Debug)]
pub(super) struct File {
    /// Path from the root, with `/`.
    pub(super) path: String,
    /// Size in bytes.
    pub(super) len: u64,
    /// Its content; empty for what is not text.
    pub(super) text: String,
}

/// All files of the repository, in the order of their paths.
#[derive(Debug)]
pub(super) struct Tree(pub(super) Vec<File>);

/// What tools fill and git ignores.
const GENERATED: &[&str] = &[".git", "target", "corpus", "artifacts"];

impl Tree {
    pub(super) fn read(root: &Path) -> Result<Self> {
        let mut files = Vec::new();
        collect(root, "", &mut files).with_context(|| format!("cannot list {}", root.display()))?;
        files.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(Self(files))
    }

    /// Rust files, with their paths from the root.
    pub(super) fn rust(&self) -> impl Iterator<Item = &File> {
        self.0.iter().filter(|f| f.path.ends_with(".rs"))
    }

    /// The text of a file; empty when there is none.
    pub(super) fn text(&self, path: &str) -> &str {
        self.0
            .iter()
            .find(|f| f.path == path)
            .map_or("", |f| &f.text)
    }
}

impl File {
    /// Name of the folder in `crates/` that the file belongs to.
    pub(super) fn crate_folder(&self) -> Option<&str> {
        Some(self.path.strip_prefix("crates/")?.split_once('/')?.0)
    }
}

fn collect(folder: &Path, prefix: &str, files: &mut Vec<File>) -> std::io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = format!("{prefix}{name}");
        // in a work tree of its own `.git` is a file
        if GENERATED.contains(&name.as_str()) {
            continue;
        }
        if entry.file_type()?.is_dir() {
            collect(&entry.path(), &format!("{path}/"), files)?;
        } else if !is_ignored(&path) {
            let bytes = std::fs::read(entry.path())?;
            files.push(File {
                path,
                len: bytes.len() as u64,
                text: String::from_utf8(bytes).unwrap_or_default(),
            });
        }
    }
    Ok(())
}

/// As in `.gitignore`: dumps that lie around are no part of the repository.
fn is_ignored(path: &str) -> bool {
    path.ends_with(".dmp") && !path.starts_with("testdumps/")
}

#[cfg(test)]
pub(super) fn tree<const N: usize>(files: [(&str, &str); N]) -> Tree {
    let file = |(path, text): (&str, &str)| File {
        path: path.into(),
        len: text.len() as u64,
        text: text.into(),
    };
    Tree(files.map(file).into())
}
