//! What each command does: open the dump, ask the library, print the answer.

use crate::args::{
    FileArgs, Form, GateArgs, HeapArgs, HeapSort, OutputArgs, PostmortemArgs, ReportArgs,
    RuntimesArgs, ShowArgs, Strict, Target, TasksArgs, ThreadsArgs, command_like,
};
use crate::ask;
use crate::errors::CliError;
use crate::exit::Exit;
use crate::filter;
use crate::forms::{self, Wanted, unwritable};
use crate::limits;
use crate::output::Destination;
use crate::progress::Progress;
use crate::saved;
use crate::symbols;
use asynctriage_clr::{Runtime, RuntimeError};
use asynctriage_dump::{Addr, Dump, OpenOptions};
use asynctriage_image::ImageFiles;
use asynctriage_report::{
    self as report, Address, Document, MergedStacks, ObjectReport, Part, Report, Severity,
    TextOptions,
};
use asynctriage_triage::{Analysis, Options, Values, analyse, views};
use clap::ValueEnum;
use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};

/// The report: what hangs, why, who is affected, what to do.
pub(crate) fn triage(args: &ReportArgs) -> Result<Exit, CliError> {
    whole(args, false, report::text)
}

/// The threads, one by one or merged.
pub(crate) fn threads(args: &ThreadsArgs) -> Result<Exit, CliError> {
    if !args.merged {
        return part(&args.report, Part::Threads);
    }
    let args = &args.report;
    if !matches!(args.output.form(), Form::Text | Form::Json) {
        return Err(CliError::new(
            Exit::Usage,
            "merged stacks are written as text or JSON only",
            "leave --merged or --format away",
        ));
    }
    let destination = Destination::new(&args.output, &args.dump)?;
    let report = triaged(args, true)?;
    let merged = MergedStacks::of(&report);
    print(&destination, &args.output, true, &merged, report::merged)?;
    Ok(gate(&report, &args.gates))
}

/// The same, with its chains as a tree.
pub(crate) fn tree(args: &ReportArgs) -> Result<Exit, CliError> {
    whole(args, false, report::tree)
}

/// One part of the report; as JSON it is the whole.
pub(crate) fn part(args: &ReportArgs, part: Part) -> Result<Exit, CliError> {
    if part == Part::Queue && !args.filters.is_empty() {
        return Err(CliError::new(
            Exit::Usage,
            "filters do not apply to the thread pool's queue",
            "leave them away, or filter the chains: asynctriage DUMP --method TEXT",
        ));
    }
    let stacks = part == Part::Threads;
    whole(args, stacks, |report, options| {
        report::part(report, part, options)
    })
}

fn whole(
    args: &ReportArgs,
    stacks: bool,
    render: impl Fn(&Report, &TextOptions) -> String,
) -> Result<Exit, CliError> {
    let destination = Destination::new(&args.output, &args.dump)?;
    let report = triaged(args, stacks)?;
    let wanted = Wanted {
        output: &args.output,
        brief: args.brief,
        all: args.limits.all,
    };
    forms::write(&destination, wanted, &report, render)?;
    Ok(gate(&report, &args.gates))
}

/// The report that a command line asks for, filtered.
fn triaged(args: &ReportArgs, stacks: bool) -> Result<Report, CliError> {
    let progress = Progress::of_dump(&args.dump);
    let options = Options {
        members: if args.limits.all {
            usize::MAX
        } else {
            args.limits.limit
        },
        idle_too: args.limits.all,
        timings: args.timings,
        locals: args.locals,
        values: Values::shown(args.show_values),
        native: stacks || args.output.verbose > 0,
        ..Options::default()
    };
    let mut report = analysed(&args.dump, &args.files, &args.symbols, options)?;
    filter::report(&mut report, &args.filters);
    drop(progress);
    Ok(report)
}

/// The report of a dump; symbols are looked for in the folders and beside the modules.
pub(crate) fn analysed(
    path: &Path,
    files: &FileArgs,
    folders: &[PathBuf],
    mut options: Options,
) -> Result<Report, CliError> {
    let dump = open_with(path, files, folders, false)?;
    // symbols often lie beside the images
    options.symbols = [folders, &files.module_path].concat();
    options.points = symbols::lists(folders);
    let mut report = analyse(&dump, &options).map_err(|e| no_runtime(&dump, e))?;
    report.dump.path = shown(path);
    Ok(report)
}

/// What keeps memory alive; what each method keeps is worked out without being asked for.
pub(crate) fn oom(args: &ReportArgs) -> Result<Exit, CliError> {
    let args = ReportArgs {
        locals: true,
        ..args.clone()
    };
    part(&args, Part::Oom)
}

/// The draft of a postmortem, from a dump or a saved report.
pub(crate) fn postmortem(args: &PostmortemArgs) -> Result<Exit, CliError> {
    let destination = Destination::new(&args.output, &args.dump)?;
    let progress = Progress::of_dump(&args.dump);
    let options = Options {
        values: Values::shown(args.show_values),
        ..Options::default()
    };
    let report = match saved::find(&args.dump) {
        Some(report) => report,
        None => analysed(&args.dump, &args.files, &args.symbols, options)?,
    };
    drop(progress);
    destination.write(&asynctriage_pages::postmortem(&report))?;
    Ok(Exit::Written)
}

/// The exit status of a report that was written; what was found weighs more than what could not be read.
fn gate(report: &Report, gates: &GateArgs) -> Exit {
    let worst = report.findings.iter().map(|f| f.severity).max();
    let incomplete = match gates.strict {
        None => false,
        Some(Strict::All) => report.dump.truncated || !report.gaps.is_empty(),
        Some(Strict::Content) => report.dump.truncated || report.gaps.iter().any(|g| !g.only_names),
    };
    match gates.fail_on.map(Severity::from) {
        Some(limit) if worst.is_some_and(|worst| worst >= limit) => Exit::Finding,
        _ if incomplete => Exit::Incomplete,
        _ => Exit::Written,
    }
}

/// Asks something of the runtime in a dump, with progress on a terminal.
pub(crate) fn ask_runtime<T>(
    path: &Path,
    files: &FileArgs,
    ask: impl FnOnce(Runtime<'_>) -> T,
) -> Result<T, CliError> {
    ask_runtime_with(path, files, &[], ask)
}

/// The same with folders of symbols, whose modules complete the dump.
pub(crate) fn ask_runtime_with<T>(
    path: &Path,
    files: &FileArgs,
    symbols: &[PathBuf],
    ask: impl FnOnce(Runtime<'_>) -> T,
) -> Result<T, CliError> {
    let progress = Progress::of_dump(path);
    let dump = open_with(path, files, symbols, false)?;
    let runtime = Runtime::open(&dump).map_err(|e| no_runtime(&dump, e))?;
    let answer = ask(runtime);
    drop(progress);
    Ok(answer)
}

/// Tasks and async methods one by one.
pub(crate) fn tasks(args: &TasksArgs) -> Result<Exit, CliError> {
    let destination = Destination::new(&args.output, &args.dump)?;
    let options = views::TaskOptions {
        completed: args.completed,
        filters: Vec::new(),
        limit: usize::MAX,
    };
    let mut report = ask_runtime(&args.dump, &args.files, |runtime| {
        let runtime = runtime.with_points(symbols::lists(&[]));
        views::tasks(&Analysis::new(&runtime), &options)
    })?;
    filter::tasks(&mut report, &args.filters);
    let hidden = report
        .tasks
        .len()
        .saturating_sub(limit(args.limit, args.all));
    report.tasks.truncate(limit(args.limit, args.all));
    report.left_out = report.left_out.saturating_add(hidden as u64);
    print(&destination, &args.output, args.all, &report, report::tasks)?;
    Ok(Exit::Written)
}

/// The heap by type.
pub(crate) fn heap(args: &HeapArgs) -> Result<Exit, CliError> {
    let destination = Destination::new(&args.output, &args.dump)?;
    let mut report = ask_runtime(&args.dump, &args.files, |runtime| {
        views::heap(&runtime, &args.types, usize::MAX)
    })?;
    match args.sort {
        HeapSort::Bytes => report.types.sort_by_key(|t| std::cmp::Reverse(t.bytes)),
        HeapSort::Count => report.types.sort_by_key(|t| std::cmp::Reverse(t.count)),
    }
    let hidden = report
        .types
        .len()
        .saturating_sub(limit(args.limit, args.all));
    report.types.truncate(limit(args.limit, args.all));
    report.types_left_out = hidden as u64;
    print(&destination, &args.output, args.all, &report, report::heap)?;
    Ok(Exit::Written)
}

/// One object, or a part of the report.
pub(crate) fn show(args: &ShowArgs) -> Result<Exit, CliError> {
    match &args.target {
        Target::Address(address) => object(args, *address),
        Target::Id(id) => item(args, id),
    }
}

fn object(args: &ShowArgs, address: Address) -> Result<Exit, CliError> {
    let destination = Destination::new(&args.output, &args.dump)?;
    let most = limit(args.limit, args.all);
    let values = Values::shown(args.show_values);
    let report = object_of(&args.dump, &args.files, address, most, values)?;
    print(
        &destination,
        &args.output,
        args.all,
        &report,
        report::object,
    )?;
    Ok(Exit::Written)
}

/// What is known of the object at an address.
pub(crate) fn object_of(
    dump: &Path,
    files: &FileArgs,
    address: Address,
    limit: usize,
    values: Values,
) -> Result<ObjectReport, CliError> {
    let options = views::ObjectOptions { limit, values };
    let found = ask_runtime(dump, files, |runtime| {
        let runtime = runtime.with_points(symbols::lists(&[]));
        views::object(&Analysis::new(&runtime), Addr(address.0), options)
    })?;
    found.ok_or_else(|| ask::no_object(address))
}

fn item(args: &ShowArgs, id: &str) -> Result<Exit, CliError> {
    let destination = Destination::new(&args.output, &args.dump)?;
    let progress = Progress::of_dump(&args.dump);
    let options = Options {
        members: usize::MAX,
        idle_too: args.all,
        values: Values::shown(args.show_values),
        ..Options::default()
    };
    let report = match saved::find(&args.dump) {
        Some(report) => report,
        None => analysed(&args.dump, &args.files, &[], options)?,
    };
    drop(progress);
    let none = || {
        CliError::new(
            Exit::Usage,
            format!("the report has no {id}"),
            "ids are those of the report and the postmortem; those of a report made with --all need --all here, too",
        )
    };
    let found = report::ItemReport::of(&report, id).ok_or_else(none)?;
    print(
        &destination,
        &args.output,
        args.all,
        &found,
        |_, options| report::item(&report, id, options).unwrap_or_default(),
    )?;
    Ok(Exit::Written)
}

/// What can be read, and on what evidence.
pub(crate) fn runtimes(args: &RuntimesArgs) -> Result<Exit, CliError> {
    // there is no dump that the output could overwrite
    let destination = Destination::new(&args.output, Path::new(""))?;
    print(
        &destination,
        &args.output,
        true,
        &views::runtimes(),
        report::runtimes,
    )?;
    Ok(Exit::Written)
}

pub(crate) fn limit(limit: usize, all: bool) -> usize {
    if all { usize::MAX } else { limit }
}

/// The dump that stands for the standard input.
const STDIN: &str = "-";

/// The dump as a person names it.
pub(crate) fn shown(path: &Path) -> String {
    if path == Path::new(STDIN) {
        "the standard input".into()
    } else {
        path.display().to_string()
    }
}

/// Opens the dump at `path`; `-` is the standard input.
fn read(path: &Path, files: &FileArgs, record_pages: bool) -> Result<Dump, CliError> {
    let options = OpenOptions {
        use_paths: !files.no_mapped_files,
        budget: limits::budget(&files.bounds)?,
        record_pages,
        ..OpenOptions::default()
    };
    let opened = if path == Path::new(STDIN) {
        if io::stdin().is_terminal() {
            let message = "the standard input is a terminal";
            let remedy = "pipe a dump into it, as in `zcat hang.dmp.gz | asynctriage -`";
            return Err(CliError::new(Exit::Usage, message, remedy));
        }
        Dump::from_reader(io::stdin().lock(), &options)
    } else {
        Dump::open(path, &options)
    };
    opened.map_err(|e| {
        let message = format!("{} cannot be analysed", shown(path));
        let meant = path
            .to_str()
            .filter(|_| !path.exists())
            .and_then(command_like);
        let remedy = match meant {
            Some(command) => format!("check the path; the command is `asynctriage {command}`"),
            None => e.remedy(),
        };
        CliError::new(Exit::Input, message, remedy).because(e)
    })
}

pub(crate) fn open(path: &Path, files: &FileArgs) -> Result<Dump, CliError> {
    open_with(path, files, &[], false)
}

/// Modules may lie beside their symbols; what is read is recorded for a dump that is to be trimmed.
pub(crate) fn open_with(
    path: &Path,
    files: &FileArgs,
    symbols: &[PathBuf],
    record_pages: bool,
) -> Result<Dump, CliError> {
    files.check(symbols)?;
    let mut dump = read(path, files, record_pages)?;
    complete(&mut dump, files, symbols);
    Ok(dump)
}

/// Lays files of this machine under a dump.
pub(crate) fn complete(dump: &mut Dump, files: &FileArgs, symbols: &[PathBuf]) {
    let folders = symbols.iter().filter(|p| p.is_dir());
    let with_folders = files
        .module_path
        .iter()
        .chain(folders)
        .fold(ImageFiles::new(), ImageFiles::module_path);
    let found = files.sysroot.iter().fold(with_folders, ImageFiles::sysroot);
    found.complete(dump);
}

/// Why a dump has no runtime that can be read; of a cut one the file is to blame.
#[expect(clippy::needless_pass_by_value, reason = "for map_err")]
pub(crate) fn no_runtime(dump: &Dump, error: RuntimeError) -> CliError {
    let exit = if dump.truncated.is_some() {
        Exit::Input
    } else {
        Exit::NoRuntime
    };
    CliError::new(exit, error.to_string(), error.remedy())
}

pub(crate) fn print<T: Document, F>(
    destination: &Destination,
    args: &OutputArgs<F>,
    all: bool,
    report: &T,
    render: impl Fn(&T, &TextOptions) -> String,
) -> Result<(), CliError>
where
    F: ValueEnum + Clone + Send + Sync + 'static + Into<Form>,
{
    let text = match args.form() {
        Form::Json => report::json(report).map_err(unwritable)?,
        _ => {
            return destination.write_text(&render(report, &destination.text_options(args, all)));
        }
    };
    destination.write(&text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::FailOn;
    use asynctriage_report::{Finding, FindingKind, Gap};

    #[test]
    fn the_exit_status_follows_the_gates() {
        let mut report = Report::default();
        let strict = GateArgs {
            strict: Some(Strict::All),
            fail_on: None,
        };
        let warnings = GateArgs {
            strict: Some(Strict::All),
            fail_on: Some(FailOn::Warning),
        };
        assert_eq!(gate(&report, &warnings), Exit::Written);
        report.gaps.push(Gap::default());
        assert_eq!(gate(&report, &strict), Exit::Incomplete);
        assert_eq!(gate(&report, &GateArgs::default()), Exit::Written);
        let content = GateArgs {
            strict: Some(Strict::Content),
            fail_on: None,
        };
        assert_eq!(gate(&report, &content), Exit::Incomplete);
        report.gaps[0].only_names = true;
        assert_eq!(gate(&report, &content), Exit::Written);
        report
            .findings
            .push(Finding::new(FindingKind::Idle, Severity::Info, "idle"));
        assert_eq!(gate(&report, &warnings), Exit::Incomplete);
        report.findings.push(Finding::new(
            FindingKind::Bottleneck,
            Severity::Critical,
            "bad",
        ));
        assert_eq!(gate(&report, &warnings), Exit::Finding);
    }
}
