//! The stream of a session into the file, up to a limit and never through a block.

use super::Event;
use asynctriage_diagnostics::EventStream;
use asynctriage_nettrace::BlockEnds;
use std::fs::File;
use std::io::{self, Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::Sender;
use std::thread;
use std::time::Duration;

/// How often a read looks whether it is still wanted.
const PAUSE: Duration = Duration::from_millis(200);

/// How a copy ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Copied {
    /// The stream was over.
    Whole,
    /// The file has reached its limit; more would have come.
    Cut,
    /// Nobody wanted it any more.
    Unwanted,
}

/// Copies the stream into the file.
pub(super) struct Copy {
    wanted: Arc<AtomicBool>,
    bytes: Arc<AtomicU64>,
}

/// Bytes of a file: those at which the session is to be ended, so that what comes at its end has room, and those at which
/// nothing more is written but the rest of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Limits {
    pub(super) soft: u64,
    pub(super) hard: u64,
}

/// Most room that is left for the end of a recording: the list of methods.
const MOST_ROOM: u64 = 64 << 20;

impl Limits {
    /// For `--max-mb`: a quarter is left for the end.
    pub(super) fn of(max_mb: u64) -> Self {
        let hard = max_mb.saturating_mul(1 << 20);
        Self {
            soft: hard.saturating_sub((hard / 4).min(MOST_ROOM)),
            hard,
        }
    }
}

impl Copy {
    pub(super) fn start(
        mut events: EventStream,
        mut file: File,
        limits: Limits,
        send: Sender<Event>,
    ) -> Self {
        let copy = Self {
            wanted: Arc::new(AtomicBool::new(true)),
            bytes: Arc::default(),
        };
        let (wanted, bytes) = (Arc::clone(&copy.wanted), Arc::clone(&copy.bytes));
        thread::spawn(move || {
            let mut ends = BlockEnds::default();
            let mut is_cut = false;
            let copied = pump(&mut events, &wanted, |piece| {
                let end = ends.first_end(piece, limits.hard);
                is_cut = end.is_some();
                let piece = piece.get(..end.unwrap_or(piece.len())).unwrap_or(piece);
                file.write_all(piece)?;
                let before = bytes.fetch_add(piece.len() as u64, Ordering::Relaxed);
                let now = before.saturating_add(piece.len() as u64);
                if before < limits.soft && now >= limits.soft {
                    // as below
                    let _ = send.send(Event::Full);
                }
                Ok(!is_cut)
            });
            let copied = copied.and_then(|()| file.sync_all());
            let how = match (is_cut, wanted.load(Ordering::Relaxed)) {
                (true, _) => Copied::Cut,
                (false, true) => Copied::Whole,
                (false, false) => Copied::Unwanted,
            };
            // nobody listens when it was not waited for
            let _ = send.send(Event::Copied(copied.map(|()| how)));
        });
        copy
    }

    /// Bytes in the file so far.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Bytes in the file; nothing is added any more.
    pub(super) fn end(&self) -> u64 {
        self.wanted.store(false, Ordering::Relaxed);
        self.bytes()
    }
}

/// Gives the stream to `take` piece by piece, until it ends, nobody wants it any more, or `take` wants no more.
pub(crate) fn pump(
    events: &mut EventStream,
    wanted: &AtomicBool,
    mut take: impl FnMut(&[u8]) -> io::Result<bool>,
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
        if !take(buffer.get(..len).unwrap_or_default())? {
            break;
        }
    }
    Ok(())
}

fn is_pause(error: &io::Error) -> bool {
    use io::ErrorKind::{Interrupted, TimedOut, WouldBlock};
    matches!(error.kind(), WouldBlock | TimedOut | Interrupted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_recording_has_room() {
        let limits = Limits::of(4);
        assert_eq!((limits.soft, limits.hard), (3 << 20, 4 << 20));
        assert_eq!(Limits::of(1 << 20).soft, (1 << 40) - MOST_ROOM);
    }
}
