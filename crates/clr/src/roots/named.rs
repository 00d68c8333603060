//! Roots with what they are, for who asks why an object lives.

use super::Roots;
use super::handles::HandleKind;
use crate::heap::Heap;
use crate::runtime::Runtime;
use asynctriage_dump::Addr;

/// What keeps an object alive by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum GcRootKind {
    /// A word of a thread's stack, by the thread's place in [`Runtime::threads`]. Whether the method still uses it is not
    /// known.
    Stack(usize),
    /// A register of a thread.
    Register(usize),
    /// The array in which a thread keeps its statics (9.0 and later).
    ThreadStatics(usize),
    /// A handle.
    Handle(HandleKind),
    /// A dependent handle: the object lives while this other one does.
    Dependent(Addr),
    /// The queue of the finalizer thread: the object is dead, its finalizer has yet to run.
    FinalizerQueue,
}

/// A root.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GcRoot {
    /// What it is.
    pub kind: GcRootKind,
    /// The object that it keeps alive, or one that it points into.
    pub object: Addr,
    /// Where the reference stands; `None` for registers and what has no place of its own.
    pub slot: Option<Addr>,
    /// The reference itself: the object, or a place inside it.
    pub word: Addr,
}

impl Runtime<'_> {
    /// The roots one by one. Words of stacks that are no reference are left out; objects with a finalizer that live are no
    /// roots here, as the finalizer alone keeps nothing alive.
    #[must_use]
    pub fn gc_roots(&self, heap: &Heap) -> Vec<GcRoot> {
        let mut out = Vec::new();
        let (threads, _) = self.threads();
        for (index, thread) in threads.iter().enumerate() {
            let words = self.stack_words(thread).filter_map(|(slot, word)| {
                let object = self.object_around(heap, word)?;
                Some(GcRoot {
                    kind: slot.map_or(GcRootKind::Register(index), |_| GcRootKind::Stack(index)),
                    object,
                    slot,
                    word,
                })
            });
            out.extend(words);
            let statics = self.thread_statics(thread.addr);
            let statics = statics.filter(|a| heap.is_object(*a));
            out.extend(statics.map(|object| GcRoot {
                kind: GcRootKind::ThreadStatics(index),
                object,
                slot: None,
                word: object,
            }));
        }
        let handles = self.handles();
        out.extend(handles.iter().filter_map(|h| {
            let (kind, object) = match (h.kind, h.value) {
                (HandleKind::Weak, _) | (HandleKind::Dependent, None) => return None,
                (HandleKind::Dependent, Some(value)) => (GcRootKind::Dependent(h.object), value),
                (kind, _) => (GcRootKind::Handle(kind), h.object),
            };
            heap.is_object(object).then_some(GcRoot {
                kind,
                object,
                slot: Some(h.slot),
                word: object,
            })
        }));
        let mut queue = Roots::default();
        self.add_finalizable(heap, &mut queue);
        out.extend(queue.dead.iter().map(|object| GcRoot {
            kind: GcRootKind::FinalizerQueue,
            object: *object,
            slot: None,
            word: *object,
        }));
        out
    }

    /// The object that a word means: the object itself, or the one that it points into.
    pub(crate) fn object_around(&self, heap: &Heap, word: Addr) -> Option<Addr> {
        if heap.is_object(word) {
            return Some(word);
        }
        let object = heap.object_at_or_before(word)?;
        let ty = self.type_of(object)?;
        let inside = word < object + self.object_size(object, &ty);
        (inside && ty.mt != self.globals.free_mt).then_some(object)
    }
}
