//! A sign of life on a terminal when the analysis takes longer than a moment.

use crate::limits;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::{IsTerminal, stderr};
use std::path::Path;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How long nothing is shown.
const PATIENCE: Duration = Duration::from_millis(500);
const TICK: Duration = Duration::from_millis(120);
/// Bytes of a mebibyte.
const MIB: u64 = 1 << 20;

/// Shows what is being done on the standard error, from half a second on until it is dropped; nothing when that is no
/// terminal.
#[derive(Debug)]
pub(crate) struct Progress {
    spinner: Option<(Sender<()>, JoinHandle<()>)>,
}

impl Progress {
    /// Of a dump: says which file, how large it is, and which phase the analysis is in.
    pub(crate) fn of_dump(dump: &Path) -> Self {
        let size = std::fs::metadata(dump).map(|m| m.len()).ok();
        let size = size
            .filter(|s| *s >= MIB)
            .map(|s| format!(", {} MiB", s / MIB));
        let name = dump.file_name().unwrap_or_default().to_string_lossy();
        Self::start(&format!("{name}{}", size.unwrap_or_default()))
    }

    pub(crate) fn start(what: &str) -> Self {
        if !stderr().is_terminal() {
            return Self { spinner: None };
        }
        let (stop, stopped) = channel();
        let (what, begun) = (what.to_owned(), Instant::now());
        let spinner = std::thread::spawn(move || {
            if stopped.recv_timeout(PATIENCE) != Err(RecvTimeoutError::Timeout) {
                return;
            }
            let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
            // a template that does not parse is none of the user's business
            if let Ok(style) = ProgressStyle::with_template("{spinner} {msg}") {
                bar.set_style(style);
            }
            while stopped.recv_timeout(TICK) == Err(RecvTimeoutError::Timeout) {
                let phase = limits::phase();
                let seconds = begun.elapsed().as_secs_f64();
                bar.set_message(format!("{what}: {phase}  {seconds:.1} s"));
                bar.tick();
            }
            bar.finish_and_clear();
        });
        Self {
            spinner: Some((stop, spinner)),
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some((stop, spinner)) = self.spinner.take() {
            drop(stop);
            // a spinner that panicked has nothing to say about the dump
            let _ = spinner.join();
        }
    }
}
