//! An exception that nobody handled.

use super::{Draft, Facts, fact};
use crate::threads::ThreadFacts;
use asynctriage_clr::Exception;
use asynctriage_report::{Confidence, Evidence, Finding, FindingKind, Severity};

/// Signals that a process dies of: SIGABRT, which the runtime raises, and those that the processor causes.
const DEADLY: [u32; 5] = [4, 6, 7, 8, 11];
/// Frames of the stack trace that the evidence lists.
const MAX_FRAMES: usize = 12;

pub(super) fn find(facts: Facts<'_, '_, '_>) -> Vec<Finding> {
    let rt = facts.a.rt;
    let died = rt
        .dump()
        .process
        .signal
        .is_some_and(|s| DEADLY.contains(&s))
        || rt.dump().process.exception_record.is_some();
    let throwing = facts.hang.threads.iter().filter_map(|t| {
        let object = rt
            .last_thrown(&t.thread)
            .filter(|_| rt.handles_exception(&t.thread))?;
        let chain = rt.exception_chain(object);
        (!chain.is_empty()).then_some((t, chain))
    });
    throwing
        .map(|(thread, chain)| describe(facts, thread, &chain, died))
        .collect()
}

fn describe(
    facts: Facts<'_, '_, '_>,
    thread: &ThreadFacts,
    chain: &[Exception],
    died: bool,
) -> Finding {
    let text: Vec<String> = chain.iter().map(|e| exception_text(facts, e)).collect();
    let thrower = chain
        .iter()
        .rev()
        .find_map(|e| e.frames.iter().find_map(|f| f.method))
        .map(|m| facts.a.rt.method_name(&m));
    let from = thrower.map(|m| format!(" from {m}")).unwrap_or_default();
    let (severity, confidence, title, note) = if died {
        (
            Severity::Critical,
            Confidence::Certain,
            "An exception that nobody handled ended the process",
            "",
        )
    } else {
        (
            Severity::Info,
            Confidence::Possible,
            "A thread deals with an exception now",
            " The dump does not say that the process died: a catch or finally block may be running.",
        )
    };
    Draft {
        kind: FindingKind::UnhandledException,
        severity,
        confidence,
        title: format!("{title}: {} on thread '{}'", chain.first().map(|e| e.type_name.to_string()).unwrap_or_default(), thread.name()),
        text: format!("thread {} throws {}{from}.{note}", thread.title(), text.join(", caused by ")),
        next: "read the stack trace in the evidence (-v); the throwing method names the code, the message (--show-values) the data",
        runbook: "unhandled-exception",
        evidence: evidence(facts, thread, chain),
    }
    .finish()
}

/// The type, and what may be shown of the message.
pub(crate) fn exception_text(facts: Facts<'_, '_, '_>, exception: &Exception) -> String {
    match &exception.message {
        Some(message) => format!("{} {}", exception.type_name, facts.a.message_text(message)),
        None => exception.type_name.to_string(),
    }
}

fn evidence(facts: Facts<'_, '_, '_>, thread: &ThreadFacts, chain: &[Exception]) -> Vec<Evidence> {
    let mut out = Vec::new();
    if let Some(signal) = facts.a.rt.dump().process.signal {
        out.push(fact(
            format!("the process got signal {signal}"),
            None,
            "note of the dump",
        ));
    }
    out.push(fact(
        format!("thread '{}' has an exception in flight", thread.name()),
        Some(thread.thread.addr),
        "LastThrownObject and exception tracker of the thread",
    ));
    for exception in chain {
        out.push(fact(
            exception_text(facts, exception),
            Some(exception.object),
            "exception object",
        ));
        let frames = exception.frames.iter().take(MAX_FRAMES);
        out.extend(frames.map(|f| {
            let name = f.method.map_or_else(
                || "code of no method that is known".into(),
                |m| facts.a.rt.method_name(&m),
            );
            fact(
                format!("  at {name}"),
                Some(f.ip),
                "stack trace of the exception",
            )
        }));
    }
    out
}
