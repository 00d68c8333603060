//! The process as tests describe it, and how it becomes a dump.

mod build;

use crate::core_file::{self, Mapped, Status};
use crate::layout::{dac, task, thread};
use crate::library;
use crate::space::Space;
use crate::types::Type;
use crate::world::{Method, World};
use build::Build;
use std::collections::HashMap;

const PROCESS_ID: u32 = 1000;
/// Stacks: first one, how far apart, and bytes of each.
const STACKS: u64 = 0x7ffd_0000_0000;
const STACK_DISTANCE: u64 = 0x10_0000;
const STACK: u64 = 0x1000;
/// From the end of the mapping to the stack pointer.
const STACK_UNUSED: u64 = 0x100;
/// From the stack pointer to the word that names what the thread waits for.
const STACK_WAIT: u64 = 0x80;
/// Bytes of heap that the main thread has reserved for itself and not used.
const RESERVED: u64 = 512;
/// The collector's mark in the MethodTable word of an object.
const MARK: u64 = 1;
/// What the collector leaves room for at the end of such a stretch.
const RESERVED_TAIL: u64 = 24;

#[derive(Clone, Debug)]
enum Item {
    /// A TaskCompletionSource and its task.
    Source { rooted: bool },
    /// An async method that stands at an await.
    Method {
        name: String,
        state: i32,
        awaits: String,
    },
    /// An async method that has ended.
    Completed { name: String },
    /// What a moving collection leaves of a box: its machine still names the original.
    Copy {
        name: String,
        original: String,
        awaits: String,
    },
    /// A thread that waits for a task.
    Thread { name: String, awaits: String },
    /// Bytes that are no objects.
    Torn { bytes: u64 },
}

/// What a continuation list holds besides its waiters.
#[derive(Clone, Debug, Default)]
struct Scars {
    nulls: usize,
    leftovers: Vec<String>,
}

/// A process in terms of what waits for what.
///
/// Methods are written `Namespace.Type.Method`; the first call of one is known as `Namespace.Type.Method#1`, the next
/// one as `...#2`. What is awaited may be described later.
#[derive(Clone, Debug, Default)]
pub struct Process {
    items: Vec<Item>,
    labels: HashMap<String, usize>,
    calls: HashMap<String, usize>,
    scars: HashMap<String, Scars>,
    /// What a task lists and does not await it: task and call.
    strangers: Vec<(String, String)>,
    /// Calls that no task lists.
    unlisted: Vec<String>,
    collection: Option<Collection>,
}

/// How far a garbage collection has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Collection {
    Marking,
    Moving,
}

impl Process {
    /// A process with a main thread and nothing else.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    fn add(mut self, label: String, item: Item) -> Self {
        let before = self.labels.insert(label, self.items.len());
        assert!(before.is_none(), "a label is used twice");
        self.items.push(item);
        self
    }

    fn add_call(mut self, name: &str, item: Item) -> Self {
        let count = self.calls.entry(name.to_owned()).or_default();
        *count += 1;
        let label = format!("{name}#{count}");
        self.add(label, item)
    }

    /// A TaskCompletionSource that a static field holds, and its task.
    #[must_use]
    pub fn task(self, label: &str) -> Self {
        self.add(label.to_owned(), Item::Source { rooted: true })
    }

    /// A TaskCompletionSource that nothing reaches from outside.
    #[must_use]
    pub fn lost_task(self, label: &str) -> Self {
        self.add(label.to_owned(), Item::Source { rooted: false })
    }

    /// A call of an async method: at the await `state`, running (-1), or with a state that no method has.
    #[must_use]
    pub fn method(self, name: &str, state: i32, awaits: &str) -> Self {
        let item = Item::Method {
            name: name.to_owned(),
            state,
            awaits: awaits.to_owned(),
        };
        self.add_call(name, item)
    }

    /// A call that has ended: its machine is cleared.
    #[must_use]
    pub fn completed(self, name: &str) -> Self {
        let name = name.to_owned();
        self.add_call(&name.clone(), Item::Completed { name })
    }

    /// A second box of a call whose machine names the original: it counts as a call, too.
    #[must_use]
    pub fn copy_of(self, name: &str, original: &str, awaits: &str) -> Self {
        let item = Item::Copy {
            name: name.to_owned(),
            original: original.to_owned(),
            awaits: awaits.to_owned(),
        };
        self.add_call(name, item)
    }

    /// A thread that blocks in `Task.Wait`.
    #[must_use]
    pub fn blocked_thread(self, name: &str, awaits: &str) -> Self {
        let item = Item::Thread {
            name: name.to_owned(),
            awaits: awaits.to_owned(),
        };
        self.add(format!("thread {name}"), item)
    }

    /// Bytes in the middle of the heap that are no objects; a multiple of 8.
    #[must_use]
    pub fn torn(self, bytes: u64) -> Self {
        let label = format!("torn {}", self.items.len());
        self.add(label, Item::Torn { bytes })
    }

    /// Entries of an awaited task's list of waiters that were taken out again.
    #[must_use]
    pub fn removed_waiters(mut self, awaited: &str, count: usize) -> Self {
        self.scars.entry(awaited.to_owned()).or_default().nulls += count;
        self
    }

    /// An object behind the end of an awaited task's list of waiters.
    #[must_use]
    pub fn leftover_waiter(mut self, awaited: &str, label: &str) -> Self {
        let scars = self.scars.entry(awaited.to_owned()).or_default();
        scars.leftovers.push(label.to_owned());
        self
    }

    /// A call in an awaited task's list of waiters that awaits something else, as in a copy of the task that a moving
    /// collection left behind.
    #[must_use]
    pub fn stranger(mut self, awaited: &str, call: &str) -> Self {
        self.strangers.push((awaited.to_owned(), call.to_owned()));
        self
    }

    /// A call that is missing in the list of what it awaits, as when its awaiter names where that is going to be.
    #[must_use]
    pub fn unlisted(mut self, call: &str) -> Self {
        self.unlisted.push(call.to_owned());
        self
    }

    /// A garbage collection has marked all objects as living.
    #[must_use]
    pub fn marking(mut self) -> Self {
        self.collection = Some(Collection::Marking);
        self
    }

    /// A garbage collection moves objects.
    #[must_use]
    pub fn moving(mut self) -> Self {
        self.collection = Some(Collection::Moving);
        self
    }

    /// The bytes of a core of the process.
    ///
    /// # Panics
    /// When a label means nothing.
    #[must_use]
    pub fn build(&self) -> Vec<u8> {
        let mut space = Space::default();
        library::map(&mut space);
        Build::core(self, space)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_process_is_the_same_dump() {
        let build = || {
            let process = Process::new()
                .task("tcs")
                .method("App.First.Run", 0, "tcs")
                .method("App.Second.Run", 0, "tcs")
                .blocked_thread("worker", "App.Second.Run#1");
            process.build()
        };
        assert_eq!(build(), build());
    }

    #[test]
    fn a_large_heap_takes_several_regions() {
        let segments = |process: Process| {
            let core = process.build();
            u16::from_le_bytes([core[56], core[57]])
        };
        let few = segments(Process::new().task("tcs"));
        let many = (0..30_000).fold(Process::new().task("tcs"), |process, _| {
            process.method("App.First.Run", 0, "tcs")
        });
        assert!(segments(many) > few, "a segment for each region");
    }

    #[test]
    #[should_panic(expected = "nothing is called nobody")]
    fn what_is_awaited_must_exist() {
        let _ = Process::new().method("App.First.Run", 0, "nobody").build();
    }
}
