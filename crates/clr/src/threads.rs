//! Managed threads and their stacks.

use crate::gap::{Gap, GapKind};
use crate::runtime::Runtime;
use asynctriage_dump::{Addr, Os, ThreadSnapshot};
use rustc_hash::FxHashSet;

/// More threads than any process has.
const MAX_THREADS: usize = 1 << 17;
/// Bytes of one stack that are searched for references.
const MAX_STACK: u64 = 64 << 20;

/// Bits of Thread.State (8.0 to 11.0).
mod state {
    pub(super) const BACKGROUND: u32 = 0x200;
    pub(super) const UNSTARTED: u32 = 0x400;
    pub(super) const DEAD: u32 = 0x800;
    pub(super) const POOL_WORKER: u32 = 0x0100_0000;
    pub(super) const IN_WAIT: u32 = 0x0200_0000;
}

/// A managed thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Thread {
    /// The native Thread structure.
    pub addr: Addr,
    /// Thread id of the operating system; 0 when the thread is dead or not started.
    pub os_id: u32,
    /// Managed thread id.
    pub managed_id: u32,
    /// The System.Threading.Thread object.
    pub object: Option<Addr>,
    /// Its name.
    pub name: Option<String>,
    /// Thread.State as it stands.
    pub state: u32,
    /// Whether it is the thread that the process began with: on Linux it has the number of the process, in minidumps it
    /// is the first one. The managed number tells nothing: on Windows it is 2 since 9.0.
    pub is_main: bool,
    /// The part of the stack in use: from the stack pointer to the base.
    pub stack: Option<(Addr, Addr)>,
}

impl Thread {
    /// Whether the thread has ended.
    #[must_use]
    pub fn is_dead(&self) -> bool {
        self.state & state::DEAD != 0
    }

    /// Whether the thread was made but not started.
    #[must_use]
    pub fn is_unstarted(&self) -> bool {
        self.state & state::UNSTARTED != 0
    }

    /// Whether the thread does not keep the process alive.
    #[must_use]
    pub fn is_background(&self) -> bool {
        self.state & state::BACKGROUND != 0
    }

    /// Whether the runtime marked it as a thread of the pool; the pool's gate thread has the mark too.
    #[must_use]
    pub fn is_pool(&self) -> bool {
        self.state & state::POOL_WORKER != 0
    }

    /// Whether it blocks in a wait, sleep or join.
    #[must_use]
    pub fn in_wait(&self) -> bool {
        self.state & state::IN_WAIT != 0
    }
}

/// The native thread list.
pub(crate) struct NativeThreads {
    pub(crate) threads: Vec<Addr>,
    pub(crate) gap: Option<Gap>,
}

impl<'d> Runtime<'d> {
    /// What the dump says of a thread by the id that the system gave it.
    pub(crate) fn snapshot(&self, os_id: u32) -> Option<&'d ThreadSnapshot> {
        let threads = &self.dump.threads;
        let read = || {
            let ids = threads.iter().enumerate().map(|(i, t)| (t.id, i));
            // of two with one id the first counts
            ids.rev().collect()
        };
        let index = *self.snapshots.get_or_init(read).get(&os_id)?;
        threads.get(index).filter(|_| os_id != 0)
    }
}

impl Runtime<'_> {
    pub(crate) fn native_threads(&self) -> NativeThreads {
        let (m, s, t) = (
            self.memory,
            &self.offsets.thread_store,
            &self.offsets.thread,
        );
        let store = self.globals.thread_store;
        // 11.0 links Threads; before, the links point at the link field inside them
        let back = if self
            .layout()
            .get("Facts", "ThreadLinksAreThreads")
            .is_some()
        {
            0
        } else {
            t.link
        };
        let mut seen = FxHashSet::default();
        let mut threads = Vec::new();
        let mut link = m.ptr(store + s.first);
        while let Some(at) = link
            .and_then(Addr::non_null)
            .filter(|a| threads.len() < MAX_THREADS && seen.insert(*a))
        {
            let thread = at.back(back);
            threads.push(thread);
            link = m.ptr(thread + t.link);
        }
        let expected = m
            .u32(store + s.count)
            .and_then(|c| usize::try_from(c).ok())
            .unwrap_or(0);
        let gap = (expected != threads.len()).then(|| Gap {
            kind: GapKind::ThreadList,
            place: format!("thread list at {store}"),
            why: format!(
                "the runtime counts {expected} threads, the list has {}",
                threads.len()
            ),
            remedy:
                "the dump may be cut off; check that the disk did not fill up while it was written"
                    .into(),
        });
        NativeThreads { threads, gap }
    }

    /// All managed threads, dead ones that are still listed included, and what is wrong with the list.
    #[must_use]
    pub fn threads(&self) -> (&[Thread], Option<&Gap>) {
        let read = || {
            let native = self.native_threads();
            let threads = native.threads.into_iter();
            let threads = threads.filter_map(|t| self.read_thread(t));
            (threads.collect(), native.gap)
        };
        let (threads, gap) = self.all_threads.get_or_init(read);
        (threads, gap.as_ref())
    }

    fn read_thread(&self, addr: Addr) -> Option<Thread> {
        let (m, o) = (self.memory, &self.offsets.thread);
        let object = m
            .ptr(addr + o.exposed)
            .and_then(Addr::non_null)
            .and_then(|handle| m.ptr(handle))
            .and_then(Addr::non_null);
        let os_id = m.u32(addr + o.os_id)?;
        Some(Thread {
            addr,
            os_id,
            managed_id: m.u32(addr + o.id)?,
            object,
            name: object
                .and_then(|t| self.field_text(t, "_name"))
                .or_else(|| self.system_name(os_id)),
            state: m.u32(addr + o.state)?,
            is_main: os_id != 0 && self.main_id() == Some(os_id),
            stack: self.stack_of(addr, os_id),
        })
    }

    fn main_id(&self) -> Option<u32> {
        match self.dump.target.os {
            Os::Linux => self.dump.process.pid,
            Os::Windows => self.dump.threads.first().map(|t| t.id),
        }
    }

    /// The name that the system knows the thread by: Windows keeps those that the runtime gives to its own threads.
    fn system_name(&self, os_id: u32) -> Option<String> {
        self.snapshot(os_id)?.name.clone()
    }

    fn stack_of(&self, thread: Addr, os_id: u32) -> Option<(Addr, Addr)> {
        let snapshot = self.snapshot(os_id)?;
        let sp = snapshot.registers.sp();
        let readable = sp + self.memory.run(sp).min(MAX_STACK);
        let base = self
            .offsets
            .thread
            .stack_base
            .and_then(|f| self.memory.ptr(thread + f))
            .filter(|b| *b > sp);
        let end = base.map_or(readable, |b| b.min(readable));
        (end > sp).then_some((sp.without(7), end))
    }

    /// The words of a thread's stack and registers, with the address that each stack word stands at.
    pub fn stack_words<'r>(
        &'r self,
        thread: &Thread,
    ) -> impl Iterator<Item = (Option<Addr>, Addr)> + 'r {
        let registers = self
            .snapshot(thread.os_id)
            .map(|t| t.registers.all().collect::<Vec<_>>())
            .unwrap_or_default();
        let (start, end) = thread.stack.unwrap_or_default();
        let bytes = self
            .memory
            .slice(start, end.since(start).unwrap_or(0))
            .unwrap_or_default();
        let words = bytes.as_chunks::<8>().0.iter().enumerate();
        let stack = words.map(move |(i, w)| {
            (
                Some(start.element(i as u64, 8)),
                Addr(u64::from_le_bytes(*w)),
            )
        });
        registers
            .into_iter()
            .map(|value| (None, Addr(value)))
            .chain(stack)
    }
}
