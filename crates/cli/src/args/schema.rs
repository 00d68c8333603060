//! The command line of `schema`.

use super::OutputArgs;
use clap::Args;

/// Which schema to print.
#[derive(Debug, Args)]
pub(crate) struct SchemaArgs {
    /// The kind of document, as its `kind` says: report, brief, diff, ...
    #[arg(value_name = "KIND", conflicts_with = "named")]
    pub(crate) kind: Option<String>,
    /// The same
    #[arg(long = "kind", value_name = "KIND", hide = true)]
    pub(crate) named: Option<String>,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}
