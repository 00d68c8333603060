//! What a variable that a method's code names holds in one call of the method.

use crate::paths::Analysis;
use asynctriage_async_graph::AsyncFrame;
use asynctriage_clr::{Place as Fields, Runtime, Thread};
use asynctriage_dump::Addr;
use asynctriage_metadata::il::{Place, Root};
use rustc_hash::FxHashSet;

/// Words of one frame that are looked at.
const MAX_WORDS: usize = 1 << 14;
/// Objects from what a variable holds to a semaphore.
const MAX_STEPS: usize = 2;
/// Objects that are reached at each of them.
const MAX_REACHED: usize = 64;

/// One call of a method.
pub(crate) enum Activation<'a> {
    /// A state machine in its box.
    Machine(&'a Fields),
    /// A suspended runtime-async method.
    Continuation(&'a AsyncFrame),
    /// A method on a thread's stack.
    Frame {
        thread: &'a Thread,
        /// The type whose method it is.
        owner: Addr,
        /// The state machine, when it is one whose box is known.
        machine: Option<&'a Fields>,
        /// The part of the stack where its variables are.
        stack: (Addr, Addr),
    },
}

/// What a variable holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Held {
    pub(crate) object: Addr,
    /// Whether nothing describes the variable: of all that the call keeps, it is the only one that it can be.
    pub(crate) is_guess: bool,
}

impl Activation<'_> {
    /// What a variable holds that the code takes from `place`, or before that from `from`, when that is wanted.
    pub(crate) fn object_at(
        &self,
        a: &Analysis<'_, '_>,
        place: &Place,
        from: Option<&Place>,
        is_wanted: &dyn Fn(Addr) -> bool,
    ) -> Option<Held> {
        let places = std::iter::once(place).chain(from);
        let mut found = places.filter_map(|place| self.at(a, place));
        let described = found.find(|held| is_wanted(held.object));
        described.or_else(|| {
            let is_variable = place.fields.is_empty();
            let mut all = self.kept(a).into_iter().filter(|o| is_wanted(*o));
            let only = all.next().filter(|_| is_variable && all.next().is_none());
            only.map(guess)
        })
    }

    /// The only wanted object that a variable leads to, over what it holds and one object further: that is how far what a
    /// lock hands out stands from the lock's semaphore.
    pub(super) fn led_to(
        &self,
        a: &Analysis<'_, '_>,
        variable: &Place,
        is_wanted: &dyn Fn(Addr) -> bool,
    ) -> Option<Held> {
        let mut found = FxHashSet::default();
        let mut reach = self.held_by(a, variable);
        for _ in 0..MAX_STEPS {
            found.extend(reach.iter().copied().filter(|o| is_wanted(*o)));
            let mut next = Vec::new();
            for object in &reach {
                a.rt.for_each_reference(*object, &mut |_, to| {
                    if next.len() < MAX_REACHED {
                        next.push(to);
                    }
                });
            }
            reach = next;
        }
        found.extend(reach.into_iter().filter(|o| is_wanted(*o)));
        let mut found = found.into_iter();
        found.next().filter(|_| found.next().is_none()).map(known)
    }

    /// What a variable holds: one object, or those of an inline value.
    fn held_by(&self, a: &Analysis<'_, '_>, place: &Place) -> Vec<Addr> {
        let one = match (self, place.fields.as_slice()) {
            (
                Self::Machine(fields)
                | Self::Frame {
                    machine: Some(fields),
                    ..
                },
                [field],
            ) if place.root == Root::Argument(0) => {
                let mut all = fields.fields(a.rt);
                let found = all.find(|f| *f.name == **field);
                return found.map_or_else(Vec::new, |f| fields.references_in(a.rt, f).collect());
            }
            (Self::Continuation(frame), []) => variable(a, frame, &place.root),
            _ => None,
        };
        one.into_iter().collect()
    }

    fn at(&self, a: &Analysis<'_, '_>, place: &Place) -> Option<Held> {
        let rt = a.rt;
        if let Root::Static(_) = place.root {
            return self.static_at(a, place).map(known);
        }
        match self {
            Self::Machine(fields)
            | Self::Frame {
                machine: Some(fields),
                ..
            } if place.root == Root::Argument(0) => {
                let (first, rest) = place.fields.split_first()?;
                let start = fields.reference(rt, first)?;
                lead(rt, start, rest).map(known)
            }
            Self::Machine(_) => None,
            Self::Continuation(frame) => {
                let described = variable(a, frame, &place.root);
                if let Some(object) = described.and_then(|v| lead(rt, v, &place.fields)) {
                    return Some(known(object));
                }
                if has_sibling(a, frame, &place.root) {
                    return None;
                }
                let start = self.with_field(rt, self.kept(a), place)?;
                lead(rt, start, &place.fields).map(guess)
            }
            Self::Frame { owner, .. } => {
                let kept = self.kept(a);
                let is_own = |o: &Addr| {
                    rt.type_of(*o)
                        .is_some_and(|t| rt.hierarchy(t.mt).any(|t| t.mt == *owner))
                };
                // of several objects of its class nothing tells which one is `this`
                let mut own = kept.iter().copied().filter(is_own);
                let only = own.next().filter(|_| own.next().is_none());
                if place.root == Root::Argument(0) && only.is_none() && kept.iter().any(is_own) {
                    return None;
                }
                let start = only.filter(|_| place.root == Root::Argument(0));
                let start = start.or_else(|| self.with_field(rt, kept, place))?;
                lead(rt, start, &place.fields).map(guess)
            }
        }
    }

    /// The only object among some whose fields can lead on.
    fn with_field(&self, rt: &Runtime<'_>, kept: Vec<Addr>, place: &Place) -> Option<Addr> {
        let first = place.fields.first()?;
        let mut fit = kept.into_iter().filter(|o| {
            rt.type_of(*o)
                .is_some_and(|t| rt.instance_field(&t, first).is_some())
        });
        fit.next().filter(|_| fit.next().is_none())
    }

    fn static_at(&self, a: &Analysis<'_, '_>, place: &Place) -> Option<Addr> {
        let Root::Static(rid) = place.root else {
            return None;
        };
        let module = match self {
            Self::Machine(fields) => fields.ty.module,
            Self::Continuation(frame) => frame.point.method?.module,
            Self::Frame { owner, .. } => a.rt.ty(*owner)?.module,
        };
        let (first, rest) = place.fields.split_first()?;
        let mt = a.rt.loaded_type(module, rid)?;
        lead(a.rt, a.rt.static_reference(mt, first)?, rest)
    }

    /// All objects that the call keeps.
    fn kept(&self, a: &Analysis<'_, '_>) -> Vec<Addr> {
        let mut seen = FxHashSet::default();
        match self {
            Self::Machine(_) => Vec::new(),
            Self::Continuation(frame) => {
                let mut out = Vec::new();
                a.rt.for_each_reference(frame.continuation, &mut |slot, object| {
                    if !frame.is_plumbing(slot) && seen.insert(object) {
                        out.push(object);
                    }
                });
                out
            }
            Self::Frame { thread, stack, .. } => {
                let words = a.rt.stack_words(thread);
                let inside =
                    words.filter(|(slot, _)| slot.is_some_and(|s| stack.0 <= s && s < stack.1));
                let words = inside.map(|(_, word)| word).take(MAX_WORDS);
                words
                    .filter(|w| a.graph.heap.is_object(*w) && seen.insert(*w))
                    .collect()
            }
        }
    }
}

fn known(object: Addr) -> Held {
    Held {
        object,
        is_guess: false,
    }
}

fn guess(object: Addr) -> Held {
    Held {
        object,
        is_guess: true,
    }
}

/// Follows fields from an object on.
fn lead(rt: &Runtime<'_>, start: Addr, fields: &[String]) -> Option<Addr> {
    fields
        .iter()
        .try_fold(start, |at, field| rt.reference(at, field))
}

/// Whether another argument is of the same type: an object that the method keeps may be either.
fn has_sibling(a: &Analysis<'_, '_>, frame: &AsyncFrame, root: &Root) -> bool {
    let Root::Argument(number) = root else {
        return false;
    };
    let Some(method) = frame.point.method else {
        return false;
    };
    let module = a.rt.module(method.module);
    let metadata = module.metadata.as_ref();
    let Some(signature) = metadata.and_then(|m| m.method_signature(method.rid)) else {
        return false;
    };
    let index = usize::from(*number).checked_sub(usize::from(signature.has_this()));
    let Some(own) = index.and_then(|i| signature.params.get(i)) else {
        return false;
    };
    signature.params.iter().filter(|p| *p == own).count() > 1
}

/// What a variable of a suspended runtime-async method holds: the JIT numbers arguments first.
fn variable(a: &Analysis<'_, '_>, frame: &AsyncFrame, root: &Root) -> Option<Addr> {
    let method = frame.point.method?;
    let number = match root {
        Root::Argument(number) => u64::from(*number),
        Root::Local(local) => {
            let module = a.rt.module(method.module);
            let signature = module.metadata.as_ref()?.method_signature(method.rid)?;
            let arguments =
                (signature.params.len() as u64).saturating_add(u64::from(signature.has_this()));
            arguments.saturating_add(u64::from(*local))
        }
        Root::Static(_) | Root::Call(_) => return None,
    };
    let number = i64::try_from(number).ok()?;
    let (_, offset) = frame.point.variables.iter().find(|(n, _)| *n == number)?;
    a.rt.memory()
        .ptr(frame.continuation + u64::from(*offset))?
        .non_null()
}
