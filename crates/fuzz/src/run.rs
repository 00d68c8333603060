//! Running a target for a while.

use crate::random::Random;
use crate::targets::Target;
use std::cell::RefCell;
use std::num::NonZero;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// How long one run may take; milliseconds would do, the rest is for busy machines.
const LIMIT: Duration = Duration::from_secs(60);
/// Between two looks at the threads.
const TICK: Duration = Duration::from_millis(100);

/// An input that broke a target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The panic and its place, or that it did not end.
    pub why: String,
    /// The input.
    pub input: Vec<u8>,
}

/// What came of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tried {
    /// Inputs that were tried.
    pub runs: u64,
    /// Those that broke it; each thread stops at its first.
    pub failures: Vec<Failure>,
}

thread_local! {
    /// What the panic of this thread said.
    static SAID: RefCell<String> = const { RefCell::new(String::new()) };
}

/// One thread and what it is at.
#[derive(Default)]
struct Worker {
    runs: AtomicU64,
    /// Since when, and with what.
    now: Mutex<Option<(Instant, Vec<u8>)>>,
}

#[derive(Default)]
struct Shared {
    stop: AtomicBool,
    failures: Mutex<Vec<Failure>>,
}

/// Runs a target for a while on all processors. Threads whose input does not end are left to themselves: the process should
/// end soon.
#[must_use]
pub fn fuzz(target: &'static Target, time: Duration, seed: u64) -> Tried {
    note_panics();
    let shared = Arc::new(Shared::default());
    let count = thread::available_parallelism().map_or(1, NonZero::get);
    let workers: Vec<Arc<Worker>> = (0..count).map(|_| Arc::default()).collect();
    let threads: Vec<_> = workers
        .iter()
        .zip(0_u64..)
        .map(|(worker, number)| {
            let (worker, shared) = (Arc::clone(worker), Arc::clone(&shared));
            let random = Random::new(seed.wrapping_add(number << 48));
            thread::spawn(move || work(target, &worker, &shared, random))
        })
        .collect();
    let end = Instant::now() + time;
    while Instant::now() < end && !threads.iter().all(thread::JoinHandle::is_finished) {
        thread::sleep(TICK);
        if stuck(&workers).next().is_some() {
            break;
        }
    }
    shared.stop.store(true, Ordering::Relaxed);
    // the last inputs come to their end
    while !threads.iter().all(thread::JoinHandle::is_finished) && stuck(&workers).next().is_none() {
        thread::sleep(TICK);
    }
    let failed = shared
        .failures
        .lock()
        .unwrap_or_else(PoisonError::into_inner);
    Tried {
        runs: workers.iter().map(|w| w.runs.load(Ordering::Relaxed)).sum(),
        failures: failed.iter().cloned().chain(stuck(&workers)).collect(),
    }
}

/// Runs a target on one input.
///
/// # Errors
/// What the panic said.
pub fn replay(target: &Target, input: &[u8]) -> Result<(), String> {
    note_panics();
    catch_unwind(AssertUnwindSafe(|| (target.run)(input))).map_err(|_| SAID.with(RefCell::take))
}

fn work(target: &Target, worker: &Worker, shared: &Shared, mut random: Random) {
    let seeds = (target.seeds)();
    while !shared.stop.load(Ordering::Relaxed) {
        let seed = seeds
            .get(random.index(seeds.len()))
            .map_or(&[][..], Vec::as_slice);
        let input = (target.change)(seed, &mut random);
        if let Ok(mut now) = worker.now.lock() {
            *now = Some((Instant::now(), input.clone()));
        }
        let result = replay(target, &input);
        if let Ok(mut now) = worker.now.lock() {
            *now = None;
        }
        worker.runs.fetch_add(1, Ordering::Relaxed);
        if let Err(why) = result {
            let mut failures = shared
                .failures
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            failures.push(Failure { why, input });
            return;
        }
    }
}

/// The inputs that do not end.
fn stuck(workers: &[Arc<Worker>]) -> impl Iterator<Item = Failure> {
    workers.iter().filter_map(|worker| {
        let now = worker.now.lock().ok()?;
        let (since, input) = now.as_ref()?;
        (since.elapsed() > LIMIT).then(|| Failure {
            why: format!("it did not end within {} s", LIMIT.as_secs()),
            input: input.clone(),
        })
    })
}

/// Keeps what panics say instead of printing it.
fn note_panics() {
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| {
        std::panic::set_hook(Box::new(|info| {
            let said = info.to_string();
            // threads of rayon hand their panics on to the one that asked them, but not what they say
            SAID.with(|s| s.replace(said));
        }));
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::targets::ALL;

    #[test]
    fn every_target_takes_its_seeds_and_some_changes_of_them() {
        for target in ALL {
            let mut random = Random::new(7);
            let seeds = (target.seeds)();
            assert!(!seeds.is_empty(), "{} has no seeds", target.name);
            for seed in &seeds {
                assert_eq!(replay(target, seed), Ok(()), "{}", target.name);
                let changed = (target.change)(seed, &mut random);
                assert_eq!(replay(target, &changed), Ok(()), "{}", target.name);
            }
        }
    }

    #[test]
    fn what_panics_is_told_with_its_input() {
        static BAD: Target = Target {
            name: "bad",
            seeds: || vec![b"abc".to_vec()],
            change: |seed, random| [seed, &[random.index(4) as u8]].concat(),
            run: |input| assert_ne!(input.last(), Some(&3), "three"),
        };
        let tried = fuzz(&BAD, Duration::from_secs(5), 1);
        let failure = tried.failures.first().expect("one of four fails");
        assert_eq!(failure.input, b"abc\x03");
        assert!(failure.why.contains("three"), "{}", failure.why);
        assert!(tried.runs > 0);
    }
}
