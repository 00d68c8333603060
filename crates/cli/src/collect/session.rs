//! A session that runs: what ends it, and how it is brought to its end.

use super::copy::{Copied, Copy};
use super::flush::ask_for_buffers;
use super::{Ending, Event, Outcome, cannot_write};
use crate::args::CollectArgs;
use crate::errors::CliError;
use crate::recipe::Recipe;
use asynctriage_diagnostics::Client;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::{Duration, Instant};

/// How long a process may take to write out what it has and list its methods.
const ENDING: Duration = Duration::from_secs(120);
/// How long threads have to hand over their buffers: the process looks after idle ones once a second, and leaves those
/// alone that were used in the last quarter of one (11.0.0).
const HAND_OVER: Duration = Duration::from_millis(1_500);
/// Seconds for which a file must have room when threads are asked for their buffers and what happens meanwhile is
/// recorded, too.
const ROOM: f64 = 4.0;

/// A recording that runs.
pub(super) struct Session {
    pub(super) client: Arc<Client>,
    pub(super) id: u64,
    pub(super) copy: Copy,
    pub(super) events: Receiver<Event>,
    pub(super) send: Sender<Event>,
    pub(super) start: Instant,
}

impl Ending {
    /// What ended it, with the result of the copy when that was it; without an event the time was over.
    pub(super) fn of(event: Option<Event>) -> (Self, Option<io::Result<Copied>>) {
        match event {
            None => (Self::Duration, None),
            Some(Event::Full) => (Self::Full, None),
            Some(Event::Copied(Ok(Copied::Cut))) => (Self::Full, Some(Ok(Copied::Cut))),
            Some(Event::Copied(Ok(how))) => (Self::ProcessEnded, Some(Ok(how))),
            Some(Event::Copied(Err(e))) => (Self::Failed, Some(Err(e))),
            Some(Event::Interrupt | Event::Stopped(_)) => (Self::Interrupted, None),
        }
    }
}

impl Session {
    pub(super) fn run(self, args: &CollectArgs, recipe: &Recipe) -> Result<Outcome, CliError> {
        let (ending, copied) = self.wait_for_an_end(args.duration.map(Duration::from_secs));
        let mut outcome = Outcome {
            ending,
            bytes: 0,
            handed_over: false,
            refused: None,
            cut: None,
        };
        let flush = recipe.buffered && !args.no_flush && self.has_room(&mut outcome, args);
        let copied = copied.or_else(|| self.finish(flush.then_some(recipe), &mut outcome));
        outcome.bytes = self.copy.end();
        match copied {
            Some(Ok(Copied::Cut)) => {
                // the process notices by itself that nobody reads on
                outcome.cut = Some("--max-mb was reached before the list of methods".into());
            }
            Some(Ok(_)) => {}
            Some(Err(e)) if outcome.bytes == 0 => return Err(cannot_write(&args.output, e)),
            Some(Err(e)) => outcome.cut = Some(e.to_string()),
            None => _ = outcome.cut.get_or_insert("it was not waited for".into()),
        }
        Ok(outcome)
    }

    /// The first end that comes; with the result of the copy when that was it.
    fn wait_for_an_end(&self, limit: Option<Duration>) -> (Ending, Option<io::Result<Copied>>) {
        let event = match limit {
            Some(limit) => self.events.recv_timeout(limit).ok(),
            None => self.events.recv().ok(),
        };
        Ending::of(event)
    }

    /// Whether what comes while threads hand over their buffers has room in the file.
    #[expect(clippy::cast_precision_loss, reason = "an estimate")]
    fn has_room(&self, outcome: &mut Outcome, args: &CollectArgs) -> bool {
        let bytes = self.copy.bytes() as f64;
        let a_second = bytes / self.start.elapsed().as_secs_f64().max(0.001);
        let limit = args.max_mb.saturating_mul(1 << 20) as f64;
        let has_room = bytes + a_second * ROOM <= limit;
        if !has_room {
            outcome.refused = Some("the file has no room for what they record meanwhile".into());
        }
        has_room
    }

    /// Lets the threads hand over their buffers when there is a recipe for that, then ends the session; the result of
    /// the copy, unless it was not waited for.
    fn finish(&self, flush: Option<&Recipe>, outcome: &mut Outcome) -> Option<io::Result<Copied>> {
        if let Some(recipe) = flush {
            match ask_for_buffers(&self.client, recipe) {
                // a refusal leaves the recording as it is
                Err(e) => outcome.refused = Some(e.to_string()),
                Ok(()) => match self.hand_over() {
                    Some(Event::Copied(copied)) => return Some(copied),
                    Some(Event::Interrupt) => return None,
                    _ => outcome.handed_over = true,
                },
            }
        }
        self.stop(&mut outcome.cut)
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
    fn stop(&self, cut: &mut Option<String>) -> Option<io::Result<Copied>> {
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
