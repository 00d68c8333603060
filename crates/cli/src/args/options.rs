//! Options that several commands share.

use super::{Form, Format};
use asynctriage_report::Severity;
use clap::{ArgGroup, Args, ValueEnum};
use std::path::PathBuf;

/// A chain is kept when it passes each kind of filter that is given; within one kind, one match is enough.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Filters")]
pub(crate) struct FilterArgs {
    /// Keep what has a frame whose raw type name contains TEXT, in whatever case; repeat for more. Findings, requests and
    /// threads go with the chains that they belong to
    #[arg(long = "type", value_name = "TEXT")]
    pub(crate) types: Vec<String>,
    /// Keep what has a frame whose method contains TEXT, in whatever case; repeat for more
    #[arg(long = "method", value_name = "TEXT")]
    pub(crate) methods: Vec<String>,
    /// Keep what waits for something with TEXT in its kind or its description, in whatever case; repeat for more
    #[arg(long = "leaf", value_name = "TEXT")]
    pub(crate) leaves: Vec<String>,
}

#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Amount")]
pub(crate) struct LimitArgs {
    /// How many chains of a group are listed by address
    #[arg(long, value_name = "N", default_value_t = 5)]
    pub(crate) limit: usize,
    /// List everything: all groups, all chains, those of the framework that wait for work, too
    #[arg(long, conflicts_with = "limit")]
    pub(crate) all: bool,
}

/// What a script wants to know.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Exit status")]
pub(crate) struct GateArgs {
    /// Exit with 1 when a finding is as severe as this, or more
    #[arg(long, value_name = "SEVERITY", value_enum)]
    pub(crate) fail_on: Option<FailOn>,
    /// Exit with 5 when something could not be read: anything, or with `content` only what waits, blocks or is found
    /// rather than names and lines
    #[arg(long, value_name = "LEVEL", value_enum, num_args = 0..=1, require_equals = true, default_missing_value = "all")]
    pub(crate) strict: Option<Strict>,
}

/// Forms are those that the answer of a command can have.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Output", group = ArgGroup::new("written").multiple(true))]
pub(crate) struct OutputArgs<F: ValueEnum + Clone + Send + Sync + 'static = Format> {
    /// Form of the output [default: by the extension of FILE, else text]
    #[arg(long, value_enum)]
    pub(crate) format: Option<F>,
    /// Write to FILE, readable by you alone, instead of the standard output; an existing file is kept
    #[arg(short, long, value_name = "FILE", group = "written")]
    pub(crate) output: Option<PathBuf>,
    /// Replace an existing FILE; never the dump
    #[arg(long, requires = "written")]
    pub(crate) force: bool,
    /// More detail; twice and three times also what asynctriage does, on the standard error
    #[arg(short, long, action = clap::ArgAction::Count)]
    pub(crate) verbose: u8,
    /// Columns of a line [default: those of the terminal, or 100]
    #[arg(long, value_name = "COLUMNS")]
    pub(crate) width: Option<usize>,
    /// Colours; auto means on a terminal and without NO_COLOR
    #[arg(long, value_enum, default_value_t = Color::Auto)]
    pub(crate) color: Color,
    /// Print nothing but ASCII
    #[arg(long)]
    pub(crate) ascii: bool,
    /// Print long text at once; on a terminal it is otherwise given to $PAGER, or less
    #[arg(long)]
    pub(crate) no_pager: bool,
}

impl<F: ValueEnum + Clone + Send + Sync + 'static + Into<Form>> OutputArgs<F> {
    /// The form that was asked for, or that the file's name asks for where the command has it.
    pub(crate) fn form(&self) -> Form {
        let by_name = || {
            let form = Form::of(self.output.as_deref()?)?;
            let known = F::value_variants().iter();
            known.cloned().map(Into::into).find(|f| *f == form)
        };
        let asked = self.format.clone().map(Into::into);
        asked.or_else(by_name).unwrap_or(Form::Text)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Color {
    Auto,
    Always,
    Never,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum HeapSort {
    /// The most bytes
    Bytes,
    /// The most objects
    Count,
}

/// What must be whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Strict {
    /// Everything, names and lines included
    All,
    /// What waits, blocks or is found
    Content,
}

/// [`Severity`] as a word of the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum FailOn {
    Info,
    Warning,
    Critical,
}

impl From<FailOn> for Severity {
    fn from(word: FailOn) -> Self {
        match word {
            FailOn::Info => Self::Info,
            FailOn::Warning => Self::Warning,
            FailOn::Critical => Self::Critical,
        }
    }
}
