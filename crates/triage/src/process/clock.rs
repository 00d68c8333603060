//! What time it is in the dump.
//!
//! A core has no time of its own. Kestrel keeps the text of its `Date:` header fresh once a second on a thread that does
//! not depend on the pool, and notes the time in each connection; the timer queue keeps one pair of tick count and time
//! from its start; every timer tells a tick count that has passed.

use asynctriage_async_graph::{AsyncGraph, Helper};
use asynctriage_clr::Runtime;
use asynctriage_dump::Os;
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
/// Nor tick counts of a machine that has run longer.
const MAX_TICKS: u64 = 100 * 365 * 86_400 * 1000;
/// Milliseconds by which a timestamp may be newer than the clock.
const MAX_AHEAD: u64 = 3000;

/// Nanoseconds in a tick of 1 ms.
const NS_PER_MS: u64 = 1_000_000;

/// The moment of the dump.
#[derive(Clone, Debug, Default)]
pub(crate) struct Clock {
    /// UTC in ticks of 100 ns since year 1.
    pub(crate) utc: Option<u64>,
    /// `Environment.TickCount64`, in ms.
    ticks: Option<u64>,
    /// Whether timestamps are nanoseconds on the scale of the tick count: everywhere but on Windows.
    timestamps: bool,
    /// Whether the moment is only known to be no earlier.
    pub(crate) is_floor: bool,
    /// Where it was read.
    pub(crate) how: &'static str,
}

impl Clock {
    /// The latest moment that anything in the dump knows of.
    pub(crate) fn read(rt: &Runtime<'_>, graph: &AsyncGraph) -> Self {
        let unix = rt.dump().target.os != Os::Windows;
        let map = tick_map(rt);
        let stated = stated_time(rt, graph);
        let mapped = stated.and_then(|(now, how)| {
            let (ticks, at) = map?;
            let passed = now.checked_sub(at)?.checked_div(PER_MS)?;
            Some((ticks.checked_add(passed)?, how))
        });
        let heartbeat = heartbeat(rt, graph)
            .filter(|_| unix)
            .map(|t| (t, "Kestrel's heartbeat, at most about a second old"));
        let fresh = mapped.into_iter().chain(heartbeat).max_by_key(|(t, _)| *t);
        let newest = newest_timer(rt, graph);
        let ticks = fresh.map(|(t, _)| t).into_iter().chain(newest).max();
        let utc = ticks.zip(map).and_then(|(now, (ticks, at))| {
            at.checked_add(now.checked_sub(ticks)?.checked_mul(PER_MS)?)
        });
        Self {
            ticks,
            timestamps: unix,
            is_floor: fresh.is_none(),
            utc: stated.map(|(t, _)| t).into_iter().chain(utc).max(),
            how: fresh.or(stated).map_or(
                "the newest timer of the dump, which may be older than the dump",
                |(_, how)| how,
            ),
        }
    }

    /// The moment in milliseconds since 1970.
    pub(crate) fn unix_ms(&self) -> Option<u64> {
        let before = DAYS_TO_1970.saturating_mul(86_400 * 1000);
        self.utc?.checked_div(PER_MS)?.checked_sub(before)
    }

    /// Seconds since a UTC time, as DateTime holds it.
    pub(crate) fn since_utc(&self, start: u64) -> Option<f64> {
        let ms = self.utc?.checked_sub(start & TICKS)?.checked_div(PER_MS)?;
        seconds(ms)
    }

    /// Seconds since a tick count; the clock may be older than the start by its own age.
    pub(crate) fn since_ticks(&self, start: u64) -> Option<f64> {
        seconds(self.ticks?.saturating_sub(start))
    }

    /// Seconds since a `Stopwatch` timestamp. On Windows those have a scale of their own.
    pub(crate) fn since_timestamp(&self, start: u64) -> Option<f64> {
        let start = start.checked_div(NS_PER_MS).filter(|_| self.timestamps)?;
        (start > 0 && start <= self.ticks?.saturating_add(MAX_AHEAD)).then_some(())?;
        self.since_ticks(start)
    }

    /// Seconds until a tick count, below 0 when it has passed.
    pub(crate) fn until_ticks(&self, at: u64) -> Option<f64> {
        let now = self.ticks?;
        seconds(at.saturating_sub(now))
            .filter(|_| at >= now)
            .or_else(|| Some(-seconds(now.saturating_sub(at))?))
    }
}

/// What the dump or a cached header of Kestrel says the time is.
fn stated_time(rt: &Runtime<'_>, graph: &AsyncGraph) -> Option<(u64, &'static str)> {
    if let Some(seconds) = rt.dump().process.taken {
        let utc = DAYS_TO_1970
            .saturating_mul(86_400)
            .saturating_add(seconds)
            .saturating_mul(PER_SECOND);
        return Some((utc, "the time that the dump states"));
    }
    let utc = date_header(rt, graph)?;
    Some((
        utc,
        "Kestrel's Date header, which is at most about two seconds old",
    ))
}

/// Tick count at which Kestrel last looked after its connections, from their timestamps in nanoseconds (8.0 to 11.0).
fn heartbeat(rt: &Runtime<'_>, graph: &AsyncGraph) -> Option<u64> {
    let controls = graph.helpers(Helper::ConnectionTimeouts).iter();
    let stamps = controls.filter_map(|c| rt.field_u64(*c, "_lastTimestamp"));
    stamps.max().filter(|t| *t != 0)?.checked_div(NS_PER_MS)
}

/// The latest tick count at which a timer was started or the queue was looked through.
fn newest_timer(rt: &Runtime<'_>, graph: &AsyncGraph) -> Option<u64> {
    let field = |kind, name| {
        let objects = graph.helpers(kind).iter();
        objects.filter_map(move |o| rt.field_u64(*o, name))
    };
    field(Helper::Timer, "_startTicks")
        .chain(field(Helper::TimerQueue, "_currentTimerStartTicks"))
        .filter(|t| *t < MAX_TICKS)
        .max()
        .filter(|t| *t != 0)
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
        assert_eq!(clock.until_ticks(6000), Some(1.0));
        assert_eq!(clock.until_ticks(4500), Some(-0.5));
        assert_eq!(clock.since_timestamp(4_000_000_000), None, "another scale");
    }

    #[test]
    fn timestamps_count_like_ticks_but_in_nanoseconds() {
        let clock = Clock {
            ticks: Some(5000),
            timestamps: true,
            ..Clock::default()
        };
        assert_eq!(clock.since_timestamp(4_000_000_000), Some(1.0));
        assert_eq!(clock.since_timestamp(0), None, "not taken");
        assert_eq!(clock.since_timestamp(u64::MAX), None);
    }
}
