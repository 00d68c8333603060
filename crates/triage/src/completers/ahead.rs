//! What methods complete behind the place where they stand, by their code and the variables that it names.

use super::calls::{By, Calls, Method};
use super::{Target, notation};
use crate::holders::{Standing, Who, standing};
use crate::libraries::channels;
use crate::paths::Analysis;
use crate::threads::Hang;
use asynctriage_dump::Addr;
use asynctriage_metadata::il::{Form, Place, Root, Stands};
use asynctriage_report::Confidence;
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// A method that completes an object, and how that is known.
#[derive(Clone, Debug)]
pub(super) struct Proved {
    pub(super) who: Who,
    /// What the method is called.
    pub(super) name: Arc<str>,
    /// Where its code is.
    pub(super) method: Method,
    /// Where in its code it stands.
    pub(super) stands: Option<Stands>,
    /// The await that it stands at.
    pub(super) at: Option<i32>,
    /// The object of its variables.
    pub(super) slot: Option<Addr>,
    /// The called method.
    pub(super) call: String,
    /// The variable as the source has it; empty where it has no name.
    pub(super) variable: String,
    /// Certain where the variable is described; likely where it is the only one that it can be.
    pub(super) confidence: Confidence,
}

impl Proved {
    /// What a method does by a call on the object that its code takes from `place`.
    pub(super) fn by(
        a: &Analysis<'_, '_>,
        method: &Standing<'_>,
        call: &str,
        place: &Place,
        confidence: Confidence,
    ) -> Self {
        let of = (method.module, method.rid);
        Self {
            who: method.who,
            name: Arc::clone(&method.name),
            method: of,
            stands: method.stands(a.rt),
            at: method.step.and_then(|s| a.step_await(s)),
            slot: method.slot,
            call: call.to_owned(),
            variable: variable(a, of, method.form, place),
            confidence,
        }
    }
}

/// Methods that complete something, by the object.
#[derive(Debug, Default)]
pub(super) struct Ahead {
    by_object: FxHashMap<Addr, Vec<Proved>>,
}

impl Ahead {
    pub(super) fn find(
        a: &Analysis<'_, '_>,
        hang: &Hang,
        calls: &Calls,
        targets: &FxHashMap<Addr, By>,
    ) -> Self {
        let mut out = Self::default();
        standing::each(a, hang, &mut |method| {
            out.look_at(a, calls, targets, method);
        });
        out
    }

    fn look_at(
        &mut self,
        a: &Analysis<'_, '_>,
        calls: &Calls,
        targets: &FxHashMap<Addr, By>,
        method: &Standing<'_>,
    ) {
        for site in calls.behind(a.rt, method).iter() {
            let Some(place) = &site.place else { continue };
            let is_wanted = |at: Addr| {
                let by = targets.get(&channels::channel_of(a.rt, at));
                by.is_some_and(|by| by.may_be_done_by(site))
            };
            let found = method
                .activation
                .object_at(a, place, site.from.as_ref(), &is_wanted);
            let Some(held) = found else { continue };
            let object = channels::channel_of(a.rt, held.object);
            let all = self.by_object.entry(object).or_default();
            if all
                .iter()
                .any(|p| p.who == method.who && p.slot == method.slot)
            {
                continue;
            }
            let confidence = if held.is_guess {
                Confidence::Likely
            } else {
                Confidence::Certain
            };
            all.push(Proved::by(a, method, &site.call.name, place, confidence));
        }
    }

    /// All that complete an object.
    pub(super) fn all(&self, object: Addr) -> &[Proved] {
        self.by_object.get(&object).map_or(&[], Vec::as_slice)
    }

    /// What one of them does, in the method whose variables are in `slot`.
    pub(super) fn of(&self, target: Target, who: Who, slot: Option<Addr>) -> Option<&Proved> {
        let mut all = self.all(target.object).iter();
        all.find(|p| p.who == who && (p.slot == slot || slot.is_none()))
    }
}

/// A variable as the source has it: `done`, `this._done`, `Program.s_done`.
fn variable(a: &Analysis<'_, '_>, (module, rid): Method, form: Form, place: &Place) -> String {
    let names = place.fields.iter().filter_map(|f| notation::source_name(f));
    let known = a.rt.module(module);
    let metadata = known.metadata.as_ref();
    let root = match place.root {
        // its fields are the variables
        Root::Argument(0) if form != Form::Plain => None,
        Root::Argument(number) => metadata.and_then(|m| m.argument_name(rid, number)),
        Root::Static(ty) => {
            a.rt.loaded_type(module, ty)
                .map(|mt| a.type_name(mt).replace('+', "."))
        }
        Root::Local(_) | Root::Call(_) => None,
    };
    let all: Vec<String> = root.into_iter().chain(names).collect();
    all.join(".")
}
