//! Who completes something through a method of its own classes: `gate.Set()`, whose code completes a source that the gate
//! keeps.

use super::Target;
use super::ahead::Proved;
use super::calls::{By, Calls, Method};
use super::web::Way;
use crate::holders::{Standing, standing};
use crate::paths::Analysis;
use crate::threads::Hang;
use asynctriage_dump::Addr;
use asynctriage_metadata::il::{self, Place, Receiver};
use asynctriage_report::Confidence;
use rustc_hash::{FxHashMap, FxHashSet};
use std::rc::Rc;

/// Methods of one module that are looked at.
const MAX_METHODS: u32 = 1 << 16;
/// Callers of callers that are asked who calls them.
const MAX_CALLERS: usize = 1 << 12;

/// Calls of methods that complete what their object keeps, by that object.
#[derive(Debug, Default)]
pub(super) struct Through {
    by_object: FxHashMap<Addr, Vec<Proved>>,
    /// The calls behind places of the code, by method and offset: many methods stand at each.
    by_place: FxHashMap<(Method, u32), Rc<[Completing]>>,
}

/// A call of a method that completes what its object keeps.
#[derive(Debug)]
struct Completing {
    name: String,
    place: Place,
    from: Option<Place>,
}

/// The calls of such methods behind the place where a method stands.
fn completing(
    a: &Analysis<'_, '_>,
    calls: &Calls,
    method: &Standing<'_>,
) -> Option<Vec<Completing>> {
    let (rt, module) = (a.rt, a.rt.module(method.module));
    let metadata = module.metadata.as_ref()?;
    let body = rt.method_body(method.module, method.rid)?;
    let named = il::calls(&body.code).filter_map(|(at, token)| {
        let callee = metadata.callee_definition(token)?;
        let completes = calls.completes(rt, (method.module, callee));
        completes.then_some((at, metadata.method(callee)?.name))
    });
    let named: Vec<(u32, String)> = named.collect();
    if named.is_empty() {
        return None;
    }
    let behind = method.behind(rt, &body)?;
    let names: FxHashSet<&str> = named.iter().map(|(_, n)| n.as_str()).collect();
    let placed = metadata.placed_calls(&body, method.form, &|n| names.contains(n));
    let calls = named.iter().filter(|(at, _)| behind.contains(at));
    let calls = calls.filter_map(|(at, name)| {
        let call = placed.iter().find(|p| p.il_offset == *at)?;
        Some(Completing {
            name: name.clone(),
            place: call.place.clone()?,
            from: call.from.clone(),
        })
    });
    Some(calls.collect())
}

impl Through {
    pub(super) fn find(a: &Analysis<'_, '_>, hang: &Hang, calls: &Calls) -> Self {
        let mut out = Self::default();
        standing::each(a, hang, &mut |method| out.look_at(a, calls, method));
        out
    }

    fn look_at(&mut self, a: &Analysis<'_, '_>, calls: &Calls, method: &Standing<'_>) {
        let of = (method.module, method.rid);
        let key = (of, method.at);
        let known = self.by_place.get(&key).cloned();
        let behind = known.unwrap_or_else(|| {
            let found: Rc<[Completing]> = completing(a, calls, method).unwrap_or_default().into();
            self.by_place.insert(key, Rc::clone(&found));
            found
        });
        for call in behind.iter() {
            let activation = &method.activation;
            let found = activation.object_at(a, &call.place, call.from.as_ref(), &|_| true);
            let Some(held) = found.filter(|held| !held.is_guess) else {
                continue;
            };
            let all = self.by_object.entry(held.object).or_default();
            if all
                .iter()
                .any(|p| p.who == method.who && p.call == call.name)
            {
                continue;
            }
            let sure = Confidence::Likely;
            all.push(Proved::by(a, method, &call.name, &call.place, sure));
        }
    }

    /// Those that call such a method of an object which leads to the target.
    pub(super) fn on(&self, target: Target, ways: &[Way]) -> Vec<&Proved> {
        if target.by != By::Result {
            return Vec::new();
        }
        let references = ways.iter().flat_map(|w| &w.references);
        let holders: FxHashSet<Addr> = references.map(|r| r.holder).collect();
        let found = holders.iter().filter_map(|h| self.by_object.get(h));
        let mut out: Vec<&Proved> = found.flatten().collect();
        out.sort_by_key(|p| (p.who, p.slot));
        out
    }
}

/// Who calls whom in the program's code.
#[derive(Debug, Default)]
pub(super) struct Callers {
    by_callee: FxHashMap<Method, Vec<Call>>,
}

/// A call of a method of the program.
#[derive(Clone, Debug)]
struct Call {
    from: Method,
    /// The field that the code takes the object from.
    field: Option<String>,
}

impl Callers {
    pub(super) fn read(a: &Analysis<'_, '_>) -> Self {
        let rt = a.rt;
        let mut out = Self::default();
        let modules = rt.modules_seen();
        let own = modules.iter().filter(|m| !m.ships_with_dotnet);
        for module in own {
            let Some(metadata) = module.metadata.as_ref() else {
                continue;
            };
            for rid in (1..=MAX_METHODS).take_while(|rid| metadata.method(*rid).is_some()) {
                let code = rt.method_il(module.addr, rid).unwrap_or_default();
                let mut callees: Vec<(u32, Method)> = Vec::new();
                for (at, token) in il::calls(&code) {
                    if let Some(callee) = metadata.callee_definition(token) {
                        callees.push((at, (module.addr, callee)));
                    } else if let Some(wanted) = metadata.callee_elsewhere(token) {
                        let mut others = modules.iter().filter(|m| m.name == wanted.assembly);
                        let other = others.find(|m| !m.ships_with_dotnet);
                        let rid = other.and_then(|m| m.metadata.as_ref()?.method_named(&wanted));
                        callees.extend(other.zip(rid).map(|(m, rid)| (at, (m.addr, rid))));
                    }
                }
                if callees.is_empty() {
                    continue;
                }
                let sites = metadata.call_sites(&code, |_| true);
                for (at, callee) in callees {
                    let site = sites.iter().find(|s| s.il_offset == at);
                    let field = site.and_then(|s| match &s.receiver {
                        Receiver::Field(field) => Some(field.clone()),
                        _ => None,
                    });
                    let from = (module.addr, rid);
                    let all = out.by_callee.entry(callee).or_default();
                    all.push(Call { from, field });
                }
            }
        }
        out
    }

    /// Whether calls of a method come from some methods only, directly or through others; calls on other fields than those
    /// that lead to the object do not count. One that nobody calls by name is called through a delegate, an interface, or
    /// from outside.
    pub(super) fn only_from(
        &self,
        method: Method,
        known: &FxHashSet<Method>,
        fields: &FxHashSet<String>,
    ) -> bool {
        let mut seen = FxHashSet::from_iter([method]);
        let mut todo = vec![method];
        while let Some(at) = todo.pop() {
            let Some(callers) = self.by_callee.get(&at) else {
                return false;
            };
            if seen.len() >= MAX_CALLERS {
                return false;
            }
            let on_object = |c: &&Call| c.field.as_ref().is_none_or(|f| fields.contains(f));
            let callers = callers.iter().filter(on_object).map(|c| c.from);
            let others = callers.filter(|c| !known.contains(c));
            todo.extend(others.filter(|c| seen.insert(*c)));
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_somebody_unknown_may_call_is_open() {
        let method = |n: u32| (Addr(1), n);
        let mut callers = Callers::default();
        let mut add = |callee, by: &[(u32, Option<&str>)]| {
            let call = |(n, field): &(u32, Option<&str>)| Call {
                from: method(*n),
                field: field.map(str::to_owned),
            };
            let by = by.iter().map(call).collect();
            callers.by_callee.insert(method(callee), by);
        };
        add(1, &[(2, None)]);
        add(
            2,
            &[
                (3, Some("_gate")),
                (4, None),
                (1, None),
                (5, Some("_other")),
            ],
        );
        let fields = FxHashSet::from_iter(["_gate".to_owned()]);
        let only = |of, known: &[u32]| {
            let known = known.iter().map(|n| method(*n)).collect();
            callers.only_from(method(of), &known, &fields)
        };
        assert!(only(1, &[3, 4]));
        assert!(!only(1, &[3]));
        assert!(!only(9, &[3]));
    }
}
