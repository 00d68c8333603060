//! Findings: what is wrong with the process, as far as the dump shows it. One file per family; each looks at the
//! analysis and answers with what it found, nothing when there is nothing.

mod blocked;
mod bottleneck;
mod ceiling;
mod collections;
mod completers;
mod crash;
mod deadlocks;
mod entrants;
mod idle;
mod limits;
pub(crate) mod locks;
mod memory;
mod never;
mod pool;
mod ready;
mod tasks;

pub(crate) use deadlocks::KnotNames;

use crate::chains::{Groups, signatures};
use crate::paths::{Analysis, Users};
use crate::threads::{Hang, ThreadFacts};
use crate::waitfor::Deadlocks;
use crate::words::listed;
use asynctriage_clr::Gap;
use asynctriage_dump::Addr;
use asynctriage_report::{Address, Confidence, Evidence, Finding, FindingKind, Severity};
use rustc_hash::FxHashSet;

/// What all families look at.
#[derive(Clone, Copy)]
pub(crate) struct Facts<'a, 'r, 'd> {
    pub(crate) a: &'a Analysis<'r, 'd>,
    pub(crate) groups: &'a Groups,
    pub(crate) hang: &'a Hang,
    pub(crate) users: &'a Users,
    pub(crate) deadlocks: &'a Deadlocks,
}

/// Pieces of evidence of one finding.
const MAX_EVIDENCE: usize = 50;

/// All findings, the best explanation first, and what is not said because of what the whole dump is like.
pub(crate) fn all(facts: Facts<'_, '_, '_>) -> (Vec<Finding>, Option<Gap>) {
    let families: [fn(Facts<'_, '_, '_>) -> Vec<Finding>; 12] = [
        crash::find,
        deadlocks::find,
        never::find,
        pool::find,
        bottleneck::find,
        completers::find,
        limits::find,
        locks::find,
        blocked::find,
        ready::find,
        tasks::find,
        memory::find,
    ];
    let families = facts.a.rt.budget().each("kinds of findings", families);
    let mut found: Vec<Finding> = families.flat_map(|family| family(facts)).collect();
    let idle = idle::find(facts, &found);
    found.extend(idle);
    quieten(&mut found);
    let mut found = merged(found);
    let unsaid = ceiling::lower(facts.a, &mut found);
    // stable: within a kind the family's own order holds
    found.sort_by_key(|f| (std::cmp::Reverse(f.severity), rank(f.kind)));
    for (number, finding) in (1_usize..).zip(&mut found) {
        finding.id = format!("F{number}");
        finding.signature = signatures::of_finding(finding, &facts.groups.groups);
        finding.evidence.truncate(MAX_EVIDENCE);
    }
    let evidence = found.iter_mut().flat_map(|f| &mut f.evidence);
    for (number, fact) in (1_usize..).zip(evidence) {
        fact.id = format!("E{number}");
    }
    (found, unsaid)
}

/// Findings that say the same in the same words are one.
fn merged(all: Vec<Finding>) -> Vec<Finding> {
    let mut out: Vec<(Finding, u64)> = Vec::with_capacity(all.len());
    for finding in all {
        let same = out.iter_mut().find(|(known, _)| {
            known.kind == finding.kind && known.title == finding.title && known.text == finding.text
        });
        match same {
            Some((known, count)) => {
                *count = count.saturating_add(1);
                known.severity = known.severity.max(finding.severity);
                known.confidence = known.confidence.min(finding.confidence);
                let chains = finding.chains.into_iter();
                known.chains.extend(chains);
                known.evidence.extend(finding.evidence);
            }
            None => out.push((finding, 1)),
        }
    }
    let told = out.into_iter().map(|(mut finding, count)| {
        if count > 1 {
            finding.text = format!("{} There are {count} like this.", finding.text);
            let mut seen = FxHashSet::default();
            finding.chains.retain(|c| seen.insert(c.clone()));
        }
        finding
    });
    told.collect()
}

/// Where the pool is starved, every worker that blocks is part of that and no warning of its own.
fn quieten(found: &mut [Finding]) {
    let starved = found
        .iter()
        .any(|f| f.kind == FindingKind::ThreadpoolStarvation);
    let blocked = found
        .iter_mut()
        .filter(|f| starved && f.kind == FindingKind::ThreadBlockedOnTask);
    blocked.for_each(|f| f.severity = Severity::Info);
}

/// Causes before consequences: a deadlock explains a full queue, not the other way round.
fn rank(kind: FindingKind) -> usize {
    use FindingKind as K;
    let order = [
        K::UnhandledException,
        K::LockDeadlock,
        K::TypeInitializerDeadlock,
        K::CancellationDeadlock,
        K::SemaphoreDeadlock,
        K::MixedDeadlock,
        K::SyncContextDeadlock,
        K::SchedulerDeadlock,
        K::AwaitCycle,
        K::NeverCompletes,
        K::ThreadpoolStarvation,
        K::Bottleneck,
        K::HttpPoolExhausted,
        K::SemaphoreExhausted,
        K::ChannelFull,
        K::LockContention,
        K::ThreadBlockedOnTask,
        K::QueueDepth,
        K::ReadyNotRunning,
        K::RetainedByStateMachine,
        K::FaultedTasks,
        K::CancelledTasks,
        K::CompletedNotCollected,
        K::MonitorWait,
        K::Idle,
    ];
    order.iter().position(|k| *k == kind).unwrap_or(order.len())
}

/// A finding with everything but its chains.
pub(crate) struct Draft {
    pub(crate) kind: FindingKind,
    pub(crate) severity: Severity,
    pub(crate) confidence: Confidence,
    pub(crate) title: String,
    pub(crate) text: String,
    pub(crate) next: &'static str,
    pub(crate) runbook: &'static str,
    pub(crate) evidence: Vec<Evidence>,
}

impl Draft {
    pub(crate) fn finish(self) -> Finding {
        Finding {
            text: self.text,
            confidence: self.confidence,
            evidence: self.evidence,
            next_step: Some(self.next.to_owned()),
            runbook: Some(self.runbook.to_owned()),
            ..Finding::new(self.kind, self.severity, self.title)
        }
    }

    pub(crate) fn with_chains(self, mut chains: Vec<String>) -> Finding {
        let mut seen = FxHashSet::default();
        chains.retain(|c| seen.insert(c.clone()));
        Finding {
            chains,
            ..self.finish()
        }
    }
}

/// A fact with its place.
pub(crate) fn fact(
    what: impl Into<String>,
    address: Option<Addr>,
    how: impl Into<String>,
) -> Evidence {
    Evidence {
        what: what.into(),
        address: address.map(|a| Address(a.0)),
        how: how.into(),
        ..Evidence::default()
    }
}

/// Threads by name and os id; those that share a name once, with all their ids.
pub(crate) fn thread_titles<'t>(threads: impl Iterator<Item = &'t ThreadFacts>) -> String {
    let mut names: Vec<(String, Vec<String>)> = Vec::new();
    for thread in threads {
        let id = thread.thread.os_id.to_string();
        let name = thread.name();
        match names.iter_mut().find(|(n, _)| *n == name) {
            Some((_, ids)) => ids.push(id),
            None => names.push((name, vec![id])),
        }
    }
    let texts: Vec<String> = names
        .into_iter()
        .map(|(name, ids)| match ids.as_slice() {
            [id] => format!("'{name}' (os id {id})"),
            ids => format!("{} x '{name}' (os ids {})", ids.len(), listed(ids)),
        })
        .collect();
    listed(&texts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn findings_of_the_same_words_are_one() {
        let finding = |title: &str, chain: &str, severity| Finding {
            text: "It is full.".into(),
            chains: vec![chain.into()],
            ..Finding::new(FindingKind::SemaphoreExhausted, severity, title)
        };
        let found = merged(vec![
            finding("one", "C1", Severity::Info),
            finding("other", "C2", Severity::Info),
            finding("one", "C3", Severity::Warning),
        ]);
        let [one, other] = found.as_slice() else {
            panic!("{found:?}");
        };
        assert_eq!(one.text, "It is full. There are 2 like this.");
        assert_eq!(one.chains, ["C1", "C3"]);
        assert_eq!(one.severity, Severity::Warning);
        assert_eq!(other.text, "It is full.");
    }

    #[test]
    fn every_kind_has_a_rank_of_its_own() {
        let mut ranks: Vec<_> = FindingKind::ALL.iter().map(|k| rank(*k)).collect();
        ranks.sort_unstable();
        ranks.dedup();
        assert_eq!(ranks.len(), FindingKind::ALL.len());
        assert!(ranks.iter().all(|r| *r < FindingKind::ALL.len()));
    }

    /// Front matter of a page: its id and the kinds of findings that it treats.
    fn page(name: &str) -> Option<(String, Vec<String>)> {
        let path = format!("{}/../../runbooks/{name}.md", env!("CARGO_MANIFEST_DIR"));
        let text = std::fs::read_to_string(path).ok()?;
        let head = text.strip_prefix("---\n")?.split("\n---\n").next()?;
        let value = |key: &str| head.lines().find_map(|l| l.strip_prefix(key));
        let kinds = value("findings: [")?.strip_suffix(']')?;
        let kinds = kinds.split(", ").filter(|k| !k.is_empty());
        Some((
            value("id: ")?.to_owned(),
            kinds.map(str::to_owned).collect(),
        ))
    }

    #[test]
    fn every_kind_has_a_page_of_its_own() {
        for kind in FindingKind::ALL {
            let (id, kinds) = page(kind.as_str()).unwrap_or_else(|| panic!("no page for {kind}"));
            assert_eq!(id, kind.as_str());
            assert!(
                kinds.contains(&kind.to_string()),
                "{id} does not treat {kind}"
            );
        }
    }

    #[test]
    fn pages_of_situations_treat_kinds_that_exist() {
        for name in ["hang", "crash", "oom", "capture"] {
            let (id, kinds) = page(name).unwrap_or_else(|| panic!("no page {name}"));
            assert_eq!(id, name);
            let known = |k: &String| FindingKind::ALL.iter().any(|kind| kind.as_str() == k);
            assert!(kinds.iter().all(known), "{name}: {kinds:?}");
        }
    }
}
