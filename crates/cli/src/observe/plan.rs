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

/// The modes of a round by number: the order is reversed from round to round, so that what changes with time (a machine
/// that grows warm, a cache that fills) does not always favour the same mode.
pub(crate) fn order(round: u32, modes: usize) -> Vec<usize> {
    let forwards = 0..modes;
    if round.is_multiple_of(2) {
        forwards.collect()
    } else {
        forwards.rev().collect()
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
    fn the_order_is_reversed_from_round_to_round() {
        assert_eq!(order(0, 3), [0, 1, 2]);
        assert_eq!(order(1, 3), [2, 1, 0]);
        assert_eq!(order(2, 3), [0, 1, 2]);
    }
}
