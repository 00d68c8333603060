//! Dispatchers: the suspended things that are resumed. Those that ended without a fault of the recording are folded into
//! counts, so that memory follows what lives, not what happened.

use crate::Family;
use crate::frames::FrameListId;
use crate::identities::{Breach, Identities, Identity, RecordRef};
use crate::ids::{EndedBits, Ids};
use std::collections::BTreeMap;

/// Dispatchers that are followed one by one at most; an honest process has fewer chains alive.
const MOST: usize = 1 << 23;
/// Depths of forks that are counted one by one; state machines chain their segments to any depth.
const DEEPEST: u32 = 1_000;

/// What became of an activation, or of a dispatcher by its last activation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum State {
    /// It has not been resumed since it was created.
    SuspendedAtCreate,
    /// It suspended.
    Suspended,
    /// It runs at the end of the recording.
    Running,
    /// It ran to its end.
    Completed,
    /// An exception left its last frame (runtime-async; state machines do not say).
    Faulted,
    /// Its thread was reset, or a piece of the recording is missing there: what became of it is not known.
    Unknown,
}

impl State {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::SuspendedAtCreate,
        Self::Suspended,
        Self::Running,
        Self::Completed,
        Self::Faulted,
        Self::Unknown,
    ];

    /// As in the report.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::SuspendedAtCreate => "suspended at create",
            Self::Suspended => "suspended",
            Self::Running => "running",
            Self::Completed => "completed",
            Self::Faulted => "faulted",
            Self::Unknown => "unknown (reset)",
        }
    }

    /// Whether it ended.
    #[must_use]
    pub const fn is_end(self) -> bool {
        matches!(self, Self::Completed | Self::Faulted)
    }
}

/// When and where something happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    /// Ticks.
    pub time: u64,
    /// The record that says so.
    pub record: RecordRef,
    /// Id of the thread in the operating system.
    pub os_thread: u64,
}

/// A dispatcher that did not end.
#[derive(Clone, Debug)]
pub struct Dispatcher {
    /// Its family.
    pub family: Family,
    /// Its id: `Task.Id` for runtime-async, a number of one suspension for state machines.
    pub id: u64,
    /// What it does at the end of the recording.
    pub state: State,
    /// Its create record.
    pub created: Option<Moment>,
    /// The dispatcher that ran on the creating thread; 0 for none.
    pub parent: u64,
    /// How many parents stand above it.
    pub depth: u32,
    /// How often it was resumed.
    pub resumes: u64,
    /// Its last resume.
    pub resumed: Option<Moment>,
    /// When it suspended or ended last.
    pub stopped: Option<Moment>,
    /// Its frames, innermost first: those of its last call stack record.
    pub frames: Option<FrameListId>,
    /// How many of them have ended already, when it runs.
    pub ended_frames: u32,
    /// Whether it ran on more than one thread.
    pub many_threads: bool,
    pub(crate) creates: u32,
    pub(crate) first_resume: Option<u64>,
    pub(crate) serial: u64,
    pub(crate) open: u32,
    /// Activations up to this one had not ended when it was resumed again, and do not count as open.
    pub(crate) forgotten: u64,
    /// Ticks of its last record; a repetition behind a reset is none.
    pub(crate) last: u64,
    /// It goes on under another id: async iterators change theirs.
    pub(crate) renamed: bool,
    /// Its depth stands in the totals already: it had been folded once.
    depth_is_counted: bool,
}

impl Dispatcher {
    fn new(family: Family, id: u64) -> Self {
        Self {
            family,
            id,
            state: State::SuspendedAtCreate,
            created: None,
            parent: 0,
            depth: 0,
            resumes: 0,
            resumed: None,
            stopped: None,
            frames: None,
            ended_frames: 0,
            many_threads: false,
            creates: 0,
            first_resume: None,
            serial: 0,
            open: 0,
            forgotten: 0,
            last: 0,
            renamed: false,
            depth_is_counted: false,
        }
    }

    /// Since when it has been in its state.
    #[must_use]
    pub fn since(&self) -> Option<Moment> {
        match self.state {
            State::SuspendedAtCreate => self.created,
            State::Running => self.resumed,
            _ => self.stopped,
        }
    }

    /// Ticks of its last record; what its thread repeats when the profiler is asked for something else is none.
    #[must_use]
    pub fn last(&self) -> u64 {
        self.last
    }

    pub(crate) fn breach(&self, identity: Identity, at: Moment) -> Breach {
        Breach {
            identity,
            family: self.family,
            dispatcher: self.id,
            time: Some(at.time),
            record: Some(at.record),
        }
    }
}

/// Counts of a family's dispatchers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// All that are named by any record.
    pub total: u64,
    /// Those with a create record.
    pub created: u64,
    /// By what they do at the end.
    pub states: BTreeMap<State, u64>,
    /// Those that ran on more than one thread.
    pub more_than_one_thread: u64,
}

impl Totals {
    fn add(&mut self, dispatcher: &Dispatcher) {
        self.total = self.total.saturating_add(1);
        self.created = self
            .created
            .saturating_add(u64::from(dispatcher.creates > 0));
        let state = self.states.entry(dispatcher.state).or_default();
        *state = state.saturating_add(1);
        self.more_than_one_thread = self
            .more_than_one_thread
            .saturating_add(u64::from(dispatcher.many_threads));
    }

    fn remove(&mut self, ended: EndedBits) {
        self.total = self.total.saturating_sub(1);
        self.created = self.created.saturating_sub(1);
        if let Some(state) = self.states.get_mut(&ended.state()) {
            *state = state.saturating_sub(1);
        }
        self.states.retain(|_, n| *n > 0);
        self.more_than_one_thread = self
            .more_than_one_thread
            .saturating_sub(u64::from(ended.many_threads));
    }
}

/// All dispatchers of a recording.
#[derive(Debug, Default)]
pub(crate) struct Dispatchers {
    /// Those that live, by their slots; a slot whose dispatcher ended is used again.
    live: Vec<Option<Dispatcher>>,
    free: Vec<usize>,
    ids: Ids,
    totals: [Totals; 2],
    fork_depths: BTreeMap<u32, u64>,
    /// Records of dispatchers above the limit.
    pub(crate) not_followed: u64,
}

impl Dispatchers {
    /// The dispatcher, a new one when no record named it before; none above the limit.
    pub(crate) fn get(
        &mut self,
        family: Family,
        id: u64,
        identities: &mut Identities,
    ) -> Option<&mut Dispatcher> {
        let slot = match self.ids.slot(family, id) {
            Some(slot) => slot,
            None => self.add(family, id, identities)?,
        };
        self.live.get_mut(slot)?.as_mut()
    }

    /// Makes room for a dispatcher that does not live yet, or no more.
    fn add(&mut self, family: Family, id: u64, identities: &mut Identities) -> Option<usize> {
        if self.free.is_empty() && self.live.len() >= MOST {
            self.not_followed = self.not_followed.saturating_add(1);
            return None;
        }
        let slot = self.free.pop().unwrap_or(self.live.len());
        let mut dispatcher = Dispatcher::new(family, id);
        if let Some(bits) = self.ids.begin(family, id, slot) {
            revive(&mut dispatcher, bits, &mut self.totals);
            identities.take_back(family, Identity::OneCreate);
        }
        match self.live.get_mut(slot) {
            Some(place) => *place = Some(dispatcher),
            None => self.live.push(Some(dispatcher)),
        }
        Some(slot)
    }

    /// The dispatcher when it has not ended.
    #[inline]
    pub(crate) fn known(&mut self, family: Family, id: u64) -> Option<&mut Dispatcher> {
        let slot = self.ids.slot(family, id)?;
        self.live.get_mut(slot)?.as_mut()
    }

    /// How many parents stand above a child of `parent`, of whichever family that is.
    pub(crate) fn depth_below(&mut self, parent: u64, child: (Family, u64)) -> u32 {
        if parent == 0 {
            return 0;
        }
        // both families may use one number: the one that runs now is the parent
        let mut found = None;
        for family in Family::ALL {
            if (family, parent) != child {
                let running = self.known(family, parent).map(|d| (d.open > 0, d.depth));
                found = found.max(running);
            }
        }
        found.map_or(1, |(_, depth)| depth.saturating_add(1))
    }

    /// Folds a dispatcher that ended as it should; others stay, for what is wrong with them to be seen.
    pub(crate) fn fold(&mut self, family: Family, id: u64, identities: &mut Identities) {
        let folds = |d: &mut Dispatcher| d.creates == 1 && d.open == 0 && d.state.is_end();
        let Some(slot) = self.ids.slot(family, id) else {
            return;
        };
        let dispatcher = self
            .live
            .get_mut(slot)
            .and_then(|place| place.take_if(folds));
        if let Some(dispatcher) = dispatcher {
            self.free.push(slot);
            self.count(&dispatcher, identities);
            let bits = EndedBits {
                faulted: dispatcher.state == State::Faulted,
                many_threads: dispatcher.many_threads,
            };
            self.ids.end(family, id, bits);
        }
    }

    fn count(&mut self, dispatcher: &Dispatcher, identities: &mut Identities) {
        if let Some(totals) = self.totals.get_mut(dispatcher.family.index()) {
            totals.add(dispatcher);
        }
        if !dispatcher.depth_is_counted {
            let depth = dispatcher.depth.min(DEEPEST);
            let count = self.fork_depths.entry(depth).or_default();
            *count = count.saturating_add(1);
        }
        let moment = dispatcher.created.or(dispatcher.resumed);
        let breach = Breach {
            identity: Identity::OneCreate,
            family: dispatcher.family,
            dispatcher: dispatcher.id,
            time: moment.map(|m| m.time),
            record: moment.map(|m| m.record),
        };
        identities.check(dispatcher.creates == 1, breach);
    }

    /// Counts those that are left; gives them in the order of their ids.
    pub(crate) fn finish(mut self, identities: &mut Identities) -> Left {
        let live = std::mem::take(&mut self.live);
        let mut left: Vec<Dispatcher> = live.into_iter().flatten().collect();
        left.sort_unstable_by_key(|d| (d.family, d.id));
        for dispatcher in &left {
            self.count(dispatcher, identities);
        }
        find_renamed(&mut left);
        Left {
            dispatchers: left,
            ended: self.ids,
            totals: self.totals,
            fork_depths: self.fork_depths,
            not_followed: self.not_followed,
        }
    }
}

/// A state machine of an async iterator may be created under a number and go on under the next one, which was never
/// created (11.0.0).
fn find_renamed(left: &mut [Dispatcher]) {
    for at in 1..left.len() {
        let Some([one, next]) = left.get_mut(at.saturating_sub(1)..=at) else {
            continue;
        };
        one.renamed = one.family == Family::StateMachine
            && next.family == Family::StateMachine
            && one.id.checked_add(1) == Some(next.id)
            && one.state == State::SuspendedAtCreate
            && next.creates == 0;
    }
}

/// A dispatcher ended, was folded, and is named again.
fn revive(dispatcher: &mut Dispatcher, bits: EndedBits, totals: &mut [Totals; 2]) {
    if let Some(totals) = totals.get_mut(dispatcher.family.index()) {
        totals.remove(bits);
    }
    dispatcher.creates = 1;
    dispatcher.resumes = 1;
    dispatcher.state = bits.state();
    dispatcher.many_threads = bits.many_threads;
    dispatcher.depth_is_counted = true;
}

/// What remains at the end.
#[derive(Debug)]
pub(crate) struct Left {
    pub(crate) dispatchers: Vec<Dispatcher>,
    pub(crate) ended: Ids,
    pub(crate) totals: [Totals; 2],
    pub(crate) fork_depths: BTreeMap<u32, u64>,
    pub(crate) not_followed: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    const RA: Family = Family::RuntimeAsync;

    #[test]
    fn ended_dispatchers_are_folded_and_come_back() {
        let (mut all, mut identities) = (Dispatchers::default(), Identities::default());
        for id in [7, 8, 9] {
            let d = all.get(RA, id, &mut identities).unwrap();
            (d.creates, d.state, d.many_threads) = (1, State::Completed, id == 8);
            all.fold(RA, id, &mut identities);
        }
        assert!(all.live.iter().all(Option::is_none));
        let again = all.get(RA, 8, &mut identities).unwrap();
        assert_eq!((again.creates, again.many_threads), (1, true));
        again.creates += 1;
        let left = all.finish(&mut identities);
        assert_eq!(left.ended.state(RA, 7), Some(State::Completed));
        assert_eq!(left.ended.state(RA, 8), None, "it lives again");
        assert_eq!(left.totals[0].total, 3);
        assert_eq!(left.totals[0].states[&State::Completed], 3);
        assert_eq!(left.totals[0].more_than_one_thread, 1);
        assert_eq!(left.fork_depths, BTreeMap::from([(0, 3)]));
        assert_eq!(identities.held(RA, Identity::OneCreate), 2);
        assert_eq!(identities.broken(RA, Identity::OneCreate), 1);
    }

    #[test]
    fn those_that_never_had_a_create_record_are_not_folded() {
        let (mut all, mut identities) = (Dispatchers::default(), Identities::default());
        all.get(RA, 1, &mut identities).unwrap().state = State::Completed;
        all.fold(RA, 1, &mut identities);
        assert_eq!(all.live.len(), 1);
    }

    #[test]
    fn forks_are_as_deep_as_their_parents_say() {
        let (mut all, mut identities) = (Dispatchers::default(), Identities::default());
        all.get(RA, 1, &mut identities).unwrap().depth = 4;
        assert_eq!(all.depth_below(0, (RA, 2)), 0);
        assert_eq!(all.depth_below(1, (RA, 2)), 5);
        assert_eq!(
            all.depth_below(77, (RA, 2)),
            1,
            "a parent of before the recording"
        );
        assert_eq!(all.depth_below(1, (RA, 1)), 1, "its own parent");
    }
}
