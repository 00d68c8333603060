//! Records the events of a running process into a new file.

use crate::args::CollectArgs;
use crate::errors::CliError;
use crate::exit::Exit;
use crate::interrupt::on_interrupt;
use crate::new_file::create;
use crate::progress::Progress;
use crate::recipe::{self, Recipe};
use asynctriage_diagnostics::{Client, Error, EventStream, ProcessInfo, Recording, SessionConfig};
use asynctriage_report::printable;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

/// How long a process may take to answer a command.
const ANSWER: Duration = Duration::from_secs(10);
/// How long a process may take to write out what it has and list its methods.
const ENDING: Duration = Duration::from_secs(120);
/// How long threads have to hand over their buffers: the process looks after idle ones once a second, and leaves those
/// alone that were used in the last quarter of one (11.0.0).
const HAND_OVER: Duration = Duration::from_millis(1_500);
/// How long a busy thread may take to its next event.
const SETTLE: Duration = Duration::from_millis(100);
/// How often a read looks whether it is still wanted.
const PAUSE: Duration = Duration::from_millis(200);
/// Bytes above the limit of the file that the end of a recording may take: the list of methods.
const REST: u64 = 1 << 30;

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

impl Ending {
    /// What ended it, with the result of the copy when that was it; without an event the time was over.
    fn of(event: Option<Event>) -> (Self, Option<io::Result<()>>) {
        match event {
            None => (Self::Duration, None),
            Some(Event::Full) => (Self::Full, None),
            Some(Event::Copied(Ok(()))) => (Self::ProcessEnded, Some(Ok(()))),
            Some(Event::Copied(Err(e))) => (Self::Failed, Some(Err(e))),
            Some(Event::Interrupt | Event::Stopped(_)) => (Self::Interrupted, None),
        }
    }
}

/// What happens while a recording runs.
#[derive(Debug)]
enum Event {
    Interrupt,
    /// The file has reached its limit.
    Full,
    /// The stream is over, or the file cannot be written.
    Copied(io::Result<()>),
    /// The answer to the command that ends the session.
    Stopped(Result<(), Error>),
}

/// Records until one of the ends is reached.
pub(crate) fn collect(args: &CollectArgs) -> Result<Exit, CliError> {
    if fs::symlink_metadata(&args.output).is_ok() {
        return Err(exists(&args.output));
    }
    let (client, info) = Client::of_process(args.pid, ANSWER).map_err(refused)?;
    let recipe = recipe::choose(&args.events, info.major())?;
    let config = SessionConfig {
        buffer_mb: args.events.buffer_mb,
        rundown: !args.no_rundown,
        stacks: false,
        providers: recipe.providers(),
    };
    let file = create(&args.output).map_err(|e| cannot_write(&args.output, e))?;
    let recording = client.record(&config).map_err(|e| {
        // an empty file would be taken for a recording
        let _ = fs::remove_file(&args.output);
        refused(e)
    })?;
    say(
        &mut io::stderr(),
        &opening(args, &info, &recipe, &recording),
    );
    let progress = Progress::start("recording");
    let (send, events) = channel();
    let interrupts = send.clone();
    // nobody listens when the recording is over
    on_interrupt(move || drop(interrupts.send(Event::Interrupt)))?;
    let session = Session {
        client: Arc::new(client),
        id: recording.id,
        copy: Copy::start(recording.events, file, args.max_mb, send.clone()),
        events,
        send,
    };
    let start = Instant::now();
    let outcome = session.run(args, &recipe);
    drop(progress);
    let outcome = outcome?;
    let lasted = start.elapsed();
    say(&mut io::stdout(), &closing(args, &outcome, lasted));
    Ok(match outcome.ending {
        Ending::Failed => Exit::Incomplete,
        _ => Exit::Written,
    })
}

/// A recording that runs.
struct Session {
    client: Arc<Client>,
    id: u64,
    copy: Copy,
    events: Receiver<Event>,
    send: Sender<Event>,
}

/// How a recording went.
#[derive(Debug)]
struct Outcome {
    ending: Ending,
    bytes: u64,
    /// Whether the threads were asked for their buffers.
    handed_over: bool,
    /// Why they could not be asked.
    refused: Option<String>,
    /// Why the end of the file may be missing.
    cut: Option<String>,
}

impl Session {
    fn run(self, args: &CollectArgs, recipe: &Recipe) -> Result<Outcome, CliError> {
        let (ending, copied) = self.wait_for_an_end(args.duration.map(Duration::from_secs));
        let mut outcome = Outcome {
            ending,
            bytes: 0,
            handed_over: false,
            refused: None,
            cut: None,
        };
        let flush = recipe.buffered && !args.no_flush;
        let copied = copied.or_else(|| self.finish(flush.then_some(recipe), &mut outcome));
        outcome.bytes = self.copy.end();
        match copied {
            Some(Ok(())) => {}
            Some(Err(e)) if outcome.bytes == 0 => return Err(cannot_write(&args.output, e)),
            Some(Err(e)) => outcome.cut = Some(e.to_string()),
            None => _ = outcome.cut.get_or_insert("it was not waited for".into()),
        }
        Ok(outcome)
    }

    /// The first end that comes; with the result of the copy when that was it.
    fn wait_for_an_end(&self, limit: Option<Duration>) -> (Ending, Option<io::Result<()>>) {
        let event = match limit {
            Some(limit) => self.events.recv_timeout(limit).ok(),
            None => self.events.recv().ok(),
        };
        Ending::of(event)
    }

    /// Lets the threads hand over their buffers when there is a recipe for that, then ends the session; the result of
    /// the copy, unless it was not waited for.
    fn finish(&self, flush: Option<&Recipe>, outcome: &mut Outcome) -> Option<io::Result<()>> {
        let flusher = flush.and_then(|recipe| {
            // a refusal leaves the recording as it is
            let started = Flusher::start(&self.client, recipe);
            started
                .map_err(|e| outcome.refused = Some(e.to_string()))
                .ok()
        });
        let copied = match flusher.is_some().then(|| self.hand_over()) {
            Some(Some(Event::Copied(copied))) => Some(copied),
            Some(Some(Event::Interrupt)) => None,
            waited => {
                outcome.handed_over = waited.is_some();
                if let Some(flusher) = flusher {
                    // what the profiler is asked for changes once more: threads that are busy hand over what they have
                    // recorded meanwhile
                    flusher.stop(&self.client);
                    thread::sleep(SETTLE);
                }
                return self.stop(&mut outcome.cut);
            }
        };
        if let Some(flusher) = flusher {
            flusher.stop(&self.client);
        }
        copied
    }

    /// What happens before the threads had their time.
    fn hand_over(&self) -> Option<Event> {
        let deadline = Instant::now() + HAND_OVER;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            match self.events.recv_timeout(left) {
                // there is room for the rest
                Ok(Event::Full) => {}
                other => return other.ok(),
            }
        }
    }

    /// Ends the session and waits for the rest of the stream; `None` when it was not waited for.
    fn stop(&self, cut: &mut Option<String>) -> Option<io::Result<()>> {
        let (client, id, send) = (Arc::clone(&self.client), self.id, self.send.clone());
        thread::spawn(move || send.send(Event::Stopped(client.stop(id, ENDING))));
        let deadline = Instant::now() + ENDING;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            match self.events.recv_timeout(left) {
                Ok(Event::Copied(copied)) => return Some(copied),
                Ok(Event::Interrupt) => return None,
                Ok(Event::Stopped(Err(e))) => *cut = Some(e.to_string()),
                Ok(Event::Full | Event::Stopped(Ok(()))) => {}
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {
                    cut.get_or_insert("the process does not end the stream".into());
                    return None;
                }
            }
        }
    }
}

/// A short session beside the first. It changes what the profiler is asked for, and thereby makes every thread hand over
/// its buffer at its next event (11.0.0: measured, all events before the change are in the recording).
struct Flusher {
    id: u64,
    wanted: Arc<AtomicBool>,
}

impl Flusher {
    fn start(client: &Client, recipe: &Recipe) -> Result<Self, Error> {
        let config = SessionConfig {
            buffer_mb: 16,
            rundown: false,
            stacks: false,
            providers: recipe.events.clone(),
        };
        let Recording { id, mut events, .. } = client.record(&config)?;
        let wanted = Arc::new(AtomicBool::new(true));
        let still = Arc::clone(&wanted);
        // what it records is in the first session as well
        thread::spawn(move || pump(&mut events, &mut io::sink(), &still, |_| true));
        Ok(Self { id, wanted })
    }

    fn stop(self, client: &Client) {
        // the process may be gone, and the session with it
        let _ = client.stop(self.id, ANSWER);
        self.wanted.store(false, Ordering::Relaxed);
    }
}

/// Copies the stream into the file.
struct Copy {
    wanted: Arc<AtomicBool>,
    bytes: Arc<AtomicU64>,
}

impl Copy {
    fn start(mut events: EventStream, mut file: File, max_mb: u64, send: Sender<Event>) -> Self {
        let copy = Self {
            wanted: Arc::new(AtomicBool::new(true)),
            bytes: Arc::default(),
        };
        let (wanted, bytes) = (Arc::clone(&copy.wanted), Arc::clone(&copy.bytes));
        let limit = max_mb.saturating_mul(1 << 20);
        thread::spawn(move || {
            let copied = pump(&mut events, &mut file, &wanted, |len| {
                let before = bytes.fetch_add(len, Ordering::Relaxed);
                let now = before.saturating_add(len);
                if before < limit && now >= limit {
                    // as below
                    let _ = send.send(Event::Full);
                }
                now < limit.saturating_add(REST)
            });
            let copied = copied.and_then(|()| file.sync_all());
            // nobody listens when it was not waited for
            let _ = send.send(Event::Copied(copied));
        });
        copy
    }

    /// Bytes in the file; nothing is added any more.
    fn end(&self) -> u64 {
        self.wanted.store(false, Ordering::Relaxed);
        self.bytes.load(Ordering::Relaxed)
    }
}

/// Copies until the stream ends, nobody wants it any more, or `goes_on` says no; it is told of each piece that is
/// written.
pub(crate) fn pump(
    events: &mut EventStream,
    out: &mut impl Write,
    wanted: &AtomicBool,
    mut goes_on: impl FnMut(u64) -> bool,
) -> io::Result<()> {
    events.pause(PAUSE)?;
    let mut buffer = vec![0; 1 << 16];
    while wanted.load(Ordering::Relaxed) {
        let len = match events.read(&mut buffer) {
            Ok(0) => break,
            Ok(len) => len,
            Err(e) if is_pause(&e) => continue,
            // how the end of a killed process looks
            Err(e) if e.kind() == io::ErrorKind::ConnectionReset => break,
            Err(e) => return Err(e),
        };
        out.write_all(buffer.get(..len).unwrap_or_default())?;
        if !goes_on(len as u64) {
            return Err(io::Error::other("the stream is longer than the limit"));
        }
    }
    out.flush()
}

fn is_pause(error: &io::Error) -> bool {
    use io::ErrorKind::{Interrupted, TimedOut, WouldBlock};
    matches!(error.kind(), WouldBlock | TimedOut | Interrupted)
}

fn say(out: &mut impl Write, text: &str) {
    // the recording is what counts, not who reads of it
    let _ = out.write_all(text.as_bytes());
}

/// The first lines, on the standard error.
fn opening(
    args: &CollectArgs,
    info: &ProcessInfo,
    recipe: &Recipe,
    recording: &Recording,
) -> String {
    let name = if info.entry_assembly.is_empty() {
        String::new()
    } else {
        format!(" ({})", printable(&info.entry_assembly))
    };
    let until = match args.duration {
        Some(seconds) => format!("for {seconds} s; Ctrl-C ends it earlier"),
        None => "until Ctrl-C".into(),
    };
    let mut text = format!(
        "recording process {}{name}, .NET {}, into {} {until}\n",
        args.pid,
        printable(&info.version),
        printable(&args.output.display().to_string()),
    );
    for provider in recipe.providers() {
        text.push_str(&format!("  {}\n", printable(&provider.to_string())));
    }
    if let Some(warning) = recipe.warning {
        text.push_str(&format!("warning: {warning}\n"));
    }
    if recording.stacks_forced {
        text.push_str("warning: this runtime takes a stack with every event, which costs time\n");
    }
    text
}

/// What was recorded and how to read it, on the standard output.
fn closing(args: &CollectArgs, outcome: &Outcome, lasted: Duration) -> String {
    let file = printable(&args.output.display().to_string());
    let ending = match outcome.ending {
        Ending::Duration => "the time was over",
        Ending::Interrupted => "it was interrupted",
        Ending::Full => "the file had reached its limit (--max-mb)",
        Ending::ProcessEnded => "the process ended",
        Ending::Failed => "it broke off",
    };
    let mut text = format!(
        "{file}  {} in {:.1} s; {ending}\n",
        mebibytes(outcome.bytes),
        lasted.as_secs_f64()
    );
    if outcome.handed_over {
        text.push_str("the threads were asked for their buffers first, so that the last events are in the file\n");
    } else if let Some(why) = &outcome.refused {
        text.push_str(&format!(
            "the last events of each thread may be missing: the process did not let them be asked for ({})\n",
            printable(why)
        ));
    } else if matches!(outcome.ending, Ending::ProcessEnded | Ending::Failed) {
        text.push_str(
            "the last events of each thread are missing, unless the program asked for them before it ended\n",
        );
    }
    if let Some(why) = &outcome.cut {
        text.push_str(&format!(
            "the end of the file may be missing: {}\n",
            printable(why)
        ));
    }
    text.push_str(&format!("next: asynctriage trace {file}\n"));
    text
}

#[expect(clippy::cast_precision_loss, reason = "two decimals are shown")]
fn mebibytes(bytes: u64) -> String {
    format!("{:.2} MiB", bytes as f64 / f64::from(1 << 20))
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
mod tests {
    use super::*;
    use crate::args::Command;

    fn said(ending: Ending, refused: Option<&str>, cut: Option<&str>) -> String {
        let matches = Command::definition().try_get_matches_from([
            "asynctriage",
            "collect",
            "--pid",
            "1",
            "-o",
            "x.nettrace",
        ]);
        let command = clap::FromArgMatches::from_arg_matches(&matches.unwrap()).unwrap();
        let Command::Collect(args) = command else {
            unreachable!("the command that was asked for")
        };
        let outcome = Outcome {
            ending,
            bytes: 1 << 20,
            handed_over: false,
            refused: refused.map(str::to_owned),
            cut: cut.map(str::to_owned),
        };
        closing(&args, &outcome, Duration::from_secs(2))
    }

    #[test]
    fn a_full_disk_is_not_the_end_of_the_process() {
        let full = io::Error::from(io::ErrorKind::StorageFull);
        let (ending, copied) = Ending::of(Some(Event::Copied(Err(full))));
        assert_eq!(ending, Ending::Failed);
        let why = copied.unwrap().unwrap_err().to_string();
        insta::assert_snapshot!(said(ending, None, Some(&why)), @r"
        x.nettrace  1.00 MiB in 2.0 s; it broke off
        the last events of each thread are missing, unless the program asked for them before it ended
        the end of the file may be missing: no storage space
        next: asynctriage trace x.nettrace
        ");
        assert_eq!(
            Ending::of(Some(Event::Copied(Ok(())))).0,
            Ending::ProcessEnded
        );
    }

    #[test]
    fn a_refusal_to_hand_over_is_told() {
        insta::assert_snapshot!(said(Ending::Duration, Some("no"), None), @r"
        x.nettrace  1.00 MiB in 2.0 s; the time was over
        the last events of each thread may be missing: the process did not let them be asked for (no)
        next: asynctriage trace x.nettrace
        ");
    }
}
