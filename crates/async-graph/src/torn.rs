//! Links in a dump that was taken while a collection moved objects.
//!
//! Some references then name where an object is, others where it is going to be, which may be where another one still is;
//! and objects that were copied stand at both places. A link is believed only when both of its ends say so: who awaits
//! names what is awaited, and that names who awaits. A chain with a link that only one end knows is left out. Links into
//! combinators, wrappers and continuation tasks are known by one end only and are believed as they are.

use crate::graph::{Builder, NodeId};
use crate::resolve::{Waiter, resolve};
use crate::runtime_async::Head;
use asynctriage_clr::{Gap, GapKind};
use asynctriage_dump::Addr;
use petgraph::visit::EdgeRef;
use rustc_hash::{FxHashMap, FxHashSet};

/// Nodes of which a link is lost.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Torn {
    /// What they await is lost: no chain begins there.
    pub inwards: FxHashSet<NodeId>,
    /// Who awaits them is lost: no chain ends there.
    pub outwards: FxHashSet<NodeId>,
}

/// What the nodes say of their neighbours.
#[derive(Default)]
struct Claims {
    /// By who awaits: what is awaited.
    awaited: FxHashMap<NodeId, FxHashSet<NodeId>>,
    /// By what is awaited: who awaits it.
    waiters: FxHashMap<NodeId, FxHashSet<NodeId>>,
    /// Nodes that name something that is no object, or no node in use.
    torn: Torn,
}

impl Claims {
    fn agree(&self, from: NodeId, to: NodeId) -> bool {
        let says = |all: &FxHashMap<NodeId, FxHashSet<NodeId>>, a, b| {
            all.get(&a).is_some_and(|named| named.contains(&b))
        };
        says(&self.waiters, from, to) && says(&self.awaited, to, from)
    }
}

impl Builder<'_, '_> {
    /// Takes out every link between an awaiting method and what it awaits that the two do not agree on.
    pub(crate) fn cut_torn_links(&mut self) {
        let mut claims = Claims::default();
        self.claim_awaited(&mut claims);
        self.claim_waiters(&mut claims);
        self.claim_frames(&mut claims);
        let mut torn = std::mem::take(&mut claims.torn);
        for (id, awaited) in &claims.awaited {
            if awaited.iter().any(|from| !claims.agree(*from, *id)) {
                torn.inwards.insert(*id);
            }
        }
        for (id, waiters) in &claims.waiters {
            let lost = |to: &NodeId| self.awaits(*to) && !claims.agree(*id, *to);
            if waiters.iter().any(lost) {
                torn.outwards.insert(*id);
            }
        }
        let of_both: Vec<_> = self
            .out
            .graph
            .edge_references()
            .filter(|e| self.awaits(e.target()) && !claims.agree(e.source(), e.target()))
            .map(|e| e.id())
            .collect();
        let of_both: FxHashSet<_> = of_both.into_iter().collect();
        self.out.graph.retain_edges(|_, e| !of_both.contains(&e));
        // where a link is left on that side, chains go on there
        torn.inwards
            .retain(|id| self.out.awaited(*id).next().is_none());
        torn.outwards
            .retain(|id| self.out.waiters(*id).next().is_none());
        self.out.gaps.extend(self.torn_gap(&torn));
        self.out.torn = torn;
    }

    /// Whether a node is a method that stands at an await, and so names what it awaits.
    fn awaits(&self, id: NodeId) -> bool {
        self.out.machines.contains_key(&id) || self.out.operations.contains_key(&id)
    }

    fn claim_awaited(&self, claims: &mut Claims) {
        let machines = self.out.machines.iter().flat_map(|(id, m)| {
            let objects = m.awaits.iter().map(|(_, object)| *object);
            objects.map(move |o| (*id, o))
        });
        let heads = self
            .out
            .operations
            .iter()
            .filter_map(|(id, o)| match o.head {
                Head::Task(_, object) | Head::Source(_, object) => Some((*id, object)),
                Head::Other => None,
            });
        for (id, object) in machines.chain(heads) {
            match self.awaited_node(object) {
                Some(from) => {
                    claims.awaited.entry(id).or_default().insert(from);
                }
                None if self.out.heap.is_object(object) => {}
                None => {
                    claims.torn.inwards.insert(id);
                }
            }
        }
    }

    fn claim_waiters(&self, claims: &mut Claims) {
        for id in self.out.graph.node_indices() {
            let Some(node) = self.out.object(id).filter(|n| !self.completed(*n)) else {
                continue;
            };
            let from = self.iterator_box(node.addr).unwrap_or(id);
            for (slot, _) in self.continuation_slots(node) {
                let Some(value) = self.rt.memory().ptr(slot).and_then(Addr::non_null) else {
                    continue;
                };
                let mut is_lost = !self.out.heap.is_object(value);
                for waiter in resolve(self.rt, &self.out, slot, value) {
                    match waiter {
                        Waiter::Node(to, _) if self.waits(to) => {
                            claims.waiters.entry(from).or_default().insert(to);
                        }
                        Waiter::Node(..) => is_lost = true,
                        Waiter::Other(object) => is_lost |= !self.out.heap.is_object(object),
                        Waiter::Nothing(_) => is_lost = true,
                    }
                }
                if is_lost {
                    claims.torn.outwards.insert(from);
                }
            }
        }
    }

    /// A frame belongs to one task: where two lead to it, one of them does so by a reference that is not to be followed.
    fn claim_frames(&self, claims: &mut Claims) {
        let mut owners: FxHashMap<Addr, NodeId> = FxHashMap::default();
        for (id, operation) in &self.out.operations {
            for frame in &operation.frames {
                if let Some(other) = owners.insert(frame.continuation, *id) {
                    claims.torn.inwards.extend([*id, other]);
                    claims.torn.outwards.extend([*id, other]);
                }
            }
        }
    }

    fn torn_gap(&self, torn: &Torn) -> Option<Gap> {
        let all: FxHashSet<NodeId> = torn.inwards.union(&torn.outwards).copied().collect();
        let methods = all.iter().filter(|id| self.awaits(**id)).count();
        let copies = self.out.rejected.len();
        (methods > 0 || copies > 0).then(|| Gap {
            kind: GapKind::LinkTorn,
            place: "methods that a garbage collection was moving".into(),
            why: format!(
                "{methods} of them have a link that only one end knows, and {copies} objects look like methods and name another place as their own: chains through them are left out and the counts are lower bounds; what no root reaches is not told"
            ),
            remedy: "take another dump a few seconds later".into(),
        })
    }
}
