//! Who is to complete what chains wait for: methods and threads that hold it, and the tables that it stands in.
//!
//! Whoever completes a source needs a reference to it. So the references of the heap are followed backwards from it, up
//! to suspended methods, stacks, queued work and static fields. The awaiting methods' own references do not count. That a
//! holder will complete what it holds is believed when its code says so behind the place where it stands.

mod calls;
mod notation;
mod web;

pub(crate) use notation::source_name;
pub(crate) use web::methods_by_object;

use crate::chains::Groups;
use crate::paths::{Analysis, Step, steps_of};
use crate::threads::{Hang, StackMethod, ThreadFacts};
use asynctriage_async_graph::NodeId;
use asynctriage_clr::Reference;
use asynctriage_dump::Addr;
use asynctriage_metadata::il::Receiver;
use asynctriage_report::{Address, Completer, CompleterKind, Confidence, LeafKind};
use calls::{By, Calls, Completion};
use rustc_hash::{FxHashMap, FxHashSet};
use std::cmp::Reverse;
use web::{End, Way, Web};

/// Objects whose completers are looked for.
const MAX_TARGETS: usize = 20_000;
/// Completers that a group names.
const MAX_NAMED: usize = 5;
/// What sources of value tasks are completed through.
const SOURCE_CORE: &str = "System.Threading.Tasks.Sources.ManualResetValueTaskSourceCore`1";
/// Nodes above an awaited object that are looked at.
const MAX_WAITERS: usize = 1 << 16;

/// What a chain waits for in the end, and how that is completed.
#[derive(Clone, Copy, Debug)]
struct Target {
    object: Addr,
    leaf: NodeId,
    by: By,
}

/// Finds completers.
struct Search<'a, 'r, 'd> {
    analysis: &'a Analysis<'r, 'd>,
    hang: &'a Hang,
    /// The first group of chains that end at a node.
    groups: FxHashMap<NodeId, String>,
    calls: Calls,
    web: Web,
}

impl Analysis<'_, '_> {
    /// Adds to what each group waits for who would complete it.
    pub(crate) fn add_completers(&self, groups: &mut Groups, hang: &Hang) {
        // while objects are moved, references lead astray
        if self.graph.heap.shape.collection.moving {
            return;
        }
        let of_groups: Vec<Vec<(Target, u64)>> = groups
            .groups
            .iter()
            .zip(&groups.tallies)
            .map(|(group, tally)| {
                let leaves = tally.leaves.iter();
                let targets =
                    leaves.filter_map(|(id, n)| Some((self.target(group.leaf.kind, *id)?, *n)));
                let mut targets: Vec<(Target, u64)> = targets.collect();
                targets.sort_unstable_by_key(|(t, _)| t.object);
                targets
            })
            .collect();
        let mut objects: Vec<Addr> = of_groups.iter().flatten().map(|(t, _)| t.object).collect();
        objects.sort_unstable();
        objects.dedup();
        objects.truncate(MAX_TARGETS);
        if objects.is_empty() {
            return;
        }
        let search = Search {
            analysis: self,
            hang,
            groups: groups_by_leaf(groups),
            calls: Calls::default(),
            web: Web::find(self, &objects),
        };
        let mut known: FxHashMap<Addr, Vec<Completer>> = FxHashMap::default();
        for (group, targets) in groups.groups.iter_mut().zip(of_groups) {
            let mut found = Named::default();
            for (target, chains) in targets {
                let of = known
                    .entry(target.object)
                    .or_insert_with(|| search.completers(target));
                found.add(of, chains);
            }
            group.leaf.completers = found.ranked();
        }
    }

    /// The object that somebody has to complete for a wait to end.
    fn target(&self, kind: LeafKind, leaf: NodeId) -> Option<Target> {
        use LeafKind as K;
        let object = self.graph.object(leaf)?.addr;
        let (object, by) = match kind {
            K::Semaphore | K::AsyncLock => (*self.graph.semaphores.get(&object)?, By::Release),
            K::ValueTaskSource => (object, By::Result),
            K::TaskCompletionSource | K::Database | K::Cache | K::MessageBroker | K::Grpc => {
                (*self.graph.completion_sources.get(&object)?, By::Result)
            }
            _ => return None,
        };
        Some(Target { object, leaf, by })
    }
}

fn groups_by_leaf(groups: &Groups) -> FxHashMap<NodeId, String> {
    let mut out = FxHashMap::default();
    for (group, tally) in groups.groups.iter().zip(&groups.tallies) {
        for leaf in tally.leaves.keys() {
            out.entry(*leaf).or_insert_with(|| group.id.clone());
        }
    }
    out
}

/// Completers of a group's chains, equal ones counted together.
#[derive(Default)]
struct Named {
    by_text: FxHashMap<(CompleterKind, String), Completer>,
}

impl Named {
    fn add(&mut self, completers: &[Completer], chains: u64) {
        for completer in completers {
            let key = (completer.kind, completer.text.clone());
            let known = self.by_text.entry(key).or_insert_with(|| Completer {
                count: 0,
                ..completer.clone()
            });
            known.count = known.count.saturating_add(chains);
            known.confidence = known.confidence.max(completer.confidence);
        }
    }

    /// The surest first, then those of most chains. What only may complete it is named where nothing surer is known.
    fn ranked(self) -> Vec<Completer> {
        let mut all: Vec<Completer> = self.by_text.into_values().collect();
        all.sort_by(|a, b| {
            let key = |c: &Completer| (Reverse(c.confidence), Reverse(c.count), c.kind);
            key(a).cmp(&key(b)).then_with(|| a.text.cmp(&b.text))
        });
        all.truncate(MAX_NAMED);
        all
    }
}

impl Search<'_, '_, '_> {
    fn completers(&self, target: Target) -> Vec<Completer> {
        let waiting = self.waiting_for(target.leaf);
        let ways = self.web.ways_to(target.object, &waiting);
        let methods: FxHashSet<String> = waiting
            .iter()
            .flat_map(|id| steps_of(&self.analysis.graph, *id))
            .map(|s| self.analysis.step_name(s).to_string())
            .collect();
        let mut out: Vec<Completer> = ways
            .iter()
            .filter_map(|way| match &way.end {
                End::Method(node, object) => self.method(target, way, *node, *object, &methods),
                End::Thread(thread, slot) => self.thread(target, way, *thread, *slot),
                End::Static(field) => Some(self.table(way, field.mt, &field.name)),
                End::Queued => Some(self.queued(way)),
                End::Timer => Some(self.callback(way, CompleterKind::Timer, "a timer")),
                End::Registration => {
                    let text = "the callback of a cancellation token";
                    Some(self.callback(way, CompleterKind::Registration, text))
                }
            })
            .collect();
        let surest = out.iter().map(|c| c.confidence).max();
        // a static table is told beside whoever takes from it; other mere holders are not
        // a semaphore is for many to use: only who releases it is told
        let is_telling = |c: &Completer| {
            target.by == By::Result
                && (Some(c.confidence) == surest || c.kind == CompleterKind::Static)
        };
        out.retain(|c| c.confidence > Confidence::Possible || is_telling(c));
        out
    }

    /// Everything that waits for a node, directly or through others.
    fn waiting_for(&self, leaf: NodeId) -> FxHashSet<NodeId> {
        let mut seen = FxHashSet::default();
        let mut todo = vec![leaf];
        while let Some(id) = todo.pop() {
            if seen.len() >= MAX_WAITERS {
                break;
            }
            todo.extend(self.analysis.graph.waiters(id).filter(|w| seen.insert(*w)));
        }
        seen
    }

    /// The group of the chain that a method is part of, by what it waits for in the end.
    fn chain_of(&self, node: NodeId) -> Option<String> {
        let mut seen = FxHashSet::default();
        let mut todo = vec![node];
        while let Some(id) = todo.pop().filter(|_| seen.len() < MAX_WAITERS) {
            if let Some(group) = self.groups.get(&id) {
                return Some(group.clone());
            }
            let below = self.analysis.graph.awaited(id).map(|(from, _)| from);
            todo.extend(below.filter(|b| seen.insert(*b)));
        }
        None
    }

    /// A suspended method that holds the object.
    fn method(
        &self,
        target: Target,
        way: &Way,
        node: NodeId,
        object: Addr,
        waiting: &FxHashSet<String>,
    ) -> Option<Completer> {
        let a = self.analysis;
        let step =
            steps_of(&a.graph, node).find(|s| s.frame.is_none_or(|f| f.continuation == object))?;
        let name = a.step_name(step);
        // who waits for the same semaphore has not entered it, whatever its code does once it has
        if target.by == By::Release && waiting.contains(&*name) {
            return None;
        }
        let mut behind = self.calls.behind_await(a, step, target.by);
        behind.retain(|call| self.may_be_on(call, target, way));
        let first = way.references.first();
        let variable = first.and_then(|r| self.variable(step, object, r));
        let is_proved = behind
            .iter()
            .any(|c| way.references.len() == 1 && is_on(c, variable.as_deref()));
        let confidence = match (is_proved, behind.is_empty()) {
            (true, _) => Confidence::Certain,
            (false, false) => Confidence::Likely,
            // methods like those that wait hold it to wait for it
            (false, true) if waiting.contains(&*name) => return None,
            (false, true) => Confidence::Possible,
        };
        let held = self.held_as(way, variable.as_deref());
        let at = a
            .step_await(step)
            .map_or_else(String::new, |n| format!(" at await {n}"));
        let does = behind.first().map_or_else(
            || format!("holds it{held}"),
            |c| format!("calls {} behind its await and holds it{held}", c.method),
        );
        Some(Completer {
            kind: CompleterKind::Chain,
            text: format!("{name}{at}, which {does}"),
            chain: self.chain_of(node),
            object: Some(Address(object.0)),
            path: Some(a.way_text(&way.references, true)),
            confidence,
            evidence: self.evidence(way),
            ..Completer::default()
        })
    }

    /// Whether a call can be one on the object: its class is one of the object's, and a field that it is made on is one
    /// of the way.
    fn may_be_on(&self, call: &Completion, target: Target, way: &Way) -> bool {
        let on_way = || match &call.receiver {
            Receiver::Field(field) => self.is_field_of(way, field),
            Receiver::New => false,
            Receiver::Unknown | Receiver::Argument(_) | Receiver::Result(_) => true,
        };
        self.is_of_class(call, target) && on_way()
    }

    /// The same for a method that runs: which of its variables has the object on the stack is not known.
    fn may_be_in_frame(&self, call: &Completion, target: Target, way: &Way) -> bool {
        let is_variable = way.references.is_empty()
            && matches!(call.receiver, Receiver::Field(_))
            && self.is_of_class(call, target);
        is_variable || self.may_be_on(call, target, way)
    }

    fn is_of_class(&self, call: &Completion, target: Target) -> bool {
        let rt = self.analysis.rt;
        let ty = rt.type_of(target.object);
        call.class.starts_with(SOURCE_CORE) || ty.is_some_and(|t| rt.is_a(t.mt, &call.class))
    }

    fn is_field_of(&self, way: &Way, field: &str) -> bool {
        let a = self.analysis;
        if let End::Static(of) = &way.end
            && *of.name == *field
        {
            return true;
        }
        way.references.iter().any(|reference| {
            let ty = a.rt.type_of(reference.holder);
            let at = ty.and_then(|ty| a.field_at(&ty, reference));
            let variable = || self.variable_at(reference);
            at.is_some_and(|f| *f.name == *field) || variable().is_some_and(|v| v == field)
        })
    }

    /// The variable of a suspended method that a reference stands in.
    fn variable_at(&self, reference: &Reference) -> Option<String> {
        let node = self.web.method_of(reference.holder)?;
        let step = steps_of(&self.analysis.graph, node).next()?;
        self.variable(step, reference.holder, reference)
    }

    /// The variable of a method that a reference stands in.
    fn variable(&self, step: Step<'_>, object: Addr, reference: &Reference) -> Option<String> {
        let a = self.analysis;
        if step.frame.is_some() {
            return None;
        }
        let machine = a.graph.machines.get(&step.node)?;
        let offset = reference.slot.since(machine.place.base)?;
        let fields = machine.place.fields(a.rt);
        let field = fields
            .filter(|f| f.offset <= offset)
            .max_by_key(|f| f.offset)?;
        (reference.holder == object).then(|| field.name.to_string())
    }

    fn held_as(&self, way: &Way, variable: Option<&str>) -> String {
        let first = variable.and_then(notation::source_name);
        let rest = way.references.get(1..).unwrap_or_default();
        let rest = self.analysis.way_text(rest, false);
        let text = match first {
            Some(name) => format!("{name}{rest}"),
            None => rest.trim_start_matches('.').to_owned(),
        };
        if text.is_empty() {
            String::new()
        } else {
            format!(" as `{text}`")
        }
    }

    /// A thread that has the object, or what leads to it, on its stack.
    fn thread(
        &self,
        target: Target,
        way: &Way,
        index: usize,
        slot: Option<Addr>,
    ) -> Option<Completer> {
        let a = self.analysis;
        let thread = a.threads.all.get(index)?;
        let facts = self
            .hang
            .threads
            .iter()
            .find(|t| t.thread.addr == thread.addr)?;
        // a method that runs may have its variables in the part of the stack of who called it
        let completes = facts.frames.iter().find_map(|f| {
            let method = &f.frame.method;
            let calls = self.calls.anywhere(a, method.module, method.rid, target.by);
            let mut calls = calls.into_iter();
            Some((
                &f.name,
                calls.find(|c| self.may_be_in_frame(c, target, way))?,
            ))
        });
        let own = || {
            let mut own = self.frames_from(facts, slot);
            own.find(|f| !f.owner.is_framework())
        };
        let (name, does) = match completes {
            Some((name, call)) => (name, Some(call.method)),
            None => (&own()?.name, None),
        };
        let confidence = if does.is_some() {
            Confidence::Likely
        } else {
            Confidence::Possible
        };
        let inside = self.innermost(facts);
        let calls = does.map_or_else(String::new, |m| format!(", whose code calls {m}"));
        Some(Completer {
            kind: CompleterKind::Thread,
            text: format!("thread {} in {name}{calls}{inside}", facts.title()),
            thread: Some(u64::from(thread.os_id)),
            object: Some(Address(way.from.0)),
            path: Some(a.way_text(&way.references, true)).filter(|p| !p.is_empty()),
            confidence,
            evidence: match slot {
                Some(slot) => format!(
                    "{} stands on its stack at {slot}; {}",
                    way.from,
                    self.evidence(way)
                ),
                None => format!(
                    "{} stands in a register of it; {}",
                    way.from,
                    self.evidence(way)
                ),
            },
            ..Completer::default()
        })
    }

    /// The frames of a thread from the one on whose part of the stack a slot lies.
    fn frames_from<'t>(
        &self,
        facts: &'t ThreadFacts,
        slot: Option<Addr>,
    ) -> impl Iterator<Item = &'t StackMethod> + Clone {
        let below = slot.map_or(0, |s| {
            let inner = facts.frames.iter().take_while(|f| f.frame.slot <= s);
            inner.count().saturating_sub(1)
        });
        facts.frames.iter().skip(below)
    }

    /// What the thread does now: the system's or library's function that it is in.
    fn innermost(&self, facts: &ThreadFacts) -> String {
        let native = self.analysis.rt.native_frames(&facts.thread);
        let below = native.iter().take_while(|(managed, _)| *managed == 0);
        let told = below.map(|(_, f)| f).find(|f| {
            let image = f.image.as_deref().unwrap_or_default();
            !PLUMBING.iter().any(|p| image.starts_with(p))
        });
        told.map_or_else(String::new, |f| format!(" → {f}"))
    }

    /// A static field that leads to the object.
    fn table(&self, way: &Way, mt: Addr, field: &str) -> Completer {
        let a = self.analysis;
        let field = a.static_text(mt, field);
        Completer {
            kind: CompleterKind::Static,
            text: format!(
                "whoever uses static {field}{}",
                a.way_text(&way.references, false)
            ),
            object: Some(Address(way.from.0)),
            path: Some(format!("{field}{}", a.way_text(&way.references, true))),
            confidence: Confidence::Possible,
            evidence: self.evidence(way),
            ..Completer::default()
        }
    }

    fn queued(&self, way: &Way) -> Completer {
        let a = self.analysis;
        let item = a.rt.object_type_name(way.from).unwrap_or_default();
        Completer {
            kind: CompleterKind::WorkItem,
            text: format!("a work item that has not run yet ({item})"),
            object: Some(Address(way.from.0)),
            confidence: Confidence::Likely,
            evidence: self.evidence(way),
            ..Completer::default()
        }
    }

    /// What the runtime calls when a time has come or a token is cancelled.
    fn callback(&self, way: &Way, kind: CompleterKind, text: &str) -> Completer {
        Completer {
            kind,
            text: text.to_owned(),
            object: Some(Address(way.from.0)),
            path: Some(self.analysis.way_text(&way.references, true)).filter(|p| !p.is_empty()),
            confidence: Confidence::Possible,
            evidence: self.evidence(way),
            ..Completer::default()
        }
    }

    /// The slots of a way, from its end on.
    fn evidence(&self, way: &Way) -> String {
        if way.references.is_empty() {
            return "it is the awaited object itself".to_owned();
        }
        let slots = way.references.iter();
        let slots: Vec<String> = slots
            .map(|r| format!("{} names {}", r.slot, r.target))
            .collect();
        slots.join(", ")
    }
}

/// Images through which every thread goes down to the system.
const PLUMBING: [&str; 7] = [
    "libc.so",
    "libc-",
    "libpthread",
    "ld-",
    "libcoreclr",
    "libSystem.Native",
    "libclrjit",
];

/// Whether a call is made on a variable.
fn is_on(completion: &Completion, variable: Option<&str>) -> bool {
    matches!((&completion.receiver, variable), (Receiver::Field(field), Some(v)) if field == v)
}
