//! The command line of `asynctriage trace`.

use super::{FileArgs, OutputArgs};
use asynctriage_triage::trace::{ExportFormat, MarkerSpec, Stage};
use clap::Args;
use std::path::PathBuf;

const TRACE_EXAMPLES: &str = "\
Examples:
  asynctriage trace hang.nettrace                       what waits, since when, how sure that is
  asynctriage trace hang.nettrace -v                    every frame and record, the file's hash
  asynctriage trace hang.nettrace --dump hang.dmp       joined with a dump of the same process
  asynctriage trace hang.nettrace --timeline hang.html  threads and operations over time
  asynctriage trace hang.nettrace --markers My-Events   the application's own events in order
  asynctriage trace hang.nettrace --markers My-Events --expect begin,1,2,3,end --strict
  asynctriage trace hang.nettrace --export chrome -o hang.json   for ui.perfetto.dev or chrome://tracing
  asynctriage trace hang.nettrace --records             every record with its place in the file
  asynctriage collect --pid 4711 -o hang.nettrace       how to record
  asynctriage runbook trace                             verdicts and flags, what to do about each

Methods have names only where the recording says where their code lies: those compiled while it ran, and all with the \
rundown at its end. Events of modules have no addresses, so files cannot help; with --dump, methods of operations \
that have the same frames in both get the names of the dump.

Exit status:
  0    the report was written
  2    the command line is wrong
  3    the recording or the dump cannot be read
  4    the dump holds no .NET runtime that is supported
  5    --strict was given, and the verdict is not BOUNDED, the process ran before the recording, or the markers are not as
       asked for: no event of the provider, none of an event, or not the stages of --expect";

#[derive(Debug, Args)]
#[command(after_long_help = TRACE_EXAMPLES)]
pub(crate) struct TraceArgs {
    /// The recording: a .nettrace file; .gz and .zst are unpacked
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Check the application's own events: PROVIDER, or PROVIDER:EVENT=STAGE,... where a stage is begin, end, a number or the
    /// name of a field; the first field of each event names the operation
    #[arg(long, value_name = "PROVIDER[:EVENT=STAGE,...]")]
    pub(crate) markers: Option<MarkerSpec>,
    /// The stages that each operation should have, in their order: begin, end or a number each; with --strict anything else
    /// is an error
    #[arg(
        long,
        value_name = "STAGE,...",
        value_delimiter = ',',
        requires = "markers"
    )]
    pub(crate) expect: Vec<Stage>,
    /// Join the recording with a dump of the same process: history of each waiting chain
    #[arg(long, value_name = "DUMP", conflicts_with = "records")]
    pub(crate) dump: Option<PathBuf>,
    /// Look for symbol files of the dump in DIR, too; repeat for more
    #[arg(long, value_name = "DIR", requires = "dump")]
    pub(crate) symbols: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) files: FileArgs,
    /// List every record of the async profiler with its place in the file; as JSON, one object a line
    #[arg(long, conflicts_with_all = ["markers", "limit", "all", "strict"])]
    pub(crate) records: bool,
    /// Draw a time line of threads and operations, too: FILE is one page for a browser that fetches nothing
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with = "records",
        group = "written"
    )]
    pub(crate) timeline: Option<PathBuf>,
    /// Write the recording in the form of another tool instead of a report: chrome (opens in Perfetto), speedscope, or folded
    /// (stacks with microseconds)
    #[arg(
        long,
        value_name = "FORM",
        conflicts_with_all = ["records", "dump", "timeline", "format", "limit", "all", "strict"]
    )]
    pub(crate) export: Option<ExportFormat>,
    /// How many chains of a group are listed one by one
    #[arg(long, value_name = "N", default_value_t = 5)]
    pub(crate) limit: usize,
    /// List everything: all groups, all chains
    #[arg(long, conflicts_with = "limit")]
    pub(crate) all: bool,
    /// Exit with 5 when the verdict is not BOUNDED, chains may wait unseen since before the recording, or markers are not
    /// as asked for
    #[arg(long, help_heading = "Exit status")]
    pub(crate) strict: bool,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}
