//! `asynctriage trace`: what a recording of the async profiler says.

use crate::args::{Form, TraceArgs};
use crate::commands::{no_runtime, open, print};
use crate::digest::sha256;
use crate::errors::CliError;
use crate::exit::Exit;
use crate::limits;
use crate::output::Destination;
use crate::progress::Progress;
use asynctriage_dump::{Budget, OpenOptions, PlainFile};
use asynctriage_report::{self as report, TraceRecord, TraceReport, TraceVerdict};
use asynctriage_triage::Options;
use asynctriage_triage::trace::{self, DumpSide, ExportFormat, TraceOptions};
use std::io;
use std::ops::ControlFlow;
use std::path::Path;

/// The report of a recording, or its records one by one.
pub(crate) fn trace(args: &TraceArgs) -> Result<Exit, CliError> {
    if args.dump.is_none() && !args.files.is_empty() {
        return Err(CliError::new(
            Exit::Usage,
            "--module-path, --sysroot and --no-mapped-files are about a dump, and there is none",
            "add --dump with a dump of the recorded process: modules cannot name what a recording lacks",
        ));
    }
    let destination = Destination::new(&args.output, &args.file)?;
    let budget = limits::budget(&args.files.bounds)?;
    let how = OpenOptions {
        budget: budget.clone(),
        ..OpenOptions::default()
    };
    let file = PlainFile::open(&args.file, &how).map_err(|e| unreadable(args, &e.remedy(), e))?;
    if args.records {
        return records(args, &destination, &budget, file.bytes());
    }
    if let Some(format) = args.export {
        return export(args, &destination, format, &budget, file.bytes());
    }
    let timeline = args.timeline.as_deref();
    let timeline = timeline.map(|page| Destination::beside(page, &args.output, &args.file));
    let timeline = timeline.transpose()?;
    for written in std::iter::once(&destination).chain(&timeline) {
        written.spares(args.dump.as_deref().unwrap_or(&args.file))?;
    }
    if let Some(page) = &timeline {
        page.differs_from(&destination)?;
    }
    let progress = Progress::start("reading the recording");
    let options = TraceOptions {
        members: if args.all { usize::MAX } else { args.limit },
        markers: args.markers.clone(),
        expect: (!args.expect.is_empty()).then(|| args.expect.clone()),
        packed_fault: file
            .compression
            .is_some_and(|packed| packed.fault().is_some()),
        budget,
    };
    let dump = args.dump.as_deref().map(|dump| dump_side(args, dump));
    let dump = dump.transpose()?;
    // hashing takes a sixth of the time that the analysis takes, on another thread
    let (read, hash) = std::thread::scope(|scope| {
        let hash = scope.spawn(|| sha256(file.on_disk()));
        let read = match &dump {
            Some(dump) => trace::joined(file.bytes(), &options, dump),
            None => trace::trace(file.bytes(), &options),
        };
        (read, hash.join())
    });
    let mut report = read.map_err(|e| unreadable(args, e.remedy(), e))?;
    report.sha256 = hash.ok();
    if let Some((join, dump)) = report.join.as_mut().zip(args.dump.as_ref()) {
        join.dump = dump.display().to_string();
    }
    report.file = args.file.display().to_string();
    if let Some(page) = timeline {
        page.write(&draw(args, &options, file.bytes())?)?;
    }
    drop(progress);
    print(&destination, &args.output, args.all, &report, report::trace)?;
    Ok(if args.strict && !is_complete(&report) {
        Exit::Incomplete
    } else {
        Exit::Written
    })
}

/// Whether the recording says all that it was asked for.
fn is_complete(report: &TraceReport) -> bool {
    report.verdict == TraceVerdict::Bounded
        && report.completeness.attached != Some(true)
        && report.marker_check.as_ref().is_none_or(|m| m.as_asked)
        && report.join.as_ref().is_none_or(|j| j.refused.is_none())
}

/// The recording in the form of another tool.
fn export(
    args: &TraceArgs,
    destination: &Destination,
    format: ExportFormat,
    budget: &Budget,
    file: &[u8],
) -> Result<Exit, CliError> {
    let options = TraceOptions {
        budget: budget.clone(),
        markers: args.markers.clone(),
        ..TraceOptions::default()
    };
    let mut failed = None;
    let written = destination.write_with(|out| {
        trace::export(file, format, &options, out).unwrap_or_else(|e| {
            failed = Some(e);
            Ok(())
        })
    });
    match failed {
        Some(e) => Err(unreadable(args, e.remedy(), e)),
        None => written.map(|()| Exit::Written),
    }
}

/// The page with the time line.
fn draw(args: &TraceArgs, options: &TraceOptions, file: &[u8]) -> Result<String, CliError> {
    let mut line = trace::timeline(file, options).map_err(|e| unreadable(args, e.remedy(), e))?;
    line.file = args.file.display().to_string();
    Ok(report::timeline::timeline_html(&line))
}

/// The dump that the recording is joined with.
fn dump_side(args: &TraceArgs, dump: &Path) -> Result<DumpSide, CliError> {
    let options = Options {
        idle_too: args.all,
        // symbols often lie beside the images
        symbols: [args.symbols.as_slice(), &args.files.module_path].concat(),
        ..Options::default()
    };
    let dump = open(dump, &args.files)?;
    DumpSide::read(&dump, &options).map_err(|e| no_runtime(&dump, e))
}

/// Every record in a line.
fn records(
    args: &TraceArgs,
    destination: &Destination,
    budget: &Budget,
    file: &[u8],
) -> Result<Exit, CliError> {
    let form = args.output.form();
    let mut failed = None;
    let written = destination.write_with(|out| {
        let mut last = Ok(());
        let read = trace::records(file, budget, |record| {
            last = line(form, &record).and_then(|line| out.write_all(line.as_bytes()));
            if last.is_ok() {
                ControlFlow::Continue(())
            } else {
                ControlFlow::Break(())
            }
        });
        failed = read.err();
        last
    });
    match failed {
        Some(e) => Err(unreadable(args, e.remedy(), e)),
        None => written.map(|()| Exit::Written),
    }
}

fn line(form: Form, record: &TraceRecord) -> io::Result<String> {
    match form {
        Form::Json => report::json_line(record).map_err(io::Error::other),
        _ => Ok(report::trace_record(record)),
    }
}

fn unreadable(
    args: &TraceArgs,
    remedy: &str,
    error: impl Into<Box<dyn std::error::Error + Send + Sync>>,
) -> CliError {
    let message = format!("{} cannot be analysed", args.file.display());
    CliError::new(Exit::Input, message, remedy).because(error)
}
