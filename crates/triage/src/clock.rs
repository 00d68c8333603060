//! What time it is in the dump, and since when something waits.
//!
//! A core has no time of its own. Kestrel keeps the text of its `Date:` header fresh once a second on a thread that does
//! not depend on the pool; the timer queue keeps one pair of tick count and time from its start.

use crate::analysis::Analysis;
use asynctriage_async_graph::{AsyncGraph, Helper};
use asynctriage_clr::Runtime;
use asynctriage_dump::Addr;
use asynctriage_report::Waiting;

/// Ticks of 100 ns.
const PER_SECOND: u64 = 10_000_000;
const PER_MS: u64 = 10_000;
/// Days from year 1 to 1970, both on January 1.
const DAYS_TO_1970: u64 = 719_162;
/// The upper two bits of a DateTime say which kind of time it is.
const TICKS: u64 = (1 << 62) - 1;
/// Longer waits are not believed: a torn word is more likely.
const MAX_WAIT: u64 = 10 * 365 * 86_400 * 1000;

/// The moment of the dump.
#[derive(Clone, Debug, Default)]
pub(crate) struct Clock {
    /// UTC in ticks of 100 ns since year 1.
    pub(crate) utc: Option<u64>,
    /// `Environment.TickCount64`, in ms.
    ticks: Option<u64>,
    /// Where it was read.
    pub(crate) how: &'static str,
}

impl Clock {
    pub(crate) fn read(rt: &Runtime<'_>, graph: &AsyncGraph) -> Self {
        let taken = rt.dump().process.taken;
        let (utc, how) = match taken {
            Some(seconds) => (
                Some(
                    DAYS_TO_1970
                        .saturating_mul(86_400)
                        .saturating_add(seconds)
                        .saturating_mul(PER_SECOND),
                ),
                "the time that the dump states",
            ),
            None => (
                date_header(rt, graph),
                "Kestrel's Date header, which is at most about two seconds old",
            ),
        };
        Self {
            ticks: utc.and_then(|now| {
                let (ticks, at) = tick_map(rt)?;
                ticks.checked_add(now.checked_sub(at)?.checked_div(PER_MS)?)
            }),
            utc,
            how,
        }
    }

    /// Seconds since a UTC time, as DateTime holds it.
    pub(crate) fn since_utc(&self, start: u64) -> Option<f64> {
        let ms = self.utc?.checked_sub(start & TICKS)?.checked_div(PER_MS)?;
        seconds(ms)
    }

    /// Seconds since a tick count; the header may be older than the start by its own age.
    pub(crate) fn since_ticks(&self, start: u64) -> Option<f64> {
        seconds(self.ticks?.saturating_sub(start))
    }
}

fn seconds(ms: u64) -> Option<f64> {
    let small = u32::try_from(ms).ok().filter(|_| ms < MAX_WAIT)?;
    Some(f64::from(small) / 1000.0)
}

/// The newest of the cached headers.
fn date_header(rt: &Runtime<'_>, graph: &AsyncGraph) -> Option<u64> {
    let managers = graph.helpers(Helper::DateHeader).iter();
    let texts = managers.filter_map(|m| rt.field_text(rt.reference(*m, "_dateValues")?, "String"));
    texts.filter_map(|t| rfc1123(&t)).max()
}

/// `TimerQueue.s_tickCountToTimeMap`: tick count and UTC at the first timer of the process (8.0 to 11.0).
fn tick_map(rt: &Runtime<'_>) -> Option<(u64, u64)> {
    let queue = rt.core_type("System.Threading", "TimerQueue")?;
    let pair = rt.static_addr(queue, "s_tickCountToTimeMap")?;
    let (ticks, utc) = (rt.memory().u64(pair)?, rt.memory().u64(pair + 8)? & TICKS);
    (utc != 0).then_some((ticks, utc))
}

/// `Sun, 29 Nov 2026 15:45:42 GMT` in ticks.
fn rfc1123(text: &str) -> Option<u64> {
    let mut words = text.split_once(", ")?.1.split(' ');
    let day: u64 = words.next()?.parse().ok()?;
    let name = words.next()?;
    let months = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ];
    let month = months.iter().position(|m| *m == name)? as u64;
    let year: u64 = words
        .next()?
        .parse()
        .ok()
        .filter(|y| (1..=9999).contains(y))?;
    let mut time = words.next()?.split(':');
    let mut number = |limit: u64| time.next()?.parse::<u64>().ok().filter(|n| *n < limit);
    let (hour, minute, second) = (number(24)?, number(60)?, number(61)?);
    let days = days_before(year, month)?.checked_add(day.checked_sub(1)?)?;
    let seconds = days
        .checked_mul(86_400)?
        .checked_add(hour.checked_mul(3600)?)?
        .checked_add(minute.checked_mul(60)?)?
        .checked_add(second)?;
    seconds.checked_mul(PER_SECOND)
}

/// Days from year 1 to the first of a month, which counts from 0.
fn days_before(year: u64, month: u64) -> Option<u64> {
    let past = year.checked_sub(1)?;
    let leaps = (past / 4)
        .checked_sub(past / 100)?
        .checked_add(past / 400)?;
    let leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let lengths = [
        31,
        if leap { 29 } else { 28 },
        31,
        30,
        31,
        30,
        31,
        31,
        30,
        31,
        30,
        31,
    ];
    let months: u64 = lengths.iter().take(usize::try_from(month).ok()?).sum();
    past.checked_mul(365)?
        .checked_add(leaps)?
        .checked_add(months)
}

impl Analysis<'_, '_> {
    /// Since when a call of HttpClient is under way: its time limit starts with it.
    pub(crate) fn http_call_seconds(&self, variables: &[Addr]) -> Option<f64> {
        let timer = variables.iter().find_map(|v| {
            let name = self.rt.object_type_name(*v)?;
            name.starts_with("System.Threading.CancellationTokenSource")
                .then(|| self.rt.reference(*v, "_timer"))?
        })?;
        self.clock
            .since_ticks(self.rt.field_u64(timer, "_startTicks")?)
    }
}

/// Shortest, middle and longest of some waits.
pub(crate) fn waiting(mut seconds: Vec<f64>, how: &str) -> Option<Waiting> {
    seconds.sort_unstable_by(f64::total_cmp);
    Some(Waiting {
        min: *seconds.first()?,
        median: *seconds.get(seconds.len() / 2)?,
        max: *seconds.last()?,
        how: how.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_ticks_since_year_one() {
        // DateTime.UnixEpoch.Ticks
        assert_eq!(
            rfc1123("Thu, 01 Jan 1970 00:00:00 GMT"),
            Some(621_355_968_000_000_000)
        );
        assert_eq!(
            rfc1123("Thu, 29 Feb 2024 12:30:15 GMT"),
            Some(638_448_066_150_000_000)
        );
        assert_eq!(rfc1123("Thu, 32 Foo 2024 12:30:15 GMT"), None);
        assert_eq!(rfc1123("yesterday"), None);
    }

    #[test]
    fn waits_are_told_by_the_middle_one() {
        let w = waiting(vec![3.0, 1.0, 2.0], "x").unwrap();
        assert_eq!((w.min, w.median, w.max), (1.0, 2.0, 3.0));
        assert_eq!(waiting(Vec::new(), "x"), None);
    }

    #[test]
    fn a_clock_without_anything_tells_nothing() {
        let clock = Clock::default();
        assert_eq!(clock.since_utc(1), None);
        assert_eq!(clock.since_ticks(1), None);
        let clock = Clock {
            ticks: Some(5000),
            ..Clock::default()
        };
        assert_eq!(clock.since_ticks(2500), Some(2.5));
        assert_eq!(clock.since_ticks(6000), Some(0.0), "the header was older");
    }
}
