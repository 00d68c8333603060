//! One run of the command, in a process of its own.

use crate::collect::{pump, refused};
use crate::errors::CliError;
use crate::exit::Exit;
use crate::new_file;
use asynctriage_diagnostics::{Announced, Client, Error, ProcessInfo, ReversePort, SessionConfig};
use std::ffi::OsString;
use std::io::{self, Read, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

/// How long a runtime may take to announce itself.
const START: Duration = Duration::from_secs(30);
/// How long output and recording may take to end after the process has.
const REST: Duration = Duration::from_secs(20);
/// How often it is looked whether something has happened; short against what is timed.
const TICK: Duration = Duration::from_millis(2);
/// What is kept of the standard output.
const MAX_OUTPUT: u64 = 16 << 20;
/// What is kept of the standard error, for the message when the run fails.
const MAX_ERRORS: u64 = 64 << 10;
/// Largest recording of a run.
const MAX_RECORDING: u64 = 4 << 30;

/// What is the same in all runs.
#[derive(Debug)]
pub(crate) struct Subject<'a> {
    pub(crate) command: &'a [OsString],
    /// How long it may run.
    pub(crate) timeout: Duration,
    /// A folder that only this user can reach.
    pub(crate) folder: &'a Path,
    /// Set when the user wants to end the experiment.
    pub(crate) interrupted: &'a AtomicBool,
}

/// What to record, and where.
#[derive(Debug)]
pub(crate) struct Record {
    pub(crate) config: SessionConfig,
    pub(crate) file: PathBuf,
}

/// What a run gave.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) output: String,
    /// From the moment that the process was let go to its end.
    pub(crate) lasted: Duration,
    /// Of the recording, when there was one.
    pub(crate) bytes: Option<u64>,
    pub(crate) info: ProcessInfo,
    /// What the recording holds.
    pub(crate) recorded: Option<super::recorded::Recorded>,
    /// Other runtimes that the command started; they were not recorded.
    pub(crate) others: u64,
}

/// Runs the command to its end. Its runtime waits in its start until the recording has begun; without one it waits as
/// well, so that nothing but the recording differs.
pub(crate) fn run(subject: &Subject<'_>, record: Option<&Record>) -> Result<Outcome, CliError> {
    let port = ReversePort::bind(subject.folder).map_err(refused)?;
    let mut process = Process::start(subject, &port)?;
    let Announced { client, .. } = process.announced(&port)?;
    let info = client.process_info().map_err(refused)?;
    let recording = record.map(|r| begin(&client, r)).transpose()?;
    let start = Instant::now();
    client.resume().map_err(refused)?;
    let status = process.end(start + subject.timeout)?;
    let lasted = start.elapsed();
    if !status.success() {
        return Err(process.failed(&format!("the command ended with {status}")));
    }
    let Ok(output) = process.output.recv_timeout(REST) else {
        return Err(process.failed("something that the command started keeps its output open"));
    };
    if output.len() as u64 >= MAX_OUTPUT {
        return Err(process.failed("the command prints too much to be compared (16 MiB)"));
    }
    let bytes = recording.map(Recording::end).transpose()?;
    Ok(Outcome {
        output: String::from_utf8_lossy(&output).into_owned(),
        lasted,
        bytes,
        info,
        recorded: None,
        others: port.others(),
    })
}

/// A process of the experiment; it does not outlive the run.
struct Process<'a> {
    subject: &'a Subject<'a>,
    child: Child,
    output: Receiver<Vec<u8>>,
    errors: Receiver<Vec<u8>>,
}

impl<'a> Process<'a> {
    fn start(subject: &'a Subject<'a>, port: &ReversePort) -> Result<Self, CliError> {
        let (program, args) = subject.command.split_first().ok_or_else(|| {
            CliError::new(Exit::Usage, "there is no command", "name one behind --")
        })?;
        let (name, value) = port.variable();
        let mut command = Command::new(program);
        command
            .args(args)
            .env(name, value)
            // a recording of its own would be in all modes
            .env_remove("DOTNET_EnableEventPipe")
            .env_remove("COMPlus_EnableEventPipe")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        let mut child = command.spawn().map_err(|e| {
            let message = format!("cannot start {}", program.display());
            CliError::new(Exit::Usage, message, "check the command behind --").because(e)
        })?;
        let output = gather(child.stdout.take(), MAX_OUTPUT);
        let errors = gather(child.stderr.take(), MAX_ERRORS);
        Ok(Self {
            subject,
            child,
            output,
            errors,
        })
    }

    /// Waits until its runtime announces itself.
    fn announced(&mut self, port: &ReversePort) -> Result<Announced, CliError> {
        let deadline = Instant::now() + START;
        loop {
            match port.first(Duration::from_millis(50)) {
                Ok(announced) => return Ok(announced),
                Err(Error::Timeout { .. }) => {}
                Err(error) => return Err(refused(error)),
            }
            if let Some(status) = self.ended()? {
                let what = format!("the command ended with {status} before a .NET runtime started");
                return Err(self.failed(&what));
            }
            if Instant::now() > deadline {
                return Err(self.failed("no .NET runtime started within 30 s"));
            }
        }
    }

    fn end(&mut self, deadline: Instant) -> Result<ExitStatus, CliError> {
        loop {
            if let Some(status) = self.ended()? {
                return Ok(status);
            }
            if Instant::now() > deadline {
                return Err(self.failed("the command runs longer than --timeout"));
            }
            thread::sleep(TICK);
        }
    }

    fn ended(&mut self) -> Result<Option<ExitStatus>, CliError> {
        if self.subject.interrupted.load(Ordering::Relaxed) {
            return Err(CliError::new(Exit::Interrupted, "interrupted", ""));
        }
        self.child
            .try_wait()
            .map_err(|e| self.failed("the command cannot be waited for").because(e))
    }

    /// Ends the process; the error holds the first line of its standard error.
    fn failed(&mut self, what: &str) -> CliError {
        end_group(&mut self.child);
        let errors = self.errors.recv_timeout(Duration::from_secs(1));
        let errors = String::from_utf8_lossy(&errors.unwrap_or_default()).into_owned();
        let error = CliError::new(Exit::Input, what, "see that the command works by itself");
        match errors.lines().find(|l| !l.trim().is_empty()) {
            Some(line) => error.because(format!("it said: {}", line.trim())),
            None => error,
        }
    }
}

impl Drop for Process<'_> {
    fn drop(&mut self) {
        end_group(&mut self.child);
    }
}

/// Ends the process and those that it started.
fn end_group(child: &mut Child) {
    // a process that was waited for has given up its number, which may be somebody else's by now
    if matches!(child.try_wait(), Ok(None)) {
        #[cfg(unix)]
        if let Some(group) = rustix::process::Pid::from_raw(child.id().cast_signed()) {
            // the processes may have ended just now
            let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
        }
        let _ = child.kill();
        let _ = child.wait();
    }
}

/// Reads all of a stream on a thread and keeps so much of it.
fn gather(stream: Option<impl Read + Send + 'static>, most: u64) -> Receiver<Vec<u8>> {
    let (send, receive) = channel();
    thread::spawn(move || {
        let mut kept = Vec::new();
        if let Some(mut stream) = stream {
            // what was read before a failure is what there is
            let _ = stream.by_ref().take(most).read_to_end(&mut kept);
            // a full pipe would stop the process
            let _ = io::copy(&mut stream, &mut io::sink());
        }
        // the run may have failed meanwhile
        let _ = send.send(kept);
    });
    receive
}

/// A recording of a run.
struct Recording {
    wanted: Arc<AtomicBool>,
    copied: Receiver<io::Result<u64>>,
    file: PathBuf,
}

fn begin(client: &Client, record: &Record) -> Result<Recording, CliError> {
    let mut events = client.record(&record.config).map_err(refused)?.events;
    let mut file = new_file::create(&record.file).map_err(|e| cannot_write(&record.file, e))?;
    let wanted = Arc::new(AtomicBool::new(true));
    let (send, copied) = channel();
    let still = Arc::clone(&wanted);
    thread::spawn(move || {
        let mut bytes = 0_u64;
        let result = pump(&mut events, &still, |piece| {
            file.write_all(piece)?;
            bytes = bytes.saturating_add(piece.len() as u64);
            if bytes < MAX_RECORDING {
                Ok(true)
            } else {
                Err(io::Error::other("the recording is longer than the limit"))
            }
        });
        // the run may have failed meanwhile
        let _ = send.send(result.map(|()| bytes));
    });
    Ok(Recording {
        wanted,
        copied,
        file: record.file.clone(),
    })
}

impl Recording {
    /// Waits for the end of the stream; its bytes.
    fn end(self) -> Result<u64, CliError> {
        let copied = self.copied.recv_timeout(REST);
        self.wanted.store(false, Ordering::Relaxed);
        match copied {
            Ok(bytes) => bytes.map_err(|e| cannot_write(&self.file, e)),
            Err(_) => Err(CliError::new(
                Exit::Input,
                "the recording does not end with the process",
                "see whether the command leaves a .NET process behind",
            )),
        }
    }
}

fn cannot_write(file: &Path, error: io::Error) -> CliError {
    CliError::new(
        Exit::Usage,
        format!("cannot write {}", file.display()),
        "set TMPDIR, or --traces, to a disk with space",
    )
    .because(error)
}
