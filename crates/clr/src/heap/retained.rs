//! What objects are kept alive by, when several holders are compared: the sizes that would be freed with each.

use super::index::Heap;
use super::mark::Marker;
use super::references::Scan;
use crate::roots::Roots;
use crate::runtime::Runtime;
use asynctriage_dump::Addr;
use rustc_hash::FxHashMap;

/// Objects whose holders are told apart; beyond, nothing is told rather than something wrong.
pub const MAX_RETAINED: usize = 1 << 24;

/// What is left when sorting ends early.
const LEFT: &str = "objects that suspended methods keep alive";

/// A reference that keeps an object alive: part of a variable, which is part of a frame, which is part of a chain. Each
/// of them is a number that the caller gives; a variable belongs to one frame and a frame to one chain.
#[derive(Clone, Copy, Debug)]
pub struct Held {
    /// What it refers to.
    pub object: Addr,
    /// The variable.
    pub variable: u32,
    /// The frame.
    pub frame: u32,
    /// The chain.
    pub chain: u32,
}

/// Bytes that live only because of a variable, a frame, a chain: what nothing else in the process leads to. Sizes as the
/// heap counts them, without alignment padding.
#[derive(Clone, Debug, Default)]
pub struct Retained {
    /// By variable.
    pub variables: FxHashMap<u32, u64>,
    /// By frame: its variables, and what only several of them share.
    pub frames: FxHashMap<u32, u64>,
    /// By chain: its frames, and what only several of them share.
    pub chains: FxHashMap<u32, u64>,
}

/// Who alone leads to an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Owner {
    Variable(u32),
    Frame(u32),
    Chain(u32),
    Several,
}

impl Runtime<'_> {
    /// The bytes that each holder alone keeps alive. `barred` are the objects that the holders are parts of: what the
    /// roots reach without going through them counts for nobody. `None` when more than [`MAX_RETAINED`] objects
    /// hang on the holders, and when the analysis was ended meanwhile.
    #[must_use]
    pub fn retained(
        &self,
        heap: &Heap,
        roots: &Roots,
        barred: &[Addr],
        held: &[Held],
    ) -> Option<Retained> {
        let marker = Marker::everything(self, heap, roots, barred);
        if marker.is_cut() {
            return None;
        }
        let mut sorter = Sorter {
            marker,
            parents: Parents::of(held),
            owners: FxHashMap::default(),
            todo: Vec::new(),
        };
        for reference in held {
            sorter.give(reference.object, Owner::Variable(reference.variable));
        }
        sorter.run()?;
        Some(sorter.sum(self))
    }
}

/// Which frame a variable is part of, and which chain a frame is.
struct Parents {
    frames: FxHashMap<u32, u32>,
    chains: FxHashMap<u32, u32>,
}

impl Parents {
    fn of(held: &[Held]) -> Self {
        Self {
            frames: held.iter().map(|h| (h.variable, h.frame)).collect(),
            chains: held.iter().map(|h| (h.frame, h.chain)).collect(),
        }
    }

    /// The next larger holder around one.
    fn around(&self, owner: Owner) -> Owner {
        let found = match owner {
            Owner::Variable(v) => self.frames.get(&v).copied().map(Owner::Frame),
            Owner::Frame(f) => self.chains.get(&f).copied().map(Owner::Chain),
            Owner::Chain(_) | Owner::Several => None,
        };
        found.unwrap_or(Owner::Several)
    }

    /// The smallest holder around two.
    fn common(&self, a: Owner, b: Owner) -> Owner {
        let (mut a, mut b) = (a, b);
        while a != b {
            if rank(a) <= rank(b) {
                a = self.around(a);
            } else {
                b = self.around(b);
            }
        }
        a
    }
}

fn rank(owner: Owner) -> u8 {
    match owner {
        Owner::Variable(_) => 0,
        Owner::Frame(_) => 1,
        Owner::Chain(_) => 2,
        Owner::Several => 3,
    }
}

/// Passes owners on along references. An object's owner only ever grows, three times at most, so this ends.
struct Sorter<'a, 'd> {
    marker: Marker<'a, 'd>,
    parents: Parents,
    owners: FxHashMap<Addr, Owner>,
    todo: Vec<Addr>,
}

impl Sorter<'_, '_> {
    fn give(&mut self, object: Addr, owner: Owner) {
        if !self.marker.is_unmarked_object(object) {
            return;
        }
        let known = self.owners.get(&object).copied();
        let grown = known.map_or(owner, |k| self.parents.common(k, owner));
        if known != Some(grown) {
            self.owners.insert(object, grown);
            self.todo.push(object);
        }
    }

    /// `None` when there are too many objects.
    fn run(&mut self) -> Option<()> {
        let mut scans: FxHashMap<Addr, Scan> = FxHashMap::default();
        let mut found = Vec::new();
        while let Some(object) = self.todo.pop() {
            let owner = *self.owners.get(&object)?;
            self.marker.scan_object(object, &mut scans, &mut found);
            for target in found.drain(..) {
                self.give(target, owner);
            }
            let budget = self.marker.budget();
            if self.owners.len() > MAX_RETAINED || budget.leaves(LEFT, || None) {
                return None;
            }
        }
        Some(())
    }

    fn sum(self, rt: &Runtime<'_>) -> Retained {
        let mut out = Retained::default();
        let add = |sums: &mut FxHashMap<u32, u64>, key: u32, bytes: u64| {
            let sum = sums.entry(key).or_default();
            *sum = sum.saturating_add(bytes);
        };
        for (object, owner) in self.owners {
            let bytes = rt
                .type_of(object)
                .map_or(0, |ty| rt.object_size(object, &ty));
            let mut owner = owner;
            while owner != Owner::Several {
                match owner {
                    Owner::Variable(v) => add(&mut out.variables, v, bytes),
                    Owner::Frame(f) => add(&mut out.frames, f, bytes),
                    Owner::Chain(c) => add(&mut out.chains, c, bytes),
                    Owner::Several => {}
                }
                owner = self.parents.around(owner);
            }
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Variables 1 and 2 of frame 10 and 3 of frame 11, both of chain 20; 4 of frame 12 of chain 21.
    fn parents() -> Parents {
        let held = [(1, 10, 20), (2, 10, 20), (3, 11, 20), (4, 12, 21)];
        let held = held.map(|(variable, frame, chain)| Held {
            object: Addr::NULL,
            variable,
            frame,
            chain,
        });
        Parents::of(&held)
    }

    #[test]
    fn what_two_holders_share_belongs_to_the_smallest_around_both() {
        let parents = parents();
        let common = |a, b| parents.common(Owner::Variable(a), Owner::Variable(b));
        assert_eq!(common(1, 1), Owner::Variable(1));
        assert_eq!(common(1, 2), Owner::Frame(10));
        assert_eq!(common(1, 3), Owner::Chain(20));
        assert_eq!(common(1, 4), Owner::Several);
        let frame = Owner::Frame(10);
        assert_eq!(parents.common(frame, Owner::Variable(2)), frame);
        assert_eq!(
            parents.common(Owner::Variable(3), frame),
            Owner::Chain(20),
            "the order does not matter"
        );
        assert_eq!(parents.common(Owner::Several, frame), Owner::Several);
    }

    #[test]
    fn a_variable_without_a_frame_shares_with_all() {
        assert_eq!(parents().around(Owner::Variable(99)), Owner::Several);
    }
}
