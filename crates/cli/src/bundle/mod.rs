//! A bundle of evidence: files that were made of one dump or recording, with the hash of each.
//!
//! The manifest names all files but itself and the list of hashes; the list, in the form of `sha256sum`, names all but itself. The
//! hash of the list is the seal: whoever notes it elsewhere can tell that the bundle is still the one that was made.

mod archive;
mod load;
pub(crate) mod made;
mod store;

pub(crate) use load::load;
pub(crate) use store::Store;

use crate::digest::sha256;
use crate::errors::CliError;
use crate::exit::Exit;
use crate::forms::unwritable;
use asynctriage_report::{self as report, BundleFile, Manifest};
use std::collections::BTreeMap;
use std::fmt::Write as _;

pub(crate) const MANIFEST: &str = "manifest.json";
pub(crate) const HASHES: &str = "SHA256SUMS";
/// Copies of symbol files.
pub(crate) const SYMBOLS: &str = "symbols/";

/// The files of a bundle, by path with `/`.
pub(crate) type Files = BTreeMap<String, Vec<u8>>;

/// A file that belongs into a bundle.
#[derive(Debug)]
pub(crate) struct Output {
    pub(crate) path: String,
    pub(crate) what: &'static str,
    pub(crate) bytes: Vec<u8>,
}

impl Output {
    pub(crate) fn new(
        path: impl Into<String>,
        what: &'static str,
        bytes: impl Into<Vec<u8>>,
    ) -> Self {
        Self {
            path: path.into(),
            what,
            bytes: bytes.into(),
        }
    }
}

/// A bundle with its manifest and its list of hashes.
pub(crate) fn sealed(outputs: Vec<Output>, mut manifest: Manifest) -> Result<Files, CliError> {
    manifest.outputs = outputs
        .iter()
        .map(|o| BundleFile {
            path: o.path.clone(),
            bytes: o.bytes.len() as u64,
            sha256: sha256(&o.bytes),
            what: o.what.to_owned(),
        })
        .collect();
    manifest.outputs.sort_by(|a, b| a.path.cmp(&b.path));
    let mut files: Files = outputs.into_iter().map(|o| (o.path, o.bytes)).collect();
    let text = report::json(&manifest).map_err(unwritable)?;
    files.insert(MANIFEST.to_owned(), text.into_bytes());
    let hashes = hashes(&files);
    files.insert(HASHES.to_owned(), hashes.into_bytes());
    Ok(files)
}

/// The list of hashes, as `sha256sum` writes and checks it.
pub(crate) fn hashes(files: &Files) -> String {
    let mut out = String::new();
    for (path, bytes) in files.iter().filter(|(path, _)| *path != HASHES) {
        // writing to a String cannot fail
        let _ = writeln!(out, "{}  {path}", sha256(bytes));
    }
    out
}

/// The hash of the list of hashes.
pub(crate) fn seal(files: &Files) -> String {
    files.get(HASHES).map(|b| sha256(b)).unwrap_or_default()
}

/// For bundles that cannot be read.
fn unreadable(what: impl std::fmt::Display) -> CliError {
    CliError::new(
        Exit::Input,
        format!("{what} cannot be read as a bundle of evidence"),
        "name a folder or an archive that `asynctriage export` made",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bundle_names_each_file_with_its_hash() {
        let outputs = vec![
            Output::new("b.txt", "a text", "b"),
            Output::new("a.txt", "a text", ""),
        ];
        let files = sealed(outputs, Manifest::default())
            .map_err(|e| e.render())
            .unwrap();
        let list = String::from_utf8(files[HASHES].clone()).unwrap();
        assert_eq!(list.lines().count(), 3);
        assert!(list.starts_with(
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855  a.txt\n"
        ));
        assert_eq!(seal(&files), sha256(list.as_bytes()));
        let manifest: Manifest =
            report::from_json(std::str::from_utf8(&files[MANIFEST]).unwrap()).unwrap();
        let paths: Vec<_> = manifest.outputs.iter().map(|o| o.path.as_str()).collect();
        assert_eq!(paths, ["a.txt", "b.txt"]);
    }
}
