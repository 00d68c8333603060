//! What a bundle holds of a report. Export and verify make it by the same functions, so that equal reports are equal files.

use super::Output;
use crate::digest::sha256;
use crate::errors::CliError;
use crate::forms::unwritable;
use asynctriage_dump::{Budget, Dump};
use asynctriage_pages as pages;
use asynctriage_report::{
    self as report, BundleOptions, ClaimsReport, Report, TextOptions, TraceReport,
};
use asynctriage_triage::trace::{self, TraceError, TraceOptions};
use asynctriage_triage::{Options, Values};
use flate2::Compression;
use flate2::write::GzEncoder;
use std::io::{self, Write};
use std::ops::ControlFlow;
use std::path::PathBuf;

/// The report of a dump for tools.
pub(crate) const REPORT: &str = "report.json";
pub(crate) const TRIMMED: &str = "trimmed.dmp.gz";
pub(crate) const RECORDING: &str = "recording.nettrace.gz";

/// Columns of texts.
const WIDTH: usize = 120;

/// How a dump is analysed for a bundle.
pub(crate) fn options(asked: &BundleOptions, symbols: Vec<PathBuf>) -> Options {
    Options {
        members: usize::MAX,
        idle_too: asked.all,
        locals: asked.locals,
        values: Values::shown(asked.show_values),
        native: true,
        symbols,
        ..Options::default()
    }
}

/// All that is made of a report.
pub(crate) fn of_report(report: &Report, claims: &ClaimsReport) -> Result<Vec<Output>, CliError> {
    let json = report::json(report).map_err(unwritable)?;
    let claims = report::json(claims).map_err(unwritable)?;
    let page = pages::html(report).map_err(unwritable)?;
    let mut out = vec![
        Output::new(REPORT, "the report for tools", json),
        Output::new("report.html", "the report for a browser", page),
        Output::new(
            "report.md",
            "the report for a ticket",
            pages::markdown(report),
        ),
        Output::new(
            "report.txt",
            "the report for a terminal",
            report::text(report, &plain()),
        ),
        Output::new(
            "postmortem.md",
            "the draft of a postmortem",
            pages::postmortem(report),
        ),
        Output::new(
            "claims.json",
            "what each statement rests on, down to the bytes",
            claims,
        ),
    ];
    out.extend(pages::tables(report).into_iter().map(|table| {
        Output::new(
            format!("{}.csv", table.name),
            "a table of the report",
            table.csv,
        )
    }));
    Ok(out)
}

/// All that is made of a recording; `report` is that of its bytes.
pub(crate) fn of_recording(
    report: &TraceReport,
    budget: &Budget,
    file: &[u8],
) -> Result<Vec<Output>, CliError> {
    let json = report::json(report).map_err(unwritable)?;
    let (mut records, mut batches) = (String::new(), String::new());
    let mut failed = None;
    let mut keep = |line: serde_json::Result<String>, to: &mut String| match line {
        Ok(line) => to.push_str(&line),
        Err(error) => failed = Some(error),
    };
    // what opens once opens again
    let _ = trace::records(file, budget, |record| {
        keep(report::json_line(&record), &mut records);
        ControlFlow::Continue(())
    });
    let _ = trace::batches(file, budget, |mut batch, bytes| {
        batch.sha256 = sha256(bytes);
        keep(report::json_line(&batch), &mut batches);
    });
    if let Some(error) = failed {
        return Err(unwritable(error));
    }
    Ok(vec![
        Output::new(REPORT, "the report for tools", json),
        Output::new(
            "report.txt",
            "the report for a terminal",
            report::trace(report, &plain()),
        ),
        Output::new(
            "records.jsonl",
            "every record with its place in the file, a line each",
            records,
        ),
        Output::new(
            "batches.jsonl",
            "every batch with its place in the file and its hash, a line each",
            batches,
        ),
    ])
}

/// The report of a recording, all of it.
pub(crate) fn trace_report(file: &[u8], budget: &Budget) -> Result<TraceReport, TraceError> {
    let options = TraceOptions {
        budget: budget.clone(),
        members: usize::MAX,
        ..TraceOptions::default()
    };
    trace::trace(file, &options)
}

pub(crate) fn packed(bytes: &[u8]) -> io::Result<Vec<u8>> {
    let mut packer = GzEncoder::new(Vec::new(), Compression::best());
    packer.write_all(bytes)?;
    packer.finish()
}

/// What the report of the whole dump says of its file, which those of other files with the same content cannot say.
pub(crate) fn name_source(report: &mut Report, dump: &Dump, path: &str, sha256: &str) {
    report.dump.path = path.to_owned();
    report.dump.bytes = dump.file_len;
    report.dump.sha256 = Some(sha256.to_owned());
}

fn plain() -> TextOptions {
    TextOptions {
        width: WIDTH,
        unicode: true,
        color: false,
        verbose: 1,
        rows: None,
        ..TextOptions::default()
    }
}
