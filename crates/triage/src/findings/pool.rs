//! The thread pool: starvation, and what stands in its queues.

use super::blocked::place;
use super::{Draft, Facts, fact};
use crate::threads::PoolFacts;
use crate::threads::{ThreadFacts, Wait};
use crate::words::{listed, several, verb, waits};
use asynctriage_report::{Confidence, Evidence, Finding, FindingKind, Severity};
use rustc_hash::FxHashSet;

/// Queued items from which on the depth is worth saying, and from which on it is worth a warning.
const DEEP: u64 = 100;
const VERY_DEEP: u64 = 1000;
/// Kinds of queued items that the text names.
const MAX_KINDS: usize = 6;

pub(super) fn find(facts: Facts<'_, '_, '_>) -> Vec<Finding> {
    let pool = facts.a.pool_facts();
    let starved = pool.as_ref().and_then(|p| starvation(facts, p));
    let depth = depth(facts, pool.as_ref(), starved.is_some());
    starved.into_iter().chain(depth).collect()
}

/// Workers that block, rather than run. Those that queue for a lock whose owner computes will go on at once: contention
/// is told of the lock.
fn blocked_workers<'a>(facts: Facts<'a, '_, '_>) -> Vec<&'a ThreadFacts> {
    let of_pool = facts.hang.threads.iter().filter(|t| t.thread.is_pool());
    let moves_on = |thread: &&ThreadFacts| match &thread.wait {
        Some(Wait::Lock(lock)) => {
            super::locks::last_owner(facts, lock).is_some_and(ThreadFacts::computes)
        }
        _ => false,
    };
    of_pool
        .filter(|t| t.wait.is_some() && !moves_on(t))
        .collect()
}

fn starvation(facts: Facts<'_, '_, '_>, pool: &PoolFacts) -> Option<Finding> {
    let queued = facts.a.graph.queues.items().count() as u64;
    let blocked = blocked_workers(facts);
    let (workers, busy) = (pool.existing?, pool.processing?);
    let count = blocked.len() as u64;
    // all that exist work, most of them block, and there is work that nobody takes
    let starved =
        queued > 0 && workers > 0 && busy >= workers && count.saturating_mul(2) >= workers;
    if !starved {
        return None;
    }
    let tasks = names_of_tasks(facts, &blocked);
    let own = own_continuations(facts, &blocked);
    let ends = ends(facts, &blocked);
    let place = blocking_places(&blocked);
    let all = count >= workers;
    let on = if tasks.is_empty() {
        String::new()
    } else {
        format!(" on {}", listed(&tasks))
    };
    let circle = if own > 0 {
        format!(
            " {} of the queued items {} the very methods that the blocked workers wait for: without a free worker they never run.",
            own,
            verb(own, "resumes", "resume")
        )
    } else {
        String::new()
    };
    // below its minimum the pool makes workers without hesitation
    let grows = pool.min.filter(|min| workers < *min);
    let limit = match (pool.max, grows) {
        (Some(max), _) if max <= workers => {
            format!(" The pool may not grow beyond {max} workers.")
        }
        (_, Some(min)) => format!(" The pool is still below its minimum of {min} workers."),
        _ => " The pool adds a worker or two per second at best.".to_owned(),
    };
    Some(
        Draft {
            kind: FindingKind::ThreadpoolStarvation,
            severity: if grows.is_some() { Severity::Warning } else { Severity::Critical },
            confidence: if all && grows.is_none() { Confidence::Certain } else { Confidence::Likely },
            title: format!(
                "Thread pool starved: {count} of {workers} workers block, {}",
                waits(queued, "work item")
            ),
            text: format!(
                "{count} of {workers} workers block synchronously{on}{place}; {} for a worker.{ends}{circle}{limit}",
                waits(queued, "work item")
            ),
            next: match pool.max {
                _ if for_locks(&blocked) => {
                    "more workers would block as well: find out why the owner of the lock does not leave it"
                }
                Some(max) if max <= workers => {
                    "raise the pool's maximum to get going again; make the blocking method async to cure it"
                }
                _ => {
                    "raise the pool's minimum (DOTNET_ThreadPool_ForceMinWorkerThreads) to get going again; make the blocking method async to cure it"
                }
            },
            runbook: "threadpool-starvation",
            evidence: evidence(facts, pool, &blocked, queued),
        }
        .with_chains(chains(facts, &blocked)),
    )
}

/// Whether most workers wait for locks: whoever has one holds up all that come.
fn for_locks(blocked: &[&ThreadFacts]) -> bool {
    let locks = blocked
        .iter()
        .filter(|t| matches!(t.wait, Some(Wait::Lock(_))));
    locks.count().saturating_mul(2) > blocked.len()
}

/// What the chains wait for in the end that end at blocked workers, as a sentence.
fn ends(facts: Facts<'_, '_, '_>, blocked: &[&ThreadFacts]) -> String {
    let ids = chains(facts, blocked);
    let groups = facts.groups.groups.iter().filter(|g| ids.contains(&g.id));
    let texts: Vec<String> = groups
        .take(MAX_KINDS)
        .map(|g| format!("{} x {}", g.count, g.leaf.text))
        .collect();
    if texts.is_empty() {
        String::new()
    } else {
        format!(" In the end they wait for {}.", listed(&texts))
    }
}

fn names_of_tasks(facts: Facts<'_, '_, '_>, blocked: &[&ThreadFacts]) -> Vec<String> {
    let waits = blocked.iter().filter_map(|t| match t.wait {
        Some(Wait::Task(wait)) => Some(wait),
        _ => None,
    });
    let mut names: Vec<String> = waits.flat_map(|w| facts.a.awaited_names(w)).collect();
    names.sort_unstable();
    names.dedup();
    names
}

fn blocking_places(blocked: &[&ThreadFacts]) -> String {
    let mut places: Vec<String> = blocked.iter().filter_map(|t| place(t)).collect();
    places.sort_unstable();
    places.dedup();
    if places.is_empty() {
        String::new()
    } else {
        format!(" ({})", listed(&places))
    }
}

/// Queued items that resume what a blocked worker waits for.
fn own_continuations(facts: Facts<'_, '_, '_>, blocked: &[&ThreadFacts]) -> u64 {
    let mut needed = FxHashSet::default();
    for thread in blocked {
        if let Some(Wait::Task(wait)) = thread.wait {
            needed.extend(facts.a.all_below(wait));
        }
    }
    facts
        .a
        .graph
        .queues
        .resumes
        .iter()
        .filter(|id| needed.contains(id))
        .count() as u64
}

fn chains(facts: Facts<'_, '_, '_>, blocked: &[&ThreadFacts]) -> Vec<String> {
    let waits = blocked.iter().filter_map(|t| match t.wait {
        Some(Wait::Task(wait)) => facts.groups.by_wait.get(&wait).cloned(),
        _ => None,
    });
    let mut out: Vec<String> = waits.collect();
    out.sort_unstable();
    out
}

fn evidence(
    facts: Facts<'_, '_, '_>,
    pool: &PoolFacts,
    blocked: &[&ThreadFacts],
    queued: u64,
) -> Vec<Evidence> {
    let figure = |n: Option<u64>| n.map_or_else(|| "?".to_owned(), |n| n.to_string());
    let mut out = vec![
        fact(
            format!(
                "{} workers process work, {} exist, {} are wanted",
                figure(pool.processing),
                figure(pool.existing),
                figure(pool.goal)
            ),
            Some(pool.object),
            "PortableThreadPool._separated.counts",
        ),
        fact(
            format!("{queued} items stand in the queues"),
            facts.a.pool_queue(),
            "ThreadPoolWorkQueue and the queues of the workers",
        ),
    ];
    if let Some(counted) = pool.blocked {
        out.push(fact(
            format!("the pool itself counts {counted} workers that block on tasks"),
            Some(pool.object),
            "PortableThreadPool._numBlockedThreads",
        ));
    }
    out.extend(blocked.iter().map(|t| {
        fact(
            format!(
                "worker {} waits for {}",
                t.title(),
                super::locks::wait_text(facts, t)
            ),
            Some(t.thread.addr),
            "its stack",
        )
    }));
    out
}

fn depth(facts: Facts<'_, '_, '_>, pool: Option<&PoolFacts>, starved: bool) -> Option<Finding> {
    let work = facts.a.queued_work(facts.groups);
    let total = work.total();
    if total < DEEP {
        return None;
    }
    let kinds: Vec<String> = work
        .by_kind
        .iter()
        .take(MAX_KINDS)
        .map(|k| format!("{} {}", k.count, k.kind))
        .collect();
    let rest = work.by_kind.len().saturating_sub(MAX_KINDS) as u64;
    let more = if rest > 0 {
        format!(" and {}", several(rest, "other kind"))
    } else {
        String::new()
    };
    let severity = if starved || total < VERY_DEEP {
        Severity::Info
    } else {
        Severity::Warning
    };
    let idle = pool.and_then(PoolFacts::idle).unwrap_or(0);
    let idle = if idle > 0 {
        format!(
            " {} {} without work, so it may be about to be taken.",
            several(idle, "worker"),
            verb(idle, "is", "are")
        )
    } else {
        String::new()
    };
    let evidence = vec![fact(
        format!(
            "global {}, high priority {}, local {}",
            work.global, work.high_priority, work.local
        ),
        facts.a.pool_queue(),
        "ThreadPoolWorkQueue and the queues of the workers",
    )];
    let resumes: Vec<String> = work
        .by_kind
        .iter()
        .filter_map(|k| k.resumes.as_ref())
        .filter_map(|signature| {
            let group = facts
                .groups
                .groups
                .iter()
                .find(|g| g.signature == *signature)?;
            Some(group.id.clone())
        })
        .collect();
    Some(
        Draft {
            kind: FindingKind::QueueDepth,
            severity,
            confidence: Confidence::Certain,
            title: format!("{total} work items wait for a thread of the pool"),
            text: format!(
                "The pool's queues hold {} in the global, {} in the high-priority and {} in the local queues: {}{more}.{idle}",
                work.global,
                work.high_priority,
                work.local,
                listed(&kinds)
            ),
            next: "see what the workers do (threads section) and what produces the largest kind of item",
            runbook: "queue-depth",
            evidence,
        }
        .with_chains(resumes),
    )
}
