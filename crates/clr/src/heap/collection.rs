//! Whether a garbage collection ran when the dump was taken, and how far it had come.

use super::segments::SegmentKind;
use crate::runtime::Runtime;
use asynctriage_dump::Addr;

/// Values of the state of a background collection; 2 is none (8.0 to 11.0).
const BACKGROUND_MARKING: u32 = 0;
const BACKGROUND_SWEEPING: u32 = 1;
/// Marks that damaged memory is not taken to bear.
const MANY: u64 = 64;

/// What a collection that runs beside the program was doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Background {
    /// It looked for the objects that live.
    Marking,
    /// It made free space of those that do not.
    Sweeping,
}

/// A garbage collection that the dump was taken in, as far as the runtime's own variables tell.
///
/// Measured on processes of 10.0.15 and 11.0.0 that collect without a break: objects keep their place and contents until
/// `moving`; from then on references may name the place that an object is going to have, objects stand at the old, the
/// new or both places, and the space in front of each run of living objects is overwritten.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Collection {
    /// Whether the collector says that its structures are not valid: it plans, relocates, moves or sweeps.
    pub moving: bool,
    /// The native structure of the thread that has stopped all others.
    pub stopped_by: Option<Addr>,
    /// What runs beside the program.
    pub background: Option<Background>,
    /// Objects that bear the mark of a living one: those that marking has met and planning has not.
    pub marked: u64,
    /// The oldest part of the heap with such objects: at least that is collected.
    pub oldest_marked: Option<SegmentKind>,
}

impl Collection {
    /// Whether there is one at all. A few marks alone are none: damaged memory looks the same. Who marks has stopped all
    /// threads, but the collector's own threads of server GC are not told of (10.0.15).
    #[must_use]
    pub fn is_running(&self) -> bool {
        let marking = self.marked >= MANY || self.marked > 0 && self.stopped_by.is_some();
        self.moving || self.background.is_some() || marking
    }

    /// Takes in what the walk has met.
    pub(super) fn add_marked(&mut self, kind: SegmentKind, marked: u64) {
        self.marked = self.marked.saturating_add(marked);
        if marked > 0 {
            self.oldest_marked = self.oldest_marked.max(Some(kind));
        }
    }
}

impl Runtime<'_> {
    /// What the runtime's variables say; the marks of objects come with the walk.
    pub(super) fn collection(&self) -> Collection {
        let (m, v, o) = (self.memory, self.globals.gc_vars, &self.offsets.gc_vars);
        let number = |field: u64| m.u32(m.ptr(v + field)?.non_null()?);
        let state = o.background_state.and_then(number);
        let stopper = self.layout().dac_index("SuspensionThread");
        let entry = |index| m.ptr(m.ptr(self.globals.dac_table.element(index, 8))?);
        Collection {
            moving: number(o.invalid_count).is_some_and(|n| n != 0),
            stopped_by: stopper.and_then(entry).and_then(Addr::non_null),
            background: match state {
                Some(BACKGROUND_MARKING) => {
                    let is_set = self.had_background_collection();
                    is_set.then_some(Background::Marking)
                }
                Some(BACKGROUND_SWEEPING) => Some(Background::Sweeping),
                _ => None,
            },
            ..Collection::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_of_a_stopped_process_show_a_collection_and_its_least_extent() {
        let mut collection = Collection {
            stopped_by: Some(Addr(8)),
            ..Collection::default()
        };
        assert!(!collection.is_running(), "debuggers stop threads, too");
        collection.add_marked(SegmentKind::Small(2), 0);
        collection.add_marked(SegmentKind::Small(1), 7);
        collection.add_marked(SegmentKind::Small(0), 9);
        assert!(collection.is_running());
        let damaged = Collection {
            stopped_by: None,
            ..collection
        };
        assert!(!damaged.is_running());
        let by_a_server = Collection {
            marked: MANY,
            ..damaged
        };
        assert!(by_a_server.is_running());
        assert_eq!(collection.marked, 16);
        assert_eq!(collection.oldest_marked, Some(SegmentKind::Small(1)));
    }
}
