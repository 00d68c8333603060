//! Who is inside a semaphore: nobody notes that, but the code of a method tells what it has entered and not left where it
//! stands.
//!
//! Suspended methods stand at an await, methods on a thread's stack at a call. What the code names, a field of `this` or a
//! variable, is asked of the method's own object. Only who leaves the semaphore again in the same method counts: a
//! semaphore that one method waits for and another releases is a signal.

use super::graph::Node;
use super::locals::Activation;
use crate::paths::{Analysis, Step, steps_of};
use crate::threads::{Hang, ThreadFacts};
use asynctriage_async_graph::{Helper, NodeId};
use asynctriage_clr::{FrameSource, Runtime};
use asynctriage_dump::Addr;
use asynctriage_metadata::il::{Entered, Form};
use asynctriage_report::Confidence;
use rustc_hash::FxHashMap;
use std::rc::Rc;
use std::sync::Arc;

/// Suspended methods that are looked at.
const MAX_METHODS: usize = 200_000;
/// Frames of one thread that are looked at.
const MAX_FRAMES: usize = 200;
/// `SemaphoreSlim.m_maxCount` of one without a limit.
const NO_LIMIT: i32 = i32::MAX;
/// More threads than any process has: the word is no count.
const MAX_THREADS: u32 = 1 << 20;

/// One that has entered a semaphore.
#[derive(Clone, Debug)]
pub(crate) struct Holder {
    /// The method, or the thread whose frame it is.
    pub(crate) node: Node,
    /// What the method is called.
    pub(crate) method: Arc<str>,
    /// The object of the method, or the frame's place on the stack.
    pub(crate) slot: Option<Addr>,
    /// How that is known.
    pub(crate) how: String,
    pub(crate) confidence: Confidence,
}

/// Who is inside the semaphores that others wait for.
#[derive(Debug, Default)]
pub(crate) struct Holders {
    inside: FxHashMap<Addr, Vec<Holder>>,
}

/// By module, row of the method and place in it.
type Known = FxHashMap<(Addr, u32, u32), Rc<[Entered]>>;

impl Holders {
    pub(crate) fn find(a: &Analysis<'_, '_>, hang: &Hang) -> Self {
        let mut search = Search {
            a,
            wanted: FxHashMap::default(),
            known: Known::default(),
        };
        for semaphore in a.graph.helpers(Helper::Semaphore) {
            if is_wanted(a, *semaphore) {
                search.wanted.insert(*semaphore, Vec::new());
            }
        }
        if !search.wanted.is_empty() {
            search.methods();
            for thread in &hang.threads {
                search.thread(thread);
            }
        }
        for all in search.wanted.values_mut() {
            all.sort_by_key(|h| (h.node, h.slot));
            all.dedup_by_key(|h| h.node);
        }
        Self {
            inside: search.wanted,
        }
    }

    /// Who is inside a semaphore.
    pub(crate) fn of(&self, semaphore: Addr) -> &[Holder] {
        self.inside.get(&semaphore).map_or(&[], Vec::as_slice)
    }

    /// The semaphores that are looked at, by address.
    pub(crate) fn semaphores(&self) -> impl Iterator<Item = Addr> {
        let mut all: Vec<Addr> = self.inside.keys().copied().collect();
        all.sort_unstable();
        all.into_iter()
    }

    /// Whether others than those that are known may be inside: the semaphore has given away more places.
    pub(crate) fn may_hold_more(&self, rt: &Runtime<'_>, semaphore: Addr) -> bool {
        let inside = self.of(semaphore).len();
        match rt.field_i32(semaphore, "m_maxCount") {
            Some(NO_LIMIT) | None => inside == 0,
            Some(limit) => usize::try_from(limit).map_or(true, |limit| inside < limit),
        }
    }
}

/// Whether a semaphore has no place left and somebody waits for one.
fn is_wanted(a: &Analysis<'_, '_>, semaphore: Addr) -> bool {
    let rt = a.rt;
    let threads = rt.field_u32(semaphore, "m_waitCount");
    rt.field_i32(semaphore, "m_currentCount") == Some(0)
        && (rt.reference(semaphore, "m_asyncHead").is_some()
            || threads.is_some_and(|n| n > 0 && n < MAX_THREADS))
}

struct Search<'a, 'r, 'd> {
    a: &'a Analysis<'r, 'd>,
    wanted: FxHashMap<Addr, Vec<Holder>>,
    known: Known,
}

impl Search<'_, '_, '_> {
    fn methods(&mut self) {
        let graph = &self.a.graph;
        let mut nodes: Vec<NodeId> = graph
            .machines
            .keys()
            .chain(graph.operations.keys())
            .copied()
            .collect();
        nodes.sort_unstable();
        nodes.truncate(MAX_METHODS);
        for node in nodes {
            for step in steps_of(graph, node) {
                if !self.a.is_framework_step(step) {
                    self.suspended(step);
                }
            }
        }
    }

    fn suspended(&mut self, step: Step<'_>) -> Option<()> {
        let a = self.a;
        let (module, rid, form, activation) = match step.frame {
            Some(frame) => {
                let method = frame.point.method?;
                let activation = Activation::Continuation(frame);
                (method.module, method.rid, Form::Plain, activation)
            }
            None => {
                let machine = a.graph.machines.get(&step.node)?;
                let ty = &machine.place.ty;
                let form = Form::Machine {
                    iterator: machine.iterator,
                };
                let rid = a.lines.move_next(a.rt, ty.module, ty.rid)?;
                (ty.module, rid, form, Activation::Machine(&machine.place))
            }
        };
        let at = a.step_spot(step).il_offset?;
        let method = a.step_name(step);
        let place = match a.step_await(step) {
            Some(number) => format!("{method} stands at await {number}"),
            None => format!("{method} is suspended"),
        };
        for entered in self.entered(module, rid, form, at).iter() {
            self.hold(entered, &activation, |entered| Holder {
                node: Node::Async(step.node),
                method: Arc::clone(&method),
                slot: a.step_object(step),
                how: format!(
                    "{place}, behind its wait for the semaphore, {}",
                    left(entered)
                ),
                confidence: sure(entered),
            });
        }
        Some(())
    }

    fn thread(&mut self, thread: &ThreadFacts) {
        let mut below = thread.thread.stack.map_or(Addr::NULL, |(start, _)| start);
        for (index, at) in thread.frames.iter().take(MAX_FRAMES).enumerate() {
            let (frame, name) = (&at.frame, &at.name);
            // its place in its IL is not known; the frame that it stands in follows
            if frame.source == FrameSource::Inlined {
                continue;
            }
            let next = thread.frames.get(index.saturating_add(1));
            let end = next.map(|f| f.frame.slot).and_then(Addr::non_null);
            let rid = frame.method.rid;
            let is_own = !at.owner.is_framework();
            if frame.source != FrameSource::StackScan && is_own && rid != 0 {
                let ip = if frame.slot.is_null() {
                    frame.ip
                } else {
                    frame.ip.back(1)
                };
                self.frame(
                    thread,
                    index,
                    ip,
                    (below, end.unwrap_or(below + MAX_FRAME)),
                    name,
                );
            }
            // callees keep registers of their callers: their part of the stack counts, too
            if is_own {
                below = frame.slot;
            }
        }
    }

    fn frame(
        &mut self,
        thread: &ThreadFacts,
        index: usize,
        ip: Addr,
        stack: (Addr, Addr),
        name: &Arc<str>,
    ) -> Option<()> {
        let rt = self.a.rt;
        let method = thread.frames.get(index)?.frame.method;
        let at = rt.il_offset(ip)?;
        let running = self.running(method.owner, thread);
        let is_machine = rt
            .method_definition(&method)
            .is_some_and(|m| m.name == "MoveNext");
        let form = if is_machine {
            Form::Machine { iterator: false }
        } else {
            Form::Plain
        };
        let place = running.as_ref().map(|(_, place)| place);
        let activation = Activation::Frame {
            thread: &thread.thread,
            owner: method.owner,
            machine: place,
            stack,
        };
        let node = match (&running, rt.is_runtime_async(&method)) {
            (Some((node, _)), _) => Node::Async(*node),
            (None, true) => self
                .operation_on(thread)
                .map_or(Node::Thread(thread.thread.managed_id), Node::Async),
            _ => Node::Thread(thread.thread.managed_id),
        };
        for entered in self.entered(method.module, method.rid, form, at).iter() {
            self.hold(entered, &activation, |entered| Holder {
                node,
                method: Arc::clone(name),
                slot: stack.1.non_null(),
                how: format!(
                    "{name} on the stack of {} is behind its wait for the semaphore, {}",
                    thread.title(),
                    left(entered)
                ),
                confidence: sure(entered),
            });
        }
        Some(())
    }

    /// The running state machine of a type on a thread, when there is one only.
    fn running(
        &self,
        machine: Addr,
        thread: &ThreadFacts,
    ) -> Option<(NodeId, asynctriage_clr::Place)> {
        let a = self.a;
        let mut found = a.graph.running.iter().filter_map(|(id, running)| {
            let place = running.machine()?.place.clone();
            let mut on = a.threads.holding(a.graph.object(*id)?.addr);
            let is_here = place.ty.mt == machine && on.any(|(t, _)| t.addr == thread.thread.addr);
            is_here.then_some((*id, place))
        });
        found.next().filter(|_| found.next().is_none())
    }

    /// The task of the runtime-async methods that a thread runs, when there is one only.
    fn operation_on(&self, thread: &ThreadFacts) -> Option<NodeId> {
        let a = self.a;
        let mut found = a.graph.running.iter().filter_map(|(id, running)| {
            let is_operation = running.machine().is_none();
            let mut on = a.threads.holding(a.graph.object(*id)?.addr);
            (is_operation && on.any(|(t, _)| t.addr == thread.thread.addr)).then_some(*id)
        });
        found.next().filter(|_| found.next().is_none())
    }

    fn entered(&mut self, module: Addr, rid: u32, form: Form, at: u32) -> Rc<[Entered]> {
        let rt = self.a.rt;
        let find = || -> Vec<Entered> {
            let known = rt.module(module);
            let body = rt.method_body(module, rid);
            let found = body
                .zip(known.metadata.as_ref())
                .map(|(body, metadata)| metadata.entered_at(&body, form, at));
            found.unwrap_or_default()
        };
        let known = self.known.entry((module, rid, at));
        Rc::clone(known.or_insert_with(|| find().into()))
    }

    fn hold(
        &mut self,
        entered: &Entered,
        activation: &Activation<'_>,
        holder: impl Fn(&Entered) -> Holder,
    ) {
        if !entered.leaves {
            return;
        }
        let wanted = &self.wanted;
        let is_wanted = |at: Addr| wanted.contains_key(&at);
        let found = activation.object_at(self.a, entered, &is_wanted);
        if let Some(all) = found.and_then(|at| self.wanted.get_mut(&at)) {
            all.push(holder(entered));
        }
    }
}

/// The most that a frame takes whose end is not known.
const MAX_FRAME: u64 = 4096;

/// Code that may have gone another way tells less.
fn sure(entered: &Entered) -> Confidence {
    if entered.always {
        Confidence::Likely
    } else {
        Confidence::Possible
    }
}

fn left(entered: &Entered) -> &'static str {
    if entered.always {
        "which it has not left, by its code"
    } else {
        "which it has not left if it entered, by its code"
    }
}
