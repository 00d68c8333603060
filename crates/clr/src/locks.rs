//! Locks: who holds them, how many wait, and what a thread blocks on.
//!
//! Up to 10.0 `Monitor` is native: a thin lock in the object's header, or a sync block with an AwareLock; what a thread
//! blocks on stands in a DebugBlockingItem on its stack. From 11.0 on a contended monitor is a managed
//! `System.Threading.Lock` behind the sync block, and what a thread blocks on stands in a managed `ThreadBlockingInfo`
//! (since 9.0, for `System.Threading.Lock` itself).

use crate::runtime::Runtime;
use crate::threads::Thread;
use asynctriage_dump::Addr;

/// The word in front of an object (8.0 to 11.0).
mod header {
    /// Set: a sync block index or a hash code; clear: a thin lock.
    pub(super) const IS_INDEX_OR_HASH: u32 = 0x0800_0000;
    pub(super) const IS_HASH: u32 = 0x0400_0000;
    pub(super) const INDEX: u32 = 0x03ff_ffff;
    pub(super) const OWNER: u32 = 0xffff;
    pub(super) const RECURSION_SHIFT: u32 = 16;
    pub(super) const RECURSION: u32 = 0x3f;
}

/// AwareLock.State (8.0 to 10.0) and `Lock._state` (9.0 to 11.0).
mod state {
    pub(super) const LOCKED: u32 = 1;
    pub(super) const NATIVE_WAITERS_SHIFT: u32 = 6;
    pub(super) const MANAGED_WAITERS_SHIFT: u32 = 7;
}

/// Entries of the sync table that are looked at.
const MAX_SYNC_BLOCKS: u64 = 1 << 22;
/// Blocking items of one thread, innermost first; waits nest only where a wait pumps.
const MAX_ITEMS: usize = 16;
/// Entries of `g_dacTable` before and behind the expected one that may be the sync table.
const TABLE_DRIFT: u64 = 8;
/// Entries of the sync table of which one must be in use to prove that it is the table.
const TABLE_PROOF: u64 = 64;
/// Where the index of a sync block stands in it (8.0 to 10.0).
const SYNC_INDEX: u64 = 28;
/// The handle of `SyncBlock.Lock` has flags in its low bits (11.0).
const HANDLE_FLAGS: u64 = 7;

/// A lock as it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lock {
    /// The sync block, the `System.Threading.Lock` object, or the object whose header holds a thin lock.
    pub at: Addr,
    /// The object that was locked; `None` when the sync table does not tell.
    pub object: Option<Addr>,
    /// Managed id of the thread that holds it; [`Lock::OF_NO_THREAD`] when that is none of the process's threads.
    pub owner: Option<u32>,
    /// How often the owner entered it beyond the first time.
    pub recursion: u32,
    /// Threads that wait to enter, as the lock counts them.
    pub waiters: u32,
    /// Which of the runtime's representations it was read from.
    pub how: &'static str,
}

impl Lock {
    /// The managed id that no thread has: of an owner that is known by the id of an operating-system thread which the
    /// runtime's list of threads lacks.
    pub const OF_NO_THREAD: u32 = u32::MAX;
}

/// What a thread does with the lock that it blocks on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BlockKind {
    /// It wants to enter it.
    Enter,
    /// It waits for a pulse: `Monitor.Wait`, and everything that is built on it.
    Wait,
}

/// What a thread blocks on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block {
    /// What it wants.
    pub kind: BlockKind,
    /// The lock, or the lock that the condition belongs to.
    pub lock: Lock,
    /// Milliseconds that it will wait at most; `None` without a limit.
    pub timeout_ms: Option<u32>,
    /// The item on its stack that says so.
    pub at: Addr,
    /// What that item is.
    pub how: &'static str,
}

impl Runtime<'_> {
    /// The thin lock in an object's header: managed id of the owner and recursion.
    #[must_use]
    pub fn thin_lock(&self, object: Addr) -> Option<Lock> {
        let (owner, recursion) = thin(self.memory.u32(object.back(4))?)?;
        Some(Lock {
            at: object,
            object: Some(object),
            owner: Some(owner),
            recursion,
            waiters: 0,
            how: "thin lock in the object's header",
        })
    }

    /// Every lock that stands in a sync block: those that were contended once.
    #[must_use]
    pub fn sync_locks(&self) -> Vec<Lock> {
        let mut out = Vec::new();
        let Some(table) = self.sync_table() else {
            return out;
        };
        for index in 1..MAX_SYNC_BLOCKS {
            let Some((block, object)) = self.sync_entry(table, index) else {
                break;
            };
            if block.is_null() && object.is_null() {
                break;
            }
            // free entries are linked through the object column, bit 0 set
            if self.owns_index(object, index) {
                out.extend(self.sync_lock(block, Some(object)));
            }
        }
        out
    }

    /// A `System.Threading.Lock` (9.0 and later).
    #[must_use]
    pub fn managed_lock(&self, lock: Addr) -> Option<Lock> {
        let state = self.field_u32(lock, "_state")?;
        let owner = self.field_u32(lock, "_owningThreadId")?;
        Some(Lock {
            at: lock,
            object: Some(lock),
            owner: (state & state::LOCKED != 0)
                .then(|| self.lock_owner(owner))
                .flatten(),
            recursion: self.field_u32(lock, "_recursionCount").unwrap_or(0),
            waiters: state >> state::MANAGED_WAITERS_SHIFT,
            how: "System.Threading.Lock",
        })
    }

    /// `Lock._owningThreadId` is the managed id in 11.0, the operating system's in 9.0 and 10.0.
    fn lock_owner(&self, id: u32) -> Option<u32> {
        if self.layout().get("Facts", "LockOwnerIsManagedId").is_some() {
            return Some(id).filter(|id| *id != 0);
        }
        let (m, o) = (self.memory, &self.offsets.thread);
        let threads = self.native_threads().threads;
        let owner = threads
            .into_iter()
            .find(|t| m.u32(*t + o.os_id) == Some(id));
        match owner {
            Some(owner) => m.u32(owner + o.id),
            None => (id != 0).then_some(Lock::OF_NO_THREAD),
        }
    }

    /// What a thread blocks on, the innermost wait first.
    #[must_use]
    pub fn blocked_on(&self, thread: &Thread) -> Option<Block> {
        self.native_block(thread)
            .or_else(|| self.managed_block(thread))
    }

    /// DebugBlockingItem (8.0 to 10.0).
    fn native_block(&self, thread: &Thread) -> Option<Block> {
        let (m, l) = (self.memory, self.layout());
        let field = |name| l.get("DebugBlockingItem", name);
        let item = m
            .ptr(thread.addr + l.get("Thread", "DebugBlockingItem")?)?
            .non_null()?;
        // the AppDomain is the same in every item: it shows that this is one
        if m.ptr(item + field("AppDomain")?)? != self.globals.app_domain {
            return None;
        }
        let kind = match m.u32(item + field("Type")?)? {
            0 => BlockKind::Enter,
            1 => BlockKind::Wait,
            _ => return None,
        };
        let block = m.ptr(item + field("Monitor")?)?.non_null()?;
        Some(Block {
            kind,
            lock: self.sync_lock(block, self.object_of_sync_block(block))?,
            timeout_ms: limit(m.u32(item + field("Timeout")?)?),
            at: item,
            how: "DebugBlockingItem of the thread",
        })
    }

    /// `ThreadBlockingInfo.t_first` (9.0 and later).
    fn managed_block(&self, thread: &Thread) -> Option<Block> {
        let m = self.memory;
        let mt = self.core_type("System.Threading", "ThreadBlockingInfo")?;
        let ty = self.ty(mt)?;
        let at = |item: Addr, name: &str| Some(item + self.instance_field(&ty, name)?.offset);
        let mut item = m
            .ptr(self.thread_static_addr(thread, mt, "t_first")?)?
            .non_null()?;
        for _ in 0..MAX_ITEMS {
            // the first field points at the variable that holds the object
            let object = m.ptr(m.ptr(at(item, "_objectPtr")?)?)?.non_null()?;
            let found = match m.u32(at(item, "_objectKind")?)? {
                2 => Some((BlockKind::Enter, object)),
                3 => self
                    .reference(object, "_lock")
                    .map(|lock| (BlockKind::Wait, lock)),
                _ => None,
            };
            if let Some((kind, lock)) = found {
                let mut lock = self.managed_lock(lock)?;
                lock.object = self.object_of_lock(lock.at).or(lock.object);
                return Some(Block {
                    kind,
                    lock,
                    timeout_ms: limit(m.u32(at(item, "_timeoutMs")?)?),
                    at: item,
                    how: "ThreadBlockingInfo of the thread",
                });
            }
            item = m.ptr(at(item, "_next")?)?.non_null()?;
        }
        None
    }

    /// The object whose monitor a `System.Threading.Lock` is (11.0).
    fn object_of_lock(&self, lock: Addr) -> Option<Addr> {
        self.layout().get("SyncBlock", "Lock")?;
        self.sync_locks()
            .into_iter()
            .find(|l| l.at == lock)
            .and_then(|l| l.object)
    }

    /// State and owner of the lock in a sync block.
    fn sync_lock(&self, block: Addr, object: Option<Addr>) -> Option<Lock> {
        let (m, l) = (self.memory, self.layout());
        let field = |name| l.get("SyncBlock", name);
        if let Some(handle) = field("Lock") {
            let handle = m.ptr(block + handle)?.without(HANDLE_FLAGS).non_null()?;
            let mut lock = self.managed_lock(m.ptr(handle)?.non_null()?)?;
            lock.object = object;
            lock.how = "System.Threading.Lock behind the object's sync block";
            return Some(lock);
        }
        let state = m.u32(block + field("State")?)?;
        let owner = match (field("OwnerManagedId"), field("OwnerThread")) {
            (Some(id), _) => m.u32(block + id),
            (None, Some(thread)) => m
                .ptr(block + thread)
                .and_then(Addr::non_null)
                .and_then(|t| m.u32(t + self.offsets.thread.id)),
            (None, None) => None,
        };
        Some(Lock {
            at: block,
            object,
            owner: owner.filter(|id| *id != 0 && state & state::LOCKED != 0),
            recursion: m.u32(block + field("Recursion")?)?.saturating_sub(1),
            waiters: state >> state::NATIVE_WAITERS_SHIFT,
            how: "sync block of the object",
        })
    }

    fn object_of_sync_block(&self, block: Addr) -> Option<Addr> {
        let index = u64::from(self.memory.u32(block + SYNC_INDEX)? & header::INDEX);
        let (of, object) = self.sync_entry(self.sync_table()?, index)?;
        (of == block && self.owns_index(object, index)).then_some(object)
    }

    /// The sync table: at its index in `g_dacTable` or near it, as servicing releases have moved the tail of that table
    /// (80 instead of 79 in 8.0.34).
    fn sync_table(&self) -> Option<Addr> {
        let m = self.memory;
        let expected = self.layout().dac_index("SyncTableEntries")?;
        let near = expected.saturating_sub(TABLE_DRIFT)..=expected.saturating_add(TABLE_DRIFT);
        let candidates = std::iter::once(expected).chain(near);
        let tables = candidates.filter_map(|i| {
            m.ptr(m.ptr(self.globals.dac_table.element(i, 8))?)?
                .non_null()
        });
        let mut fitting = tables.filter(|table| {
            (1..=TABLE_PROOF).any(|i| {
                self.sync_entry(*table, i)
                    .is_some_and(|(_, object)| self.owns_index(object, i))
            })
        });
        fitting.next()
    }

    /// An entry of the sync table, in use or not: sync block and object.
    fn sync_entry(&self, table: Addr, index: u64) -> Option<(Addr, Addr)> {
        let (m, l) = (self.memory, self.layout());
        let entry = table.element(index, l.get("SyncTableEntry", "Size")?);
        let object = l.get("SyncTableEntry", "Object").unwrap_or(8);
        Some((m.ptr(entry)?, m.ptr(entry + object)?))
    }

    /// Whether an object's header names this entry of the sync table: a wrong table cannot pass.
    fn owns_index(&self, object: Addr, index: u64) -> bool {
        let word = object
            .non_null()
            .filter(|o| o.0 & 7 == 0)
            .and_then(|o| self.memory.u32(o.back(4)));
        word.is_some_and(|w| {
            w & (header::IS_INDEX_OR_HASH | header::IS_HASH) == header::IS_INDEX_OR_HASH
                && u64::from(w & header::INDEX) == index
        })
    }
}

/// Owner and recursion of a thin lock, from the word in front of the object; `None` when it is not locked that way.
fn thin(word: u32) -> Option<(u32, u32)> {
    let owner = word & header::OWNER;
    let recursion = word >> header::RECURSION_SHIFT & header::RECURSION;
    (word & header::IS_INDEX_OR_HASH == 0 && owner != 0).then_some((owner, recursion))
}

/// All ones mean that there is no limit.
fn limit(ms: u32) -> Option<u32> {
    (ms != u32::MAX).then_some(ms)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_is_a_thin_lock_only_when_it_says_so() {
        assert_eq!(thin(0x0003_0005), Some((5, 3)));
        assert_eq!(thin(0x0000_ffff), Some((65535, 0)), "ids take all 16 bits");
        assert_eq!(thin(0), None, "free");
        assert_eq!(thin(0x0800_0005), None, "sync block 5");
        assert_eq!(thin(0x0c12_3456), None, "a hash code");
        assert_eq!(
            thin(0x2000_0007),
            Some((7, 0)),
            "bits of the collector do not count"
        );
    }

    #[test]
    fn all_ones_are_no_limit() {
        assert_eq!(limit(u32::MAX), None);
        assert_eq!(limit(250), Some(250));
    }
}
