//! Small dumps for the repository: only what an analysis reads.

use anyhow::{Context, Result, bail};
use asynctriage_clr::Runtime;
use asynctriage_dump::{Dump, OpenOptions};
use asynctriage_report::{Report, json};
use asynctriage_triage::{Analysis, Options, analyse};
use flate2::Compression;
use flate2::write::GzEncoder;
use std::io::Write;
use std::path::Path;

pub(crate) fn run(args: &[String]) -> Result<()> {
    let (from, to, native) = match args {
        [from, to] => (from, to, true),
        [from, to, only] if only == "--managed" => (from, to, false),
        _ => bail!("usage: cargo xtask trim DUMP OUT.gz [--managed]"),
    };
    let options = OpenOptions {
        record_pages: true,
        ..OpenOptions::default()
    };
    let dump = Dump::open(Path::new(from), &options).with_context(|| from.clone())?;
    let before = report(&dump, native)?;
    let mut plain = Vec::new();
    asynctriage_dump::trim(&dump, &mut plain)?;
    let mut packer = GzEncoder::new(Vec::new(), Compression::best());
    packer.write_all(&plain)?;
    let packed = packer.finish()?;
    println!(
        "{} bytes, {} trimmed, {} packed",
        dump.file_len,
        plain.len(),
        packed.len()
    );
    let after = report(&Dump::from_bytes(packed.clone())?, native)?;
    if let Some(difference) = first_difference(&before, &after) {
        bail!("the trimmed dump gives another report: {difference}");
    }
    std::fs::write(to, packed).with_context(|| to.clone())
}

/// Everything that the tool says about a dump, apart from its path and its size.
fn report(dump: &Dump, native: bool) -> Result<String> {
    let options = Options {
        members: usize::MAX,
        idle_too: true,
        locals: true,
        native,
        ..Options::default()
    };
    let report = Report {
        dump: Default::default(),
        ..analyse(dump, &options)?
    };
    let runtime = Runtime::open(dump)?;
    // recordings are joined by these
    let numbered = Analysis::new(&runtime).dispatchers();
    Ok(format!("{}{numbered:#?}", json(&report)?))
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
