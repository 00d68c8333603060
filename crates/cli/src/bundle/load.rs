//! A bundle that is there already, read without believing it.

use super::{Files, archive, unreadable};
use crate::errors::CliError;
use crate::new_file::{Present, present};
use asynctriage_dump::{OpenOptions, PlainFile};
use std::fs;
use std::io;
use std::path::Path;

/// Folders below the first.
const MAX_DEPTH: usize = 4;
const MAX_FILES: usize = 10_000;
/// All files together.
const MAX_BYTES: u64 = 8 << 30;

/// The files of a bundle, and what is wrong with it as a folder or an archive.
pub(crate) fn load(bundle: &Path) -> Result<(Files, Vec<String>), CliError> {
    let named = || unreadable(bundle.display());
    let (mut files, mut faults) = (Files::new(), Vec::new());
    if bundle.is_dir() {
        let mut bytes = 0;
        walk(bundle, "", 0, &mut bytes, &mut files, &mut faults).map_err(|e| named().because(e))?;
        return Ok((files, faults));
    }
    let file = PlainFile::open(bundle, &OpenOptions::default()).map_err(|e| named().because(e))?;
    let packed = file.compression.as_ref().and_then(|c| c.fault());
    faults.extend(packed.map(str::to_owned));
    files = archive::files_of(file.bytes()).map_err(|e| named().because(e))?;
    // what an archive says besides its files is always the same
    if archive::tar_of(&files).ok().as_deref() != Some(file.bytes()) {
        faults
            .push("the archive itself is not as it was made: its headers or its end differ".into());
    }
    Ok((files, faults))
}

fn walk(
    folder: &Path,
    prefix: &str,
    depth: usize,
    read: &mut u64,
    files: &mut Files,
    faults: &mut Vec<String>,
) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name();
        let path = format!("{prefix}{}", name.to_string_lossy());
        match present(&entry.path()) {
            Present::Folder if depth < MAX_DEPTH => {
                let inner = format!("{path}/");
                walk(&entry.path(), &inner, depth + 1, read, files, faults)?;
            }
            Present::File => {
                *read = read.saturating_add(entry.metadata()?.len());
                if *read > MAX_BYTES || files.len() >= MAX_FILES {
                    return Err(io::Error::other("it is too large for a bundle"));
                }
                files.insert(path, fs::read(entry.path())?);
            }
            _ => faults.push(format!("{path} is neither a file nor a folder of a bundle")),
        }
    }
    Ok(())
}
