//! Image files of this machine for a dump that lacks them.
//!
//! Cores of gdb and of the kernel, and reduced minidumps, hold next to nothing of the files that the process had mapped:
//! no metadata, so no names. [`ImageFiles::complete`] looks for these files, makes sure that they are the ones of the
//! process, never by name alone, and lays them under the dump, but for what the process may have changed.

mod bundle;
mod changed;
mod identity;
mod memory;
mod relocate;
mod search;

#[cfg(test)]
mod tests;

use asynctriage_dump::{
    Completion, Dump, DumpKind, HostFile, MappedFile, Memory, RefusedFile, Under, UsedFile,
};
use changed::Writable;
use identity::Wanted;
use search::Index;
use std::path::{Path, PathBuf};

/// Files of the right name that are looked into for one module.
const MAX_CANDIDATES: usize = 16;

/// Where image files are looked for.
#[derive(Clone, Debug, Default)]
pub struct ImageFiles {
    module_paths: Vec<PathBuf>,
    sysroots: Vec<PathBuf>,
}

impl ImageFiles {
    /// Nowhere but where the process had them, and there only for cores that hold no files at all (gdb's, the kernel's),
    /// and only as [`Dump::host_path`] allows it.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Also in a folder and all folders below it: that of a runtime, or of the deployed application.
    #[must_use]
    pub fn module_path(mut self, folder: impl Into<PathBuf>) -> Self {
        self.module_paths.push(folder.into());
        self
    }

    /// Also at the paths of the process inside a folder: the root of a container image, or a copy of parts of one.
    #[must_use]
    pub fn sysroot(mut self, folder: impl Into<PathBuf>) -> Self {
        self.sysroots.push(folder.into());
        self
    }

    /// Finds the files that the dump lacks parts of and lays them under it. What came of it stands in
    /// [`Dump::completion`].
    pub fn complete(&self, dump: &mut Dump) {
        let bare = matches!(
            dump.kind,
            DumpKind::Gcore | DumpKind::Kernel | DumpKind::Unknown
        );
        if self.module_paths.is_empty() && self.sysroots.is_empty() && !bare {
            return;
        }
        let index = Index::of(&self.module_paths);
        let writable = Writable::of(dump);
        let mut completion = Completion::default();
        let mut parts = Vec::new();
        for wanted in Wanted::all(dump) {
            let mapped = dump.host_path(wanted.path).filter(|_| bare);
            let candidates = self.candidates(wanted.path, &index, mapped);
            let mut refused = Vec::new();
            for file in candidates.into_iter().take(MAX_CANDIDATES) {
                match open(&file, dump, &writable, &wanted) {
                    Some(Ok(mut found)) => {
                        parts.append(&mut found.parts);
                        refused.clear();
                        completion.used.push(UsedFile {
                            module: wanted.path.to_owned(),
                            file,
                            because: found.because,
                            contents: found.contents,
                        });
                        break;
                    }
                    Some(Err(why)) => refused.push(RefusedFile {
                        module: wanted.path.to_owned(),
                        file,
                        why,
                    }),
                    None => {}
                }
            }
            completion.refused.append(&mut refused);
        }
        dump.lay_under(parts, completion);
    }

    /// Files that may be the module `path` of the process, the likely ones first.
    fn candidates(&self, path: &str, index: &Index, mapped: Option<PathBuf>) -> Vec<PathBuf> {
        let inside = self
            .sysroots
            .iter()
            .flat_map(|root| search::inside(root, path));
        let mut out: Vec<PathBuf> = inside.collect();
        out.extend(index.named(path));
        out.extend(mapped);
        out.dedup();
        out
    }
}

/// A file that is the module of the process.
struct Found {
    contents: HostFile,
    /// What it lends to the dump.
    parts: Vec<Under>,
    because: String,
}

/// What comes of a file; `None` when there is none, or none that is an image.
fn open(
    path: &Path,
    dump: &Dump,
    writable: &Writable,
    wanted: &Wanted<'_>,
) -> Option<Result<Found, String>> {
    if !path.is_file() {
        return None;
    }
    match HostFile::open(path) {
        Ok(file) => {
            let verdict = wanted.examine(dump, writable, &file)?;
            Some(verdict.map(|(parts, because)| Found {
                contents: file,
                parts,
                because,
            }))
        }
        Err(error) => Some(Err(format!("it cannot be opened: {error}"))),
    }
}

/// Whether the dump lacks bytes of a mapping.
fn lacks(dump: &Dump, file: &MappedFile) -> bool {
    let memory: &dyn Memory = &dump.memory;
    let len = file.end.since(file.start).unwrap_or(0);
    !memory.readable(file.start, len)
}
