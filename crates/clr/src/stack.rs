//! Managed frames of a thread.
//!
//! Exact steps lead from the registers through native code to managed code and on: each is proved by the unwind tables of
//! the image, or by what the JIT keeps beside its code. Where that breaks off, frame pointers are followed on Linux. Not
//! all code keeps them, the C library and ReadyToRun code among them: a chain may pass over frames, and is looked for from
//! the stack pointer upwards. Where no chain is found, and on Windows, where no code keeps frame pointers, every word of
//! the stack that may be a return address into managed code counts as a frame.

mod gaps;
mod scan;

use crate::code::MethodRef;
use crate::native::{StackBreak, Step};
use crate::runtime::Runtime;
use crate::threads::Thread;
use asynctriage_dump::{Addr, Os};
use asynctriage_image::unwind::Break;
use std::sync::Arc;

/// Frames of one thread that are listed.
const MAX_FRAMES: usize = 1 << 18;
/// Native frames of one thread that are named.
const MAX_NATIVE: usize = 4096;
/// Links of one chain, native ones among them.
const MAX_LINKS: usize = 4096;
/// The largest frame that is believed.
const MAX_FRAME: u64 = 128 << 10;
/// Words from the stack pointer on among which a chain must begin.
const MAX_SEARCH: u64 = 1024;
/// Links that must follow before a place counts as the begin of a chain.
const PROOF: usize = 3;

/// How a frame was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum FrameSource {
    /// The thread's instruction pointer.
    Registers,
    /// An exact step from the frame below it.
    Unwound,
    /// The runtime's own note of where managed code has called out of it.
    Recorded,
    /// A chain of frame pointers.
    FramePointer,
    /// A word of the stack that is a return address; it may be left over from a call that has returned.
    StackScan,
    /// The IL of the frame around it, as [`Runtime::inlined`] says: it has no frame of its own.
    Inlined,
}

/// A managed frame of a thread's stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StackFrame {
    /// The instruction that it will go on at.
    pub ip: Addr,
    /// Where on the stack that stands, on arm64 the end of the part that its callee uses; null for the innermost frame.
    pub slot: Addr,
    /// The method.
    pub method: MethodRef,
    /// How it was found.
    pub source: FrameSource,
}

/// A managed frame of an exact walk.
fn exact(step: &Step) -> Option<StackFrame> {
    Some(StackFrame {
        ip: step.ip,
        slot: step.slot,
        method: step.method?,
        source: step.source,
    })
}

/// A step to native code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NativeStep {
    /// How many of the managed frames lie further in.
    pub(crate) below: usize,
    pub(crate) ip: Addr,
    pub(crate) is_innermost: bool,
}

/// The stack of a thread.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stack {
    /// Its managed frames, innermost first.
    pub frames: Vec<StackFrame>,
    /// Its native frames, as far as steps to them are proved.
    pub(crate) native: Vec<NativeStep>,
    /// Where the way from frame to frame could not be proved, and managed frames may be missing: none when all frames are
    /// exact down to the thread's begin.
    pub breaks: Vec<StackBreak>,
}

impl Stack {
    /// A frame, and the one that it has called.
    pub(crate) fn pair(&self, frame: usize) -> Option<(&StackFrame, &StackFrame)> {
        let below = self.frames.get(frame.checked_sub(1)?)?;
        Some((self.frames.get(frame)?, below))
    }

    /// Whether native code stands between a frame and the managed one below it.
    pub(crate) fn has_native(&self, frame: usize) -> bool {
        let behind = self.native.partition_point(|n| n.below < frame);
        self.native.get(behind).is_some_and(|n| n.below == frame)
    }

    fn add(&mut self, step: &Step) {
        match exact(step) {
            Some(frame) => self.frames.push(frame),
            None if self.native.len() < MAX_NATIVE => self.native.push(NativeStep {
                below: self.frames.len(),
                ip: step.ip,
                is_innermost: step.slot.is_null(),
            }),
            None => {}
        }
    }
}

impl Runtime<'_> {
    /// The managed frames of a thread, innermost first, and where the way to them breaks off.
    #[must_use]
    pub fn stack(&self, thread: &Thread) -> Arc<Stack> {
        let known = &self.native().stacks;
        if let Some(stack) = known.read().ok().and_then(|k| k.get(&thread.addr).cloned()) {
            return stack;
        }
        let stack = Arc::new(self.read_stack(thread));
        if let Ok(mut known) = known.write() {
            known.insert(thread.addr, Arc::clone(&stack));
        }
        stack
    }

    fn read_stack(&self, thread: &Thread) -> Stack {
        let mut stack = Stack::default();
        let walk = self.walk(thread);
        if walk.iter().all(|part| part.steps.is_empty()) {
            stack.frames.extend(self.running_frame(thread));
        }
        for part in walk {
            for step in &part.steps {
                stack.add(step);
            }
            let Some((why, from, until)) = part.lost else {
                continue;
            };
            let is_cut = match why.why {
                Break::TooLong => true,
                Break::NoStack(at) => at >= until,
                _ => false,
            };
            let further = if is_cut {
                Vec::new()
            } else {
                self.unproved_frames(from, until)
            };
            // where nothing looks like a return to managed code, nothing of it is lost
            if is_cut || !further.is_empty() {
                stack.breaks.push(why);
            }
            stack.frames.extend(further);
        }
        stack.frames.truncate(MAX_FRAMES);
        stack
    }

    /// Frames of a part of the stack that no table led through.
    fn unproved_frames(&self, from: Addr, until: Addr) -> Vec<StackFrame> {
        let chained = match self.dump.target.os {
            Os::Windows => Vec::new(),
            Os::Linux => self.chained_frames(from, until),
        };
        if chained.is_empty() {
            return self.scanned_frames(from, until);
        }
        chained
    }

    /// The managed method that a thread's instruction pointer stands in.
    fn running_frame(&self, thread: &Thread) -> Option<StackFrame> {
        let ip = self.snapshot(thread.os_id)?.registers.pc();
        Some(StackFrame {
            ip,
            slot: Addr::NULL,
            method: self.method_at(ip)?,
            source: FrameSource::Registers,
        })
    }

    /// The link that a frame pointer points at: the next frame pointer and the return address.
    fn link(&self, at: Addr, end: Addr) -> Option<(Addr, Addr)> {
        let next = self.memory.ptr(at)?;
        let grows = at < next && next < end && next.0 & 7 == 0;
        let near = next.since(at).is_some_and(|d| d < MAX_FRAME);
        (grows && near).then_some((next, self.return_address(at + 8)?))
    }

    /// The return address in a word of the stack, without its signature (arm64).
    fn return_address(&self, at: Addr) -> Option<Addr> {
        Some(self.memory.ptr(at)?.without(!self.dump.code_mask))
    }

    /// Whether code can stand at an address: managed code, or a mapped file.
    fn is_code(&self, ip: Addr) -> bool {
        let mapped = || self.dump.files.iter().any(|f| f.start <= ip && ip < f.end);
        self.code_at(ip.back(1)).is_some() || mapped()
    }

    fn chained_frames(&self, start: Addr, end: Addr) -> Vec<StackFrame> {
        let words = end
            .since(start)
            .unwrap_or(0)
            .checked_div(8)
            .unwrap_or(0)
            .min(MAX_SEARCH);
        let begins = (0..words).map(|i| start.element(i, 8));
        let proven = begins.into_iter().find(|at| self.is_chain(*at, end));
        let mut frames = Vec::new();
        let mut next = proven;
        for _ in 0..MAX_LINKS {
            let Some((above, ip)) = next.and_then(|at| self.link(at, end)) else {
                break;
            };
            if let (Some(method), Some(at)) = (self.method_at(ip.back(1)), next) {
                frames.push(StackFrame {
                    ip,
                    slot: at + 8,
                    method,
                    source: FrameSource::FramePointer,
                });
            }
            next = Some(above);
        }
        frames
    }

    fn is_chain(&self, at: Addr, end: Addr) -> bool {
        let mut next = at;
        for _ in 0..PROOF {
            match self.link(next, end) {
                Some((above, ip)) if self.is_code(ip) => next = above,
                _ => return false,
            }
        }
        true
    }
}
