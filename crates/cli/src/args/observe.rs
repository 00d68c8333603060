//! `observe`: what recording costs.

use super::{EventArgs, OutputArgs};
use asynctriage_diagnostics::Provider;
use clap::Args;
use std::ffi::OsString;
use std::path::PathBuf;

const OBSERVE_EXAMPLES: &str = "\
Examples:
  asynctriage observe --markers My-Markers -- dotnet App.dll 100
  asynctriage observe -n 10 --timer ms --checksum-from checksum --markers My-Markers -- dotnet App.dll
  asynctriage observe --providers System.Runtime.CompilerServices.AsyncProfilerEventSource:0xF:4 -- dotnet App.dll

COMMAND runs once in each mode and round, in fresh processes, in an order by chance in each round, after a round that does \
not count:
  none      no collector
  markers   the provider of --markers is recorded
  profiler  that one and the async profiler (or --providers) are recorded

The program says on its standard output how long the work took, and what came of it, as NAME=VALUE, NAME: VALUE or in \
JSON; the last mention counts:
  elapsed_ms=158.03 checksum=5050
Without a timer of its own it is timed from outside, start and end included. Without a checksum, its standard output is \
compared, apart from the lines with the timer.";

/// Measure what recording costs: a command in fresh processes without and with a collector
#[derive(Debug, Args)]
#[command(after_long_help = OBSERVE_EXAMPLES)]
pub(crate) struct ObserveArgs {
    /// How often each mode runs
    #[arg(short = 'n', long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub(crate) rounds: u32,
    /// The program's own events; without it there is no mode `markers`
    #[arg(long, value_name = "PROVIDER")]
    pub(crate) markers: Option<Provider>,
    /// Name that the program gives its timer, in milliseconds
    #[arg(long, value_name = "NAME", default_value = "elapsed_ms")]
    pub(crate) timer: String,
    /// Name that the program gives its result, or `stdout` for all that it prints
    #[arg(long, value_name = "NAME", default_value = "checksum")]
    pub(crate) checksum_from: String,
    /// Begin the orders by chance with this number, to have those of an experiment again [default: another one each time]
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,
    /// End a process that runs longer, and the experiment with it
    #[arg(long, value_name = "SECONDS", default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub(crate) timeout: u64,
    /// Keep the recordings in DIR, which must not exist yet
    #[arg(long, value_name = "DIR")]
    pub(crate) traces: Option<PathBuf>,
    /// Exit with 5 when the results differ or a run is missing
    #[arg(long)]
    pub(crate) strict: bool,
    #[command(flatten)]
    pub(crate) events: EventArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
    /// The command; one .NET process, not a script around it
    #[arg(value_name = "COMMAND", required = true, last = true)]
    pub(crate) command: Vec<OsString>,
}
