//! Small dumps for the repository: only what an analysis reads.

use anyhow::{Context, Result, bail};
use asynctriage_dump::{Addr, Dump, OpenOptions};
use asynctriage_report::json;
use asynctriage_triage::{Analysis, Options, Values, views};
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
    let wanted = Options {
        native,
        ..views::everything()
    };
    let trimmed = views::trim(&dump, &wanted, &|analysis| {
        asked.map_or(Ok(String::new()), |text| about(analysis, text))
    })?;
    let mut packer = GzEncoder::new(Vec::new(), Compression::best());
    packer.write_all(&trimmed.bytes)?;
    let packed = packer.finish()?;
    println!(
        "{} bytes, {} trimmed, {} packed",
        dump.file_len,
        trimmed.bytes.len(),
        packed.len()
    );
    if let Some(difference) = trimmed.difference {
        bail!("the trimmed dump gives another report: {difference}");
    }
    std::fs::write(to, packed).with_context(|| to.clone())
}

/// What is said of the objects whose types contain a text, and of what they refer to.
fn about(analysis: &Analysis<'_, '_>, text: &str) -> serde_json::Result<String> {
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
        out +=
            &views::root(analysis, address, usize::MAX).map_or(Ok(String::new()), |r| json(&r))?;
    }
    Ok(out)
}
