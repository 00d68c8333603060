//! Reader/writer locks: who has entered, and who waits.
//!
//! The lock knows its writer by managed thread id and only counts its readers. Each thread has a list of its own of the
//! locks that it has entered, in a thread static: that names the readers.

use super::{Found, ObjectWait, Way, object};
use crate::analysis::Analysis;
use crate::hang::ThreadFacts;
use asynctriage_async_graph::Helper;
use asynctriage_clr::{Lock, Thread};
use asynctriage_dump::Addr;
use rustc_hash::{FxHashMap, FxHashSet};

/// Locks that one thread has entered.
const MAX_ENTERED: usize = 4096;
/// `_writeLockOwnerId` and `_upgradeLockOwnerId` of a lock that nobody has entered in that way.
const NOBODY: u32 = u32::MAX;

/// The two classes, and where their threads keep what they have entered (8.0 to 11.0).
struct Kind {
    class: &'static str,
    writer: &'static str,
    upgrader: Option<&'static str>,
    entered: &'static str,
    /// The nested class that has that static, when it is not the lock's own.
    list_in: Option<&'static str>,
    lock_id: &'static str,
    readers: &'static str,
    next: &'static str,
}

const SLIM: Kind = Kind {
    class: "System.Threading.ReaderWriterLockSlim",
    writer: "_writeLockOwnerId",
    upgrader: Some("_upgradeLockOwnerId"),
    entered: "t_rwc",
    list_in: None,
    lock_id: "lockID",
    readers: "readercount",
    next: "next",
};
const OLD: Kind = Kind {
    class: "System.Threading.ReaderWriterLock",
    writer: "_writerID",
    upgrader: None,
    entered: "t_lockEntryHead",
    list_in: Some("ThreadLocalLockEntry"),
    lock_id: "_lockID",
    readers: "_readerLevel",
    next: "_next",
};

/// All reader/writer locks that somebody has entered.
#[derive(Debug, Default)]
pub(crate) struct RwLocks {
    /// By lock: how threads hold it.
    holds: FxHashMap<Addr, Vec<Hold>>,
}

#[derive(Clone, Debug)]
struct Hold {
    /// Managed id of the thread.
    thread: u32,
    times: u32,
    how: &'static str,
}

impl RwLocks {
    pub(crate) fn read(analysis: &Analysis<'_, '_>) -> Self {
        let mut out = Self::default();
        let mut by_id: FxHashMap<u64, Vec<Addr>> = FxHashMap::default();
        for lock in analysis.graph.helpers(Helper::ReaderWriterLock) {
            let kind = kind_of(analysis, *lock);
            for (field, how) in [
                (
                    Some(kind.writer),
                    "entered for writing, by the lock's own field",
                ),
                (
                    kind.upgrader,
                    "entered for upgradeable reading, by the lock's own field",
                ),
            ] {
                let owner = field.and_then(|f| analysis.rt.field_u32(*lock, f));
                // the old class has 0 where nobody writes
                if let Some(thread) = owner.filter(|id| *id != NOBODY && *id != 0) {
                    let holds = out.holds.entry(*lock).or_default();
                    holds.push(Hold {
                        thread,
                        times: 1,
                        how,
                    });
                }
            }
            if let Some(id) = analysis.rt.field_u64(*lock, "_lockID") {
                by_id.entry(id).or_default().push(*lock);
            }
        }
        if by_id.is_empty() {
            return out;
        }
        let living = analysis.threads.all.iter().filter(|t| !t.is_dead());
        for thread in living {
            out.add_readers(analysis, thread, &by_id);
        }
        out
    }

    fn add_readers(
        &mut self,
        analysis: &Analysis<'_, '_>,
        thread: &Thread,
        by_id: &FxHashMap<u64, Vec<Addr>>,
    ) {
        for (lock, kind) in by_id
            .values()
            .flatten()
            .map(|l| (*l, kind_of(analysis, *l)))
        {
            let times = readers_of(analysis, thread, lock, kind);
            if let Some(times) = times.filter(|n| *n > 0) {
                let holds = self.holds.entry(lock).or_default();
                holds.push(Hold {
                    thread: thread.managed_id,
                    times,
                    how: "entered for reading, by the thread's own count",
                });
            }
        }
    }

    /// The locks that a thread has entered.
    pub(crate) fn held_by(&self, thread: u32) -> Vec<Lock> {
        let mut out: Vec<Lock> = self
            .holds
            .iter()
            .flat_map(|(at, holds)| holds.iter().map(move |h| (*at, h)))
            .filter(|(_, h)| h.thread == thread)
            .map(|(at, hold)| Lock {
                at,
                object: Some(at),
                owner: Some(thread),
                recursion: hold.times.saturating_sub(1),
                waiters: 0,
                how: hold.how,
            })
            .collect();
        out.sort_unstable_by_key(|l| (l.at, l.how));
        out
    }

    /// Managed ids of the threads that have entered a lock.
    fn owners(&self, lock: Addr) -> Vec<u32> {
        let mut out: Vec<u32> = self
            .holds
            .get(&lock)
            .into_iter()
            .flatten()
            .map(|h| h.thread)
            .collect();
        out.sort_unstable();
        out.dedup();
        out
    }

    /// Those of them that keep others from reading as long as they are inside.
    fn writer(&self, lock: Addr) -> Vec<u32> {
        let holds = self.holds.get(&lock).into_iter().flatten();
        holds
            .filter(|h| h.how.starts_with("entered for writing"))
            .map(|h| h.thread)
            .collect()
    }
}

/// How often a thread has entered a lock for reading.
fn readers_of(
    analysis: &Analysis<'_, '_>,
    thread: &Thread,
    lock: Addr,
    kind: &Kind,
) -> Option<u32> {
    let rt = analysis.rt;
    let id = rt.field_u64(lock, "_lockID")?;
    let ty = rt.type_of(lock)?;
    let mt = match kind.list_in {
        Some(nested) => {
            let module = rt.module(ty.module);
            let rid = module.metadata.as_ref()?.find_nested_type(ty.rid, nested)?;
            rt.loaded_type(ty.module, rid)?
        }
        None => ty.mt,
    };
    let head = rt.thread_static_addr(thread, mt, kind.entered)?;
    let mut entry = rt.memory().ptr(head)?.non_null();
    let mut seen = FxHashSet::default();
    while let Some(at) = entry.filter(|e| seen.len() < MAX_ENTERED && seen.insert(*e)) {
        if rt.field_u64(at, kind.lock_id) == Some(id) {
            // the old class counts in 16 bits
            return rt.field_u32(at, kind.readers).map(|n| n & 0xffff);
        }
        entry = rt.reference(at, kind.next);
    }
    None
}

fn kind_of(analysis: &Analysis<'_, '_>, lock: Addr) -> &'static Kind {
    let is_old = analysis
        .rt
        .object_type_name(lock)
        .is_some_and(|n| &*n == OLD.class);
    if is_old { &OLD } else { &SLIM }
}

impl Analysis<'_, '_> {
    pub(super) fn rw_wait(
        &self,
        facts: &ThreadFacts,
        found: &Found,
        locks: &RwLocks,
    ) -> Option<ObjectWait> {
        let kind = if found.way == Way::RwOld { &OLD } else { &SLIM };
        let methods: Vec<&str> = facts
            .frames
            .iter()
            .filter_map(|(_, n)| n.strip_prefix(kind.class)?.strip_prefix('.'))
            .collect();
        let called = |part: &str| methods.iter().any(|m| m.contains(part));
        let (mode, counter) = if called("EnterUpgradeableRead") {
            ("upgradeable reading", "_numUpgradeWaiters")
        } else if called("WriteLock") || called("WriterLock") {
            ("writing", "_numWriteWaiters")
        } else {
            ("reading", "_numReadWaiters")
        };
        // who upgrades is counted elsewhere; the old class does not count in fields
        let waits = |lock: Addr| {
            [counter, "_numWriteUpgradeWaiters"]
                .iter()
                .filter_map(|f| self.rt.field_u32(lock, f))
                .any(|n| n > 0)
                || kind.upgrader.is_none()
        };
        let at = self.object_on_stack(facts, found, kind.class, waits)?;
        let short = kind.class.trim_start_matches("System.Threading.");
        let writer = locks.writer(at);
        let owners = if writer.is_empty() {
            locks.owners(at)
        } else {
            writer
        };
        Some(ObjectWait {
            owners,
            ..object(at, format!("{short} {at} for {mode}"), found)
        })
    }
}
