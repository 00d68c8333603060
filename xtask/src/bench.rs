//! How long an analysis takes, in units of the time that reading the file takes.

use crate::shell::{cargo, output, root, run as show};
use anyhow::{Context, Result, bail};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Bytes per read of the yardstick.
const BUFFER: usize = 4 << 20;
/// What a `.nettrace` file begins with.
const RECORDING: &[u8] = b"Nettrace";

pub(crate) fn run(args: &[String]) -> Result<()> {
    let (file, runs) = match args {
        [file] => (file, 5),
        [file, runs] => (file, runs.parse().context("RUNS must be a number")?),
        _ => bail!("usage: cargo xtask bench DUMP|FILE.nettrace [RUNS]"),
    };
    let file = std::path::absolute(file)?;
    let is_recording = is_recording(&file)?;
    show(cargo(&["build", "--release", "-p", "asynctriage"]))?;
    let binary = release_binary()?;
    // the first round fills the page cache and does not count
    analyse(&binary, &file, is_recording)?;
    let ours = median(runs, || analyse(&binary, &file, is_recording))?;
    let megabytes = std::fs::metadata(&file)?.len() as f64 / 1e6;
    println!(
        "analysis              {:8.1} ms, {:.0} MB/s",
        millis(ours),
        megabytes / ours.as_secs_f64()
    );
    for threads in [1, 2] {
        let read = median(runs, || read_once(&file, threads))?;
        let ratio = ours.as_secs_f64() / read.as_secs_f64();
        println!(
            "reading, {threads} thread(s)  {:8.1} ms, the analysis takes {ratio:.2} times as long",
            millis(read)
        );
    }
    if is_recording {
        return Ok(());
    }
    let mut timed = Command::new(&binary);
    timed
        .arg(&file)
        .args(["--format", "json", "--timings"])
        .stdout(Stdio::null());
    show(timed)
}

fn release_binary() -> Result<PathBuf> {
    let metadata: serde_json::Value = serde_json::from_slice(&output(cargo(&[
        "metadata",
        "--no-deps",
        "--format-version",
        "1",
    ]))?)?;
    let target = metadata["target_directory"]
        .as_str()
        .context("no target_directory")?;
    Ok(Path::new(target)
        .join("release")
        .join(format!("asynctriage{}", std::env::consts::EXE_SUFFIX)))
}

/// Whether the file is a recording; all else is taken for a dump.
fn is_recording(path: &Path) -> Result<bool> {
    let mut magic = Vec::new();
    let file = File::open(path).with_context(|| path.display().to_string())?;
    file.take(RECORDING.len() as u64).read_to_end(&mut magic)?;
    Ok(magic == RECORDING)
}

fn analyse(binary: &Path, file: &Path, is_recording: bool) -> Result<Duration> {
    let start = Instant::now();
    let status = Command::new(binary)
        .args(is_recording.then_some("trace"))
        .arg(file)
        .args(["--format", "json"])
        .current_dir(root())
        .stdout(Stdio::null())
        .status()?;
    // 1 only says that the process hangs
    if status.code().is_none_or(|c| c > 1) {
        bail!("{} failed: {status}", binary.display());
    }
    Ok(start.elapsed())
}

/// Reads the file with plain reads and adds it up, an equal part in each thread.
fn read_once(path: &Path, threads: u64) -> Result<Duration> {
    let len = std::fs::metadata(path)?.len();
    let part = len.div_ceil(threads);
    let start = Instant::now();
    std::thread::scope(|scope| {
        let parts: Vec<_> = (0..threads)
            .map(|i| scope.spawn(move || sum(path, i * part, part)))
            .collect();
        for part in parts {
            let sum = part
                .join()
                .map_err(|_| anyhow::anyhow!("a reader panicked"))??;
            std::hint::black_box(sum);
        }
        anyhow::Ok(())
    })?;
    Ok(start.elapsed())
}

fn sum(path: &Path, from: u64, len: u64) -> Result<u64> {
    let mut file = File::open(path)?;
    file.seek(SeekFrom::Start(from))?;
    let mut file = file.take(len);
    let mut buffer = vec![0; BUFFER];
    let mut sum = 0u64;
    loop {
        let got = file.read(&mut buffer)?;
        if got == 0 {
            return Ok(sum);
        }
        let words = buffer[..got].as_chunks().0.iter();
        sum = words.fold(sum, |sum, word| sum.wrapping_add(u64::from_le_bytes(*word)));
    }
}

fn median(runs: usize, mut once: impl FnMut() -> Result<Duration>) -> Result<Duration> {
    let mut all = (0..runs).map(|_| once()).collect::<Result<Vec<_>>>()?;
    all.sort();
    all.get(runs / 2).copied().context("RUNS must not be 0")
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_of_the_file_is_added_up_once() {
        let path = std::env::temp_dir().join(format!("xtask-bench-{}", std::process::id()));
        let words: Vec<u8> = (0..1000u64).flat_map(u64::to_le_bytes).collect();
        std::fs::write(&path, words).unwrap();
        let whole = sum(&path, 0, 8000).unwrap();
        let halves = sum(&path, 0, 4000).unwrap() + sum(&path, 4000, 4000).unwrap();
        std::fs::remove_file(&path).unwrap();
        assert_eq!((whole, halves), (499_500, 499_500));
    }

    #[test]
    fn recordings_are_known_by_their_first_bytes() {
        let path = std::env::temp_dir().join(format!("xtask-bench-kind-{}", std::process::id()));
        for (content, expected) in [("Nettrace\x14", true), ("MDMP....", false), ("Net", false)] {
            std::fs::write(&path, content).unwrap();
            assert_eq!(is_recording(&path).unwrap(), expected);
        }
        std::fs::remove_file(&path).unwrap();
    }

    #[test]
    fn the_median_is_the_middle_one() {
        let mut times = [9, 1, 5].into_iter().map(Duration::from_millis);
        assert_eq!(
            median(3, || Ok(times.next().unwrap())).unwrap(),
            Duration::from_millis(5)
        );
        assert!(median(0, || Ok(Duration::ZERO)).is_err());
    }
}
