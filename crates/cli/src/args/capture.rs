//! `asynctriage capture`.

use clap::{Args, ValueEnum};
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  asynctriage capture --pid 4711 -o /dumps/hang.dmp             one heap dump
  asynctriage capture --pid 4711 -o /dumps/hang.dmp --pair 5    a second one, hang.2.dmp, 5 seconds later
  asynctriage diff /dumps/hang.dmp /dumps/hang.2.dmp            what moved between them

The runtime of the process is asked through its diagnostic socket, and its own createdump writes the file, as the user of \
the process. In a container FILE is a path as the process sees it; the report says where it lies from here. The process \
stands still while the file is written.";

/// Ask a running process for a dump of itself
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct CaptureArgs {
    /// The process: its number as `ps` shows it here
    #[arg(long, value_name = "PID")]
    pub(crate) pid: u32,
    /// The new file, an absolute path as the process sees it; an existing one is never replaced
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: PathBuf,
    /// How much of the process
    #[arg(long, value_enum, default_value_t = Kind::Heap)]
    pub(crate) kind: Kind,
    /// Take a second dump so many seconds after the first, for `diff`
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=3600))]
    pub(crate) pair: Option<u64>,
    /// More detail; twice and three times also what asynctriage does, on the standard error
    #[arg(short, long, action = clap::ArgAction::Count)]
    pub(crate) verbose: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Kind {
    /// All memory
    Full,
    /// What an analysis needs
    Heap,
    /// Threads only: no async view
    Mini,
}
