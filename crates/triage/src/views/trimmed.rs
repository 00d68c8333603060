//! The smallest dump that gives the same report.

use crate::options::Options;
use crate::paths::Analysis;
use crate::summary::analyse;
use asynctriage_clr::{Runtime, RuntimeError};
use asynctriage_dump::{Dump, OpenError};
use asynctriage_report::{Report, json};

/// A dump that holds only what an analysis reads.
#[derive(Clone, Debug)]
pub struct Trimmed {
    /// The dump.
    pub bytes: Vec<u8>,
    /// The first line of its report that is not as in the whole dump's; `None` when all are.
    pub difference: Option<String>,
}

/// What else the trimmed dump shall say as the whole one does.
pub type Also<'a> = dyn Fn(&Analysis<'_, '_>) -> serde_json::Result<String> + 'a;

/// Why a dump cannot be trimmed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TrimError {
    /// It holds no runtime that can be read.
    #[error(transparent)]
    Runtime(#[from] RuntimeError),
    /// Its container does not allow it.
    #[error(transparent)]
    Container(#[from] asynctriage_dump::TrimError),
    /// What was written cannot be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// A report cannot be written as JSON.
    #[error(transparent)]
    Json(#[from] serde_json::Error),
}

/// The options by which all is said that reports can say, with native frames.
#[must_use]
pub fn everything() -> Options {
    Options {
        members: usize::MAX,
        idle_too: true,
        locals: true,
        native: true,
        ..Options::default()
    }
}

/// Trims a dump that was opened with [`record_pages`](asynctriage_dump::OpenOptions::record_pages) to what was read of it before,
/// what a report by these options reads, and what is said `also`; compares the reports of both.
///
/// # Errors
/// When the dump holds no runtime, or its container cannot be trimmed.
pub fn trim(dump: &Dump, options: &Options, also: &Also<'_>) -> Result<Trimmed, TrimError> {
    let before = said(dump, options, also)?;
    let mut bytes = Vec::new();
    asynctriage_dump::trim(dump, &mut bytes)?;
    let after = said(&Dump::from_bytes(bytes.clone())?, options, also)?;
    Ok(Trimmed {
        bytes,
        difference: first_difference(&before, &after),
    })
}

/// Everything that is said about a dump, apart from its path and its size.
fn said(dump: &Dump, options: &Options, also: &Also<'_>) -> Result<String, TrimError> {
    let report = Report {
        dump: Default::default(),
        ..analyse(dump, options)?
    };
    let runtime = Runtime::open(dump)?;
    // recordings are joined by these
    let analysis = Analysis::new(&runtime);
    let numbered = analysis.dispatchers();
    let more = also(&analysis)?;
    Ok(format!("{}{numbered:#?}{more}", json(&report)?))
}

fn first_difference(before: &str, after: &str) -> Option<String> {
    if before == after {
        return None;
    }
    let lines = before.lines().map(Some).chain(std::iter::repeat(None));
    let others = after.lines().map(Some).chain(std::iter::repeat(None));
    let longest = before.lines().count().max(after.lines().count());
    let differing = (1..=longest)
        .zip(lines.zip(others))
        .find(|(_, (a, b))| a != b);
    let (line, (a, b)) = differing.unwrap_or_default();
    Some(format!(
        "line {line} was {:?} and is {:?}",
        a.unwrap_or_default(),
        b.unwrap_or_default()
    ))
}

#[cfg(test)]
mod tests {
    use super::first_difference;

    #[test]
    fn the_first_differing_line_is_named() {
        assert_eq!(first_difference("a\nb", "a\nb"), None);
        assert_eq!(
            first_difference("a\nb\n", "a\nc\n").unwrap(),
            r#"line 2 was "b" and is "c""#
        );
        assert_eq!(
            first_difference("a\n", "a\nx\n").unwrap(),
            r#"line 2 was "" and is "x""#
        );
        assert!(
            first_difference("a\n", "a").is_some(),
            "the last newline counts, too"
        );
    }
}
