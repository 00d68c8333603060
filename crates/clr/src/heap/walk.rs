//! The walk: from object to object by size, one segment per task.

use super::index::{BadObject, Bits, Heap, HeapObject, TypeCount};
use super::segments::{HeapShape, Segment};
use crate::gap::{Gap, GapKind};
use crate::runtime::Runtime;
use asynctriage_dump::Addr;
use rayon::prelude::*;
use rustc_hash::FxHashMap;

/// The smallest object: header, MethodTable, one word.
const MIN_OBJECT: u64 = 24;
/// Objects in a row that must look right before the walk trusts them again.
const RESYNC_OBJECTS: u32 = 3;
/// An allocation context keeps this much room for the free object that will fill it.
const CONTEXT_SLACK: u64 = 24;
/// Reported places without an object; the rest is only counted.
const MAX_BAD: usize = 1000;
/// An object larger than this is a torn size: the runtime's limit for one array is 2 GiB of elements of 8 bytes.
const MAX_OBJECT: u64 = 1 << 35;

/// A segment may be this much larger than what the dump holds of it; beyond, its end is not believed.
const MOSTLY_ABSENT: u64 = 1024;
/// A segment of this many bytes is believed whatever the dump holds of it.
const SMALL_SEGMENT: u64 = 64 << 20;

/// The bit of the MethodTable word that the collector marks a living object with (8.0 to 11.0).
const MARK: u8 = 1;

/// Objects between two looks at whether the walk is to end.
const LOOK_EVERY: u32 = 1 << 14;
/// Words between two looks while objects are searched for.
const SEARCH_LOOK: u64 = 1 << 16;
/// What is left when the walk ends early.
const LEFT: &str = "bytes of heap segments";

/// Types remembered by the hot loop.
const RECENT: usize = 256;

/// Where a type is remembered: MethodTables stand 8 bytes apart or more, and near one another.
fn recent_slot(mt: u64) -> usize {
    usize::from(((mt >> 3) ^ (mt >> 11)).to_le_bytes()[0])
}

/// What the walk needs to know of a type.
#[derive(Clone, Copy)]
struct Shape {
    mt: u64,
    base: u64,
    component: u64,
    wanted: bool,
    slot: usize,
}

/// Everything that one task gathers.
#[derive(Default)]
struct Tally {
    shapes: FxHashMap<u64, Option<Shape>>,
    types: Vec<TypeCount>,
    wanted: Vec<HeapObject>,
    bad: Vec<BadObject>,
    starts: Vec<(usize, Bits)>,
    /// Objects that bear the collector's mark, by segment.
    marked: Vec<(usize, u64)>,
}

impl Tally {
    fn merge(mut self, other: Self) -> Self {
        for t in other.types {
            match self
                .shapes
                .get(&t.mt.0)
                .copied()
                .flatten()
                .and_then(|s| self.types.get_mut(s.slot))
            {
                Some(mine) => {
                    mine.count = mine.count.saturating_add(t.count);
                    mine.bytes = mine.bytes.saturating_add(t.bytes);
                }
                None => {
                    let slot = self.types.len();
                    self.types.push(t);
                    self.shapes.insert(
                        t.mt.0,
                        Some(Shape {
                            mt: t.mt.0,
                            base: 0,
                            component: 0,
                            wanted: false,
                            slot,
                        }),
                    );
                }
            }
        }
        self.wanted.extend(other.wanted);
        self.bad.extend(other.bad);
        self.starts.extend(other.starts);
        self.marked.extend(other.marked);
        self
    }
}

impl Runtime<'_> {
    /// Walks every object. `wanted` is asked once per task and type; objects of the types it says yes to are listed.
    #[must_use]
    pub fn walk_heap(&self, wanted: &(dyn Fn(Addr) -> bool + Sync)) -> Heap {
        let shape = self.heap_shape();
        let tally = shape
            .segments
            .par_iter()
            .enumerate()
            .fold(Tally::default, |tally, (index, segment)| {
                Walker {
                    rt: self,
                    shape: &shape,
                    wanted,
                    tally,
                    marked: 0,
                }
                .segment(index, segment)
            })
            .reduce(Tally::default, Tally::merge);
        finish(shape, tally)
    }
}

fn finish(mut shape: HeapShape, mut tally: Tally) -> Heap {
    for (index, marked) in &tally.marked {
        if let Some(segment) = shape.segments.get(*index) {
            shape.collection.add_marked(segment.kind, *marked);
        }
    }
    tally.starts.sort_unstable_by_key(|(index, _)| *index);
    tally.wanted.sort_unstable();
    tally.bad.sort_unstable_by_key(|b| b.addr);
    tally.types.retain(|t| t.count > 0);
    tally
        .types
        .sort_unstable_by_key(|t| (std::cmp::Reverse(t.bytes), t.mt));
    let mut gaps = shape.gaps.clone();
    let absent: u64 = tally
        .bad
        .iter()
        .filter(|b| b.absent)
        .map(|b| b.skipped)
        .sum();
    if absent > 0 {
        gaps.push(Gap {
            kind: GapKind::HeapMemory,
            place: format!("{absent} bytes of heap segments"),
            why: "the dump was written without them, or is cut off".into(),
            remedy:
                "take a dump that includes the whole heap and check that the disk did not fill up"
                    .into(),
        });
    }
    let wrong = tally.bad.iter().filter(|b| !b.absent).count();
    if wrong > 0 {
        gaps.push(Gap {
            kind: GapKind::HeapObjects,
            place: format!("{wrong} places in heap segments"),
            why: "no object could be recognised there; the walk went on behind them".into(),
            remedy: "a dump taken at another moment is usually whole".into(),
        });
    }
    if shape.collection.moving {
        gaps.push(Gap {
            kind: GapKind::HeapMoving,
            place: "the whole heap".into(),
            why: "the dump was taken while a garbage collection moved objects".into(),
            remedy: "take another dump a few seconds later".into(),
        });
    }
    let starts = tally.starts.into_iter().map(|(_, bits)| bits).collect();
    Heap {
        shape,
        types: tally.types,
        wanted: tally.wanted,
        bad: tally.bad,
        gaps,
        starts,
    }
}

/// The largest segment that is believed when the dump holds `readable` bytes of it: a damaged end must not make the
/// bitmap larger than the dump many times over.
fn believable(readable: u64) -> u64 {
    match readable {
        // nothing is kept of such a segment
        0 => u64::MAX,
        n => n.saturating_mul(MOSTLY_ABSENT).max(SMALL_SEGMENT),
    }
}

struct Walker<'a, 'd> {
    rt: &'a Runtime<'d>,
    shape: &'a HeapShape,
    wanted: &'a (dyn Fn(Addr) -> bool + Sync),
    tally: Tally,
    /// Objects with the collector's mark.
    marked: u64,
}

/// How far a stretch of bytes could be walked.
enum Stop {
    /// At an object that reaches past the bytes, or at their end.
    Ran(Addr),
    /// At something that is no object.
    Bad(Addr),
}

impl Walker<'_, '_> {
    fn segment(mut self, index: usize, segment: &Segment) -> Tally {
        let len = segment.end.since(segment.start).unwrap_or(0);
        let readable = if self.rt.memory.run(segment.start) >= len {
            len
        } else {
            self.readable_within(segment)
        };
        let believed = len.min(believable(readable));
        if believed < len {
            self.tally.bad.push(BadObject {
                addr: segment.start + believed,
                skipped: len.saturating_sub(believed),
                absent: true,
            });
        }
        let segment = &Segment {
            end: segment.start + believed,
            ..*segment
        };
        let mut starts = Bits::for_bytes(if readable == 0 { 0 } else { believed });
        let mut at = segment.start;
        while at < segment.end {
            let left = || segment.end.since(at);
            if self.rt.budget().leaves(LEFT, left) {
                break;
            }
            let run = self
                .rt
                .memory
                .run(at)
                .min(segment.end.since(at).unwrap_or(0));
            let stop = match self.rt.memory.slice(at, run).filter(|_| run >= MIN_OBJECT) {
                Some(bytes) => self.stretch(segment, at, bytes, &mut starts),
                None => self.single(segment, at, &mut starts),
            };
            at = match stop {
                Stop::Ran(next) => next,
                Stop::Bad(place) => self.resync(place, segment),
            };
        }
        self.tally.starts.push((index, starts));
        if self.marked > 0 {
            self.tally.marked.push((index, self.marked));
        }
        self.tally
    }

    /// Bytes of a segment that are in the dump at all.
    fn readable_within(&self, segment: &Segment) -> u64 {
        let inside = |(start, len): (Addr, u64)| {
            let end = (start + len).min(segment.end);
            end.since(start.max(segment.start)).unwrap_or(0)
        };
        let ranges = self.rt.dump.memory.ranges();
        ranges.map(inside).fold(0, u64::saturating_add)
    }

    /// Walks bytes that stand side by side; the hot loop.
    fn stretch(&mut self, segment: &Segment, start: Addr, bytes: &[u8], starts: &mut Bits) -> Stop {
        let mut at = start;
        // types alternate, so the last one alone is rarely the next one
        let mut recent = [None::<Shape>; RECENT];
        let mut context = self.next_context(at);
        let mut before_look = LOOK_EVERY;
        loop {
            before_look = before_look.wrapping_sub(1);
            if before_look == 0 {
                if self.rt.budget().is_over() {
                    return Stop::Ran(at);
                }
                before_look = LOOK_EVERY;
            }
            if let Some((pointer, limit)) = context
                && at >= pointer
            {
                if at == pointer {
                    // a damaged limit must not lead backwards
                    at = (limit + CONTEXT_SLACK).min(segment.end).max(at + 8);
                }
                context = self.next_context(at);
                continue;
            }
            let Some(offset) = at.since(start).and_then(|o| usize::try_from(o).ok()) else {
                return Stop::Bad(at);
            };
            let Some(head) = bytes.get(offset..).and_then(|b| b.first_chunk::<16>()) else {
                return Stop::Ran(at);
            };
            let [m0, m1, m2, m3, m4, m5, m6, m7, c0, c1, c2, c3, ..] = *head;
            let mt = u64::from_le_bytes([m0, m1, m2, m3, m4, m5, m6, m7]) & !7;
            let slot = recent.get_mut(recent_slot(mt));
            let shape = match slot {
                Some(Some(shape)) if shape.mt == mt => *shape,
                slot => {
                    let Some(shape) = self.shape_of(mt) else {
                        return Stop::Bad(at);
                    };
                    if let Some(slot) = slot {
                        *slot = Some(shape);
                    }
                    shape
                }
            };
            let count = u64::from(u32::from_le_bytes([c0, c1, c2, c3]));
            let size = shape
                .base
                .saturating_add(shape.component.saturating_mul(count));
            let end = at + (size.max(MIN_OBJECT).saturating_add(7) & !7);
            if size > MAX_OBJECT || end > segment.end {
                return Stop::Bad(at);
            }
            self.count(segment, at, &shape, size.max(MIN_OBJECT), starts);
            self.marked = self.marked.wrapping_add(u64::from(m0 & MARK));
            at = end;
        }
    }

    /// One object whose first words lie across two pieces of the dump.
    fn single(&mut self, segment: &Segment, at: Addr, starts: &mut Bits) -> Stop {
        let mut head = [0; 16];
        if !self.rt.memory.read_into(at, &mut head) {
            return Stop::Bad(at);
        }
        let mut one = Self {
            rt: self.rt,
            shape: self.shape,
            wanted: self.wanted,
            tally: std::mem::take(&mut self.tally),
            marked: 0,
        };
        let stop = one.stretch(segment, at, &head, starts);
        self.tally = one.tally;
        self.marked = self.marked.saturating_add(one.marked);
        match stop {
            Stop::Ran(next) if next == at => Stop::Bad(at),
            other => other,
        }
    }

    fn count(&mut self, segment: &Segment, at: Addr, shape: &Shape, size: u64, starts: &mut Bits) {
        if let Some(t) = self.tally.types.get_mut(shape.slot) {
            t.count = t.count.saturating_add(1);
            t.bytes = t.bytes.saturating_add(size);
        }
        if let Some(offset) = at.since(segment.start) {
            starts.set(offset);
        }
        if shape.wanted {
            self.tally.wanted.push(HeapObject {
                addr: at,
                mt: Addr(shape.mt),
            });
        }
    }

    fn shape_of(&mut self, mt: u64) -> Option<Shape> {
        if let Some(known) = self.tally.shapes.get(&mt) {
            return *known;
        }
        let shape = self
            .rt
            .ty(Addr(mt))
            .filter(|t| u64::from(t.base_size) >= 16)
            .map(|t| {
                let slot = self.tally.types.len();
                self.tally.types.push(TypeCount {
                    mt: Addr(mt),
                    count: 0,
                    bytes: 0,
                });
                let wanted = t.component_size == 0 && (self.wanted)(Addr(mt));
                Shape {
                    mt,
                    base: u64::from(t.base_size),
                    component: u64::from(t.component_size),
                    wanted,
                    slot,
                }
            });
        self.tally.shapes.insert(mt, shape);
        shape
    }

    /// The first allocation context at or behind an address.
    fn next_context(&self, at: Addr) -> Option<(Addr, Addr)> {
        let index = self
            .shape
            .contexts
            .partition_point(|(pointer, _)| *pointer < at);
        self.shape.contexts.get(index).copied()
    }

    /// Looks for the next place from which several objects follow one another; counts what was skipped.
    fn resync(&mut self, bad: Addr, segment: &Segment) -> Addr {
        let absent = self.rt.memory.run(bad) < 16;
        let mut at = bad + 8;
        while at < segment.end {
            if self.rt.memory.run(at) == 0 {
                at = self
                    .next_readable(at)
                    .unwrap_or(segment.end)
                    .min(segment.end);
                continue;
            }
            if self.plausible_run(at, segment) {
                break;
            }
            at = at + 8;
            if (at.0 >> 3) & (SEARCH_LOOK - 1) == 0 && self.rt.budget().is_over() {
                break;
            }
        }
        if self.tally.bad.len() < MAX_BAD {
            let skipped = at.min(segment.end).since(bad).unwrap_or(0);
            self.tally.bad.push(BadObject {
                addr: bad,
                skipped,
                absent,
            });
        }
        at.min(segment.end)
    }

    fn next_readable(&self, at: Addr) -> Option<Addr> {
        self.rt
            .dump
            .memory
            .ranges()
            .map(|(start, _)| start)
            .find(|start| *start > at)
    }

    fn plausible_run(&mut self, from: Addr, segment: &Segment) -> bool {
        let mut at = from;
        for _ in 0..RESYNC_OBJECTS {
            if at == segment.end {
                return true;
            }
            let Some(mt) = self.rt.memory.u64(at).filter(|m| *m > 0xffff) else {
                return false;
            };
            let Some(shape) = self.shape_of(mt & !7) else {
                return false;
            };
            let count = u64::from(self.rt.memory.u32(at + 8).unwrap_or(0));
            let size = shape
                .base
                .saturating_add(shape.component.saturating_mul(count));
            at = at + (size.max(MIN_OBJECT).saturating_add(7) & !7);
            if size > MAX_OBJECT || at > segment.end {
                return false;
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_segment_is_believed_in_proportion_to_what_is_there() {
        assert_eq!(believable(0), u64::MAX);
        assert_eq!(believable(4096), SMALL_SEGMENT, "a page of a small one");
        assert_eq!(believable(1 << 20), 1 << 30);
        assert_eq!(believable(u64::MAX), u64::MAX);
    }
}
