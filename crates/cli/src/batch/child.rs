//! One dump, read by a process of its own: what ends that process ends nothing else.

use crate::exit::Exit;
use asynctriage_report::{self as report, Report};
use std::ffi::OsString;
use std::io::{self, Read, Seek};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

/// The longest report that is taken, and the longest message.
const MAX_REPORT: u64 = 256 << 20;
const MAX_MESSAGE: u64 = 64 << 10;
/// Between two looks whether all of it is to end.
const TICK: Duration = Duration::from_millis(50);

/// How dumps are read.
#[derive(Debug)]
pub(super) struct Reader {
    pub(super) program: PathBuf,
    pub(super) options: Vec<OsString>,
    /// When a process that does not keep its limits is ended.
    pub(super) patience: Option<Duration>,
}

/// What became of it.
#[derive(Debug)]
pub(super) enum Outcome {
    /// A report.
    Report(Box<Report>),
    /// A report that limits cut short, and what was said of that.
    Partial(Box<Report>, String),
    /// No report, as the file holds none.
    Refused(String),
    /// No report, as the analysis failed.
    Failed(String),
    /// All was to end.
    Ended,
}

impl Reader {
    pub(super) fn read(&self, dump: &Path, ends: &AtomicBool) -> Outcome {
        match self.run(dump, ends) {
            Ok(outcome) => outcome,
            Err(e) => Outcome::Failed(format!("asynctriage cannot be started: {e}")),
        }
    }

    fn run(&self, dump: &Path, ends: &AtomicBool) -> io::Result<Outcome> {
        let mut messages = tempfile::tempfile()?;
        // a path that begins with a dash is no option, and one that is called as a command is no command
        let path = std::path::absolute(dump)?;
        let mut child = Command::new(&self.program)
            .arg(path)
            .args(&self.options)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(messages.try_clone()?)
            .spawn()?;
        let out = child.stdout.take();
        let (sent, received) = channel();
        let reading = thread::spawn(move || {
            let mut text = String::new();
            let read = out.map_or(Ok(0), |out| out.take(MAX_REPORT).read_to_string(&mut text));
            // who listened has ended
            let _ = sent.send(read.map(|_| text));
        });
        let start = Instant::now();
        let mut ended = None;
        let text = loop {
            match received.recv_timeout(TICK) {
                // what is no text is no report either
                Ok(text) => break text.unwrap_or_default(),
                Err(RecvTimeoutError::Disconnected) => break String::new(),
                Err(RecvTimeoutError::Timeout) => {}
            }
            if ended.is_some() {
                continue;
            }
            if ends.load(Ordering::Relaxed) {
                ended = Some(Outcome::Ended);
            } else if self.patience.is_some_and(|p| start.elapsed() > p) {
                let why = format!("it took more than {} s", start.elapsed().as_secs());
                ended = Some(Outcome::Failed(why));
            } else {
                continue;
            }
            child.kill()?;
        };
        // the pipe was read to its end, or up to the most that is taken
        if text.len() as u64 >= MAX_REPORT {
            child.kill()?;
            let why = format!("its report has more than {} MiB", MAX_REPORT >> 20);
            ended.get_or_insert(Outcome::Failed(why));
        }
        let status = child.wait()?;
        // it has nothing left to read
        let _ = reading.join();
        if let Some(outcome) = ended {
            return Ok(outcome);
        }
        let said = said(&mut messages);
        Ok(judge(status.code(), &text, said, || status.to_string()))
    }
}

/// What the exit status and the output mean.
fn judge(code: Option<i32>, text: &str, said: String, status: impl Fn() -> String) -> Outcome {
    let is = |exit: Exit| code == Some(exit as i32);
    if is(Exit::Input) || is(Exit::NoRuntime) || is(Exit::Usage) {
        return Outcome::Refused(said);
    }
    let why = if said.is_empty() { status() } else { said };
    match report::from_json::<Report>(text) {
        Ok(report) if is(Exit::Written) => Outcome::Report(Box::new(report)),
        Ok(report) if is(Exit::Partial) => Outcome::Partial(Box::new(report), why),
        _ if is(Exit::Interrupted) => Outcome::Ended,
        _ => Outcome::Failed(why),
    }
}

/// What was written to the standard error, in one line without what only leads the eye.
fn said(messages: &mut (impl Read + Seek)) -> String {
    let mut bytes = Vec::new();
    let read = messages
        .rewind()
        .and_then(|()| messages.take(MAX_MESSAGE).read_to_end(&mut bytes));
    if read.is_err() {
        return String::new();
    }
    let text = String::from_utf8_lossy(&bytes);
    let lines: Vec<&str> = text
        .lines()
        .map(|l| {
            l.trim()
                .trim_start_matches("error: ")
                .trim_start_matches("note: ")
        })
        .filter(|l| !l.is_empty())
        .collect();
    lines.join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn outcome(exit: i32, text: &str) -> Outcome {
        judge(Some(exit), text, "words".into(), || "status".into())
    }

    #[test]
    fn each_end_of_a_process_has_its_meaning() {
        let report = report::json(&Report::default()).unwrap();
        assert!(matches!(outcome(0, &report), Outcome::Report(_)));
        assert!(matches!(outcome(7, &report), Outcome::Partial(..)));
        assert!(matches!(outcome(3, ""), Outcome::Refused(why) if why == "words"));
        assert!(matches!(outcome(4, ""), Outcome::Refused(_)));
        assert!(matches!(outcome(130, &report), Outcome::Ended));
        assert!(matches!(outcome(70, ""), Outcome::Failed(_)));
        assert!(
            matches!(outcome(0, "{\"schema"), Outcome::Failed(_)),
            "cut off"
        );
        let signal = judge(None, "", String::new(), || "signal: 9 (SIGKILL)".into());
        assert!(matches!(signal, Outcome::Failed(why) if why.contains("SIGKILL")));
    }

    #[test]
    #[cfg(unix)]
    fn a_process_that_hangs_or_never_ends_its_output_is_ended() {
        let reader = |script: &str| {
            Reader {
                program: "/bin/sh".into(),
                options: Vec::new(),
                patience: Some(Duration::from_millis(200)),
            }
            .read(&write(script), &AtomicBool::new(false))
        };
        assert!(
            matches!(reader("exec sleep 60"), Outcome::Failed(why) if why.contains("took more"))
        );
        assert!(matches!(reader("exec yes"), Outcome::Failed(_)));
        assert!(matches!(reader("kill -9 $$"), Outcome::Failed(why) if why.contains("9")));
        let ends = AtomicBool::new(true);
        let reader = Reader {
            program: "/bin/sh".into(),
            options: Vec::new(),
            patience: None,
        };
        assert!(matches!(
            reader.read(&write("exec sleep 60"), &ends),
            Outcome::Ended
        ));
    }

    /// A script in the place of a dump, for a shell in the place of the program.
    #[cfg(unix)]
    fn write(script: &str) -> tempfile::TempPath {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(script.as_bytes()).unwrap();
        file.into_temp_path()
    }
}
