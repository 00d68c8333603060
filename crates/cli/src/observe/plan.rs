//! What runs when.

use asynctriage_diagnostics::Provider;

/// A way to run the command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mode {
    pub(crate) name: &'static str,
    /// What is recorded; nothing means no collector at all.
    pub(crate) providers: Vec<Provider>,
}

/// The modes, those with fewer events first.
pub(crate) fn modes(markers: Option<&Provider>, profiler: &[Provider]) -> Vec<Mode> {
    let mut modes = vec![Mode {
        name: "none",
        providers: Vec::new(),
    }];
    modes.extend(markers.map(|markers| Mode {
        name: "markers",
        providers: vec![markers.clone()],
    }));
    modes.push(Mode {
        name: "profiler",
        providers: markers.into_iter().chain(profiler).cloned().collect(),
    });
    modes
}

/// Numbers that look like chance, from a seed that the report tells (splitmix64).
#[derive(Clone, Debug)]
pub(crate) struct Chance(u64);

impl Chance {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// The modes of a round by number, in an order by chance: what changes with time (a machine that grows warm, a cache
    /// that fills) favours no mode.
    pub(crate) fn order(&mut self, modes: usize) -> Vec<usize> {
        let mut order: Vec<usize> = (0..modes).collect();
        for last in (1..modes).rev() {
            let choices = last.saturating_add(1) as u64;
            let with = self.next().checked_rem(choices).unwrap_or(0);
            order.swap(last, usize::try_from(with).unwrap_or(0));
        }
        order
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_mode_records_what_the_one_before_does_and_more() {
        let (markers, profiler) = (Provider::new("M", 1, 4), Provider::new("P", 2, 4));
        let all = modes(Some(&markers), std::slice::from_ref(&profiler));
        let names: Vec<_> = all.iter().map(|m| (m.name, m.providers.len())).collect();
        assert_eq!(names, [("none", 0), ("markers", 1), ("profiler", 2)]);
        let names: Vec<_> = modes(None, &[profiler])
            .iter()
            .map(|m| (m.name, m.providers.len()))
            .collect();
        assert_eq!(names, [("none", 0), ("profiler", 1)]);
    }

    #[test]
    fn every_order_comes_up_as_often_and_again_by_its_seed() {
        let mut chance = Chance::new(7);
        let mut counts = std::collections::BTreeMap::new();
        for _ in 0..6_000 {
            *counts.entry(chance.order(3)).or_insert(0) += 1;
        }
        assert_eq!(counts.len(), 6);
        assert!(
            counts.values().all(|n| (850..1_150).contains(n)),
            "{counts:?}"
        );
        assert_eq!(Chance::new(5).order(9), Chance::new(5).order(9));
        assert_ne!(Chance::new(5).order(9), Chance::new(6).order(9));
    }
}
