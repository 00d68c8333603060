//! The command line of `mcp`.

use super::FileArgs;
use clap::Args;
use std::path::PathBuf;

const ABOUT: &str = "\
A client starts the program and talks to it over its standard input and output, as the Model Context Protocol says:

  { \"command\": \"asynctriage\", \"args\": [\"mcp\", \"--root\", \"/dumps\"] }

Tools: triage (verdict and findings), chains, threads, why, show. Each takes the path of a dump and answers briefly; what \
an answer leaves out is counted in it. Nothing is written and nothing is run. --max-time and --max-memory do not \
apply: a client that has waited enough ends the program.";

/// What agents may ask about.
#[derive(Debug, Args)]
#[command(after_long_help = ABOUT)]
pub(crate) struct McpArgs {
    /// Open only dumps below DIR, links followed; repeat for more [default: any file that you may read]
    #[arg(long, value_name = "DIR")]
    pub(crate) root: Vec<PathBuf>,
    /// The longest answer, in characters
    #[arg(long, value_name = "N", default_value_t = 8_000)]
    pub(crate) max_chars: usize,
    /// Look for symbol files (portable PDBs) in DIR, too; repeat for more
    #[arg(long, value_name = "DIR")]
    pub(crate) symbols: Vec<PathBuf>,
    /// Answer with texts, messages of exceptions and paths of requests, which may be secrets of the process
    #[arg(long)]
    pub(crate) show_values: bool,
    #[command(flatten)]
    pub(crate) files: FileArgs,
}
