//! Reader/writer locks: who has entered, and who waits.
//!
//! The lock knows its writer by managed thread id and only counts its readers. Each thread has a list of its own of the
//! locks that it has entered, in a thread static: that names the readers.

use super::{Found, ObjectWait, WaitsOn, Way, object};
use crate::threads::{Stacks, ThreadFacts};
use crate::words;
use asynctriage_async_graph::Helper;
use asynctriage_clr::{Lock, Thread};
use asynctriage_dump::Addr;
use rustc_hash::{FxHashMap, FxHashSet};

/// Locks that one thread has entered.
const MAX_ENTERED: usize = 4096;
/// `_writeLockOwnerId` and `_upgradeLockOwnerId` of a lock that nobody has entered in that way.
const NOBODY: u32 = u32::MAX;

/// `ReaderWriterLockSlim._owners`: somebody writes; how many read, the one that may write among them (8.0 to 11.0).
const WRITES: u32 = 1 << 31;
const READERS: u32 = (1 << 28) - 1;

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
    how: Entered,
}

/// For what a thread has entered a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Entered {
    Writing,
    UpgradeableReading,
    Reading,
}

impl Entered {
    /// What it is, and what shows it.
    fn text(self) -> &'static str {
        match self {
            Self::Writing => "entered for writing, by the lock's own field",
            Self::UpgradeableReading => "entered for upgradeable reading, by the lock's own field",
            Self::Reading => "entered for reading, by the thread's own count",
        }
    }
}

impl RwLocks {
    pub(crate) fn read(stacks: Stacks<'_, '_>) -> Self {
        let mut out = Self::default();
        let mut known = Known::default();
        for lock in stacks.graph.helpers(Helper::ReaderWriterLock) {
            let kind = kind_of(stacks, *lock);
            for (field, how) in [
                (Some(kind.writer), Entered::Writing),
                (kind.upgrader, Entered::UpgradeableReading),
            ] {
                let owner = field.and_then(|f| stacks.rt.field_u32(*lock, f));
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
            known.add(stacks, *lock, kind);
        }
        let living = stacks.threads.all.iter().filter(|t| !t.is_dead());
        for thread in living {
            for (kind, list_type) in known.list_types.values() {
                out.add_readers(stacks, thread, kind, *list_type, &known);
            }
        }
        out
    }

    /// Adds the locks that stand in a thread's own list, where `list_type` has that static.
    fn add_readers(
        &mut self,
        stacks: Stacks<'_, '_>,
        thread: &Thread,
        kind: &'static Kind,
        list_type: Addr,
        known: &Known,
    ) {
        for (id, times) in entered(stacks, thread, kind, list_type) {
            let locks = known.by_id.get(&(kind.class, id)).into_iter().flatten();
            for lock in locks.filter(|_| times > 0) {
                self.holds.entry(*lock).or_default().push(Hold {
                    thread: thread.managed_id,
                    times,
                    how: Entered::Reading,
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
                how: hold.how.text(),
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

    /// How many readers a lock counts that no living thread accounts for: they have ended without leaving.
    fn ended_readers(&self, stacks: &Stacks<'_, '_>, lock: Addr, kind: &Kind) -> u32 {
        let owners = stacks.rt.field_u32(lock, "_owners");
        let Some(owners) = owners.filter(|o| o & WRITES == 0 && kind.upgrader.is_some()) else {
            return 0;
        };
        // a reader that the list lacks may live
        if !stacks.threads.is_whole {
            return 0;
        }
        let living = self.owners(lock).len();
        let living = u32::try_from(living).unwrap_or(u32::MAX);
        (owners & READERS).saturating_sub(living)
    }

    /// Those of them that keep others from reading as long as they are inside.
    fn writer(&self, lock: Addr) -> Vec<u32> {
        let holds = self.holds.get(&lock).into_iter().flatten();
        holds
            .filter(|h| h.how == Entered::Writing)
            .map(|h| h.thread)
            .collect()
    }
}

/// The locks by what the lists of threads call them.
#[derive(Default)]
struct Known {
    by_id: FxHashMap<(&'static str, u64), Vec<Addr>>,
    /// By class: the type that has the static.
    list_types: FxHashMap<&'static str, (&'static Kind, Addr)>,
}

impl Known {
    fn add(&mut self, stacks: Stacks<'_, '_>, lock: Addr, kind: &'static Kind) {
        let Some(id) = stacks.rt.field_u64(lock, "_lockID") else {
            return;
        };
        self.by_id.entry((kind.class, id)).or_default().push(lock);
        if !self.list_types.contains_key(kind.class)
            && let Some(list_type) = list_type(stacks, lock, kind)
        {
            self.list_types.insert(kind.class, (kind, list_type));
        }
    }
}

fn list_type(stacks: Stacks<'_, '_>, lock: Addr, kind: &Kind) -> Option<Addr> {
    let rt = stacks.rt;
    let ty = rt.type_of(lock)?;
    let Some(nested) = kind.list_in else {
        return Some(ty.mt);
    };
    let module = rt.module(ty.module);
    let rid = module.metadata.as_ref()?.find_nested_type(ty.rid, nested)?;
    rt.loaded_type(ty.module, rid)
}

/// Which locks a thread has entered for reading, by their numbers, and how often. Entries stay in the list when it has
/// left them; the first one of a number counts.
fn entered(
    stacks: Stacks<'_, '_>,
    thread: &Thread,
    kind: &Kind,
    list_type: Addr,
) -> FxHashMap<u64, u32> {
    let rt = stacks.rt;
    let head = rt.thread_static_addr(thread, list_type, kind.entered);
    let mut entry = head.and_then(|h| rt.memory().ptr(h)?.non_null());
    let mut seen = FxHashSet::default();
    let mut out = FxHashMap::default();
    while let Some(at) = entry.filter(|e| seen.len() < MAX_ENTERED && seen.insert(*e)) {
        let times = rt.field_u32(at, kind.readers);
        if let Some((id, times)) = rt.field_u64(at, kind.lock_id).zip(times) {
            // the old class counts in 16 bits
            out.entry(id).or_insert(times & 0xffff);
        }
        entry = rt.reference(at, kind.next);
    }
    out
}

fn kind_of(stacks: Stacks<'_, '_>, lock: Addr) -> &'static Kind {
    let rt = stacks.rt;
    let is_old = rt.type_of(lock).is_some_and(|t| rt.is_a(t.mt, OLD.class));
    if is_old { &OLD } else { &SLIM }
}

impl Stacks<'_, '_> {
    /// How many of these threads have ended.
    fn ended(&self, ids: &[u32]) -> u32 {
        let ended = ids.iter().filter(|id| self.threads.has_ended(**id)).count();
        u32::try_from(ended).unwrap_or(u32::MAX)
    }

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
            .filter_map(|f| f.name.strip_prefix(kind.class)?.strip_prefix('.'))
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
        let writes = !writer.is_empty();
        let ended = if writes {
            self.ended(&writer)
        } else {
            locks.ended_readers(self, at, kind)
        };
        let owners = if writer.is_empty() {
            locks.owners(at)
        } else {
            writer
        };
        let mut text = format!("{short} {at} for {mode}");
        if ended > 0 {
            let who = if writes { "writer" } else { "reader" };
            text.push_str(&format!(
                ", which {} inside has not left: its thread has ended",
                words::several(ended.into(), who)
            ));
        }
        Some(ObjectWait {
            owners,
            writes,
            ended,
            on: if mode == "reading" {
                WaitsOn::Read
            } else {
                WaitsOn::Write
            },
            ..object(at, text, found)
        })
    }
}
