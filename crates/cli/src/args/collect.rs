//! `collect`: recording a running process.

use asynctriage_diagnostics::Provider;
use clap::Args;
use std::ffi::OsString;
use std::path::PathBuf;

const COLLECT_EXAMPLES: &str = "\
Examples:
  asynctriage collect --pid 4711 -o hang.nettrace --duration 10
  asynctriage collect --pid 4711 -o mine.nettrace --providers My-Markers::4,System.Runtime:1:4
  asynctriage collect -o start.nettrace -- dotnet App.dll 100    from its first instruction
  asynctriage trace hang.nettrace              what the recording says

Without --providers, a process of .NET 11 is asked for its async profiler (runtime-async methods and state machines) and \
for the names of methods that are compiled meanwhile. .NET 8 to 10 have no such profiler: --tpl asks them for the events \
of their tasks, which slow a program down that awaits much (48 times on one that did nothing else).

A recording attached to a process does not show what has waited since before: if the process hangs already, take a dump \
(runbook capture). Threads keep their last records to themselves; at the end they are asked for them and have 1.5 s, and \
`trace` proves states as of the moment of asking.

The recording goes into a new file and ends after --duration, at Ctrl-C, at --max-mb, or with the process. Whatever ends \
it, the file is kept. A second Ctrl-C does not wait for the end of the file. A command goes on when its recording ends \
before it; Ctrl-C on a terminal reaches both.";

/// Record the async events of a running process into a new .nettrace file
#[derive(Debug, Args)]
#[command(after_long_help = COLLECT_EXAMPLES)]
pub(crate) struct CollectArgs {
    /// The process: its number as `ps` shows it here
    #[arg(long, value_name = "PID", required_unless_present = "command")]
    pub(crate) pid: Option<u32>,
    /// The new file; an existing one is never replaced
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: PathBuf,
    /// How long [default: until Ctrl-C]
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub(crate) duration: Option<u64>,
    /// Never write more than so many MiB and the rest of one block; the recording ends a quarter (at most 64 MiB) before,
    /// to leave room for the names of methods
    #[arg(long, value_name = "N", default_value_t = 1024, value_parser = clap::value_parser!(u64).range(1..=1_048_576))]
    pub(crate) max_mb: u64,
    /// Do not let the process list its methods at the end: it takes a second or so, without it most methods have no name
    #[arg(long)]
    pub(crate) no_rundown: bool,
    /// Do not ask the threads for their buffers at the end: up to 16 KB of the last events of each are then missing
    #[arg(long)]
    pub(crate) no_flush: bool,
    /// More detail; twice and three times also what asynctriage does, on the standard error
    #[arg(short, long, action = clap::ArgAction::Count)]
    pub(crate) verbose: u8,
    #[command(flatten)]
    pub(crate) events: EventArgs,
    /// Start this and record it from its first instruction; one .NET process, not a script around it
    #[arg(value_name = "COMMAND", last = true, conflicts_with = "pid")]
    pub(crate) command: Vec<OsString>,
}

/// Which events a process is asked for.
#[derive(Debug, Args)]
#[command(next_help_heading = "Events")]
pub(crate) struct EventArgs {
    /// Ask for these events instead: NAME[:KEYWORDS[:LEVEL[:ARGUMENTS]]], keywords in hexadecimal; repeat for more
    #[arg(long, value_name = "PROVIDER", value_delimiter = ',')]
    pub(crate) providers: Vec<Provider>,
    /// Ask for the events of tasks, for .NET 8 to 10; costly
    #[arg(long, conflicts_with = "providers")]
    pub(crate) tpl: bool,
    /// Buffer in the process, in MiB; events that do not fit are lost and counted
    #[arg(long, value_name = "N", default_value_t = 256, value_parser = clap::value_parser!(u32).range(1..=16_384))]
    pub(crate) buffer_mb: u32,
}
