//! Timers.

use super::object;
use asynctriage_dump::Addr;
use asynctriage_report::Details;
use serde_json::json;

/// A timer in the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Timer {
    /// The `TimerQueueTimer`.
    pub(crate) at: Addr,
    /// `Environment.TickCount64` when it was started, in ms.
    pub(crate) start: u64,
    /// Milliseconds from then until it fires; `None` for never.
    pub(crate) due: Option<u32>,
    /// Milliseconds between later firings; `None` when it fires once.
    pub(crate) period: Option<u32>,
}

impl Timer {
    /// Whether it runs: one that has fired or was stopped keeps no start and is due no more, so it dates nothing.
    pub(crate) fn runs(&self) -> bool {
        self.start > 0 && self.due.is_some()
    }

    /// What the details of a leaf say of the timer that ends it.
    pub(super) fn note(self, details: &mut Details) {
        details.insert("timer".into(), object(self.at));
        details.insert("timer_start_ticks".into(), json!(self.start));
        if let Some(ms) = self.due {
            details.insert("due_ms".into(), json!(ms));
        }
        if let Some(ms) = self.period {
            details.insert("period_ms".into(), json!(ms));
        }
    }
}
