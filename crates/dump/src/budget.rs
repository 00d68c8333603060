//! How much an analysis may still take. Whoever runs it keeps one end and ends it: after some time, over some memory, when
//! somebody asks. The long loops keep the other and look at it; what they leave is told.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

/// Why an analysis is to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Ended {
    /// It took its time.
    Time,
    /// It took its memory.
    Memory,
    /// Somebody asked for it.
    Asked,
}

impl fmt::Display for Ended {
    /// As it goes behind "ended".
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Time => "after the time it was given",
            Self::Memory => "at the memory it was given",
            Self::Asked => "when it was asked to end",
        })
    }
}

/// A loop that was left before its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Cut {
    /// What it looks at, in the plural.
    pub what: &'static str,
    /// How many of them it did not look at, when that is known.
    pub left: Option<u64>,
    /// Why it was left.
    pub why: Ended,
}

/// Bits of the state that say why; the number of the phase stands above them.
const WHY: u32 = 3;
const PHASE: u32 = WHY.count_ones();

#[derive(Debug, Default)]
struct Shared {
    /// The phase, and why it is to end.
    state: AtomicU32,
    /// Whether every further phase is to end, too.
    for_good: AtomicBool,
    /// Whether any loop was left.
    is_cut: AtomicBool,
    /// What the phase is called.
    name: Mutex<&'static str>,
    /// A phase that ends as soon as it begins; 0 for none.
    ends_at: AtomicU32,
}

/// What an analysis may still take. Clones share everything.
///
/// An analysis has phases. [`end`](Self::end) ends the one that runs, so that those behind it still make something of what
/// is known; whoever ends one watches over the next. Looking costs one load.
#[derive(Clone, Debug, Default)]
pub struct Budget {
    shared: Arc<Shared>,
    cuts: Arc<Mutex<Vec<Cut>>>,
}

impl Budget {
    /// One that ends nothing until it is told.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The same for another file: what is left of one is not told of the other.
    #[must_use]
    pub fn of_another_file(&self) -> Self {
        Self {
            shared: Arc::clone(&self.shared),
            cuts: Arc::default(),
        }
    }

    /// Begins the next phase.
    pub fn begin(&self, name: &'static str) {
        let shared = &self.shared;
        if let Ok(mut known) = shared.name.lock() {
            *known = name;
        }
        let next = |state: u32| {
            let phase = (state >> PHASE).wrapping_add(1) << PHASE;
            // what ends for good goes on ending
            let why = if shared.for_good.load(Ordering::SeqCst) {
                state & WHY
            } else {
                0
            };
            Some(phase | why)
        };
        let (set, fetch) = (Ordering::SeqCst, Ordering::SeqCst);
        // the function never declines
        let _ = shared.state.fetch_update(set, fetch, next);
        if shared.ends_at.load(Ordering::SeqCst) == self.phase() {
            self.end(self.phase(), Ended::Asked);
        }
    }

    /// What the phase that runs is called, for a sign of life; empty before the first one.
    #[must_use]
    pub fn phase_name(&self) -> &'static str {
        self.shared
            .name
            .lock()
            .map(|name| *name)
            .unwrap_or_default()
    }

    /// Ends a phase as soon as it begins; the first one is 1.
    pub fn end_at(&self, phase: u32) {
        self.shared.ends_at.store(phase, Ordering::SeqCst);
    }

    /// The number of the phase that runs.
    #[must_use]
    pub fn phase(&self) -> u32 {
        self.shared.state.load(Ordering::SeqCst) >> PHASE
    }

    /// Ends a phase; nothing when another one runs by now.
    pub fn end(&self, phase: u32, why: Ended) {
        let state = phase << PHASE;
        let ended = state | code(why);
        let (set, fetch) = (Ordering::SeqCst, Ordering::SeqCst);
        // one that has ended already has its reason
        let _ = self.shared.state.compare_exchange(state, ended, set, fetch);
    }

    /// Ends this phase and all that follow.
    pub fn end_for_good(&self, why: Ended) {
        self.shared.for_good.store(true, Ordering::SeqCst);
        self.shared.state.fetch_or(code(why), Ordering::SeqCst);
    }

    /// Whether the phase that runs is to end.
    #[must_use]
    #[inline]
    pub fn is_over(&self) -> bool {
        self.shared.state.load(Ordering::Relaxed) & WHY != 0
    }

    /// Whether a loop has to be left; then it is noted that it was. `left` is asked for how much it leaves.
    #[must_use]
    #[inline]
    pub fn leaves(&self, what: &'static str, left: impl FnOnce() -> Option<u64>) -> bool {
        let is_over = self.is_over();
        if is_over {
            self.note(what, left());
        }
        is_over
    }

    #[cold]
    fn note(&self, what: &'static str, left: Option<u64>) {
        self.shared.is_cut.store(true, Ordering::Relaxed);
        let why = reason(self.shared.state.load(Ordering::Relaxed));
        // nobody panics while holding it
        let Ok(mut cuts) = self.cuts.lock() else {
            return;
        };
        match cuts.iter_mut().find(|c| c.what == what) {
            Some(cut) => {
                cut.left = cut
                    .left
                    .zip(left)
                    .map(|(mine, more)| mine.saturating_add(more));
            }
            None => cuts.push(Cut { what, left, why }),
        }
    }

    /// The items of a loop, until it is to end; those that are left are noted as `what`.
    pub fn each<I: IntoIterator>(
        &self,
        what: &'static str,
        items: I,
    ) -> impl Iterator<Item = I::Item> + use<'_, I> {
        let mut items = items.into_iter();
        std::iter::from_fn(move || {
            if !self.is_over() {
                return items.next();
            }
            let left = items.size_hint();
            let left = (left.1 == Some(left.0)).then_some(left.0 as u64);
            if left != Some(0) {
                self.note(what, left);
            }
            None
        })
    }

    /// The loops that were left.
    #[must_use]
    pub fn cuts(&self) -> Vec<Cut> {
        self.cuts.lock().map(|c| c.clone()).unwrap_or_default()
    }

    /// Whether a loop was left, over this file or another.
    #[must_use]
    pub fn is_cut(&self) -> bool {
        self.shared.is_cut.load(Ordering::Relaxed)
    }
}

fn code(why: Ended) -> u32 {
    match why {
        Ended::Time => 1,
        Ended::Memory => 2,
        Ended::Asked => 3,
    }
}

fn reason(state: u32) -> Ended {
    match state & WHY {
        1 => Ended::Time,
        2 => Ended::Memory,
        _ => Ended::Asked,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_phase_ends_and_the_next_one_runs() {
        let budget = Budget::new();
        budget.begin("a phase");
        let first = budget.phase();
        assert_eq!(budget.each("items", [1, 2, 3]).count(), 3);
        budget.end(first, Ended::Time);
        assert_eq!(budget.each("items", [1, 2, 3]).count(), 0);
        budget.begin("a phase");
        assert!(!budget.is_over());
        budget.end(first, Ended::Memory);
        assert!(!budget.is_over(), "it has begun since");
        assert_eq!(budget.phase_name(), "a phase");
        let cut = Cut {
            what: "items",
            left: Some(3),
            why: Ended::Time,
        };
        assert_eq!(budget.cuts(), [cut]);
    }

    #[test]
    fn what_ends_for_good_ends_every_phase() {
        let budget = Budget::new();
        budget.end_for_good(Ended::Asked);
        budget.begin("a phase");
        assert!(budget.is_over());
        assert!(budget.leaves("words", || None));
        assert!(budget.leaves("words", || Some(2)));
        assert_eq!(budget.cuts()[0].left, None, "one of them is not known");
        assert!(budget.of_another_file().cuts().is_empty() && budget.of_another_file().is_cut());
    }

    #[test]
    fn a_loop_that_is_at_its_end_is_not_cut() {
        let budget = Budget::new();
        let mut items = budget.each("items", [1]);
        assert_eq!(items.next(), Some(1));
        budget.end_for_good(Ended::Time);
        assert_eq!(items.next(), None);
        assert!(!budget.is_cut());
    }
}
