//! What is released: for each target an archive with the program, its manual, completions, schemas, licences and bill of
//! materials, and beside it the checksums of all archives.
//!
//! On Linux the program is static, so that one file runs on every distribution: against musl where its standard library
//! is at hand, else against the C library of this machine. The same sources and compiler make the same bytes.

mod archive;
mod licences;
mod sbom;

use crate::shell::{cargo, output, root, run as show};
use crate::{schema, targets};
use anyhow::{Context, Result, bail, ensure};
use archive::Entry;
use licences::Linked;
use object::read::elf::{ElfFile64, ProgramHeader as _};
use sha2::{Digest as _, Sha256};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

const MUSL: &str = "x86_64-unknown-linux-musl";
/// A real dump of the repository that a new program has to read.
const PROBE: &str = "testdumps/chain-10.0.15.dmp.gz";

pub(crate) fn run(args: &[String]) -> Result<()> {
    let (options, mut targets): (Vec<_>, Vec<_>) =
        args.iter().cloned().partition(|a| a.starts_with('-'));
    let twice = options.iter().any(|o| o == "--twice");
    ensure!(
        options.len() == usize::from(twice),
        "usage: cargo xtask dist [--twice] [TARGET...]"
    );
    if targets.is_empty() {
        targets.push(default_target()?);
    }
    let folder = root().join("target/dist");
    std::fs::create_dir_all(&folder)?;
    let mut sums = String::new();
    for target in &targets {
        let (name, bytes) = archive(target)?;
        if twice {
            same_again(target, &bytes)?;
        }
        std::fs::write(folder.join(&name), &bytes).with_context(|| name.clone())?;
        sums.push_str(&format!("{}  {name}\n", hex(&Sha256::digest(&bytes))));
        println!("target/dist/{name}  {} KiB", bytes.len() / 1024);
    }
    std::fs::write(folder.join("SHA256SUMS"), sums)?;
    Ok(())
}

/// musl where it can be had: it has no plug-ins that a static program would have to load.
fn default_target() -> Result<String> {
    let host = targets::host()?;
    if host == "x86_64-unknown-linux-gnu" && targets::is_here(MUSL)? {
        return Ok(MUSL.to_owned());
    }
    Ok(host)
}

/// Builds once more from nothing, in another folder: the bytes have to be the same.
fn same_again(target: &str, first: &[u8]) -> Result<()> {
    let folder = root().join("target/dist-again");
    if folder.exists() {
        std::fs::remove_dir_all(&folder)?;
    }
    let (name, second) = archive_in(target, &folder)?;
    ensure!(
        first == second,
        "{name} is not the same when it is built again"
    );
    std::fs::remove_dir_all(&folder)?;
    println!("{name}: the same when it is built again in another folder");
    Ok(())
}

fn archive(target: &str) -> Result<(String, Vec<u8>)> {
    archive_in(target, &target_folder())
}

fn archive_in(target: &str, folder: &Path) -> Result<(String, Vec<u8>)> {
    let program = build(target, folder)?;
    let bytes = std::fs::read(&program).with_context(|| program.display().to_string())?;
    if target.contains("linux") {
        ensure!(is_static(&bytes)?, "{} is not static", program.display());
    }
    if runs_here(target)? {
        probe(&program)?;
    }
    let definition = asynctriage_cli::definition();
    let version = definition.get_version().unwrap_or("0").to_owned();
    let top = format!("asynctriage-{version}-{target}");
    let file = program.file_name().map(|n| n.to_string_lossy());
    let mut entries = vec![Entry::program(file.unwrap_or_default(), bytes)];
    let texts = ["LICENSE", "README.md"].map(str::to_owned);
    for file in texts
        .into_iter()
        .chain(schema::files().map(|(file, _)| file))
    {
        let bytes = std::fs::read(root().join(&file)).with_context(|| file.clone())?;
        let name = file.replace(schema::FOLDER, "schema");
        entries.push(Entry::text(name, bytes));
    }
    let linked = Linked::of(target)?;
    entries.push(Entry::text(
        "THIRD-PARTY.txt",
        licences::collect(&linked)?.into_bytes(),
    ));
    entries.push(Entry::text(
        "asynctriage.cdx.json",
        sbom::document(&linked, &version)?,
    ));
    entries.extend(manual(&definition)?);
    entries.extend(completions(definition));
    Ok((format!("{top}.tar.gz"), archive::pack(&top, entries)?))
}

/// Compiles the program into a folder; where it came to lie.
fn build(target: &str, folder: &Path) -> Result<PathBuf> {
    ensure!(
        targets::is_here(target)?,
        "no standard library for {target}: rustup target add {target}"
    );
    let mut flags: Vec<OsString> = Vec::new();
    // nobody needs to know where this machine keeps its sources
    for (from, to) in [(root(), "asynctriage"), (cargo_home()?, "cargo")] {
        let mut flag = OsString::from("--remap-path-prefix=");
        flag.push(from);
        flag.push("=");
        flag.push(to);
        flags.push(flag);
    }
    if target.contains("linux") {
        flags.push("-Ctarget-feature=+crt-static".into());
    }
    let what = ["build", "--profile", "dist", "-p", "asynctriage"];
    let mut build = cargo(&[&what[..], &["--locked", "--target", target]].concat());
    build.env("CARGO_TARGET_DIR", folder);
    build.env(
        "CARGO_ENCODED_RUSTFLAGS",
        flags.join(&OsString::from("\u{1f}")),
    );
    show(build)?;
    let name = if target.contains("windows") {
        "asynctriage.exe"
    } else {
        "asynctriage"
    };
    Ok(folder.join(target).join("dist").join(name))
}

fn target_folder() -> PathBuf {
    let set = std::env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
    root().join(set.unwrap_or_else(|| "target".into()))
}

fn cargo_home() -> Result<PathBuf> {
    if let Some(set) = std::env::var_os("CARGO_HOME") {
        return Ok(set.into());
    }
    let home = std::env::home_dir().context("no home folder: set CARGO_HOME")?;
    Ok(home.join(".cargo"))
}

/// Whether no program of the system has to load libraries for it.
fn is_static(bytes: &[u8]) -> Result<bool> {
    let elf = ElfFile64::<object::Endianness>::parse(bytes)?;
    let endian = elf.endian();
    let mut headers = elf.elf_program_headers().iter();
    Ok(!headers.any(|h| h.p_type(endian) == object::elf::PT_INTERP))
}

/// Programs of the same system and processor, whatever the C library.
fn runs_here(target: &str) -> Result<bool> {
    let host = targets::host()?;
    let same = |t: &str| {
        let mut parts = t.split('-');
        (
            parts.next().map(str::to_owned),
            parts.nth(1).map(str::to_owned),
        )
    };
    Ok(same(&host) == same(target))
}

/// The new program has to find what a real dump holds.
fn probe(program: &Path) -> Result<()> {
    let mut command = Command::new(program);
    command
        .args([PROBE, "--format", "json", "--no-mapped-files"])
        .current_dir(root());
    let report: serde_json::Value = serde_json::from_slice(&output(command)?)?;
    if report["chains"].as_array().is_none_or(Vec::is_empty) {
        bail!("{} finds no chain in {PROBE}", program.display());
    }
    Ok(())
}

/// A page for the program and for each of its commands.
fn manual(definition: &clap::Command) -> Result<Vec<Entry>> {
    let mut definition = definition.clone();
    definition.build();
    let mut pages = Vec::new();
    let mut open = vec![&definition];
    while let Some(command) = open.pop() {
        open.extend(command.get_subcommands());
        let man = clap_mangen::Man::new(command.clone());
        let mut page = Vec::new();
        man.render(&mut page)?;
        pages.push(Entry::text(format!("man/{}", man.get_filename()), page));
    }
    Ok(pages)
}

fn completions(mut definition: clap::Command) -> Vec<Entry> {
    use clap_complete::Generator as _;
    use clap_complete::Shell::{Bash, Elvish, Fish, PowerShell, Zsh};
    let scripts = [Bash, Elvish, Fish, PowerShell, Zsh].map(|shell| {
        let mut script = Vec::new();
        clap_complete::generate(shell, &mut definition, "asynctriage", &mut script);
        let name = shell.file_name("asynctriage");
        Entry::text(format!("completions/{name}"), script)
    });
    scripts.into()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_needs_a_loader_is_not_static() {
        if cfg!(all(target_os = "linux", target_env = "gnu")) {
            let own = std::fs::read(std::env::current_exe().unwrap()).unwrap();
            assert!(!is_static(&own).unwrap());
        }
        assert!(is_static(b"MZ").is_err());
    }

    #[test]
    fn every_command_has_a_page_and_every_shell_a_script() {
        let pages = manual(&asynctriage_cli::definition()).unwrap();
        let names: Vec<_> = pages.iter().map(Entry::name).collect();
        assert!(names.contains(&"man/asynctriage.1"));
        assert!(
            names.contains(&"man/asynctriage-symbols-add.1"),
            "{names:?}"
        );
        let scripts = completions(asynctriage_cli::definition());
        assert_eq!(scripts.len(), 5);
        for script in scripts {
            assert!(script.holds(b"symbols"), "{}", script.name());
        }
    }

    #[test]
    fn what_runs_here_is_told_by_system_and_processor() {
        let host = targets::host().unwrap();
        assert!(runs_here(&host).unwrap());
        assert!(!runs_here("riscv64gc-unknown-none-elf").unwrap());
    }
}
