//! Timers: when they were started, and when they are due.
//!
//! `Task.Delay`, `PeriodicTimer`, `CancelAfter` and the time limit of `WaitAsync` all hold a `TimerQueueTimer`, directly
//! or behind a `Timer` and its `TimerHolder` (8.0 to 11.0).

use super::{Analysis, Path};
use crate::facts::Timer;
use asynctriage_async_graph::{Class, Combinator};
use asynctriage_dump::Addr;
use asynctriage_report::duration;

/// `Timeout.Infinite` in `_dueTime` and `_period`.
const NEVER: u32 = u32::MAX;
/// Objects between a timer's user and the timer itself.
const MAX_STEPS: usize = 3;
/// Due times nearer to the present than this are neither ahead nor past: the clock is not more exact.
const EXACT: f64 = 2.5;

impl Analysis<'_, '_> {
    /// The timer that an object holds in its field `_timer`.
    pub(crate) fn timer_of(&self, holder: Addr) -> Option<Timer> {
        let mut at = self.rt.reference(holder, "_timer")?;
        for _ in 0..MAX_STEPS {
            if let Some(timer) = self.timer_at(at) {
                return Some(timer);
            }
            at = self.rt.reference(at, "_timer")?;
        }
        None
    }

    /// Reads a `TimerQueueTimer`; `None` for anything else.
    pub(crate) fn timer_at(&self, at: Addr) -> Option<Timer> {
        let times = |ms: &u32| *ms != NEVER;
        Some(Timer {
            at,
            due: Some(self.rt.field_u32(at, "_dueTime")?).filter(times),
            start: self.rt.field_u64(at, "_startTicks")?,
            period: self.rt.field_u32(at, "_period").filter(times),
        })
    }

    /// The time limit that would end the wait at the bottom of a path: that of a `WaitAsync` in it, else that of the
    /// HttpClient call.
    pub(crate) fn time_limit(&self, path: &Path, calls_http: bool) -> Option<Timer> {
        let nodes = path.frames.iter().filter_map(|id| self.graph.object(*id));
        let limited = nodes.filter(|n| n.class == Class::Combinator(Combinator::WaitAsync));
        limited
            .filter_map(|n| self.timer_of(n.addr))
            .find(|t| t.due.is_some())
            .or_else(|| calls_http.then(|| self.http_limit(path))?)
    }

    /// `HttpClient.Timeout` starts with the call, in a source of cancellation that .NET's own methods keep.
    fn http_limit(&self, path: &Path) -> Option<Timer> {
        let mut frames = self.steps(path).filter(|s| self.is_framework_step(*s));
        frames.find_map(|step| {
            let mut variables = self.captured(step).into_iter();
            variables.find_map(|v| {
                let name = self.rt.object_type_name(v)?;
                name.starts_with("System.Threading.CancellationTokenSource")
                    .then(|| self.timer_of(v))?
                    .filter(|t| t.due.is_some())
            })
        })
    }

    /// Seconds until a timer fires; below 0 when it should have fired.
    pub(crate) fn due_in(&self, timer: Timer) -> Option<f64> {
        timer.runs().then_some(())?;
        self.clock
            .until_ticks(timer.start.saturating_add(u64::from(timer.due?)))
    }
}

/// `due in 12 s`, `due in 3.0 s to 12 s`, `overdue by 40 s`; nothing for no timers. By a clock that may be late, timers
/// are due earlier than it says.
pub(crate) fn due_text(seconds: &[f64], is_floor: bool) -> Option<String> {
    let first = seconds.iter().copied().min_by(f64::total_cmp)?;
    let last = seconds.iter().copied().max_by(f64::total_cmp)?;
    let span = |a: f64, b: f64| match (duration(a), duration(b)) {
        (a, b) if a == b => a,
        (a, b) => format!("{a} to {b}"),
    };
    Some(if last < -EXACT {
        format!("overdue by {}", span(-last, -first))
    } else if first < -EXACT {
        let late = seconds.iter().filter(|s| **s < -EXACT).count();
        format!(
            "{late} of {} overdue, by up to {}, the last due in {}",
            seconds.len(),
            duration(-first),
            duration(last)
        )
    } else if last < EXACT {
        "due now".to_owned()
    } else {
        let most = if is_floor { "at most " } else { "" };
        format!("due in {most}{}", span(first.max(0.0), last))
    })
}

#[cfg(test)]
mod tests {
    use super::due_text;

    #[test]
    fn due_times_are_told_as_a_span() {
        assert_eq!(due_text(&[], false), None);
        assert_eq!(due_text(&[12.0], false).as_deref(), Some("due in 12 s"));
        assert_eq!(
            due_text(&[12.0], true).as_deref(),
            Some("due in at most 12 s")
        );
        assert_eq!(
            due_text(&[12.0, 3.0], false).as_deref(),
            Some("due in 3.0 s to 12 s")
        );
        assert_eq!(due_text(&[-1.0, 0.5], false).as_deref(), Some("due now"));
        assert_eq!(
            due_text(&[-40.0], false).as_deref(),
            Some("overdue by 40 s")
        );
        assert_eq!(
            due_text(&[-40.0, 20.0], false).as_deref(),
            Some("1 of 2 overdue, by up to 40 s, the last due in 20 s")
        );
    }
}
