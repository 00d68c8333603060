//! The list of names of System.Private.CoreLib, from dumps that hold its metadata.

use crate::shell::root;
use anyhow::{Context, Result, bail};
use asynctriage_clr::{CoreLibBuild, Runtime, pack_core_names};
use asynctriage_dump::{Arch, Dump, OpenOptions, Os};
use std::path::Path;

const FILE: &str = "crates/clr/tables/core-names.bin";

pub(crate) fn run(args: &[String]) -> Result<()> {
    if args.is_empty() {
        bail!("usage: cargo xtask core-names DUMP... (dumps with metadata, one for each build)")
    }
    let mut builds = Vec::new();
    for dump in args {
        let build = of_dump(Path::new(dump)).with_context(|| dump.clone())?;
        println!(
            "{}: {:?} types, methods, fields",
            build.label,
            build.counts()
        );
        builds.push(build);
    }
    let packed = pack_core_names(&builds)?;
    println!("{} builds, {} bytes", builds.len(), packed.len());
    std::fs::write(root().join(FILE), packed).with_context(|| FILE.to_owned())
}

fn of_dump(path: &Path) -> Result<CoreLibBuild> {
    let dump = Dump::open(path, &OpenOptions::default())?;
    let runtime = Runtime::open(&dump)?;
    let os = match dump.target.os {
        Os::Linux => "linux",
        Os::Windows => "windows",
    };
    let arch = match dump.target.arch {
        Arch::X64 => "x64",
        Arch::Arm64 => "arm64",
    };
    let version = runtime.version.context("a runtime without a version")?;
    let label = format!("{version} {os}-{arch}");
    let core_lib = runtime.core_lib();
    let metadata = core_lib
        .metadata
        .as_ref()
        .context("a dump without CoreLib's metadata")?;
    CoreLibBuild::read(metadata, &label).context("metadata that is not whole")
}
