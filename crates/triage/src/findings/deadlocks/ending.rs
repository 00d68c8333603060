//! Whether a deadlock lasts for ever.

use super::super::Facts;
use crate::threads::{ThreadFacts, Wait, WaitsOn};
use crate::waitfor::{Knot, Node};
use crate::words::listed;
use asynctriage_async_graph::{Class, Combinator};
use asynctriage_dump::Addr;
use asynctriage_report::{Confidence, Severity};

/// Words of one stack that are looked at.
const MAX_WORDS: usize = 1 << 12;
const TOKEN_SOURCE: &str = "System.Threading.CancellationTokenSource";

/// Whether those who wait do so for ever.
pub(super) struct Ending {
    pub(super) severity: Severity,
    pub(super) confidence: Confidence,
    pub(super) text: String,
}

impl Ending {
    /// A wait with a time limit ends, and what its thread does then the dump does not tell.
    pub(super) fn of(facts: Facts<'_, '_, '_>, knot: &Knot, confidence: Confidence) -> Self {
        let threads = knot.members.iter().filter_map(|node| match node {
            Node::Thread(id) => {
                let index = facts.hang.by_managed_id(*id)?;
                facts.hang.threads.get(index)
            }
            _ => None,
        });
        let threads: Vec<&ThreadFacts> = threads.collect();
        let limit = |t: &&ThreadFacts| {
            let ms = t.block.as_ref()?.timeout_ms?;
            Some(format!("that of '{}' after {ms} ms", t.name()))
        };
        let limits: Vec<String> = threads.iter().filter_map(limit).collect();
        let open = threads.iter().filter(|t| may_have_limit(t));
        let open: Vec<String> = open.map(|t| format!("'{}'", t.name())).collect();
        let may_end = |node: &Node| match node {
            Node::Async(id) => facts
                .a
                .graph
                .object(*id)
                .is_some_and(|n| n.class == Class::Combinator(Combinator::WaitAsync)),
            _ => false,
        };
        let mut ending = Self::by(&limits, &open, confidence);
        if !limits.is_empty() {
            return ending;
        }
        let tokens = threads.iter().filter(|t| may_have_token(facts, t));
        let tokens: Vec<String> = tokens.map(|t| format!("'{}'", t.name())).collect();
        if let Some(when) = time_limit(facts, knot) {
            ending.severity = Severity::Warning;
            ending.confidence = ending.confidence.min(Confidence::Likely);
            ending.text = format!(
                "A time limit ends one of the waits, {when}; wait for it before a restart."
            );
        } else if open.is_empty() && !tokens.is_empty() {
            ending.confidence = ending.confidence.min(Confidence::Likely);
            ending.text = format!(
                "None of them can go on, unless a token is cancelled that ends the wait of {}.",
                listed(&tokens)
            );
        } else if knot.members.iter().any(may_end) {
            ending.confidence = ending.confidence.min(Confidence::Likely);
            ending.text =
                "None of them can go on, unless a token is cancelled that one of them was given."
                    .to_owned();
        }
        ending
    }

    /// What only may hold is no fact to act on.
    pub(super) fn hedged(self) -> Self {
        if self.confidence > Confidence::Possible {
            return self;
        }
        Self {
            severity: self.severity.min(Severity::Warning),
            text: format!(
                "That each of these waits is one is not proved. If so: {}",
                self.text
            ),
            ..self
        }
    }

    fn by(limits: &[String], open: &[String], confidence: Confidence) -> Self {
        if !limits.is_empty() {
            return Self {
                severity: Severity::Warning,
                confidence: confidence.min(Confidence::Likely),
                text: format!(
                    "Time limits end the waits: {}; wait for them before a restart.",
                    listed(limits)
                ),
            };
        }
        let (confidence, text) = if open.is_empty() {
            (confidence, "None of them can go on.".to_owned())
        } else {
            let text = format!(
                "None of them can go on, unless a time limit ends its wait: whether there is one is not known of {}.",
                listed(open)
            );
            (confidence.min(Confidence::Likely), text)
        };
        Self {
            severity: Severity::Critical,
            confidence,
            text,
        }
    }
}

/// Whether a thread waits for a task with a token that can be cancelled: its source stands on the part of the stack of the
/// wait.
fn may_have_token(facts: Facts<'_, '_, '_>, thread: &ThreadFacts) -> bool {
    let rt = facts.a.rt;
    let mut frames = thread.frames.iter();
    let Some(own) = frames.find(|f| !f.owner.is_framework()) else {
        return false;
    };
    let is_source = |word: Addr| {
        let ty = rt
            .type_of(word)
            .filter(|_| facts.a.graph.heap.is_object(word));
        ty.is_some_and(|t| rt.is_a(t.mt, TOKEN_SOURCE))
    };
    let waits = matches!(thread.wait, Some(Wait::Task(_)));
    let words = rt.stack_words(&thread.thread).take(MAX_WORDS);
    let mut of_wait = words.filter(|(slot, _)| slot.is_none_or(|s| s < own.frame.slot));
    waits && of_wait.any(|(_, word)| is_source(word))
}

/// When a timer ends one of the chains that are part of a deadlock; `None` when none does.
fn time_limit(facts: Facts<'_, '_, '_>, knot: &Knot) -> Option<String> {
    let mut members = knot.members.iter().filter_map(|node| match node {
        Node::Async(id) => Some(*id),
        _ => None,
    });
    members.find_map(|id| {
        let mut tallies = facts.groups.tallies.iter();
        let of = tallies.find(|t| t.leaves.contains_key(&id))?;
        of.due_text(&facts.a.clock)
    })
}

/// Whether a wait may have a time limit that nothing in the dump tells: the runtime notes it for monitors only, and only
/// some methods have none at all.
fn may_have_limit(thread: &ThreadFacts) -> bool {
    let without = |wait: &Option<Wait>| {
        let Some(Wait::Object(object)) = wait else {
            return true;
        };
        matches!(object.on, WaitsOn::Class(_) | WaitsOn::Callback)
    };
    let mut frames = thread.frames.iter();
    !without(&thread.wait)
        && thread.block.is_none()
        && !frames.any(|f| {
            f.name
                .starts_with("System.Threading.ReaderWriterLockSlim.Enter")
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_time_limit_ends_is_neither_certain_nor_for_ever() {
        let ending = |limits: &[&str], open: &[&str]| {
            let owned = |all: &[&str]| all.iter().map(|s| (*s).to_owned()).collect::<Vec<_>>();
            let out = Ending::by(&owned(limits), &owned(open), Confidence::Certain);
            (out.severity, out.confidence, out.text)
        };
        let (severity, confidence, _) = ending(&[], &[]);
        assert_eq!(
            (severity, confidence),
            (Severity::Critical, Confidence::Certain)
        );
        let (severity, confidence, text) = ending(&["that of 'a' after 5000 ms"], &["'b'"]);
        assert_eq!(
            (severity, confidence),
            (Severity::Warning, Confidence::Likely)
        );
        assert!(text.starts_with("Time limits end the waits: that of 'a' after 5000 ms;"));
        let (severity, confidence, text) = ending(&[], &["'b'"]);
        assert_eq!(
            (severity, confidence),
            (Severity::Critical, Confidence::Likely)
        );
        assert!(text.ends_with("is not known of 'b'."), "{text}");
    }
}
