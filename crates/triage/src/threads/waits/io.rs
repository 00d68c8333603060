//! Wait handles, sockets and files that threads wait for.

use super::{Found, MAX_HANDLES, MAX_WAITERS, ObjectWait, WaitsOn, object, plain};
use crate::process::sockets;
use crate::threads::{Stacks, ThreadFacts};
use asynctriage_dump::Addr;
use rustc_hash::FxHashSet;

/// `ThreadWaitInfo._waitSignalState`: from here on the thread waits for nothing (11.0 on Unix).
const NOT_WAITING: u8 = 2;

impl Stacks<'_, '_> {
    /// One handle, or several of `WaitAny` and `WaitAll`.
    pub(super) fn handle_wait(&self, facts: &ThreadFacts, found: &Found) -> Option<ObjectWait> {
        let several = facts.frames.iter().any(|f| {
            f.name
                .starts_with("System.Threading.WaitHandle.WaitMultiple")
        });
        if several {
            return self
                .handles_wait(facts, found)
                .or_else(|| Some(plain("one of several wait handles", found)));
        }
        let mut refused = false;
        let handle = self.object_on_stack(facts, found, "System.Threading.WaitHandle", |h| {
            let waits = self.is_waited_for(facts, h);
            refused |= !waits;
            waits
        });
        let Some(at) = handle else {
            // what it does not wait for is a leftover of an earlier wait
            return (!refused).then(|| plain("a wait handle", found));
        };
        let ty = self.rt.type_of(at);
        let is_event = ty.is_some_and(|t| self.rt.is_a(t.mt, "System.Threading.EventWaitHandle"));
        Some(ObjectWait {
            owners: self.owner_of(at).into_iter().collect(),
            on: if is_event {
                WaitsOn::Event
            } else {
                WaitsOn::Other
            },
            ..object(at, self.handle_text(at), found)
        })
    }

    fn handles_wait(&self, facts: &ThreadFacts, found: &Found) -> Option<ObjectWait> {
        let words = self.rt.stack_words(&facts.thread);
        let near = words
            .filter(|(slot, _)| slot.is_some_and(|s| found.start <= s && s < found.end))
            .map(|(_, word)| word);
        let is_list = |array: &Addr| {
            self.graph.heap.is_object(*array)
                && self
                    .rt
                    .element_type(*array)
                    .is_some_and(|t| self.rt.is_a(t.mt, "System.Threading.WaitHandle"))
        };
        let at = near.into_iter().find(is_list)?;
        let handles = self.rt.vector_references(at, 0, MAX_HANDLES);
        let names: Vec<String> = handles
            .filter(|h| !h.is_null())
            .map(|h| self.handle_text(h))
            .collect();
        let all = facts
            .frames
            .iter()
            .any(|f| f.name.starts_with("System.Threading.WaitHandle.WaitAll"));
        let text = format!(
            "{} {}",
            if all { "all of" } else { "one of" },
            names.join(", ")
        );
        Some(object(at, text, found))
    }

    /// `Mutex 0x… ('name')`.
    fn handle_text(&self, handle: Addr) -> String {
        let name = self.rt.object_type_name(handle);
        let short = name.as_deref().map_or("a wait handle", |n| {
            n.strip_prefix("System.Threading.").unwrap_or(n)
        });
        let named = self
            .waitable(handle)
            .and_then(|w| self.rt.field_text(w, "_name"))
            .map(|n| format!(" ('{n}')"))
            .unwrap_or_default();
        format!("{short} {handle}{named}")
    }

    /// What stands behind a handle where .NET itself keeps it (11.0 on Unix): the handle is one to an object.
    fn waitable(&self, handle: Addr) -> Option<Addr> {
        let safe = self.rt.reference(handle, "_waitHandle")?;
        let value = Addr(self.rt.field_u64(safe, "handle")?).non_null()?;
        let object = self.rt.memory().ptr(value)?;
        let name = self.rt.object_type_name(object)?;
        (self.graph.heap.is_object(object) && name.starts_with("System.Threading.WaitSubsystem+"))
            .then_some(object)
    }

    /// Managed id of the thread that owns a mutex, where .NET itself keeps that (11.0 on Unix).
    fn owner_of(&self, handle: Addr) -> Option<u32> {
        let ownership = self
            .rt
            .reference(self.waitable(handle)?, "_ownershipInfo")?;
        let thread = self.rt.reference(ownership, "_thread")?;
        self.rt
            .field_u32(thread, "_managedThreadId")
            .filter(|id| *id != 0)
    }

    /// Whether the thread stands among the waiters of a handle; where those are not known, nothing speaks against it.
    fn is_waited_for(&self, facts: &ThreadFacts, handle: Addr) -> bool {
        let info = facts
            .thread
            .object
            .and_then(|t| self.rt.reference(t, "_waitInfo"));
        let (Some(info), Some(waitable)) = (info, self.waitable(handle)) else {
            return true;
        };
        if self.rt.field_addr(waitable, "_waitersHead").is_none() {
            // a mutex with a name is waited for in the system, not in that state of its own
            return self.rt.field_u8(info, "_waitSignalState") >= Some(NOT_WAITING);
        }
        let mut seen = FxHashSet::default();
        let mut node = self.rt.reference(waitable, "_waitersHead");
        while let Some(at) = node.filter(|n| seen.len() < MAX_WAITERS && seen.insert(*n)) {
            if self.rt.reference(at, "_waitInfo") == Some(info) {
                return true;
            }
            node = self.rt.reference(at, "_next");
        }
        false
    }

    pub(super) fn socket_wait(&self, facts: &ThreadFacts, found: &Found) -> Option<ObjectWait> {
        let called = |part: &str| facts.frames.iter().any(|f| f.name.contains(part));
        let at = self.object_on_stack(facts, found, "System.Net.Sockets.Socket", |_| true)?;
        let listens = called(".Socket.Accept");
        let what = if listens {
            "the next connection of the listener"
        } else if called("Receive") {
            "data from"
        } else if called("Send") {
            "space to send to"
        } else if called(".Connect") {
            "a connection to"
        } else {
            "the socket to"
        };
        let end = sockets::endpoint(self.rt, at, listens)
            .filter(|e| !e.ends_with(":0"))
            .map(|end| format!("{what} {end}"));
        let unknown = || match listens {
            true => format!("the next connection of a listener (Socket {at})"),
            false => format!("{what} an end that is not known (Socket {at})"),
        };
        Some(ObjectWait {
            brings_work: listens,
            ..object(at, end.unwrap_or_else(unknown), found)
        })
    }

    pub(super) fn file_wait(&self, facts: &ThreadFacts, found: &Found) -> Option<ObjectWait> {
        let type_name = "Microsoft.Win32.SafeHandles.SafeFileHandle";
        let at = self.object_on_stack(facts, found, type_name, |_| true)?;
        // the path may tell what the program keeps to itself
        Some(object(
            at,
            format!("the file of SafeFileHandle {at}"),
            found,
        ))
    }
}
