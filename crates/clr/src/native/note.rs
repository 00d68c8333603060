//! Where managed code has called out of itself, as the runtime notes it on the stack for its garbage collector.

use crate::runtime::Runtime;
use crate::threads::Thread;
use asynctriage_dump::{Addr, Arch};

/// Notes of one thread that are looked at.
const MAX_NOTES: usize = 64;
/// What the list of notes ends with.
const NONE: Addr = Addr(u64::MAX);

/// A call out of managed code.
#[derive(Clone, Copy, Debug)]
pub(super) struct Note {
    /// Where it returns to.
    pub(super) ip: Addr,
    /// Where on the stack that stands.
    pub(super) slot: Addr,
    /// The frame pointer of the method.
    pub(super) frame_pointer: Addr,
    /// Where on the stack the note ends.
    pub(super) end: Addr,
}

impl Runtime<'_> {
    /// The innermost call out of managed code of a thread that is outside of it (x64; such notes were followed on Windows
    /// with 10.0.15, and their fields stand at the same places on Linux with 9.0 to 11.0). `None` when the innermost note
    /// is not that of a call through P/Invoke: what other notes hold is not known.
    pub(super) fn note_of_call(&self, thread: &Thread, start: Addr, end: Addr) -> Option<Note> {
        let (m, t, o) = (
            self.memory,
            &self.offsets.thread,
            &self.offsets.inlined_call,
        );
        let is_outside = m.u32(thread.addr + t.cooperative?)? == 0;
        if self.dump.target.arch != Arch::X64 || !is_outside {
            return None;
        }
        let mut note = m.ptr(thread.addr + t.frame?)?;
        for _ in 0..MAX_NOTES {
            if note == NONE || note >= end {
                return None;
            }
            if note < start {
                note = m.ptr(note + self.offsets.frame.next)?;
                continue;
            }
            // null while the method that has the note calls nothing
            let Some(near) = m.ptr(note + o.return_address)?.non_null() else {
                note = m.ptr(note + self.offsets.frame.next)?;
                continue;
            };
            let slot = m.ptr(note + o.call_site)?.back(8);
            let call = Note {
                ip: m.ptr(slot)?,
                slot,
                frame_pointer: m.ptr(note + o.frame_pointer)?,
                end: note + o.frame_pointer + 8,
            };
            // the note is a variable of the method, above the call; the instruction that it names stands a little
            // before the one that the call returns to (10.0.15)
            let code = self.code_at(call.ip.back(1))?;
            let is_same = self.code_at(near)?.start == code.start;
            return (is_same && start <= slot && slot < note).then_some(call);
        }
        None
    }
}
