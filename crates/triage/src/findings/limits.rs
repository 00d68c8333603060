//! Limits that are reached: semaphores, connection pools, bounded channels.

use super::{Draft, Facts, collections, entrants, fact};
use crate::facts::Unit;
use crate::holders::Who;
use crate::libraries::channels;
use crate::paths::{semaphores as semaphores_of, steps_of};
use crate::words::{listed, several, verb, waits};
use asynctriage_async_graph::NodeId;
use asynctriage_dump::Addr;
use asynctriage_report::{Confidence, Finding, FindingKind, Severity};
use rustc_hash::{FxHashMap, FxHashSet};

/// Methods that the text names.
const MAX_METHODS: usize = 6;
/// Suspended methods that are looked at for one semaphore.
const MAX_USERS: usize = 10_000;
/// Semaphores that are described, those with the most waiters.
const MAX_SEMAPHORES: usize = 20;
/// More threads than any process has: the word is no count.
const MAX_THREADS: u64 = 1 << 20;
/// Waiters for one semaphore from which on they are not taken for idle consumers.
const MANY_WAITERS: u64 = 10;
/// Writers from which on a full channel is more than back pressure on one producer.
const MANY_WRITERS: u64 = 3;

pub(super) fn find(facts: Facts<'_, '_, '_>) -> Vec<Finding> {
    let mut out = semaphores(facts);
    out.extend(http_pools(facts));
    out.extend(full_channels(facts));
    out.extend(collections::full(facts));
    out
}

/// Whether something that answers a request waits for a node, directly or through others.
fn serves_request(facts: Facts<'_, '_, '_>, ids: &[NodeId]) -> bool {
    let groups = facts.groups.groups.iter().zip(&facts.groups.tallies);
    groups
        .filter(|(_, tally)| !tally.requests.is_empty())
        .any(|(_, tally)| ids.iter().any(|id| tally.leaves.contains_key(id)))
}

/// The groups whose chains wait for these nodes.
fn groups_of(facts: Facts<'_, '_, '_>, ids: &[NodeId]) -> Vec<String> {
    let groups = facts.groups.groups.iter().zip(&facts.groups.tallies);
    groups
        .filter(|(_, tally)| ids.iter().any(|id| tally.leaves.contains_key(id)))
        .map(|(g, _)| g.id.clone())
        .collect()
}

/// The methods that await these nodes, the most frequent first.
fn methods_of(facts: Facts<'_, '_, '_>, ids: &[NodeId]) -> Vec<String> {
    let mut counts: FxHashMap<String, u64> = FxHashMap::default();
    for (_, method) in ids.iter().flat_map(|id| entrants::of(facts, *id)) {
        let n = counts.entry(method.to_string()).or_default();
        *n = n.saturating_add(1);
    }
    let mut counts: Vec<_> = counts.into_iter().collect();
    counts.sort_unstable_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    counts
        .into_iter()
        .take(MAX_METHODS)
        .map(|(m, _)| m)
        .collect()
}

fn semaphores(facts: Facts<'_, '_, '_>) -> Vec<Finding> {
    let mut waiting: FxHashMap<Addr, Vec<Addr>> = FxHashMap::default();
    for (waiter, semaphore) in &facts.a.graph.semaphores {
        waiting.entry(*semaphore).or_default().push(*waiter);
    }
    let waiters = |s: Addr| waiting.get(&s).map_or(&[][..], Vec::as_slice);
    // a BlockingCollection counts its items and free places with semaphores; that is told of the collection
    let counters = collections::counters(facts.a);
    // the only waiter of one that is part of a deadlock is told of there, with who is inside
    let deadlocked = facts.deadlocks.semaphores();
    let mut found: Vec<(u64, u64, Addr)> = semaphores_of(facts.a)
        .into_iter()
        .filter(|s| !counters.contains_key(s))
        .filter_map(|s| {
            let (count, threads) = waiting_for(facts, s, waiters(s))?;
            Some((count, threads, s))
        })
        .filter(|(count, _, s)| *count > 1 || !deadlocked.contains(s))
        .collect();
    found.sort_unstable_by_key(|(count, _, at)| (std::cmp::Reverse(*count), *at));
    found
        .into_iter()
        .take(MAX_SEMAPHORES)
        .map(|(count, threads, s)| semaphore(facts, s, waiters(s), count, threads))
        .collect()
}

/// How many wait for a semaphore without a free place, and how many of those are threads.
fn waiting_for(facts: Facts<'_, '_, '_>, at: Addr, waiters: &[Addr]) -> Option<(u64, u64)> {
    let rt = facts.a.rt;
    let free = rt.field_i32(at, "m_currentCount")?;
    let threads = rt
        .field_u32(at, "m_waitCount")
        .map(u64::from)
        .filter(|n| *n < MAX_THREADS)
        .unwrap_or(0);
    let count = (waiters.len() as u64).saturating_add(threads);
    (free == 0 && count > 0).then_some((count, threads))
}

/// How much it matters that a semaphore has no free place. Waiters may be idle consumers: a semaphore without an upper
/// limit, or of one place, is often a signal that work has come. A request among them, methods that have entered while
/// several wait, or more waiters than a process has consumers speak against that.
fn severity_of(limit: Option<i32>, waiters: u64, held: bool, requests: bool) -> Severity {
    let several = waiters >= 2 && (held || limit.is_some());
    if requests || several || waiters >= MANY_WAITERS {
        Severity::Warning
    } else {
        Severity::Info
    }
}

/// One without a limit may be a signal. The limit is one word: as many methods inside as it allows are another.
fn confidence_of(limit: Option<i32>, entered: usize) -> Confidence {
    match limit {
        None => Confidence::Possible,
        Some(limit) if usize::try_from(limit).is_ok_and(|l| l == entered) => Confidence::Certain,
        Some(_) => Confidence::Likely,
    }
}

fn semaphore(
    facts: Facts<'_, '_, '_>,
    at: Addr,
    waiters: &[Addr],
    count: u64,
    threads: u64,
) -> Finding {
    let rt = facts.a.rt;
    let limit = rt.field_i32(at, "m_maxCount").filter(|m| *m != i32::MAX);
    let mut ids: Vec<NodeId> = waiters
        .iter()
        .filter_map(|w| facts.a.graph.node(*w))
        .collect();
    ids.sort_unstable();
    let requests = serves_request(facts, &ids);
    let of = limit.map_or_else(|| "0".to_owned(), |m| format!("0 of {m}"));
    let name = facts
        .a
        .field_that_holds(facts.users, at, &ids)
        .map(|n| format!(" {n}"))
        .unwrap_or_default();
    let class = class_text(facts, at);
    let methods = methods_of(facts, &ids);
    let by = match methods.as_slice() {
        [] => String::new(),
        all => format!(", in {}", listed(all)),
    };
    let wait = verb(threads, "waits", "wait");
    let sync = match threads {
        0 => String::new(),
        _ => format!(" ({} {wait} synchronously)", several(threads, "thread")),
    };
    let inside = inside(facts, at);
    let holders = holders(facts, at, &ids);
    let is_held = !inside.is_empty() || !holders.is_empty();
    let severity = severity_of(limit, count, is_held, requests);
    let held = if !inside.is_empty() {
        let all = facts.deadlocks.holders.of(at);
        let is_clear = all.iter().all(|h| h.confidence >= Confidence::Likely);
        let are = if is_clear { "are" } else { "may be" };
        format!(" Inside {are}, by their code: {}.", listed(&inside))
    } else if let Some(by) = who_acts(facts, at) {
        format!(" Nobody is known to be inside. {by} to release it, by its code.")
    } else if holders.is_empty() && limit.is_none() && severity == Severity::Info {
        " No suspended method that uses it is past its wait: it may be a signal that its waiters are idle for.".to_owned()
    } else if holders.is_empty() {
        " Who is inside is not known: nobody, when it began without a free place; one that has ended without Release, or runs now; or a method whose code does not tell.".to_owned()
    } else {
        format!(
            " Suspended methods that may have entered, as they use it and wait for something else: {}.",
            listed(&holders)
        )
    };
    let entered = facts.deadlocks.holders.of(at).len();
    let finding = Draft {
        kind: FindingKind::SemaphoreExhausted,
        severity,
        confidence: confidence_of(limit, entered),
        title: format!("{class}{name}: {of} free, {}", several(count, "waiter")),
        text: format!(
            "{} on one {class}{name} with {of} free{by}{sync}.{held}",
            several(count, "waiter")
        ),
        next: "look at the chains that may have entered and why they do not get on; check that every path after the wait releases",
        runbook: "semaphore-exhausted",
        evidence: vec![fact(
            format!(
                "m_currentCount 0, {} in its queue, {threads} threads in Wait",
                waiters.len()
            ),
            Some(at),
            "SemaphoreSlim object and its m_asyncHead list",
        )],
    };
    finding.with_chains(groups_of(facts, &ids))
}

/// Whose code releases a semaphore without having entered it, or reads from a full channel: `A is`, `A and B are`.
fn who_acts(facts: Facts<'_, '_, '_>, object: Addr) -> Option<String> {
    let found = facts.deadlocks.completers.of(object)?;
    let names = found.by.iter().map(|c| match c.who {
        Who::Method(id) => facts.a.frame_name(id).to_string(),
        Who::Thread(id) => {
            let index = facts.hang.by_managed_id(id);
            let thread = index.and_then(|i| facts.hang.threads.get(i));
            thread.map_or_else(
                || "a thread".to_owned(),
                |t| format!("thread {}", t.title()),
            )
        }
    });
    let mut names: Vec<String> = names.collect();
    names.sort_unstable();
    names.dedup();
    let are = verb(names.len() as u64, "is", "are");
    (!names.is_empty()).then(|| format!("{} {are}", listed(&names)))
}

/// `SemaphoreSlim`, or the class that is derived from it.
fn class_text(facts: Facts<'_, '_, '_>, semaphore: Addr) -> String {
    match facts.a.rt.object_type_name(semaphore).as_deref() {
        None | Some("System.Threading.SemaphoreSlim") => "SemaphoreSlim".to_owned(),
        Some(class) => format!("{class} (SemaphoreSlim)"),
    }
}

/// The methods that have entered by their code, with how many of each.
fn inside(facts: Facts<'_, '_, '_>, semaphore: Addr) -> Vec<String> {
    let mut counts: FxHashMap<String, u64> = FxHashMap::default();
    for holder in facts.deadlocks.holders.of(semaphore) {
        let text = match holder.who {
            Who::Method(id) => holder_text(facts, id, &holder.method),
            _ => holder.method.to_string(),
        };
        let n = counts.entry(text).or_default();
        *n = n.saturating_add(1);
    }
    most_frequent(counts)
}

/// `3 x Method`, the most frequent first.
fn most_frequent(counts: FxHashMap<String, u64>) -> Vec<String> {
    let mut counts: Vec<_> = counts.into_iter().collect();
    counts.sort_unstable_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    let texts = counts.into_iter().take(MAX_METHODS);
    texts.map(|(text, n)| format!("{n} x {text}")).collect()
}

/// Suspended methods that may have entered: they refer to the object, themselves or through their `this`, or are of the
/// same name as those that wait for it, and wait for something else.
fn holders(facts: Facts<'_, '_, '_>, object: Addr, waiting: &[NodeId]) -> Vec<String> {
    let entering: Vec<NodeId> = waiting
        .iter()
        .flat_map(|id| entrants::of(facts, *id))
        .map(|(node, _)| node)
        .collect();
    let direct = waiting.iter().flat_map(|id| facts.a.graph.waiters(*id));
    let waiters: FxHashSet<NodeId> = direct.chain(entering.iter().copied()).collect();
    let users = facts.users;
    let methods: FxHashSet<_> = entering.iter().map(|w| facts.a.frame_name(*w)).collect();
    // one that stands where others wait to enter waits for another semaphore
    let place = |id: NodeId| {
        let step = steps_of(&facts.a.graph, id).next()?;
        Some((facts.a.step_name(step), facts.a.step_place(step)?))
    };
    let entrances: FxHashSet<_> = entering.iter().filter_map(|id| place(*id)).collect();
    let enters = |id: NodeId| place(id).is_some_and(|p| entrances.contains(&p));
    let alike = methods.iter().flat_map(|m| users.named(m));
    let mut counts: FxHashMap<String, u64> = FxHashMap::default();
    let mut seen = FxHashSet::default();
    for id in users.of(object).iter().chain(alike).take(MAX_USERS) {
        if !waiters.contains(id)
            && seen.insert(*id)
            && !enters(*id)
            && !waits_above(facts, *id, &waiters)
        {
            let name = facts.a.frame_name(*id);
            let n = counts.entry(holder_text(facts, *id, &name)).or_default();
            *n = n.saturating_add(1);
        }
    }
    most_frequent(counts)
}

/// `Method at await 1`.
fn holder_text(facts: Facts<'_, '_, '_>, id: NodeId, name: &str) -> String {
    match facts.a.graph.machines.get(&id) {
        Some(machine) => format!("{name} at await {}", machine.state),
        None => name.to_owned(),
    }
}

/// Whether a method only waits for one that waits.
fn waits_above(facts: Facts<'_, '_, '_>, id: NodeId, waiters: &FxHashSet<NodeId>) -> bool {
    facts
        .a
        .all_below(id)
        .iter()
        .any(|below| waiters.contains(below))
}

fn http_pools(facts: Facts<'_, '_, '_>) -> Vec<Finding> {
    let mut pools: FxHashMap<Addr, Vec<Addr>> = FxHashMap::default();
    for (waiter, pool) in &facts.a.http_pools {
        pools.entry(pool.pool).or_default().push(*waiter);
    }
    let mut pools: Vec<_> = pools.into_iter().collect();
    pools.sort_unstable_by_key(|(pool, w)| (std::cmp::Reverse(w.len()), *pool));
    let describe = |(at, waiters): (Addr, Vec<Addr>)| {
        let pool = facts.a.http_pools.get(waiters.first()?)?;
        if pool.in_use < pool.limit || pool.queued == 0 {
            return None;
        }
        let tasks = waiters
            .iter()
            .filter_map(|w| facts.a.rt.reference(*w, "_task"));
        let ids: Vec<NodeId> = tasks.filter_map(|t| facts.a.graph.node(t)).collect();
        let queued = pool.queued as u64;
        Some(
            Draft {
                kind: FindingKind::HttpPoolExhausted,
                severity: Severity::Warning,
                confidence: Confidence::Certain,
                title: format!(
                    "{} for {} to {}: all {} are in use{}",
                    waits(queued, "request"),
                    match pool.unit {
                        Unit::Connection => "a connection",
                        Unit::Stream(_) => "an HTTP/2 stream",
                    },
                    pool.origin,
                    pool.limit,
                    if pool.opening > 0 { " or being opened" } else { "" }
                ),
                text: format!(
                    "{} for one {} more to {}: {}, and {}.",
                    waits(queued, "request"),
                    pool.unit_text(),
                    pool.origin,
                    pool.use_text(),
                    match pool.unit {
                        Unit::Connection => "MaxConnectionsPerServer allows no more",
                        Unit::Stream(_) => "the server allows no more per connection (more connections need EnableMultipleHttp2Connections)",
                    }
                ),
                next: "look at what the requests that have a connection wait for: a slow server fills the pool; only then think of the limit",
                runbook: "http-pool-exhausted",
                evidence: vec![fact(
                    format!("{}, {} in the queue", pool.use_text(), pool.queued),
                    Some(at),
                    match pool.unit {
                        Unit::Connection => "HttpConnectionPool: _associatedHttp11ConnectionCount, _maxHttp11Connections, _http11RequestQueue",
                        Unit::Stream(_) => "HttpConnectionPool._http2RequestQueue; Http2Connection: _streamsInUse, _maxConcurrentStreams",
                    },
                )],
            }
            .with_chains(groups_of(facts, &ids)),
        )
    };
    pools.into_iter().filter_map(describe).collect()
}

/// What is known of who reads from a full channel.
fn consumer_of(facts: Facts<'_, '_, '_>, channel: Addr, reading: u64) -> String {
    if reading > 0 {
        let readers = several(reading, "reader");
        return format!("{readers} wait for items although there are some");
    }
    match who_acts(facts, channel) {
        Some(by) => format!("{by} to read from it, by its code, and waits itself"),
        None => {
            "nobody waits for items: its consumer is busy, waits for something else or has ended"
                .into()
        }
    }
}

fn full_channels(facts: Facts<'_, '_, '_>) -> Vec<Finding> {
    let mut writers: FxHashMap<Addr, Vec<NodeId>> = FxHashMap::default();
    let mut readers: FxHashMap<Addr, u64> = FxHashMap::default();
    for (operation, wait) in &facts.a.channel_waits {
        // idle operations are pooled and stay in no list, but only those that somebody awaits count
        let Some(id) = facts
            .a
            .graph
            .node(*operation)
            .filter(|id| facts.a.graph.waiters(*id).next().is_some())
        else {
            continue;
        };
        if wait.writes {
            writers.entry(wait.channel).or_default().push(id);
        } else {
            let n = readers.entry(wait.channel).or_default();
            *n = n.saturating_add(1);
        }
    }
    let mut all: Vec<_> = writers.into_iter().collect();
    all.sort_unstable_by_key(|(channel, w)| (std::cmp::Reverse(w.len()), *channel));
    let describe = |(channel, mut ids): (Addr, Vec<NodeId>)| {
        let (items, capacity) = channels::fill(facts.a.rt, channel).filter(|(i, c)| i >= c)?;
        ids.sort_unstable();
        let count = ids.len() as u64;
        let name = facts
            .a
            .field_that_holds(facts.users, channel, &ids)
            .map(|n| format!(" {n}"))
            .unwrap_or_default();
        let requests = serves_request(facts, &ids);
        let reading = readers.get(&channel).copied().unwrap_or(0);
        let consumer = consumer_of(facts, channel, reading);
        let methods = methods_of(facts, &ids);
        let by = if methods.is_empty() {
            String::new()
        } else {
            format!(" ({})", listed(&methods))
        };
        Some(
            Draft {
                kind: FindingKind::ChannelFull,
                // a bounded channel is there to slow its producer down
                severity: if requests || count >= MANY_WRITERS {
                    Severity::Warning
                } else {
                    Severity::Info
                },
                confidence: Confidence::Likely,
                title: format!(
                    "Channel{name} is full ({items} of {capacity}): {}",
                    waits(count, "writer")
                ),
                text: format!(
                    "A bounded channel{name} holds {items} of {capacity} items, {}{by} {} for space; {consumer}.",
                    several(count, "writer"),
                    verb(count, "waits", "wait")
                ),
                next: "find the consumer of the channel among the chains and see what it waits for",
                runbook: "channel-full",
                evidence: vec![fact(
                    format!("{items} items, capacity {capacity}, {count} waiting writers"),
                    Some(channel),
                    "BoundedChannel: _items, _bufferedCapacity and its lists of writers",
                )],
            }
            .with_chains(groups_of(facts, &ids)),
        )
    };
    all.into_iter().filter_map(describe).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idle_consumers_are_no_warning_and_queues_behind_a_holder_are() {
        let signal = severity_of(None, 4, false, false);
        assert_eq!(signal, Severity::Info, "consumers wait for a signal");
        assert_eq!(severity_of(Some(1), 1, false, false), Severity::Info);
        assert_eq!(severity_of(Some(4), 1, true, false), Severity::Info);
        assert_eq!(severity_of(Some(1), 2, false, false), Severity::Warning);
        assert_eq!(severity_of(None, 2, true, false), Severity::Warning);
        assert_eq!(severity_of(None, 10, false, false), Severity::Warning);
        assert_eq!(severity_of(None, 1, false, true), Severity::Warning);
    }
}
