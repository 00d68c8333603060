//! `asynctriage join`: several dumps of one incident as one picture.

use crate::args::{FileArgs, JoinArgs};
use crate::commands::{no_runtime, open, print};
use crate::errors::CliError;
use crate::exit::Exit;
use crate::output::Destination;
use crate::progress::Progress;
use crate::saved;
use asynctriage_report::{self as report, Gap, Report};
use asynctriage_triage::{Options, analyse, services};
use std::path::Path;

pub(crate) fn join(args: &JoinArgs) -> Result<Exit, CliError> {
    let first = args.dumps.first().map_or(Path::new(""), |d| d);
    let destination = Destination::new(&args.output, first)?;
    let progress = Progress::start("reading the dumps");
    let mut reports = Vec::new();
    let mut gaps = Vec::new();
    for dump in &args.dumps {
        // one that cannot be read does not stop the others
        match read(dump, &args.files, &Options::default()) {
            Ok(report) => reports.push(report),
            Err(error) if args.dumps.len() == 1 => return Err(error),
            Err(error) => gaps.push(Gap {
                id: format!("G{}", gaps.len().saturating_add(1)),
                kind: "input".into(),
                section: "dumps".into(),
                place: dump.display().to_string(),
                why: error.render().trim_end().to_owned(),
                remedy: "run `asynctriage` on it alone; the requests of that service are not in the picture".into(),
                only_names: false,
            }),
        }
    }
    let mut joined = services::join(&reports);
    joined.gaps = gaps;
    drop(progress);
    print(
        &destination,
        &args.output,
        args.all,
        &joined,
        report::services,
    )?;
    Ok(if joined.gaps.is_empty() {
        Exit::Written
    } else {
        Exit::Incomplete
    })
}

/// The report of a dump, or one that was saved before.
pub(crate) fn read(path: &Path, files: &FileArgs, options: &Options) -> Result<Report, CliError> {
    if let Some(saved) = saved::find(path) {
        return Ok(saved);
    }
    let dump = open(path, files)?;
    let mut report = analyse(&dump, options).map_err(|e| no_runtime(&dump, e))?;
    report.dump.path = path.display().to_string();
    Ok(report)
}
