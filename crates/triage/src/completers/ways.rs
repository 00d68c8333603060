//! Who stands at the end of a way to an awaited object.

use super::calls::{By, Site};
use super::notation;
use super::web::{End, Way};
use super::{Candidate, Search, Target};
use crate::holders::{Who, standing};
use crate::paths::{Step, steps_of};
use crate::threads::{StackMethod, ThreadFacts, Wait};
use asynctriage_async_graph::NodeId;
use asynctriage_clr::Reference;
use asynctriage_dump::Addr;
use asynctriage_metadata::il::{CallSite, Form, Receiver};
use asynctriage_metadata::names::{LocalName, hoisted_local};
use asynctriage_report::{Address, Completer, CompleterKind, Confidence, duration};
use rustc_hash::FxHashSet;

/// What sources of value tasks are completed through.
const SOURCE_CORE: &str = "System.Threading.Tasks.Sources.ManualResetValueTaskSourceCore`1";

impl Search<'_, '_, '_> {
    /// Who stands at the end of a way.
    pub(super) fn at_end_of(
        &self,
        target: Target,
        way: &Way,
        waiting: &FxHashSet<String>,
    ) -> Option<Candidate> {
        let other = |completer| {
            Some(Candidate {
                who: None,
                completer,
            })
        };
        match &way.end {
            End::Method(node, object) => self.method(target, way, *node, *object, waiting),
            End::Thread(thread, slot) => self.thread(target, way, *thread, *slot),
            End::Static(_) if target.by == By::Resume && !self.is_kept(way) => None,
            End::Static(field) => other(self.table(target, way, field.mt, &field.name)),
            End::Queued => other(self.queued(way)),
            End::Timer => other(self.callback(way, CompleterKind::Timer, &self.timer(way)?)),
            End::Registration => {
                let text = "the callback of a cancellation token";
                other(self.callback(way, CompleterKind::Registration, text))
            }
        }
    }

    /// Whether a way ends with the delegate that resumes a method, and not with who merely keeps its task.
    fn is_kept(&self, way: &Way) -> bool {
        let rt = self.analysis.rt;
        let holder = way.references.last().and_then(|r| rt.type_of(r.holder));
        holder.is_some_and(|ty| rt.is_a(ty.mt, "System.Delegate"))
    }

    /// A suspended method that holds the object.
    fn method(
        &self,
        target: Target,
        way: &Way,
        node: NodeId,
        object: Addr,
        waiting: &FxHashSet<String>,
    ) -> Option<Candidate> {
        let a = self.analysis;
        let step =
            steps_of(&a.graph, node).find(|s| s.frame.is_none_or(|f| f.continuation == object))?;
        let name = a.step_name(step);
        let first = way.references.first();
        let variable = first.and_then(|r| self.variable(step, object, r));
        let proved = self.ahead.of(target, Who::Method(node), Some(object));
        let (does, confidence) = match proved {
            Some(proved) => (Some(proved.call.clone()), proved.confidence),
            None => match self.may_complete(target, way, step) {
                Some(call) => (Some(call), Confidence::Likely),
                // methods like those that wait hold it to wait for it
                None if waiting.contains(&*name) => return None,
                // what it only reaches through `this` is another method's to complete
                None if way.references.len() > 1 && is_this(variable.as_deref()) => return None,
                None => (None, Confidence::Possible),
            },
        };
        let held = self.held_as(way, variable.as_deref());
        let at = a
            .step_await(step)
            .map_or_else(String::new, |n| format!(" at await {n}"));
        let does = does.map_or_else(
            || format!("holds it{held}"),
            |call| format!("calls {call} behind its await and holds it{held}"),
        );
        Some(Candidate {
            who: Some(Who::Method(node)),
            completer: Completer {
                kind: CompleterKind::Chain,
                text: format!("{name}{at}, which {does}"),
                chain: self.chain_of(node),
                object: Some(Address(object.0)),
                path: Some(a.way_text(&way.references, true)),
                confidence,
                evidence: self.evidence(way),
                ..Completer::default()
            },
        })
    }

    /// The call of a suspended method behind its await that may be one on the object.
    fn may_complete(&self, target: Target, way: &Way, step: Step<'_>) -> Option<String> {
        let method = standing::suspended(self.analysis, step)?;
        // where the code tells the object, and it is another one of the class
        let is_another = |site: &Site| {
            let (a, place) = (self.analysis, site.place.as_ref());
            let rt = a.rt;
            let held = place.and_then(|p| {
                let of = &method.activation;
                of.object_at(a, p, site.from.as_ref(), &|_| true)
            });
            held.filter(|h| !h.is_guess && h.object != target.object)
                .is_some_and(|h| {
                    let class = |object| rt.type_of(object).map(|t| t.mt);
                    class(h.object).is_some() && class(h.object) == class(target.object)
                })
        };
        let sites = self.calls.behind(self.analysis.rt, &method);
        let mut sites = sites.iter().filter(|s| target.by.may_be_done_by(s));
        sites
            .find(|s| self.may_be_on(s, target, way) && !is_another(s))
            .map(|s| s.call.name.clone())
    }

    /// Whether a call can be one on the object: its class is one of the object's, and a field that it is made on is one
    /// of the way.
    fn may_be_on(&self, site: &Site, target: Target, way: &Way) -> bool {
        let on_way = || match &site.call.receiver {
            Receiver::Field(field) => self.is_field_of(way, field),
            Receiver::New => false,
            Receiver::Unknown | Receiver::Argument(_) | Receiver::Result(_) => true,
        };
        self.is_of_class(&site.call, target) && on_way()
    }

    /// The same for a method that runs: which of its variables has the object on the stack is not known.
    fn may_be_in_frame(&self, site: &Site, target: Target, way: &Way) -> bool {
        let is_variable = way.references.is_empty()
            && matches!(site.call.receiver, Receiver::Field(_))
            && self.is_of_class(&site.call, target);
        is_variable || self.may_be_on(site, target, way)
    }

    pub(super) fn is_of_class(&self, call: &CallSite, target: Target) -> bool {
        if matches!(target.by, By::Put | By::Take) {
            // the class alone tells; the call is on the channel's reader or writer
            return true;
        }
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
    ) -> Option<Candidate> {
        let a = self.analysis;
        let thread = a.threads.all.get(index)?;
        let mut threads = self.hang.threads.iter();
        let facts = threads.find(|t| t.thread.addr == thread.addr)?;
        if waits_for(facts, target.object) {
            return None;
        }
        // a method that runs may have its variables in the part of the stack of who called it
        let completes = facts.frames.iter().find_map(|f| {
            let method = &f.frame.method;
            let is_machine = f.name.ends_with(".MoveNext");
            let form = form_of(is_machine);
            let sites = self.calls.of(a.rt, (method.module, method.rid), form);
            let mut sites = sites.iter().filter(|s| target.by.may_be_done_by(s));
            let site = sites.find(|s| self.may_be_in_frame(s, target, way))?;
            Some((&f.name, site.call.name.clone()))
        });
        let own = || {
            let mut own = self.frames_from(facts, slot);
            own.find(|f| !f.owner.is_framework())
        };
        let (name, does) = match completes {
            Some((name, call)) => (name, Some(call)),
            // a leftover of its stack, where its code is known and completes nothing
            None if self.completes_nothing(facts) => return None,
            None => (&own()?.name, None),
        };
        let confidence = if does.is_some() {
            Confidence::Likely
        } else {
            Confidence::Possible
        };
        Some(Candidate {
            who: Some(Who::Thread(facts.thread.managed_id)),
            completer: Completer {
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
                ..self.thread_in(facts, name, does.as_deref())
            },
        })
    }

    /// Whether the code of all of the program's methods on a thread is known, and completes nothing.
    fn completes_nothing(&self, thread: &ThreadFacts) -> bool {
        let rt = self.analysis.rt;
        let mut own = thread.frames.iter().filter(|f| !f.owner.is_framework());
        own.all(|f| {
            let of = (f.frame.method.module, f.frame.method.rid);
            rt.method_il(of.0, of.1).is_some() && !self.calls.completes(rt, of)
        })
    }

    /// A thread that is in a method, and what of that method's code completes the object.
    pub(super) fn thread_in(
        &self,
        facts: &ThreadFacts,
        name: &str,
        does: Option<&str>,
    ) -> Completer {
        let inside = self.innermost(facts);
        let calls = does.map_or_else(String::new, |m| format!(", whose code calls {m}"));
        Completer {
            kind: CompleterKind::Thread,
            text: format!("thread {} in {name}{calls}{inside}", facts.title()),
            thread: Some(u64::from(facts.thread.os_id)),
            ..Completer::default()
        }
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
    fn table(&self, target: Target, way: &Way, mt: Addr, field: &str) -> Completer {
        let a = self.analysis;
        let field = a.static_text(mt, field);
        // what is kept of a method is the delegate that resumes it
        let way = &match (target.by, way.references.split_last()) {
            (By::Resume, Some((_, kept))) => Way {
                references: kept.to_vec(),
                ..way.clone()
            },
            _ => way.clone(),
        };
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

    /// A timer by what it calls and when; `None` for one that is not due any more.
    fn timer(&self, way: &Way) -> Option<String> {
        let a = self.analysis;
        let timer = a.timer_at(way.from);
        if timer.is_some_and(|t| t.due.is_none()) {
            return None;
        }
        let callback = a.rt.reference(way.from, "_timerCallback");
        let calls = callback.and_then(|c| a.delegate_text(c));
        let calls = calls.map_or_else(String::new, |name| format!(" that calls {name}"));
        let due = timer.and_then(|t| a.due_in(t)).filter(|s| *s >= 0.0);
        let due = due.map_or_else(String::new, |s| format!(", due in {}", duration(s)));
        Some(format!("a timer{calls}{due}"))
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

/// Whether a variable of a state machine is the object whose method it is.
fn is_this(variable: Option<&str>) -> bool {
    variable.is_some_and(|name| matches!(hoisted_local(name), Some(LocalName::This)))
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

/// Whether a thread waits for the object itself.
fn waits_for(thread: &ThreadFacts, object: Addr) -> bool {
    matches!(&thread.wait, Some(Wait::Object(wait)) if wait.at == Some(object))
}

/// How a method is compiled.
pub(super) fn form_of(is_machine: bool) -> Form {
    if is_machine {
        Form::Machine { iterator: false }
    } else {
        Form::Plain
    }
}
