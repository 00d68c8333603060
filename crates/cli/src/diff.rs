//! `asynctriage diff`: dumps of one process at several moments, or of two deployments.

use crate::args::DiffArgs;
use crate::commands::print;
use crate::errors::CliError;
use crate::exit::Exit;
use crate::join;
use crate::output::Destination;
use crate::progress::Progress;
use asynctriage_report as report;
use asynctriage_triage::{Options, diff};
use std::path::Path;

pub(crate) fn diff(args: &DiffArgs) -> Result<Exit, CliError> {
    let first = args.dumps.first().map_or(Path::new(""), |d| d);
    let destination = Destination::new(&args.output, first)?;
    for dump in &args.dumps {
        destination.spares(dump)?;
    }
    let progress = Progress::start("reading the dumps");
    let options = Options {
        // chains are compared one by one
        members: usize::MAX,
        idle_too: args.all,
        ..Options::default()
    };
    let reports = args
        .dumps
        .iter()
        .map(|dump| join::read(dump, &args.files, &options))
        .collect::<Result<Vec<_>, _>>()?;
    let compared = diff::diff(&reports, args.apart);
    drop(progress);
    print(
        &destination,
        &args.output,
        args.all,
        &compared,
        report::diff,
    )?;
    Ok(Exit::Written)
}
