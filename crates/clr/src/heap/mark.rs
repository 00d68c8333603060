//! Which objects the roots reach.
//!
//! Marking is bound by cache misses, so objects are taken from the stack in batches: the loads of one batch do not
//! depend on each other and overlap. Threads share work by handing over half of a long stack.

use super::index::{GRANULE, Heap};
use super::references::Scan;
use crate::roots::Roots;
use crate::runtime::Runtime;
use asynctriage_dump::{Addr, Budget};
use rayon::Scope;
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

/// Objects whose headers are loaded together.
const BATCH: usize = 16;
/// A stack longer than this is worth sharing.
const SHARE_ABOVE: usize = 4096;
/// Objects between two looks at whether everything wanted has been found.
const CHECK_EVERY: u64 = 1 << 18;
/// What is left when marking ends early.
const LEFT: &str = "references that the roots lead to";
/// Looks at dependent handles, in rounds: those whose key was reached keep their value alive, which may reach the keys of
/// others. What is left then counts as alive.
const MAX_LOOKS: usize = 1 << 27;

impl Runtime<'_> {
    /// Those of `wanted` that the roots reach, directly or through other objects.
    ///
    /// Words that are no object are ignored, so stacks may be given as they are; a pointer into the middle of an object
    /// keeps it alive. Ends as soon as all wanted objects are found: a heap without dead ones is rarely marked whole. All
    /// of them when the analysis was ended meanwhile: that something is not reached is then not known.
    #[must_use]
    pub fn reached(
        &self,
        heap: &Heap,
        roots: &Roots,
        wanted: impl IntoIterator<Item = Addr>,
    ) -> FxHashSet<Addr> {
        self.reached_around(heap, roots, &[], wanted)
    }

    /// The same without going through some objects, as if they held no references. As keys of dependent handles they
    /// count as alive.
    #[must_use]
    pub fn reached_around(
        &self,
        heap: &Heap,
        roots: &Roots,
        barred: &[Addr],
        wanted: impl IntoIterator<Item = Addr>,
    ) -> FxHashSet<Addr> {
        let wanted: Vec<Addr> = wanted.into_iter().filter(|w| heap.is_object(*w)).collect();
        let marker = Marker::run(self, heap, roots, barred, &wanted);
        let all = wanted.iter().copied();
        if marker.is_cut() {
            return all.collect();
        }
        all.filter(|w| marker.is_marked(*w)).collect()
    }
}

fn zeros(words: usize) -> Vec<AtomicU64> {
    std::iter::repeat_with(AtomicU64::default)
        .take(words)
        .collect()
}

pub(super) struct Marker<'a, 'd> {
    rt: &'a Runtime<'d>,
    heap: &'a Heap,
    marks: Vec<Vec<AtomicU64>>,
    wanted: &'a [Addr],
    /// How many of the wanted objects, from the first on, are known to be marked.
    found: AtomicUsize,
    done: AtomicBool,
    /// Whether marking was ended early.
    cut: AtomicBool,
    /// Stacks being worked on.
    tasks: AtomicUsize,
}

impl<'a, 'd> Marker<'a, 'd> {
    /// Marks what the roots reach without going through `barred`, until all wanted objects are found.
    fn run(
        rt: &'a Runtime<'d>,
        heap: &'a Heap,
        roots: &Roots,
        barred: &[Addr],
        wanted: &'a [Addr],
    ) -> Self {
        let marker = Self {
            rt,
            heap,
            marks: heap.starts.iter().map(|s| zeros(s.0.len())).collect(),
            wanted,
            found: AtomicUsize::new(0),
            done: AtomicBool::new(wanted.is_empty()),
            cut: AtomicBool::new(false),
            tasks: AtomicUsize::new(0),
        };
        // what is marked already is not looked into
        for object in barred.iter().filter(|b| heap.is_object(**b)) {
            marker.mark(*object);
        }
        let strong = roots
            .strong
            .iter()
            .filter_map(|r| rt.object_around(heap, *r));
        marker.mark_from(strong);
        marker.mark_dependent(&roots.dependent);
        marker
    }

    /// Marks all that the roots reach without going through `barred`.
    pub(super) fn everything(
        rt: &'a Runtime<'d>,
        heap: &'a Heap,
        roots: &Roots,
        barred: &[Addr],
    ) -> Self {
        // what is never found is looked for to the end
        const NOTHING: &[Addr] = &[Addr::NULL];
        Self::run(rt, heap, roots, barred, NOTHING)
    }

    pub(super) fn budget(&self) -> &Budget {
        self.rt.budget()
    }

    /// Whether marking was ended before it had reached everything.
    pub(super) fn is_cut(&self) -> bool {
        self.cut.load(Ordering::Relaxed)
    }

    /// Whether an object starts here that the roots did not reach.
    pub(super) fn is_unmarked_object(&self, addr: Addr) -> bool {
        self.bit(addr)
            .is_some_and(|(word, mask)| word.load(Ordering::Relaxed) & mask == 0)
    }

    /// Adds what an object refers to.
    pub(super) fn scan_object(
        &self,
        object: Addr,
        scans: &mut FxHashMap<Addr, Scan>,
        found: &mut Vec<Addr>,
    ) {
        let header = self.rt.memory.u64(object).unwrap_or(0);
        let scan = scans
            .entry(Addr(header & !7))
            .or_insert_with_key(|mt| self.rt.scan_of(*mt));
        scan.targets(self.rt.memory, object, found);
    }

    /// Word and bit of an object that starts at `addr`.
    fn bit(&self, addr: Addr) -> Option<(&AtomicU64, u64)> {
        let index = self.heap.segment_index(addr)?;
        let granule = addr
            .since(self.heap.shape.segments.get(index)?.start)?
            .checked_div(GRANULE)?;
        let word = usize::try_from(granule >> 6).ok()?;
        let mask = 1_u64 << (granule & 63);
        let starts = self.heap.starts.get(index)?.0.get(word)?;
        (starts & mask != 0 && addr.0 & 7 == 0).then_some((self.marks.get(index)?.get(word)?, mask))
    }

    /// Marks an object; whether it was not marked before.
    fn mark(&self, addr: Addr) -> bool {
        self.bit(addr).is_some_and(|(word, mask)| {
            word.load(Ordering::Relaxed) & mask == 0
                && word.fetch_or(mask, Ordering::Relaxed) & mask == 0
        })
    }

    /// Marks objects and what hangs on them.
    fn mark_from(&self, objects: impl Iterator<Item = Addr>) {
        let new: Vec<Addr> = objects.filter(|o| self.mark(*o)).collect();
        rayon::scope(|scope| self.drain(scope, new));
    }

    /// Marks the values of dependent handles whose keys are marked, until no more come to light.
    fn mark_dependent(&self, pairs: &[(Addr, Addr)]) {
        let mut left = pairs.to_vec();
        let mut looks = MAX_LOOKS;
        while let Some(rest) = looks.checked_sub(left.len()) {
            looks = rest;
            if self.all_found() {
                return;
            }
            let (live, rest): (Vec<_>, Vec<_>) =
                left.into_iter().partition(|(key, _)| self.is_marked(*key));
            if live.is_empty() {
                return;
            }
            self.mark_from(live.into_iter().map(|(_, value)| value));
            left = rest;
        }
        self.mark_from(left.into_iter().map(|(_, value)| value));
    }

    fn is_marked(&self, addr: Addr) -> bool {
        self.bit(addr)
            .is_some_and(|(word, mask)| word.load(Ordering::Relaxed) & mask != 0)
    }

    /// Whether all wanted objects are marked by now.
    fn all_found(&self) -> bool {
        let from = self.found.load(Ordering::Relaxed);
        let rest = self.wanted.get(from..).unwrap_or_default();
        let more = rest.iter().take_while(|w| self.is_marked(**w)).count();
        self.found
            .fetch_max(from.saturating_add(more), Ordering::Relaxed);
        more == rest.len()
    }

    /// Marks what hangs on the objects of a stack.
    fn drain<'s>(&'s self, scope: &Scope<'s>, mut todo: Vec<Addr>) {
        self.tasks.fetch_add(1, Ordering::Relaxed);
        let mut scans: FxHashMap<u64, Scan> = FxHashMap::default();
        let mut found = Vec::new();
        let mut since_check = 0_u64;
        while !todo.is_empty() && !self.done.load(Ordering::Relaxed) {
            let batch = todo.split_off(todo.len().saturating_sub(BATCH));
            let headers: [u64; BATCH] = std::array::from_fn(|i| {
                batch
                    .get(i)
                    .and_then(|o| self.rt.memory.u64(*o))
                    .unwrap_or(0)
            });
            for (object, header) in batch.iter().zip(headers) {
                let scan = scans
                    .entry(header & !7)
                    .or_insert_with_key(|mt| self.rt.scan_of(Addr(*mt)));
                scan.targets(self.rt.memory, *object, &mut found);
            }
            todo.extend(found.drain(..).filter(|o| self.mark(*o)));
            if todo.len() > SHARE_ABOVE
                && self.tasks.load(Ordering::Relaxed) < rayon::current_num_threads()
            {
                let half = todo.split_off(todo.len() >> 1);
                scope.spawn(move |scope| self.drain(scope, half));
            }
            since_check = since_check.saturating_add(BATCH as u64);
            if since_check >= CHECK_EVERY {
                since_check = 0;
                if self.all_found() {
                    self.done.store(true, Ordering::Relaxed);
                }
            }
            if self.rt.budget().is_over() && !todo.is_empty() {
                // what was left is counted by whoever notes it first
                let _ = self.rt.budget().leaves(LEFT, || Some(todo.len() as u64));
                self.cut.store(true, Ordering::Relaxed);
                break;
            }
        }
        self.tasks.fetch_sub(1, Ordering::Relaxed);
    }
}
