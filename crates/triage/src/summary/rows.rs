//! Threads and requests as the report lists them.

use crate::chains::Groups;
use crate::facts::RequestFacts;
use crate::findings::{self, Facts};
use crate::libraries::http_client;
use crate::libraries::server;
use crate::paths::{Analysis, Doing};
use crate::threads::{Hang, StackMethod, ThreadFacts, Wait, WaitsOn};
use asynctriage_async_graph::Helper;
use asynctriage_clr::{FrameSource, Lock};
use asynctriage_dump::Addr;
use asynctriage_report::{
    Address, FrameStanding, ObjectRef, OutgoingCall, Request, Thread, ThreadFrame,
};
use rustc_hash::{FxHashMap, FxHashSet};

impl Analysis<'_, '_> {
    /// Requests that stand in the pool's queue: nothing of the application has run for them.
    fn requests_not_started(&self) -> Vec<Addr> {
        let servers = self.graph.helpers(Helper::ServerRequest);
        let queued = self.graph.queues.items();
        queued.filter(|item| servers.contains(item)).collect()
    }

    fn request_row(
        &self,
        facts: &RequestFacts,
        chain: Option<&(String, Option<f64>)>,
        hang: &Hang,
    ) -> Request {
        let serving = hang
            .threads
            .iter()
            .find(|t| t.request.as_ref().is_some_and(|r| r.object == facts.object));
        let at_least = chain.and_then(|(_, seconds)| *seconds);
        let age = self
            .request_seconds(facts)
            .or_else(|| Some((at_least?, "no younger than the call that it waits for")));
        let mut row = Request {
            age_seconds: age.map(|(seconds, _)| seconds),
            method: facts.method.clone(),
            path: facts.path.clone(),
            route: facts.route.clone(),
            trace_id: facts.trace_id.clone(),
            span_id: facts.span_id.clone(),
            parent_span_id: facts.parent_span_id.clone(),
            connection: facts.connection.clone(),
            chain: chain.map(|(id, _)| id.clone()),
            ..Request::default()
        };
        row.details
            .insert("object".into(), facts.object.to_string().into());
        if let Some((_, start)) = age {
            let how = format!("{start}, against {}", self.clock.how);
            row.details.insert("age_how".into(), how.into());
        }
        if let Some(thread) = serving {
            row.details.insert("thread".into(), thread.name().into());
            row.details
                .insert("thread_os_id".into(), thread.thread.os_id.into());
        }
        row
    }

    /// The calls that each request waits for, each message once.
    fn calls_by_request(&self, groups: &Groups) -> FxHashMap<Addr, Vec<OutgoingCall>> {
        let mut out: FxHashMap<Addr, Vec<OutgoingCall>> = FxHashMap::default();
        let mut seen = FxHashSet::default();
        for (request, message) in groups.tallies.iter().flat_map(|t| &t.calls) {
            if seen.insert((*request, *message)) {
                let call = http_client::outgoing_call(self.rt, *message, self.values);
                out.entry(*request).or_default().extend(call);
            }
        }
        out
    }

    pub(crate) fn request_rows(&self, groups: &Groups, hang: &Hang) -> Vec<Request> {
        let mut chains: FxHashMap<Addr, (String, Option<f64>)> = FxHashMap::default();
        for (group, tally) in groups.groups.iter().zip(&groups.tallies) {
            for request in &tally.requests {
                let at_least = tally.at_least.get(request).copied();
                let of_request = chains
                    .entry(*request)
                    .or_insert_with(|| (group.id.clone(), at_least));
                // several chains may serve one request: the one that tells since when counts
                if of_request.1.is_none() && at_least.is_some() {
                    *of_request = (group.id.clone(), at_least);
                }
            }
        }
        let served = self.requests_in_flight(groups, hang).into_iter();
        let facts = served.filter_map(|o| server::read(self.rt, o, self.values));
        let mut calls = self.calls_by_request(groups);
        let mut rows: Vec<Request> = facts
            .map(|r| Request {
                calls: calls.remove(&r.object).unwrap_or_default(),
                ..self.request_row(&r, chains.get(&r.object), hang)
            })
            .collect();
        let queued = self.requests_not_started().into_iter();
        rows.extend(queued.filter_map(|o| {
            let mut row = self.request_row(&server::read(self.rt, o, self.values)?, None, hang);
            let state = "not started: it stands in the thread pool's queue";
            row.details.insert("state".into(), state.into());
            Some(row)
        }));
        for (number, row) in (1_usize..).zip(&mut rows) {
            row.id = format!("R{number}");
        }
        rows
    }
}

/// Threads as the report lists them.
pub(super) fn threads(facts: Facts<'_, '_, '_>) -> Vec<Thread> {
    facts
        .hang
        .threads
        .iter()
        .map(|t| thread_row(facts, t))
        .collect()
}

fn thread_row(facts: Facts<'_, '_, '_>, thread: &ThreadFacts) -> Thread {
    Thread {
        os_id: u64::from(thread.thread.os_id),
        managed_id: Some(thread.thread.managed_id),
        name: Some(thread.name()),
        state: state(thread).into(),
        frames: thread
            .frames
            .iter()
            .map(|f| thread_frame(facts, f))
            .collect(),
        waits_on: waits_on(facts, thread),
        chain: chain_of(facts, thread),
        runs: runs(facts, thread),
        holds: thread.holds.iter().map(|l| lock_ref(facts, l)).collect(),
        request: thread.request.as_ref().map(RequestFacts::title),
    }
}

fn thread_frame(facts: Facts<'_, '_, '_>, method: &StackMethod) -> ThreadFrame {
    let frame = &method.frame;
    ThreadFrame {
        method: method.name.to_string(),
        address: Some(Address(frame.ip.0)),
        module: Some(facts.a.rt.module(frame.method.module).name.clone()),
        standing: Some(standing(frame.source)),
        is_framework: method.owner.is_framework(),
        evidence: match frame.source {
            FrameSource::StackScan => Some(format!(
                "a return address at {}; it may be left over",
                frame.slot
            )),
            FrameSource::Inlined => Some(
                "no frame of its own: of what the caller's IL calls at its return address, this alone calls the frame below"
                    .to_owned(),
            ),
            _ => None,
        },
        ..ThreadFrame::default()
    }
}

/// What a thread does that runs code of the program, or native code for it.
fn runs(facts: Facts<'_, '_, '_>, thread: &ThreadFacts) -> Option<String> {
    thread.own_method()?;
    let (doing, text) = facts.a.doing(thread);
    (doing != Doing::Blocks && !thread.is_guessed()).then_some(text)
}

/// The chain that ends at a thread which waits for it, else one that begins at what the thread runs.
fn chain_of(facts: Facts<'_, '_, '_>, thread: &ThreadFacts) -> Option<String> {
    let ends = match thread.wait {
        Some(Wait::Task(wait)) => facts.groups.by_wait.get(&wait),
        _ => None,
    };
    let begins = || facts.groups.by_thread.get(&thread.thread.managed_id);
    ends.or_else(begins).cloned()
}

fn standing(source: FrameSource) -> FrameStanding {
    match source {
        FrameSource::Registers | FrameSource::Unwound | FrameSource::Recorded => {
            FrameStanding::Exact
        }
        FrameSource::FramePointer => FrameStanding::Chained,
        FrameSource::StackScan => FrameStanding::Possible,
        FrameSource::Inlined => FrameStanding::Inlined,
    }
}

/// One word for what a thread does.
fn state(thread: &ThreadFacts) -> &'static str {
    // what may have returned tells nothing of what a thread does now
    let caller = thread.caller().filter(|c| !c.is_possible);
    let caller = caller.map(|c| &**c.name).unwrap_or_default();
    match &thread.wait {
        Some(Wait::Object(object)) if object.on == WaitsOn::End => "joining",
        Some(_) => "blocked",
        None if caller.starts_with("System.Threading.Thread.Sleep") => "sleeping",
        None if caller.starts_with("System.Threading.Thread.Join") => "joining",
        None if thread.is_parked() => "idle",
        None if thread.thread.in_wait() => "waiting",
        None if thread.frames.is_empty() => "native",
        None if thread.is_guessed() => "unknown",
        None => "running",
    }
}

fn waits_on(facts: Facts<'_, '_, '_>, thread: &ThreadFacts) -> Option<ObjectRef> {
    let (at, lock) = match thread.wait.as_ref()? {
        Wait::Object(object) => (object.at, None),
        Wait::Task(wait) => (facts.a.graph.object(*wait).map(|n| n.addr), None),
        Wait::Lock(lock) | Wait::Pulse(lock) | Wait::Inside(_, lock) => {
            (Some(lock.object.unwrap_or(lock.at)), Some(lock))
        }
    };
    let named = lock.is_none_or(|l| l.object.is_some());
    Some(ObjectRef {
        text: findings::locks::wait_text(facts, thread),
        address: at.map(|a| Address(a.0)),
        type_name: at
            .filter(|_| named)
            .and_then(|a| facts.a.rt.type_of(a))
            .map(|t| facts.a.rt.name(&t).to_string()),
    })
}

fn lock_ref(facts: Facts<'_, '_, '_>, lock: &Lock) -> ObjectRef {
    ObjectRef {
        text: format!("{} ({})", findings::locks::lock_text(facts, lock), lock.how),
        address: Some(Address(lock.object.unwrap_or(lock.at).0)),
        type_name: lock
            .object
            .and_then(|o| facts.a.rt.type_of(o))
            .map(|t| facts.a.rt.name(&t).to_string()),
    }
}
