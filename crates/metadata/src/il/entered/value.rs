//! What is known of values while a method's code is followed.

use std::collections::BTreeMap;

/// Values of the stack that are followed.
const MAX_STACK: usize = 128;
/// Locals that are followed.
const MAX_LOCALS: usize = 512;
/// Fields from the root of a place to its end.
const MAX_FIELDS: usize = 6;
/// Semaphores that one method has entered at one time.
const MAX_HELD: usize = 64;

/// Where the way to an object begins.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Root {
    /// An argument, `this` among them; of a state machine 0 is the machine.
    Argument(u16),
    /// A local variable.
    Local(u16),
    /// A static field of the type with this row in the method's own module; the first name is the field's.
    Static(u32),
    /// What the call at this offset has entered, where nothing tells what that is.
    Call(u32),
}

/// Where code takes an object from: a variable, and the fields from there on.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    /// Where it begins.
    pub root: Root,
    /// Names of the fields that lead on, as they stand in metadata; those of automatic properties are their own.
    pub fields: Vec<String>,
}

impl Place {
    pub(super) fn of(root: Root) -> Self {
        Self {
            root,
            fields: Vec::new(),
        }
    }

    /// Where a variable was taken from, when it is a local one.
    pub(super) fn defined_by(&self, definitions: &BTreeMap<u16, Self>) -> Option<Self> {
        match self.root {
            Root::Local(local) if self.fields.is_empty() => definitions.get(&local).cloned(),
            _ => None,
        }
    }

    /// The place of a field of what stands here.
    pub(super) fn field(&self, name: String) -> Option<Self> {
        let mut place = self.clone();
        place.fields.push(name);
        (place.fields.len() <= MAX_FIELDS).then_some(place)
    }
}

/// What a value is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum Known {
    #[default]
    Nothing,
    Number(i32),
    /// What the state field of a method that runs holds, or that less a number.
    State(i32),
    Place(Place),
    /// The task of entering, made by the call at this offset.
    Entering(Place, u32),
    /// The task of trying to enter, made by the call at this offset: its value tells whether it has.
    Trying(Place, u32),
    /// Whether a try has entered.
    Tried(Place, u32),
    /// What leaves this semaphore when it is disposed of: the value of an await that has entered it.
    Handed(Place),
    /// Whether the state is below 0, and the like: a condition that is decided.
    Decided(bool),
}

/// A value on the stack or in a local.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Value {
    pub(super) known: Known,
    /// The local whose address it is.
    pub(super) local: Option<u16>,
}

impl From<Known> for Value {
    fn from(known: Known) -> Self {
        Self { known, local: None }
    }
}

/// How a semaphore was entered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct How {
    pub(super) call: u32,
    pub(super) always: bool,
}

/// All that is known at one place of the code.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct State {
    pub(super) stack: Vec<Value>,
    pub(super) locals: BTreeMap<u16, Known>,
    pub(super) held: BTreeMap<Place, How>,
}

impl State {
    pub(super) fn pop(&mut self) -> Value {
        self.stack.pop().unwrap_or_default()
    }

    pub(super) fn push(&mut self, value: impl Into<Value>) {
        if self.stack.len() >= MAX_STACK {
            self.stack.clear();
        }
        self.stack.push(value.into());
    }

    /// The last `count` values, in the order in which they were pushed.
    pub(super) fn take(&mut self, count: usize) -> Vec<Value> {
        let count = count.min(MAX_STACK);
        let missing = count.saturating_sub(self.stack.len());
        let mut values = vec![Value::default(); missing];
        let keep = self.stack.len().saturating_sub(count);
        values.extend(self.stack.drain(keep..));
        values
    }

    pub(super) fn set_local(&mut self, local: u16, known: Known) {
        if known == Known::Nothing {
            self.locals.remove(&local);
        } else if self.locals.len() < MAX_LOCALS || self.locals.contains_key(&local) {
            self.locals.insert(local, known);
        }
    }

    pub(super) fn enter(&mut self, place: Place, call: u32, always: bool) {
        if self.held.len() < MAX_HELD {
            self.held.insert(place, How { call, always });
        }
    }

    pub(super) fn without_stack(mut self) -> Self {
        self.stack.clear();
        self
    }

    /// What a handler of exceptions begins with.
    pub(super) fn for_handler(&self) -> Self {
        let mut state = self.clone().without_stack();
        state.push(Known::Nothing);
        state
    }

    /// Adds what another way brings to the same place; whether that was new.
    pub(super) fn join(&mut self, other: &Self) -> bool {
        let before = (self.stack.clone(), self.locals.clone(), self.held.clone());
        if self.stack.len() == other.stack.len() {
            for (mine, theirs) in self.stack.iter_mut().zip(&other.stack) {
                if mine != theirs {
                    *mine = Value::default();
                }
            }
        } else {
            self.stack.clear();
        }
        self.locals
            .retain(|local, known| other.locals.get(local) == Some(known));
        for (place, how) in &mut self.held {
            let theirs = other.held.get(place);
            how.always &= theirs.is_some_and(|h| h.always);
        }
        for (place, how) in &other.held {
            if self.held.len() < MAX_HELD {
                self.held.entry(place.clone()).or_insert(How {
                    always: false,
                    ..*how
                });
            }
        }
        before != (self.stack.clone(), self.locals.clone(), self.held.clone())
    }
}
