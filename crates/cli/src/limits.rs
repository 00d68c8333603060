//! What a command may take: time, memory, and the patience of who presses Ctrl-C.
//!
//! The process has one [`Budget`]; a thread beside the analysis watches over it. What ends a phase of the analysis leaves
//! those behind it a little, so that they still make something of what is known.

use crate::args::BoundArgs;
use crate::errors::CliError;
use crate::exit::Exit;
use crate::interrupt::on_interrupt;
use asynctriage_dump::{Budget, Ended};
use std::fs;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

/// Between two looks at clock and memory.
const TICK: Duration = Duration::from_millis(20);
/// What each further phase gets once one was ended: a part of the time, and at most so much.
const GRACE: (u32, Duration) = (20, Duration::from_secs(2));
/// The same of the memory.
const MORE_MEMORY: u64 = 10;

static BUDGET: OnceLock<Budget> = OnceLock::new();
static HAS_ANSWERED: AtomicBool = AtomicBool::new(false);
static WAS_ASKED: AtomicBool = AtomicBool::new(false);

/// What this process may take from now on.
pub(crate) fn budget(args: &BoundArgs) -> Result<Budget, CliError> {
    if let Some(known) = BUDGET.get() {
        return Ok(known.clone());
    }
    let asked = args.max_memory.filter(|m| *m > 0);
    if asked.is_some() && used_memory().is_none() {
        return Err(CliError::new(
            Exit::Usage,
            "--max-memory is for Linux",
            "leave it away: this system does not tell what a process has taken",
        ));
    }
    let memory = match args.max_memory {
        None => free_memory().map(|free| free / 4 * 3),
        Some(_) => asked,
    };
    let budget = BUDGET.get_or_init(Budget::new).clone();
    let (pressed, presses) = channel();
    // nobody listens when the program ends
    on_interrupt(move || {
        let _ = pressed.send(());
    })?;
    let mut watch = Watch {
        budget: budget.clone(),
        start: Instant::now(),
        time: (!args.max_time.is_zero()).then_some(args.max_time),
        memory,
        presses: 0,
        ended: None,
        phase: 0,
    };
    watch.look();
    thread::spawn(move || watch.run(&presses));
    Ok(budget)
}

/// What the analysis is at, for a sign of life.
pub(crate) fn phase() -> &'static str {
    let name = BUDGET.get().map_or("", Budget::phase_name);
    if name.is_empty() { "reading" } else { name }
}

/// The answer is there: Ctrl-C is for whoever shows it.
pub(crate) fn answered() {
    HAS_ANSWERED.store(true, Ordering::Relaxed);
}

/// The exit status of an answer that may be partial.
pub(crate) fn exit(exit: Exit) -> Exit {
    let is_cut = BUDGET.get().is_some_and(Budget::is_cut);
    match exit {
        // what was found weighs more
        Exit::Finding => exit,
        _ if is_cut && WAS_ASKED.load(Ordering::Relaxed) => Exit::Interrupted,
        _ if is_cut => Exit::Partial,
        _ => exit,
    }
}

/// What is said of an answer that is partial, on the standard error.
pub(crate) fn note() -> Option<&'static str> {
    let is_cut = BUDGET.get().is_some_and(Budget::is_cut);
    is_cut.then_some(
        "note: the analysis was ended before it had looked at everything; its gaps tell what is missing\n",
    )
}

struct Watch {
    budget: Budget,
    start: Instant,
    time: Option<Duration>,
    memory: Option<u64>,
    presses: u32,
    /// Why the first phase was ended, and until when and at what memory the one that runs may go on.
    ended: Option<(Ended, Instant, Option<u64>)>,
    /// The phase that runs.
    phase: u32,
}

impl Watch {
    fn run(mut self, presses: &Receiver<()>) {
        loop {
            match presses.recv_timeout(TICK) {
                Ok(()) => self.press(),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
            self.look();
        }
    }

    fn press(&mut self) {
        if HAS_ANSWERED.load(Ordering::Relaxed) {
            return;
        }
        WAS_ASKED.store(true, Ordering::Relaxed);
        self.presses = self.presses.saturating_add(1);
        match self.presses {
            1 => self.end(self.budget.phase(), Ended::Asked),
            2 => self.budget.end_for_good(Ended::Asked),
            _ => leave(),
        }
    }

    fn look(&mut self) {
        let phase = self.budget.phase();
        if phase != self.phase {
            self.phase = phase;
            if let Some((why, ..)) = self.ended {
                self.ended = Some((why, self.until(), self.up_to()));
            }
        }
        let now = Instant::now();
        let over = |limit: Option<u64>| limit.zip(used_memory()).is_some_and(|(l, u)| u > l);
        match self.ended {
            None if self
                .time
                .is_some_and(|t| now.duration_since(self.start) >= t) =>
            {
                self.end(phase, Ended::Time);
            }
            None if over(self.memory) => self.end(phase, Ended::Memory),
            Some((why, until, _)) if now >= until => self.budget.end(phase, why),
            Some((_, _, memory)) if over(memory) => self.budget.end(phase, Ended::Memory),
            _ => {}
        }
    }

    fn end(&mut self, phase: u32, why: Ended) {
        self.budget.end(phase, why);
        self.phase = phase;
        self.ended = Some((why, self.until(), self.up_to()));
    }

    /// Until when the phase may go on that runs behind an ended one.
    fn until(&self) -> Instant {
        let (part, most) = GRACE;
        let grace = self.time.map_or(most, |t| (t / part).min(most));
        Instant::now() + grace
    }

    /// The memory at which it ends.
    fn up_to(&self) -> Option<u64> {
        let limit = self.memory?;
        let more = limit / MORE_MEMORY;
        Some(used_memory()?.max(limit).saturating_add(more))
    }
}

#[expect(
    clippy::exit,
    reason = "three times Ctrl-C: whoever presses it wants no report"
)]
fn leave() {
    std::process::exit(Exit::Interrupted as i32);
}

/// The bytes behind a name in one of the lists that Linux keeps under /proc.
fn listed(file: &str, name: &str) -> Option<u64> {
    let text = fs::read_to_string(file).ok()?;
    let line = text.lines().find_map(|l| l.strip_prefix(name))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kib.checked_mul(1 << 10)
}

/// What this process has taken, the mapped dump not counted.
fn used_memory() -> Option<u64> {
    listed("/proc/self/status", "RssAnon:")
}

/// What the machine has free, or the container where that is less.
pub(crate) fn free_memory() -> Option<u64> {
    let machine = listed("/proc/meminfo", "MemAvailable:")?;
    let number = |name: &str| -> Option<u64> {
        let text = fs::read_to_string(format!("/sys/fs/cgroup/{name}")).ok()?;
        text.trim().parse().ok()
    };
    let container = number("memory.max").map(|most| {
        let used = number("memory.current").unwrap_or(0);
        most.saturating_sub(used)
    });
    Some(machine.min(container.unwrap_or(u64::MAX)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn watch(time: u64, memory: Option<u64>) -> Watch {
        let budget = Budget::new();
        budget.begin("one");
        Watch {
            budget,
            start: Instant::now(),
            time: Some(Duration::from_millis(time)),
            memory,
            presses: 0,
            ended: None,
            phase: 0,
        }
    }

    #[test]
    fn time_ends_a_phase_and_leaves_the_next_a_little() {
        let mut watch = watch(0, None);
        watch.look();
        assert!(watch.budget.is_over());
        watch.budget.begin("two");
        assert!(!watch.budget.is_over());
        watch.look();
        watch.look();
        assert!(watch.budget.is_over(), "a twentieth of nothing");
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn memory_ends_a_phase() {
        let mut poor = watch(60_000, Some(1));
        poor.look();
        assert!(poor.budget.is_over());
        let mut rich = watch(60_000, free_memory());
        rich.look();
        assert!(!rich.budget.is_over());
    }

    #[test]
    fn who_presses_twice_waits_no_more() {
        let mut watch = watch(60_000, None);
        watch.press();
        assert!(watch.budget.is_over());
        watch.budget.begin("two");
        assert!(!watch.budget.is_over());
        watch.press();
        watch.budget.begin("three");
        assert!(watch.budget.is_over());
    }
}
