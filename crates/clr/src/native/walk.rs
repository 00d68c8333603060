//! Exact walks from frame to frame, native and managed ones mixed.

use super::image::{self, Format};
use crate::code::{Code, MethodRef};
use crate::runtime::Runtime;
use crate::stack::FrameSource;
use crate::threads::Thread;
use asynctriage_dump::{Addr, Registers};
use asynctriage_image::pe::Covering;
use asynctriage_image::unwind::{Arm64Frames, Break, FrameWalk, Rules, X64Frames};
use std::sync::atomic::{AtomicUsize, Ordering};

/// Steps of one walk: a stack of 8 MiB, all of frames of 32 bytes.
const MAX_STEPS: usize = 1 << 18;
/// Steps of all walks of one dump.
const MAX_ALL_STEPS: usize = 1 << 22;
/// Walks of one stack: from the registers, and from notes of the runtime where one breaks off.
const MAX_WALKS: usize = 64;
/// Places that are kept: threads stand at the same ones again and again.
const MAX_SITES: usize = 1 << 18;
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

/// Where a walk could not go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct StackBreak {
    /// The address of the frame whose caller is not known.
    pub ip: Addr,
    /// Why it is not.
    pub why: Break,
}

/// An exact walk.
#[derive(Debug, Default)]
pub(crate) struct Walk {
    pub(crate) steps: Vec<Step>,
    /// Where steps are missing; none when it came to the thread's first function.
    pub(crate) breaks: Vec<StackBreak>,
    /// Whether the last break has no steps behind it.
    pub(crate) is_open: bool,
    /// From where on the stack is not known.
    pub(crate) beyond: Addr,
}

/// What stands at an address of code.
#[derive(Clone, Copy, Debug)]
pub(super) struct Site {
    method: Option<MethodRef>,
    rules: Result<Rules, Break>,
    is_code: bool,
}

/// Steps that all walks together have taken.
#[derive(Debug, Default)]
pub(super) struct Budget(AtomicUsize);

impl Budget {
    fn take(&self) -> bool {
        self.0.fetch_add(1, Ordering::Relaxed) < MAX_ALL_STEPS
    }
}

impl Walk {
    /// Whether it met managed code that is not just what the thread was interrupted in.
    pub(crate) fn met_managed_code(&self) -> bool {
        let mut further = self.steps.iter().filter(|s| !s.slot.is_null());
        further.any(|s| s.method.is_some())
    }
}

impl Runtime<'_> {
    /// Steps outwards from a thread's registers; where no table leads on, from the runtime's own note of where managed
    /// code was left.
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
        for _ in 0..MAX_WALKS {
            if !walk.is_open || !self.follow_note(thread, &mut walk, end) {
                break;
            }
        }
        tracing::debug!(
            thread = thread.os_id,
            steps = walk.steps.len(),
            breaks = ?walk.breaks,
            "walked"
        );
        walk
    }

    fn frames_from<'w>(&'w self, registers: &Registers) -> Box<dyn FrameWalk + 'w> {
        let unwinder = &self.native().unwinder;
        match registers {
            Registers::X64(registers) => {
                let rules = |at| self.site(at).rules;
                Box::new(X64Frames::new(unwinder, registers, rules))
            }
            Registers::Arm64(registers) => Box::new(Arm64Frames::new(unwinder, registers)),
        }
    }

    /// Goes on from the next note above what is known; false when there is none.
    fn follow_note(&self, thread: &Thread, walk: &mut Walk, end: Addr) -> bool {
        let Some(note) = self.note_of_call(thread, walk.beyond, end) else {
            return false;
        };
        let rules = |at| self.site(at).rules;
        let (sp, fp) = (note.slot + RETURN_ADDRESS, note.frame_pointer);
        let unwinder = &self.native().unwinder;
        let frames = X64Frames::behind_call(unwinder, note.ip, sp, fp, rules);
        let before = walk.steps.len();
        walk.beyond = note.slot;
        self.follow(Box::new(frames), walk, FrameSource::Recorded, end);
        if walk.steps.len() == before.saturating_add(1) {
            walk.beyond = note.end;
        }
        true
    }

    /// Adds steps to a walk; every return address must be code, and lie above the one before.
    fn follow(
        &self,
        mut frames: Box<dyn FrameWalk + '_>,
        walk: &mut Walk,
        mut source: FrameSource,
        end: Addr,
    ) {
        let mut last = Addr::NULL;
        let why = loop {
            let Some(frame) = frames.next() else {
                match frames.end() {
                    Some(Err(why)) => break why,
                    _ => {
                        walk.is_open = false;
                        return;
                    }
                }
            };
            let is_innermost = source == FrameSource::Registers;
            let site = self.site(frame.at());
            if is_innermost {
                last = frame.ip;
            }
            if !site.is_code {
                break Break::NotCode;
            }
            if frame.sp < walk.beyond || frame.sp > end {
                break Break::NotUpwards;
            }
            if walk.steps.len() >= MAX_STEPS || !self.native().budget.take() {
                break Break::TooLong;
            }
            last = frame.ip;
            walk.beyond = frame.sp;
            walk.steps.push(Step {
                ip: frame.ip,
                slot: if is_innermost {
                    Addr::NULL
                } else {
                    frame.sp.back(RETURN_ADDRESS)
                },
                method: site.method,
                source,
            });
            source = FrameSource::Unwound;
        };
        walk.is_open = true;
        walk.breaks.push(StackBreak { ip: last, why });
    }

    /// What stands at an address of code.
    fn site(&self, at: Addr) -> Site {
        let known = &self.native().sites;
        if let Some(site) = known.read().ok().and_then(|k| k.get(&at).copied()) {
            return site;
        }
        let site = self.read_site(at);
        if let Ok(mut known) = known.write()
            && known.len() < MAX_SITES
        {
            known.insert(at, site);
        }
        site
    }

    fn read_site(&self, at: Addr) -> Site {
        let image = self.native().image_of(at);
        let code = self.code_at(at);
        let rules = match (image.map(|i| &i.format), &code) {
            (Some(Format::Elf(_)), _) => Ok(Rules::EhFrame),
            (Some(Format::Pe(pe)), _) => rules(image::covering(self.memory, pe, at)),
            (None, Some(code)) => self.managed_rules(at, code),
            (None, None) => Err(Break::NotCode),
        };
        Site {
            method: code.and_then(|c| self.method_of_desc(c.desc)),
            rules,
            is_code: code.is_some() || image.is_some(),
        }
    }

    /// Compilers write an entry for every method: what none covers is a stub between them, which cannot be left.
    fn managed_rules(&self, at: Addr, code: &Code) -> Result<Rules, Break> {
        match rules(self.managed_covering(at, code)) {
            Ok(Rules::Return) => Err(Break::NoEntry),
            rules => rules,
        }
    }
}

fn rules(covering: Option<Covering>) -> Result<Rules, Break> {
    match covering {
        Some(Covering::Function(function)) => Ok(Rules::Codes(function)),
        Some(Covering::Nothing) => Ok(Rules::Return),
        None => Err(Break::NoTable),
    }
}
