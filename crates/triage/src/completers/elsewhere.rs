//! What else in the program's code completes something: methods that are not at work now may be called at any time.

use super::calls::{By, Method, Site};
use super::through::Callers;
use super::ways::form_of;
use super::web::{End, Way};
use super::{Completes, Search, Target};
use crate::holders::{Who, standing};
use crate::paths::steps_of;
use asynctriage_async_graph::NodeId;
use asynctriage_metadata::il::{self, Receiver, Stands};
use rustc_hash::{FxHashMap, FxHashSet};
use std::cell::OnceCell;
use std::rc::Rc;

/// Methods of one module that are looked at.
const MAX_METHODS: u32 = 1 << 20;

/// Methods of the program that complete something.
#[derive(Default)]
pub(super) struct Elsewhere {
    all: OnceCell<Code>,
    callers: OnceCell<Callers>,
}

#[derive(Default)]
struct Code {
    methods: Vec<(Method, Rc<[Site]>)>,
    /// Whether the code of some methods is not there.
    is_partial: bool,
}

impl Search<'_, '_, '_> {
    /// Whether other methods than those that are known, and those that wait, have calls that may complete an object:
    /// made on a field that leads to it, or in a method that reads such a field.
    pub(super) fn is_completed_elsewhere(
        &self,
        target: Target,
        by: &[Completes],
        ways: &[Way],
        waiting: &FxHashSet<NodeId>,
    ) -> bool {
        let rt = self.analysis.rt;
        let code = self.elsewhere.all.get_or_init(|| self.read());
        if code.is_partial {
            return true;
        }
        let acting = by.iter().filter_map(|c| match c.who {
            Who::Method(id) => Some(id),
            Who::Thread(_) => None,
        });
        let nodes = waiting.iter().copied().chain(acting);
        let steps = nodes.flat_map(|id| steps_of(&self.analysis.graph, id));
        let methods = steps.filter_map(|s| standing::suspended(self.analysis, s));
        let standing = methods.map(|m| ((m.module, m.rid), m.stands(rt)));
        let proved = self.ahead.all(target.object).iter();
        let through = self.through.on(target, ways).into_iter();
        let proved = proved.chain(through).map(|p| (p.method, p.stands));
        let mut places: FxHashMap<Method, Vec<Option<Stands>>> = FxHashMap::default();
        for (method, stands) in standing.chain(proved) {
            places.entry(method).or_default().push(stands);
        }
        let known: FxHashSet<Method> = places.keys().copied().collect();
        let names = self.fields_on(ways);
        let mut others = code.methods.iter().filter(|(of, sites)| {
            let fits = |s: &&Site| target.by.may_be_done_by(s) && self.is_of_class(&s.call, target);
            match places.get(of) {
                // another call of it must not come there past the place where these calls stand
                Some(stands) => self.goes_round(*of, stands, sites.iter().filter(fits)),
                None => {
                    sites.iter().any(|s| fits(&s)) && !self.callers().only_from(*of, &known, &names)
                }
            }
        });
        others.any(|((module, rid), sites)| {
            let is_on_field = |s: &Site| match &s.call.receiver {
                Receiver::Field(field) => target.by.may_be_done_by(s) && names.contains(field),
                _ => false,
            };
            let is_on_variable =
                |s: &Site| !matches!(s.call.receiver, Receiver::Field(_) | Receiver::New);
            let reads = || {
                let of = rt.module(*module);
                let code = rt.method_il(*module, *rid).unwrap_or_default();
                let metadata = of.metadata.as_ref();
                metadata.is_none_or(|m| m.reads_field(&code, |name| names.contains(name)))
            };
            sites.iter().any(is_on_field) || sites.iter().any(is_on_variable) && reads()
        })
    }

    /// Whether a lambda of the program releases a semaphore without having entered it: a callback, a continuation. Methods
    /// that only release are taken for the other half of those that only enter.
    pub(super) fn is_released_by_lambda(&self, ways: &[Way]) -> bool {
        let rt = self.analysis.rt;
        let code = self.elsewhere.all.get_or_init(|| self.read());
        let names = self.fields_on(ways);
        code.methods.iter().any(|((module, rid), sites)| {
            let of = rt.module(*module);
            let Some(metadata) = of.metadata.as_ref() else {
                return false;
            };
            let is_lambda = metadata
                .method(*rid)
                .is_some_and(|m| m.name.starts_with('<'));
            let releases = |s: &Site| {
                By::Release.may_be_done_by(s)
                    && match &s.call.receiver {
                        Receiver::Field(field) => names.contains(field),
                        _ => true,
                    }
            };
            is_lambda && sites.iter().any(releases)
        })
    }

    /// Whether another call of a method may complete something without passing one of the places where calls of it stand.
    fn goes_round<'s>(
        &self,
        (module, rid): Method,
        stands: &[Option<Stands>],
        mut sites: impl Iterator<Item = &'s Site>,
    ) -> bool {
        let places: Option<Vec<Stands>> = stands.iter().copied().collect();
        let body = self.analysis.rt.method_body(module, rid);
        let around = body.zip(places).and_then(|(b, p)| il::around(&b, &p));
        around.is_none_or(|around| sites.any(|s| around.contains(&s.call.il_offset)))
    }

    fn callers(&self) -> &Callers {
        let all = &self.elsewhere.callers;
        all.get_or_init(|| Callers::read(self.analysis))
    }

    /// Names of the fields that lead to an object, those of methods' variables left out.
    fn fields_on(&self, ways: &[Way]) -> FxHashSet<String> {
        let a = self.analysis;
        let mut out = FxHashSet::default();
        for way in ways {
            if let End::Static(field) = &way.end {
                out.insert(field.name.to_string());
            }
            let references = way.references.iter();
            let of_objects = references.filter(|r| self.web.method_of(r.holder).is_none());
            out.extend(of_objects.filter_map(|r| {
                let ty = a.rt.type_of(r.holder)?;
                Some(a.field_at(&ty, r)?.name.to_string())
            }));
        }
        out
    }

    fn read(&self) -> Code {
        let rt = self.analysis.rt;
        let mut out = Code::default();
        for module in rt.modules_seen() {
            if module.ships_with_dotnet {
                continue;
            }
            let Some(metadata) = module.metadata.as_ref() else {
                out.is_partial = true;
                continue;
            };
            for rid in 1..=MAX_METHODS {
                let Some(method) = metadata.method(rid) else {
                    break;
                };
                if method.rva == 0 {
                    continue;
                }
                if rt.method_il(module.addr, rid).is_none() {
                    out.is_partial = true;
                    return out;
                }
                let form = form_of(method.name == "MoveNext");
                let sites = self.calls.of(rt, (module.addr, rid), form);
                if !sites.is_empty() {
                    out.methods.push(((module.addr, rid), sites));
                }
            }
        }
        out
    }
}
