//! Methods that have no frame of their own, because the JIT put their code into their caller's, or because they ended
//! with a call of the next one.
//!
//! Debug info says which statement of a method a return address belongs to, and IL says what it calls. When no call of
//! the statement leads to the frame below, and one of them leads to a method whose own IL does, that method was called
//! and has no frame. It is named where there is one such way only. Calls through interfaces are not followed.

use super::calls::{Called, Place};
use super::method::{MethodKind, MethodRef};
use crate::runtime::Runtime;
use crate::stack::{FrameSource, Stack};
use asynctriage_dump::Addr;
use asynctriage_metadata::il::CallForm;
use rustc_hash::FxHashMap;
use std::ops::Range;
use std::sync::Arc;

/// Methods on one way.
const MAX_DEPTH: usize = 6;
/// Methods on a way through the framework's own code.
const MAX_INNER: usize = 4;
/// Methods that are looked at for one frame.
const MAX_BODIES: usize = 256;
/// Ways that are compared.
const MAX_WAYS: usize = 16;
/// Frames whose result is kept.
const MAX_KNOWN: usize = 1 << 16;

/// By the address of the frame that calls, and the method below it.
pub(super) type Known = FxHashMap<(Addr, Place), Arc<[MethodRef]>>;

impl Runtime<'_> {
    /// The methods of the program, innermost first, through which a frame of a stack has called the one below it, and
    /// which have no frame of their own.
    #[must_use]
    pub fn inlined(&self, stack: &Stack, frame: usize) -> Arc<[MethodRef]> {
        let none = || Arc::from([]);
        let Some((caller, below)) = stack.pair(frame) else {
            return none();
        };
        let is_adjacent = caller.source == FrameSource::Unwound && !stack.has_native(frame);
        let is_ordinary =
            |m: &MethodRef| !matches!(m.kind, MethodKind::Dynamic | MethodKind::Stub) && m.rid != 0;
        if !is_adjacent || !is_ordinary(&caller.method) || !is_ordinary(&below.method) {
            return none();
        }
        let key = (caller.ip, (below.method.module, below.method.rid));
        let known = &self.code.inlined;
        if let Some(found) = known.read().ok().and_then(|k| k.get(&key).cloned()) {
            return found;
        }
        let found = self.find_inlined(caller.ip, &caller.method, key.1);
        let found: Arc<[MethodRef]> = found.unwrap_or_default().into();
        if let Ok(mut known) = known.write()
            && known.len() < MAX_KNOWN
        {
            known.insert(key, Arc::clone(&found));
        }
        found
    }

    fn find_inlined(&self, ip: Addr, caller: &MethodRef, below: Place) -> Option<Vec<MethodRef>> {
        // the framework calls methods of programs by delegates and interfaces only
        if self.module(caller.module).ships_with_dotnet {
            return None;
        }
        let search = Search::new(self, below)?;
        let statement = self.statement(ip.back(1))?;
        let ways = search.ways_from((caller.module, caller.rid), &statement)?;
        let way = common(&ways);
        way.iter().rev().map(|m| self.method_at_place(*m)).collect()
    }
}

/// What all ways begin with.
fn common(ways: &[Vec<Place>]) -> Vec<Place> {
    let Some((first, others)) = ways.split_first() else {
        return Vec::new();
    };
    let is_common = |(i, m): &(usize, &Place)| others.iter().all(|w| w.get(*i) == Some(m));
    let same = first.iter().enumerate().take_while(is_common);
    same.map(|(_, m)| *m).collect()
}

/// Whether a call leads to the frame below.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Leads {
    There,
    /// Its target is not known, and may be the one.
    Perhaps,
    Elsewhere,
}

/// Looks for ways from a statement to the frame below.
struct Search<'r, 'd> {
    rt: &'r Runtime<'d>,
    below: Place,
    /// The name of the method below, without the interface that it may implement.
    name: String,
    params: usize,
    /// The type that has it, without its number of generic parameters.
    class: String,
    is_framework: bool,
    bodies: usize,
    /// Whether a way through the framework's own code leads there.
    inner: FxHashMap<Place, bool>,
    way: Vec<Place>,
    ways: Vec<Vec<Place>>,
}

impl<'r, 'd> Search<'r, 'd> {
    fn new(rt: &'r Runtime<'d>, below: Place) -> Option<Self> {
        let module = rt.module(below.0);
        let metadata = module.metadata.as_ref()?;
        let method = metadata.method(below.1)?;
        // the runtime starts class constructors by itself
        if method.name == ".cctor" {
            return None;
        }
        Some(Self {
            rt,
            below,
            name: last_part(&method.name).to_owned(),
            params: metadata.method_signature(below.1)?.params.len(),
            class: class_name(rt, below)?,
            is_framework: module.ships_with_dotnet,
            bodies: 0,
            inner: FxHashMap::default(),
            way: Vec::new(),
            ways: Vec::new(),
        })
    }

    /// All ways; `None` when the frame below was or may have been called directly, and when not all could be looked at.
    fn ways_from(mut self, caller: Place, statement: &Range<u32>) -> Option<Vec<Vec<Place>>> {
        let calls = self.rt.calls_of(caller)?;
        let here = || calls.iter().filter(|c| statement.contains(&c.at));
        for call in here() {
            if self.leads(call) != Leads::Elsewhere || self.leads_inside(call, 0) {
                return None;
            }
        }
        for call in here() {
            self.follow(call, caller)?;
        }
        Some(self.ways)
    }

    /// Adds the ways over the method that a call names; `None` when there are too many.
    fn follow(&mut self, call: &Called, caller: Place) -> Option<()> {
        let Some(method) = self.inlinable(call, false) else {
            return Some(());
        };
        if self.way.len() >= MAX_DEPTH || method == caller || self.way.contains(&method) {
            return Some(());
        }
        self.count()?;
        let Some(calls) = self.rt.calls_of(method) else {
            return Some(());
        };
        self.way.push(method);
        let mut is_last = false;
        for call in calls.iter() {
            is_last |= self.leads(call) != Leads::Elsewhere || self.leads_inside(call, 0);
        }
        if is_last {
            (self.ways.len() < MAX_WAYS).then(|| self.ways.push(self.way.clone()))?;
        }
        for call in calls.iter() {
            self.follow(call, caller)?;
        }
        self.way.pop();
        Some(())
    }

    fn count(&mut self) -> Option<()> {
        self.bodies = self.bodies.saturating_add(1);
        (self.bodies <= MAX_BODIES).then_some(())
    }

    fn leads(&self, call: &Called) -> Leads {
        if call.target == Some(self.below) {
            return Leads::There;
        }
        let is_alike = || last_part(&call.name) == self.name && call.params == self.params;
        let may = match call.form {
            CallForm::Indirect => true,
            _ if call.is_delegate => !self.is_framework,
            _ => call.is_open && is_alike(),
        };
        if may {
            Leads::Perhaps
        } else {
            Leads::Elsewhere
        }
    }

    /// Whether a call of the framework leads there through code of its own that has no frames.
    fn leads_inside(&mut self, call: &Called, depth: usize) -> bool {
        if !self.is_framework {
            return false;
        }
        let Some(method) = self.inlinable(call, true) else {
            return false;
        };
        if let Some(known) = self.inner.get(&method) {
            return *known;
        }
        // what is asked for again on the way there leads nowhere new
        self.inner.insert(method, false);
        let leads = match self.rt.calls_of(method) {
            Some(calls) if self.count().is_some() => calls.iter().any(|call| {
                self.leads(call) != Leads::Elsewhere
                    || depth < MAX_INNER && self.leads_inside(call, depth.saturating_add(1))
            }),
            Some(_) => true,
            // its IL is not in the dump
            None => class_name(self.rt, method).is_some_and(|class| class == self.class),
        };
        self.inner.insert(method, leads);
        leads
    }

    /// The method that a call names, when it is the framework's or not, and its code may stand in its caller's.
    fn inlinable(&self, call: &Called, framework: bool) -> Option<Place> {
        let (module, rid) = call.target.filter(|_| !call.is_open && !call.is_delegate)?;
        let known = self.rt.module(module);
        let method = known.metadata.as_ref()?.method(rid)?;
        let fits = known.ships_with_dotnet == framework && !method.is_never_inlined();
        (fits && (module, rid) != self.below).then_some((module, rid))
    }
}

/// The name of a method without the interface that it implements.
fn last_part(name: &str) -> &str {
    match name.rsplit_once('.') {
        Some((before, last)) if !before.is_empty() => last,
        _ => name,
    }
}

/// The type that has a method, without its number of generic parameters: `Task` and `Task<T>` are written as one.
fn class_name(rt: &Runtime<'_>, (module, rid): Place) -> Option<String> {
    let known = rt.module(module);
    let metadata = known.metadata.as_ref()?;
    let name = metadata.full_name(metadata.method_owner(rid)?)?;
    Some(
        name.split_once('`')
            .map_or(name.clone(), |(name, _)| name.to_owned()),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ways_have_in_common_what_they_begin_with() {
        let way = |rows: &[u32]| rows.iter().map(|rid| (Addr(1), *rid)).collect::<Vec<_>>();
        assert_eq!(common(&[]), []);
        assert_eq!(common(&[way(&[1, 2])]), way(&[1, 2]));
        assert_eq!(common(&[way(&[1, 2]), way(&[1, 3])]), way(&[1]));
        assert_eq!(common(&[way(&[1, 2]), way(&[1])]), way(&[1]));
        assert_eq!(common(&[way(&[1]), way(&[2, 1])]), []);
    }

    #[test]
    fn explicit_implementations_are_called_by_their_last_name() {
        assert_eq!(last_part("Shop.IOrder.Place"), "Place");
        assert_eq!(last_part("Place"), "Place");
        assert_eq!(last_part(".ctor"), ".ctor");
    }
}
