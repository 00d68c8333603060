//! Where a new bundle goes: a new folder, or one new file.

use super::Files;
use super::archive::{self, Packing};
use crate::errors::CliError;
use crate::exit::Exit;
use crate::new_file::{self, Existing, Present};
use crate::output::Destination;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// What a bundle becomes.
#[derive(Debug)]
pub(crate) enum Target {
    /// A folder that does not exist yet, or is empty.
    Folder(PathBuf),
    /// An archive.
    File(Destination, Packing),
}

/// Where to write, checked before the analysis so that a mistake does not cost its time.
#[derive(Debug)]
pub(crate) struct Store {
    target: Target,
}

impl Store {
    pub(crate) fn new(output: &Path, force: bool, input: &Path) -> Result<Self, CliError> {
        if let Some(packing) = Packing::of(output).filter(|_| !output.is_dir()) {
            let file = Destination::file(output, force, input)?;
            return Ok(Self {
                target: Target::File(file, packing),
            });
        }
        let is_free = match new_file::present(output) {
            Present::Nothing => true,
            Present::Folder => fs::read_dir(output).is_ok_and(|mut all| all.next().is_none()),
            _ => false,
        };
        if is_free {
            return Ok(Self {
                target: Target::Folder(output.to_owned()),
            });
        }
        let message = format!("{} exists already and is no empty folder", output.display());
        let remedy = "name a new folder, or a file that ends with .tar, .tar.gz or .tar.zst";
        Err(CliError::new(Exit::Usage, message, remedy))
    }

    /// Writes all files, readable by their user alone. A folder has its name only when all of it is there.
    pub(crate) fn write(&self, files: &Files) -> Result<(), CliError> {
        match &self.target {
            Target::File(file, packing) => {
                let packed = archive::pack(files, *packing);
                file.write_with(|out| out.write_all(&packed?))
            }
            Target::Folder(folder) => fill(folder, files).map_err(|e| {
                let message = format!("cannot write {}", folder.display());
                let remedy = "name a folder on a disk with space that you may write to";
                CliError::new(Exit::Output, message, remedy).because(e)
            }),
        }
    }
}

fn fill(folder: &Path, files: &Files) -> io::Result<()> {
    let parent = folder.parent().filter(|p| !p.as_os_str().is_empty());
    let mut made = tempfile::Builder::new();
    #[cfg(unix)]
    made.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o700));
    let made = made
        .prefix(".asynctriage-")
        .tempdir_in(parent.unwrap_or(Path::new(".")))?;
    for (path, bytes) in files {
        let file = made.path().join(path);
        if let Some(inner) = file.parent() {
            fs::create_dir_all(inner)?;
        }
        new_file::write(&file, Existing::Keep, |out| out.write_all(bytes))?;
    }
    if folder.is_dir() {
        // fails when something came in meanwhile
        fs::remove_dir(folder)?;
    }
    fs::rename(made.path(), folder)?;
    // its folder has another name now
    let _ = made.keep();
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_new_or_empty() {
        let files: Files = [("a/b".to_owned(), b"text".to_vec())].into();
        let folder = tempfile::tempdir().unwrap();
        let store = |name: &str| Store::new(&folder.path().join(name), false, Path::new("x"));
        store("new")
            .map_err(|e| e.render())
            .unwrap()
            .write(&files)
            .map_err(|e| e.render())
            .unwrap();
        assert_eq!(fs::read(folder.path().join("new/a/b")).unwrap(), b"text");
        assert!(store("new").is_err(), "what is there is kept");
        fs::create_dir(folder.path().join("empty")).unwrap();
        store("empty")
            .map_err(|e| e.render())
            .unwrap()
            .write(&files)
            .map_err(|e| e.render())
            .unwrap();
        assert!(folder.path().join("empty/a/b").is_file());
        let left = fs::read_dir(folder.path()).unwrap().count();
        assert_eq!(left, 2, "nothing else is left behind");
    }
}
