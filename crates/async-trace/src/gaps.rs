//! Where records are missing: each place as the times between which they were written.

/// Places that are kept; each must lie deeper than all before.
const MOST: usize = 10_000;

/// Places where records are missing.
#[derive(Clone, Debug, Default)]
pub(crate) struct Gaps {
    /// When a gap was noticed, and the earliest time of a missing record of all gaps up to there: the first rises, the
    /// second falls.
    steps: Vec<(u64, u64)>,
}

impl Gaps {
    /// A record at `at` shows that records since `since` are missing. Times of `at` need not rise.
    pub(crate) fn note(&mut self, at: u64, since: u64) {
        let place = self.steps.partition_point(|step| step.0 <= at);
        let before = place.checked_sub(1).and_then(|i| self.steps.get(i));
        if before.is_some_and(|step| step.1 <= since) {
            return;
        }
        let mut behind = place;
        while self.steps.get(behind).is_some_and(|step| step.1 >= since) {
            behind = behind.saturating_add(1);
        }
        self.steps.splice(place..behind, [(at, since)]);
        self.steps.truncate(MOST);
    }

    /// Up to when nothing that is noticed up to `time` is missing.
    pub(crate) fn bound(&self, time: u64) -> u64 {
        let place = self.steps.partition_point(|step| step.0 <= time);
        let last = place.checked_sub(1).and_then(|i| self.steps.get(i));
        last.map_or(time, |step| step.1.min(time))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gap_bounds_what_lies_behind_its_notice_only() {
        let mut gaps = Gaps::default();
        gaps.note(100, 90);
        gaps.note(50, 45);
        gaps.note(200, 20);
        gaps.note(150, 60);
        assert_eq!(gaps.bound(49), 49);
        assert_eq!(gaps.bound(50), 45);
        assert_eq!(gaps.bound(199), 45);
        assert_eq!(gaps.bound(1_000), 20);
        assert_eq!(gaps.steps, [(50, 45), (200, 20)]);
        gaps.note(30, 10);
        assert_eq!(gaps.steps, [(30, 10)]);
    }
}
