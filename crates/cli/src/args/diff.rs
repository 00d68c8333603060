//! `asynctriage diff`.

use super::{FileArgs, OutputArgs};
use clap::Args;
use std::path::PathBuf;

fn positive(text: &str) -> Result<f64, String> {
    let seconds: f64 = text.parse().map_err(|_| "no number".to_owned())?;
    (seconds.is_finite() && seconds > 0.0)
        .then_some(seconds)
        .ok_or_else(|| "seconds are more than 0".to_owned())
}

const LONG_ABOUT: &str = "\
Say what moved between dumps of one process, and what did not

The first and the last dump are compared chain by chain; those between give their counts. A chain did not move when the \
same objects stand in it at the same awaits on the same thing. Each group, and the process, is stuck, leaking, slow or \
progressing, with rates. Dumps of different processes (two deployments, two machines) are compared by the program's own \
methods, which are equal in other versions of the runtime. Take the dumps a few seconds apart.";

#[derive(Debug, Args)]
#[command(long_about = LONG_ABOUT)]
pub(crate) struct DiffArgs {
    /// Dumps, or their reports as JSON (written with --all), in any order where they tell their time
    #[arg(value_name = "DUMP", required = true, num_args = 2..)]
    pub(crate) dumps: Vec<PathBuf>,
    /// Seconds between the first and the last dump, where you know them: cores state no time, and in a process that hangs
    /// altogether no clock goes
    #[arg(long, value_name = "SECONDS", value_parser = positive)]
    pub(crate) apart: Option<f64>,
    /// List all groups, those of the framework that wait for work, too
    #[arg(long)]
    pub(crate) all: bool,
    #[command(flatten)]
    pub(crate) files: FileArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}
