//! What is known of each dispatcher's id: where it is kept while it lives, a few bits once it has ended.

use crate::Family;
use crate::dispatchers::State;
use rustc_hash::FxHashMap;

/// Ids of one page, a bit each: ids come from a counter, so those that are used at the same time lie close together.
const PAGE: usize = u64::BITS as usize;
/// Slots are kept plus one; 0 is none.
const NONE: u32 = 0;

/// What is kept of a dispatcher that ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EndedBits {
    pub(crate) faulted: bool,
    pub(crate) many_threads: bool,
}

impl EndedBits {
    pub(crate) fn state(self) -> State {
        if self.faulted {
            State::Faulted
        } else {
            State::Completed
        }
    }
}

#[derive(Clone, Debug, Default)]
struct Page {
    /// Which ids ended, which of them faulted, which ran on several threads.
    ended: [u64; 3],
    /// Slots of those that live; none when none does, so that memory follows what lives.
    slots: Option<Box<[u32; PAGE]>>,
    living: usize,
}

impl Page {
    fn slot(&self, id: u64) -> Option<usize> {
        let kept = *self.slots.as_ref()?.get(place(id))?;
        usize::try_from(kept.checked_sub(1)?).ok()
    }

    fn bits(&self, id: u64) -> Option<EndedBits> {
        let [ended, faulted, many_threads] = self.ended.map(|word| word & bit(id) != 0);
        ended.then_some(EndedBits {
            faulted,
            many_threads,
        })
    }

    fn set(&mut self, id: u64, bits: EndedBits) {
        let all = [true, bits.faulted, bits.many_threads];
        for (word, set) in self.ended.iter_mut().zip(all) {
            *word = if set {
                *word | bit(id)
            } else {
                *word & !bit(id)
            };
        }
    }
}

/// Place of an id in its page.
fn place(id: u64) -> usize {
    (id & 63) as usize
}

fn bit(id: u64) -> u64 {
    1_u64.wrapping_shl((id & 63) as u32)
}

/// Number of an id's page.
fn number(family: Family, id: u64) -> u64 {
    ((id >> 6) << 1) | family.index() as u64
}

/// All ids that any record named.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ids {
    places: FxHashMap<u64, usize>,
    pages: Vec<Page>,
    /// The page that was asked for last, with its number: most questions are about it again.
    last: Option<(u64, usize)>,
}

impl Ids {
    #[inline]
    fn page(&mut self, family: Family, id: u64) -> Option<&mut Page> {
        let number = number(family, id);
        let place = match self.last {
            Some((last, place)) if last == number => place,
            _ => *self.places.get(&number)?,
        };
        self.last = Some((number, place));
        self.pages.get_mut(place)
    }

    /// Where a dispatcher that lives is kept.
    #[inline]
    pub(crate) fn slot(&mut self, family: Family, id: u64) -> Option<usize> {
        self.page(family, id)?.slot(id)
    }

    /// A dispatcher lives, in that slot. Gives what was kept of it when it had ended before.
    pub(crate) fn begin(&mut self, family: Family, id: u64, slot: usize) -> Option<EndedBits> {
        if self.page(family, id).is_none() {
            self.places.insert(number(family, id), self.pages.len());
            self.pages.push(Page::default());
        }
        let page = self.page(family, id)?;
        let slots = page.slots.get_or_insert_with(|| Box::new([NONE; PAGE]));
        let kept = slots.get_mut(place(id))?;
        if *kept == NONE {
            page.living = page.living.saturating_add(1);
        }
        *kept = u32::try_from(slot.saturating_add(1)).unwrap_or(NONE);
        let before = page.bits(id);
        let [ended, ..] = &mut page.ended;
        *ended &= !bit(id);
        before
    }

    /// A dispatcher ended and needs its slot no more.
    pub(crate) fn end(&mut self, family: Family, id: u64, bits: EndedBits) {
        let Some(page) = self.page(family, id) else {
            return;
        };
        page.set(id, bits);
        let kept = page.slots.as_mut().and_then(|s| s.get_mut(place(id)));
        if let Some(kept) = kept.filter(|kept| **kept != NONE) {
            *kept = NONE;
            page.living = page.living.saturating_sub(1);
        }
        if page.living == 0 {
            page.slots = None;
        }
    }

    /// How one ended; `None` when it did not, or no record named it.
    pub(crate) fn state(&self, family: Family, id: u64) -> Option<State> {
        let place = self.places.get(&number(family, id))?;
        self.pages.get(*place)?.bits(id).map(EndedBits::state)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    const BITS: EndedBits = EndedBits {
        faulted: true,
        many_threads: false,
    };

    #[test]
    fn ids_live_end_and_live_again() {
        let mut ids = Ids::default();
        for family in Family::ALL {
            assert_eq!(ids.slot(family, 70), None);
            assert_eq!(ids.begin(family, 70, family.index()), None);
            assert_eq!(ids.slot(family, 70), Some(family.index()));
            assert_eq!(ids.slot(family, 6), None, "the same place of another page");
        }
        ids.end(Family::StateMachine, 70, BITS);
        assert_eq!(ids.state(Family::StateMachine, 70), Some(State::Faulted));
        assert_eq!(ids.state(Family::RuntimeAsync, 70), None);
        assert_eq!(ids.slot(Family::StateMachine, 70), None);
        assert_eq!(ids.begin(Family::StateMachine, 70, 9), Some(BITS));
        assert_eq!(ids.state(Family::StateMachine, 70), None);
    }

    #[test]
    fn pages_without_living_ids_keep_only_bits() {
        let mut ids = Ids::default();
        for id in 0..128 {
            ids.begin(Family::RuntimeAsync, id, id as usize);
        }
        for id in (0..128).filter(|id| *id != 65) {
            ids.end(Family::RuntimeAsync, id, BITS);
        }
        let kept: Vec<bool> = ids.pages.iter().map(|p| p.slots.is_some()).collect();
        assert_eq!(kept, [false, true]);
        assert_eq!(ids.slot(Family::RuntimeAsync, 65), Some(65));
    }

    proptest::proptest! {
        #[test]
        fn it_is_a_map(steps in proptest::collection::vec((0_u64..200, proptest::bool::ANY), 0..300)) {
            let (mut ids, mut known) = (Ids::default(), HashMap::new());
            for (slot, (id, lives)) in steps.into_iter().enumerate() {
                let id = if id > 190 { u64::MAX - id } else { id };
                if lives {
                    ids.begin(Family::RuntimeAsync, id, slot);
                    known.insert(id, Some(slot));
                } else if known.contains_key(&id) {
                    ids.end(Family::RuntimeAsync, id, BITS);
                    known.insert(id, None);
                }
            }
            for (id, slot) in known {
                assert_eq!(ids.slot(Family::RuntimeAsync, id), slot);
                assert_eq!(ids.state(Family::RuntimeAsync, id).is_none(), slot.is_some());
            }
        }
    }
}
