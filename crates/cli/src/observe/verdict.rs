//! What follows from the times.
//!
//! Only the order of the times is used: the exact rank test says how often ranks would be as unequal if there were no
//! difference. Unless that is rare, no difference is claimed and no ratio is formed: a number would look like a
//! measurement and be none. With more rounds smaller differences are found, and none is lost.

use super::rank::probability;
use asynctriage_report::{ObserveComparison, ObserveMode, ObserveVerdict};

/// Ranks that are as unequal by chance more often than this say nothing. Three pairs of modes are compared, so that one
/// experiment in seven without any difference still claims one at the level of 0.05; this keeps it below one in twenty.
const RARE: f64 = 0.05 / 3.0;

/// Fills in the median and the range.
pub(crate) fn summarise(mode: &mut ObserveMode) {
    let mut sorted = mode.milliseconds.clone();
    sorted.sort_by(f64::total_cmp);
    mode.min = sorted.first().copied();
    mode.max = sorted.last().copied();
    mode.median = median(&sorted);
}

fn median(sorted: &[f64]) -> Option<f64> {
    let half = sorted.len() / 2;
    let upper = *sorted.get(half)?;
    if sorted.len().is_multiple_of(2) {
        let lower = *sorted.get(half.checked_sub(1)?)?;
        Some(f64::midpoint(lower, upper))
    } else {
        Some(upper)
    }
}

/// Each mode against those with fewer events. Nothing is comparable unless all runs did the same work; what was not
/// recorded cost nothing that could be told.
pub(crate) fn compare(
    modes: &[ObserveMode],
    same_work: bool,
    unrecorded: &[&str],
) -> Vec<ObserveComparison> {
    let pairs = modes.iter().enumerate().flat_map(|(i, to)| {
        let fewer = modes.get(..i).unwrap_or_default();
        fewer.iter().map(move |from| (from, to))
    });
    pairs
        .map(|(from, to)| {
            let is_recorded = !unrecorded.contains(&to.name.as_str());
            pair(from, to, same_work, is_recorded)
        })
        .collect()
}

fn pair(
    from: &ObserveMode,
    to: &ObserveMode,
    same_work: bool,
    is_recorded: bool,
) -> ObserveComparison {
    let mut comparison = ObserveComparison {
        from: from.name.clone(),
        to: to.name.clone(),
        ..ObserveComparison::default()
    };
    let (one, other) = (&from.milliseconds, &to.milliseconds);
    let (Some(p), true) = (probability(one, other), same_work) else {
        return comparison;
    };
    if !is_recorded {
        comparison.verdict = ObserveVerdict::NotRecorded;
        return comparison;
    }
    comparison.probability = Some(p);
    let medians = from.median.zip(to.median);
    comparison.verdict = if least(one.len(), other.len()) > RARE {
        ObserveVerdict::TooFew
    } else if p > RARE {
        ObserveVerdict::NoneShown
    } else if medians.is_some_and(|(from, to)| to > from) {
        ObserveVerdict::Slower
    } else {
        ObserveVerdict::Faster
    };
    let is_shown = matches!(
        comparison.verdict,
        ObserveVerdict::Slower | ObserveVerdict::Faster
    );
    comparison.ratio = medians
        .filter(|(from, _)| is_shown && *from > 0.0)
        .map(|(from, to)| to / from);
    comparison
}

/// The least probability that so many runs can have: that of ranges which are apart.
#[expect(clippy::cast_precision_loss, reason = "a share")]
fn least(n: usize, m: usize) -> f64 {
    let mut ways = 1.0;
    for i in 1..=n.min(m) {
        ways *= n.max(m).saturating_add(i) as f64 / i as f64;
    }
    2.0 / ways
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(name: &str, milliseconds: &[f64]) -> ObserveMode {
        let mut mode = ObserveMode {
            name: name.into(),
            milliseconds: milliseconds.to_vec(),
            ..ObserveMode::default()
        };
        summarise(&mut mode);
        mode
    }

    fn verdict(from: &[f64], to: &[f64]) -> (ObserveVerdict, Option<f64>) {
        let found = compare(&[mode("a", from), mode("b", to)], true, &[]);
        (found[0].verdict, found[0].ratio)
    }

    #[test]
    fn the_median_is_the_middle() {
        assert_eq!(mode("a", &[3.0, 1.0, 2.0]).median, Some(2.0));
        assert_eq!(mode("a", &[4.0, 1.0, 2.0, 3.0]).median, Some(2.5));
        assert_eq!(mode("a", &[]).median, None);
    }

    #[test]
    fn ranges_that_overlap_may_differ_all_the_same() {
        let few = [150.0, 158.0, 176.0, 155.0, 160.0];
        let many = [158.8, 163.8, 178.4, 160.0, 161.0];
        assert_eq!(verdict(&few, &many), (ObserveVerdict::NoneShown, None));
        let slow = [250.0, 240.0, 175.0, 230.0, 260.0];
        let (found, ratio) = verdict(&few, &slow);
        assert_eq!(found, ObserveVerdict::Slower);
        assert!((ratio.unwrap() - 240.0 / 158.0).abs() < 1e-9);
        assert_eq!(verdict(&slow, &few).0, ObserveVerdict::Faster);
    }

    #[test]
    fn four_runs_of_each_are_too_few() {
        assert_eq!(verdict(&[1.0], &[9.0]), (ObserveVerdict::TooFew, None));
        let four = verdict(&[1.0, 2.0, 2.5, 3.0], &[4.0, 5.0, 6.0, 7.0]);
        assert_eq!(four, (ObserveVerdict::TooFew, None));
        let five = verdict(&[4.0, 4.1, 4.2, 4.3, 4.4], &[1.0, 1.0, 2.1, 3.0, 3.0]);
        assert_eq!(five, (ObserveVerdict::Faster, Some(0.5)));
    }

    #[test]
    fn other_work_is_not_compared_nor_what_was_not_recorded() {
        let modes = [
            mode("none", &[1.0, 1.1, 1.2, 1.3, 1.4]),
            mode("markers", &[2.0, 2.1, 2.2, 2.3, 2.4]),
            mode("profiler", &[3.0, 3.1, 3.2, 3.3, 3.4]),
        ];
        let found = compare(&modes, true, &["profiler"]);
        let pairs: Vec<_> = found
            .iter()
            .map(|c| (c.from.as_str(), c.to.as_str(), c.verdict))
            .collect();
        assert_eq!(
            pairs,
            [
                ("none", "markers", ObserveVerdict::Slower),
                ("none", "profiler", ObserveVerdict::NotRecorded),
                ("markers", "profiler", ObserveVerdict::NotRecorded),
            ]
        );
        let different = compare(&modes[..2], false, &[]);
        assert_eq!(different[0].verdict, ObserveVerdict::NotComparable);
        assert_eq!((different[0].ratio, different[0].probability), (None, None));
    }
}
