//! Exact walks from frame to frame, native and managed ones mixed.

use super::image::{self, Format};
use crate::code::{CodeKind, MethodRef};
use crate::runtime::Runtime;
use crate::stack::FrameSource;
use crate::threads::Thread;
use asynctriage_dump::{Addr, Os, Registers};
use asynctriage_image::pe::Covering;
use asynctriage_image::unwind::{FrameWalk, WindowsFrames};

/// Steps of one walk.
const MAX_STEPS: usize = 4096;
/// The slot of a return address under the stack pointer of the frame that it leads to (x64).
const RETURN_ADDRESS: u64 = 8;

/// A step of an exact walk.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Step {
    pub(crate) ip: Addr,
    /// Where the return address stands; null for the innermost one.
    pub(crate) slot: Addr,
    pub(crate) method: Option<MethodRef>,
    pub(crate) source: FrameSource,
}

/// An exact walk.
#[derive(Debug, Default)]
pub(crate) struct Walk {
    pub(crate) steps: Vec<Step>,
    /// Whether it came to the thread's first function.
    pub(crate) is_whole: bool,
    /// From where on the stack is not known.
    pub(crate) beyond: Addr,
}

impl Walk {
    /// Whether it met managed code that is not just what the thread was interrupted in.
    pub(crate) fn met_managed_code(&self) -> bool {
        let mut further = self.steps.iter().filter(|s| !s.slot.is_null());
        further.any(|s| s.method.is_some())
    }
}

impl Runtime<'_> {
    /// Steps outwards from a thread's registers; where they do not lead to managed code, from the runtime's own note of
    /// where it was left.
    pub(crate) fn walk(&self, thread: &Thread) -> Walk {
        let (Some(snapshot), Some((start, end))) = (self.snapshot(thread), thread.stack) else {
            return Walk::default();
        };
        let mut walk = Walk {
            beyond: start,
            ..Walk::default()
        };
        let frames = self.frames_from(&snapshot.registers);
        self.follow(frames, &mut walk, FrameSource::Registers, end);
        if !walk.is_whole && !walk.met_managed_code() && self.dump.target.os == Os::Windows {
            self.follow_note(thread, &mut walk, end);
        }
        tracing::debug!(
            thread = thread.os_id,
            steps = walk.steps.len(),
            whole = walk.is_whole,
            "walked"
        );
        walk
    }

    fn frames_from<'w>(&'w self, registers: &Registers) -> Box<dyn FrameWalk + 'w> {
        match registers {
            Registers::X64(registers) if self.dump.target.os == Os::Windows => {
                let covering = |at| self.covering(at);
                Box::new(WindowsFrames::new(self.memory, registers, covering))
            }
            _ => Box::new(self.native().unwinder.frames(registers)),
        }
    }

    fn follow_note(&self, thread: &Thread, walk: &mut Walk, end: Addr) {
        let Some(note) = self.note_of_call(thread, walk.beyond, end) else {
            return;
        };
        let covering = |at| self.covering(at);
        let (sp, fp) = (note.slot + RETURN_ADDRESS, note.frame_pointer);
        let frames = WindowsFrames::behind_call(self.memory, note.ip, sp, fp, covering);
        let before = walk.steps.len();
        walk.beyond = note.slot;
        self.follow(Box::new(frames), walk, FrameSource::Recorded, end);
        if walk.steps.len() == before.saturating_add(1) {
            walk.beyond = note.end;
        }
    }

    /// Adds steps to a walk; every return address must be code, and lie above the one before.
    fn follow(
        &self,
        mut frames: Box<dyn FrameWalk + '_>,
        walk: &mut Walk,
        mut source: FrameSource,
        end: Addr,
    ) {
        let native = self.native();
        while walk.steps.len() < MAX_STEPS {
            let Some(frame) = frames.next() else {
                walk.is_whole = frames.reached_root();
                return;
            };
            let is_innermost = source == FrameSource::Registers;
            let at = if is_innermost {
                frame.ip
            } else {
                frame.ip.back(1)
            };
            // of code of no image only managed code is left
            let is_known = self.code_at(at).is_some() || native.image_of(at).is_some();
            if !is_known || frame.sp < walk.beyond || frame.sp > end {
                return;
            }
            walk.beyond = frame.sp;
            walk.steps.push(Step {
                ip: frame.ip,
                slot: if is_innermost {
                    Addr::NULL
                } else {
                    frame.sp.back(RETURN_ADDRESS)
                },
                method: self.method_at(at),
                source,
            });
            source = FrameSource::Unwound;
        }
    }

    /// What has the instruction at an address, on Windows; `None` where no code is known, or its table is not in the dump.
    fn covering(&self, at: Addr) -> Option<Covering> {
        if let Some(image) = self.native().image_of(at) {
            let Format::Pe(pe) = &image.format else {
                return None;
            };
            return image::covering(self.memory, pe, at);
        }
        match self.code_at(at)?.kind {
            // the JIT writes entries for all methods, so what none covers is not one that could be left
            CodeKind::Jit { .. } => self.jit_covering(at).filter(|c| *c != Covering::Nothing),
            // a single-file program unpacks images into memory that is no module
            CodeKind::ReadyToRun { image } => {
                image::covering(self.memory, &self.compiled_image(image)?.pe, at)
            }
        }
    }
}
