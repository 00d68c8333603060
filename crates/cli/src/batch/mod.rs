//! `asynctriage batch`: many dumps into tables.

mod child;
mod inputs;

use crate::args::BatchArgs;
use crate::digest::sha256_of;
use crate::errors::CliError;
use crate::exit::Exit;
use crate::interrupt::on_interrupt;
use crate::limits;
use asynctriage_fleet::{Done, Origin, Status, Store, StoreError};
use asynctriage_report::{self as report, FleetProblem, Report, TextOptions};
use child::{Outcome, Reader};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::collections::HashMap;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant, UNIX_EPOCH};

/// How much longer than its own limit a process may take before it is ended.
const GRACE: Duration = Duration::from_secs(60);

pub(crate) fn batch(args: &BatchArgs) -> Result<Exit, CliError> {
    args.files.check(&args.symbols)?;
    let dumps = inputs::find(args)?;
    let store = Store::open(&args.output, args.shard).map_err(unkept)?;
    let ends = Arc::new(AtomicBool::new(false));
    let heard = Arc::clone(&ends);
    on_interrupt(move || heard.store(true, Ordering::Relaxed))?;
    let run = Run {
        known: Known::new(store.done().map_err(unkept)?),
        reader: reader(args)?,
        store,
        bar: bar(dumps.len()),
        ends,
        problems: Mutex::default(),
        broken: Mutex::default(),
    };
    run.all(&dumps, jobs(args));
    run.bar.finish_and_clear();
    if let Some(error) = run.broken.into_inner().unwrap_or_else(|e| e.into_inner()) {
        return Err(unkept(error));
    }
    if !args.no_parquet {
        run.store.pack().map_err(unkept)?;
    }
    let mut common = run.store.common().map_err(unkept)?;
    common.problems = run.problems.into_inner().unwrap_or_else(|e| e.into_inner());
    common.problems.sort_by(|a, b| a.path.cmp(&b.path));
    let width = terminal_size::terminal_size_of(io::stdout()).map(|(w, _)| usize::from(w.0));
    let options = TextOptions {
        width: args.width.or(width).unwrap_or(100),
        ..TextOptions::default()
    };
    // nobody hears when the standard output is closed
    let _ = io::stdout().write_all(report::fleet(&common, &options).as_bytes());
    let has_failed = common
        .problems
        .iter()
        .any(|p| p.status == Status::Failed.as_str());
    Ok(if run.ends.load(Ordering::Relaxed) {
        Exit::Interrupted
    } else if has_failed {
        Exit::Incomplete
    } else {
        Exit::Written
    })
}

fn jobs(args: &BatchArgs) -> usize {
    let processors = thread::available_parallelism().map_or(1, usize::from);
    args.jobs.map_or(processors, |jobs| jobs as usize)
}

/// The command line for one dump.
fn reader(args: &BatchArgs) -> Result<Reader, CliError> {
    let program = std::env::current_exe().map_err(|e| {
        let remedy = "call it by its whole path";
        CliError::new(
            Exit::Internal,
            "asynctriage does not find its own file",
            remedy,
        )
        .because(e)
    })?;
    let bounds = &args.files.bounds;
    let time = bounds.max_time;
    // what is free is shared
    let share = limits::free_memory().map(|free| free / 4 * 3 / jobs(args) as u64);
    let memory = bounds.max_memory.or(share);
    let seconds = time.as_secs().to_string();
    let fixed = ["--format", "json", "--limit", "1", "--max-time", &seconds];
    let mut options: Vec<OsString> = fixed.iter().map(OsString::from).collect();
    if let Some(memory) = memory {
        options.push("--max-memory".into());
        options.push(memory.to_string().into());
    }
    let folders = [
        ("--symbols", &args.symbols),
        ("--module-path", &args.files.module_path),
        ("--sysroot", &args.files.sysroot),
    ];
    for (option, folders) in folders {
        for folder in folders {
            options.push(option.into());
            options.push(folder.clone().into());
        }
    }
    for (option, is_on) in [
        ("--no-mapped-files", args.files.no_mapped_files),
        ("--show-values", args.show_values),
    ] {
        if is_on {
            options.push(option.into());
        }
    }
    let patience = (!time.is_zero()).then(|| time.saturating_add(time / 4).saturating_add(GRACE));
    Ok(Reader {
        program,
        options,
        patience,
    })
}

/// Shown on a terminal only.
fn bar(dumps: usize) -> ProgressBar {
    if !io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::with_draw_target(Some(dumps as u64), ProgressDrawTarget::stderr());
    // a template that does not parse is none of the user's business
    if let Ok(style) =
        ProgressStyle::with_template("{pos}/{len} dumps  {elapsed} of about {duration}  {msg}")
    {
        bar.set_style(style);
    }
    bar
}

/// The dumps whose rows are kept.
struct Known {
    by_id: HashMap<String, Done>,
    /// Files that have not changed since need not be read for their hash.
    by_file: HashMap<(String, u64, i64), String>,
}

impl Known {
    fn new(done: Vec<Done>) -> Self {
        let mut by_file = HashMap::new();
        let mut by_id = HashMap::new();
        for done in done {
            if let Some(modified) = done.modified {
                by_file.insert((done.path.clone(), done.bytes, modified), done.id.clone());
            }
            by_id.insert(done.id.clone(), done);
        }
        Self { by_id, by_file }
    }
}

struct Run {
    known: Known,
    reader: Reader,
    store: Store,
    bar: ProgressBar,
    ends: Arc<AtomicBool>,
    problems: Mutex<Vec<FleetProblem>>,
    /// Rows could not be kept: there is no use in going on.
    broken: Mutex<Option<StoreError>>,
}

impl Run {
    fn all(&self, dumps: &[PathBuf], jobs: usize) {
        let next = AtomicUsize::new(0);
        thread::scope(|scope| {
            for _ in 0..jobs.min(dumps.len()) {
                scope.spawn(|| {
                    while !self.ends.load(Ordering::Relaxed) {
                        let Some(dump) = dumps.get(next.fetch_add(1, Ordering::Relaxed)) else {
                            break;
                        };
                        if let Err(error) = self.one(dump) {
                            self.ends.store(true, Ordering::Relaxed);
                            let mut broken = self.broken.lock().unwrap_or_else(|e| e.into_inner());
                            broken.get_or_insert(error);
                        }
                        self.bar.inc(1);
                    }
                });
            }
        });
    }

    fn one(&self, dump: &Path) -> Result<(), StoreError> {
        let name = dump.file_name().unwrap_or_default().to_string_lossy();
        self.bar.set_message(name.into_owned());
        let start = Instant::now();
        let mut origin = Origin {
            path: dump.display().to_string(),
            shard: self.store.shard(),
            ..Origin::default()
        };
        if let Ok(meta) = fs::metadata(dump) {
            origin.bytes = meta.len();
            let modified = meta
                .modified()
                .ok()
                .and_then(|m| m.duration_since(UNIX_EPOCH).ok());
            origin.modified = modified.and_then(|m| i64::try_from(m.as_nanos()).ok());
        }
        match self.identify(dump, &origin) {
            Ok(Some(id)) => origin.id = id,
            Ok(None) => return Ok(()),
            Err(e) => {
                // without a hash there is no row
                self.problem(dump, Status::Failed, &format!("it cannot be read: {e}"));
                return Ok(());
            }
        }
        let before = self.known.by_id.get(&origin.id);
        if let Some(done) = before.filter(|d| !d.failed) {
            tracing::info!(dump = origin.path, as_ = done.path, "done before");
            return Ok(());
        }
        let (status, report, why) = match self.reader.read(dump, &self.ends) {
            Outcome::Ended => return Ok(()),
            Outcome::Report(report) => (Status::Read, *report, None),
            Outcome::Partial(report, why) => (Status::Partial, *report, Some(why)),
            Outcome::Refused(why) => (Status::Refused, Report::default(), Some(why)),
            Outcome::Failed(why) => (Status::Failed, Report::default(), Some(why)),
        };
        if let Some(why) = &why {
            self.problem(dump, status, why);
        }
        origin.status = status;
        origin.error = why;
        origin.seconds = start.elapsed().as_secs_f64();
        self.store.put(&origin, &report, before)
    }

    /// The hash of a file; none when all is to end.
    fn identify(&self, dump: &Path, origin: &Origin) -> io::Result<Option<String>> {
        if let Some(modified) = origin.modified {
            let key = (origin.path.clone(), origin.bytes, modified);
            if let Some(id) = self.known.by_file.get(&key) {
                return Ok(Some(id.clone()));
            }
        }
        sha256_of(File::open(dump)?, || self.ends.load(Ordering::Relaxed))
    }

    fn problem(&self, dump: &Path, status: Status, why: &str) {
        let problem = FleetProblem {
            path: dump.display().to_string(),
            status: status.as_str().to_owned(),
            why: why.to_owned(),
        };
        let mut problems = self.problems.lock().unwrap_or_else(|e| e.into_inner());
        problems.push(problem);
    }
}

#[expect(clippy::needless_pass_by_value, reason = "for map_err")]
fn unkept(error: StoreError) -> CliError {
    let (exit, remedy) = match &error {
        StoreError::Version(..) => (Exit::Usage, "name another folder, or remove this one"),
        StoreError::Damaged(_) => (Exit::Input, "then run the same command again"),
        StoreError::Io(..) | StoreError::Parquet(..) => (
            Exit::Output,
            "name a folder on a disk with space that you may write to; then run the same command again: it goes on where it was",
        ),
    };
    let source = std::error::Error::source(&error).map(ToString::to_string);
    let built = CliError::new(exit, format!("the tables cannot be kept: {error}"), remedy);
    match source {
        Some(source) => built.because(source),
        None => built,
    }
}
