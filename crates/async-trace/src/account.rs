//! What a recording says: counts, dispatchers, and what they rest on.

use crate::batch::{Metadata, SyncClock};
use crate::delivery::Deliveries;
use crate::dispatchers::{Dispatcher, State, Totals};
use crate::frames::FrameLists;
use crate::gaps::Gaps;
use crate::identities::Identities;
use crate::ids::Ids;
use crate::reject::Rejected;
use crate::wire::{Family, Kind};
use std::collections::BTreeMap;

/// A thread context in numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ContextFacts {
    /// Id of the thread in the operating system.
    pub os_thread: u64,
    /// Its batches.
    pub batches: u64,
    /// Their records.
    pub records: u64,
    /// Ticks of its last record.
    pub end: u64,
    /// Activations that are open at the end.
    pub open: u64,
}

/// What a recording says.
#[derive(Debug)]
pub struct AsyncTrace<'a> {
    /// Events of the provider.
    pub outer_events: u64,
    /// Batches that were believed.
    pub batches: u64,
    /// Batches that were not.
    pub rejected: u64,
    /// The first of those.
    pub rejections: Vec<Rejected>,
    /// Records of each kind, by id; kinds without records are absent.
    pub by_id: BTreeMap<u8, u64>,
    /// The metadata records, in the order of the file.
    pub metadata: Vec<Metadata>,
    /// The clock records.
    pub clocks: Vec<SyncClock>,
    /// By number of the thread context.
    pub contexts: BTreeMap<u32, ContextFacts>,
    /// Batches of an earlier session that this one delivered; their records are counted in `by_id` only.
    pub leftover_batches: u64,
    /// Their records.
    pub leftover_records: u64,
    /// Batches that begin before the one before them in their context ends.
    pub overlapping_batches: u64,
    /// Frame lists, with how many records hold each.
    pub frames: FrameLists<'a>,
    /// Activations by family and how they ended; [`State::Running`] for those that did not.
    pub activations: BTreeMap<(Family, State), u64>,
    /// Dispatchers in numbers, runtime-async first.
    pub totals: [Totals; 2],
    /// Dispatchers by the number of parents above them; the last is that deep or deeper.
    pub fork_depths: BTreeMap<u32, u64>,
    /// Dispatchers that did not end, and those with something wrong about them, by family and id.
    pub dispatchers: Vec<Dispatcher>,
    pub(crate) ended: Ids,
    /// Resumes of dispatchers above the limit on those that are followed.
    pub not_followed: u64,
    /// Records that mean an activation which is not there, by family.
    pub orphans: [u64; 2],
    /// Where records of runtime-async are missing.
    pub(crate) gaps: Gaps,
    /// When batches were handed over.
    pub(crate) deliveries: Deliveries,
    /// When the first batch was handed over that was not believed.
    pub(crate) rejected_since: Option<u64>,
    /// The lowest id that a create record names.
    pub(crate) lowest_created: Option<u64>,
    /// The highest id of runtime-async that a create record names.
    pub(crate) highest_created: u64,
    /// What holds and what does not.
    pub identities: Identities,
    /// Ticks of the first and the last record of the session.
    pub span: Option<(u64, u64)>,
}

impl AsyncTrace<'_> {
    /// The dispatcher of that id, when it is one of [`Self::dispatchers`].
    #[must_use]
    pub fn find(&self, family: Family, id: u64) -> Option<&Dispatcher> {
        let key = (family, id);
        let place = self
            .dispatchers
            .binary_search_by_key(&key, |d| (d.family, d.id));
        self.dispatchers.get(place.ok()?)
    }

    /// How the dispatcher of that id ended; `None` when it did not, or no record names it.
    #[must_use]
    pub fn ended(&self, family: Family, id: u64) -> Option<State> {
        match self.find(family, id) {
            Some(dispatcher) => Some(dispatcher.state).filter(|s| s.is_end()),
            None => self.ended.state(family, id),
        }
    }

    /// Records of a kind.
    #[must_use]
    pub fn records_of(&self, kind: Kind) -> u64 {
        self.by_id.get(&kind.id()).copied().unwrap_or(0)
    }

    /// Records of all kinds.
    #[must_use]
    pub fn records(&self) -> u64 {
        self.by_id.values().fold(0, |sum, n| sum.saturating_add(*n))
    }

    /// Whether any record says what a chain did.
    #[must_use]
    pub fn has_transitions(&self) -> bool {
        self.by_id
            .keys()
            .any(|id| Kind::from_id(*id).is_some_and(|k| k.family().is_some()))
    }

    /// Whether the recording says which frames run.
    #[must_use]
    pub fn has_method_records(&self) -> bool {
        self.has(Kind::is_method)
    }

    /// Whether any record of a kind that passes is there.
    pub(crate) fn has(&self, passes: impl Fn(Kind) -> bool) -> bool {
        self.by_id
            .keys()
            .any(|id| Kind::from_id(*id).is_some_and(&passes))
    }
}
