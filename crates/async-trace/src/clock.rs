//! Ticks as wall clock time.

use crate::batch::SyncClock;

/// The clocks of a recording.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Clock {
    /// Ticks in a second; 0 when the recording does not say.
    pub frequency: u64,
    /// Instants known on both clocks, by their ticks.
    syncs: Vec<SyncClock>,
}

/// Steps of 100 ns between 1601 and 1970.
const UNIX_EPOCH: i128 = 116_444_736_000_000_000;

impl Clock {
    /// Instants on both clocks may come in any order.
    #[must_use]
    pub fn new(frequency: u64, mut syncs: Vec<SyncClock>) -> Self {
        syncs.sort_by_key(|s| s.ticks);
        Self { frequency, syncs }
    }

    /// Nanoseconds since 1970 in universal time, by the latest instant on both clocks that is not younger, else by the
    /// first; none when no instant or no frequency is known.
    #[must_use]
    pub fn unix_nanos(&self, ticks: u64) -> Option<i128> {
        let later = self.syncs.partition_point(|s| s.ticks <= ticks);
        let sync = self.syncs.get(later.saturating_sub(1))?;
        let elapsed = i128::from(ticks).checked_sub(i128::from(sync.ticks))?;
        let nanos = elapsed
            .checked_mul(1_000_000_000)?
            .checked_div(self.frequency.into())?;
        let base = i128::from(sync.filetime)
            .checked_sub(UNIX_EPOCH)?
            .checked_mul(100)?;
        base.checked_add(nanos)
    }

    /// Seconds from one tick to another, negative when the second is older; none without a frequency.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "seconds for people")]
    pub fn seconds(&self, from: u64, to: u64) -> Option<f64> {
        let ticks = i128::from(to).checked_sub(i128::from(from))?;
        (self.frequency > 0).then(|| ticks as f64 / self.frequency as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_counted_from_the_nearest_instant_before() {
        let clock = Clock::new(
            1_000,
            vec![
                SyncClock {
                    ticks: 5_000,
                    filetime: 116_444_736_050_000_100,
                },
                SyncClock {
                    ticks: 1_000,
                    filetime: 116_444_736_000_000_000,
                },
            ],
        );
        assert_eq!(clock.unix_nanos(1_500), Some(500_000_000));
        assert_eq!(clock.unix_nanos(6_000), Some(6_000_010_000));
        assert_eq!(clock.unix_nanos(0), Some(-1_000_000_000));
        assert_eq!(clock.seconds(1_000, 500), Some(-0.5));
    }

    #[test]
    fn nothing_is_said_without_clocks() {
        assert_eq!(Clock::new(1_000, vec![]).unix_nanos(1), None);
        let stopped = SyncClock {
            ticks: 0,
            filetime: u64::MAX,
        };
        assert_eq!(Clock::new(0, vec![stopped]).unix_nanos(u64::MAX), None);
        assert_eq!(Clock::default().seconds(0, 1), None);
    }
}
