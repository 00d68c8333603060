//! What has to pass before a change is merged.

use crate::shell::{cargo, output, run};
use crate::{matrix, schema, tidy};
use anyhow::Result;
use std::path::Path;
use std::process::Command;

/// Where the program is to run besides the machines that it is worked on at.
const TARGETS: [&str; 3] = [
    "x86_64-pc-windows-gnu",
    "aarch64-unknown-linux-gnu",
    "x86_64-unknown-linux-musl",
];

pub(crate) fn all(args: &[String]) -> Result<()> {
    check(args)?;
    if output(cargo(&["nextest", "--version"])).is_ok() {
        run(cargo(&["nextest", "run", "--workspace"]))?;
        return run(cargo(&["test", "--workspace", "--doc"]));
    }
    run(cargo(&["test", "--workspace"]))
}

pub(crate) fn check(_: &[String]) -> Result<()> {
    run(cargo(&["fmt", "--all", "--check"]))?;
    run(cargo(&[
        "clippy",
        "--workspace",
        "--all-targets",
        "--",
        "-D",
        "warnings",
    ]))?;
    tidy::run(&[])?;
    schema::run(&["--check".into()])?;
    matrix::run(&["--check".into()])?;
    cross()
}

/// Checks the program for other systems and processors, as far as this machine has their standard libraries.
fn cross() -> Result<()> {
    for target in TARGETS {
        let mut rustc = Command::new(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()));
        rustc.args(["--print", "target-libdir", "--target", target]);
        let folder = String::from_utf8(output(rustc)?)?;
        if Path::new(folder.trim()).is_dir() {
            run(cargo(&["check", "-p", "asynctriage", "--target", target]))?;
        } else {
            println!("skipped: {target} has no standard library here (rustup target add {target})");
        }
    }
    Ok(())
}
