//! Other programs, run in the root of the repository.

use anyhow::{Context, Result, bail};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The folder of the workspace.
pub(crate) fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here).to_path_buf()
}

/// The cargo that runs this task.
pub(crate) fn cargo(args: &[&str]) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(args).current_dir(root());
    command
}

/// Runs it with its output shown.
pub(crate) fn run(mut command: Command) -> Result<()> {
    println!("$ {}", line(&command));
    let status = command.status().with_context(|| line(&command))?;
    if !status.success() {
        bail!("{} failed: {status}", line(&command));
    }
    Ok(())
}

/// Runs it and takes what it prints.
pub(crate) fn output(mut command: Command) -> Result<Vec<u8>> {
    let output = command.output().with_context(|| line(&command))?;
    if !output.status.success() {
        bail!(
            "{} failed: {}\n{}",
            line(&command),
            output.status,
            String::from_utf8_lossy(&output.stderr)
        );
    }
    Ok(output.stdout)
}

fn line(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    let words: Vec<_> = words.map(std::ffi::OsStr::to_string_lossy).collect();
    words.join(" ")
}
