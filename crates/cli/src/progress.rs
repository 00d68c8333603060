//! A sign of life on a terminal when the analysis takes longer than a moment.

use asynctriage_triage::Watch;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::{IsTerminal, stderr};
use std::path::Path;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex};
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
    phase: Arc<Mutex<String>>,
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
        let phase = Arc::new(Mutex::new("reading".to_owned()));
        if !stderr().is_terminal() {
            return Self {
                phase,
                spinner: None,
            };
        }
        let (stop, stopped) = channel();
        let (what, shown, begun) = (what.to_owned(), Arc::clone(&phase), Instant::now());
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
                let phase = shown.lock().map(|p| p.clone()).unwrap_or_default();
                let seconds = begun.elapsed().as_secs_f64();
                bar.set_message(format!("{what}: {phase}  {seconds:.1} s"));
                bar.tick();
            }
            bar.finish_and_clear();
        });
        Self {
            phase,
            spinner: Some((stop, spinner)),
        }
    }

    /// What the analysis calls when a phase begins.
    pub(crate) fn watch(&self) -> Watch {
        let phase = Arc::clone(&self.phase);
        Watch::new(move |name| {
            if let Ok(mut phase) = phase.lock() {
                name.clone_into(&mut phase);
            }
        })
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
