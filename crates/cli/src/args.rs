//! The command line. This file holds all of it, so that help texts and manual pages come from one place.

mod ask;
mod batch;
mod bounds;
mod capture;
mod collect;
mod diff;
mod export;
mod form;
mod join;
mod mcp;
mod observe;
mod options;
mod schema;
mod suggest;
mod symbols;
mod target;
mod trace;

pub(crate) use ask::{FindArgs, RootArgs, WhyArgs};
pub(crate) use batch::BatchArgs;
pub(crate) use bounds::BoundArgs;
pub(crate) use capture::{CaptureArgs, Kind as CaptureKind};
pub(crate) use collect::{CollectArgs, EventArgs};
pub(crate) use diff::DiffArgs;
pub(crate) use export::{ExportArgs, VerifyArgs};
pub(crate) use form::{DraftForm, Form, Format};
pub(crate) use join::JoinArgs;
pub(crate) use mcp::McpArgs;
pub(crate) use observe::ObserveArgs;
#[cfg(test)]
pub(crate) use options::FailOn;
pub(crate) use options::{Color, FilterArgs, GateArgs, HeapSort, LimitArgs, OutputArgs, Strict};
pub(crate) use schema::SchemaArgs;
pub(crate) use suggest::command_like;
pub(crate) use symbols::{AddArgs, SymbolsAction, SymbolsArgs};
pub(crate) use target::Target;
pub(crate) use trace::TraceArgs;

use clap::{Args, FromArgMatches, Subcommand};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

const EXAMPLES: &str = "\
Examples:
  asynctriage hang.dmp                         what hangs, why, who is affected, what to do
  asynctriage hang.dmp -v                      every frame, address and piece of evidence
  asynctriage hang.dmp --method Checkout       only chains through a method
  asynctriage hang.dmp --leaf semaphore        only chains that wait for semaphores
  asynctriage hang.dmp -o report.json          the whole report for tools
  asynctriage hang.dmp -o report.html          one page for a browser; report.md for a ticket
  asynctriage render report.json -o report.md  a saved report in another form, without the dump
  asynctriage tree hang.dmp                    all chains merged, from the requests inwards
  asynctriage show hang.dmp 7f12000010a0       one object of a chain
  asynctriage why hang.dmp C3                  who would end the wait of a chain, and what those wait for
  asynctriage root hang.dmp 7f12000010a0       what keeps an object alive
  asynctriage postmortem hang.dmp -o pm.md     a draft in which every fact carries its source
  asynctriage export hang.dmp -o evidence/     all of it as files, with hashes and a small dump
  asynctriage verify evidence/                 whether they are still what the dump says
  asynctriage show hang.dmp E17                what an id of a report or draft stands for
  asynctriage join a.dmp b.dmp c.dmp           requests followed through several services
  asynctriage diff a.dmp b.dmp                 what moved in the seconds between, and what did not
  asynctriage batch /dumps -o out              many dumps into tables, and what they have in common
  asynctriage runbook bottleneck               what a finding means and what to do about it
  asynctriage trace hang.nettrace              what waits at the end of a recording (.NET 11)
  asynctriage collect --pid 4711 -o x.nettrace record the async events of a running process
  asynctriage capture --pid 4711 -o /dumps/hang.dmp --pair 5  two dumps for diff
  asynctriage observe -- dotnet App.dll        what recording costs that program
  asynctriage ./tree                           a dump whose name is that of a command
  zstdcat hang.zst | asynctriage -             a dump from a pipe, kept in TMPDIR meanwhile

Exit status:
  0    the report was written
  1    a finding is as severe as --fail-on says, or more; something that verify checks does not hold
  2    the command line is wrong
  3    the input cannot be read or is not a dump
  4    the dump holds no .NET runtime that is supported
  5    the report is incomplete and --strict was given, or a recording broke off
  6    the report could not be written
  7    --max-time or --max-memory ended the analysis: the report is partial, its gaps tell what is missing
  70   an error in asynctriage itself
  130  interrupted; a first Ctrl-C still gives a partial report";

const ABOUT: &str = "Says which requests of a hung .NET process wait on which awaits";

const LONG_ABOUT: &str = "\
Says which requests of a hung .NET process wait on which awaits

Opens a dump of a .NET 8 to 11 process and prints the async chains that wait in it: from the innermost wait through \
every await to the request, job or thread they belong to. Needs no SDK, no debugger, no symbols and no network.";

/// What the command line asks for.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// The report; what a command line without a command means.
    #[command(skip)]
    Triage(ReportArgs),
    /// Merge all chains into one tree, from their roots inwards
    Tree(ReportArgs),
    /// List the threads: what each waits for and holds, and its stack
    Threads(ThreadsArgs),
    /// List the requests that are being served
    Requests(ReportArgs),
    /// Show the thread pool and what is queued for it
    Queue(ReportArgs),
    /// List the locks that threads hold or wait for
    Locks(ReportArgs),
    /// Say why the process ended: exceptions, what failed before, and the chains around them
    Crash(ReportArgs),
    /// Say what keeps memory alive: chains by what they retain, queues, finished methods
    Oom(ReportArgs),
    /// Draft a postmortem in which every fact carries the id of what proves it
    Postmortem(PostmortemArgs),
    /// Keep a dump or recording as evidence: report, postmortem, tables, bytes behind each statement, a small dump
    Export(ExportArgs),
    /// Check such evidence: hash every file, make every report again
    Verify(VerifyArgs),
    /// Write a small dump that gives the same report; it still holds texts of the process
    Trim(TrimArgs),
    /// List async methods and tasks one by one
    Tasks(TasksArgs),
    /// Count the objects of the heap by type
    Heap(HeapArgs),
    /// Show one object: its fields or elements, what refers to it; or what an id of the report stands for
    Show(ShowArgs),
    /// Tell why something waits: who would end its wait, what those wait for, and so on
    Why(WhyArgs),
    /// Show what keeps an object alive: the shortest ways from statics, handles, stacks and suspended methods
    Root(RootArgs),
    /// Find texts on the heap
    Find(FindArgs),
    /// Render a report that was saved as JSON, without its dump
    Render(RenderArgs),
    /// Follow requests through several services: dumps of one incident as one picture
    Join(JoinArgs),
    /// Say what moved between dumps of one process, and what did not; also of two deployments
    Diff(DiffArgs),
    /// Read many dumps into tables for queries, and say what they have in common
    Batch(BatchArgs),
    /// List the runtimes that can be read, and on what evidence
    Runtimes(RuntimesArgs),
    /// Print a page of the runbook: what a finding means, how sure it is, what to do; without a name the list
    Runbook(RunbookArgs),
    /// Answer agents and editors over the Model Context Protocol, on the standard input and output
    Mcp(McpArgs),
    /// Print the JSON schema of a kind of document; without a name the list of kinds
    Schema(SchemaArgs),
    /// Learn from a runtime's files what the dumps of its processes lack
    Symbols(SymbolsArgs),
    /// Say what waits at the end of a recording of the async profiler (.NET 11), and how far that can be relied on
    Trace(TraceArgs),
    /// Record the async events of a running process into a new .nettrace file
    Collect(CollectArgs),
    /// Ask a running process for a dump of itself, or two in a row
    Capture(CaptureArgs),
    /// Measure what recording costs: a command in fresh processes without and with a collector
    Observe(ObserveArgs),
}

impl Command {
    /// The definition of the whole command line.
    pub(crate) fn definition() -> clap::Command {
        let definition = clap::Command::new("asynctriage")
            .version(env!("CARGO_PKG_VERSION"))
            .arg_required_else_help(true)
            .args_conflicts_with_subcommands(true)
            .subcommand_negates_reqs(true)
            .max_term_width(100);
        Self::augment_subcommands(ReportArgs::augment_args(definition))
            .subcommand_required(false)
            .about(ABOUT)
            .long_about(LONG_ABOUT)
            .after_help("--help shows examples and the exit status.")
            .after_long_help(EXAMPLES)
    }

    /// The command line of this process; an error may also be a request for help.
    pub(crate) fn from_command_line() -> Result<Self, clap::Error> {
        let matches = Self::definition().try_get_matches_from(several(std::env::args_os()));
        let matches = matches.map_err(|e| suggest::better(e, std::env::args_os().skip(1)))?;
        if matches.subcommand_name().is_some() {
            Self::from_arg_matches(&matches)
        } else {
            ReportArgs::from_arg_matches(&matches).map(Self::Triage)
        }
    }

    /// How much detail; what all commands have.
    pub(crate) fn verbose(&self) -> u8 {
        let output = match self {
            Self::Triage(args)
            | Self::Tree(args)
            | Self::Requests(args)
            | Self::Queue(args)
            | Self::Locks(args)
            | Self::Crash(args)
            | Self::Oom(args) => return args.output.verbose,
            Self::Threads(args) => return args.report.output.verbose,
            Self::Postmortem(args) => return args.output.verbose,
            Self::Trim(_) | Self::Export(_) => return 0,
            Self::Verify(args) => &args.output,
            Self::Render(args) => return args.output.verbose,
            Self::Tasks(args) => &args.output,
            Self::Heap(args) => &args.output,
            Self::Show(args) => &args.output,
            Self::Why(args) => &args.output,
            Self::Root(args) => &args.output,
            Self::Find(args) => &args.output,
            Self::Join(args) => &args.output,
            Self::Diff(args) => &args.output,
            Self::Runtimes(args) => &args.output,
            Self::Runbook(args) => &args.output,
            Self::Schema(args) => &args.output,
            Self::Trace(args) => &args.output,
            Self::Observe(args) => &args.output,
            Self::Symbols(_) | Self::Mcp(_) => return 0,
            Self::Collect(args) => return args.verbose,
            Self::Capture(args) => return args.verbose,
            Self::Batch(args) => return args.verbose,
        };
        output.verbose
    }
}

/// Two files without a command are compared.
fn several(args: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let mut args: Vec<OsString> = args.collect();
    let is_file = |at: usize| args.get(at).is_some_and(|a| Path::new(a).is_file());
    let is_command = |name: &OsString| {
        let commands = Command::definition();
        name.to_str()
            .is_some_and(|n| commands.find_subcommand(n).is_some())
    };
    if is_file(1) && is_file(2) && !args.get(1).is_some_and(is_command) {
        args.insert(1, "diff".into());
    }
    args
}

/// What to analyse and what of it to report.
#[derive(Clone, Debug, Args)]
pub(crate) struct ReportArgs {
    /// The dump: an ELF core by createdump, gcore or the kernel, or a minidump; .gz and .zst are unpacked; - reads it
    /// from the standard input
    #[arg(value_name = "DUMP")]
    pub(crate) dump: PathBuf,
    /// Say how long each phase took
    #[arg(long)]
    pub(crate) timings: bool,
    /// Look for symbol files (portable PDBs) in DIR, too: side by side or as a symbol store; repeat for more. Modules that
    /// lie there are taken as with --module-path. Also files that `asynctriage symbols add --into` made
    #[arg(long, value_name = "DIR")]
    pub(crate) symbols: Vec<PathBuf>,
    /// Show what each waiting method keeps: its parameters and locals, and how many bytes live only because of them
    #[arg(long)]
    pub(crate) locals: bool,
    /// Print texts, messages of exceptions and paths of requests, which may be secrets of the process
    #[arg(long)]
    pub(crate) show_values: bool,
    #[command(flatten)]
    pub(crate) files: FileArgs,
    #[command(flatten)]
    pub(crate) filters: FilterArgs,
    #[command(flatten)]
    pub(crate) limits: LimitArgs,
    #[command(flatten)]
    pub(crate) gates: GateArgs,
    /// The short form for bots: JSON of less than 8 KB with the verdict, the findings and the first groups
    #[arg(long, conflicts_with = "format", help_heading = "Output")]
    pub(crate) brief: bool,
    #[command(flatten)]
    pub(crate) output: OutputArgs<Form>,
}

/// The report, for `threads`.
#[derive(Debug, Args)]
pub(crate) struct ThreadsArgs {
    #[command(flatten)]
    pub(crate) report: ReportArgs,
    /// Merge the stacks of all threads into one tree, from their outermost frames inwards, with how many threads go through
    /// each
    #[arg(long, conflicts_with = "brief")]
    pub(crate) merged: bool,
}

/// Files that complete what a dump lacks; each is used only when its identity is that of the dumped module.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Files")]
pub(crate) struct FileArgs {
    /// Take modules that the dump lacks from DIR (an application's or runtime's folder), and the names of native functions
    /// that are not exported; repeat for more
    #[arg(long, value_name = "DIR")]
    pub(crate) module_path: Vec<PathBuf>,
    /// Take modules that the dump lacks from below DIR, at the paths they had; repeat for more
    #[arg(long, value_name = "DIR")]
    pub(crate) sysroot: Vec<PathBuf>,
    /// Open no file at a path that the dump names: neither modules where the process had them, as is done for cores of gdb
    /// and the kernel, nor symbols beside them
    #[arg(long)]
    pub(crate) no_mapped_files: bool,
    #[command(flatten)]
    pub(crate) bounds: BoundArgs,
}

impl FileArgs {
    /// Whether nothing was said about files.
    pub(crate) fn is_empty(&self) -> bool {
        self.module_path.is_empty() && self.sysroot.is_empty() && !self.no_mapped_files
    }
}

#[derive(Debug, Args)]
pub(crate) struct TasksArgs {
    /// The dump
    #[arg(value_name = "DUMP")]
    pub(crate) dump: PathBuf,
    /// List finished tasks, too
    #[arg(long)]
    pub(crate) completed: bool,
    /// How many tasks are listed
    #[arg(long, value_name = "N", default_value_t = 100)]
    pub(crate) limit: usize,
    /// List all tasks
    #[arg(long, conflicts_with = "limit")]
    pub(crate) all: bool,
    #[command(flatten)]
    pub(crate) filters: FilterArgs,
    #[command(flatten)]
    pub(crate) files: FileArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

#[derive(Debug, Args)]
pub(crate) struct HeapArgs {
    /// The dump
    #[arg(value_name = "DUMP")]
    pub(crate) dump: PathBuf,
    /// Only types whose name contains TEXT, in whatever case; repeat for more
    #[arg(long = "type", value_name = "TEXT")]
    pub(crate) types: Vec<String>,
    /// List the objects of these types one by one
    #[arg(long, requires = "types")]
    pub(crate) objects: bool,
    /// Print texts; they may be secrets of the process
    #[arg(long, requires = "objects")]
    pub(crate) show_values: bool,
    /// What comes first
    #[arg(long, value_enum, default_value_t = HeapSort::Bytes)]
    pub(crate) sort: HeapSort,
    /// How many types are listed
    #[arg(long, value_name = "N", default_value_t = 50)]
    pub(crate) limit: usize,
    /// List all types
    #[arg(long, conflicts_with = "limit")]
    pub(crate) all: bool,
    #[command(flatten)]
    pub(crate) files: FileArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// What to draft a postmortem of.
#[derive(Debug, Args)]
pub(crate) struct PostmortemArgs {
    /// The dump, or a report that was saved as JSON
    #[arg(value_name = "DUMP")]
    pub(crate) dump: PathBuf,
    /// Look for symbol files (portable PDBs) in DIR, too; repeat for more
    #[arg(long, value_name = "DIR")]
    pub(crate) symbols: Vec<PathBuf>,
    /// Print texts, messages of exceptions and paths of requests, which may be secrets of the process
    #[arg(long)]
    pub(crate) show_values: bool,
    #[command(flatten)]
    pub(crate) files: FileArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs<DraftForm>,
}

/// What to trim, and into what.
#[derive(Debug, Args)]
pub(crate) struct TrimArgs {
    /// The dump: an ELF core, or a full minidump
    #[arg(value_name = "DUMP")]
    pub(crate) dump: PathBuf,
    /// The new dump, readable by you alone; packed when its name ends with .gz. It holds the memory that reports read, in
    /// lines of 64 bytes. Texts of the process that were read, or that lie beside what was read, are in it: it is as secret
    /// as the dump
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: PathBuf,
    /// Replace an existing FILE; never the dump
    #[arg(long)]
    pub(crate) force: bool,
    #[command(flatten)]
    pub(crate) bounds: BoundArgs,
}

#[derive(Debug, Args)]
pub(crate) struct ShowArgs {
    /// The dump; for ids also a report that was saved as JSON
    #[arg(value_name = "DUMP")]
    pub(crate) dump: PathBuf,
    /// The object: up to 16 hexadecimal digits, with or without 0x; or an id of the report or the postmortem: a finding F2,
    /// a piece of evidence E17, chains C3, one chain C3.1, a request R4, a thread T4711, a node of the wait-for graph W5, a
    /// gap G1, the dump D1, the thread pool P1, the heap H1
    #[arg(value_name = "ADDRESS|ID")]
    pub(crate) target: Target,
    /// How many fields, elements and references are listed
    #[arg(long, value_name = "N", default_value_t = 100)]
    pub(crate) limit: usize,
    /// List them all; chains have the ids of a report that was made with --all
    #[arg(long, conflicts_with = "limit")]
    pub(crate) all: bool,
    /// Print texts, characters and bytes; they may be secrets of the process
    #[arg(long)]
    pub(crate) show_values: bool,
    #[command(flatten)]
    pub(crate) files: FileArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// What to render, and as what.
#[derive(Debug, Args)]
pub(crate) struct RenderArgs {
    /// A report that was saved with --format json or -o FILE.json
    #[arg(value_name = "REPORT")]
    pub(crate) report: PathBuf,
    /// Show everything that the report holds
    #[arg(long, help_heading = "Amount")]
    pub(crate) all: bool,
    /// The short form for bots: JSON of less than 8 KB with the verdict, the findings and the first groups
    #[arg(long, conflicts_with = "format", help_heading = "Output")]
    pub(crate) brief: bool,
    #[command(flatten)]
    pub(crate) output: OutputArgs<Form>,
}

#[derive(Debug, Args)]
pub(crate) struct RuntimesArgs {
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// Which page to print.
#[derive(Debug, Args)]
pub(crate) struct RunbookArgs {
    /// The page: the name that findings give, or hang, crash, oom or capture
    #[arg(value_name = "NAME")]
    pub(crate) name: Option<String>,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}
