//! What has to pass before a change is merged.

use crate::shell::{cargo, output, run};
use crate::{fuzz, matrix, schema, targets, tidy};
use anyhow::Result;

pub(crate) fn all(args: &[String]) -> Result<()> {
    check(args)?;
    if output(cargo(&["nextest", "--version"])).is_ok() {
        run(cargo(&["nextest", "run", "--workspace"]))?;
        run(cargo(&["test", "--workspace", "--doc"]))?;
    } else {
        run(cargo(&["test", "--workspace"]))?;
    }
    fuzz::run(&[])
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
    deny()?;
    cross()
}

/// Licences, duplicates and sources of all crates by deny.toml. Advisories need a network: `cargo deny check` looks at them,
/// too.
fn deny() -> Result<()> {
    if output(cargo(&["deny", "--version"])).is_ok() {
        return run(cargo(&["deny", "check", "licenses", "bans", "sources"]));
    }
    println!("skipped: deny.toml, for cargo-deny is not installed (cargo install cargo-deny)");
    Ok(())
}

/// Checks the program for other systems and processors, as far as this machine has their standard libraries.
fn cross() -> Result<()> {
    for target in targets::ALL {
        if targets::is_here(target)? {
            let package = ["clippy", "-p", "asynctriage", "--target", target];
            run(cargo(&[&package[..], &["--", "-D", "warnings"]].concat()))?;
        } else {
            println!("skipped: {target} has no standard library here (rustup target add {target})");
        }
    }
    Ok(())
}
