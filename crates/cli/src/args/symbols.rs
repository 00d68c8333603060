//! The command line of `asynctriage symbols`.

use clap::{Args, Subcommand};
use std::path::PathBuf;

#[derive(Debug, Args)]
pub(crate) struct SymbolsArgs {
    #[command(subcommand)]
    pub(crate) action: SymbolsAction,
}

#[derive(Debug, Subcommand)]
pub(crate) enum SymbolsAction {
    /// Learn the suspension points of a runtime's assemblies, which heap dumps of .NET 11 lack
    Add(AddArgs),
    /// List the assemblies whose suspension points were learnt
    List,
}

#[derive(Debug, Args)]
pub(crate) struct AddArgs {
    /// A folder of assemblies, as shared/Microsoft.NETCore.App/11.0.1 of the machine that the dump is from
    #[arg(value_name = "DIR")]
    pub(crate) folder: PathBuf,
    /// Write one new FILE, to be given with --symbols, instead of the user's data folder
    #[arg(long, value_name = "FILE")]
    pub(crate) into: Option<PathBuf>,
}
