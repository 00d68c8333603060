//! The command line of `asynctriage export` and `asynctriage verify`.

use super::{FileArgs, OutputArgs};
use clap::Args;
use std::path::PathBuf;

const EXPORT_ABOUT: &str = "\
Keep a dump or recording as evidence that checks itself

Of a dump: the report as JSON, HTML, Markdown and text, the postmortem, tables as CSV, and claims.json: for each statement \
the addresses, the bytes there, how they were decoded, and the SOS command that shows the same. With it goes a trimmed dump of \
which `asynctriage verify` makes all of this again. That dump is as secret as the whole one: \
leave it out of what you pass on, or pass on report files alone. Of a recording: the report, every record, the hash of each batch, and \
the recording itself.

manifest.json says what was made of what; SHA256SUMS has the hash of each file (`sha256sum -c` knows its form). The hash of \
SHA256SUMS is printed: note it elsewhere, and `verify --seal` tells whether the bundle is still this one.";

const VERIFY_ABOUT: &str = "\
Check a bundle that `asynctriage export` made

Hashes every file, makes all reports again from the trimmed dump or the recording in the bundle, compares them byte by byte, and \
does the same with the whole dump where it is given.

Exit status:
  0    all that was checked holds
  1    something does not hold
  2    the command line is wrong
  3    the bundle, or the dump that was given, cannot be read
  6    the answer could not be written";

/// What to keep, and where.
#[derive(Debug, Args)]
#[command(long_about = EXPORT_ABOUT)]
pub(crate) struct ExportArgs {
    /// The dump, or a recording (.nettrace)
    #[arg(value_name = "FILE")]
    pub(crate) input: PathBuf,
    /// A new folder, or an archive where the name ends with .tar, .tar.gz or .tar.zst; for you alone to read
    #[arg(short, long, value_name = "FOLDER|ARCHIVE")]
    pub(crate) output: PathBuf,
    /// Replace an existing archive; never the dump, never a folder
    #[arg(long)]
    pub(crate) force: bool,
    /// Chains of the framework that wait for work, too
    #[arg(long)]
    pub(crate) all: bool,
    /// What each waiting method keeps: its parameters and locals
    #[arg(long)]
    pub(crate) locals: bool,
    /// Texts, messages of exceptions and paths of requests, which may be secrets of the process
    #[arg(long)]
    pub(crate) show_values: bool,
    /// Look for symbol files (portable PDBs) in DIR, too; repeat for more. Those in use are copied into the bundle
    #[arg(long, value_name = "DIR")]
    pub(crate) symbols: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) files: FileArgs,
}

/// What to check.
#[derive(Debug, Args)]
#[command(long_about = VERIFY_ABOUT)]
pub(crate) struct VerifyArgs {
    /// The folder or archive
    #[arg(value_name = "BUNDLE")]
    pub(crate) bundle: PathBuf,
    /// The dump or recording that it was made of
    #[arg(long, value_name = "FILE")]
    pub(crate) dump: Option<PathBuf>,
    /// The hash that `export` printed
    #[arg(long, value_name = "SHA256")]
    pub(crate) seal: Option<String>,
    #[command(flatten)]
    pub(crate) files: FileArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}
