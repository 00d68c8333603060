//! The verdict that nothing hangs: what lives in the process waits for work, and all of it was looked at.
//!
//! It is said only where everything speaks for it. A thread of the program that runs, sleeps, or waits for anything but
//! its own work, a chain that waits for an answer, a request, a queued item, or a part of the dump that could hide one
//! leaves it unsaid.

use super::{Facts, fact};
use crate::chains::Tally;
use crate::facts::Purpose;
use crate::holders::standing;
use crate::libraries::{channels, hosting};
use crate::paths::steps_of;
use crate::threads::{ThreadFacts, Wait};
use crate::words::{listed, several, verb};
use asynctriage_async_graph::{Helper, NodeId, task};
use asynctriage_clr::Runtime;
use asynctriage_dump::Addr;
use asynctriage_report::{
    ChainGroup, Confidence, Evidence, Finding, FindingKind, Frame, LeafKind, RootKind, Severity,
    VerdictState,
};
use rustc_hash::FxHashSet;
use std::collections::BTreeMap;

/// What keeps a callback of `BeginReceive` and its like.
const BEGUN: &str = "System.Threading.Tasks.TaskToAsyncResult+TaskAsyncResult";
const SOCKET_CALL: &str = "System.Net.Sockets.SocketAsyncEventArgs";
/// `SocketAsyncEventArgs._operating` of one that has not ended.
const IN_PROGRESS: i32 = 1;
const TASK: &str = "System.Threading.Tasks.Task";
/// Methods above one leaf that are asked whether they come back.
const MAX_WAITERS: usize = 1 << 10;

/// Says that the process is idle, when nothing else was found that says more than what has happened before.
pub(super) fn find(facts: Facts<'_, '_, '_>, found: &[Finding]) -> Option<Finding> {
    let is_idle = found.iter().all(is_past)
        && is_whole(facts)
        && groups(facts).all(|(group, tally)| waits_for_work(facts, group, tally))
        && facts.groups.unlisted == 0
        && facts.hang.threads.iter().all(|t| is_at_rest(facts, t))
        && facts
            .a
            .requests_in_flight(facts.groups, facts.hang)
            .is_empty()
        && facts.a.graph.queues.items().next().is_none()
        && nothing_is_unread(facts)
        && waits_for_others(facts)
        && nothing_is_outstanding(facts);
    is_idle.then(|| describe(facts))
}

fn groups<'a>(facts: Facts<'a, '_, '_>) -> impl Iterator<Item = (&'a ChainGroup, &'a Tally)> {
    facts.groups.groups.iter().zip(&facts.groups.tallies)
}

/// Whether a finding speaks of what has ended as it was meant to, or of what may be a signal that its waiters are idle
/// for. A loop of the program that has ended with an exception is missed by whoever waits for it.
fn is_past(finding: &Finding) -> bool {
    use FindingKind as K;
    finding.severity == Severity::Info
        && match finding.kind {
            K::CancelledTasks | K::CompletedNotCollected => true,
            K::SemaphoreExhausted => finding.confidence == Confidence::Possible,
            _ => false,
        }
}

/// Whether something waits for what comes from outside or from another part of the process: who only pauses may be about
/// to try again what fails.
fn waits_for_others(facts: Facts<'_, '_, '_>) -> bool {
    let chains = groups(facts).any(|(group, _)| {
        let verdict = group.verdict.as_ref();
        verdict.is_some_and(|v| v.state == VerdictState::Idle)
            || is_host(group)
            || is_signal(group)
            || brings_work(group.leaf.kind)
    });
    let brings = |t: &ThreadFacts| matches!(&t.wait, Some(Wait::Object(o)) if o.brings_work);
    chains || facts.groups.idle_chains > 0 || facts.hang.threads.iter().any(brings)
}

/// Whether no call of the system has yet to call back the program, and no task has yet to run in a scheduler of its own:
/// both wait without a chain.
fn nothing_is_outstanding(facts: Facts<'_, '_, '_>) -> bool {
    let (rt, graph) = (facts.a.rt, &facts.a.graph);
    let Some(task) = graph.task else { return false };
    let is_own = |mt: Addr| {
        let ty = rt.ty(mt);
        ty.is_some_and(|t| {
            !rt.module(t.module).ships_with_dotnet || *rt.definition_name(&t) == *SOCKET_CALL
        })
    };
    let types: Vec<Addr> = graph.heap.types.iter().map(|t| t.mt).collect();
    let of = |class: &str| -> Vec<Addr> {
        let derived = types.iter().copied().filter(|mt| rt.is_a(*mt, class));
        derived.collect()
    };
    let sockets: Vec<Addr> = of(SOCKET_CALL)
        .into_iter()
        .filter(|mt| is_own(*mt))
        .collect();
    let objects = |wanted: Vec<Addr>| graph.heap.addresses_of(rt, wanted);
    let is_pending = |at: Addr| rt.field_i32(at, "_operating") == Some(IN_PROGRESS);
    let calls_back = |at: Addr| {
        let awaited = rt.reference(at, "_task");
        let is_done = |t: Addr| task.flags(rt, t) & task::flags::COMPLETED != 0;
        rt.reference(at, "_callback").is_some() && awaited.is_some_and(|t| !is_done(t))
    };
    !objects(sockets).any(is_pending)
        && !objects(of(BEGUN)).any(calls_back)
        && !objects(of(TASK)).any(|at| {
            let is_open = task.flags(rt, at) & task::flags::COMPLETED == 0;
            task.status(rt, at) == "WaitingToRun" || is_open && resumes_program(rt, at)
        })
}

/// Whether a task goes on in a method of the program that was registered by hand: it stands in no chain.
fn resumes_program(rt: &Runtime<'_>, at: Addr) -> bool {
    let registered = rt.reference(at, "m_continuationObject");
    // with the context in which it is to run
    let action = registered.map(|r| rt.reference(r, "m_action").unwrap_or(r));
    let method = action.and_then(|a| rt.delegate_method(a));
    method.is_some_and(|m| !rt.module(m.module).ships_with_dotnet)
}

/// Whether nobody has left items in a channel: work that nobody does.
fn nothing_is_unread(facts: Facts<'_, '_, '_>) -> bool {
    let a = facts.a;
    let mut channels = a.graph.helpers(Helper::Channel).iter();
    channels.all(|channel| channels::unread(a.rt, *channel) == 0)
}

/// Whether the dump hides nothing that could wait. Methods that were rejected are a gap of the chains.
fn is_whole(facts: Facts<'_, '_, '_>) -> bool {
    use asynctriage_clr::Section as S;
    let (rt, graph) = (facts.a.rt, &facts.a.graph);
    let mut known = rt.gaps().iter().chain(&graph.gaps);
    graph.task.is_some()
        && graph.heap.objects() > 0
        && graph.heap.bad.is_empty()
        && !graph.heap.shape.collection.moving
        && known.all(|g| !matches!(g.kind.section(), S::Chains | S::Heap | S::Dump))
        && facts.a.threads.gaps.is_empty()
        && rt.module_gaps().is_empty()
        && rt.cut_gaps().is_empty()
}

/// Whether a chain waits for work rather than for an answer.
fn waits_for_work(facts: Facts<'_, '_, '_>, group: &ChainGroup, tally: &Tally) -> bool {
    let verdict = group.verdict.as_ref();
    if verdict.is_some_and(|v| v.state == VerdictState::Idle) || is_host(group) {
        return true;
    }
    let purpose = tally.purpose.as_ref();
    let of_nobody = match purpose.map_or(RootKind::None, Purpose::kind) {
        RootKind::HostedService => matches!(purpose, Some(Purpose::Background { .. })),
        RootKind::None | RootKind::AsyncVoid | RootKind::Main | RootKind::QueueConsumer => true,
        // what a thread dispatches: that is looked at thread by thread
        RootKind::Thread => true,
        _ => false,
    };
    let waits = match group.leaf.kind {
        // one that reads or pauses once is about to do something
        LeafKind::ChannelRead => has_rounds(facts, tally),
        LeafKind::Delay => is_due(tally) && has_rounds(facts, tally),
        kind => brings_work(kind) || is_signal(group),
    };
    of_nobody && waits
}

/// Whether one of the program's methods in each chain comes back to where it stands: a loop that waits for its next round.
fn has_rounds(facts: Facts<'_, '_, '_>, tally: &Tally) -> bool {
    let a = facts.a;
    let loops = |id: NodeId| {
        let mut steps = steps_of(&a.graph, id).filter_map(|step| standing::suspended(a, step));
        steps.any(|method| method.comes_back(a.rt) == Some(true))
    };
    tally.leaves.keys().all(|leaf| {
        let mut seen = FxHashSet::default();
        let mut todo = vec![*leaf];
        while let Some(id) = todo.pop().filter(|_| seen.len() < MAX_WAITERS) {
            if loops(id) {
                return true;
            }
            todo.extend(a.graph.waiters(id).filter(|w| seen.insert(*w)));
        }
        false
    })
}

/// Whether a chain is the program's main one, which waits for the end of the host.
fn is_host(group: &ChainGroup) -> bool {
    let is_main = group
        .root
        .as_ref()
        .is_some_and(|r| r.kind == RootKind::Main);
    let number = |f: &Frame| f.await_index.and_then(|n| i32::try_from(n).ok());
    let mut frames = group.frames.iter();
    is_main && frames.any(|f| hosting::is_end_of_host(&f.method, number(f)))
}

/// Waits that end when somebody outside, or another part of the process, has something to do.
pub(super) fn brings_work(kind: LeafKind) -> bool {
    matches!(
        kind,
        LeafKind::SocketAccept | LeafKind::ChannelRead | LeafKind::PeriodicTimer
    )
}

/// Whether a timer ends the wait that is not overdue.
fn is_due(tally: &Tally) -> bool {
    let first = tally.first_due();
    tally.awaited.kind() == LeafKind::Delay && first.is_some_and(|seconds| seconds >= 0.0)
}

/// A semaphore that a service waits at alone. Whether it is held by somebody is another finding.
fn is_signal(group: &ChainGroup) -> bool {
    let of_service = group
        .root
        .as_ref()
        .is_some_and(|r| r.kind == RootKind::HostedService);
    group.leaf.kind == LeafKind::Semaphore && of_service && group.count == 1
}

/// Whether a thread is one of .NET's own that does nothing for the program, or waits for the program's work.
fn is_at_rest(facts: Facts<'_, '_, '_>, thread: &ThreadFacts) -> bool {
    // without registers nothing is known of what it does
    if thread.request.is_some() || thread.thread.stack.is_none() {
        return false;
    }
    if thread.own_method().is_none() {
        return !matches!(thread.wait, Some(Wait::Lock(_) | Wait::Pulse(_)));
    }
    match &thread.wait {
        Some(Wait::Task(wait)) => {
            super::blocked::is_program_itself(facts, thread, *wait)
                || dispatches(facts, thread, *wait)
        }
        Some(Wait::Object(object)) => {
            object.brings_work && object.ended == 0 && !thread.thread.is_pool()
        }
        _ => false,
    }
}

/// Whether a thread waits for the first of several tasks, all of which bring work or limit the time: `Task.WaitAny` over a
/// listener and a timer.
pub(super) fn dispatches(facts: Facts<'_, '_, '_>, thread: &ThreadFacts, wait: NodeId) -> bool {
    let is_first = |name: &str| name.starts_with("System.Threading.Tasks.Task.WaitAny");
    if !thread.frames.iter().any(|f| is_first(&f.name)) {
        return false;
    }
    let below: FxHashSet<NodeId> = facts.a.all_below(wait).into_iter().collect();
    let mut kinds = groups(facts)
        .filter(|(_, tally)| tally.leaves.keys().any(|leaf| below.contains(leaf)))
        .map(|(group, _)| group.leaf.kind)
        .peekable();
    let mut brings = false;
    let all = kinds.by_ref().all(|kind| {
        brings |= matches!(kind, LeafKind::SocketAccept | LeafKind::ChannelRead);
        brings_work(kind) || matches!(kind, LeafKind::Delay | LeafKind::Timeout)
    });
    all && brings
}

fn describe(facts: Facts<'_, '_, '_>) -> Finding {
    let threads = &facts.hang.threads;
    let own = threads.iter().filter(|t| t.own_method().is_some()).count();
    let chains: u64 = facts
        .groups
        .groups
        .iter()
        .map(|g| g.count)
        .fold(facts.groups.idle_chains, u64::saturating_add);
    let mut finding = Finding::new(
        FindingKind::Idle,
        Severity::Info,
        "Nothing hangs: all that waits here waits for work",
    );
    finding.confidence = Confidence::Likely;
    let waiting = match chains {
        0 => "No chain waits".to_owned(),
        n => format!(
            "{} {} work: {}",
            several(n, "chain"),
            verb(n, "waits for", "wait for"),
            listed(&by_kind(facts))
        ),
    };
    finding.text = format!(
        "{waiting}. Of {} that live, {} {} a method of the program, and each of them waits for work. No request is served, and nothing stands in the pool's queues.",
        several(threads.len() as u64, "thread"),
        own,
        verb(own as u64, "runs", "run"),
    );
    finding.evidence = evidence(facts);
    finding.runbook = Some("idle".into());
    finding.next_step = Some(
        "if users see a hang, take the dump while it lasts, of the process that serves them".into(),
    );
    finding
}

/// `2 socket-accept`, the most frequent first.
fn by_kind(facts: Facts<'_, '_, '_>) -> Vec<String> {
    let mut kinds: BTreeMap<LeafKind, u64> = facts.groups.idle_kinds.clone();
    for group in &facts.groups.groups {
        let count = kinds.entry(group.leaf.kind).or_default();
        *count = count.saturating_add(group.count);
    }
    let mut kinds: Vec<_> = kinds.into_iter().collect();
    kinds.sort_by_key(|(_, n)| std::cmp::Reverse(*n));
    kinds
        .iter()
        .map(|(kind, n)| format!("{n} {kind}"))
        .collect()
}

/// What was looked at, one by one.
fn evidence(facts: Facts<'_, '_, '_>) -> Vec<Evidence> {
    let own = facts
        .hang
        .threads
        .iter()
        .filter(|t| t.own_method().is_some());
    let mut out: Vec<Evidence> = own
        .map(|t| {
            fact(
                format!("{} waits for {}", t.title(), facts.a.wait_text(t)),
                Some(t.thread.addr),
                "its stack",
            )
        })
        .collect();
    out.push(fact(
        format!(
            "{} walked, none of them damaged; no method was rejected",
            several(facts.a.graph.heap.objects(), "object")
        ),
        None,
        "the heap",
    ));
    out.push(fact(
        "no item stands in the queues of the pool",
        facts.a.pool_queue(),
        "ThreadPoolWorkQueue and the queues of the workers",
    ));
    out
}
