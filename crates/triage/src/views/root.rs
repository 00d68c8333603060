//! What keeps an object alive: the shortest ways from roots, as C# would write them.

use crate::chains::Wanted;
use crate::completers::{methods_by_object, source_name};
use crate::paths::{Analysis, steps_of};
use crate::threads::ThreadFacts;
use asynctriage_async_graph::NodeId;
use asynctriage_clr::{
    Gap, GapKind, GcRoot, GcRootKind as Kind, HandleKind, Reference, StaticReference,
};
use asynctriage_dump::Addr;
use asynctriage_report::{Address, Confidence, GcRootKind, RootHop, RootPath, RootsReport};
use rustc_hash::{FxHashMap, FxHashSet};
use std::cmp::Reverse;

/// Objects that all passes over the heap look at together.
const MAX_LOOKS: u64 = 1 << 30;
/// Passes at least and at most: a path of so many references is found in a heap of any size.
const PASSES: std::ops::RangeInclusive<u64> = 8..=100_000;
/// References that one pass keeps.
const MAX_REFERENCES: usize = 1 << 20;
/// Objects on the ways to one object.
const MAX_VISITED: usize = 1 << 22;
/// References of a long way that its text names at its begin and at its end.
const HEAD: usize = 20;
const TAIL: usize = 10;
/// Hops of a path that are told: half from its begin, half from its end.
const MAX_HOPS: usize = 64;

/// What keeps the object at an address alive: at most `limit` ways from roots, as many from variables of suspended methods,
/// and as many from words on stacks, which may be leftovers. `None` when no object starts there.
#[must_use]
pub fn root(analysis: &Analysis<'_, '_>, addr: Addr, limit: usize) -> Option<RootsReport> {
    let rt = analysis.rt;
    if !analysis.graph.heap.is_object(addr) {
        return None;
    }
    let ty = rt.type_of(addr)?;
    let mut search = Search::new(analysis, addr, limit);
    search.climb();
    let lacking = |place: &&'static str| Gap {
        kind: GapKind::Roots,
        place: (*place).to_owned(),
        why: "the dump does not hold all of them".into(),
        remedy: "take a full dump".into(),
    };
    let missing: Vec<Gap> = analysis.roots().missing.iter().map(lacking).collect();
    let known = rt.gaps().iter().chain(&analysis.graph.heap.gaps);
    let gaps = super::gaps(rt, known.chain(&missing));
    let is_complete = search.is_complete && analysis.roots().missing.is_empty();
    search.paths.sort_by_key(|p| {
        let is_local = p.kind == GcRootKind::Local;
        (Reverse(p.confidence), is_local, p.hops.len())
    });
    Some(RootsReport {
        address: Address(addr.0),
        type_name: rt.name(&ty).to_string(),
        paths_left_out: search.left_out,
        paths: search.paths,
        is_complete,
        gaps,
        ..RootsReport::default()
    })
}

struct Search<'a, 'r, 'd> {
    a: &'a Analysis<'r, 'd>,
    target: Addr,
    limit: usize,
    roots: FxHashMap<Addr, Vec<GcRoot>>,
    /// By slot.
    statics: FxHashMap<Addr, StaticReference>,
    /// Suspended methods by the objects with their variables.
    methods: FxHashMap<Addr, NodeId>,
    /// The group of chains that an object is part of.
    chains: FxHashMap<Address, String>,
    /// By object: the reference that leads from it towards the target.
    towards: FxHashMap<Addr, Reference>,
    paths: Vec<RootPath>,
    /// Paths from roots, from variables of suspended methods, and from words on stacks.
    found: [usize; 3],
    /// The threads whose stacks lead to the target.
    threads: FxHashSet<usize>,
    left_out: u64,
    is_complete: bool,
}

impl<'a, 'r, 'd> Search<'a, 'r, 'd> {
    fn new(a: &'a Analysis<'r, 'd>, target: Addr, limit: usize) -> Self {
        let mut roots: FxHashMap<Addr, Vec<GcRoot>> = FxHashMap::default();
        for root in a.rt.gc_roots(&a.graph.heap) {
            let is_word = matches!(root.kind, Kind::Stack(_) | Kind::Register(_));
            if !is_word || !a.is_leftover(root.word) {
                roots.entry(root.object).or_default().push(root);
            }
        }
        let mut statics = FxHashMap::default();
        for module in a.rt.modules_seen() {
            let fields = a.rt.static_references(&module);
            statics.extend(fields.into_iter().map(|f| (f.slot, f)));
        }
        let groups = a.groups(Wanted {
            idle_too: true,
            members: usize::MAX,
            locals: false,
        });
        let mut chains = FxHashMap::default();
        for group in &groups.groups {
            for object in group.members.iter().flat_map(|m| &m.boxes) {
                chains.entry(*object).or_insert_with(|| group.id.clone());
            }
        }
        Self {
            methods: methods_by_object(a),
            a,
            target,
            limit,
            roots,
            statics,
            chains,
            towards: FxHashMap::default(),
            paths: Vec::new(),
            found: [0; 3],
            threads: FxHashSet::default(),
            left_out: 0,
            is_complete: false,
        }
    }

    /// Follows references against their direction, level by level.
    fn climb(&mut self) {
        let heap = &self.a.graph.heap;
        let passes = MAX_LOOKS.checked_div(heap.objects()).unwrap_or(0);
        let passes = passes.clamp(*PASSES.start(), *PASSES.end());
        let mut level = vec![self.target];
        for _ in 0..passes {
            for object in &level {
                self.at_root(*object);
            }
            if self.found[0] >= self.limit || level.is_empty() {
                self.is_complete = level.is_empty();
                return;
            }
            let found = self
                .a
                .rt
                .referrers(heap, level.iter().copied(), MAX_REFERENCES);
            let mut is_whole = !found.is_cut;
            let mut next = Vec::new();
            let dependent = self.dependent(&level);
            for reference in found.references.into_iter().chain(dependent) {
                if let Some(field) = self.statics.get(&reference.slot).cloned() {
                    self.add_static(&field, &reference);
                    continue;
                }
                let holder = reference.holder;
                let is_known = holder == self.target || self.towards.contains_key(&holder);
                if is_known {
                    continue;
                }
                if self.towards.len() >= MAX_VISITED {
                    is_whole = false;
                    break;
                }
                self.towards.insert(holder, reference);
                self.add_local(holder);
                next.push(holder);
            }
            if !is_whole {
                return;
            }
            level = next;
        }
    }

    /// The keys of dependent handles whose values are objects of a level.
    fn dependent(&self, level: &[Addr]) -> Vec<Reference> {
        let of = |object: &Addr| {
            let roots = self.roots.get(object).into_iter().flatten();
            roots.filter_map(|root| match root.kind {
                Kind::Dependent(key) => Some(Reference {
                    target: root.object,
                    holder: key,
                    slot: root.slot?,
                }),
                _ => None,
            })
        };
        level.iter().flat_map(of).collect()
    }

    /// The references from an object down to the target.
    fn way(&self, from: Addr) -> Vec<Reference> {
        let mut out: Vec<Reference> = Vec::new();
        let mut at = from;
        while let Some(reference) = self.towards.get(&at).filter(|_| at != self.target) {
            out.push(*reference);
            at = reference.target;
        }
        out
    }

    fn add(&mut self, path: RootPath) {
        let [roots, locals, possible] = &mut self.found;
        let found = match (path.kind, path.confidence) {
            (GcRootKind::Local, _) => locals,
            (_, Confidence::Certain) => roots,
            _ => possible,
        };
        if *found < self.limit {
            *found = found.saturating_add(1);
            self.paths.push(path);
        } else {
            self.left_out = self.left_out.saturating_add(1);
        }
    }

    fn add_static(&mut self, field: &StaticReference, reference: &Reference) {
        let way = self.way(reference.target);
        let name = self.a.static_text(field.mt, &field.name);
        let (hops, hops_left_out) = self.hops(reference.target, &way);
        self.add(RootPath {
            kind: GcRootKind::Static,
            root: format!("static {name}"),
            slot: Some(Address(field.slot.0)),
            path: format!("static {name}{}", self.way_text(&way)),
            hops,
            hops_left_out,
            confidence: Confidence::Certain,
            ..RootPath::default()
        });
    }

    /// The roots that name an object; a thread's stack counts once, by its shortest way.
    fn at_root(&mut self, object: Addr) {
        for root in self.roots.get(&object).cloned().unwrap_or_default() {
            let thread = match root.kind {
                Kind::Stack(t) | Kind::Register(t) if !self.threads.insert(t) => continue,
                Kind::Stack(t) | Kind::Register(t) | Kind::ThreadStatics(t) => Some(t),
                Kind::Dependent(_) => continue,
                _ => None,
            };
            let way = self.way(object);
            let (kind, text) = self.root_text(&root);
            let class = self.class(object);
            let (hops, hops_left_out) = self.hops(object, &way);
            let thread = thread.and_then(|t| self.a.threads.all.get(t));
            let is_certain = !matches!(root.kind, Kind::Stack(_) | Kind::Register(_));
            self.add(RootPath {
                kind,
                slot: root.slot.map(|s| Address(s.0)),
                thread: thread.map(|t| u64::from(t.os_id)),
                path: format!("{text} → {class}{}", self.way_text(&way)),
                root: text,
                hops,
                hops_left_out,
                confidence: if is_certain {
                    Confidence::Certain
                } else {
                    Confidence::Possible
                },
                ..RootPath::default()
            });
        }
    }

    /// A suspended method one of whose variables leads to the target.
    fn add_local(&mut self, holder: Addr) {
        let Some(node) = self.methods.get(&holder).copied() else {
            return;
        };
        let a = self.a;
        let way = self.way(holder);
        let mut steps = steps_of(&a.graph, node);
        let step = steps.find(|s| s.frame.is_none_or(|f| f.continuation == holder));
        let name = step.map_or_else(|| a.frame_name(node), |s| a.step_name(s));
        let (hops, hops_left_out) = self.hops(holder, &way);
        let variable = way.first().and_then(|r| self.variable(node, r));
        let rest = self.way_text(way.get(1..).unwrap_or_default());
        let root = match variable {
            Some(local) => format!("local {local} of {name}"),
            None => format!("what {name} awaits"),
        };
        self.add(RootPath {
            kind: GcRootKind::Local,
            path: format!("{root}{rest}"),
            root,
            slot: way.first().map(|r| Address(r.slot.0)),
            chain: self.chains.get(&Address(holder.0)).cloned(),
            hops,
            hops_left_out,
            confidence: Confidence::Certain,
            ..RootPath::default()
        });
    }

    /// What an object at the begin of a way is called: a suspended method by its name.
    fn class(&self, object: Addr) -> String {
        let a = self.a;
        if let Some(node) = self.methods.get(&object) {
            return a.frame_name(*node).to_string();
        }
        let ty = a.rt.type_of(object);
        ty.map_or_else(|| "?".into(), |ty| a.rt.name(&ty).to_string())
    }

    /// What the variable of a suspended method is called in the source.
    fn variable(&self, node: NodeId, reference: &Reference) -> Option<String> {
        let machine = self.a.graph.machines.get(&node)?;
        let offset = reference.slot.since(machine.place.base)?;
        let fields = machine.place.fields(self.a.rt);
        let field = fields
            .filter(|f| f.offset <= offset)
            .max_by_key(|f| f.offset)?;
        source_name(&field.name)
    }

    /// What a root is, in words.
    fn root_text(&self, root: &GcRoot) -> (GcRootKind, String) {
        let title = |t: usize| {
            let thread = self.a.threads.all.get(t);
            let facts = thread.and_then(|thread| {
                let mut all = self.a.hang().threads.iter();
                all.find(|f| f.thread.addr == thread.addr)
            });
            match (facts, thread) {
                (Some(f), _) => format!("thread {}{}", f.title(), frame_over(f, root.slot)),
                (None, Some(thread)) => format!("thread {}", thread.os_id),
                (None, None) => "a thread".to_owned(),
            }
        };
        match root.kind {
            Kind::Stack(t) => (GcRootKind::Stack, format!("stack of {}", title(t))),
            Kind::Register(t) => (GcRootKind::Register, format!("register of {}", title(t))),
            Kind::ThreadStatics(t) => (
                GcRootKind::ThreadStatic,
                format!("thread statics of {}", title(t)),
            ),
            Kind::Handle(kind) => (GcRootKind::Handle, handle_text(kind).into()),
            Kind::FinalizerQueue => (
                GcRootKind::FinalizerQueue,
                "queue of the finalizer thread".into(),
            ),
            _ => (GcRootKind::Handle, "a handle".into()),
        }
    }

    /// The way behind its first object; of a long one both ends.
    fn way_text(&self, way: &[Reference]) -> String {
        let (Some(head), Some(tail)) = (way.get(..HEAD), way.get(way.len().saturating_sub(TAIL)..))
        else {
            return self.part_text(way);
        };
        if way.len() <= HEAD + TAIL {
            return self.part_text(way);
        }
        let hidden = way.len().saturating_sub(HEAD + TAIL);
        let (head, tail) = (self.part_text(head), self.part_text(tail));
        format!("{head} …{hidden} more… {tail}")
    }

    /// A part of a way. The value of a dependent handle hangs on its key by nothing in the source, and
    /// what a suspended method holds by a variable.
    fn part_text(&self, way: &[Reference]) -> String {
        let is_own = |r: &Reference| !self.is_dependent(r) && !self.methods.contains_key(&r.holder);
        let mut out = String::new();
        for part in way.chunk_by(|a, b| is_own(a) && is_own(b)) {
            match part {
                [only] if self.is_dependent(only) => out.push_str(" ⇒ (ConditionalWeakTable)"),
                [only] if !is_own(only) => out.push_str(&self.held_by_method(only)),
                part => out.push_str(&self.a.way_text(part, true)),
            }
        }
        out
    }

    /// `.job`, or ` → Loader.Run` for a method that is awaited.
    fn held_by_method(&self, reference: &Reference) -> String {
        let node = self.methods.get(&reference.holder);
        match node.and_then(|n| self.variable(*n, reference)) {
            Some(variable) => format!(".{variable}"),
            None => format!(" → {}", self.class(reference.target)),
        }
    }

    /// Whether a reference is none of the holder's own: it stands in a handle.
    fn is_dependent(&self, reference: &Reference) -> bool {
        let size = self.a.rt.type_of(reference.holder);
        let size = size.map_or(0, |ty| self.a.rt.object_size(reference.holder, &ty));
        let inside = reference.slot.since(reference.holder);
        inside.is_none_or(|offset| offset >= size)
    }

    /// The objects of a way; of a long one those at its ends, and how many are left out.
    fn hops(&self, from: Addr, way: &[Reference]) -> (Vec<RootHop>, u64) {
        let objects = std::iter::once(from).chain(way.iter().map(|r| r.target));
        let by = way.iter().map(Some).chain([None]);
        let all: Vec<(Addr, Option<&Reference>)> = objects.zip(by).collect();
        let half = MAX_HOPS / 2;
        let cut = all.len().saturating_sub(half);
        let kept = all.iter().enumerate();
        let kept = kept.filter(|(i, _)| all.len() <= MAX_HOPS || *i < half || *i >= cut);
        let left_out = all.len().saturating_sub(MAX_HOPS) as u64;
        let hops = kept.map(|(_, (object, reference))| RootHop {
            address: Address(object.0),
            type_name: self
                .a
                .rt
                .type_of(*object)
                .map_or_else(|| "?".into(), |ty| self.a.rt.name(&ty).to_string()),
            by: reference.map_or_else(String::new, |r| self.by(r)),
        });
        (hops.collect(), left_out)
    }

    /// The field or element that a reference stands in, by its own name.
    fn by(&self, reference: &Reference) -> String {
        if self.is_dependent(reference) {
            return "(ConditionalWeakTable)".into();
        }
        let ty = self.a.rt.type_of(reference.holder);
        let field = ty.as_ref().and_then(|ty| self.a.field_at(ty, reference));
        let variable = self.methods.get(&reference.holder);
        let variable = variable.and_then(|n| self.variable(*n, reference));
        match (ty.is_some_and(|t| t.is_array()), field) {
            _ if variable.is_some() => format!(".{}", variable.unwrap_or_default()),
            (false, Some(field)) => format!(".{}", field.name),
            _ => self.a.way_text(std::slice::from_ref(reference), true),
        }
    }
}

/// ` in Method`: the method on whose part of the stack a slot lies.
fn frame_over(thread: &ThreadFacts, slot: Option<Addr>) -> String {
    let Some(slot) = slot else {
        return String::new();
    };
    let inner = thread.frames.iter().take_while(|f| f.frame.slot <= slot);
    let index = inner.count().saturating_sub(1);
    let frame = thread.frames.get(index);
    frame.map_or_else(String::new, |f| format!(" in {}", f.name))
}

fn handle_text(kind: HandleKind) -> &'static str {
    match kind {
        HandleKind::Strong => "strong handle",
        HandleKind::Pinned => "pinned handle",
        HandleKind::RefCounted => "reference-counted handle",
        HandleKind::AsyncPinned => "async-pinned handle",
        _ => "a handle",
    }
}
