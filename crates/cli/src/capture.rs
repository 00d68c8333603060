//! `asynctriage capture`: asks a running process for a dump of itself.

use crate::args::{CaptureArgs, CaptureKind};
use crate::errors::CliError;
use crate::exit::Exit;
use crate::progress::Progress;
use asynctriage_diagnostics::{Client, DumpKind, Error};
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How long a process may take to answer, and to write a dump.
const ANSWER: Duration = Duration::from_secs(10);
const DUMP: Duration = Duration::from_secs(600);
/// Bytes that stay free on the disk.
const RESERVE: u64 = 64 << 20;

pub(crate) fn capture(args: &CaptureArgs) -> Result<Exit, CliError> {
    if !args.output.is_absolute() {
        let message = format!("{} is no absolute path", args.output.display());
        let remedy = "name the file as the process sees it, from its root folder";
        return Err(CliError::new(Exit::Usage, message, remedy));
    }
    let second = args.pair.map(|_| beside(&args.output));
    let (client, _) = Client::of_process(args.pid, ANSWER).map_err(refused)?;
    for file in [Some(&args.output), second.as_ref()].into_iter().flatten() {
        check(args, &outside(args.pid, file))?;
    }
    let start = Instant::now();
    one(args, &client, &args.output)?;
    if let Some((file, seconds)) = second.as_ref().zip(args.pair) {
        let rest = Duration::from_secs(seconds).saturating_sub(start.elapsed());
        std::thread::sleep(rest);
        one(args, &client, file)?;
        let (first, second) = (outside(args.pid, &args.output), outside(args.pid, file));
        say(&format!(
            "next: asynctriage diff {} {} --apart {seconds}\n",
            first.display(),
            second.display()
        ));
    } else {
        let first = outside(args.pid, &args.output);
        say(&format!("next: asynctriage {}\n", first.display()));
    }
    Ok(Exit::Written)
}

fn one(args: &CaptureArgs, client: &Client, file: &Path) -> Result<(), CliError> {
    let progress = Progress::start("the runtime writes the dump");
    let kind = match args.kind {
        CaptureKind::Full => DumpKind::Full,
        CaptureKind::Heap => DumpKind::Heap,
        CaptureKind::Mini => DumpKind::Mini,
    };
    let start = Instant::now();
    let text = file.to_string_lossy();
    client.write_dump(&text, kind, DUMP).map_err(refused)?;
    drop(progress);
    let here = outside(args.pid, file);
    let bytes = fs::metadata(&here).map(|m| m.len()).map_err(|e| {
        CliError::new(
            Exit::Input,
            format!("the runtime says that it wrote {text}, and it is not there"),
            "look for it in the file system of the process",
        )
        .because(e)
    })?;
    say(&format!(
        "{}  {:.1} MiB in {:.1} s\n",
        here.display(),
        mebibytes(bytes),
        start.elapsed().as_secs_f64()
    ));
    Ok(())
}

/// `hang.2.dmp` for `hang.dmp`.
fn beside(file: &Path) -> PathBuf {
    let extension = file.extension().unwrap_or_default().to_string_lossy();
    let second = if extension.is_empty() {
        "2".to_owned()
    } else {
        format!("2.{extension}")
    };
    file.with_extension(second)
}

/// Where a file of the process lies from here: in a container its root is another one.
fn outside(pid: u32, file: &Path) -> PathBuf {
    let root = PathBuf::from(format!("/proc/{pid}/root"));
    let other = fs::read_link(&root).is_ok_and(|r| r != Path::new("/"))
        || namespace(&pid.to_string()) != namespace("self");
    match file.strip_prefix("/") {
        Ok(inner) if other => root.join(inner),
        _ => file.to_owned(),
    }
}

fn namespace(process: &str) -> Option<PathBuf> {
    fs::read_link(format!("/proc/{process}/ns/mnt")).ok()
}

/// Refuses an existing file, and a disk that would be full.
fn check(args: &CaptureArgs, here: &Path) -> Result<(), CliError> {
    if here.symlink_metadata().is_ok() {
        let message = format!("{} exists already", here.display());
        return Err(CliError::new(Exit::Usage, message, "name another file"));
    }
    let folder = here.parent().unwrap_or(Path::new("/"));
    let free = fs4::available_space(folder).map_err(|e| {
        let message = format!("there is no folder {}", folder.display());
        CliError::new(
            Exit::Usage,
            message,
            "name a folder that the process can write to",
        )
        .because(e)
    })?;
    let count = if args.pair.is_some() { 2 } else { 1 };
    let needed = resident(args.pid)
        .filter(|_| args.kind != CaptureKind::Mini)
        .map_or(RESERVE, |r| r.saturating_mul(count).saturating_add(RESERVE));
    if free >= needed {
        return Ok(());
    }
    Err(CliError::new(
        Exit::Usage,
        format!(
            "{} has {:.0} MiB free, and the dump may take {:.0} MiB",
            folder.display(),
            mebibytes(free),
            mebibytes(needed)
        ),
        "name a folder on a disk with more space",
    ))
}

/// Bytes of memory that the process has, which a dump of it hardly exceeds.
fn resident(pid: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|l| l.strip_prefix("VmRSS:"))?;
    let kib: u64 = line.split_whitespace().next()?.parse().ok()?;
    kib.checked_mul(1024)
}

#[expect(clippy::cast_precision_loss, reason = "shown with one digit")]
fn mebibytes(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}

fn say(text: &str) {
    // nobody hears when the standard output is closed
    let _ = std::io::stdout().write_all(text.as_bytes());
}

#[expect(clippy::needless_pass_by_value, reason = "for map_err")]
fn refused(error: Error) -> CliError {
    CliError::new(Exit::Input, error.to_string(), error.remedy())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_dump_lies_beside_the_first() {
        assert_eq!(beside(Path::new("/d/hang.dmp")), Path::new("/d/hang.2.dmp"));
        assert_eq!(beside(Path::new("/d/core")), Path::new("/d/core.2"));
    }

    #[test]
    fn files_of_processes_beside_us_have_their_own_paths() {
        let file = Path::new("/d/hang.dmp");
        assert_eq!(outside(std::process::id(), file), file);
    }
}
