//! Which dumps a command line names.

use crate::args::BatchArgs;
use crate::errors::CliError;
use crate::exit::Exit;
use sha2::{Digest, Sha256};
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// Folders in folders.
const MAX_DEPTH: usize = 64;
/// The longest list.
const MAX_LIST: u64 = 1 << 30;
/// Of an ELF file: its mark, and where its type stands; 4 is a core.
const ELF: &[u8] = b"\x7fELF";
const ELF_TYPE: usize = 16;
const CORE: u8 = 4;
const MINIDUMP: &[u8] = b"MDMP";
const GZIP: &[u8] = &[0x1f, 0x8b];
const ZSTD: &[u8] = &[0x28, 0xb5, 0x2f, 0xfd];
/// How dumps are called that are packed, so that it does not take unpacking to tell.
const NAMES: [&str; 5] = [".dmp.", ".mdmp.", ".core.", ".dump.", "core."];

/// The dumps of this part, sorted, each once.
pub(super) fn find(args: &BatchArgs) -> Result<Vec<PathBuf>, CliError> {
    let mut named = args.dumps.clone();
    if let Some(list) = &args.list {
        named.extend(listed(list)?);
    }
    let mut found = BTreeSet::new();
    for name in &named {
        one(name, &mut found)?;
    }
    let (part, parts) = args.shard;
    found.retain(|file| is_of(file, part, parts));
    Ok(found.into_iter().collect())
}

/// A path belongs to one part, whatever other dumps there are.
fn is_of(file: &Path, part: u32, parts: u32) -> bool {
    let hash = Sha256::digest(file.as_os_str().as_encoded_bytes());
    let first = hash
        .iter()
        .take(4)
        .fold(0, |sum: u32, b| (sum << 8) | u32::from(*b));
    first.checked_rem(parts) == Some(part)
}

fn listed(list: &Path) -> Result<Vec<PathBuf>, CliError> {
    let mut text = String::new();
    let read = if list == Path::new("-") {
        io::stdin().lock().take(MAX_LIST).read_to_string(&mut text)
    } else {
        File::open(list).and_then(|f| f.take(MAX_LIST).read_to_string(&mut text))
    };
    read.map_err(|e| {
        let message = format!("{} cannot be read", list.display());
        CliError::new(
            Exit::Input,
            message,
            "name a text file with a path in each line",
        )
        .because(e)
    })?;
    let lines = text.lines().map(str::trim).filter(|l| !l.is_empty());
    Ok(lines.map(PathBuf::from).collect())
}

fn one(name: &Path, found: &mut BTreeSet<PathBuf>) -> Result<(), CliError> {
    if name.is_dir() {
        return folder(name, found);
    }
    if name.exists() {
        // what is named as a file is read, whatever it looks like: if it is no dump, that is said
        found.insert(name.to_owned());
        return Ok(());
    }
    let pattern = name.to_string_lossy();
    let no_file = |why: &str| {
        let message = format!("{} {why}", name.display());
        CliError::new(
            Exit::Input,
            message,
            "name a file, a folder, or a pattern in quotes",
        )
    };
    if !pattern.contains(['*', '?', '[']) {
        return Err(no_file("does not exist"));
    }
    let paths = glob::glob(&pattern).map_err(|e| no_file("is no pattern").because(e))?;
    let before = found.len();
    for path in paths.flatten() {
        if path.is_dir() {
            folder(&path, found)?;
        } else {
            found.insert(path);
        }
    }
    if found.len() == before {
        return Err(no_file("fits no file"));
    }
    Ok(())
}

/// The dumps below a folder; links to folders are not followed.
fn folder(top: &Path, found: &mut BTreeSet<PathBuf>) -> Result<(), CliError> {
    let mut open = vec![(top.to_owned(), 0)];
    while let Some((folder, depth)) = open.pop() {
        let entries = fs::read_dir(&folder).map_err(|e| {
            let message = format!("{} cannot be read", folder.display());
            CliError::new(Exit::Input, message, "name folders that you may read").because(e)
        })?;
        for entry in entries.flatten() {
            let Ok(kind) = entry.file_type() else {
                continue;
            };
            let path = entry.path();
            if kind.is_dir() {
                if depth < MAX_DEPTH {
                    open.push((path, depth.saturating_add(1)));
                }
            } else if path.is_file() && is_dump(&path) {
                found.insert(path);
            }
        }
    }
    Ok(())
}

/// Whether a file of a folder begins as a dump does.
fn is_dump(path: &Path) -> bool {
    let mut begin = Vec::new();
    let read = File::open(path).and_then(|f| f.take(32).read_to_end(&mut begin));
    if read.is_err() {
        // that it cannot be read is said by its row
        return true;
    }
    let name = path
        .file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .to_lowercase();
    let is_packed = begin.starts_with(GZIP) || begin.starts_with(ZSTD);
    begin.starts_with(MINIDUMP)
        || begin.starts_with(ELF) && begin.get(ELF_TYPE) == Some(&CORE)
        || is_packed && NAMES.iter().any(|n| name.contains(n))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_give_what_looks_like_a_dump() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, bytes: &[u8]| {
            let file = folder.path().join(name);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, bytes).unwrap();
        };
        let elf = |kind: u8| {
            let mut bytes = ELF.to_vec();
            bytes.resize(ELF_TYPE, 0);
            bytes.push(kind);
            bytes
        };
        write("deep/er/core.17", &elf(CORE));
        write("deep/program", &elf(2));
        write("win.dmp", MINIDUMP);
        write("packed.dmp.gz", GZIP);
        write("report.json.gz", GZIP);
        write("truth.json", b"{}");
        write("empty.dmp", b"");
        let mut found = BTreeSet::new();
        one(folder.path(), &mut found).unwrap();
        let names: Vec<_> = found
            .iter()
            .map(|f| f.file_name().unwrap().to_str().unwrap())
            .collect();
        assert_eq!(names, ["core.17", "packed.dmp.gz", "win.dmp"]);
        let mut found = BTreeSet::new();
        one(&folder.path().join("*.json*"), &mut found).unwrap();
        assert_eq!(found.len(), 2, "who names a file has it read");
        one(&folder.path().join("*.none"), &mut found).unwrap_err();
        one(&folder.path().join("none"), &mut found).unwrap_err();
    }

    #[test]
    fn each_path_belongs_to_one_part() {
        let paths: Vec<PathBuf> = (0..1000).map(|n| format!("/d/{n}.dmp").into()).collect();
        for path in &paths {
            assert_eq!((0..8).filter(|part| is_of(path, *part, 8)).count(), 1);
        }
        let sizes = (0..8).map(|part| paths.iter().filter(|p| is_of(p, part, 8)).count());
        assert!(
            sizes.clone().all(|s| s > 80),
            "{:?}",
            sizes.collect::<Vec<_>>()
        );
    }
}
