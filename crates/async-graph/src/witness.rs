//! Both ends of each link: who awaits names what is awaited, and that names who awaits.
//!
//! A link that both ends know is confirmed. Some ends keep no such reference: `Task.WhenAll` forgets its tasks, and sources
//! of other makers keep their waiters in their own way. Where the other end does keep one and it says otherwise, the link
//! is contradicted: memory is damaged, or was caught in the moment of a change.

use crate::class::{Class, Combinator};
use crate::graph::{Builder, Edge, NodeId};
use crate::machine::Chosen;
use crate::resolve::{Waiter, resolve};
use asynctriage_clr::{Gap, GapKind};
use asynctriage_dump::Addr;
use petgraph::graph::EdgeIndex;
use petgraph::visit::EdgeRef;
use rustc_hash::{FxHashMap, FxHashSet};

/// Which end of a link a reference stands at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// Who awaits names what is awaited.
    Waiter,
    /// What is awaited names who awaits.
    Awaited,
}

/// Which of a link's ends say so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Witness {
    /// Both.
    Both,
    /// One; the other keeps no such reference.
    One,
    /// One, and the other says otherwise.
    Contradicted,
}

/// A link whose ends disagree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Contradiction {
    /// What is said to be awaited.
    pub from: NodeId,
    /// Who is said to await it.
    pub to: NodeId,
    /// The slot that says so.
    pub slot: Addr,
    /// The slot at the other end that says otherwise.
    pub against: Addr,
    /// Whether the link was left out, since another one of the same method is confirmed.
    pub left_out: bool,
}

/// How far from a box what it awaits may be: in its awaiter, or in an object that the awaiter is.
const BOX_DEPTH: usize = 2;
/// References that are looked at.
const MAX_BOX_REFERENCES: usize = 256;
/// Places in a gap.
const MAX_PLACES: usize = 3;

/// What the other end of a link says.
enum Word {
    /// Nothing: it keeps no such reference.
    None,
    /// The same.
    Same,
    /// This slot says otherwise.
    Otherwise(Addr),
}

impl Builder<'_, '_> {
    /// Compares the two ends of each link that only one of them has told.
    pub(crate) fn compare_ends(&mut self) {
        if self.out.heap.shape.collection.moving {
            return;
        }
        let mut members: FxHashMap<NodeId, FxHashSet<Addr>> = FxHashMap::default();
        let mut words = Vec::new();
        let edges = self.out.graph.edge_references();
        for edge in self.rt.budget().each("links, for their other ends", edges) {
            if edge.weight().witness == Witness::One {
                let (from, to) = (edge.source(), edge.target());
                let word = match edge.weight().end {
                    End::Waiter => self.word_of_awaited(from, to, edge.weight()),
                    End::Awaited => self.word_of_waiter(from, to, &mut members),
                };
                words.push((edge.id(), from, to, *edge.weight(), word));
            }
        }
        let mut cut: FxHashSet<EdgeIndex<u32>> = FxHashSet::default();
        for (id, from, to, edge, word) in words {
            let witness = match word {
                Word::None => continue,
                Word::Same => Witness::Both,
                Word::Otherwise(against) => {
                    // an await holds one thing: with a link that is confirmed, another one to the same method is left over
                    let left_out = self.has_confirmed(to);
                    if left_out {
                        cut.insert(id);
                    }
                    let slot = edge.slot;
                    // sources that are used once keep whom they resumed
                    let is_source = self.out.object(from).is_some_and(|n| !n.class.is_task());
                    if !left_out {
                        self.out.contradicted.extend([from, to]);
                    } else if !is_source {
                        // a task that has not ended and one that is awaited cannot both be right
                        self.out.contradicted.insert(to);
                    }
                    if !(left_out && is_source) {
                        self.out.contradictions.push(Contradiction {
                            from,
                            to,
                            slot,
                            against,
                            left_out,
                        });
                    }
                    Witness::Contradicted
                }
            };
            if let Some(edge) = self.out.graph.edge_weight_mut(id) {
                edge.witness = witness;
            }
        }
        if !cut.is_empty() {
            self.out.graph.retain_edges(|_, e| !cut.contains(&e));
        }
        self.out.gaps.extend(self.contradiction_gap());
    }

    fn has_confirmed(&self, to: NodeId) -> bool {
        self.out
            .awaited(to)
            .any(|(_, edge)| edge.witness == Witness::Both)
    }

    /// What an awaited object says of a method whose awaiter names it.
    fn word_of_awaited(&self, from: NodeId, to: NodeId, edge: &Edge) -> Word {
        let Some(node) = self.out.object(from).filter(|n| !self.completed(*n)) else {
            return Word::None;
        };
        let machine = self.out.machines.get(&to);
        // of several awaiters one counts: where one link is confirmed, the others have to be as well
        let is_clear = |chosen: Chosen| chosen != Chosen::Unclear || self.has_confirmed(to);
        let value = self.rt.memory().ptr(edge.slot).unwrap_or_default();
        // who holds a task registers with it, whoever made the awaiter
        let registers = |is_plain| is_plain || node.class.is_task() && value == node.addr;
        let is_plain = machine.is_none_or(|m| registers(m.is_plain) && is_clear(m.chosen));
        // a wrapper stands between them, or an awaiter that registers in its own way
        if !is_plain || self.out.node(value).is_none() {
            return Word::None;
        }
        let iterator = self.out.machines.get(&from).filter(|m| m.iterator);
        let iterator = iterator.and_then(|m| self.out.node(m.place.base.back(8)));
        let nodes = iterator
            .and_then(|i| self.out.object(i))
            .into_iter()
            .chain([node]);
        let slots: Vec<_> = nodes.flat_map(|n| self.continuation_slots(n)).collect();
        let mut against = None;
        for (slot, _) in slots {
            let Some(value) = self.rt.memory().ptr(slot) else {
                return Word::None;
            };
            let waiters = value
                .non_null()
                .map(|v| resolve(self.rt, &self.out, slot, v));
            for waiter in waiters.unwrap_or_default() {
                match waiter {
                    Waiter::Other(_) | Waiter::Nothing(_) => return Word::None,
                    Waiter::Node(id, _) if id == to => return Word::Same,
                    Waiter::Node(..) => {}
                }
            }
            against = Some(slot);
        }
        against.map_or(Word::None, Word::Otherwise)
    }

    /// What a waiter says of something that names it as one to be resumed.
    fn word_of_waiter(
        &self,
        from: NodeId,
        to: NodeId,
        members: &mut FxHashMap<NodeId, FxHashSet<Addr>>,
    ) -> Word {
        if let Some(machine) = self.out.machines.get(&to) {
            let is_clear = machine.is_plain && machine.chosen != Chosen::Unclear;
            // the words of an awaiter are not all references
            let objects = machine
                .awaits
                .iter()
                .filter(|(_, o)| self.out.heap.is_object(*o));
            let known = objects.map(|(slot, o)| (*slot, self.awaited_node(*o)));
            let known: Vec<_> = known.collect();
            if known.is_empty() && self.rt.module(machine.place.ty.module).metadata.is_none() {
                return self.word_of_box(from, to);
            }
            return match known.first() {
                Some((slot, _)) if is_clear && known.iter().all(|(_, n)| n.is_some()) => {
                    Word::Otherwise(*slot)
                }
                _ => Word::None,
            };
        }
        if let Some(operation) = self.out.operations.get(&to) {
            let awaited = operation.head.awaited();
            let known = awaited.filter(|(_, object)| self.awaited_node(*object).is_some());
            return known.map_or(Word::None, |(slot, _)| Word::Otherwise(slot));
        }
        let (Some(from), Some(node)) = (self.out.object(from), self.out.object(to)) else {
            return Word::None;
        };
        let fields: &[&str] = match node.class {
            Class::Combinator(Combinator::ContinueWith) => &["m_antecedent"],
            Class::Combinator(Combinator::WhenAny) => &["_task1", "_task2", "_tasks"],
            Class::Combinator(Combinator::WhenAll) => &["m_tasks", "_tasks"],
            _ => return Word::None,
        };
        let all = members
            .entry(to)
            .or_insert_with(|| self.members(node.addr, fields));
        let slot = fields.iter().find_map(|f| self.rt.field_addr(node.addr, f));
        match slot {
            _ if all.contains(&from.addr) => Word::Same,
            Some(slot) if !all.is_empty() => Word::Otherwise(slot),
            _ => Word::None,
        }
    }

    /// What the references of a box say whose fields have no names: one of them, or what it names, is what it awaits.
    fn word_of_box(&self, from: NodeId, to: NodeId) -> Word {
        let (Some(from), Some(to)) = (self.out.object(from), self.out.object(to)) else {
            return Word::None;
        };
        let mut near = vec![to.addr];
        for _ in 0..BOX_DEPTH {
            let mut next = Vec::new();
            for object in &near {
                self.rt.for_each_reference(*object, &mut |_, target| {
                    if next.len() < MAX_BOX_REFERENCES {
                        next.push(target);
                    }
                });
            }
            if next.contains(&from.addr) {
                return Word::Same;
            }
            near = next;
        }
        Word::Otherwise(to.addr)
    }

    /// The tasks that a combinator keeps: one by one, in an array, or in a list.
    fn members(&self, combinator: Addr, fields: &[&str]) -> FxHashSet<Addr> {
        let mut all = FxHashSet::default();
        for value in fields
            .iter()
            .filter_map(|f| self.rt.reference(combinator, f))
        {
            if self.rt.array_len(value).is_some() {
                all.extend(
                    self.rt
                        .vector_references(value, 0, u64::MAX)
                        .filter(|a| !a.is_null()),
                );
            } else if self.out.node(value).is_some() {
                all.insert(value);
            } else {
                all.extend(self.rt.list_items(value));
            }
        }
        all
    }

    fn contradiction_gap(&self) -> Option<Gap> {
        let all = &self.out.contradictions;
        if all.is_empty() {
            return None;
        }
        let place = |c: &Contradiction| format!("{} says so, {} otherwise", c.slot, c.against);
        let mut places: Vec<String> = all.iter().take(MAX_PLACES).map(place).collect();
        if all.len() > MAX_PLACES {
            places.push("and so on".into());
        }
        let left_out = all.iter().filter(|c| c.left_out).count();
        let left_out = match left_out {
            0 => "they are shown".to_owned(),
            n => format!(
                "{n} are left out, since the method has another link that both ends know, the others are shown"
            ),
        };
        Some(Gap {
            kind: GapKind::LinkDenied,
            place: "links between methods and what they await".into(),
            why: format!(
                "{} are told by one end and denied by the other ({}): memory is damaged, or the dump caught them in the moment of a change; {left_out}, and nothing that rests on them is certain",
                all.len(),
                places.join("; ")
            ),
            remedy: "take another dump, and compare".into(),
        })
    }
}
