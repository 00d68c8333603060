//! `why`, `root` and `find`: questions about one thing.

use super::{FileArgs, OutputArgs};
use asynctriage_report::Address;
use clap::Args;
use std::path::PathBuf;

const WHY_EXAMPLES: &str = "\
Examples:
  asynctriage why hang.dmp C3              a group of chains, by its name in the report
  asynctriage why hang.dmp 7f12000010a0    a box, task, source, lock, semaphore or request
  asynctriage why hang.dmp thread:4711     a thread, by its number in the operating system or in .NET

Each step says what it waits for, or who holds or would complete that, and how sure this is. A branch ends at code that \
runs, at another process, at a time, where it comes back to itself, where nothing is left that could end it, or where \
the dump does not tell.";

#[derive(Debug, Args)]
#[command(after_long_help = WHY_EXAMPLES)]
pub(crate) struct WhyArgs {
    /// The dump
    #[arg(value_name = "DUMP")]
    pub(crate) dump: PathBuf,
    /// An address, the name of a chain (C3), or thread:NUMBER
    #[arg(value_name = "ADDRESS|CHAIN|THREAD")]
    pub(crate) subject: String,
    /// Look for symbol files (portable PDBs) in DIR, too; modules that lie there are taken as with --module-path; repeat for
    /// more
    #[arg(long, value_name = "DIR")]
    pub(crate) symbols: Vec<PathBuf>,
    /// Print texts, messages of exceptions and paths of requests, which may be secrets of the process
    #[arg(long)]
    pub(crate) show_values: bool,
    #[command(flatten)]
    pub(crate) files: FileArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

#[derive(Debug, Args)]
pub(crate) struct RootArgs {
    /// The dump
    #[arg(value_name = "DUMP")]
    pub(crate) dump: PathBuf,
    /// The object: up to 16 hexadecimal digits, with or without 0x
    #[arg(value_name = "ADDRESS")]
    pub(crate) address: Address,
    /// How many ways from roots are shown, and how many from variables of suspended methods
    #[arg(long, value_name = "N", default_value_t = 5)]
    pub(crate) limit: usize,
    #[command(flatten)]
    pub(crate) files: FileArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

#[derive(Debug, Args)]
pub(crate) struct FindArgs {
    /// The dump
    #[arg(value_name = "DUMP")]
    pub(crate) dump: PathBuf,
    /// Texts that contain TEXT, in whatever case
    #[arg(long, value_name = "TEXT")]
    pub(crate) string: String,
    /// What is found is data of the process, which may be secret: say that it may be printed
    #[arg(long, required = true)]
    pub(crate) show_values: bool,
    /// How many are listed
    #[arg(long, value_name = "N", default_value_t = 100)]
    pub(crate) limit: usize,
    /// List them all
    #[arg(long, conflicts_with = "limit")]
    pub(crate) all: bool,
    #[command(flatten)]
    pub(crate) files: FileArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}
