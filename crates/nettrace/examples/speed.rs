//! Measures how fast a trace is read: `cargo run --release --example speed -- FILE`.
#![expect(clippy::print_stdout, reason = "an example prints")]

use std::error::Error;
use std::time::{Duration, Instant};

use asynctriage_nettrace::Trace;

const ROUNDS: usize = 9;

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args_os().nth(1).ok_or("which file?")?;
    let file = std::fs::read(path)?;
    let trace = Trace::open(&file)?;
    let mut times = [Duration::ZERO; ROUNDS];
    let mut count = 0;
    for time in &mut times {
        let began = Instant::now();
        // the payload is looked at, as a user of it would
        let bytes = trace.events().fold(0_u64, |sum, event| {
            sum.wrapping_add(event.payload.first().copied().unwrap_or_default().into())
        });
        std::hint::black_box(bytes);
        *time = began.elapsed();
        count = trace.events().count();
    }
    times.sort_unstable();
    let median = times[ROUNDS / 2].as_secs_f64();
    let least = times[0].as_secs_f64();
    println!(
        "{:.1} MB, {count} events: {:.1} ms (least {:.1}), {:.0} MB/s, {:.1} million events/s",
        file.len() as f64 / 1e6,
        median * 1e3,
        least * 1e3,
        file.len() as f64 / 1e6 / median,
        count as f64 / 1e6 / median
    );
    Ok(())
}
