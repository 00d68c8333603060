//! Where managed code has been left, as the runtime notes it on the stack: its explicit Frames (x64).

use crate::runtime::Runtime;
use crate::threads::Thread;
use asynctriage_dump::{Addr, Arch, Os};

/// Notes of one thread that are looked at.
const MAX_NOTES: usize = 1024;
/// What the list of notes ends with.
const NONE: Addr = Addr(u64::MAX);
/// Distances from what a hijacked method's stub has pushed to the address that the method returns to: three values that
/// it may return, and six registers, the frame pointer last (80 and 72 were seen; fewer values before 10.0).
const PUSHED: [u64; 5] = [56, 64, 72, 80, 88];

/// A place that managed code goes on at.
#[derive(Clone, Copy, Debug)]
pub(super) struct Note {
    /// Where it goes on.
    pub(super) ip: Addr,
    /// Where on the stack that stands.
    pub(super) slot: Addr,
    /// The frame pointer of the method.
    pub(super) frame_pointer: Addr,
    /// Where on the stack the note ends.
    pub(super) end: Addr,
}

/// A call out of managed code.
#[derive(Clone, Copy, Debug)]
pub(super) struct Call {
    pub(super) note: Note,
    /// Whether nothing but calls of native code has happened since: no note of another kind stands below.
    pub(super) is_innermost: bool,
}

/// A method whose return address the runtime has replaced, to stop its thread for a collection. The stub that it returned
/// to made room for the address and pushed registers; its unwind table does not know of that.
#[derive(Clone, Copy, Debug)]
pub(super) struct Hijack {
    /// Where on the stack the pushed registers begin.
    pub(super) pushed: Addr,
    /// Where the method would have returned to.
    pub(super) call: Note,
}

impl Runtime<'_> {
    /// The notes of a thread, the innermost first.
    fn notes(&self, thread: &Thread, end: Addr) -> Vec<Addr> {
        let first = self.offsets.thread.frame;
        let mut next = first.and_then(|f| self.memory.ptr(thread.addr + f));
        let mut out: Vec<Addr> = Vec::new();
        while let Some(at) = next.filter(|at| *at != NONE && *at < end && out.len() < MAX_NOTES) {
            // each stands above the one before: what leads back would lead around for ever
            if out.last().is_some_and(|last| at <= *last) {
                break;
            }
            out.push(at);
            next = self.memory.ptr(at + self.offsets.frame.next);
        }
        out
    }

    /// The innermost call out of managed code from `start` on, of a thread that is outside of it (x64; followed on Windows
    /// and Linux with 10.0.15; the fields stand at the same places with 9.0 to 11.0).
    pub(super) fn note_of_call(&self, thread: &Thread, start: Addr, end: Addr) -> Option<Call> {
        let is_outside = self
            .memory
            .u32(thread.addr + self.offsets.thread.cooperative?)?
            == 0;
        if self.dump.target.arch != Arch::X64 || !is_outside {
            return None;
        }
        let mut is_innermost = true;
        for note in self.notes(thread, end).into_iter().filter(|n| *n >= start) {
            let return_address = note + self.offsets.inlined_call.return_address;
            if let Some(note) = self.helper_of(note, thread, start) {
                return Some(Call { note, is_innermost });
            }
            // null while the method that has the note calls nothing
            let Some(near) = self.memory.ptr(return_address)?.non_null() else {
                continue;
            };
            if let Some(note) = self.call_of(note, near, start) {
                return Some(Call { note, is_innermost });
            }
            is_innermost = false;
        }
        None
    }

    /// A call out of managed code that two words of a note agree on, where no method is known.
    pub(crate) fn call_from_nowhere(&self, thread: &Thread) -> Option<Addr> {
        const NEAR: u64 = 64;
        let (start, end) = thread.stack?;
        let (m, o) = (self.memory, &self.offsets.inlined_call);
        let place = |note: &Addr| {
            let near = m.ptr(*note + o.return_address)?.non_null()?;
            let slot = m.ptr(*note + o.call_site)?.back(8);
            let returns = m.ptr(slot)?.since(near)?;
            let is_call = returns < NEAR && start <= slot && slot < *note;
            (is_call && self.code_at(near).is_none()).then_some(near)
        };
        self.notes(thread, end).iter().find_map(place)
    }

    fn call_of(&self, note: Addr, near: Addr, start: Addr) -> Option<Note> {
        let (m, o) = (self.memory, &self.offsets.inlined_call);
        let slot = m.ptr(note + o.call_site)?.back(8);
        let call = Note {
            ip: m.ptr(slot)?,
            slot,
            frame_pointer: m.ptr(note + o.frame_pointer)?,
            end: note + o.frame_pointer + 8,
        };
        // the note is a variable of the method, above the call; the instruction that it names stands a little before the
        // one that the call returns to (10.0.15)
        let code = self.code_at(call.ip.back(1))?;
        let is_same = self.code_at(near)?.start == code.start;
        (is_same && start <= slot && slot < note).then_some(call)
    }

    /// The helper of the runtime that managed code has called, when the note is one of a helper: these exist up to 9.0
    /// (followed on Linux with 8.0.34 and 9.0.23). Told by the link to its thread; the helper is native code, which has
    /// kept its instruction, stack and frame pointers before the note.
    fn helper_of(&self, note: Addr, thread: &Thread, start: Addr) -> Option<Note> {
        let (m, o) = (self.memory, &self.offsets.helper);
        if m.ptr(note + o.thread?)? != thread.addr {
            return None;
        }
        let helper = Note {
            ip: m.ptr(note + o.ip?)?,
            slot: m.ptr(note + o.stack_pointer?)?,
            frame_pointer: m.ptr(note + o.frame_pointer?)?,
            end: note,
        };
        let is_native = self.native().image_of(helper.ip.back(1)).is_some();
        // the note is a variable of the helper
        let is_around = start <= helper.slot && helper.slot < note && note < helper.frame_pointer;
        (is_native && is_around && self.code_at(helper.ip.back(1)).is_none()).then_some(helper)
    }

    /// The hijacked methods of a thread (Linux on x64; 10.0.15 and 11.0.0).
    pub(super) fn hijacks(&self, thread: &Thread, end: Addr) -> Vec<Hijack> {
        let target = self.dump.target;
        if (target.os, target.arch) != (Os::Linux, Arch::X64) {
            return Vec::new();
        }
        let notes = self.notes(thread, end).into_iter();
        notes.filter_map(|n| self.hijack_of(n, thread)).collect()
    }

    /// Told by its three links: to its thread, to what was pushed, and the address that stands there as well.
    fn hijack_of(&self, note: Addr, thread: &Thread) -> Option<Hijack> {
        let (m, o) = (self.memory, &self.offsets.hijack);
        let ip = m.ptr(note + o.return_address)?;
        let pushed = m.ptr(note + o.arguments)?;
        if m.ptr(note + o.thread)? != thread.addr || pushed <= note {
            return None;
        }
        self.code_at(ip.back(1))?;
        let slots = PUSHED.iter().map(|distance| pushed + *distance);
        let slot = slots.into_iter().find(|slot| m.ptr(*slot) == Some(ip))?;
        Some(Hijack {
            pushed,
            call: Note {
                ip,
                slot,
                frame_pointer: m.ptr(slot.back(8))?,
                end: slot + 8,
            },
        })
    }
}
