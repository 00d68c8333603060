//! Since when something waits, from the best witness that the dump holds.

use crate::facts::RequestFacts;
use crate::facts::Timer;
use crate::paths::{Analysis, Path};
use crate::process::clock::{self, Clock};
use asynctriage_async_graph::Class;
use asynctriage_report::{LeafKind, Waiting};

/// What tells since when a chain waits, the best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Witness {
    /// The time limit of HttpClient, which starts with the call.
    HttpLimit,
    /// The timer that the chain waits for, or that limits its wait.
    Timer,
    /// The request that it serves.
    Request,
    /// A Stopwatch that one of its methods keeps running.
    Stopwatch,
}

impl Witness {
    fn text(self) -> &'static str {
        match self {
            Self::HttpLimit => "start of the time limit of the HttpClient call",
            Self::Timer => "start of the timer that ends the wait",
            Self::Request => "start of the request, so the wait itself may be younger",
            Self::Stopwatch => "start of a Stopwatch that one of the waiting methods keeps",
        }
    }

    /// Whether it speaks of the wait itself.
    pub(crate) fn is_own(self) -> bool {
        matches!(self, Self::HttpLimit | Self::Timer)
    }
}

/// For how long, and who says so.
pub(crate) type Since = (Witness, f64);

impl Analysis<'_, '_> {
    /// For how long a path has waited; `None` when nothing tells.
    pub(crate) fn since(
        &self,
        path: &Path,
        leaf: LeafKind,
        limit: Option<Timer>,
        request: Option<&RequestFacts>,
    ) -> Option<Since> {
        let timer = limit.filter(Timer::runs);
        let timer = timer.and_then(|t| self.clock.since_ticks(t.start));
        let witness = if is_http(leaf) {
            Witness::HttpLimit
        } else {
            Witness::Timer
        };
        timer
            .map(|s| (witness, s))
            .or_else(|| Some((Witness::Request, self.request_seconds(request?)?.0)))
            .or_else(|| Some((Witness::Stopwatch, self.stopwatch_seconds(path)?)))
            // what is younger than the clock is no wait that it could measure
            .filter(|(_, seconds)| !self.clock.is_floor || *seconds >= 1.0)
    }

    /// For how long a request is served, and what tells it.
    pub(crate) fn request_seconds(&self, request: &RequestFacts) -> Option<(f64, &'static str)> {
        let activity = request.started.and_then(|t| self.clock.since_utc(t));
        let hosting = || self.clock.since_timestamp(request.timestamp?);
        activity
            .map(|s| (s, "start of the request's Activity"))
            .or_else(|| Some((hosting()?, "start time that the hosting layer took")))
    }

    /// The innermost running Stopwatch among the variables of the program's methods.
    fn stopwatch_seconds(&self, path: &Path) -> Option<f64> {
        self.kinds().stopwatches.then_some(())?;
        let mut own = self.steps(path).filter(|s| !self.is_framework_step(*s));
        own.find_map(|step| {
            let is_machine = self
                .graph
                .object(step.node)
                .is_some_and(|n| !matches!(n.class, Class::Combinator(_)));
            let variables = is_machine.then(|| self.captured(step))?;
            variables.into_iter().find_map(|v| {
                let name = self.rt.object_type_name(v)?;
                let runs = &*name == "System.Diagnostics.Stopwatch"
                    && self.rt.field_u8(v, "_isRunning") == Some(1);
                let start = runs.then(|| self.rt.field_u64(v, "_startTimeStamp"))??;
                self.clock.since_timestamp(start)
            })
        })
    }
}

/// Whether a wait is a call of HttpClient.
pub(crate) fn is_http(kind: LeafKind) -> bool {
    matches!(
        kind,
        LeafKind::HttpResponse
            | LeafKind::HttpConnectionPool
            | LeafKind::HttpBody
            | LeafKind::HttpRequestBody
    )
}

/// The waits of a group, by the best witness that any of its chains has.
pub(crate) fn waiting(all: &[Since], clock: &Clock) -> Option<Waiting> {
    let best = all.iter().map(|(w, _)| *w).min()?;
    let seconds = all.iter().filter(|(w, _)| *w == best).map(|(_, s)| *s);
    let how = format!("{}, against {}", best.text(), clock.how);
    clock::waiting(seconds.collect(), &how)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_witness_speaks_for_the_group() {
        let all = [
            (Witness::Request, 9.0),
            (Witness::Timer, 2.0),
            (Witness::Timer, 4.0),
        ];
        let told = waiting(&all, &Clock::default()).unwrap();
        assert_eq!((told.min, told.max), (2.0, 4.0));
        assert!(told.how.starts_with("start of the timer"));
        assert_eq!(waiting(&[], &Clock::default()), None);
    }
}
