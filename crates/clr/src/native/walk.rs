//! Exact walks from frame to frame, native and managed ones mixed.

use super::image::{self, Format};
use super::note::{Hijack, Note};
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
/// Bytes of the frame of the stub that hijacked methods return to, below what it has pushed.
const MAX_PUSHED: u64 = 256;

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

/// Steps without a break.
#[derive(Debug, Default)]
pub(crate) struct Part {
    pub(crate) steps: Vec<Step>,
    /// What follows is not known: why, and from where on the stack to where.
    pub(crate) lost: Option<(StackBreak, Addr, Addr)>,
}

/// An exact walk; the last part ends at the thread's first function, unless something is lost behind it.
pub(crate) type Walk = Vec<Part>;

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

/// A walk on its way.
struct Way {
    parts: Walk,
    /// From where on the stack is not known, and where the stack ends.
    beyond: Addr,
    end: Addr,
    hijacks: Vec<Hijack>,
    source: FrameSource,
    /// The last note that was followed: where the method goes on, and where the note ends.
    noted: (Addr, Addr),
}

/// How a part of a walk has ended.
enum End {
    /// At the thread's first function.
    Root,
    /// At a method whose return address the runtime has replaced.
    Hijacked(Note),
    Broken(StackBreak),
}

impl Way {
    /// The hijacked method that the stack up to `sp` is the next one of.
    fn hijack_below(&self, sp: Addr) -> Option<Note> {
        let mut hijacks = self.hijacks.iter();
        let next = hijacks.find(|h| self.beyond <= h.pushed && h.pushed < sp)?;
        Some(next.call)
    }

    fn steps(&self) -> usize {
        let counts = self.parts.iter().map(|p| p.steps.len());
        counts.fold(0, usize::saturating_add)
    }

    /// Whether the last step is one of native code.
    fn is_native(&self) -> bool {
        let last = self.parts.iter().rev().find_map(|p| p.steps.last());
        last.is_none_or(|s| s.method.is_none())
    }

    fn lose(&mut self, why: StackBreak, until: Addr) {
        let from = self.beyond;
        if let Some(part) = self.parts.last_mut() {
            part.lost = Some((why, from, until));
        }
        self.parts.push(Part::default());
    }
}

impl Runtime<'_> {
    /// Steps outwards from a thread's registers; where no table leads on, from the runtime's own notes of where managed
    /// code was left.
    pub(crate) fn walk(&self, thread: &Thread) -> Walk {
        let Some(snapshot) = self.snapshot(thread.os_id) else {
            return Walk::default();
        };
        let registers = &snapshot.registers;
        let Some((start, end)) = thread.stack else {
            let (ip, sp) = (registers.pc(), registers.sp());
            let why = Break::NoStack(sp);
            let lost = Some((StackBreak { ip, why }, sp, sp));
            return vec![Part {
                steps: Vec::new(),
                lost,
            }];
        };
        let mut way = Way {
            parts: vec![Part::default()],
            beyond: start,
            end,
            hijacks: self.hijacks(thread, end),
            source: FrameSource::Registers,
            noted: (Addr::NULL, Addr::NULL),
        };
        let mut frames = self.frames_from(registers);
        for walks in 1_usize.. {
            let note = match self.follow(frames, &mut way) {
                End::Root => break,
                End::Hijacked(note) => note,
                End::Broken(why) => {
                    let may_go_on = walks < MAX_WALKS && why.why != Break::TooLong;
                    let call = may_go_on.then(|| self.note_of_call(thread, way.beyond, end));
                    let Some(call) = call.flatten() else {
                        way.lose(why, end);
                        break;
                    };
                    // nothing that is managed was called since the innermost note was made
                    if !(call.is_innermost && way.is_native()) {
                        way.lose(why, call.note.slot);
                    }
                    call.note
                }
            };
            way.beyond = note.slot;
            way.source = FrameSource::Recorded;
            way.noted = (note.ip, note.end);
            frames = self.frames_behind(&note);
        }
        tracing::debug!(thread = thread.os_id, steps = way.steps(), "walked");
        way.parts
    }

    fn frames_from<'w>(&'w self, registers: &Registers) -> Box<dyn FrameWalk + 'w> {
        let unwinder = &self.native().unwinder;
        match registers {
            Registers::X64(registers) => {
                let rules = |at| self.site(at).rules;
                Box::new(X64Frames::new(unwinder, registers, rules))
            }
            Registers::Arm64(registers) => {
                let function = |at| self.arm64_function(at);
                Box::new(Arm64Frames::new(unwinder, registers, function))
            }
        }
    }

    fn frames_behind<'w>(&'w self, note: &Note) -> Box<dyn FrameWalk + 'w> {
        let rules = |at| self.site(at).rules;
        let (sp, fp) = (note.slot + RETURN_ADDRESS, note.frame_pointer);
        let unwinder = &self.native().unwinder;
        Box::new(X64Frames::behind_call(unwinder, note.ip, sp, fp, rules))
    }

    /// Adds steps to a walk; every return address must be code, and lie above the one before.
    fn follow(&self, mut frames: Box<dyn FrameWalk + '_>, way: &mut Way) -> End {
        let mut last = Addr::NULL;
        let why = loop {
            let Some(frame) = frames.next() else {
                match frames.end() {
                    Some(Err(why)) => break why,
                    _ => return End::Root,
                }
            };
            let is_innermost = way.source == FrameSource::Registers && last.is_null();
            if let Some(note) = way.hijack_below(frame.sp).filter(|_| !last.is_null()) {
                return End::Hijacked(note);
            }
            let site = self.site(frame.at());
            if is_innermost {
                last = frame.ip;
            }
            if !site.is_code {
                break Break::NotCode;
            }
            if frame.sp < way.beyond || frame.sp > way.end {
                break Break::NotUpwards;
            }
            if way.steps() >= MAX_STEPS || !self.native().budget.take() {
                break Break::TooLong;
            }
            let source = match (last.is_null() || is_innermost, frame.is_proved) {
                (true, _) => way.source,
                (false, true) => FrameSource::Unwound,
                (false, false) => FrameSource::FramePointer,
            };
            last = frame.ip;
            way.beyond = frame.sp;
            let step = Step {
                ip: frame.ip,
                slot: if is_innermost {
                    Addr::NULL
                } else {
                    frame.sp.back(RETURN_ADDRESS)
                },
                method: site.method,
                source,
            };
            if let Some(part) = way.parts.last_mut() {
                part.steps.push(step);
            }
        };
        // the note itself names the method
        if last == way.noted.0 {
            way.beyond = way.beyond.max(way.noted.1);
        }
        // the table of the stub that such a method returned to leads astray
        match way.hijack_below(way.beyond + MAX_PUSHED) {
            Some(note) if !last.is_null() => End::Hijacked(note),
            _ => End::Broken(StackBreak { ip: last, why }),
        }
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
