//! What all threads of a recording write into.

use crate::dispatchers::{Dispatchers, Moment, State};
use crate::frames::FrameLists;
use crate::gaps::Gaps;
use crate::identities::Identities;
use crate::spans::Spans;
use crate::wire::Family;
use std::collections::BTreeMap;

/// Activations in numbers.
#[derive(Debug, Default)]
pub(crate) struct Activations {
    /// By family and how they ended.
    counts: [[u64; State::ALL.len()]; 2],
}

impl Activations {
    pub(crate) fn add(&mut self, family: Family, how: State) {
        let row = self.counts.get_mut(family.index());
        if let Some(count) = row.and_then(|row| row.get_mut(how as usize)) {
            *count = count.saturating_add(1);
        }
    }

    /// Those of a family that ended so; [`State::Running`] for those that did not.
    pub(crate) fn count(&self, family: Family, how: State) -> u64 {
        let row = self.counts.get(family.index());
        row.and_then(|row| row.get(how as usize))
            .copied()
            .unwrap_or(0)
    }

    /// All counts above 0.
    pub(crate) fn counts(&self) -> BTreeMap<(Family, State), u64> {
        let keys = Family::ALL
            .into_iter()
            .flat_map(|f| State::ALL.map(|s| (f, s)));
        let all = keys.map(|(family, how)| ((family, how), self.count(family, how)));
        all.filter(|(_, count)| *count > 0).collect()
    }
}

/// What all threads share.
#[derive(Debug, Default)]
pub(crate) struct Books<'a> {
    pub(crate) frames: FrameLists<'a>,
    pub(crate) dispatchers: Dispatchers,
    pub(crate) identities: Identities,
    /// Activations by family and how they ended.
    pub(crate) activations: Activations,
    /// Records that mean the innermost activation where there is none, or another than they name.
    pub(crate) orphans: [u64; 2],
    /// Where records of runtime-async are missing.
    pub(crate) gaps: Gaps,
    /// Call stacks of so many frames may have been cut.
    pub(crate) cut_at: usize,
    /// The lowest id that was created.
    pub(crate) lowest_created: Option<u64>,
    /// The highest id of runtime-async that was created.
    pub(crate) highest_created: u64,
    /// Activations one by one, as far as they are asked for.
    pub(crate) spans: Spans,
    pub(crate) serial: u64,
}

impl Books<'_> {
    /// A record means an activation that is not there; what the thread did since its last record is missing.
    pub(crate) fn orphan(&mut self, family: Family, at: Moment, since: u64) {
        if let Some(count) = self.orphans.get_mut(family.index()) {
            *count = count.saturating_add(1);
        }
        if family == Family::RuntimeAsync {
            self.gaps.note(at.time, since);
        }
    }
}
