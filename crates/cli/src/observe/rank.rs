//! The exact rank test of Wilcoxon, Mann and Whitney.
//!
//! Were there no difference between two modes, all ways to deal their times to them would be equally likely. The test
//! counts the ways that put the ranks of one mode as far from the middle as they are, or farther. Only the order of the
//! times is used, so that an outlier counts no more than the longest time of all; equal times share their ranks.

/// Times up to which the ways are counted; above, their normal approximation is as good as what is printed of it.
const COUNTED: usize = 120;

/// The probability, from 0 to 1, that ranks are at least as unequal as these when there is no difference, in either
/// direction; `None` without times.
pub(crate) fn probability(one: &[f64], other: &[f64]) -> Option<f64> {
    if one.is_empty() || other.is_empty() {
        return None;
    }
    let ranks = doubled_ranks(one, other);
    let sum: usize = ranks.iter().take(one.len()).sum();
    let total = one.len().saturating_add(other.len());
    // twice the sum of the ranks that one mode has on average
    let middle = one.len().saturating_mul(total.saturating_add(1));
    let off = sum.abs_diff(middle);
    Some(if total <= COUNTED {
        counted(&ranks, one.len(), middle, off)
    } else {
        approximated(&ranks, one.len(), other.len(), off)
    })
}

/// Twice the rank of each time, those of the first mode first: whole numbers, for equal times share the middle of theirs.
fn doubled_ranks(one: &[f64], other: &[f64]) -> Vec<usize> {
    let all: Vec<f64> = one.iter().chain(other).copied().collect();
    let mut order: Vec<usize> = (0..all.len()).collect();
    let time = |i: usize| all.get(i).copied().unwrap_or(f64::NAN);
    order.sort_by(|a, b| time(*a).total_cmp(&time(*b)));
    let mut ranks = vec![0; all.len()];
    let mut before = 0_usize;
    for tied in order.chunk_by(|a, b| time(*a).total_cmp(&time(*b)).is_eq()) {
        // ranks before + 1 to before + len: twice their middle
        let rank = before
            .saturating_mul(2)
            .saturating_add(tied.len())
            .saturating_add(1);
        for index in tied {
            if let Some(place) = ranks.get_mut(*index) {
                *place = rank;
            }
        }
        before = before.saturating_add(tied.len());
    }
    ranks
}

/// Of all ways to choose so many of the ranks, the share whose sum is as far off.
fn counted(ranks: &[usize], choose: usize, middle: usize, off: usize) -> f64 {
    let most: usize = ranks.iter().sum();
    let width = most.saturating_add(1);
    // ways[k][s]: to choose k with the sum s; as shares they stay within what a float holds
    let mut ways = vec![vec![0.0_f64; width]; choose.saturating_add(1)];
    if let Some(first) = ways.first_mut().and_then(|row| row.first_mut()) {
        *first = 1.0;
    }
    for rank in ranks {
        for k in (1..=choose).rev() {
            let (below, rest) = ways.split_at_mut(k);
            let (Some(from), Some(to)) = (below.last(), rest.first_mut()) else {
                continue;
            };
            for (ways, more) in to.iter_mut().skip(*rank).zip(from) {
                *ways += more;
            }
        }
    }
    let row = ways.last().map(Vec::as_slice).unwrap_or_default();
    let all: f64 = row.iter().sum();
    let far: f64 = row
        .iter()
        .enumerate()
        .filter(|(sum, _)| sum.abs_diff(middle) >= off)
        .map(|(_, ways)| ways)
        .sum();
    far / all
}

#[expect(clippy::cast_precision_loss, reason = "an approximation")]
fn approximated(ranks: &[usize], one: usize, other: usize, off: usize) -> f64 {
    let (n, m) = (one as f64, other as f64);
    let total = n + m;
    let mut sorted = ranks.to_vec();
    sorted.sort_unstable();
    let ties = sorted.chunk_by(|a, b| a == b).map(|tied| {
        let len = tied.len() as f64;
        len * (len * len - 1.0)
    });
    let variance = n * m / 12.0 * (total + 1.0 - ties.sum::<f64>() / (total * (total - 1.0)));
    if variance <= 0.0 {
        return 1.0;
    }
    // half a step back, for the sums are whole numbers
    let distance = (off as f64 / 2.0 - 0.5).max(0.0) / variance.sqrt();
    upper_tail(distance) * 2.0
}

/// The share of a normal distribution above `z`, which is not negative; to 7 digits (Abramowitz and Stegun 26.2.17).
fn upper_tail(z: f64) -> f64 {
    let t = 1.0 / (1.0 + 0.231_641_9 * z);
    let series = [
        0.319_381_530,
        -0.356_563_782,
        1.781_477_937,
        -1.821_255_978,
        1.330_274_429,
    ];
    let sum = series.iter().rev().fold(0.0, |sum, term| (sum + term) * t);
    (-z * z / 2.0).exp() / (2.0 * std::f64::consts::PI).sqrt() * sum
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(found: Option<f64>, want: f64) {
        let found = found.unwrap();
        assert!((found - want).abs() < 1e-9, "{found} for {want}");
    }

    #[test]
    fn few_times_are_counted_by_hand() {
        // 2 of 20 ways for three and three, 2 of 252 for five and five
        near(probability(&[1.0, 2.0, 3.0], &[4.0, 5.0, 6.0]), 0.1);
        near(
            probability(&[9.0; 5], &[1.0, 2.0, 3.0, 4.0, 5.0]),
            2.0 / 252.0,
        );
        // 1 2 4 against 3 5 6: the sum 7 or less, 14 or more: 4 of 20
        near(probability(&[1.0, 2.0, 4.0], &[3.0, 5.0, 6.0]), 0.2);
        near(probability(&[1.0], &[2.0]), 1.0);
        near(probability(&[5.0; 4], &[5.0; 6]), 1.0);
        assert_eq!(probability(&[], &[1.0]), None);
    }

    #[test]
    fn both_directions_and_both_orders_are_the_same() {
        let (a, b) = ([1.0, 4.0, 4.0, 9.0, 12.0], [2.0, 4.0, 10.0, 11.0]);
        let p = probability(&a, &b).unwrap();
        near(probability(&b, &a), p);
        near(probability(&a.map(|x| -x), &b.map(|x| -x)), p);
    }

    #[test]
    fn many_times_agree_with_the_counted_ones() {
        let a: Vec<f64> = (0..60).map(|i| f64::from(i * 7 % 60)).collect();
        let b: Vec<f64> = (0..60).map(|i| f64::from(i * 11 % 60) + 6.5).collect();
        let exact = probability(&a, &b).unwrap();
        let ranks = doubled_ranks(&a, &b);
        let sum: usize = ranks.iter().take(60).sum();
        let near = approximated(&ranks, 60, 60, sum.abs_diff(60 * 121));
        assert!((exact - near).abs() < 2e-3, "{exact} {near}");
        assert!((upper_tail(1.959_964) - 0.025).abs() < 1e-6);
    }

    #[test]
    fn power_does_not_fall_with_rounds() {
        // times of one half as long again with 20 % of noise, by a counter that stands for chance
        let mut state = 1_u64;
        let mut noise = || {
            let mut sum = 0.0;
            for _ in 0..12 {
                state = state
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1);
                sum += (state >> 11) as f64 / (1_u64 << 53) as f64;
            }
            sum - 6.0
        };
        let mut found = |rounds: usize| {
            let experiments = 200;
            let hits = (0..experiments).filter(|_| {
                let a: Vec<f64> = (0..rounds).map(|_| 100.0 + 20.0 * noise()).collect();
                let b: Vec<f64> = (0..rounds).map(|_| 150.0 + 30.0 * noise()).collect();
                probability(&a, &b).is_some_and(|p| p <= 0.05)
            });
            hits.count()
        };
        let (five, ten, twenty) = (found(5), found(10), found(20));
        assert!(
            five > 100 && ten > five && twenty >= 195,
            "{five} {ten} {twenty}"
        );
    }
}
