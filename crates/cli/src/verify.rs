//! `asynctriage verify`: whether a bundle of evidence still holds.

use crate::args::{FileArgs, VerifyArgs};
use crate::bundle::{self, Files, HASHES, MANIFEST, Output, SYMBOLS, made};
use crate::commands::{complete, open_with, print};
use crate::digest::sha256;
use crate::errors::CliError;
use crate::exit::Exit;
use crate::export::hash_of;
use crate::limits;
use crate::output::Destination;
use crate::progress::Progress;
use asynctriage_clr::RuntimeError;
use asynctriage_dump::{Budget, Dump, OpenOptions, PlainFile};
use asynctriage_report::{self as report, BundleFile, Manifest, VerifyReport};
use asynctriage_triage::{Options, views};
use std::fs;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// Checks a bundle.
pub(crate) fn verify(args: &VerifyArgs) -> Result<Exit, CliError> {
    let destination = Destination::new(&args.output, &args.bundle)?;
    let progress = Progress::start("checking the bundle");
    let (files, faults) = bundle::load(&args.bundle)?;
    let mut report = VerifyReport {
        bundle: args.bundle.display().to_string(),
        seal: bundle::seal(&files),
        ..VerifyReport::default()
    };
    for fault in faults {
        report.add("the bundle as a folder or archive", Some(fault));
    }
    sealed(&files, args.seal.as_deref(), &mut report);
    if let Some(manifest) = manifest(&files, &mut report) {
        listed(&files, &manifest, &mut report);
        again(&files, &manifest, args, &mut report)?;
    }
    report.holds = report.is_whole();
    drop(progress);
    print(&destination, &args.output, true, &report, report::verify)?;
    Ok(if report.holds {
        Exit::Written
    } else {
        Exit::Finding
    })
}

/// Whether the list of hashes is that of the files, and the one that was noted.
fn sealed(files: &Files, noted: Option<&str>, report: &mut VerifyReport) {
    let is_list = files.get(HASHES).map(Vec::as_slice) == Some(bundle::hashes(files).as_bytes());
    let broken = (!is_list).then(|| "a file or the list was changed, added or removed".to_owned());
    report.add(format!("{HASHES} is that of these files"), broken);
    match noted {
        Some(noted) => {
            let is_noted = noted.trim().eq_ignore_ascii_case(&report.seal);
            let broken = (!is_noted).then(|| format!("it is {}", report.seal));
            report.add("the seal is the one that was noted", broken);
        }
        None => report.skip(
            "the seal is the one that was noted",
            "no --seal: whoever replaces files can replace their hashes, too",
        ),
    }
}

fn manifest(files: &Files, report: &mut VerifyReport) -> Option<Manifest> {
    let text = files
        .get(MANIFEST)
        .and_then(|b| std::str::from_utf8(b).ok());
    let manifest: Option<Manifest> = text.and_then(|t| report::from_json(t).ok());
    let broken = manifest
        .is_none()
        .then(|| "it is not there, or cannot be read".to_owned());
    report.add(format!("{MANIFEST} can be read"), broken);
    manifest
}

/// Every file against its hash in the manifest.
fn listed(files: &Files, manifest: &Manifest, report: &mut VerifyReport) {
    for wanted in &manifest.outputs {
        let broken = match files.get(&wanted.path) {
            None => Some("it is not there".to_owned()),
            Some(bytes) => difference(bytes, wanted),
        };
        report.add(format!("{} is as it was made", wanted.path), broken);
    }
    let known = |path: &&String| {
        [HASHES, MANIFEST].contains(&path.as_str())
            || manifest.outputs.iter().any(|o| o.path == **path)
    };
    for path in files.keys().filter(|p| !known(p)) {
        report.add(
            path.clone(),
            Some("the manifest does not know it".to_owned()),
        );
    }
}

fn difference(bytes: &[u8], wanted: &BundleFile) -> Option<String> {
    if bytes.len() as u64 != wanted.bytes {
        return Some(format!(
            "it has {} bytes, not {}",
            bytes.len(),
            wanted.bytes
        ));
    }
    let hash = sha256(bytes);
    (hash != wanted.sha256).then(|| format!("its hash is {hash}, not {}", wanted.sha256))
}

/// Makes all outputs again.
fn again(
    files: &Files,
    manifest: &Manifest,
    args: &VerifyArgs,
    report: &mut VerifyReport,
) -> Result<(), CliError> {
    if manifest.source.kind == "recording" {
        return recording_again(files, manifest, args, report);
    }
    let limited = OpenOptions {
        budget: limits::budget(&args.files.bounds)?,
        use_paths: !args.files.no_mapped_files,
        ..OpenOptions::default()
    };
    let copies = symbol_copies(files)?;
    let what = "the trimmed dump gives the same outputs";
    match (&manifest.trimmed, files.get(made::TRIMMED)) {
        (Some(_), Some(packed)) => match Dump::from_bytes_with(packed.clone(), &limited) {
            Ok(mut dump) => {
                complete(&mut dump, &args.files, &[]);
                let options = made::options(&manifest.options, symbols(&copies, &args.files));
                let made = made_again(&dump, &options, manifest, manifest.source.unpacked_bytes);
                compare(what, files, manifest, &dump.budget, made, report);
            }
            Err(error) => report.add(what, Some(error.to_string())),
        },
        (Some(_), None) => report.add(what, Some("it is not there".into())),
        (None, _) => report.skip(what, manifest.lacks.join("; ")),
    }
    let Some(path) = &args.dump else {
        report.skip("the dump gives the same outputs", "no --dump");
        return Ok(());
    };
    if !is_source(path, manifest, report)? {
        return Ok(());
    }
    let dump = open_with(path, &args.files, &[], false)?;
    let options = made::options(&manifest.options, symbols(&copies, &args.files));
    let made = made_again(&dump, &options, manifest, manifest.source.unpacked_bytes);
    compare(
        "the dump gives the same outputs",
        files,
        manifest,
        &dump.budget,
        made,
        report,
    );
    Ok(())
}

/// What a bundle holds, made of a dump that says the same as its source.
pub(crate) fn made_again(
    dump: &Dump,
    options: &Options,
    manifest: &Manifest,
    unpacked_bytes: u64,
) -> Result<Vec<Output>, RuntimeError> {
    let mut found = views::evidence(dump, options)?;
    let source = &manifest.source;
    made::name_source(&mut found.report, dump, &source.path, &source.sha256);
    found.report.dump.bytes = unpacked_bytes;
    Ok(made::of_report(&found.report, &found.claims).unwrap_or_default())
}

/// Whether a file is the one that the bundle was made of.
fn is_source(
    path: &Path,
    manifest: &Manifest,
    report: &mut VerifyReport,
) -> Result<bool, CliError> {
    let hash = hash_of(path)?;
    let is_source = hash == manifest.source.sha256;
    let broken =
        (!is_source).then(|| format!("its hash is {hash}, not {}", manifest.source.sha256));
    report.add(
        format!("{} is what the bundle was made of", path.display()),
        broken,
    );
    Ok(is_source)
}

fn compare(
    what: &str,
    files: &Files,
    manifest: &Manifest,
    budget: &Budget,
    made: Result<Vec<Output>, RuntimeError>,
    report: &mut VerifyReport,
) {
    if budget.is_cut() {
        return report.skip(
            what,
            "the analysis was ended: give it more --max-time and --max-memory",
        );
    }
    let made = match made {
        Ok(made) => made,
        Err(error) => return report.add(what, Some(error.to_string())),
    };
    let others: Vec<&str> = made
        .iter()
        .filter(|o| files.get(&o.path) != Some(&o.bytes))
        .map(|o| o.path.as_str())
        .collect();
    let broken = (!others.is_empty()).then(|| {
        let version = env!("CARGO_PKG_VERSION");
        let by = if manifest.tool.version == version {
            String::new()
        } else {
            format!(
                " (made by version {}, this is {version})",
                manifest.tool.version
            )
        };
        format!("{} would be another{by}", others.join(", "))
    });
    report.add(what, broken);
}

fn recording_again(
    files: &Files,
    manifest: &Manifest,
    args: &VerifyArgs,
    report: &mut VerifyReport,
) -> Result<(), CliError> {
    let budget = limits::budget(&args.files.bounds)?;
    let check = |what: &str, file: &PlainFile, report: &mut VerifyReport| {
        let made = made::trace_report(file.bytes(), &budget).map_err(|e| e.to_string());
        let made = made.and_then(|mut again| {
            again.file.clone_from(&manifest.source.path);
            again.sha256 = Some(manifest.source.sha256.clone());
            made::of_recording(&again, &budget, file.bytes()).map_err(|e| e.render())
        });
        match made {
            Ok(made) => compare(what, files, manifest, &budget, Ok(made), report),
            Err(why) => report.add(what, Some(why)),
        }
    };
    let what = "the recording in it gives the same outputs";
    match files.get(made::RECORDING) {
        Some(packed) => {
            let folder = tempfile::tempdir().map_err(|e| no_room().because(e))?;
            let copy = folder.path().join(made::RECORDING);
            fs::write(&copy, packed).map_err(|e| no_room().because(e))?;
            match PlainFile::open(&copy, &OpenOptions::default()) {
                Ok(file) => check(what, &file, report),
                Err(error) => report.add(what, Some(error.to_string())),
            }
        }
        None => report.add(what, Some("it is not there".into())),
    }
    let Some(path) = &args.dump else {
        report.skip("the whole recording gives the same outputs", "no --dump");
        return Ok(());
    };
    if is_source(path, manifest, report)? {
        let file = PlainFile::open(path, &OpenOptions::default());
        let file = file.map_err(|e| {
            let message = format!("{} cannot be read", path.display());
            CliError::new(Exit::Input, message, e.remedy()).because(e)
        })?;
        check("the whole recording gives the same outputs", &file, report);
    }
    Ok(())
}

/// The symbol files of a bundle in a folder of their own.
fn symbol_copies(files: &Files) -> Result<Option<TempDir>, CliError> {
    let copies = files.iter().filter(|(path, _)| path.starts_with(SYMBOLS));
    let mut copies = copies.filter(|(path, _)| is_plain(path)).peekable();
    if copies.peek().is_none() {
        return Ok(None);
    }
    let folder = tempfile::tempdir().map_err(|e| no_room().because(e))?;
    for (path, bytes) in copies {
        let file = folder.path().join(path);
        let parent = file.parent().unwrap_or(folder.path());
        let written = fs::create_dir_all(parent).and_then(|()| fs::write(&file, bytes));
        written.map_err(|e| no_room().because(e))?;
    }
    Ok(Some(folder))
}

/// Whether a path of a bundle leads to no other place.
fn is_plain(path: &str) -> bool {
    Path::new(path)
        .components()
        .all(|c| matches!(c, std::path::Component::Normal(_)))
}

/// Folders with symbols: those of the bundle, and those that were given.
fn symbols(copies: &Option<TempDir>, files: &FileArgs) -> Vec<PathBuf> {
    let own = copies.iter().flat_map(|folder| {
        let first = folder.path().join(SYMBOLS);
        let inner = fs::read_dir(&first).into_iter().flatten().flatten();
        let inner = inner.map(|e| e.path()).filter(|p| p.is_dir());
        std::iter::once(first.clone())
            .chain(inner)
            .collect::<Vec<_>>()
    });
    own.chain(files.module_path.iter().cloned()).collect()
}

fn no_room() -> CliError {
    CliError::new(
        Exit::Output,
        "the bundle's files cannot be unpacked",
        "set TMPDIR to a folder with space",
    )
}
