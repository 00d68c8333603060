//! Ticks of a recording as times for people.

use crate::process::dump::rfc3339;
use asynctriage_async_trace::{Clock, Moment};
use asynctriage_nettrace::Header;
use asynctriage_report as report;

/// How ticks become times.
pub(super) struct Times {
    pub(super) clock: Clock,
    /// First and last record, in ticks.
    pub(super) span: Option<(u64, u64)>,
    /// The end of the recording, in ticks: its last record or event of any kind, such as the rundown when it was stopped.
    pub(super) end: Option<u64>,
    header: Header,
}

impl Times {
    pub(super) fn new(
        clock: Clock,
        span: Option<(u64, u64)>,
        last_event: Option<u64>,
        header: Header,
    ) -> Self {
        Self {
            clock,
            span,
            end: last_event.max(span.map(|(_, last)| last)),
            header,
        }
    }

    /// UTC as RFC 3339 with milliseconds, by the profiler's clock records, else by the start of the session.
    pub(super) fn utc(&self, ticks: u64) -> Option<String> {
        let nanos = self
            .clock
            .unix_nanos(ticks)
            .or_else(|| self.header.unix_nanos(ticks))?;
        text(nanos)
    }

    /// Seconds from `ticks` to the end of the recording.
    pub(super) fn until_end(&self, ticks: u64) -> Option<f64> {
        self.clock.seconds(ticks, self.end?).map(|s| s.max(0.0))
    }

    pub(super) fn moment(&self, moment: Moment) -> report::TraceMoment {
        report::TraceMoment {
            ticks: moment.time,
            time: self.utc(moment.time),
            os_thread: moment.os_thread,
            record: record(moment.record),
        }
    }
}

pub(super) fn record(record: asynctriage_async_trace::RecordRef) -> report::TraceRecordRef {
    report::TraceRecordRef {
        batch: report::Address(record.batch),
        index: record.index,
    }
}

/// Years above four digits are no times of a recording.
const YEAR_10000: u64 = 253_402_300_800;

fn text(unix_nanos: i128) -> Option<String> {
    let millis = u64::try_from(unix_nanos.div_euclid(1_000_000)).ok()?;
    let seconds = millis / 1000;
    let text = (seconds < YEAR_10000).then(|| rfc3339(seconds))?;
    let whole = text.strip_suffix('Z')?;
    Some(format!("{whole}.{:03}Z", millis % 1000))
}

#[cfg(test)]
mod tests {
    use super::text;

    #[test]
    fn times_have_milliseconds() {
        assert_eq!(
            text(951_782_399_999_999_999).as_deref(),
            Some("2000-02-28T23:59:59.999Z")
        );
        assert_eq!(text(-1), None);
        assert_eq!(text(i128::MAX), None);
    }
}
