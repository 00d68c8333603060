//! What has to pass before a change is merged.

use crate::shell::{cargo, output, run};
use crate::{schema, tidy};
use anyhow::Result;

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
    schema::run(&["--check".into()])
}
