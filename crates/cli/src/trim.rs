//! `asynctriage trim`: a small dump that gives the same report.

use crate::args::TrimArgs;
use crate::commands::no_runtime;
use crate::errors::CliError;
use crate::exit::Exit;
use crate::limits;
use crate::output::Destination;
use crate::progress::Progress;
use asynctriage_dump::{Dump, OpenOptions};
use asynctriage_triage::views::{self, TrimError};
use flate2::Compression;
use flate2::write::GzEncoder;
use std::io::Write;

pub(crate) fn trim(args: &TrimArgs) -> Result<Exit, CliError> {
    let destination = Destination::file(&args.output, args.force, &args.dump)?;
    let progress = Progress::start("reading the dump");
    let options = OpenOptions {
        record_pages: true,
        budget: limits::budget(&args.bounds)?,
        ..OpenOptions::default()
    };
    let cannot = |remedy: &str| {
        let message = format!("{} cannot be trimmed", args.dump.display());
        CliError::new(Exit::Input, message, remedy)
    };
    let dump = Dump::open(&args.dump, &options).map_err(|e| cannot(&e.remedy()).because(e))?;
    let trimmed =
        views::trim(&dump, &views::everything(), &|_| Ok(String::new())).map_err(|e| match e {
            TrimError::Runtime(e) => no_runtime(&dump, e),
            other => cannot("trim ELF cores and full minidumps").because(other),
        })?;
    if !dump.budget.cuts().is_empty() {
        return Err(cannot("give it more --max-time and --max-memory")
            .because("the analysis was ended: what it reads is not known"));
    }
    if let Some(difference) = trimmed.difference {
        let remedy = "pass on the whole dump, and report this line as an error of asynctriage";
        return Err(cannot(remedy).because(format!("its report would be another: {difference}")));
    }
    let is_packed = args.output.extension().is_some_and(|e| e == "gz");
    let bytes = if is_packed {
        let mut packer = GzEncoder::new(Vec::new(), Compression::best());
        let packed = packer.write_all(&trimmed.bytes);
        packed
            .and_then(|()| packer.finish())
            .map_err(|e| cannot("leave .gz away").because(e))?
    } else {
        trimmed.bytes
    };
    drop(progress);
    destination.write_with(|out| out.write_all(&bytes))?;
    Ok(Exit::Written)
}
