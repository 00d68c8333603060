//! The command line of `asynctriage trace`.

use super::OutputArgs;
use clap::Args;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub(crate) struct TraceArgs {
    /// The recording: a .nettrace file; .gz and .zst are unpacked
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// List every record of the async profiler with its place in the file; as JSON, one object a line
    #[arg(long)]
    pub(crate) records: bool,
    /// How many chains of a group are listed one by one
    #[arg(long, value_name = "N", default_value_t = 5)]
    pub(crate) limit: usize,
    /// List everything: all groups, all chains
    #[arg(long, conflicts_with = "limit")]
    pub(crate) all: bool,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}
