//! Records the events of a process into a new file.

mod child;
mod copy;
mod flush;
mod said;
mod session;

use crate::args::CollectArgs;
use crate::errors::CliError;
use crate::exit::Exit;
use crate::interrupt::on_interrupt;
use crate::new_file::create;
use crate::observe::own_folder;
use crate::progress::Progress;
use crate::recipe;
use asynctriage_diagnostics::{Client, Error, ProcessInfo, SessionConfig};
use child::Started;
use copy::{Copied, Copy, Limits};
use session::Session;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};
use tempfile::TempDir;

pub(crate) use copy::pump;

/// How long a process may take to answer a command.
const ANSWER: Duration = Duration::from_secs(10);

/// Why a recording ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ending {
    Duration,
    Interrupted,
    Full,
    ProcessEnded,
    /// The file could not be written, or the stream broke.
    Failed,
}

/// What happens while a recording runs.
#[derive(Debug)]
enum Event {
    Interrupt,
    /// The file comes near its limit.
    Full,
    /// The stream is over, or the file is full, or cannot be written.
    Copied(io::Result<Copied>),
    /// The answer to the command that ends the session.
    Stopped(Result<(), Error>),
}

/// How a recording went.
#[derive(Debug)]
struct Outcome {
    ending: Ending,
    bytes: u64,
    /// Whether the threads were asked for their buffers.
    handed_over: bool,
    /// Why they were not.
    refused: Option<String>,
    /// Why the end of the file may be missing.
    cut: Option<String>,
}

/// The process that is recorded.
struct Target {
    client: Client,
    info: ProcessInfo,
    pid: u32,
    /// When it is a command of our own, with the folder of the socket that it connects to.
    command: Option<(Started, TempDir)>,
}

impl Target {
    fn of(args: &CollectArgs) -> Result<Self, CliError> {
        if let Some(pid) = args.pid {
            let (client, info) = Client::of_process(pid, ANSWER).map_err(refused)?;
            return Ok(Self {
                client,
                info,
                pid,
                command: None,
            });
        }
        let folder = own_folder().map_err(|e| {
            CliError::new(
                Exit::Usage,
                "cannot make a folder for the command's socket",
                "set TMPDIR to a folder that you may write to",
            )
            .because(e)
        })?;
        let (started, client, info) = Started::new(&args.command, folder.path())?;
        Ok(Self {
            client,
            info,
            pid: started.pid(),
            command: Some((started, folder)),
        })
    }

    /// A command does not outlive what was to be recorded of it.
    fn give_up(self, error: CliError) -> CliError {
        if let Some((started, _folder)) = self.command {
            started.kill();
        }
        error
    }
}

/// Records until one of the ends is reached.
pub(crate) fn collect(args: &CollectArgs) -> Result<Exit, CliError> {
    if fs::symlink_metadata(&args.output).is_ok() {
        return Err(exists(&args.output));
    }
    let target = Target::of(args)?;
    let recipe = match recipe::choose(&args.events, target.info.major()) {
        Ok(recipe) => recipe,
        Err(error) => return Err(target.give_up(error)),
    };
    let config = SessionConfig {
        buffer_mb: args.events.buffer_mb,
        rundown: !args.no_rundown,
        stacks: false,
        providers: recipe.providers(),
    };
    let (file, recording) = match begin(args, &target.client, &config) {
        Ok(begun) => begun,
        Err(error) => return Err(target.give_up(error)),
    };
    let text = said::opening(args, &target, &recipe, &recording);
    say(&mut io::stderr(), &text);
    let progress = Progress::start("recording");
    let (send, events) = channel();
    let interrupts = send.clone();
    // nobody listens when the recording is over
    on_interrupt(move || drop(interrupts.send(Event::Interrupt)))?;
    let Target {
        client,
        pid,
        mut command,
        ..
    } = target;
    if command.is_some() {
        client.resume().map_err(refused)?;
    }
    let session = Session {
        client: Arc::new(client),
        id: recording.id,
        copy: Copy::start(
            recording.events,
            file,
            Limits::of(args.max_mb),
            send.clone(),
        ),
        events,
        send,
        start: Instant::now(),
    };
    let start = session.start;
    let outcome = session.run(args, &recipe);
    drop(progress);
    let outcome = outcome?;
    let lasted = start.elapsed();
    let goes_on = command
        .as_mut()
        .is_some_and(|(started, _)| started.goes_on(outcome.ending == Ending::ProcessEnded));
    let goes_on = goes_on.then_some(pid);
    let empty = recipe.buffered && said::is_empty(&args.output);
    let text = said::closing(args, &outcome, lasted, goes_on, empty);
    say(&mut io::stdout(), &text);
    Ok(match outcome.ending {
        Ending::Failed => Exit::Incomplete,
        _ => Exit::Written,
    })
}

/// The new file, and the session that fills it.
fn begin(
    args: &CollectArgs,
    client: &Client,
    config: &SessionConfig,
) -> Result<(File, asynctriage_diagnostics::Recording), CliError> {
    let file = create(&args.output).map_err(|e| cannot_write(&args.output, e))?;
    let recording = client.record(config).map_err(|e| {
        // an empty file would be taken for a recording
        let _ = fs::remove_file(&args.output);
        refused(e)
    })?;
    Ok((file, recording))
}

fn say(out: &mut impl Write, text: &str) {
    // the recording is what counts, not who reads of it
    let _ = out.write_all(text.as_bytes());
}

fn exists(path: &Path) -> CliError {
    CliError::new(
        Exit::Usage,
        format!("{} exists already", path.display()),
        "name another file: recordings are never replaced",
    )
}

fn cannot_write(path: &Path, error: io::Error) -> CliError {
    if error.kind() == io::ErrorKind::AlreadyExists {
        return exists(path);
    }
    CliError::new(
        Exit::Usage,
        format!("cannot write {}", path.display()),
        "name a file on a disk with space that you may write to",
    )
    .because(error)
}

/// The error of the user for one of the protocol.
#[expect(clippy::needless_pass_by_value, reason = "for map_err")]
pub(crate) fn refused(error: Error) -> CliError {
    CliError::new(Exit::Input, error.to_string(), error.remedy())
}

#[cfg(test)]
mod tests;
