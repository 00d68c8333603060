//! What called methods do to semaphores: those of the runtime by their names, others by their own code.

use super::summary::Summary;
use super::value::{Known, Place, State, Value};
use super::{Root, Walk};
use crate::il::flow::CallShape;
use crate::signature::SigType;
use crate::source::Source;
use crate::token::Token;
use std::collections::HashMap;
use std::rc::Rc;

const SEMAPHORE: (&str, &str) = ("System.Threading", "SemaphoreSlim");

/// What a called method means here.
#[derive(Clone, Debug)]
pub(super) enum Means {
    /// It enters at once.
    Enters,
    /// It enters at once or returns that it has not.
    Tries,
    /// It returns the task of entering.
    WillEnter,
    /// It returns the task of entering or not.
    WillTry,
    Leaves,
    /// It ends when its first value has ended: `GetResult`, an await.
    Completes,
    /// It returns what ends behind its first value: `ContinueWith`.
    PassesOn,
    /// The getter of an automatic property, with the field's name.
    Reads(String),
    /// A method of a builder: the state machine has returned, when it is its own.
    ResultIs,
    /// `Dispose` of something whose class is not known.
    Disposes,
    /// A method whose code is known.
    Does(Rc<Summary>),
    Other,
}

impl Means {
    /// Whether it may leave what the object stands for that it is called on.
    pub(super) fn may_leave(&self) -> bool {
        match self {
            Self::Disposes => true,
            Self::Does(summary) => !summary.leaves.is_empty(),
            _ => false,
        }
    }
}

/// A called method.
#[derive(Clone, Debug)]
pub(super) struct Callee {
    /// `None` when its signature cannot be read.
    pub(super) shape: Option<CallShape>,
    pub(super) means: Means,
    /// Whether its calls are kept.
    pub(super) is_watched: bool,
}

/// Called methods, each looked at once.
#[derive(Default)]
pub(super) struct Callees(HashMap<Token, Callee>);

impl<S: Source> Walk<'_, S> {
    pub(super) fn callee(&mut self, method: Token) -> Callee {
        if let Some(known) = self.callees.0.get(&method) {
            return known.clone();
        }
        let m = self.metadata;
        let signature = m.callee_signature(method);
        let shape = signature.map(|s| CallShape {
            passes_on: m.is_face_of_awaited(method),
            ..crate::il::call_shape(&s)
        });
        let watched = self.watched;
        let is_watched = watched.is_some_and(|w| m.callee_name(method).is_some_and(|n| w(&n)));
        let found = Callee {
            shape,
            means: self.meaning(method, shape),
            is_watched,
        };
        self.callees.0.insert(method, found.clone());
        found
    }

    fn meaning(&self, method: Token, shape: Option<CallShape>) -> Means {
        let m = self.metadata;
        let Some(name) = m.callee_name(method) else {
            return Means::Other;
        };
        let is_semaphore = || {
            m.callee_owner(method).is_some_and(|o| {
                (o.namespace.as_str(), o.segments.as_slice())
                    == (SEMAPHORE.0, &[SEMAPHORE.1.to_owned()][..])
            })
        };
        match &*name {
            "Wait" if is_semaphore() => {
                let tells = shape.is_some_and(|s| s.returns);
                return if tells { Means::Tries } else { Means::Enters };
            }
            "WaitAsync" if is_semaphore() => {
                let returns = m.callee_signature(method).map(|s| s.return_type);
                return match returns {
                    Some(SigType::GenericInst { .. }) => Means::WillTry,
                    _ => Means::WillEnter,
                };
            }
            "Release" if is_semaphore() => return Means::Leaves,
            "GetResult" | "get_Result" => return Means::Completes,
            "SetResult" => return Means::ResultIs,
            "ContinueWith" => return Means::PassesOn,
            "Await" if m.suspends(method) == Some(true) => return Means::Completes,
            _ => {}
        }
        if let Some(known) = self.summaries.and_then(|of| of(method)) {
            return Means::Does(known);
        }
        match &*name {
            "Wait" => Means::Completes,
            "Dispose" | "DisposeAsync" => Means::Disposes,
            _ => {
                let is_getter = shape.is_some_and(|s| s.takes == 1 && s.has_this && s.returns);
                match name.strip_prefix("get_").filter(|_| is_getter) {
                    Some(property) => Means::Reads(format!("<{property}>k__BackingField")),
                    None => Means::Other,
                }
            }
        }
    }

    /// What the call at an offset enters.
    pub(super) fn entered(&mut self, what: &Known, at: u32) -> Place {
        let place = match what {
            Known::Place(place) => place.clone(),
            _ => Place::of(Root::Call(at)),
        };
        self.known.insert(place.clone());
        place
    }

    /// What a method does whose code is known.
    pub(super) fn does(
        &mut self,
        summary: &Summary,
        at: u32,
        values: &[Value],
        state: &mut State,
    ) -> Known {
        for place in summary.leaves.iter().flatten() {
            if let Some(place) = given(place, values) {
                self.known.insert(place.clone());
                self.exit(&place, state);
            }
        }
        let mut result = Known::Nothing;
        for (place, always) in &summary.enters {
            let known = place.as_ref().and_then(|p| given(p, values));
            let known = known.map_or(Known::Nothing, Known::Place);
            let place = self.entered(&known, at);
            if summary.is_awaited {
                result = Known::Entering(place, at);
            } else {
                state.enter(place.clone(), at, *always);
                result = Known::Handed(place);
            }
        }
        result
    }

    /// Notes that a variable holds what leaves a semaphore when it is disposed of.
    pub(super) fn hand(&mut self, variable: Option<Place>, semaphore: Place) {
        if let Some(variable) = variable {
            self.known.insert(variable.clone());
            self.handed.insert(variable, semaphore);
        }
    }

    /// The semaphore that something leaves when it is disposed of.
    pub(super) fn handed_by(&self, what: &Known) -> Option<Place> {
        match what {
            Known::Handed(place) => Some(place.clone()),
            Known::Place(variable) => self.handed.get(variable).cloned(),
            _ => None,
        }
    }

    pub(super) fn exit(&mut self, place: &Place, state: &mut State) {
        if state.held.remove(place).is_none() {
            self.given_back.insert(place.clone());
        }
        self.left.insert(place.clone());
    }
}

/// What a place of a called method is for its caller, by the values that it gets.
fn given(place: &Place, values: &[Value]) -> Option<Place> {
    let mut out = match place.root {
        Root::Argument(number) => match &values.get(usize::from(number))?.known {
            Known::Place(place) => place.clone(),
            _ => return None,
        },
        Root::Static(_) => return Some(place.clone()),
        Root::Local(_) | Root::Call(_) => return None,
    };
    for field in &place.fields {
        out = out.field(field.clone())?;
    }
    Some(out)
}
