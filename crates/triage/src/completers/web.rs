//! Who leads to some objects: the heap's references followed against their direction, up to something that acts or lasts.

use crate::paths::Analysis;
use asynctriage_async_graph::NodeId;
use asynctriage_clr::{Reference, StaticReference};
use asynctriage_dump::Addr;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::VecDeque;

/// Steps away from an object that are followed.
const MAX_LEVELS: usize = 12;
/// Objects of the heap that all passes together look at: a small heap is searched as deep as [`MAX_LEVELS`], of a large
/// one two steps at least.
const MAX_LOOKS: u64 = 32_000_000;
/// References that one pass keeps.
const MAX_REFERENCES: usize = 1 << 18;
/// References to one object that are followed. What more than these name is shared by everything, and tells nothing.
const MAX_NAMED_BY: usize = 256;
/// Objects on the ways to one object.
const MAX_VISITED: usize = 4096;
/// Ends of the ways to one object.
const MAX_ENDS: usize = 64;

/// Something at the end of a way that acts or lasts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// A suspended method: its node, and the object with the variables.
    Method(NodeId, Addr),
    /// A thread, by its index: the slot of its stack, or a register.
    Thread(usize, Option<Addr>),
    /// A static field.
    Static(StaticReference),
    /// A work item that nobody has run yet.
    Queued,
    /// A timer.
    Timer,
    /// What a cancellation token calls.
    Registration,
}

/// Parts of .NET's own lists of timers and callbacks: what they lead to is theirs, what leads to them is a neighbour.
const LISTED: [(&str, End); 2] = [
    ("System.Threading.TimerQueueTimer", End::Timer),
    (
        "System.Threading.CancellationTokenSource+CallbackNode",
        End::Registration,
    ),
];

/// A way from an end to the object that was looked for.
#[derive(Clone, Debug)]
pub(super) struct Way {
    pub(super) end: End,
    /// The first object of the way.
    pub(super) from: Addr,
    /// The references from there on; the last one leads to the object.
    pub(super) references: Vec<Reference>,
}

/// The ways to one object.
#[derive(Clone, Debug)]
pub(super) struct Ways {
    pub(super) all: Vec<Way>,
    /// Whether there may be more.
    pub(super) is_cut: bool,
}

/// What is known of who refers to what.
pub(super) struct Web {
    /// By target.
    up: FxHashMap<Addr, Vec<Reference>>,
    /// By object: the threads whose stacks or registers name it.
    stacks: FxHashMap<Addr, Vec<(usize, Option<Addr>)>>,
    /// By slot.
    statics: FxHashMap<Addr, StaticReference>,
    methods: FxHashMap<Addr, NodeId>,
    queued: FxHashSet<Addr>,
    /// Timers and registrations.
    listed: FxHashMap<Addr, End>,
    /// Objects of which not all references to them are known.
    cut: FxHashSet<Addr>,
}

impl Web {
    /// Looks for who leads to `targets`.
    pub(super) fn find(analysis: &Analysis<'_, '_>, targets: &[Addr]) -> Self {
        let mut web = Self {
            up: FxHashMap::default(),
            stacks: FxHashMap::default(),
            statics: FxHashMap::default(),
            methods: methods_by_object(analysis),
            queued: analysis.graph.queues.items().collect(),
            listed: FxHashMap::default(),
            cut: FxHashSet::default(),
        };
        web.climb(analysis, targets);
        web.add_stacks(analysis, targets);
        web
    }

    fn climb(&mut self, analysis: &Analysis<'_, '_>, targets: &[Addr]) {
        let (rt, heap) = (analysis.rt, &analysis.graph.heap);
        let passes = MAX_LOOKS.checked_div(heap.objects()).unwrap_or(MAX_LOOKS);
        let levels = usize::try_from(passes)
            .unwrap_or(MAX_LEVELS)
            .clamp(2, MAX_LEVELS);
        let mut seen: FxHashSet<Addr> = targets.iter().copied().collect();
        let mut next: Vec<Addr> = targets.to_vec();
        for _ in 0..levels {
            if next.is_empty() {
                return;
            }
            let found = rt.referrers(heap, next.iter().copied(), MAX_REFERENCES);
            if found.is_cut {
                self.cut.extend(&next);
            }
            next.clear();
            for reference in found.references {
                let to = self.up.entry(reference.target).or_default();
                if to.len() >= MAX_NAMED_BY {
                    self.cut.insert(reference.target);
                    continue;
                }
                to.push(reference);
                let holder = reference.holder;
                if seen.insert(holder) && !self.ends_at(analysis, &reference) {
                    next.push(holder);
                }
            }
        }
        self.cut.extend(next);
    }

    /// Whether a way need not be followed beyond the holder of a reference.
    fn ends_at(&mut self, analysis: &Analysis<'_, '_>, reference: &Reference) -> bool {
        if self.methods.contains_key(&reference.holder) || self.queued.contains(&reference.holder) {
            return true;
        }
        let class = analysis.rt.object_type_name(reference.holder);
        let listed = LISTED
            .into_iter()
            .find(|(name, _)| class.as_deref() == Some(name));
        if let Some((_, end)) = listed {
            self.listed.insert(reference.holder, end);
            return true;
        }
        // static references stand in arrays of objects
        let holds_statics = analysis
            .rt
            .type_of(reference.holder)
            .is_some_and(|t| t.is_array() && t.component_size == 8);
        if holds_statics {
            self.learn_statics(analysis);
        }
        self.statics.contains_key(&reference.slot)
    }

    fn learn_statics(&mut self, analysis: &Analysis<'_, '_>) {
        if !self.statics.is_empty() {
            return;
        }
        for module in analysis.rt.modules_seen() {
            let fields = analysis.rt.static_references(&module);
            self.statics.extend(fields.into_iter().map(|f| (f.slot, f)));
        }
    }

    fn add_stacks(&mut self, analysis: &Analysis<'_, '_>, targets: &[Addr]) {
        let holders = self.up.values().flatten().map(|r| r.holder);
        let known: FxHashSet<Addr> = holders.chain(targets.iter().copied()).collect();
        let threads = analysis.threads.all.iter().enumerate();
        for (index, thread) in analysis
            .rt
            .budget()
            .each("stacks, for what they hold", threads)
        {
            for (slot, word) in analysis.rt.stack_words(thread) {
                if known.contains(&word) {
                    self.stacks.entry(word).or_default().push((index, slot));
                }
            }
        }
    }

    /// The suspended method whose variables an object holds.
    pub(super) fn method_of(&self, object: Addr) -> Option<NodeId> {
        self.methods.get(&object).copied()
    }

    /// The shortest ways to an object, those from other ends than `barred` methods, the nearest ends first.
    pub(super) fn ways_to(&self, target: Addr, barred: &FxHashSet<NodeId>) -> Ways {
        let mut out: Vec<Way> = Vec::new();
        let mut is_cut = false;
        // by object: the reference that leads from it towards the target
        let mut towards: FxHashMap<Addr, Reference> = FxHashMap::default();
        let mut todo = VecDeque::from([target]);
        while let Some(object) = todo.pop_front() {
            is_cut |= self.cut.contains(&object);
            for (thread, slot) in self.stacks.get(&object).into_iter().flatten() {
                self.add(
                    &mut out,
                    End::Thread(*thread, *slot),
                    object,
                    target,
                    &towards,
                );
            }
            if self.queued.contains(&object) {
                self.add(&mut out, End::Queued, object, target, &towards);
            }
            for reference in self.up.get(&object).into_iter().flatten() {
                let holder = reference.holder;
                if let Some(field) = self.statics.get(&reference.slot) {
                    self.add(
                        &mut out,
                        End::Static(field.clone()),
                        object,
                        target,
                        &towards,
                    );
                    continue;
                }
                if holder == target || towards.contains_key(&holder) {
                    continue;
                }
                if towards.len() >= MAX_VISITED {
                    is_cut = true;
                    continue;
                }
                towards.insert(holder, *reference);
                match self.methods.get(&holder) {
                    Some(node) if barred.contains(node) => {}
                    Some(node) => {
                        self.add(
                            &mut out,
                            End::Method(*node, holder),
                            holder,
                            target,
                            &towards,
                        );
                    }
                    None => match self.listed.get(&holder) {
                        Some(end) => self.add(&mut out, end.clone(), holder, target, &towards),
                        None => todo.push_back(holder),
                    },
                }
            }
        }
        Ways {
            is_cut: is_cut || out.len() >= MAX_ENDS,
            all: out,
        }
    }

    /// The nearest object that leads to a target and fits, with the slot through which it does.
    pub(super) fn nearest(
        &self,
        target: Addr,
        fits: &dyn Fn(Addr) -> bool,
    ) -> Option<(Addr, Addr)> {
        let mut seen = FxHashSet::from_iter([target]);
        let mut todo = VecDeque::from([target]);
        while let Some(object) = todo.pop_front() {
            for reference in self.up.get(&object).into_iter().flatten() {
                let holder = reference.holder;
                if fits(holder) {
                    return Some((holder, reference.slot));
                }
                let is_end =
                    self.methods.contains_key(&holder) || self.listed.contains_key(&holder);
                if !is_end && seen.len() < MAX_VISITED && seen.insert(holder) {
                    todo.push_back(holder);
                }
            }
        }
        None
    }

    fn add(
        &self,
        out: &mut Vec<Way>,
        end: End,
        from: Addr,
        target: Addr,
        towards: &FxHashMap<Addr, Reference>,
    ) {
        let is_same = |way: &Way| match (&way.end, &end) {
            (End::Thread(a, _), End::Thread(b, _)) => a == b,
            _ => false,
        };
        if out.len() >= MAX_ENDS || out.iter().any(is_same) {
            return;
        }
        let mut references = Vec::new();
        let mut at = from;
        while let Some(reference) = towards.get(&at).filter(|_| at != target) {
            references.push(*reference);
            at = reference.target;
        }
        out.push(Way {
            end,
            from,
            references,
        });
    }
}

/// The objects that hold the variables of suspended methods.
pub(crate) fn methods_by_object(analysis: &Analysis<'_, '_>) -> FxHashMap<Addr, NodeId> {
    let graph = &analysis.graph;
    let mut out = FxHashMap::default();
    for (id, machine) in &graph.machines {
        out.extend(graph.object(*id).map(|n| (n.addr, *id)));
        // a state machine that is a class is an object of its own
        let own = machine.place.base.back(8);
        if graph.heap.is_object(own) {
            out.insert(own, *id);
        }
    }
    for (id, operation) in &graph.operations {
        out.extend(operation.frames.iter().map(|f| (f.continuation, *id)));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn web(references: &[(u64, u64)]) -> Web {
        let mut up: FxHashMap<Addr, Vec<Reference>> = FxHashMap::default();
        for (holder, target) in references {
            up.entry(Addr(*target)).or_default().push(Reference {
                target: Addr(*target),
                holder: Addr(*holder),
                slot: Addr(holder + 8),
            });
        }
        Web {
            up,
            stacks: FxHashMap::default(),
            statics: FxHashMap::default(),
            methods: FxHashMap::default(),
            queued: FxHashSet::default(),
            listed: FxHashMap::default(),
            cut: FxHashSet::default(),
        }
    }

    #[test]
    fn the_nearest_end_comes_first_and_circles_end() {
        let mut web = web(&[(20, 10), (30, 20), (10, 30), (40, 30)]);
        web.methods.insert(Addr(40), NodeId::new(4));
        web.stacks.insert(Addr(20), vec![(0, None)]);
        let ways = web.ways_to(Addr(10), &FxHashSet::default()).all;
        let ends: Vec<&End> = ways.iter().map(|w| &w.end).collect();
        assert_eq!(
            ends,
            [
                &End::Thread(0, None),
                &End::Method(NodeId::new(4), Addr(40))
            ]
        );
        let targets: Vec<u64> = ways[1].references.iter().map(|r| r.target.0).collect();
        assert_eq!(targets, [30, 20, 10]);
    }

    #[test]
    fn the_nearest_holder_that_fits_is_found_beyond_others() {
        let web = web(&[(20, 10), (30, 20), (10, 30), (40, 30)]);
        let found = web.nearest(Addr(10), &|holder| holder == Addr(40));
        assert_eq!(found, Some((Addr(40), Addr(48))));
        assert_eq!(web.nearest(Addr(10), &|_| false), None);
    }

    #[test]
    fn methods_that_wait_for_the_object_do_not_count() {
        let mut web = web(&[(20, 10), (30, 10)]);
        web.methods.insert(Addr(20), NodeId::new(2));
        web.methods.insert(Addr(30), NodeId::new(3));
        let ways = web.ways_to(Addr(10), &FxHashSet::from_iter([NodeId::new(2)]));
        assert!(!ways.is_cut);
        assert_eq!(ways.all.len(), 1);
        assert_eq!(ways.all[0].from, Addr(30));
    }

    #[test]
    fn a_search_that_ended_early_is_told_of_the_objects_that_it_concerns() {
        let mut web = web(&[(20, 10), (30, 20), (50, 40)]);
        web.cut.insert(Addr(30));
        assert!(web.ways_to(Addr(10), &FxHashSet::default()).is_cut);
        assert!(!web.ways_to(Addr(40), &FxHashSet::default()).is_cut);
    }
}
