//! What single instructions do to what is known.

use super::callees::{Callee, Means};
use super::value::{Known, Place, Root, State, Value};
use super::{Form, Walk};
use crate::il::effect::{effect, ends_block, is_branch};
use crate::il::{Instruction, SWITCH};
use crate::names::{LocalName, hoisted_local};
use crate::source::Source;
use crate::table::Table;
use crate::token::Token;
use std::rc::Rc;

/// What a method that is not waiting has in its state field.
const RUNS: i32 = -1;

/// Where the code goes on.
pub(super) enum Next {
    Behind,
    /// The method suspends: the state of an await was stored.
    Suspends,
    Ends,
    Branch {
        targets: Vec<u32>,
        behind: bool,
    },
    /// A branch that brings another state to its target.
    Parts {
        target: Option<u32>,
        jumps: Box<State>,
    },
    Leave(u32),
    EndFinally,
}

impl<S: Source> Walk<'_, S> {
    pub(super) fn step(&mut self, i: &Instruction<'_>, state: &mut State) -> Next {
        match i.opcode {
            0x2a => {
                self.returns(state);
                return Next::Ends;
            }
            0x27 | 0x7a | 0xfe1a | 0xfe11 => return Next::Ends,
            0xdc => return Next::EndFinally,
            0xdd | 0xde => return i.target().map_or(Next::Ends, Next::Leave),
            SWITCH => return self.switch(i, state),
            0x25 => {
                let top = state.pop();
                state.push(top.clone());
                state.push(top);
            }
            // who does not look whether a try has entered takes it that it has
            0x26 => {
                if let Known::Tried(place, call) = state.pop().known {
                    state.enter(place, call, true);
                }
            }
            0x6f | 0x28 => self.call(i, state),
            0x29 => self.indirect(i, state),
            0x73 => self.construct(i, state),
            0x7d => return self.store_field(i, state),
            0x7b | 0x7c | 0x7e | 0x7f => self.load_field(i, state),
            // castclass, isinst, box, unbox, unbox.any, ldobj, ldind.ref: still the same thing
            0x50 | 0x71 | 0x74 | 0x75 | 0x79 | 0x8c | 0xa5 => {
                let known = state.pop().known;
                state.push(known);
            }
            0xfe15 => {
                if let Some(local) = state.pop().local {
                    state.set_local(local, Known::Nothing);
                }
            }
            opcode if is_branch(opcode) => return self.branch(i, state),
            opcode => {
                if !self.variable(i, state) && !constant(i, state) {
                    plain(opcode, state);
                }
            }
        }
        if ends_block(i.opcode) {
            return Next::Ends;
        }
        Next::Behind
    }

    fn switch(&self, i: &Instruction<'_>, state: &mut State) -> Next {
        let is_state = matches!(state.pop().known, Known::State(_));
        // the jump to the await that a state machine goes on at
        let resumes = is_state && self.form == (Form::Machine { iterator: false });
        Next::Branch {
            targets: if resumes {
                Vec::new()
            } else {
                i.cases().collect()
            },
            behind: true,
        }
    }

    fn branch(&self, i: &Instruction<'_>, state: &mut State) -> Next {
        if let Some(Known::Tried(place, call)) = state.stack.last().map(|v| v.known.clone())
            && let 0x2c | 0x2d | 0x39 | 0x3a = i.opcode
        {
            state.pop();
            let if_set = matches!(i.opcode, 0x2d | 0x3a);
            return tried(i, state, if_set, &place, call);
        }
        let decided = match i.opcode {
            0x2b | 0x38 => Some(true),
            0x2c | 0x39 => self.is_set(&state.pop()).map(|set| !set),
            0x2d | 0x3a => self.is_set(&state.pop()),
            opcode => {
                let second = state.pop();
                let first = state.pop();
                compare(opcode, &first.known, &second.known)
            }
        };
        let target = i.target();
        Next::Branch {
            targets: target
                .into_iter()
                .filter(|_| decided != Some(false))
                .collect(),
            behind: decided != Some(true),
        }
    }

    /// Whether a value is neither 0 nor null, where that is known.
    fn is_set(&self, value: &Value) -> Option<bool> {
        match &value.known {
            Known::Number(n) => Some(*n != 0),
            Known::State(value) => Some(*value != 0),
            Known::Decided(is) => Some(*is),
            Known::Place(place) => self.known.contains(place).then_some(true),
            Known::Handed(_) => Some(true),
            Known::Entering(..) | Known::Trying(..) | Known::Tried(..) | Known::Nothing => None,
        }
    }

    fn load_field(&mut self, i: &Instruction<'_>, state: &mut State) {
        let is_static = matches!(i.opcode, 0x7e | 0x7f);
        let from = if is_static { None } else { Some(state.pop()) };
        let known = i.token().and_then(|t| self.field_value(t, from));
        state.push(known.unwrap_or_default());
    }

    fn field_value(&self, field: Token, from: Option<Value>) -> Option<Known> {
        let name = self.metadata.field_name_of(field)?;
        let Some(from) = from else {
            let owner = self.static_owner(field)?;
            return Some(Known::Place(Place::of(Root::Static(owner)).field(name)?));
        };
        if matches!(self.form, Form::Machine { .. }) && is_state(&name) {
            return Some(Known::State(RUNS));
        }
        match from.known {
            Known::Place(place) => Some(Known::Place(place.field(name)?)),
            _ => None,
        }
    }

    /// The row of the type that declares a static field, in this module.
    fn static_owner(&self, field: Token) -> Option<u32> {
        match field.table()? {
            Table::Field => self.metadata.field_owner(field.rid()),
            _ => None,
        }
    }

    fn store_field(&mut self, i: &Instruction<'_>, state: &mut State) -> Next {
        let value = state.pop();
        let object = state.pop();
        let name = i.token().and_then(|t| self.metadata.field_name_of(t));
        let waits = matches!(value.known, Known::Number(0..));
        let is_machine = matches!(self.form, Form::Machine { .. });
        if is_machine && waits && name.as_deref().is_some_and(is_state) {
            return Next::Suspends;
        }
        if let (Known::Handed(what), Known::Place(of), Some(name)) =
            (value.known, object.known, name)
        {
            self.hand(of.field(name), what);
        }
        Next::Behind
    }

    /// Arguments and locals; whether it was one.
    fn variable(&mut self, i: &Instruction<'_>, state: &mut State) -> bool {
        let short = |from: u16| i.opcode.saturating_sub(from);
        let operand = || match *i.operand {
            [byte] => byte.into(),
            [low, high, ..] => u16::from_le_bytes([low, high]),
            [] => 0,
        };
        let argument = |n| Known::Place(Place::of(Root::Argument(n)));
        match i.opcode {
            0x02..=0x05 => state.push(argument(short(0x02))),
            0x0e | 0x0f | 0xfe09 | 0xfe0a => state.push(argument(operand())),
            0x06..=0x09 => self.load(short(0x06), false, state),
            0x11 | 0xfe0c => self.load(operand(), false, state),
            0x12 | 0xfe0d => self.load(operand(), true, state),
            0x0a..=0x0d => self.store(short(0x0a), state),
            0x13 | 0xfe0e => self.store(operand(), state),
            0x10 | 0xfe0b => {
                state.pop();
            }
            _ => return false,
        }
        true
    }

    /// What a variable of a method without a state machine holds is asked of the variable itself: what it was taken from
    /// may not live as long.
    fn store(&mut self, local: u16, state: &mut State) {
        let known = state.pop().known;
        match (self.form, known) {
            (Form::Plain, Known::Place(place)) => {
                self.definitions.entry(local).or_insert(place);
                state.set_local(local, Known::Nothing);
            }
            (form, Known::Handed(what)) => {
                if form == Form::Plain {
                    self.hand(Some(Place::of(Root::Local(local))), what.clone());
                }
                state.set_local(local, Known::Handed(what));
            }
            (_, known) => state.set_local(local, known),
        }
    }

    fn load(&self, local: u16, address: bool, state: &mut State) {
        let known = state.locals.get(&local).cloned();
        // a variable that lives on while the method waits is a local only outside of state machines
        let own = || Known::Place(Place::of(Root::Local(local)));
        let is_plain = self.form == Form::Plain;
        let known = known.unwrap_or_else(|| if is_plain { own() } else { Known::Nothing });
        state.push(Value {
            known,
            local: address.then_some(local),
        });
    }

    fn call(&mut self, i: &Instruction<'_>, state: &mut State) {
        let Some(method) = i.token() else { return };
        let Callee {
            shape,
            means,
            is_watched,
        } = self.callee(method);
        let Some(shape) = shape else {
            state.stack.clear();
            return;
        };
        let values = state.take(shape.takes);
        let first = values.first().map(|v| v.known.clone()).unwrap_or_default();
        if is_watched && shape.has_this {
            self.watch(i.at, &first);
        }
        let result = self.effect_of(&means, i.at, &values, state);
        for value in values.iter().skip(usize::from(shape.has_this)) {
            if let Some(local) = value.local.filter(|_| !shape.passes_on) {
                state.set_local(local, Known::Nothing);
            }
        }
        if shape.returns {
            state.push(if shape.passes_on { first } else { result });
        }
    }

    /// What a call does, and what it returns.
    fn effect_of(&mut self, means: &Means, at: u32, values: &[Value], state: &mut State) -> Known {
        let nothing = Known::Nothing;
        let first = values.first().map_or(&nothing, |v| &v.known);
        match (means, first) {
            (Means::Enters, _) => {
                let place = self.entered(first, at);
                state.enter(place, at, true);
                Known::Nothing
            }
            (Means::Tries, _) => Known::Tried(self.entered(first, at), at),
            (Means::WillTry, _) => Known::Trying(self.entered(first, at), at),
            (Means::Completes, Known::Trying(place, call)) => Known::Tried(place.clone(), *call),
            (Means::WillEnter, _) => Known::Entering(self.entered(first, at), at),
            (Means::Leaves, Known::Place(place)) => {
                self.known.insert(place.clone());
                self.exit(place, state);
                Known::Nothing
            }
            (Means::Completes, Known::Entering(place, call)) => {
                state.enter(place.clone(), *call, true);
                Known::Handed(place.clone())
            }
            (Means::PassesOn, Known::Entering(..) | Known::Trying(..)) => first.clone(),
            (Means::Reads(field), Known::Place(place)) => place
                .field(field.clone())
                .map_or(Known::Nothing, Known::Place),
            (Means::Disposes | Means::Does(_), first) if self.handed_by(first).is_some() => {
                if let Some(place) = self.handed_by(first).filter(|_| means.may_leave()) {
                    self.exit(&place, state);
                }
                Known::Nothing
            }
            (Means::Does(summary), _) => self.does(&Rc::clone(summary), at, values, state),
            (Means::ResultIs, Known::Place(builder)) => {
                if is_builder(builder) {
                    self.ends(state);
                }
                Known::Nothing
            }
            _ => Known::Nothing,
        }
    }

    /// Keeps a call, and what it is made on where all ways bring the same.
    fn watch(&mut self, at: u32, object: &Known) {
        let place = match object {
            Known::Place(place) => Some(place.clone()),
            _ => None,
        };
        let known = self.calls.entry(at).or_insert_with(|| place.clone());
        if *known != place {
            *known = None;
        }
    }

    fn indirect(&self, i: &Instruction<'_>, state: &mut State) {
        let shape = i.token().and_then(|t| self.metadata.indirect_call_shape(t));
        let Some(shape) = shape else {
            state.stack.clear();
            return;
        };
        state.take(shape.takes.saturating_add(1));
        if shape.returns {
            state.push(Known::Nothing);
        }
    }

    fn construct(&mut self, i: &Instruction<'_>, state: &mut State) {
        let Some(constructor) = i.token() else { return };
        match self.callee(constructor).shape {
            Some(shape) => {
                for value in state.take(shape.takes.saturating_sub(1)) {
                    if let Some(local) = value.local {
                        state.set_local(local, Known::Nothing);
                    }
                }
            }
            None => state.stack.clear(),
        }
        state.push(Known::Nothing);
    }
}

/// What a branch on whether a try has entered leads to.
fn tried(i: &Instruction<'_>, state: &mut State, if_set: bool, place: &Place, call: u32) -> Next {
    let (mut inside, mut outside) = (state.clone(), state.clone());
    inside.enter(place.clone(), call, true);
    outside.held.remove(place);
    let (jumps, behind) = if if_set {
        (inside, outside)
    } else {
        (outside, inside)
    };
    *state = behind;
    Next::Parts {
        target: i.target(),
        jumps: Box::new(jumps),
    }
}

/// Whether a place is the builder of a state machine.
fn is_builder(place: &Place) -> bool {
    place
        .fields
        .last()
        .is_some_and(|name| matches!(hoisted_local(name), Some(LocalName::Builder)))
}

/// Whether a field is the one that holds the state of a state machine.
fn is_state(name: &str) -> bool {
    matches!(hoisted_local(name), Some(LocalName::State))
}

fn constant(i: &Instruction<'_>, state: &mut State) -> bool {
    let number = match i.opcode {
        0x15..=0x1e => i32::from(i.opcode).saturating_sub(0x16),
        0x1f => i.operand.first().map_or(0, |b| b.cast_signed().into()),
        0x20 => i
            .operand
            .first_chunk()
            .map_or(0, |b| i32::from_le_bytes(*b)),
        _ => return false,
    };
    state.push(Known::Number(number));
    true
}

fn plain(opcode: u16, state: &mut State) {
    match opcode {
        // sub: compilers ask for the range of the awaits inside a `try`
        0x59 => {
            let second = state.pop().known;
            let difference = match (state.pop().known, second) {
                (Known::State(value), Known::Number(less)) => value.checked_sub(less),
                _ => None,
            };
            state.push(difference.map_or(Known::Nothing, Known::State));
        }
        // ceq, cgt, cgt.un, clt, clt.un
        0xfe01..=0xfe05 => {
            let second = state.pop();
            let first = state.pop();
            let branch = match opcode {
                0xfe01 => 0x3b,
                0xfe02 => 0x3d,
                0xfe04 => 0x3f,
                _ => 0,
            };
            let is = compare(branch, &first.known, &second.known);
            state.push(is.map_or(Known::Nothing, Known::Decided));
        }
        _ => match effect(opcode) {
            Some((takes, leaves)) => {
                state.take(takes);
                for _ in 0..leaves {
                    state.push(Known::Nothing);
                }
            }
            None => state.stack.clear(),
        },
    }
}

/// Whether a branch on two numbers is taken, where both are known.
fn compare(opcode: u16, first: &Known, second: &Known) -> Option<bool> {
    let number = |known: &Known| match known {
        Known::Number(n) | Known::State(n) => Some(*n),
        _ => None,
    };
    // two constants tell nothing that a compiler would ask
    let is_state = |known: &Known| matches!(known, Known::State(_));
    if !is_state(first) && !is_state(second) {
        return None;
    }
    let (first, second) = (number(first)?, number(second)?);
    let unsigned = (first.cast_unsigned(), second.cast_unsigned());
    match opcode {
        0x2e | 0x3b => Some(first == second),
        0x2f | 0x3c => Some(first >= second),
        0x30 | 0x3d => Some(first > second),
        0x31 | 0x3e => Some(first <= second),
        0x32 | 0x3f => Some(first < second),
        0x33 | 0x40 => Some(first != second),
        0x34 | 0x41 => Some(unsigned.0 >= unsigned.1),
        0x35 | 0x42 => Some(unsigned.0 > unsigned.1),
        0x36 | 0x43 => Some(unsigned.0 <= unsigned.1),
        0x37 | 0x44 => Some(unsigned.0 < unsigned.1),
        _ => None,
    }
}
