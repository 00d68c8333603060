//! Reports that were saved as JSON.

use crate::errors::CliError;
use crate::exit::Exit;
use asynctriage_report::{self as report, Report};
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// The longest report that is read.
const MAX_REPORT: u64 = 1 << 30;

/// A saved report; `None` when the file is something else.
pub(crate) fn find(path: &Path) -> Option<Report> {
    report::from_json(&text(path).ok()??).ok()
}

/// The saved report at `path`.
pub(crate) fn open(path: &Path) -> Result<Report, CliError> {
    let error = |what: &str| {
        CliError::new(
            Exit::Input,
            format!("{} {what}", path.display()),
            "name a report that was saved with `asynctriage hang.dmp -o report.json`",
        )
    };
    match text(path) {
        Err(e) => Err(error("cannot be read").because(e)),
        Ok(None) => Err(error("is no saved report")),
        Ok(Some(text)) => {
            report::from_json(&text).map_err(|e| error("is no report of a dump").because(e))
        }
    }
}

/// The text of a file that begins as a JSON object.
fn text(path: &Path) -> io::Result<Option<String>> {
    let mut file = File::open(path)?;
    let mut first = [0];
    file.read_exact(&mut first)?;
    if first != *b"{" {
        return Ok(None);
    }
    let mut text = String::from("{");
    file.take(MAX_REPORT).read_to_string(&mut text)?;
    Ok(Some(text))
}
