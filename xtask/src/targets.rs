//! Other systems and processors: what this machine can compile for.

use crate::shell::output;
use anyhow::{Context, Result};
use std::path::Path;
use std::process::Command;

/// Where the program is to run besides the machines that it is worked on at.
pub(crate) const ALL: [&str; 3] = [
    "x86_64-pc-windows-gnu",
    "aarch64-unknown-linux-gnu",
    "x86_64-unknown-linux-musl",
];

/// Names them, for `rustup target add`.
pub(crate) fn run(_: &[String]) -> Result<()> {
    println!("{}", ALL.join("\n"));
    Ok(())
}

/// Whether the standard library of the target is installed.
pub(crate) fn is_here(target: &str) -> Result<bool> {
    let folder = rustc(&["--print", "target-libdir", "--target", target])?;
    Ok(Path::new(folder.trim()).is_dir())
}

/// The target of the compiler itself.
pub(crate) fn host() -> Result<String> {
    let about = rustc(&["-vV"])?;
    let host = about.lines().find_map(|l| l.strip_prefix("host: "));
    host.map(str::to_owned)
        .context("rustc does not say its host")
}

fn rustc(args: &[&str]) -> Result<String> {
    let mut rustc = Command::new(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()));
    rustc.args(args);
    Ok(String::from_utf8(output(rustc)?)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_host_has_its_library_and_unknown_targets_have_none() {
        assert!(is_here(&host().unwrap()).unwrap());
        assert!(is_here("no-such-target").is_err());
    }
}
