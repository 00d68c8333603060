//! Awaits in the code of async methods.
//!
//! A state machine stores the number of an await in its state field, the awaiter in another, and calls
//! `AwaitUnsafeOnCompleted` or `AwaitOnCompleted` of its builder; C# and Visual Basic do so, in optimised and in debug
//! builds, in methods, lambdas and async iterators (compilers of .NET 8 to 11). A runtime-async method (.NET 11) calls
//! `AsyncHelpers` instead.

use super::flow::{CallShape, Context, Origin, Value, follow};
use crate::metadata::Metadata;
use crate::names::{LocalName, hoisted_local};
use crate::source::Source;
use crate::token::Token;
use std::collections::HashMap;

/// Awaits of one method at most.
const MAX_SITES: usize = 1 << 14;
/// `await await x`: what the outer one awaits.
const RESULT: &str = "the result of an await";

/// An await in a method's code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AwaitSite {
    /// Which await it is: the state number of a state machine, or the place among those of a runtime-async method.
    pub number: u32,
    /// Where it is: in a state machine behind the instruction that stores the number, else the call that suspends.
    pub il_offset: u32,
    /// What is awaited, as in the source: `Client.SendAsync`, `_gate`, `new Awaitable`; `None` when the code does not
    /// tell.
    pub awaits: Option<String>,
    /// The field that keeps the awaiter (state machines).
    pub awaiter_field: Option<String>,
}

impl<S: Source> Metadata<S> {
    /// The awaits in the code of a state machine's `MoveNext`, by their numbers. Numbers that the code gives to more
    /// than one place are left out.
    #[must_use]
    pub fn state_machine_awaits(&self, code: &[u8]) -> Vec<AwaitSite> {
        let mut sites = self.sites(code, None);
        sites.sort_by_key(|s| (s.number, s.il_offset));
        let numbers: Vec<u32> = sites.iter().map(|s| s.number).collect();
        let is_twice = |n: u32| {
            let first = numbers.partition_point(|m| *m < n);
            numbers.get(first.saturating_add(1)) == Some(&n)
        };
        sites.retain(|s| !is_twice(s.number));
        sites
    }

    /// The awaits in the code of the runtime-async method with this row, in their order.
    #[must_use]
    pub fn runtime_async_awaits(&self, method: u32, code: &[u8]) -> Vec<AwaitSite> {
        self.sites(code, Some(method))
    }

    fn sites(&self, code: &[u8], runtime_async: Option<u32>) -> Vec<AwaitSite> {
        let mut search = Search {
            metadata: self,
            runtime_async,
            shapes: HashMap::new(),
            suspends: HashMap::new(),
            fields: HashMap::new(),
            temporaries: HashMap::new(),
            state: None,
            awaiter: None,
            sites: Vec::new(),
        };
        follow(code, &mut search);
        search.sites
    }
}

/// What a field of a state machine means for an await.
#[derive(Clone, PartialEq, Eq)]
enum Role {
    State,
    Awaiter(String),
    /// A value that waits for others to be computed.
    Temporary,
    Other,
}

struct Search<'m, S> {
    metadata: &'m Metadata<S>,
    /// The row of the runtime-async method, when it is one.
    runtime_async: Option<u32>,
    shapes: HashMap<Token, Option<CallShape>>,
    /// Whether a method suspends its caller.
    suspends: HashMap<Token, bool>,
    fields: HashMap<Token, Role>,
    /// What was stored last in fields that are not in the source.
    temporaries: HashMap<Token, Value>,
    /// The number that was stored last, and the offset behind the store.
    state: Option<(u32, u32)>,
    awaiter: Option<String>,
    sites: Vec<AwaitSite>,
}

impl<S: Source> Context for Search<'_, S> {
    fn shape(&mut self, method: Token) -> Option<CallShape> {
        if let Some(known) = self.shapes.get(&method) {
            return *known;
        }
        let shape = self
            .metadata
            .callee_signature(method)
            .map(|signature| CallShape {
                passes_on: self.metadata.is_face_of_awaited(method),
                ..super::call_shape(&signature)
            });
        self.shapes.insert(method, shape);
        shape
    }

    fn indirect_shape(&mut self, signature: Token) -> Option<CallShape> {
        self.metadata.indirect_call_shape(signature)
    }

    fn called(&mut self, at: u32, method: Token, values: &[Value]) {
        if self.sites.len() >= MAX_SITES || !self.is_suspension(method) {
            return;
        }
        let site = match self.runtime_async {
            Some(_) => u32::try_from(self.sites.len())
                .ok()
                .map(|number| (number, at, values.first())),
            // the builder, the awaiter, the state machine
            None => self
                .state
                .take()
                .map(|(number, behind)| (number, behind, values.get(1))),
        };
        let Some((number, il_offset, value)) = site else {
            return;
        };
        let awaits = value.and_then(|v| self.text(*v));
        self.sites.push(AwaitSite {
            number,
            il_offset,
            awaits,
            awaiter_field: self.awaiter.take(),
        });
    }

    fn stored(&mut self, next: u32, field: Token, value: Value) {
        match self.role(field) {
            Role::State => {
                self.awaiter = None;
                self.state = match value.origin {
                    Origin::Number(number) if value.or.is_none() => {
                        u32::try_from(number).ok().map(|n| (n, next))
                    }
                    _ => None,
                };
            }
            Role::Awaiter(name) => self.awaiter = Some(name),
            Role::Temporary => {
                self.temporaries.insert(field, value);
            }
            Role::Other => {}
        }
    }
}

impl<S: Source> Search<'_, S> {
    fn is_suspension(&mut self, method: Token) -> bool {
        if let Some(known) = self.suspends.get(&method) {
            return *known;
        }
        let is = match self.runtime_async {
            Some(_) => self.metadata.suspends(method) == Some(true),
            None => matches!(
                self.metadata.callee_name(method).as_deref(),
                Some("AwaitUnsafeOnCompleted" | "AwaitOnCompleted")
            ),
        };
        self.suspends.insert(method, is);
        is
    }

    fn role(&mut self, field: Token) -> Role {
        if let Some(known) = self.fields.get(&field) {
            return known.clone();
        }
        let name = self.metadata.field_name_of(field).unwrap_or_default();
        let role = match hoisted_local(&name) {
            Some(LocalName::State) => Role::State,
            Some(LocalName::Awaiter) => Role::Awaiter(name),
            Some(LocalName::Temporary) => Role::Temporary,
            _ => Role::Other,
        };
        self.fields.insert(field, role.clone());
        role
    }

    fn text(&self, value: Value) -> Option<String> {
        let behind = match value.origin {
            Origin::Field(field) => self.temporaries.get(&field).copied(),
            _ => None,
        };
        let value = behind.unwrap_or(value);
        let first = self.origin_text(value.origin)?;
        match value.or {
            None => Some(first),
            Some(other) => Some(format!("{first} or {}", self.origin_text(other)?)),
        }
    }

    fn origin_text(&self, origin: Origin) -> Option<String> {
        let m = self.metadata;
        match origin {
            Origin::Call(method) if m.is_result_of_await(method) => Some(RESULT.to_owned()),
            Origin::Call(method) => m.callee_text(method),
            Origin::New(constructor) => Some(format!("new {}", m.callee_type_text(constructor)?)),
            Origin::Field(field) => m.field_text(field),
            Origin::Argument(number) => m.argument_name(self.runtime_async?, number),
            Origin::Unknown | Origin::Null | Origin::Number(_) => None,
        }
    }
}

#[cfg(test)]
mod tests;
