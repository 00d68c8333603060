//! What the dump says of itself.

use super::Clock;
use super::private::Values;
use asynctriage_dump::{Container, Dump, Os};
use asynctriage_report as report;

/// The dump file.
pub(crate) fn facts(dump: &Dump, clock: &Clock, values: Values) -> report::Dump {
    let stated = dump.process.taken.map(rfc3339);
    let is_stated = stated.is_some();
    let time = stated.or_else(|| clock.unix_ms().map(rfc3339_ms));
    report::Dump {
        format: match dump.container {
            Container::Minidump => report::DumpFormat::Minidump,
            _ => report::DumpFormat::ElfCore,
        },
        kind: dump.kind.to_string(),
        truncated: dump.truncated.is_some(),
        fault: dump
            .compression
            .and_then(|packed| packed.fault())
            .map(str::to_owned),
        bytes: dump.file_len,
        time_source: time.as_ref().map(|_| clock.how.to_owned()),
        time_is_floor: time.is_some() && !is_stated && clock.is_floor,
        time,
        command_line: dump
            .process
            .arguments
            .as_deref()
            .map(|line| values.command_line(line)),
        process_id: dump.process.pid.map(u64::from),
        ..report::Dump::default()
    }
}

/// The operating system, with musl told from glibc: its loader is called after it.
pub(crate) fn os(dump: &Dump) -> &'static str {
    let musl = || {
        dump.files
            .iter()
            .any(|f| f.file_name().starts_with("ld-musl-"))
    };
    match dump.target.os {
        Os::Windows => "windows",
        Os::Linux if musl() => "linux-musl",
        Os::Linux => "linux",
    }
}

/// Seconds since 1970 as a date and time in UTC.
#[must_use]
pub fn rfc3339(seconds: u64) -> String {
    let (day, second) = (seconds / 86_400, seconds % 86_400);
    let (year, month, day) = civil(day);
    format!(
        "{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}Z",
        second / 3600,
        second / 60 % 60,
        second % 60
    )
}

/// The same with milliseconds, from those since 1970.
pub(crate) fn rfc3339_ms(ms: u64) -> String {
    let whole = rfc3339(ms / 1000);
    format!("{}.{:03}Z", whole.trim_end_matches('Z'), ms % 1000)
}

/// Seconds since 1970 of such a text, for times that the report itself has written.
pub(crate) fn seconds(text: &str) -> Option<f64> {
    let (date, time) = text.strip_suffix('Z')?.split_once('T')?;
    let mut parts = date.split('-').map(str::parse::<u64>);
    let (year, month, day) = (
        parts.next()?.ok()?,
        parts.next()?.ok()?,
        parts.next()?.ok()?,
    );
    // the day number is found by halving: `civil` is the only calendar here
    let (mut low, mut high) = (0_u64, 4_000_000_u64);
    while low < high {
        let middle = low.midpoint(high);
        if civil(middle) < (year, month, day) {
            low = middle.saturating_add(1);
        } else {
            high = middle;
        }
    }
    (civil(low) == (year, month, day)).then_some(())?;
    let mut parts = time.split(':').map(str::parse::<f64>);
    let (hour, minute, second) = (
        parts.next()?.ok()?,
        parts.next()?.ok()?,
        parts.next()?.ok()?,
    );
    let days = f64::from(u32::try_from(low).ok()?);
    Some(days * 86_400.0 + hour * 3600.0 + minute * 60.0 + second)
}

/// Year, month and day of a day since 1970-01-01. Years begin in March, so that the leap day comes last.
fn civil(days: u64) -> (u64, u64, u64) {
    // 719,468 days lie between 0000-03-01 and 1970-01-01; 146,097 days make 400 years
    let days = days.saturating_add(719_468);
    let (era, of_era) = (days / 146_097, days % 146_097);
    let leaps = (of_era / 1460)
        .saturating_add(of_era / 146_096)
        .saturating_sub(of_era / 36_524);
    let year_of_era = of_era.saturating_sub(leaps) / 365;
    let before = year_of_era
        .saturating_mul(365)
        .saturating_add(year_of_era / 4)
        .saturating_sub(year_of_era / 100);
    let of_year = of_era.saturating_sub(before);
    let march = of_year.saturating_mul(5).saturating_add(2) / 153;
    let day = of_year
        .saturating_sub(march.saturating_mul(153).saturating_add(2) / 5)
        .saturating_add(1);
    let month = if march < 10 {
        march.saturating_add(3)
    } else {
        march.saturating_sub(9)
    };
    let year = era
        .saturating_mul(400)
        .saturating_add(year_of_era)
        .saturating_add(u64::from(month <= 2));
    (year, month, day)
}

#[cfg(test)]
mod tests {
    use super::{rfc3339, rfc3339_ms, seconds};

    #[test]
    fn days_are_counted_through_leap_years() {
        assert_eq!(rfc3339(0), "1970-01-01T00:00:00Z");
        assert_eq!(rfc3339(951_782_399), "2000-02-28T23:59:59Z");
        assert_eq!(rfc3339(951_782_400), "2000-02-29T00:00:00Z");
        assert_eq!(rfc3339(1_795_967_142), "2026-11-29T15:45:42Z");
        assert_eq!(rfc3339(4_107_542_400), "2100-03-01T00:00:00Z");
        assert_eq!(rfc3339_ms(951_782_400_007), "2000-02-29T00:00:00.007Z");
        assert_eq!(seconds("2026-11-29T15:45:42.500Z"), Some(1_795_967_142.5));
        assert_eq!(seconds("2026-02-30T15:45:42Z"), None);
        assert_eq!(seconds("yesterday"), None);
    }
}
