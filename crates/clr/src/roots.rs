//! Roots of the garbage collector: everything that keeps objects alive.

mod finalizers;
mod handles;
mod named;

pub use handles::HandleKind;
pub use named::{GcRoot, GcRootKind};

use crate::heap::{Heap, SegmentKind};
use crate::runtime::Runtime;
use asynctriage_dump::Addr;

/// What keeps objects alive, and what of it could not be read.
#[derive(Clone, Debug, Default)]
pub struct Roots {
    /// What keeps an object alive by itself. May hold words that are no object, and places inside objects.
    pub strong: Vec<Addr>,
    /// Those of them that are dead and stand in the finalizer thread's queue.
    pub(crate) dead: Vec<Addr>,
    /// Dependent handles, by which `ConditionalWeakTable` keeps its values: the second lives while the first does.
    pub dependent: Vec<(Addr, Addr)>,
    /// How many there are.
    pub counts: RootCounts,
    /// Kinds of roots that are not all known. What seems unreachable may then be reachable.
    pub missing: Vec<&'static str>,
}

/// How many roots there are of some kinds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RootCounts {
    /// Threads whose stack and registers were taken.
    pub stacks: u64,
    /// Handles that are not weak.
    pub handles: u64,
    /// Objects with a finalizer that has yet to run.
    pub finalizable: u64,
    /// Those of them that are dead already and stand in the finalizer thread's queue.
    pub to_finalize: u64,
}

impl Runtime<'_> {
    /// Everything that keeps objects alive: stacks and registers, handles that are not weak, pinned arrays (statics live
    /// in them), the frozen heap, thread statics, and objects whose finalizer has yet to run: it may use what they refer
    /// to, so nothing that it reaches is lost.
    #[must_use]
    pub fn roots(&self, heap: &Heap) -> Roots {
        let mut roots = Roots::default();
        self.add_threads(&mut roots);
        self.add_handles(heap, &mut roots);
        self.add_finalizable(heap, &mut roots);
        let permanent = heap
            .shape
            .segments
            .iter()
            .enumerate()
            .filter(|(_, s)| matches!(s.kind, SegmentKind::Frozen | SegmentKind::Pinned));
        roots
            .strong
            .extend(permanent.flat_map(|(i, _)| heap.objects_in(i)));
        roots
    }

    fn add_threads(&self, roots: &mut Roots) {
        let (threads, gap) = self.threads();
        let mut whole = gap.is_none();
        for thread in threads {
            roots
                .strong
                .extend(self.stack_words(thread).map(|(_, word)| word));
            roots.strong.extend(self.thread_statics(thread.addr));
            if thread.stack.is_some() {
                roots.counts.stacks = roots.counts.stacks.saturating_add(1);
            } else if !thread.is_dead() && !thread.is_unstarted() {
                whole = false;
            }
        }
        if !whole {
            roots.missing.push("the stacks of some threads");
        }
    }

    /// The array that the thread's statics live in (9.0 and later; 8.0 keeps it in a handle).
    fn thread_statics(&self, thread: Addr) -> Option<Addr> {
        let data = self
            .memory
            .ptr(thread + self.offsets.thread.tls?)?
            .non_null()?;
        self.memory
            .ptr(
                data + self
                    .layout()
                    .get("ThreadLocalData", "NonCollectibleTlsArrayData")?,
            )?
            .non_null()
    }
}
