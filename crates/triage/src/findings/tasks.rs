//! Tasks that ended with an exception, or were cancelled.

use super::crash::exception_text;
use super::{Draft, Facts, fact};
use crate::words::{listed, several};
use asynctriage_async_graph::{Class, Combinator, Node, task};
use asynctriage_clr::{Exception, MethodRef};
use asynctriage_dump::Addr;
use asynctriage_report::{Confidence, Evidence, Finding, FindingKind, Severity};
use std::collections::BTreeMap;

/// What `WaitAsync` makes (8.0 to 11.0).
const TIME_LIMIT: &str = "System.Threading.Tasks.Task+CancellationPromise`1";
/// Different messages that a finding quotes.
const MAX_MESSAGES: usize = 10;
/// Findings of each of the two kinds; the rest is counted in the last.
const MAX_FINDINGS: usize = 20;
/// Tasks whose exceptions nobody looked at, from which on that is worth a warning.
const MANY: u64 = 100;

/// Tasks of one method that ended for the same reasons.
#[derive(Default)]
struct Alike {
    count: u64,
    unobserved: u64,
    messages: Vec<String>,
    evidence: Vec<Evidence>,
}

/// What a task ended with: types of the exception and of what caused it.
type Key = (String, Vec<String>);

pub(super) fn find(facts: Facts<'_, '_, '_>) -> Vec<Finding> {
    let mut faulted: BTreeMap<Key, Alike> = BTreeMap::new();
    let mut cancelled: BTreeMap<Key, Alike> = BTreeMap::new();
    let Some(fields) = facts.a.graph.task else {
        return Vec::new();
    };
    for node in facts
        .a
        .graph
        .completed
        .iter()
        .filter(|n| n.class != Class::PooledBox)
    {
        let flags = fields.flags(facts.a.rt, node.addr);
        if is_time_limit(facts, *node) {
            continue;
        }
        if flags & task::flags::FAULTED != 0 {
            add(facts, *node, &mut faulted);
        } else if flags & task::flags::CANCELED != 0 && !was_never_to_run(facts, *node) {
            add(facts, *node, &mut cancelled);
        }
    }
    let mut out = findings(faulted, faulted_finding);
    out.extend(findings(cancelled, cancelled_finding));
    out
}

/// Whether a task is .NET's own for a wait with a time limit: that one has ended it is no fault.
fn is_time_limit(facts: Facts<'_, '_, '_>, node: Node) -> bool {
    let ty = facts.a.rt.ty(node.mt);
    ty.is_some_and(|t| facts.a.rt.definition_name(&t).starts_with(TIME_LIMIT))
}

/// Whether a continuation was cancelled because its condition was not met, as with OnlyOnFaulted after success: nobody has
/// asked for that. A cancellation that somebody asked for leaves its token, or the exception that carries it.
fn was_never_to_run(facts: Facts<'_, '_, '_>, node: Node) -> bool {
    let rt = facts.a.rt;
    let Some(fields) = facts.a.graph.task else {
        return false;
    };
    let is_continuation = node.class == Class::Combinator(Combinator::ContinueWith);
    let has_run = fields.flags(rt, node.addr) & task::flags::DELEGATE_INVOKED != 0;
    let contingent = fields.contingent(rt, node.addr);
    let asked = contingent.is_some_and(|c| {
        let token = || {
            let place = rt.place(c)?;
            let field = rt.instance_field(&place.ty, "m_cancellationToken")?;
            place.references_in(rt, &field).next()
        };
        token().is_some() || rt.reference(c, "m_exceptionsHolder").is_some()
    });
    is_continuation && !has_run && !asked
}

fn findings(all: BTreeMap<Key, Alike>, make: fn(&Key, Alike) -> Finding) -> Vec<Finding> {
    let mut all: Vec<_> = all.into_iter().collect();
    all.sort_by_key(|(_, a)| std::cmp::Reverse(a.count));
    all.into_iter()
        .take(MAX_FINDINGS)
        .map(|(key, alike)| make(&key, alike))
        .collect()
}

/// How a task ended.
#[derive(Default)]
struct Ending {
    /// The exception and what caused it.
    chain: Vec<Exception>,
    /// Whether somebody has looked at the exception.
    handled: bool,
    /// The outermost method that the exception had passed when it ended the task; `None` for a cut trace.
    outermost: Option<MethodRef>,
}

fn ended_with(facts: Facts<'_, '_, '_>, task: Addr) -> Option<Ending> {
    let rt = facts.a.rt;
    let contingent = facts.a.graph.task?.contingent(rt, task)?;
    let holder = rt.reference(contingent, "m_exceptionsHolder")?;
    let first = rt
        .reference(holder, "m_faultExceptions")
        .and_then(|list| rt.list_items(list).next())
        .or_else(|| rt.reference(holder, "m_cancellationException"))?;
    // an ExceptionDispatchInfo, or the exception itself
    let exception = rt.reference(first, "_exception").unwrap_or(first);
    let handled = rt.field_u8(holder, "m_isHandled") == Some(1);
    let chain = rt.exception_chain(exception);
    let of_exception = || chain.first().map(|e| (e.frames.clone(), e.frame_count));
    let (frames, count) = rt
        .captured_frames(first)
        .or_else(of_exception)
        .unwrap_or_default();
    let mut outwards = frames.iter().rev().filter_map(|f| f.method);
    let outermost = outwards.find(|m| !is_dispatcher(facts, m));
    Some(Ending {
        outermost: outermost.filter(|_| frames.len() as u64 == count),
        chain,
        handled,
    })
}

fn add(facts: Facts<'_, '_, '_>, node: Node, to: &mut BTreeMap<Key, Alike>) {
    let Ending {
        chain,
        handled,
        outermost,
    } = ended_with(facts, node.addr).unwrap_or(Ending {
        handled: true,
        ..Ending::default()
    });
    let method = method_of(facts, node, outermost);
    let types = chain.iter().map(|e| e.type_name.to_string()).collect();
    let alike = to.entry((method, types)).or_default();
    alike.count = alike.count.saturating_add(1);
    alike.unobserved = alike.unobserved.saturating_add(u64::from(!handled));
    if alike.messages.len() >= MAX_MESSAGES && alike.evidence.len() >= MAX_MESSAGES {
        return;
    }
    let text: Vec<String> = chain.iter().map(|e| exception_text(facts, e)).collect();
    let text = text.join(", caused by ");
    if !text.is_empty() && alike.messages.len() < MAX_MESSAGES && !alike.messages.contains(&text) {
        alike.messages.push(text.clone());
    }
    if alike.evidence.len() < MAX_MESSAGES {
        let what = if text.is_empty() {
            "cancelled task".to_owned()
        } else {
            text
        };
        alike.evidence.push(fact(
            what,
            Some(node.addr),
            "m_stateFlags and m_exceptionsHolder of the task",
        ));
    }
}

/// The method whose task it is: by its box, else by the outermost frame that the exception passed, which is where the
/// async method caught it to end its task. Tasks of runtime-async methods have no box.
fn method_of(facts: Facts<'_, '_, '_>, node: Node, outermost: Option<MethodRef>) -> String {
    if let Some(method) = facts.a.box_method(node) {
        return method.to_string();
    }
    match outermost.filter(|m| is_async(facts, m)) {
        Some(method) => facts.a.rt.method_name(&method).to_string(),
        None => facts.a.type_name(node.mt).to_string(),
    }
}

/// The loop that resumes runtime-async methods: it catches what the last of them throws (11.0.0).
fn is_dispatcher(facts: Facts<'_, '_, '_>, method: &MethodRef) -> bool {
    let definition = facts.a.rt.method_definition(method);
    definition.is_some_and(|d| d.name == "DispatchContinuations")
}

fn is_async(facts: Facts<'_, '_, '_>, method: &MethodRef) -> bool {
    let rt = facts.a.rt;
    let is_move_next = rt
        .method_definition(method)
        .is_some_and(|d| d.name == "MoveNext" || d.name.ends_with(".MoveNext"));
    is_move_next || rt.is_runtime_async(method)
}

fn faulted_finding((method, types): &Key, alike: Alike) -> Finding {
    let unobserved = if alike.unobserved > 0 {
        format!(
            " Nobody has looked at the exceptions of {} of them.",
            alike.unobserved
        )
    } else {
        String::new()
    };
    let with = if types.is_empty() {
        "an exception that cannot be read".to_owned()
    } else {
        types.join(" around ")
    };
    let messages = said(&alike.messages);
    Draft {
        kind: FindingKind::FaultedTasks,
        severity: if alike.unobserved >= MANY { Severity::Warning } else { Severity::Info },
        confidence: Confidence::Certain,
        title: format!("{} of {method} ended with {with}", several(alike.count, "task")),
        text: format!(
            "{} of {method} ended with {with}{messages}.{unobserved}",
            several(alike.count, "faulted task"),
        ),
        next: "see whether whoever awaits these tasks handles the exception; finished tasks that are still on the heap may be old",
        runbook: "faulted-tasks",
        evidence: alike.evidence,
    }
    .finish()
}

/// What the exceptions say, behind a colon, or nothing.
fn said(messages: &[String]) -> String {
    if messages.is_empty() {
        String::new()
    } else {
        format!(": {}", listed(messages))
    }
}

fn cancelled_finding((method, types): &Key, alike: Alike) -> Finding {
    let with = if types.is_empty() {
        String::new()
    } else {
        format!(" with {}", types.join(" around "))
    };
    let messages = said(&alike.messages);
    Draft {
        kind: FindingKind::CancelledTasks,
        severity: Severity::Info,
        confidence: Confidence::Certain,
        title: format!("{} of {method} {} cancelled", several(alike.count, "task"), if alike.count == 1 { "was" } else { "were" }),
        text: format!("{} of {method}{with}{messages}.", several(alike.count, "cancelled task")),
        next: "see who cancelled: a time limit, a client that went away, or the shutdown of the process",
        runbook: "cancelled-tasks",
        evidence: alike.evidence,
    }
    .finish()
}
