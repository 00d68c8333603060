//! The socket of a process: `dotnet-diagnostic-PID-KEY-socket` in the folder for temporary files that the process uses.
//!
//! On Linux KEY is the start time of the process as `/proc/PID/stat` has it, so that sockets left behind by earlier
//! processes with the same number can be told apart (seen with 10.0.15 and 11.0.0).

use crate::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// How many entries of a folder are looked at.
const MAX_ENTRIES: usize = 200_000;

/// What `/proc` says of a process; nothing of it is known on other systems.
#[derive(Debug, Default)]
struct Facts {
    /// The number that the process itself sees: another one inside a container.
    inner_pid: Option<u32>,
    /// Start time in ticks since the boot.
    start: Option<u64>,
    /// `TMPDIR` of the process, as a path from here.
    tmpdir: Option<PathBuf>,
    /// `/tmp` of the process, as a path from here.
    tmp: Option<PathBuf>,
}

/// The socket of the process.
pub(crate) fn find(pid: u32) -> Result<PathBuf, Error> {
    if cfg!(not(unix)) {
        return Err(Error::NotSupported);
    }
    let root = Path::new("/proc");
    if root.join("self").exists() {
        is_there_and_mine(root, pid)?;
    }
    let facts = facts(root, pid);
    let inner = facts.inner_pid.unwrap_or(pid);
    let own = [facts.tmpdir, facts.tmp].into_iter().flatten();
    let ours = [std::env::temp_dir(), "/tmp".into()].into_iter();
    let folders = own.map(|f| (f, false)).chain(ours.map(|f| (f, true)));
    let mut seen: Vec<PathBuf> = Vec::new();
    for (folder, is_ours) in folders {
        // one folder under several names is searched once
        let folder = fs::canonicalize(&folder).unwrap_or(folder);
        if seen.contains(&folder) {
            continue;
        }
        // the number that a process has in its container may be that of another process in our folders
        let only_by_start = is_ours && inner != pid;
        if let Some(found) = newest(&folder, inner, facts.start, only_by_start) {
            return Ok(found);
        }
        seen.push(folder);
    }
    Err(Error::NoSocket { pid, folders: seen })
}

/// The number that the process itself sees.
pub(crate) fn inner_pid(pid: u32) -> u32 {
    facts(Path::new("/proc"), pid).inner_pid.unwrap_or(pid)
}

#[cfg(unix)]
fn is_there_and_mine(proc: &Path, pid: u32) -> Result<(), Error> {
    use std::os::unix::fs::MetadataExt;
    let owner = |name: &str| fs::metadata(proc.join(name)).map(|m| m.uid());
    let theirs = owner(&pid.to_string()).map_err(|_| Error::NoProcess(pid))?;
    match owner("self") {
        Ok(mine) if mine != 0 && mine != theirs => Err(Error::OtherUser { pid, owner: theirs }),
        _ => Ok(()),
    }
}

#[cfg(not(unix))]
fn is_there_and_mine(_: &Path, _: u32) -> Result<(), Error> {
    Err(Error::NotSupported)
}

fn facts(proc: &Path, pid: u32) -> Facts {
    let folder = proc.join(pid.to_string());
    let text = |name: &str| fs::read(folder.join(name)).unwrap_or_default();
    let under_root = |path: &Path| {
        let inner = path.strip_prefix("/").ok()?;
        let outer = folder.join("root").join(inner);
        outer.is_dir().then_some(outer)
    };
    Facts {
        inner_pid: inner_pid_of(&String::from_utf8_lossy(&text("status"))),
        start: start_of(&String::from_utf8_lossy(&text("stat"))),
        tmpdir: tmpdir_of(&text("environ")).and_then(|path| under_root(&path)),
        tmp: under_root(Path::new("/tmp")),
    }
}

/// The last number of the line `NSpid:` in `/proc/PID/status`.
fn inner_pid_of(status: &str) -> Option<u32> {
    let line = status.lines().find_map(|l| l.strip_prefix("NSpid:"))?;
    line.split_whitespace().next_back()?.parse().ok()
}

/// Field 22 of `/proc/PID/stat`; the second field, in parentheses, may hold anything.
fn start_of(stat: &str) -> Option<u64> {
    let (_, behind) = stat.rsplit_once(')')?;
    behind.split_whitespace().nth(19)?.parse().ok()
}

/// The variable in `/proc/PID/environ`.
#[cfg(unix)]
fn tmpdir_of(environ: &[u8]) -> Option<PathBuf> {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    let mut variables = environ.split(|b| *b == 0);
    let value = variables.find_map(|v| v.strip_prefix(b"TMPDIR="))?;
    Some(PathBuf::from(OsStr::from_bytes(value)))
}

#[cfg(not(unix))]
fn tmpdir_of(_: &[u8]) -> Option<PathBuf> {
    None
}

/// The socket of `pid` in a folder: that with the start time of the process, else the newest, unless `only_by_start`.
fn newest(folder: &Path, pid: u32, start: Option<u64>, only_by_start: bool) -> Option<PathBuf> {
    let entries = fs::read_dir(folder).ok()?.take(MAX_ENTRIES);
    let sockets = entries.filter_map(|entry| {
        let entry = entry.ok()?;
        let key = key_of(entry.file_name().to_str()?, pid)?;
        let made = entry.metadata().and_then(|m| m.modified());
        let made = made.unwrap_or(SystemTime::UNIX_EPOCH);
        Some(((start == Some(key), made), entry.path()))
    });
    let sockets = sockets.filter(|((by_start, _), _)| *by_start || !only_by_start);
    sockets.max().map(|(_, path)| path)
}

fn key_of(name: &str, pid: u32) -> Option<u64> {
    let rest = name.strip_prefix("dotnet-diagnostic-")?;
    let (number, key) = rest.strip_suffix("-socket")?.split_once('-')?;
    (number.parse() == Ok(pid)).then(|| key.parse().ok())?
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    /// A folder of its own for each test, emptied.
    fn folder(test: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("socket-{}-{test}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).expect("writable");
        folder
    }

    #[test]
    fn the_socket_with_the_start_time_wins() {
        let folder = folder("start");
        for name in [
            "dotnet-diagnostic-7-100-socket",
            "dotnet-diagnostic-7-300-socket",
            "dotnet-diagnostic-77-200-socket",
            "dotnet-diagnostic-7-x-socket",
            "clr-debug-pipe-7-100-in",
        ] {
            fs::write(folder.join(name), "").expect("writable");
        }
        let chosen = |pid, start, only_by_start| {
            let path = newest(&folder, pid, start, only_by_start)?;
            Some(path.file_name()?.to_str()?.to_owned())
        };
        let found = |pid, start| chosen(pid, start, false);
        assert_eq!(
            found(7, Some(100)).as_deref(),
            Some("dotnet-diagnostic-7-100-socket")
        );
        assert_eq!(
            found(77, None).as_deref(),
            Some("dotnet-diagnostic-77-200-socket")
        );
        assert_eq!(found(8, None), None);
        assert_eq!(chosen(7, Some(300), true), found(7, Some(300)));
        assert_eq!(chosen(77, Some(201), true), None, "of another process");
        fs::remove_dir_all(&folder).expect("ours");
    }

    #[test]
    fn facts_of_proc() {
        assert_eq!(inner_pid_of("Name:\tx\nNSpid:\t4321\t17\n"), Some(17));
        assert_eq!(inner_pid_of("Name:\tx\n"), None);
        let stat = "12 (a) b) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 4242 20";
        assert_eq!(start_of(stat), Some(4242));
        assert_eq!(start_of("12 (cut"), None);
        let tmpdir = tmpdir_of(b"A=1\0TMPDIR=/var/t\0B=2\0");
        assert_eq!(tmpdir, Some("/var/t".into()));
    }

    #[test]
    fn a_process_must_exist_and_be_mine() {
        let proc = folder("proc");
        fs::create_dir(proc.join("self")).expect("writable");
        fs::create_dir(proc.join("9")).expect("writable");
        is_there_and_mine(&proc, 9).expect("made by the same user");
        let error = is_there_and_mine(&proc, 10).expect_err("no such folder");
        assert!(matches!(error, Error::NoProcess(10)));
        fs::remove_dir_all(&proc).expect("ours");
    }

    #[test]
    fn a_process_without_a_socket_is_named_with_the_folders() {
        // the program that runs this test is no .NET process
        let error = find(std::process::id()).expect_err("no socket");
        assert!(matches!(error, Error::NoSocket { folders, .. } if !folders.is_empty()));
    }
}
