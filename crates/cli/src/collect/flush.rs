//! How threads are made to hand over the records that they keep.

use super::copy::pump;
use crate::recipe::Recipe;
use asynctriage_diagnostics::{Client, Error, Recording, SessionConfig};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

/// How long a process may take to end a short session.
const ANSWER: Duration = Duration::from_secs(10);
/// How often what the profiler is asked for is changed. Each end of a session is an event in all others, and that many
/// one after the other are the mark by which `trace` knows when all threads were asked.
const TIMES: usize = 3;

/// Changes what the profiler is asked for, by short sessions beside the first: every thread then hands over its buffer at
/// its next record (11.0.0: measured, all records before the change are in the recording).
pub(super) fn ask_for_buffers(client: &Client, recipe: &Recipe) -> Result<(), Error> {
    for _ in 0..TIMES {
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
        thread::spawn(move || pump(&mut events, &still, |_| Ok(true)));
        let stopped = client.stop(id, ANSWER);
        wanted.store(false, Ordering::Relaxed);
        stopped?;
    }
    Ok(())
}
