//! What follows from the times.
//!
//! Only the order of the times is used. When the ranges of two modes overlap, nothing is said of a difference, and no
//! ratio is formed: a number would look like a measurement and be none. When they are apart, the chance of that without
//! any difference is exact: of all ways to deal n + m times to two modes, all equally likely then, two keep the ranges
//! apart.

use asynctriage_report::{ObserveComparison, ObserveMode, ObserveVerdict};

/// Ranges that are apart by chance more often than once in so many experiments say nothing; four runs of each mode keep
/// below it, three do not.
const ENOUGH: u64 = 20;

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

/// Each mode against those with fewer events; nothing is comparable unless all runs did the same work.
pub(crate) fn compare(modes: &[ObserveMode], same_work: bool) -> Vec<ObserveComparison> {
    let pairs = modes.iter().enumerate().flat_map(|(i, to)| {
        let fewer = modes.get(..i).unwrap_or_default();
        fewer.iter().map(move |from| (from, to))
    });
    pairs.map(|(from, to)| pair(from, to, same_work)).collect()
}

fn pair(from: &ObserveMode, to: &ObserveMode, same_work: bool) -> ObserveComparison {
    let mut comparison = ObserveComparison {
        from: from.name.clone(),
        to: to.name.clone(),
        ..ObserveComparison::default()
    };
    let ranges = (from.min, from.max, to.min, to.max);
    let (Some(from_min), Some(from_max), Some(to_min), Some(to_max)) = ranges else {
        return comparison;
    };
    if !same_work {
        return comparison;
    }
    if from_min <= to_max && to_min <= from_max {
        comparison.verdict = ObserveVerdict::Overlap;
        return comparison;
    }
    let chance = chance_one_in(from.milliseconds.len(), to.milliseconds.len());
    comparison.chance_one_in = Some(chance);
    comparison.verdict = match to_min > from_max {
        _ if chance < ENOUGH => ObserveVerdict::TooFew,
        true => ObserveVerdict::Slower,
        false => ObserveVerdict::Faster,
    };
    if comparison.verdict != ObserveVerdict::TooFew {
        comparison.ratio = from
            .median
            .zip(to.median)
            .filter(|(from, _)| *from > 0.0)
            .map(|(from, to)| to / from);
    }
    comparison
}

/// Half of the ways to choose `n` of `n + m`, at most 1,000,000.
fn chance_one_in(n: usize, m: usize) -> u64 {
    const MOST: u64 = 1_000_000;
    let mut ways = 1_u64;
    for i in 1..=n.min(m) {
        // each step is a whole number: it is the number of ways to choose i of so many
        let from = n.max(m).saturating_add(i) as u64;
        ways = ways.saturating_mul(from) / i as u64;
        if ways / 2 >= MOST {
            return MOST;
        }
    }
    ways / 2
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

    fn verdict(from: &[f64], to: &[f64]) -> (ObserveVerdict, Option<f64>, Option<u64>) {
        let found = compare(&[mode("a", from), mode("b", to)], true);
        (found[0].verdict, found[0].ratio, found[0].chance_one_in)
    }

    #[test]
    fn medians_and_ranges() {
        let odd = mode("a", &[3.0, 1.0, 2.0]);
        assert_eq!(
            (odd.median, odd.min, odd.max),
            (Some(2.0), Some(1.0), Some(3.0))
        );
        assert_eq!(mode("a", &[4.0, 1.0, 2.0, 3.0]).median, Some(2.5));
        assert_eq!(mode("a", &[]).median, None);
    }

    #[test]
    fn ranges_that_touch_give_no_number() {
        let few = [150.0, 158.0, 176.0, 155.0, 160.0];
        let many = [158.8, 163.8, 178.4, 160.0, 161.0];
        assert_eq!(verdict(&few, &many), (ObserveVerdict::Overlap, None, None));
        let touching = (verdict(&[1.0, 2.0], &[2.0, 3.0]), verdict(&[2.0], &[2.0]));
        assert_eq!(touching.0.0, ObserveVerdict::Overlap);
        assert_eq!(touching.1.0, ObserveVerdict::Overlap);
    }

    #[test]
    fn ranges_apart_need_enough_runs() {
        assert_eq!(
            verdict(&[1.0], &[9.0]),
            (ObserveVerdict::TooFew, None, Some(1))
        );
        let three = verdict(&[1.0, 2.0, 3.0], &[4.0, 5.0, 6.0]);
        assert_eq!(three, (ObserveVerdict::TooFew, None, Some(10)));
        let four = verdict(&[1.0, 2.0, 2.0, 3.0], &[4.0, 4.0, 4.0, 4.0]);
        assert_eq!(four, (ObserveVerdict::Slower, Some(2.0), Some(35)));
        let five = verdict(&[4.0; 5], &[1.0, 1.0, 2.0, 3.0, 3.0]);
        assert_eq!(five, (ObserveVerdict::Faster, Some(0.5), Some(126)));
    }

    #[test]
    fn the_chance_is_counted() {
        // 10 choose 5 is 252, 7 choose 2 is 21
        assert_eq!(chance_one_in(5, 5), 126);
        assert_eq!((chance_one_in(2, 5), chance_one_in(5, 2)), (10, 10));
        assert_eq!(chance_one_in(1_000, 1_000), 1_000_000);
    }

    #[test]
    fn other_work_is_not_compared() {
        let modes = [
            mode("none", &[1.0; 5]),
            mode("markers", &[2.0; 5]),
            mode("profiler", &[]),
        ];
        let found = compare(&modes, true);
        let pairs: Vec<_> = found
            .iter()
            .map(|c| (c.from.as_str(), c.to.as_str(), c.verdict))
            .collect();
        assert_eq!(
            pairs,
            [
                ("none", "markers", ObserveVerdict::Slower),
                ("none", "profiler", ObserveVerdict::NotComparable),
                ("markers", "profiler", ObserveVerdict::NotComparable),
            ]
        );
        let different = compare(&modes[..2], false);
        assert_eq!(different[0].verdict, ObserveVerdict::NotComparable);
        assert_eq!(different[0].ratio, None);
    }
}
