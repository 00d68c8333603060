//! What recording costs: a command in fresh processes, without a collector, with its markers, and with the profiler.

mod plan;
mod rank;
mod recorded;
mod run;
mod said;
mod verdict;

use crate::args::ObserveArgs;
use crate::commands::print;
use crate::errors::CliError;
use crate::exit::Exit;
use crate::interrupt::on_interrupt;
use crate::output::Destination;
use crate::progress::Progress;
use crate::recipe;
use asynctriage_diagnostics::{ProcessInfo, SessionConfig};
use asynctriage_report::{
    self as report, Gap, ObserveMode, ObserveReport, ObserveResult, ObserveTimer, ObserveValue,
};
use plan::{Chance, Mode};
use run::{Outcome, Record, Subject};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use std::{fs, io};
use tempfile::TempDir;

/// Runs the experiment and says what follows from it.
pub(crate) fn observe(args: &ObserveArgs) -> Result<Exit, CliError> {
    // there is no dump that the output could overwrite
    let destination = Destination::new(&args.output, Path::new(""))?;
    let interrupted = Arc::new(AtomicBool::new(false));
    let heard = Arc::clone(&interrupted);
    on_interrupt(move || heard.store(true, Ordering::Relaxed))?;
    let folders = Folders::make(args.traces.as_deref())?;
    let progress = Progress::start("running the experiment");
    let seed = args.seed.unwrap_or_else(seed);
    let runs = runs(args, &folders, &interrupted, seed)?;
    let report = evaluate(args, &runs, seed);
    drop(progress);
    print(&destination, &args.output, true, &report, report::observe)?;
    Ok(if args.strict && !report.gaps.is_empty() {
        Exit::Incomplete
    } else {
        Exit::Written
    })
}

/// Another one each time.
fn seed() -> u64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let nanos = now.map_or(0, |d| d.as_nanos());
    // easy to type again
    u64::try_from(nanos % 1_000_000).unwrap_or(0)
}

/// The runs of one mode, in the order of the rounds.
#[derive(Debug)]
struct Runs {
    mode: Mode,
    outcomes: Vec<Outcome>,
}

fn runs(
    args: &ObserveArgs,
    folders: &Folders,
    interrupted: &AtomicBool,
    seed: u64,
) -> Result<Vec<Runs>, CliError> {
    let subject = Subject {
        command: &args.command,
        timeout: Duration::from_secs(args.timeout),
        folder: folders.own.path(),
        interrupted,
    };
    // the first run is one without a collector, and tells what the runtime can record; it warms the machine up
    let first = folders.run(&subject, None)?;
    let profiler = recipe::choose(&args.events, first.info.major())?.events;
    let mut all: Vec<Runs> = plan::modes(args.markers.as_ref(), &profiler)
        .into_iter()
        .map(|mode| Runs {
            mode,
            outcomes: Vec::new(),
        })
        .collect();
    let mut chance = Chance::new(seed);
    // the first round warms up files, caches and the collector, and does not count
    for round in 0..=args.rounds {
        for index in chance.order(all.len()) {
            let Some(runs) = all.get_mut(index) else {
                continue;
            };
            let is_counted = round > 0;
            let record = folders.record(args, &runs.mode, round);
            let outcome = folders.run(&subject, record.as_ref())?;
            if is_counted {
                runs.outcomes.push(outcome);
            }
        }
    }
    Ok(all)
}

/// Where the experiment keeps its files.
#[derive(Debug)]
struct Folders {
    /// Removed in the end; its owner's alone, for whoever reaches the socket in it could pose as the command.
    own: TempDir,
    traces: Option<PathBuf>,
}

impl Folders {
    fn make(traces: Option<&Path>) -> Result<Self, CliError> {
        if let Some(traces) = traces {
            fs::create_dir(traces).map_err(|e| cannot_make(traces, e))?;
        }
        Ok(Self {
            own: own_folder().map_err(|e| cannot_make(&std::env::temp_dir(), e))?,
            traces: traces.map(Path::to_path_buf),
        })
    }

    /// What a mode records, and where.
    fn record(&self, args: &ObserveArgs, mode: &Mode, round: u32) -> Option<Record> {
        if mode.providers.is_empty() {
            return None;
        }
        // that of the round which does not count is not kept
        let kept = self.traces.as_deref().filter(|_| round > 0);
        let folder = kept.unwrap_or(self.own.path());
        let number = round;
        Some(Record {
            config: SessionConfig {
                buffer_mb: args.events.buffer_mb,
                // methods would be listed after the work, and take longer than many a program
                rundown: false,
                stacks: false,
                providers: mode.providers.clone(),
            },
            file: folder.join(format!("{number}-{}.nettrace", mode.name)),
        })
    }

    fn run(&self, subject: &Subject<'_>, record: Option<&Record>) -> Result<Outcome, CliError> {
        let outcome = run::run(subject, record);
        // the next run makes its own; the recordings may be large
        let _ = fs::remove_file(self.own.path().join("socket"));
        let recorded = record.map(|r| recorded::look_into(&r.file));
        if let Some(record) = record.filter(|r| r.file.starts_with(self.own.path())) {
            let _ = fs::remove_file(&record.file);
        }
        outcome.map(|o| Outcome { recorded, ..o })
    }
}

/// A folder that only this user can reach. On Windows the folder for temporary files is each user's own.
pub(crate) fn own_folder() -> io::Result<TempDir> {
    let mut builder = tempfile::Builder::new();
    builder.prefix("asynctriage-");
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o700));
    builder.tempdir()
}

fn cannot_make(folder: &Path, error: io::Error) -> CliError {
    CliError::new(
        Exit::Usage,
        format!("cannot make the folder {}", folder.display()),
        "name a folder that does not exist yet, in one that you may write to",
    )
    .because(error)
}

fn evaluate(args: &ObserveArgs, all: &[Runs], seed: u64) -> ObserveReport {
    let outcomes = || all.iter().flat_map(|runs| &runs.outcomes);
    let mut gaps = Vec::new();
    let timer = timer(args, all, &mut gaps);
    let result = result(args, all, &mut gaps);
    let modes: Vec<ObserveMode> = all.iter().map(|runs| mode(runs, &timer)).collect();
    let unrecorded = recorded::unrecorded(&modes, &mut gaps);
    let others = outcomes().map(|o| o.others).max().unwrap_or(0);
    if others > 0 {
        gaps.push(Gap {
            id: "other-runtimes".into(),
            section: "runs".into(),
            why: format!("the command started {others} more .NET processes, which were not recorded"),
            remedy: "name the program itself as the command, as `dotnet App.dll` rather than `dotnet run`".into(),
            ..Gap::default()
        });
    }
    let info = outcomes().next().map(|o| &o.info);
    let of = |field: fn(&ProcessInfo) -> &String| info.map(field).cloned().unwrap_or_default();
    ObserveReport {
        command: args
            .command
            .iter()
            .map(|word| word.display().to_string())
            .collect(),
        runtime: of(|info| &info.version),
        os: of(|info| &info.os),
        arch: of(|info| &info.arch),
        processors: std::thread::available_parallelism().map_or(0, |n| n.get() as u64),
        rounds: args.rounds.into(),
        comparisons: verdict::compare(&modes, result.same, &unrecorded),
        seed,
        timer,
        result,
        modes,
        gaps,
        ..ObserveReport::default()
    }
}

/// The program's own timer, when every run has it.
fn timer(args: &ObserveArgs, all: &[Runs], gaps: &mut Vec<Gap>) -> ObserveTimer {
    let outputs = all.iter().flat_map(|r| &r.outcomes).map(|o| &o.output);
    let timed = outputs
        .clone()
        .filter(|output| said::milliseconds(output, &args.timer).is_some())
        .count();
    if timed == outputs.count() {
        return ObserveTimer::Program(args.timer.clone());
    }
    if timed > 0 {
        gaps.push(Gap {
            id: "timer-missing".into(),
            section: "runs".into(),
            why: format!("only {timed} runs say {}", args.timer),
            remedy: "see why the program does not always say it".into(),
            ..Gap::default()
        });
    }
    ObserveTimer::Outside
}

/// What came of the work, compared over all runs.
fn result(args: &ObserveArgs, all: &[Runs], gaps: &mut Vec<Gap>) -> ObserveResult {
    let outputs = || all.iter().flat_map(|r| &r.outcomes).map(|o| &o.output);
    let name = &args.checksum_from;
    let named: Vec<&str> = outputs()
        .filter_map(|output| said::result(output, name))
        .collect();
    let (of, values) = if name == said::STDOUT || named.is_empty() {
        let hashes = outputs().map(|output| said::hash(output, &args.timer));
        (said::STDOUT, hashes.collect())
    } else {
        // a run that says nothing differs from those that do
        let all = outputs().map(|o| said::result(o, name).unwrap_or("nothing").to_owned());
        (name.as_str(), all.collect::<Vec<_>>())
    };
    let mut counted: Vec<ObserveValue> = Vec::new();
    for value in values {
        match counted.iter_mut().find(|c| c.value == value) {
            Some(known) => known.runs = known.runs.saturating_add(1),
            None => counted.push(ObserveValue { value, runs: 1 }),
        }
    }
    let same = counted.len() == 1;
    if !same {
        gaps.push(Gap {
            id: "results-differ".into(),
            section: "runs".into(),
            why: "the runs did not all do the same work, so that their times say nothing".into(),
            remedy: "make the program do the same each time; --checksum-from NAME compares one value only".into(),
            ..Gap::default()
        });
    }
    ObserveResult {
        of: of.to_owned(),
        same,
        values: counted,
    }
}

fn mode(runs: &Runs, timer: &ObserveTimer) -> ObserveMode {
    let time = |outcome: &Outcome| match timer {
        ObserveTimer::Program(name) => said::milliseconds(&outcome.output, name),
        ObserveTimer::Outside => Some(outcome.lasted.as_secs_f64() * 1_000.0),
    };
    let mut mode = ObserveMode {
        name: runs.mode.name.to_owned(),
        providers: runs
            .mode
            .providers
            .iter()
            .map(ToString::to_string)
            .collect(),
        milliseconds: runs.outcomes.iter().filter_map(time).collect(),
        bytes: runs.outcomes.iter().filter_map(|o| o.bytes).collect(),
        ..ObserveMode::default()
    };
    recorded::count(&mut mode, &runs.outcomes);
    verdict::summarise(&mut mode);
    mode
}
