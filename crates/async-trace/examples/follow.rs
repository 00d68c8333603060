//! Measures how fast recordings are followed: `cargo run --release --example follow -- FILE`.
#![expect(clippy::print_stdout, reason = "an example prints")]

use std::error::Error;
use std::time::{Duration, Instant};

use asynctriage_async_trace::{EVENT, Outer, PROVIDER, Recording};
use asynctriage_nettrace::Trace;

const ROUNDS: usize = 9;

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args_os().nth(1).ok_or("which file?")?;
    let file = std::fs::read(path)?;
    let trace = Trace::open(&file)?;
    let mut times = [Duration::ZERO; ROUNDS];
    let mut records = 0;
    for time in &mut times {
        let began = Instant::now();
        let mut recording = Recording::new();
        for event in trace.events().filter(|e| e.kind.is(PROVIDER, EVENT)) {
            recording.push(Outer {
                offset: event.payload_offset,
                time: event.timestamp,
                thread: event.thread,
                payload: event.payload,
            });
        }
        records = recording.finish().records();
        *time = began.elapsed();
    }
    times.sort_unstable();
    let median = times[ROUNDS / 2].as_secs_f64();
    let megabytes = file.len() as f64 / 1e6;
    println!(
        "{megabytes:.1} MB, {records} records: {:.1} ms (least {:.1}), {:.0} MB/s, {:.1} million records/s",
        median * 1e3,
        times[0].as_secs_f64() * 1e3,
        megabytes / median,
        records as f64 / 1e6 / median
    );
    Ok(())
}
