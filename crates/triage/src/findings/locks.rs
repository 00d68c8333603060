//! Locks that threads wait for, and `Monitor.Wait`.

use super::{Draft, Facts, fact, thread_titles};
use crate::facts::RequestFacts;
use crate::threads::{ObjectWait, OnStack, ThreadFacts, Wait, WaitsOn};
use crate::words::{listed, several, verb, waits};
use asynctriage_clr::Lock;
use asynctriage_dump::Addr;
use asynctriage_report::{Confidence, Evidence, Finding, FindingKind, Severity};
use std::collections::BTreeMap;

/// Waiters from which on a lock whose owner runs is worth a warning.
const MANY: usize = 3;

pub(super) fn find(facts: Facts<'_, '_, '_>) -> Vec<Finding> {
    let mut waiting: BTreeMap<Addr, (Lock, Vec<&ThreadFacts>)> = BTreeMap::new();
    for thread in &facts.hang.threads {
        let lock = match &thread.wait {
            Some(Wait::Lock(lock)) => Some(lock.clone()),
            Some(Wait::Object(object)) => shared(object),
            _ => None,
        };
        if let Some(lock) = lock {
            let (_, threads) = waiting.entry(lock.at).or_insert_with(|| (lock, Vec::new()));
            threads.push(thread);
        }
    }
    // waiters that are all part of a deadlock with the owner are told with it
    let deadlocked = facts.deadlocks.threads();
    let is_member = |id: u32| deadlocked.contains(&id);
    let mut found: Vec<_> = waiting
        .into_values()
        .filter(|(lock, threads)| {
            !lock.owner.is_some_and(is_member)
                || !threads.iter().all(|t| is_member(t.thread.managed_id))
        })
        .collect();
    found.sort_by_key(|(_, threads)| std::cmp::Reverse(threads.len()));
    let contended = found
        .iter()
        .map(|(lock, threads)| contention(facts, lock, threads));
    contended
        .chain(abandoned(facts))
        .chain(pulses(facts))
        .collect()
}

/// A reader/writer lock or mutex that others are in, in the words of a lock; the first of its owners stands for all.
fn shared(wait: &ObjectWait) -> Option<Lock> {
    Some(Lock {
        at: wait.at?,
        object: wait.at,
        owner: Some(*wait.owners.first().filter(|_| is_lock(wait))?),
        recursion: 0,
        waiters: 0,
        how: "its own fields, and the lists that threads keep of the locks they have entered",
    })
}

/// Whether it is something that its owners have entered.
fn is_lock(wait: &ObjectWait) -> bool {
    !matches!(
        wait.on,
        WaitsOn::End | WaitsOn::Class(_) | WaitsOn::Callback
    )
}

/// Locks that are classes of their own.
const KINDS: [(&str, &str); 4] = [
    (
        "System.Threading.ReaderWriterLockSlim",
        "ReaderWriterLockSlim",
    ),
    ("System.Threading.ReaderWriterLock", "ReaderWriterLock"),
    ("System.Threading.Mutex", "Mutex"),
    ("System.Threading.Lock", "Lock"),
];

/// The kind of lock that an object is: what is neither of these is locked by its monitor.
fn noun(facts: Facts<'_, '_, '_>, lock: &Lock) -> &'static str {
    let rt = facts.a.rt;
    let ty = lock.object.and_then(|o| rt.type_of(o));
    let is_a = |(class, _): &&(&str, &str)| ty.as_ref().is_some_and(|t| rt.is_a(t.mt, class));
    KINDS.iter().find(is_a).map_or("Monitor", |(_, noun)| *noun)
}

/// What a lock is called: the type of the object and its address.
pub(crate) fn lock_text(facts: Facts<'_, '_, '_>, lock: &Lock) -> String {
    facts.a.lock_text(lock)
}

/// What kind of object one is, and its address.
pub(crate) fn object_text(facts: Facts<'_, '_, '_>, at: Addr) -> String {
    let name = facts.a.rt.object_type_name(at);
    format!("{} {at}", name.as_deref().unwrap_or("the object"))
}

/// What a thread waits for, in words.
pub(crate) fn wait_text(facts: Facts<'_, '_, '_>, thread: &ThreadFacts) -> String {
    facts.a.wait_text(thread)
}

/// The thread that a lock waits for in the end: its owner, or the one that holds what the owner wants to enter. `None`
/// when that is not known, or where owners wait for one another.
pub(super) fn last_owner<'a>(facts: Facts<'a, '_, '_>, lock: &Lock) -> Option<&'a ThreadFacts> {
    let mut owner = lock.owner?;
    for _ in 0..facts.hang.threads.len() {
        let thread = facts
            .hang
            .by_managed_id(owner)
            .and_then(|i| facts.hang.threads.get(i))?;
        match &thread.wait {
            Some(Wait::Lock(next)) => owner = next.owner?,
            Some(Wait::Object(object)) if !object.owners.is_empty() => {
                owner = *object.owners.first()?;
            }
            _ => return Some(thread),
        }
    }
    None
}

fn contention(facts: Facts<'_, '_, '_>, lock: &Lock, threads: &[&ThreadFacts]) -> Finding {
    let owner = lock
        .owner
        .and_then(|id| facts.hang.by_managed_id(id))
        .and_then(|i| facts.hang.threads.get(i));
    let owner_waits = owner.is_some_and(|o| o.wait.is_some());
    let has_ended = lock.owner.is_some_and(|id| facts.a.threads.has_ended(id));
    let held = match owner {
        Some(owner) => format!("held by {}", owner.title()),
        // between the owner's leaving and the next one's entering
        None if lock.owner.is_none() => "free at this moment".into(),
        None if has_ended => "held by a thread that has ended".into(),
        None => "held by a thread that is not known".into(),
    };

    let does = owner.map(|owner| facts.a.doing(owner).1);
    let says = match &does {
        Some(does) => format!(" Its owner {does}."),
        None if has_ended => {
            " No living thread has the id of its owner: it has ended without leaving, and nobody can enter any more."
                .to_owned()
        }
        None => String::new(),
    };
    let serving = serving(threads);
    let titles = thread_titles(threads.iter().copied());
    let count = threads.len() as u64;
    // an owner that computes will leave soon: a busy process shows that at any moment
    let computes = lock.owner.is_none() || owner.is_some_and(ThreadFacts::computes);
    let severity = if owner_waits || has_ended || threads.len() >= MANY && !computes {
        Severity::Warning
    } else {
        Severity::Info
    };
    Draft {
        kind: FindingKind::LockContention,
        severity,
        confidence: if has_ended || threads.iter().any(|t| is_possible(t)) {
            Confidence::Likely
        } else {
            Confidence::Certain
        },
        title: format!(
            "{} for the {} {}",
            waits(count, "thread"),
            noun(facts, lock),
            owner.map_or_else(|| held.clone(), |o| format!("held by '{}'", o.name()))
        ),
        text: format!(
            "{} {} {} for {}, {held}.{says}{serving}",
            verb(count, "thread", "threads"),
            titles,
            verb(count, "waits", "wait"),
            lock_text(facts, lock)
        ),
        next: if has_ended {
            "restart the process; then leave the lock in a finally block, on the thread that has entered it"
        } else {
            "look at what the owner does (threads section); shorten what it does while it holds the lock"
        },
        runbook: "lock-contention",
        evidence: evidence(lock, threads, &held, owner.zip(does)),
    }
    .finish()
}

/// Who wants to enter a lock, and who holds it.
fn evidence(
    lock: &Lock,
    threads: &[&ThreadFacts],
    held: &str,
    owner: Option<(&ThreadFacts, String)>,
) -> Vec<Evidence> {
    let mut evidence: Vec<_> = threads
        .iter()
        .filter_map(|t| {
            let (at, how) = match (&t.wait, &t.block) {
                (Some(Wait::Object(object)), _) => (object.at, object.how.clone()),
                (_, Some(block)) => (Some(block.at), block.how.to_owned()),
                _ => return None,
            };
            Some(fact(
                format!("thread {} wants to enter", t.title()),
                at,
                how,
            ))
        })
        .collect();
    evidence.extend(owner.map(|(owner, does)| {
        fact(
            format!("the owner {} {does}", owner.title()),
            Some(owner.thread.addr),
            "its stack",
        )
    }));
    evidence.push(fact(
        match lock.waiters {
            0 => held.to_owned(),
            n => format!(
                "{held}, {} counted by the lock",
                several(n.into(), "waiter")
            ),
        },
        Some(lock.at),
        lock.how,
    ));
    evidence
}

/// Reader/writer locks that threads wait for which have been entered by some that have ended: nobody can leave for them.
fn abandoned(facts: Facts<'_, '_, '_>) -> Vec<Finding> {
    let mut waiting: BTreeMap<Addr, (&ObjectWait, Vec<&ThreadFacts>)> = BTreeMap::new();
    for thread in &facts.hang.threads {
        if let Some(Wait::Object(object)) = &thread.wait
            && object.ended > 0
            && let Some(at) = object.at
        {
            let (_, threads) = waiting.entry(at).or_insert_with(|| (object, Vec::new()));
            threads.push(thread);
        }
    }
    let describe = |(at, (object, threads)): (Addr, (&ObjectWait, Vec<&ThreadFacts>))| {
        let count = threads.len() as u64;
        let who = if object.writes { "writer" } else { "reader" };
        let ended = several(object.ended.into(), who);
        Draft {
            kind: FindingKind::LockContention,
            severity: Severity::Critical,
            // a thread's own count may be unreadable
            confidence: Confidence::Likely,
            title: format!(
                "{} for a {} that {ended} inside can never leave: the thread has ended",
                waits(count, "thread"),
                object_text(facts, at)
            ),
            text: format!(
                "{} {} {} for {}, but {ended} inside: no living thread accounts for it, so its thread has ended without leaving. {} can ever enter.",
                verb(count, "thread", "threads"),
                thread_titles(threads.iter().copied()),
                verb(count, "waits", "wait"),
                object_text(facts, at),
                if object.writes { "Nobody" } else { "No writer, and no reader behind one," }
            ),
            next: "restart the process; then leave the lock in a finally on the thread that entered it",
            runbook: "lock-contention",
            evidence: vec![fact(
                format!("{ended} counted by the lock is on no living thread's list"),
                Some(at),
                "the lock's own fields, and the lists that threads keep of the locks they have entered",
            )],
        }
        .finish()
    };
    waiting.into_iter().map(describe).collect()
}

/// The requests that threads serve, as a sentence.
fn serving(threads: &[&ThreadFacts]) -> String {
    let served = threads.iter().filter_map(|t| t.request.as_ref());
    let mut titles: Vec<String> = served.map(RequestFacts::title).collect();
    let count = titles.len() as u64;
    titles.sort_unstable();
    titles.dedup();
    if titles.is_empty() {
        return String::new();
    }
    format!(
        " {count} of the waiting threads {}: {}.",
        verb(count, "serves a request", "serve requests"),
        listed(&titles)
    )
}

/// Whether only frames that may be left over tell what a thread waits for.
fn is_possible(thread: &ThreadFacts) -> bool {
    matches!(&thread.wait, Some(Wait::Object(object)) if object.is_possible)
}

/// Threads in the program's own `Monitor.Wait`, those of one place together.
fn pulses(facts: Facts<'_, '_, '_>) -> Vec<Finding> {
    type Waiting<'t> = Vec<(&'t ThreadFacts, &'t Lock)>;
    let mut alike: BTreeMap<(String, Option<u64>), Waiting<'_>> = BTreeMap::new();
    for thread in &facts.hang.threads {
        if let Some(Wait::Pulse(lock)) = &thread.wait {
            let caller = thread.caller();
            let place = caller.map(|m| format!(" {}", m.place("in")));
            let limit = thread.block.as_ref().and_then(|b| b.timeout_ms);
            let key = (place.unwrap_or_default(), limit.map(u64::from));
            alike.entry(key).or_default().push((thread, lock));
        }
    }
    let mut found: Vec<_> = alike.into_iter().collect();
    found.sort_by_key(|(_, threads)| std::cmp::Reverse(threads.len()));
    found
        .into_iter()
        .map(|((place, limit), threads)| pulse(facts, &place, limit, &threads))
        .collect()
}

fn pulse(
    facts: Facts<'_, '_, '_>,
    place: &str,
    limit: Option<u64>,
    threads: &[(&ThreadFacts, &Lock)],
) -> Finding {
    let count = threads.len() as u64;
    let limit = limit.map_or_else(
        || "without a time limit".to_owned(),
        |ms| format!("for {ms} ms at most"),
    );
    let mut locks: Vec<String> = threads
        .iter()
        .map(|(_, lock)| lock_text(facts, lock))
        .collect();
    locks.sort_unstable();
    locks.dedup();
    let titles = thread_titles(threads.iter().map(|(t, _)| *t));
    let who = match threads {
        [(only, _)] => format!("Thread '{}' is", only.name()),
        _ => format!("{} are", several(count, "thread")),
    };
    // without frames only the lock tells that it is not .NET that waits
    let callers = threads.iter().map(|(t, _)| t.caller());
    let sure = callers.map(|c| c.map_or(Confidence::Likely, OnStack::ceiling));
    Draft {
        kind: FindingKind::MonitorWait,
        severity: Severity::Info,
        confidence: sure.min().unwrap_or(Confidence::Likely),
        title: format!("{who} in Monitor.Wait{place}"),
        text: format!(
            "{} {titles} {} in Monitor.Wait{place} on {}, {limit}: {} on when another thread pulses that object.",
            verb(count, "thread", "threads"),
            verb(count, "is", "are"),
            listed(&locks),
            verb(count, "it goes", "they go"),
        ),
        next: "find who should pulse the object and look whether that thread or chain waits itself",
        runbook: "monitor-wait",
        evidence: threads
            .iter()
            .filter_map(|(t, _)| Some((t, t.block.as_ref()?)))
            .map(|(t, b)| fact(format!("thread {} waits for a pulse", t.title()), Some(b.at), b.how))
            .collect(),
    }
    .finish()
}
