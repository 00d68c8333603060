//! What a method does to semaphores, as who calls it sees it: locks are often semaphores behind a method that enters and
//! hands out something that leaves when it is disposed of.

use super::value::{Known, Place, Root, State};
use super::{Form, Walk};
use crate::il::handlers::Body;
use crate::il::instructions;
use crate::metadata::Metadata;
use crate::names::{LocalName, hoisted_local};
use crate::signature::SigType;
use crate::source::Source;
use crate::table::Table;
use crate::token::Token;
use std::rc::Rc;

/// Arguments whose names are compared.
const MAX_ARGUMENTS: u16 = 32;

/// What a method does to semaphores, once it has returned or its task has ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// What it has entered and not left, in terms of its arguments, and whether every way through it has; without a
    /// place where the code does not tell what it is.
    pub enters: Vec<(Option<Place>, bool)>,
    /// What it leaves that it did not enter.
    pub leaves: Vec<Option<Place>>,
    /// Whether it has entered only when the task that it returns has ended.
    pub is_awaited: bool,
}

/// A method as another module names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Elsewhere {
    /// Simple name of its assembly.
    pub assembly: String,
    /// Full name of its class, as [`Metadata::type_ref_full_name`] has it.
    pub class: String,
    /// Its name.
    pub name: String,
    /// Number of its parameters, without `this`.
    pub params: usize,
}

/// What the method that a token names does; `None` where its code is not known, or has to do with no semaphore.
pub type Summaries<'s> = dyn Fn(Token) -> Option<Rc<Summary>> + 's;

impl<S: Source> Metadata<S> {
    /// The row of the state machine that a method makes and starts; `None` when it is no such method.
    #[must_use]
    pub fn machine_started_by(&self, code: &[u8]) -> Option<u32> {
        let stores = instructions(code).filter(|i| i.opcode == 0x7d);
        let is_state = |name: &str| matches!(hoisted_local(name), Some(LocalName::State));
        for field in stores.filter_map(|i| i.token()) {
            if !self.field_name_of(field).is_some_and(|n| is_state(&n)) {
                continue;
            }
            return match field.table()? {
                Table::Field => self.field_owner(field.rid()),
                Table::MemberRef => self.definition_of(self.member_ref(field.rid())?.class),
                _ => None,
            };
        }
        None
    }

    /// The row of a method of this module that a call names, as far as the call alone tells.
    #[must_use]
    pub fn callee_definition(&self, method: Token) -> Option<u32> {
        let method = self.generic_definition(method)?;
        if method.table()? == Table::MethodDef {
            return Some(method.rid());
        }
        let named = self.member_ref(method.rid())?;
        let owner = self.definition_of(named.class)?;
        let signature = self.blob(named.signature)?;
        let mut all = self.method_rids_of_type(owner);
        all.find(|rid| {
            self.method(*rid).is_some_and(|m| {
                m.name == named.name && self.blob(m.signature).is_some_and(|s| s == signature)
            })
        })
    }

    /// The method of another module that a call names.
    #[must_use]
    pub fn callee_elsewhere(&self, method: Token) -> Option<Elsewhere> {
        let method = self.generic_definition(method)?;
        let mut owner = self.member_ref(method.rid())?.class;
        if owner.table() == Some(Table::TypeSpec) {
            match self.type_spec(owner.rid())? {
                SigType::GenericInst { ty, .. } => owner = ty,
                _ => return None,
            }
        }
        if method.table() != Some(Table::MemberRef) || owner.table() != Some(Table::TypeRef) {
            return None;
        }
        Some(Elsewhere {
            assembly: self.type_ref_assembly(owner.rid())?,
            class: self.type_ref_full_name(owner.rid())?,
            name: self.callee_name(method)?,
            params: self.callee_signature(method)?.params.len(),
        })
    }

    /// The row of the only method of this module that fits.
    #[must_use]
    pub fn method_named(&self, wanted: &Elsewhere) -> Option<u32> {
        let owner = self.type_index().get(&wanted.class)?;
        let fits = |rid: &u32| {
            self.method(*rid).is_some_and(|m| m.name == wanted.name)
                && self
                    .method_signature(*rid)
                    .is_some_and(|s| s.params.len() == wanted.params)
        };
        let mut all = self.method_rids_of_type(owner).filter(fits);
        all.next().filter(|_| all.next().is_none())
    }

    /// What a method does to semaphores. `body` is that of the state machine when `form` says so, and `method` always
    /// the row of what is called.
    #[must_use]
    pub fn summary(
        &self,
        method: u32,
        body: &Body,
        form: Form,
        summaries: &Summaries<'_>,
    ) -> Summary {
        let mut first = Walk::new(self, body, form, u32::MAX);
        first.summaries = Some(summaries);
        first.run();
        let mut second = Walk::new(self, body, form, u32::MAX);
        second.summaries = Some(summaries);
        second.known = first.known;
        second.run();
        let is_async = self.method(method).is_some_and(|m| m.is_runtime_async());
        let place = |p: &Place| self.in_arguments(method, form, p);
        let held = second.ended.map(|s| s.held).unwrap_or_default();
        let mut out = Summary {
            enters: held.iter().map(|(p, how)| (place(p), how.always)).collect(),
            leaves: second.given_back.iter().map(place).collect(),
            is_awaited: form != Form::Plain || is_async,
        };
        if let Some(entering) = second.returned.filter(|_| !out.is_awaited) {
            out.enters.push((place(&entering), true));
            out.is_awaited = true;
        }
        out
    }

    /// The row of a type of this module; of an instantiation that of its definition.
    fn definition_of(&self, class: Token) -> Option<u32> {
        match class.table()? {
            Table::TypeDef => Some(class.rid()),
            Table::TypeSpec => match self.type_spec(class.rid())? {
                SigType::GenericInst { ty, .. } | SigType::Class(ty) | SigType::ValueType(ty) => {
                    (ty.table() == Some(Table::TypeDef)).then(|| ty.rid())
                }
                _ => None,
            },
            _ => None,
        }
    }

    /// A place as the caller knows it: fields of a state machine are the method's arguments.
    fn in_arguments(&self, method: u32, form: Form, place: &Place) -> Option<Place> {
        match (form, &place.root) {
            (_, Root::Static(_)) | (Form::Plain, Root::Argument(_)) => Some(place.clone()),
            (Form::Machine { .. }, Root::Argument(0)) => {
                let (first, rest) = place.fields.split_first()?;
                let number = match hoisted_local(first) {
                    Some(LocalName::This) => 0,
                    Some(LocalName::Captured(name)) => (0..MAX_ARGUMENTS)
                        .find(|n| self.argument_name(method, *n).as_deref() == Some(&name))?,
                    _ => return None,
                };
                Some(Place {
                    root: Root::Argument(number),
                    fields: rest.to_vec(),
                })
            }
            _ => None,
        }
    }
}

impl<S: Source> Walk<'_, S> {
    /// The method returns, and what it is about to return stands on the stack.
    pub(super) fn returns(&mut self, state: &State) {
        if self.form != Form::Plain {
            return;
        }
        if let Some(Known::Entering(place, _)) = state.stack.last().map(|v| &v.known) {
            self.returned = Some(place.clone());
        }
        self.ends(state);
    }

    /// The method has done what it does.
    pub(super) fn ends(&mut self, state: &State) {
        match &mut self.ended {
            Some(known) => {
                known.join(state);
            }
            None => self.ended = Some(state.clone()),
        }
    }
}
