//! A file that is damaged again and again, and the program that reads it.

use super::damage::Change;
use super::image::Image;
use super::judge::{Verdict, compare};
use anyhow::{Context, Result, ensure};
use asynctriage_dump::{OpenOptions, PlainFile};
use serde_json::Value;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// How long the program may take for a file of a few megabytes on a busy machine.
const LIMIT: Duration = Duration::from_secs(60);
/// Statuses with which the program has written a report.
const REPORTED: [i32; 3] = [0, 1, 5];
/// Statuses with which it says why there is none.
const REFUSED: [i32; 3] = [2, 3, 4];

pub(super) struct Subject {
    name: String,
    bytes: Vec<u8>,
    packed: Option<Vec<u8>>,
    image: Image,
    whole: Value,
    objects: Vec<u64>,
    places: Vec<usize>,
    /// Where the damaged file is written.
    folder: tempfile::TempDir,
}

impl Subject {
    pub(super) fn open(file: &Path, program: &Path) -> Result<Self> {
        let plain = PlainFile::open(file, &OpenOptions::default())
            .with_context(|| file.display().to_string())?;
        let packed = plain.compression.map(|_| plain.on_disk().to_vec());
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        let mut subject = Self {
            name: name.into_owned(),
            bytes: plain.bytes().to_vec(),
            packed,
            image: Image::of(plain.bytes()),
            whole: Value::Null,
            objects: Vec::new(),
            places: Vec::new(),
            folder: tempfile::tempdir()?,
        };
        let (verdict, whole) = subject.report(&subject.bytes, program)?;
        ensure!(
            !verdict.is_hit() && whole.is_object(),
            "{}: {verdict}",
            subject.name
        );
        subject.objects = addresses(&whole);
        let places = subject
            .objects
            .iter()
            .filter_map(|a| subject.image.place(*a));
        subject.places = places.collect();
        subject.whole = whole;
        Ok(subject)
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// The file, unpacked.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The file as it is packed.
    pub(super) fn packed(&self) -> Option<&[u8]> {
        self.packed.as_deref()
    }

    pub(super) fn image(&self) -> &Image {
        &self.image
    }

    /// Addresses of objects that chains rest on.
    pub(super) fn objects(&self) -> &[u64] {
        &self.objects
    }

    /// Where those objects are in the file.
    pub(super) fn places(&self) -> &[usize] {
        &self.places
    }

    /// What is held against the report of the changed file.
    pub(super) fn judge(&self, change: &Change, program: &Path) -> Result<Verdict> {
        let whole = match &self.packed {
            Some(packed) if change.packed => packed,
            _ => &self.bytes,
        };
        let (verdict, report) = self.report(&change.apply(whole), program)?;
        Ok(match verdict {
            Verdict::Right if report.is_object() => compare(&self.whole, &report),
            other => other,
        })
    }

    /// Runs the program on a file; no report where it says why there is none.
    fn report(&self, bytes: &[u8], program: &Path) -> Result<(Verdict, Value)> {
        let file: PathBuf = self.folder.path().join("damaged");
        std::fs::write(&file, bytes)?;
        let mut command = Command::new(program);
        command.args(self.name.contains(".nettrace").then_some("trace"));
        command.arg(&file).args(["--format", "json", "--all"]);
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().context("the program does not start")?;
        let (out, errors) = (reader(child.stdout.take()), reader(child.stderr.take()));
        let Some(status) = wait(&mut child)? else {
            return Ok((Verdict::Hang, Value::Null));
        };
        let out = out.join().unwrap_or_default();
        let errors = errors.join().unwrap_or_default();
        let code = status.code().unwrap_or(-1);
        let refused = REFUSED.contains(&code);
        if String::from_utf8_lossy(&errors).contains("panicked")
            || !refused && !REPORTED.contains(&code)
        {
            return Ok((Verdict::Crash, Value::Null));
        }
        if refused {
            return Ok((Verdict::Right, Value::Null));
        }
        Ok(match serde_json::from_slice(&out) {
            Ok(report) => (Verdict::Right, report),
            Err(_) => (Verdict::BadJson, Value::Null),
        })
    }
}

fn reader(from: Option<impl Read + Send + 'static>) -> thread::JoinHandle<Vec<u8>> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut from) = from {
            // what came before a failure is judged
            let _ = from.read_to_end(&mut bytes);
        }
        bytes
    })
}

/// `None` when it did not end in time and was ended.
fn wait(child: &mut Child) -> Result<Option<std::process::ExitStatus>> {
    let end = Instant::now() + LIMIT;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if Instant::now() > end {
            child.kill()?;
            child.wait()?;
            return Ok(None);
        }
        thread::sleep(Duration::from_millis(2));
    }
}

/// The addresses of objects that the chains of a report name.
fn addresses(report: &Value) -> Vec<u64> {
    let mut out = Vec::new();
    let mut add = |value: &Value| {
        let digits = value.as_str().and_then(|t| t.strip_prefix("0x"));
        out.extend(digits.and_then(|d| u64::from_str_radix(d, 16).ok()));
    };
    for chain in report["chains"].as_array().into_iter().flatten() {
        for member in chain["members"].as_array().into_iter().flatten() {
            member["boxes"]
                .as_array()
                .into_iter()
                .flatten()
                .for_each(&mut add);
        }
        let details = chain["leaf"]["details"].as_object();
        details
            .into_iter()
            .flat_map(|d| d.values())
            .for_each(&mut add);
    }
    out
}
