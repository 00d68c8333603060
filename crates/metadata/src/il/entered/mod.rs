//! Which semaphores a method has entered and not left, at a place of its code.
//!
//! All ways through the code are followed, as a method that never has to wait takes them: a state machine's jumps to the
//! await that it goes on at, and what it does when it suspends, are left out. What is entered is named by where the code
//! takes it from, a field of `this` or a local, so that an object of the method can be asked for it.

mod callees;
mod step;
mod summary;
#[cfg(test)]
mod tests;
mod value;

use super::handlers::{Body, Handler, HandlerKind};
use super::{Instruction, instructions};
use crate::metadata::Metadata;
use crate::source::Source;
use std::collections::{BTreeMap, BTreeSet};
use step::Next;
use value::State;

pub use summary::{Elsewhere, Summaries, Summary};
pub use value::{Place, Root};

/// Blocks of code that are gone through, again for each way that brings something new.
const MAX_VISITS: usize = 1 << 14;

/// How a method is compiled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Form {
    /// The `MoveNext` of a state machine: its variables are fields.
    Machine {
        /// Whether it is an async iterator.
        iterator: bool,
    },
    /// Any other method: its variables are arguments and locals.
    Plain,
}

/// A semaphore that a method has entered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entered {
    /// Where the code takes it from.
    pub place: Place,
    /// Where that variable was taken from, when it is a local one.
    pub from: Option<Place>,
    /// The variable that holds what leaves it when it is disposed of.
    pub handed: Option<Place>,
    /// Offset of the call that entered it.
    pub call: u32,
    /// Whether every way to the place has entered it.
    pub always: bool,
    /// Whether the method leaves it somewhere.
    pub leaves: bool,
}

/// A call in a method's code, with where the object comes from that it is made on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlacedCall {
    /// Offset of the instruction.
    pub il_offset: u32,
    /// Where the code takes the object from; `None` where it does not tell, or where ways bring different ones.
    pub place: Option<Place>,
    /// Where that variable was taken from, when it is a local one.
    pub from: Option<Place>,
}

impl<S: Source> Metadata<S> {
    /// The calls of methods whose names `wanted` accepts, on ways that a method takes which never has to wait, in the
    /// order of the code.
    #[must_use]
    pub fn placed_calls(
        &self,
        body: &Body,
        form: Form,
        wanted: &dyn Fn(&str) -> bool,
    ) -> Vec<PlacedCall> {
        let mut walk = Walk::new(self, body, form, u32::MAX);
        walk.watched = Some(wanted);
        walk.run();
        let definitions = walk.definitions;
        let calls = walk.calls.into_iter();
        calls
            .map(|(il_offset, place)| PlacedCall {
                il_offset,
                from: place.as_ref().and_then(|p| p.defined_by(&definitions)),
                place,
            })
            .collect()
    }

    /// What a method has entered before the instruction at `at`, and has not left.
    #[must_use]
    pub fn entered_at(
        &self,
        body: &Body,
        form: Form,
        at: u32,
        summaries: &Summaries<'_>,
    ) -> Vec<Entered> {
        let mut first = Walk::new(self, body, form, at);
        first.summaries = Some(summaries);
        first.run();
        if first.state_there.is_none_or(|s| s.held.is_empty()) {
            return Vec::new();
        }
        // a second time: what is entered or left is not null where the code asks
        let mut second = Walk::new(self, body, form, at);
        second.summaries = Some(summaries);
        second.known = first.known;
        second.run();
        let held = second.state_there.map(|s| s.held).unwrap_or_default();
        let (left, definitions, handed) = (second.left, second.definitions, second.handed);
        let keeps = |place: &Place| {
            let mut all = handed.iter();
            all.find_map(|(variable, what)| (what == place).then(|| variable.clone()))
        };
        let entered = held.into_iter().map(|(place, how)| Entered {
            leaves: left.contains(&place),
            from: place.defined_by(&definitions),
            handed: keeps(&place),
            place,
            call: how.call,
            always: how.always,
        });
        entered.collect()
    }
}

/// One pass through a method.
struct Walk<'m, S> {
    metadata: &'m Metadata<S>,
    code: &'m [u8],
    handlers: &'m [Handler],
    form: Form,
    /// Where the method stands.
    at: u32,
    /// What ways bring to the begins of blocks.
    states: BTreeMap<u32, State>,
    todo: BTreeSet<u32>,
    /// Where `leave` goes through a `finally`, by the begin of that one.
    after_finally: BTreeMap<u32, BTreeSet<u32>>,
    /// What is entered or left anywhere.
    known: BTreeSet<Place>,
    left: BTreeSet<Place>,
    /// What local variables were set to first.
    definitions: BTreeMap<u16, Place>,
    state_there: Option<State>,
    /// What variables hold that leave a semaphore when they are disposed of.
    handed: BTreeMap<Place, Place>,
    /// What is left without having been entered.
    given_back: BTreeSet<Place>,
    /// What the method has done when it returns.
    ended: Option<State>,
    /// What it has entered when the task ends that it returns.
    returned: Option<Place>,
    /// What called methods do.
    summaries: Option<&'m Summaries<'m>>,
    callees: callees::Callees,
    /// Names of methods whose calls are kept.
    watched: Option<&'m dyn Fn(&str) -> bool>,
    /// By offset: what the object of such a call is.
    calls: BTreeMap<u32, Option<Place>>,
}

impl<'m, S: Source> Walk<'m, S> {
    fn new(metadata: &'m Metadata<S>, body: &'m Body, form: Form, at: u32) -> Self {
        Self {
            metadata,
            code: &body.code,
            handlers: &body.handlers,
            form,
            at,
            states: BTreeMap::new(),
            todo: BTreeSet::new(),
            after_finally: BTreeMap::new(),
            known: BTreeSet::new(),
            left: BTreeSet::new(),
            definitions: BTreeMap::new(),
            state_there: None,
            handed: BTreeMap::new(),
            given_back: BTreeSet::new(),
            ended: None,
            returned: None,
            summaries: None,
            callees: callees::Callees::default(),
            watched: None,
            calls: BTreeMap::new(),
        }
    }

    fn run(&mut self) {
        self.bring(0, State::default());
        for _ in 0..MAX_VISITS {
            let Some(start) = self.todo.pop_first() else {
                break;
            };
            self.block(start);
        }
    }

    /// Goes from the begin of a block to where ways part or meet.
    fn block(&mut self, start: u32) {
        let Some(mut state) = self.states.get(&start).cloned() else {
            return;
        };
        let Some(code) = usize::try_from(start).ok().and_then(|s| self.code.get(s..)) else {
            return;
        };
        self.enter_handlers(start, &state);
        let mut is_first = true;
        for instruction in instructions(code) {
            let Some(i) = instruction.moved(start) else {
                return;
            };
            if !is_first && self.begins_block(i.at) {
                self.bring(i.at, state);
                return;
            }
            is_first = false;
            if i.at <= self.at && self.at < i.next {
                self.arrived(&state);
            }
            match self.step(&i, &mut state) {
                Next::Behind => {}
                Next::Suspends => {
                    if i.next == self.at {
                        self.arrived(&state);
                    }
                    return;
                }
                Next::Ends => return,
                Next::Branch { targets, behind } => {
                    for target in targets {
                        self.bring(target, state.clone());
                    }
                    if behind {
                        self.bring(i.next, state);
                    }
                    return;
                }
                Next::Parts { target, jumps } => {
                    if let Some(target) = target {
                        self.bring(target, *jumps);
                    }
                    self.bring(i.next, state);
                    return;
                }
                Next::Leave(target) => return self.leave(i.at, target, state),
                Next::EndFinally => return self.end_finally(i.at, &state),
            }
        }
    }

    fn begins_block(&self, at: u32) -> bool {
        self.states.contains_key(&at) || self.handlers.iter().any(|h| h.block.0 == at)
    }

    /// Adds what a way brings to the begin of a block.
    fn bring(&mut self, at: u32, state: State) {
        let changed = match self.states.get_mut(&at) {
            Some(known) => known.join(&state),
            None => {
                self.states.insert(at, state);
                true
            }
        };
        if changed {
            self.todo.insert(at);
        }
    }

    fn arrived(&mut self, state: &State) {
        match &mut self.state_there {
            Some(known) => {
                known.join(state);
            }
            None => self.state_there = Some(state.clone()),
        }
    }

    /// Exceptions come from anywhere in a block; what was entered before it counts in its handlers.
    fn enter_handlers(&mut self, start: u32, state: &State) {
        let handlers = self.handlers;
        for handler in handlers.iter().filter(|h| h.block.0 == start) {
            if handler.kind == HandlerKind::Catch {
                self.bring(handler.code.0, state.for_handler());
            }
        }
    }

    /// Goes to a target through the `finally` blocks on the way.
    fn leave(&mut self, from: u32, target: u32, state: State) {
        let state = state.without_stack();
        let inside = |(start, end): (u32, u32), at: u32| start <= at && at < end;
        let mut finallys = self.handlers.iter().filter(|h| {
            h.kind == HandlerKind::Finally && inside(h.block, from) && !inside(h.block, target)
        });
        match finallys.next().map(|h| h.code.0) {
            Some(first) => {
                let targets = self.after_finally.entry(first).or_default();
                if targets.insert(target) {
                    // a way that was taken before must reach the new target, too
                    self.todo.insert(first);
                }
                self.bring(first, state);
            }
            None => self.bring(target, state),
        }
    }

    fn end_finally(&mut self, at: u32, state: &State) {
        let handlers = self.handlers;
        let inside = |h: &&Handler| h.code.0 <= at && at < h.code.1;
        let mut around = handlers.iter().filter(|h| h.kind == HandlerKind::Finally);
        let Some(handler) = around.find(inside) else {
            return;
        };
        let targets = self.after_finally.get(&handler.code.0).cloned();
        for target in targets.into_iter().flatten() {
            // from the block's own begin: the next one around it, if any
            self.leave(handler.code.0, target, state.clone());
        }
    }
}

impl Instruction<'_> {
    /// The same in code that begins `by` bytes further down.
    fn moved(self, by: u32) -> Option<Self> {
        Some(Self {
            at: self.at.checked_add(by)?,
            next: self.next.checked_add(by)?,
            ..self
        })
    }
}
