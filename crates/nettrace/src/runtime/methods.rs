//! Which method an address belongs to.

use std::collections::{BTreeMap, BTreeSet};

use rustc_hash::FxHashMap;

use super::{MethodLoad, Phase, RuntimeEvent};
use crate::Event;

/// Where a range comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Origin {
    /// From an event at the time of the load: then, in ticks.
    pub loaded: Option<u64>,
    /// From an event at the time of the unload: then, in ticks.
    pub unloaded: Option<u64>,
    /// From rundown.
    pub rundown: bool,
    /// Where in the file the first event of the range stands.
    pub offset: u64,
}

/// A range of code of a method.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Method {
    /// First address.
    pub start: u64,
    /// Length in bytes; not 0.
    pub size: u32,
    /// Address of the runtime's description of the method.
    pub method: u64,
    /// Address of the runtime's description of its module.
    pub module: u64,
    /// Metadata token.
    pub token: u32,
    /// As in [`MethodLoad::flags`].
    pub flags: u32,
    /// As in [`MethodLoad::rejit`].
    pub rejit: u64,
    /// Namespace and type as the runtime writes them: `System.Text.Json.Utf8JsonReader`, `Program+Checkout`,
    /// ``System.Collections.Generic.List`1[System.__Canon]``.
    pub namespace: Box<str>,
    /// Name of the method; empty when no event of it was verbose.
    pub name: Box<str>,
    /// Signature in IL's words.
    pub signature: Box<str>,
    /// Where it comes from.
    pub origin: Origin,
}

impl Method {
    /// `Namespace.Type+Nested.Method`, as the runtime writes its parts. None without a name.
    pub fn full_name(&self) -> Option<String> {
        match (&*self.namespace, &*self.name) {
            (_, "") => None,
            ("", name) => Some(name.to_string()),
            (namespace, name) => Some(format!("{namespace}.{name}")),
        }
    }

    /// Whether the code was there at that time, in ticks, as far as the trace tells: rundown does not say since when.
    pub fn was_there(&self, ticks: u64) -> bool {
        let Origin {
            loaded,
            unloaded,
            rundown,
            ..
        } = self.origin;
        let too_early = !rundown && loaded.is_some_and(|loaded| ticks < loaded);
        !too_early && unloaded.is_none_or(|unloaded| ticks <= unloaded)
    }

    /// One past the last address.
    fn end(&self) -> u64 {
        self.start.saturating_add(self.size.into())
    }
}

/// Flag of code that was compiled in the process.
const JITTED: u32 = 8;

/// What tells ranges apart: live events and rundown name the same one twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Key {
    start: u64,
    size: u32,
    method: u64,
    rejit: u64,
}

/// Collects the method and module events of a trace.
#[derive(Clone, Debug, Default)]
pub struct Methods {
    ranges: Vec<Method>,
    by_key: FxHashMap<Key, usize>,
    modules: FxHashMap<u64, Box<str>>,
    events: u64,
    live: u64,
    rundown: u64,
}

impl Methods {
    /// Takes an event; `false` when it is of no method and no module.
    pub fn add(&mut self, event: &Event<'_>) -> bool {
        match RuntimeEvent::decode(event) {
            Some(RuntimeEvent::Method(phase, load)) => self.method(event, phase, &load),
            Some(RuntimeEvent::Module(phase, module)) => {
                if phase != Phase::Unload {
                    let path = module.path.to_string().into();
                    self.modules.insert(module.module, path);
                }
            }
            _ => return false,
        }
        true
    }

    /// Events of methods: loads, unloads and rundown.
    pub fn events(&self) -> u64 {
        self.events
    }

    /// Those of them that were written when something happened.
    pub fn live(&self) -> u64 {
        self.live
    }

    /// Those of them that are rundown.
    pub fn rundown(&self) -> u64 {
        self.rundown
    }

    /// Ranges that differ in start, size, method or ReJIT id.
    pub fn distinct_ranges(&self) -> usize {
        self.ranges.len()
    }

    /// Path of a module by its address; none where no event names it, empty for what was never a file.
    pub fn module(&self, module: u64) -> Option<&str> {
        self.modules.get(&module).map(|path| &**path)
    }

    /// File names of the modules, without their folders, each once, in order.
    pub fn module_names(&self) -> BTreeSet<&str> {
        let names = self
            .modules
            .values()
            .filter_map(|path| path.rsplit(['/', '\\']).next());
        names.filter(|name| !name.is_empty()).collect()
    }

    /// All ranges, in the order of their first events.
    pub fn ranges(&self) -> &[Method] {
        &self.ranges
    }

    /// Methods that were compiled before the session began: the rundown lists them, and no event says that they were
    /// compiled meanwhile. `None` when the session did not ask for such events, or has no rundown.
    pub fn compiled_before(&self) -> Option<usize> {
        let jitted = || self.ranges.iter().filter(|m| m.flags & JITTED != 0);
        let loads = jitted().any(|m| m.origin.loaded.is_some());
        let before = jitted().filter(|m| m.origin.rundown && m.origin.loaded.is_none());
        (loads && self.rundown > 0).then(|| before.count())
    }

    fn method(&mut self, event: &Event<'_>, phase: Phase, load: &MethodLoad<'_>) {
        self.events = self.events.saturating_add(1);
        let count = match phase {
            Phase::Rundown => &mut self.rundown,
            Phase::Load | Phase::Unload => &mut self.live,
        };
        *count = count.saturating_add(1);
        if load.size == 0 {
            return;
        }
        let key = Key {
            start: load.start,
            size: load.size,
            method: load.method,
            rejit: load.rejit,
        };
        let new = self.ranges.len();
        let index = *self.by_key.entry(key).or_insert(new);
        if index == new {
            self.ranges.push(method(event, load));
        }
        let Some(known) = self.ranges.get_mut(index) else {
            return;
        };
        if known.name.is_empty() && load.verbose {
            let first = known.origin;
            *known = method(event, load);
            known.origin = first;
        }
        let time = event.timestamp;
        let origin = &mut known.origin;
        match phase {
            Phase::Load => origin.loaded = origin.loaded.min(Some(time)).or(Some(time)),
            Phase::Unload => origin.unloaded = Some(time),
            Phase::Rundown => origin.rundown = true,
        }
    }

    /// Makes addresses searchable.
    pub fn into_ranges(self) -> MethodRanges {
        MethodRanges::new(self)
    }
}

fn method(event: &Event<'_>, load: &MethodLoad<'_>) -> Method {
    Method {
        start: load.start,
        size: load.size,
        method: load.method,
        module: load.module,
        token: load.token,
        flags: load.flags,
        rejit: load.rejit,
        namespace: load.namespace.to_string().into(),
        name: load.name.to_string().into(),
        signature: load.signature.to_string().into(),
        origin: Origin {
            loaded: None,
            unloaded: None,
            rundown: false,
            offset: event.offset,
        },
    }
}

/// Most candidates of one address that are kept. Code memory that is used again and again has a few.
const MAX_CANDIDATES: usize = 32;

/// From addresses to methods.
#[derive(Clone, Debug, Default)]
pub struct MethodRanges {
    methods: Methods,
    /// Where a set of candidates begins to hold, in order, and where it stands in `candidates`.
    pieces: Vec<(u64, std::ops::Range<usize>)>,
    /// Indices of ranges, piece after piece.
    candidates: Vec<usize>,
    /// Indices by address of the method's description.
    by_method: BTreeMap<u64, usize>,
}

impl MethodRanges {
    /// Cuts the address space wherever a range begins or ends, so that a search costs the same whatever overlaps.
    fn new(methods: Methods) -> Self {
        let mut edges = Vec::new();
        for (index, method) in methods.ranges.iter().enumerate() {
            edges.push((method.start, true, index));
            edges.push((method.end(), false, index));
        }
        edges.sort_unstable();
        let mut ranges = Self::default();
        let mut open = BTreeSet::new();
        let mut edges = edges.into_iter().peekable();
        while let Some((address, begins, index)) = edges.next() {
            match begins {
                true => open.insert(index),
                false => open.remove(&index),
            };
            // all edges at one address make one cut
            if edges.peek().is_some_and(|(next, ..)| *next == address) {
                continue;
            }
            let from = ranges.candidates.len();
            ranges.candidates.extend(open.iter().take(MAX_CANDIDATES));
            ranges.pieces.push((address, from..ranges.candidates.len()));
        }
        for (index, method) in methods.ranges.iter().enumerate() {
            ranges.by_method.entry(method.method).or_insert(index);
        }
        ranges.methods = methods;
        ranges
    }

    /// The methods whose code holds `address`: none, one, or as many as the trace leaves open. At most 32. Address 0
    /// is no method's.
    pub fn candidates(&self, address: u64) -> impl Iterator<Item = &Method> {
        let behind = self.pieces.partition_point(|(start, _)| *start <= address);
        let piece = behind
            .checked_sub(1)
            .and_then(|index| self.pieces.get(index));
        let found = piece.and_then(|(_, range)| self.candidates.get(range.clone()));
        let found = found.filter(|_| address != 0).unwrap_or_default();
        found
            .iter()
            .filter_map(|index| self.methods.ranges.get(*index))
    }

    /// The first range of the method with that description (MethodDesc).
    pub fn by_method(&self, method: u64) -> Option<&Method> {
        self.methods.ranges.get(*self.by_method.get(&method)?)
    }

    /// The events that the ranges were made from.
    pub fn methods(&self) -> &Methods {
        &self.methods
    }
}

#[cfg(test)]
mod tests;
