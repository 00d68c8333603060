//! What suspended methods keep alive: the sizes of what nothing but their variables leads to.

use super::path::is_frame;
use super::{Analysis, Path, Step};
use asynctriage_async_graph::{AsyncFrame, Machine, NodeId};
use asynctriage_clr::{Gap, GapKind, Held, MAX_RETAINED, Retained};
use asynctriage_dump::Addr;
use asynctriage_metadata::names::{LocalName, hoisted_local};
use rustc_hash::{FxHashMap, FxHashSet};

/// Retained sizes by where the references stand.
#[derive(Debug)]
pub(crate) struct Kept {
    retained: Retained,
    /// By the address of a variable: its number.
    variables: FxHashMap<Addr, u32>,
    /// By the object of a frame: its number.
    frames: FxHashMap<Addr, u32>,
    chains: Chains,
}

/// Frames that lead to one another, told by the lowest of their nodes.
#[derive(Debug, Default)]
struct Chains {
    parents: FxHashMap<NodeId, NodeId>,
    /// Nodes that show as frames, by the chain's node.
    frames: FxHashMap<NodeId, u64>,
}

impl Kept {
    /// Bytes that a variable alone keeps alive.
    pub(crate) fn variable(&self, at: Addr) -> Option<u64> {
        let number = self.variables.get(&at)?;
        Some(
            self.retained
                .variables
                .get(number)
                .copied()
                .unwrap_or_default(),
        )
    }

    /// Bytes that the variables of a frame alone keep alive.
    pub(crate) fn frame(&self, object: Addr) -> Option<u64> {
        let number = self.frames.get(&object)?;
        Some(
            self.retained
                .frames
                .get(number)
                .copied()
                .unwrap_or_default(),
        )
    }
}

impl Chains {
    /// After [`Self::flatten`] every node names its chain.
    fn chain(&self, id: NodeId) -> NodeId {
        self.parents.get(&id).copied().unwrap_or(id)
    }

    fn representative(&mut self, id: NodeId) -> NodeId {
        let mut top = id;
        // a parent is always lower
        while let Some(parent) = self.parents.get(&top).filter(|p| **p < top) {
            top = *parent;
        }
        // the next time it is one step
        let mut at = id;
        while let Some(parent) = self.parents.get_mut(&at).filter(|p| **p > top) {
            at = std::mem::replace(parent, top);
        }
        top
    }

    fn join(&mut self, a: NodeId, b: NodeId) {
        let (a, b) = (self.representative(a), self.representative(b));
        if a != b {
            self.parents.insert(a.max(b), a.min(b));
        }
    }

    /// Lets every node name the lowest node of its chain.
    fn flatten(&mut self) {
        let all: Vec<NodeId> = self.parents.keys().copied().collect();
        for id in all {
            self.representative(id);
        }
    }
}

/// Numbers what holds references.
#[derive(Default)]
struct Collector {
    held: Vec<Held>,
    barred: Vec<Addr>,
    variables: FxHashMap<Addr, u32>,
    frames: FxHashMap<Addr, u32>,
}

impl Collector {
    fn frame(&mut self, object: Addr) -> u32 {
        let next = number(self.frames.len());
        *self.frames.entry(object).or_insert(next)
    }

    fn hold(&mut self, at: Addr, object: Addr, frame: u32, chain: u32) {
        let next = number(self.variables.len());
        let variable = *self.variables.entry(at).or_insert(next);
        self.held.push(Held {
            object,
            variable,
            frame,
            chain,
        });
    }
}

/// More than four thousand million variables do not fit into a dump.
fn number(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

impl Analysis<'_, '_> {
    /// What suspended methods keep alive, worked out once; `None` when it is too much to tell whose it is, or while objects
    /// are being moved: references then lead astray.
    pub(crate) fn kept(&self) -> Option<&Kept> {
        self.kept.get_or_init(|| self.find_kept()).as_ref()
    }

    /// What is missing when retained sizes were asked for and nobody could tell whose they are.
    pub(crate) fn kept_gap(&self) -> Option<Gap> {
        let moving = self.graph.heap.shape.collection.moving;
        // what was ended is told as such
        let is_told = !self.rt.cut_gaps().is_empty();
        (self.kept.get()?.is_none() && !is_told).then(|| Gap {
            kind: GapKind::Retained,
            place: "retained sizes".into(),
            why: if moving {
                "a garbage collection was moving objects: what a variable alone keeps alive cannot be told".into()
            } else {
                format!(
                    "more than {} million objects hang on variables of suspended methods only: which variable keeps which is not worked out",
                    MAX_RETAINED / 1_000_000
                )
            },
            remedy: "look at single objects with `asynctriage show DUMP ADDRESS`, and at types with `asynctriage heap DUMP`".into(),
        })
    }

    fn find_kept(&self) -> Option<Kept> {
        if self.graph.heap.shape.collection.moving {
            return None;
        }
        let chains = self.chains_of_frames();
        let mut out = Collector::default();
        for (id, machine) in &self.graph.machines {
            let chain = number(chains.chain(*id).index());
            self.hold_fields(&mut out, *id, machine, chain);
        }
        for (id, operation) in &self.graph.operations {
            let chain = number(chains.chain(*id).index());
            let task = self.graph.object(*id).map(|n| n.addr);
            let head = task.and_then(|t| self.graph.task?.state_object(self.rt, t));
            out.barred.extend(task.into_iter().chain(head));
            for frame in &operation.frames {
                self.hold_slots(&mut out, frame, chain);
            }
        }
        let heap = &self.graph.heap;
        let retained = self
            .rt
            .retained(heap, self.roots(), &out.barred, &out.held)?;
        Some(Kept {
            retained,
            variables: out.variables,
            frames: out.frames,
            chains,
        })
    }

    fn hold_fields(&self, out: &mut Collector, id: NodeId, machine: &Machine, chain: u32) {
        let Some(object) = self.graph.object(id).map(|n| n.addr) else {
            return;
        };
        // a class state machine is an object of its own
        out.barred.extend([object, machine.place.base.back(8)]);
        let frame = out.frame(object);
        for field in machine.place.fields(self.rt) {
            let plumbing = matches!(
                hoisted_local(&field.name),
                Some(LocalName::Awaiter | LocalName::Builder | LocalName::State)
            );
            if !plumbing {
                for target in machine.place.references_in(self.rt, field) {
                    out.hold(machine.place.at(field), target, frame, chain);
                }
            }
        }
    }

    fn hold_slots(&self, out: &mut Collector, frame: &AsyncFrame, chain: u32) {
        let continuation = frame.continuation;
        out.barred.push(continuation);
        let number = out.frame(continuation);
        self.rt
            .for_each_reference(continuation, &mut |slot, target| {
                if !frame.is_plumbing(slot) {
                    out.hold(slot, target, number, chain);
                }
            });
    }

    /// Which frames belong together: those of which one waits for the other, over what stands between them.
    fn chains_of_frames(&self) -> Chains {
        let mut out = Chains::default();
        for id in self.graph.graph.node_indices() {
            let waits = is_frame(&self.graph, id) || self.graph.awaited(id).next().is_some();
            for waiter in self.graph.waiters(id).filter(|_| waits) {
                out.join(id, waiter);
            }
        }
        out.flatten();
        for id in self.graph.graph.node_indices() {
            if is_frame(&self.graph, id) {
                let chain = out.chain(id);
                let count = out.frames.entry(chain).or_default();
                *count = count.saturating_add(1);
            }
        }
        out
    }

    /// Bytes that a chain alone keeps alive. Where chains run together it is what its own frames keep; those that are in
    /// `counted` do not count again.
    pub(crate) fn path_keeps(&self, path: &Path, counted: &mut FxHashSet<Addr>) -> Option<u64> {
        let kept = self.kept()?;
        let chain = kept.chains.chain(path.innermost());
        if kept.chains.frames.get(&chain) == Some(&(path.frames.len() as u64)) {
            let bytes = kept.retained.chains.get(&number(chain.index()));
            return Some(bytes.copied().unwrap_or_default());
        }
        let frames = self.steps(path).filter_map(|s| self.step_object(s));
        let new = frames.filter(|f| counted.insert(*f));
        Some(
            new.filter_map(|f| kept.frame(f))
                .fold(0, u64::saturating_add),
        )
    }

    /// Bytes that the variables of a frame alone keep alive.
    pub(crate) fn step_keeps(&self, step: Step<'_>) -> Option<u64> {
        self.kept()?.frame(self.step_object(step)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use asynctriage_clr::Runtime;
    use asynctriage_dump::Dump;
    use asynctriage_dump_synth::Process;

    #[test]
    fn sizes_that_are_too_much_to_tell_are_a_gap() {
        let dump = Dump::from_bytes(Process::new().build()).unwrap();
        let rt = Runtime::open(&dump).unwrap();
        let analysis = Analysis::new(&rt);
        assert_eq!(analysis.kept_gap(), None, "nobody asked for them");
        assert!(analysis.kept().is_some());
        assert_eq!(analysis.kept_gap(), None, "they are known");
        let analysis = Analysis::new(&rt);
        analysis.kept.set(None).unwrap();
        let gap = analysis.kept_gap().unwrap();
        assert!(gap.why.starts_with("more than 16 million objects"));
    }

    #[test]
    fn nothing_is_kept_alone_while_objects_are_moved() {
        let dump = Dump::from_bytes(Process::new().moving().build()).unwrap();
        let rt = Runtime::open(&dump).unwrap();
        let analysis = Analysis::new(&rt);
        assert!(analysis.kept().is_none());
        let gap = analysis.kept_gap().unwrap();
        assert!(gap.why.contains("moving objects"), "{}", gap.why);
    }

    #[test]
    fn nodes_that_were_joined_in_any_order_name_the_lowest_of_them() {
        let id = |n: usize| NodeId::new(n);
        let mut chains = Chains::default();
        for (a, b) in [(9, 8), (4, 5), (8, 7), (5, 9), (2, 3)] {
            chains.join(id(a), id(b));
        }
        chains.flatten();
        let named: Vec<usize> = (0..10).map(|n| chains.chain(id(n)).index()).collect();
        assert_eq!(named, [0, 1, 2, 2, 4, 4, 6, 4, 4, 4]);
    }
}
