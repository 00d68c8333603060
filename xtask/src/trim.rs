//! Small dumps for the repository: only what an analysis reads.

use anyhow::{Context, Result, bail};
use asynctriage_clr::Runtime;
use asynctriage_dump::{Addr, Dump, OpenOptions};
use asynctriage_report::{Report, json};
use asynctriage_triage::{Analysis, Options, Values, analyse, views};
use flate2::Compression;
use flate2::write::GzEncoder;
use std::io::Write;
use std::path::Path;

const USAGE: &str = "usage: cargo xtask trim DUMP OUT.gz [--managed] [--objects TEXT]";

pub(crate) fn run(args: &[String]) -> Result<()> {
    let (from, to, rest) = match args {
        [from, to, rest @ ..] => (from, to, rest),
        _ => bail!(USAGE),
    };
    let (mut native, mut asked) = (true, None);
    let mut rest = rest.iter();
    while let Some(word) = rest.next() {
        match word.as_str() {
            "--managed" => native = false,
            "--objects" => asked = Some(rest.next().context(USAGE)?.as_str()),
            _ => bail!(USAGE),
        }
    }
    let options = OpenOptions {
        record_pages: true,
        ..OpenOptions::default()
    };
    let dump = Dump::open(Path::new(from), &options).with_context(|| from.clone())?;
    let before = report(&dump, native, asked)?;
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
    let after = report(&Dump::from_bytes(packed.clone())?, native, asked)?;
    if let Some(difference) = first_difference(&before, &after) {
        bail!("the trimmed dump gives another report: {difference}");
    }
    std::fs::write(to, packed).with_context(|| to.clone())
}

/// Everything that the tool says about a dump, apart from its path and its size.
fn report(dump: &Dump, native: bool, asked: Option<&str>) -> Result<String> {
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
    let analysis = Analysis::new(&runtime);
    let numbered = analysis.dispatchers();
    let asked = asked.map_or(Ok(String::new()), |text| about(&analysis, text))?;
    Ok(format!("{}{numbered:#?}{asked}", json(&report)?))
}

/// What is said of the objects whose types contain a text, and of what they refer to.
fn about(analysis: &Analysis<'_, '_>, text: &str) -> Result<String> {
    let shown = views::ObjectOptions {
        limit: usize::MAX,
        values: Values::Shown,
    };
    let found = views::objects(analysis, &[text.to_owned()], usize::MAX, Values::Shown);
    let mut out = json(&found)?;
    for row in found.objects {
        let address = Addr(row.address.0);
        let Some(object) = views::object(analysis, address, shown) else {
            continue;
        };
        let links = object.fields.iter().filter_map(|f| f.link);
        for link in links {
            if let Some(linked) = views::object(analysis, Addr(link.0), shown) {
                out += &json(&linked)?;
            }
        }
        out += &json(&object)?;
        out += &json(&views::root(analysis, address, usize::MAX))?;
    }
    Ok(out)
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
