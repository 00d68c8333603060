//! Fuzzing with cargo-fuzz on the stable toolchain, which has no address sanitizer.

use crate::shell::{cargo, output, root, run as show};
use anyhow::{Context, Result, bail};

const FOLDER: &str = "crates/fuzz";

pub(crate) fn run(args: &[String]) -> Result<()> {
    match args {
        [] => {
            for name in targets()? {
                println!("{name}");
            }
            Ok(())
        }
        [name, seconds] => {
            let seconds: u32 = seconds.parse().context("SECONDS must be a number")?;
            output(cargo(&["fuzz", "--version"]))
                .context("this needs `cargo install cargo-fuzz`")?;
            let limit = format!("-max_total_time={seconds}");
            show(cargo(&[
                "fuzz",
                "run",
                "-s",
                "none",
                "--fuzz-dir",
                FOLDER,
                name,
                "--",
                &limit,
            ]))
        }
        _ => bail!("usage: cargo xtask fuzz NAME SECONDS"),
    }
}

fn targets() -> Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(root().join(FOLDER).join("fuzz_targets"))? {
        names.extend(
            entry?
                .path()
                .file_stem()
                .map(|n| n.to_string_lossy().into_owned()),
        );
    }
    names.sort();
    Ok(names)
}
