//! What a trace says of itself.

use crate::cursor::Cursor;

/// The version of the container.
///
/// .NET 5 and later write optional tags into metadata ("version 5" in documents) under the numbers of version 4; such
/// files cannot be told apart by their header, and need not be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Version {
    /// `Nettrace` with `!FastSerialization.1`: versions 4 and 5, written by EventPipe. Seen: 4/4, from .NET 10.0.15 and 11.0.0.
    FastSerialization {
        /// Version of the `Trace` object.
        version: u32,
        /// The oldest reader that understands it.
        min_reader: u32,
    },
    /// Version 6 and its minor version, written by `dotnet-trace collect-linux` and by converters.
    Six {
        /// The minor version; all of them can be read.
        minor: u32,
    },
}

impl std::fmt::Display for Version {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::FastSerialization {
                version,
                min_reader,
            } => write!(f, "{version}/{min_reader}"),
            Self::Six { minor } => write!(f, "6.{minor}"),
        }
    }
}

/// A time of day in UTC, as Windows' `SYSTEMTIME` has it. The numbers are those of the file and may make no sense.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DateTime {
    /// Year, 4 digits.
    pub year: u16,
    /// 1 to 12.
    pub month: u16,
    /// 1 to 31.
    pub day: u16,
    /// 0 to 23.
    pub hour: u16,
    /// 0 to 59.
    pub minute: u16,
    /// 0 to 59.
    pub second: u16,
    /// 0 to 999.
    pub millisecond: u16,
}

impl DateTime {
    /// 16 bytes: year, month, day of the week, day, hour, minute, second, millisecond.
    pub(crate) fn parse(cursor: &mut Cursor<'_>) -> Option<Self> {
        let (year, month) = (cursor.u16()?, cursor.u16()?);
        cursor.u16()?;
        Some(Self {
            year,
            month,
            day: cursor.u16()?,
            hour: cursor.u16()?,
            minute: cursor.u16()?,
            second: cursor.u16()?,
            millisecond: cursor.u16()?,
        })
    }

    /// Milliseconds since 1970-01-01; none for what is no date.
    pub fn unix_millis(self) -> Option<i64> {
        let (year, month, day) = (
            i64::from(self.year),
            i64::from(self.month),
            i64::from(self.day),
        );
        let sensible = (1..=12).contains(&month)
            && (1..=31).contains(&day)
            && self.hour < 24
            && self.minute < 60
            && self.second < 61
            && self.millisecond < 1000;
        if !sensible {
            return None;
        }
        let days = days_since_1970(year, month, day)?;
        let hours = days.checked_mul(24)?.checked_add(self.hour.into())?;
        let minutes = hours.checked_mul(60)?.checked_add(self.minute.into())?;
        let seconds = minutes.checked_mul(60)?.checked_add(self.second.into())?;
        seconds
            .checked_mul(1000)?
            .checked_add(self.millisecond.into())
    }
}

/// Days of the Gregorian calendar, counted in years that begin in March, so that the leap day is their last.
fn days_since_1970(year: i64, month: i64, day: i64) -> Option<i64> {
    let (year, month) = match month {
        1 | 2 => (year.checked_sub(1)?, month.checked_add(9)?),
        _ => (year, month.checked_sub(3)?),
    };
    let leap = year
        .div_euclid(4)
        .checked_sub(year.div_euclid(100))?
        .checked_add(year.div_euclid(400))?;
    let of_months = month.checked_mul(153)?.checked_add(2)?.div_euclid(5);
    let days = year
        .checked_mul(365)?
        .checked_add(leap)?
        .checked_add(of_months)?;
    // 719,469 is 1970-01-01 in days since 0000-03-01, with days of the month from 1
    days.checked_add(day)?.checked_sub(719_469)
}

impl std::fmt::Display for DateTime {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self {
            year,
            month,
            day,
            hour,
            minute,
            second,
            millisecond,
        } = self;
        write!(
            f,
            "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{millisecond:03}Z"
        )
    }
}

/// What a trace says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    /// Version of the container.
    pub version: Version,
    /// When the session began, in UTC.
    pub start: DateTime,
    /// The same moment on the clock of the events.
    pub start_ticks: u64,
    /// Ticks in a second; 1,000,000,000 on Linux. Not 0.
    pub frequency: u64,
    /// Size of a pointer of the process, and of an address in a stack: 4 or 8.
    pub pointer_size: u8,
    /// Process id; in version 6 only where the writer says it.
    pub pid: Option<u32>,
    /// Number of processors; in version 6 only where the writer says it.
    pub processors: Option<u32>,
    /// Nanoseconds between samples of the sampling profiler, whether or not it ran.
    pub sampling_rate: Option<u32>,
    /// All that the writer of a version 6 file says in its own words.
    pub properties: Vec<(String, String)>,
}

impl Header {
    /// Nanoseconds between the start of the session and `ticks`; negative before it.
    pub fn nanos_since_start(&self, ticks: u64) -> i128 {
        let ticks = i128::from(ticks).wrapping_sub(self.start_ticks.into());
        ticks
            .wrapping_mul(1_000_000_000)
            .checked_div(self.frequency.into())
            .unwrap_or_default()
    }

    /// Nanoseconds since 1970 of a time stamp; none where [`start`](Header::start) is no date.
    pub fn unix_nanos(&self, ticks: u64) -> Option<i128> {
        let start = i128::from(self.start.unix_millis()?).checked_mul(1_000_000)?;
        start.checked_add(self.nanos_since_start(ticks))
    }
}

/// The 48 bytes of a `Trace` object of versions 4 and 5.
pub(crate) fn parse_4(cursor: &mut Cursor<'_>, version: Version) -> Option<Header> {
    let mut header = common(cursor, version)?;
    header.pid = Some(cursor.u32()?);
    header.processors = Some(cursor.u32()?);
    header.sampling_rate = Some(cursor.u32()?);
    Some(header)
}

/// The trace block of version 6: the same up to the pointer size, then pairs of texts.
pub(crate) fn parse_6(cursor: &mut Cursor<'_>, version: Version) -> Option<Header> {
    let mut header = common(cursor, version)?;
    for _ in 0..cursor.length()? {
        let (key, value) = (cursor.utf8()?, cursor.utf8()?);
        let number = value.parse().ok();
        match key.as_str() {
            "ProcessId" => header.pid = number,
            "HardwareThreadCount" => header.processors = number,
            "ExpectedCPUSamplingRate" => header.sampling_rate = number,
            _ => {}
        }
        header.properties.push((key, value));
    }
    Some(header)
}

fn common(cursor: &mut Cursor<'_>, version: Version) -> Option<Header> {
    Some(Header {
        version,
        start: DateTime::parse(cursor)?,
        start_ticks: cursor.u64()?,
        frequency: cursor.u64()?,
        pointer_size: u8::try_from(cursor.u32()?).ok()?,
        pid: None,
        processors: None,
        sampling_rate: None,
        properties: Vec::new(),
    })
}

/// What of a header makes no sense.
pub(crate) fn complaint(header: &Header) -> Option<&'static str> {
    if header.frequency == 0 || i64::try_from(header.frequency).is_err() {
        return Some("the frequency of its clock is no number of ticks per second");
    }
    (!matches!(header.pointer_size, 4 | 8)).then_some("pointers are neither 4 nor 8 bytes long")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_counted_from_1970() {
        let date = |year, month, day| DateTime {
            year,
            month,
            day,
            ..DateTime::default()
        };
        assert_eq!(date(1970, 1, 1).unix_millis(), Some(0));
        assert_eq!(date(2000, 2, 29).unix_millis(), Some(951_782_400_000));
        assert_eq!(date(2000, 3, 1).unix_millis(), Some(951_868_800_000));
        assert_eq!(date(2026, 11, 29).unix_millis(), Some(1_795_910_400_000));
        assert_eq!(date(2026, 13, 1).unix_millis(), None);
        assert_eq!(date(2026, 11, 29).to_string(), "2026-11-29T00:00:00.000Z");
    }

    #[test]
    fn ticks_are_times_since_the_start() {
        let header = Header {
            version: Version::Six { minor: 0 },
            start: DateTime {
                year: 1970,
                month: 1,
                day: 1,
                second: 1,
                ..DateTime::default()
            },
            start_ticks: 1_000,
            frequency: 10_000_000,
            pointer_size: 8,
            pid: None,
            processors: None,
            sampling_rate: None,
            properties: Vec::new(),
        };
        assert_eq!(header.nanos_since_start(1_003), 300);
        assert_eq!(header.nanos_since_start(0), -100_000);
        assert_eq!(header.unix_nanos(1_003), Some(1_000_000_300));
        assert_eq!(complaint(&header), None);
        assert!(
            complaint(&Header {
                frequency: 0,
                ..header.clone()
            })
            .is_some()
        );
        assert!(
            complaint(&Header {
                pointer_size: 2,
                ..header
            })
            .is_some()
        );
    }
}
