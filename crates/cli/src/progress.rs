//! A sign of life on a terminal when the analysis takes longer than a moment.

use indicatif::{ProgressBar, ProgressDrawTarget};
use std::io::{IsTerminal, stderr};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// How long nothing is shown.
const PATIENCE: Duration = Duration::from_millis(500);
const TICK: Duration = Duration::from_millis(120);

/// Shows a spinner on the standard error from half a second on until it is dropped; nothing when that is no terminal.
#[derive(Debug)]
pub(crate) struct Progress(Option<(Sender<()>, JoinHandle<()>)>);

impl Progress {
    pub(crate) fn start(message: &'static str) -> Self {
        if !stderr().is_terminal() {
            return Self(None);
        }
        let (stop, stopped) = channel();
        let spinner = std::thread::spawn(move || {
            if stopped.recv_timeout(PATIENCE) != Err(RecvTimeoutError::Timeout) {
                return;
            }
            let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr())
                .with_message(message);
            while stopped.recv_timeout(TICK) == Err(RecvTimeoutError::Timeout) {
                bar.tick();
            }
            bar.finish_and_clear();
        });
        Self(Some((stop, spinner)))
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some((stop, spinner)) = self.0.take() {
            drop(stop);
            // a spinner that panicked has nothing to say about the dump
            let _ = spinner.join();
        }
    }
}
