//! Files by name.

use std::collections::{BTreeMap, VecDeque};
use std::ffi::OsStr;
use std::fs;
use std::path::{Component, Path, PathBuf};

/// Files and folders that are looked at; the largest runtimes have some hundred.
const MAX_ENTRIES: usize = 1 << 18;
/// Folders inside one another.
const MAX_DEPTH: usize = 16;

/// The files below some folders, by name in small letters.
#[derive(Debug, Default)]
pub(super) struct Index {
    by_name: BTreeMap<String, Vec<PathBuf>>,
}

impl Index {
    /// Lists the files below `folders`; links to folders are not followed.
    pub(super) fn of(folders: &[PathBuf]) -> Self {
        let mut index = Self::default();
        let mut left = MAX_ENTRIES;
        let mut queue: VecDeque<(PathBuf, usize)> =
            folders.iter().map(|f| (f.clone(), 0)).collect();
        while let Some((folder, depth)) = queue.pop_front() {
            let Ok(entries) = fs::read_dir(&folder) else {
                continue;
            };
            for entry in entries.flatten() {
                let Some(rest) = left.checked_sub(1) else {
                    return index;
                };
                left = rest;
                if entry.file_type().is_ok_and(|t| t.is_dir()) {
                    if depth < MAX_DEPTH {
                        queue.push_back((entry.path(), depth.saturating_add(1)));
                    }
                } else {
                    index.add(entry.path());
                }
            }
        }
        index
    }

    fn add(&mut self, path: PathBuf) {
        let name = path.file_name().and_then(OsStr::to_str);
        if let Some(name) = name.map(str::to_ascii_lowercase) {
            self.by_name.entry(name).or_default().push(path);
        }
    }

    /// Files that are called like a module of the process, those first whose folders are called alike, too.
    pub(super) fn named(&self, module: &str) -> Vec<PathBuf> {
        let parts: Vec<&str> = parts(module).collect();
        let name = parts.last().map(|n| n.to_ascii_lowercase());
        let found = name.and_then(|n| self.by_name.get(&n));
        let mut found = found.cloned().unwrap_or_default();
        found.sort();
        found.sort_by_key(|path| std::cmp::Reverse(alike(path, &parts)));
        found
    }
}

/// How many names at the end of a path are those of the module.
fn alike(path: &Path, module: &[&str]) -> usize {
    let names = path.iter().rev().filter_map(OsStr::to_str);
    names
        .zip(module.iter().rev())
        .take_while(|(a, b)| a.eq_ignore_ascii_case(b))
        .count()
}

/// The names that a path of the process is made of; those of Windows begin with a drive.
fn parts(module: &str) -> impl Iterator<Item = &str> {
    let windows = module.contains('\\');
    module
        .split(move |c| c == '/' || windows && c == '\\')
        .filter(|name| !name.is_empty())
}

/// Whether this system takes a name for that of a file or folder, and for nothing else.
fn is_plain(name: &str) -> bool {
    let mut parts = Path::new(name).components();
    matches!(
        (parts.next(), parts.next()),
        (Some(Component::Normal(_)), None)
    )
}

/// Where a module may be inside a folder that stands for the root of its system: for Windows with and without a folder
/// for the drive.
pub(super) fn inside(root: &Path, module: &str) -> Vec<PathBuf> {
    let names: Vec<&str> = parts(module).collect();
    let join = |names: &[&str]| {
        let mut path = root.to_path_buf();
        path.extend(names);
        path
    };
    let mut behind_drive = names
        .iter()
        .skip(usize::from(names.first().is_some_and(|n| n.ends_with(':'))));
    // a path that climbs, or that has a drive inside where this system knows drives, would leave the folder
    if !behind_drive.all(|name| is_plain(name)) {
        return Vec::new();
    }
    match names.split_first() {
        Some((drive, rest)) if drive.ends_with(':') => {
            let letter = drive.trim_end_matches(':');
            let with_drive: Vec<&str> = std::iter::once(letter)
                .chain(rest.iter().copied())
                .collect();
            vec![join(rest), join(&with_drive)]
        }
        Some(_) => vec![join(&names)],
        None => Vec::new(),
    }
}
