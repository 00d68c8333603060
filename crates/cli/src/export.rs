//! `asynctriage export`: a dump or recording as evidence that checks itself.

use crate::args::ExportArgs;
use crate::bundle::{self, MANIFEST, Output, SYMBOLS, Store, made};
use crate::commands::{no_runtime, open_with};
use crate::digest::{sha256, sha256_of};
use crate::errors::CliError;
use crate::exit::Exit;
use crate::limits;
use crate::progress::Progress;
use asynctriage_dump::{Budget, Dump, OpenOptions, PlainFile};
use asynctriage_report::{
    self as report, BundleExtra, BundleOptions, BundleSource, BundleTrimmed, Manifest, printable,
};
use asynctriage_triage::{Options, rfc3339, views};
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

/// How a recording begins.
const NETTRACE: &[u8] = b"Nettrace";

/// Makes a bundle.
pub(crate) fn export(args: &ExportArgs) -> Result<Exit, CliError> {
    let store = Store::new(&args.output, args.force, &args.input)?;
    let progress = Progress::of_dump(&args.input);
    let (outputs, manifest) = if is_recording(&args.input) {
        of_recording(args)?
    } else {
        of_dump(args)?
    };
    let lacks = manifest.lacks.clone();
    let files = bundle::sealed(outputs, manifest)?;
    drop(progress);
    store.write(&files)?;
    let bytes: u64 = files.values().map(|b| b.len() as u64).sum();
    let mut said = format!(
        "{}: {}, {}; {MANIFEST} says what each is\nseal {}\n",
        args.output.display(),
        report::several(files.len() as u64, "file"),
        report::bytes(bytes),
        bundle::seal(&files)
    );
    for lack in lacks {
        said.push_str(&format!("without {lack}\n"));
    }
    say(&printable_lines(&said))
}

/// A recording begins with its name, or is called one where it is packed.
fn is_recording(path: &Path) -> bool {
    let mut first = [0; NETTRACE.len()];
    let begins = File::open(path).and_then(|mut f| f.read_exact(&mut first));
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    (begins.is_ok() && first == NETTRACE) || name.contains(".nettrace.")
}

fn of_dump(args: &ExportArgs) -> Result<(Vec<Output>, Manifest), CliError> {
    let asked = BundleOptions {
        all: args.all,
        locals: args.locals,
        show_values: args.show_values,
        ..BundleOptions::default()
    };
    let symbols = [args.symbols.as_slice(), &args.files.module_path].concat();
    let options = made::options(&asked, symbols);
    let dump = open_with(&args.input, &args.files, &args.symbols, true)?;
    let mut manifest = manifest(&args.input, "dump", dump.file_len)?;
    manifest.options = asked;
    let path = manifest.source.path.clone();
    let mut found = views::evidence(&dump, &options).map_err(|e| no_runtime(&dump, e))?;
    made::name_source(&mut found.report, &dump, &path, &manifest.source.sha256);
    let mut outputs = made::of_report(&found.report, &found.claims)?;
    is_whole(&dump.budget)?;
    manifest.modules = found.modules;
    images(&dump, &mut manifest)?;
    for file in &found.symbols {
        outputs.push(symbol_file(file, &mut manifest)?);
    }
    match trimmed(&dump, &options, &outputs, &manifest) {
        Ok((bytes, about)) => {
            manifest.trimmed = Some(about);
            outputs.push(Output::new(
                made::TRIMMED,
                "the dump, cut down to what the report reads",
                bytes,
            ));
        }
        Err(why) => manifest.lacks.push(format!("a trimmed dump: {why}")),
    }
    is_whole(&dump.budget)?;
    Ok((outputs, manifest))
}

/// What was ended before its time cannot be made again.
fn is_whole(budget: &Budget) -> Result<(), CliError> {
    if budget.cuts().is_empty() {
        return Ok(());
    }
    Err(CliError::new(
        Exit::Input,
        "the analysis was ended before it had looked at everything, which is no evidence",
        "give it more --max-time and --max-memory",
    ))
}

/// The small dump, when all comes from it again.
fn trimmed(
    dump: &Dump,
    options: &Options,
    outputs: &[Output],
    manifest: &Manifest,
) -> Result<(Vec<u8>, BundleTrimmed), String> {
    let trimmed = views::trim(dump, options, &|_| Ok(String::new())).map_err(|e| e.to_string())?;
    if let Some(difference) = trimmed.difference {
        return Err(format!("its report would be another: {difference}"));
    }
    let unpacked_bytes = trimmed.bytes.len() as u64;
    let packed = made::packed(&trimmed.bytes).map_err(|e| e.to_string())?;
    let small = Dump::from_bytes(trimmed.bytes).map_err(|e| e.to_string())?;
    let again = crate::verify::made_again(&small, options, manifest, dump.file_len)
        .map_err(|e| e.to_string())?;
    if let Some(other) = outputs.iter().zip(&again).find(|(a, b)| a.bytes != b.bytes) {
        return Err(format!("{} would be another", other.0.path));
    }
    Ok((
        packed,
        BundleTrimmed {
            path: made::TRIMMED.to_owned(),
            unpacked_bytes,
            own_fields: ["dump.path", "dump.bytes", "dump.sha256", "dump.fault"].map(str::to_owned).to_vec(),
            blanked: vec![
"blank: memory that no report reads, in lines of 64 bytes. Nothing else is: reports look through the heap and the stacks, so texts, arguments and the environment are in it, and it is as secret as the dump".into(),
            ],
        },
    ))
}

/// Images of this machine that were laid under the dump.
fn images(dump: &Dump, manifest: &mut Manifest) -> Result<(), CliError> {
    for used in &dump.completion.used {
        manifest.files.push(BundleExtra {
            path: used.file.display().to_string(),
            sha256: hash_of(&used.file)?,
            because: used.because.clone(),
            copy: None,
        });
    }
    Ok(())
}

/// A copy of a symbol file; two of one name are told apart by their hash.
fn symbol_file(file: &Path, manifest: &mut Manifest) -> Result<Output, CliError> {
    let bytes = fs::read(file).map_err(|e| unreadable(file).because(e))?;
    let sha256 = sha256(&bytes);
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    let taken = |copy: &String| manifest.files.iter().any(|f| f.copy.as_ref() == Some(copy));
    let first = format!("{SYMBOLS}{name}");
    let copy = if taken(&first) {
        format!("{SYMBOLS}{}/{name}", sha256.get(..16).unwrap_or_default())
    } else {
        first
    };
    manifest.files.push(BundleExtra {
        path: file.display().to_string(),
        sha256,
        because: "its identifier is that of the module".into(),
        copy: Some(copy.clone()),
    });
    Ok(Output::new(copy, "symbols that gave lines", bytes))
}

fn of_recording(args: &ExportArgs) -> Result<(Vec<Output>, Manifest), CliError> {
    let cannot = |e: Box<dyn std::error::Error + Send + Sync>| unreadable(&args.input).because(e);
    let file =
        PlainFile::open(&args.input, &OpenOptions::default()).map_err(|e| cannot(e.into()))?;
    let mut manifest = manifest(&args.input, "recording", file.bytes().len() as u64)?;
    let budget = limits::budget(&args.files.bounds)?;
    let mut report = made::trace_report(file.bytes(), &budget).map_err(|e| cannot(e.into()))?;
    report.file.clone_from(&manifest.source.path);
    report.sha256 = Some(manifest.source.sha256.clone());
    let mut outputs = made::of_recording(&report, &budget, file.bytes())?;
    is_whole(&budget)?;
    let packed = made::packed(file.bytes()).map_err(|e| cannot(e.into()))?;
    outputs.push(Output::new(made::RECORDING, "the recording, whole", packed));
    manifest.options.all = true;
    Ok((outputs, manifest))
}

fn manifest(input: &Path, kind: &str, unpacked_bytes: u64) -> Result<Manifest, CliError> {
    let metadata = fs::metadata(input).map_err(|e| unreadable(input).because(e))?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    Ok(Manifest {
        created: rfc3339(now.map(|t| t.as_secs()).unwrap_or_default()),
        source: BundleSource {
            path: input.display().to_string(),
            kind: kind.to_owned(),
            bytes: metadata.len(),
            sha256: hash_of(input)?,
            unpacked_bytes,
        },
        ..Manifest::default()
    })
}

pub(crate) fn hash_of(file: &Path) -> Result<String, CliError> {
    let hash = File::open(file).and_then(|f| sha256_of(f, || false));
    hash.map(Option::unwrap_or_default)
        .map_err(|e| unreadable(file).because(e))
}

fn unreadable(file: &Path) -> CliError {
    let message = format!("{} cannot be exported", file.display());
    CliError::new(
        Exit::Input,
        message,
        "name a dump or a recording; from the standard input nothing is exported, since its hash would be of nothing that stays",
    )
}

fn say(text: &str) -> Result<Exit, CliError> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(e) if e.kind() != io::ErrorKind::BrokenPipe => {
            let error = CliError::new(
                Exit::Output,
                "cannot write to the standard output",
                "the bundle itself is there",
            );
            Err(error.because(e))
        }
        _ => Ok(Exit::Written),
    }
}

fn printable_lines(text: &str) -> String {
    let lines: Vec<String> = text.lines().map(|l| printable(l) + "\n").collect();
    lines.concat()
}
