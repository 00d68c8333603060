//! `asynctriage`: reads a dump of a hung .NET process and says which request waits on which await.
//!
//! The program is this library's [`main`], so that manual pages and completions are made from the [`definition`] of its
//! command line without the program having to carry what makes them.

mod args;
mod ask;
mod batch;
mod bundle;
mod capture;
mod collect;
mod commands;
mod diff;
mod digest;
mod errors;
mod exit;
mod export;
mod filter;
mod folders;
mod forms;
mod interrupt;
mod join;
mod limits;
mod mcp;
mod new_file;
mod observe;
mod output;
mod progress;
mod recipe;
mod runbook;
mod saved;
mod schema;
mod symbols;
mod trace;
mod trim;
mod verify;

use args::Command;
use asynctriage_report::{Part, printable};
use errors::CliError;
use exit::Exit;
use std::io::Write;
use std::panic::{AssertUnwindSafe, PanicHookInfo, catch_unwind};
use std::process::ExitCode;
use tracing::level_filters::LevelFilter;

/// The program: what the command line of this process asks for.
pub fn main() -> ExitCode {
    std::panic::set_hook(Box::new(report_panic));
    let exit = catch_unwind(AssertUnwindSafe(run)).unwrap_or(Exit::Internal);
    ExitCode::from(exit)
}

/// All of the command line, as clap knows it.
pub fn definition() -> clap::Command {
    Command::definition()
}

fn run() -> Exit {
    let command = match Command::from_command_line() {
        Ok(command) => command,
        Err(error) => {
            // nobody hears of an error when the stream for it is closed
            let _ = error.print();
            return if error.use_stderr() {
                Exit::Usage
            } else {
                Exit::Written
            };
        }
    };
    log(command.verbose());
    let exit = dispatch(&command).unwrap_or_else(|error| {
        complain(&error.render());
        error.exit
    });
    if let Some(note) = limits::note() {
        complain(note);
    }
    limits::exit(exit)
}

fn dispatch(command: &Command) -> Result<Exit, CliError> {
    match command {
        Command::Triage(args) => commands::triage(args),
        Command::Tree(args) => commands::tree(args),
        Command::Threads(args) => commands::threads(args),
        Command::Requests(args) => commands::part(args, Part::Requests),
        Command::Queue(args) => commands::part(args, Part::Queue),
        Command::Locks(args) => commands::part(args, Part::Locks),
        Command::Crash(args) => commands::part(args, Part::Crash),
        Command::Oom(args) => commands::oom(args),
        Command::Postmortem(args) => commands::postmortem(args),
        Command::Export(args) => export::export(args),
        Command::Verify(args) => verify::verify(args),
        Command::Trim(args) => trim::trim(args),
        Command::Tasks(args) => commands::tasks(args),
        Command::Heap(args) if args.objects => ask::objects(args),
        Command::Heap(args) => commands::heap(args),
        Command::Show(args) => commands::show(args),
        Command::Why(args) => ask::why(args),
        Command::Root(args) => ask::root(args),
        Command::Find(args) => ask::find(args),
        Command::Render(args) => forms::render(args),
        Command::Join(args) => join::join(args),
        Command::Diff(args) => diff::diff(args),
        Command::Batch(args) => batch::batch(args),
        Command::Runtimes(args) => commands::runtimes(args),
        Command::Runbook(args) => runbook::runbook(args),
        Command::Mcp(args) => mcp::mcp(args),
        Command::Schema(args) => schema::schema(args),
        Command::Symbols(args) => symbols::symbols(args),
        Command::Trace(args) => trace::trace(args),
        Command::Capture(args) => capture::capture(args),
        Command::Collect(args) => collect::collect(args),
        Command::Observe(args) => observe::observe(args),
    }
}

/// The log that `-vv` asks for.
fn log(verbose: u8) {
    let level = match verbose {
        0 | 1 => LevelFilter::OFF,
        2 => LevelFilter::INFO,
        _ => LevelFilter::DEBUG,
    };
    tracing_subscriber::fmt()
        .with_max_level(level)
        .with_writer(std::io::stderr)
        .with_ansi(false)
        .init();
}

/// Says that the program is at fault, not the dump and not the user.
fn report_panic(info: &PanicHookInfo<'_>) {
    let place = info
        .location()
        .map(|l| format!("{}:{}", l.file(), l.line()))
        .unwrap_or_default();
    let what = info.payload_as_str().unwrap_or("no message");
    complain(&format!(
        "error: asynctriage {} failed at {place}: {}\n  next: report these lines with the command line and the version of .NET in the dump; \
         the dump itself is not needed, it may hold secrets\n",
        env!("CARGO_PKG_VERSION"),
        printable(what)
    ));
}

fn complain(text: &str) {
    // there is no place left to say that the standard error is closed
    let _ = std::io::stderr().write_all(text.as_bytes());
}
