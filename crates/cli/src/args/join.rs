//! `asynctriage join`.

use super::{FileArgs, OutputArgs};
use clap::Args;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub(crate) struct JoinArgs {
    /// Dumps of services that call each other, or their reports as JSON
    #[arg(value_name = "DUMP", required = true, num_args = 1..)]
    pub(crate) dumps: Vec<PathBuf>,
    /// List all requests
    #[arg(long)]
    pub(crate) all: bool,
    #[command(flatten)]
    pub(crate) files: FileArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}
