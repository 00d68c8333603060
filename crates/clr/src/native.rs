//! Native frames of a thread: exact steps from its registers outwards, and what the code there is called.

use crate::code::MethodRef;
use crate::runtime::Runtime;
use crate::threads::Thread;
use asynctriage_dump::{Addr, Arch, Dump, Memory, ThreadSnapshot};
use asynctriage_image::elf::ElfImage;
use asynctriage_image::unwind::Unwinder;
use std::sync::OnceLock;

/// Steps of one walk.
const MAX_STEPS: usize = 4096;
/// Native frames of one thread that are named.
const MAX_NATIVE: usize = 128;
/// Images that are looked at.
const MAX_IMAGES: usize = 4096;
/// Longest name of a function.
const MAX_NAME: u64 = 512;
/// The slot of a return address under the stack pointer of the frame that it leads to (x64).
const RETURN_ADDRESS: u64 = 8;

/// The native images of the process, and how to walk through them.
#[derive(Debug)]
pub(crate) struct Native<'d> {
    unwinder: Unwinder<'d>,
    /// By their begins.
    images: Vec<Image>,
}

#[derive(Debug)]
struct Image {
    elf: ElfImage,
    /// Last part of its path.
    name: String,
    /// Exported functions: begin, length and name.
    functions: OnceLock<Vec<(Addr, u64, Addr)>>,
}

/// A frame that is not managed code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NativeFrame {
    /// The instruction that it will go on at.
    pub ip: Addr,
    /// File name of the image, when the address lies in one.
    pub image: Option<String>,
    /// From the begin of the image, in bytes.
    pub offset: u64,
    /// The exported function that it lies in, and how far behind its begin.
    pub function: Option<(String, u64)>,
}

impl std::fmt::Display for NativeFrame {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (&self.image, &self.function) {
            (Some(image), Some((name, at))) => write!(f, "{image}!{name}+{at:#x}"),
            (Some(image), None) => write!(f, "{image}!+{:#x}", self.offset),
            (None, _) => write!(f, "code of no image"),
        }
    }
}

/// A step of an exact walk.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Step {
    pub(crate) ip: Addr,
    /// Where the return address stands; null for the innermost one.
    pub(crate) slot: Addr,
    pub(crate) method: Option<MethodRef>,
}

/// An exact walk.
#[derive(Debug, Default)]
pub(crate) struct Walk {
    pub(crate) steps: Vec<Step>,
    /// Whether it came to the thread's first function.
    pub(crate) is_whole: bool,
}

impl<'d> Native<'d> {
    fn read(dump: &'d Dump) -> Self {
        let memory: &dyn Memory = &dump.memory;
        let first = dump.files.iter().filter(|f| f.file_offset == 0);
        let mut images: Vec<Image> = first
            .take(MAX_IMAGES)
            .filter_map(|file| {
                let path = file.path.trim_end_matches(" (deleted)");
                Some(Image {
                    elf: ElfImage::parse(memory, file.start).ok()?,
                    name: path.rsplit('/').next().unwrap_or(path).to_owned(),
                    functions: OnceLock::new(),
                })
            })
            .collect();
        images.sort_by_key(|i| i.elf.base);
        // the begin of a small file may be mapped again for its next segment, inside of the image
        let mut free = Addr::NULL;
        images.retain(|i| {
            let apart = free <= i.elf.base;
            free = free.max(i.elf.base + i.elf.size());
            apart
        });
        let is_arm64 = dump.target.arch == Arch::Arm64;
        Self {
            unwinder: Unwinder::new(
                memory,
                is_arm64,
                dump.code_mask,
                images.iter().map(|i| &i.elf),
            ),
            images,
        }
    }

    fn image_of(&self, ip: Addr) -> Option<&Image> {
        let behind = self.images.partition_point(|i| i.elf.base <= ip);
        let image = self.images.get(behind.checked_sub(1)?)?;
        let segments = &mut image.elf.segments.iter();
        segments.any(|s| s.contains(ip)).then_some(image)
    }

    fn name(&self, memory: &dyn Memory, ip: Addr, is_innermost: bool) -> NativeFrame {
        // a call that never returns may be the last instruction of its function
        let at = if is_innermost { ip } else { ip.back(1) };
        let image = self.image_of(at);
        NativeFrame {
            ip,
            image: image.map(|i| i.name.clone()),
            offset: image.and_then(|i| ip.since(i.elf.base)).unwrap_or(0),
            function: image.and_then(|i| i.function(memory, at, ip)),
        }
    }
}

impl Image {
    fn function(&self, memory: &dyn Memory, at: Addr, ip: Addr) -> Option<(String, u64)> {
        let all = self.functions.get_or_init(|| self.elf.functions(memory));
        let behind = all.partition_point(|(start, _, _)| *start <= at);
        let (start, len, name) = all.get(behind.checked_sub(1)?)?;
        let inside = at.since(*start).is_some_and(|d| d < *len);
        inside.then_some((memory.c_str(*name, MAX_NAME)?, ip.since(*start)?))
    }
}

impl<'d> Runtime<'d> {
    fn native(&self) -> &Native<'d> {
        self.native.get_or_init(|| Native::read(self.dump))
    }

    fn snapshot(&self, thread: &Thread) -> Option<&'d ThreadSnapshot> {
        let mut threads = self.dump.threads.iter();
        threads.find(|t| t.id == thread.os_id && t.id != 0)
    }

    /// Steps outwards from a thread's registers; every return address must be code, and lie above the one before.
    pub(crate) fn walk(&self, thread: &Thread) -> Walk {
        let mut walk = Walk::default();
        let (Some(snapshot), Some((start, end))) = (self.snapshot(thread), thread.stack) else {
            return walk;
        };
        let native = self.native();
        if native.images.is_empty() {
            // managed code keeps frame pointers on Unix only
            return walk;
        }
        let mut frames = native.unwinder.frames(&snapshot.registers);
        let mut above = start;
        for index in 0..MAX_STEPS {
            let Some(frame) = frames.next() else { break };
            let at = if index == 0 {
                frame.ip
            } else {
                frame.ip.back(1)
            };
            let method = self.method_at(at);
            // frame pointers are followed out of managed code only
            let is_known = self.code_at(at).is_some() || native.image_of(at).is_some();
            if !is_known || frame.sp < above || frame.sp > end {
                return walk;
            }
            above = frame.sp;
            walk.steps.push(Step {
                ip: frame.ip,
                slot: if index == 0 {
                    Addr::NULL
                } else {
                    frame.sp.back(RETURN_ADDRESS)
                },
                method,
            });
        }
        walk.is_whole = frames.reached_root();
        walk
    }

    /// The native frames between a thread's registers and its innermost managed frame, all of them when it has none.
    /// ELF images on x64 and arm64; empty elsewhere, and where the tables for it are missing.
    #[must_use]
    pub fn native_frames(&self, thread: &Thread) -> Vec<NativeFrame> {
        let steps = self.walk(thread).steps;
        let native = steps.iter().take_while(|s| s.method.is_none());
        let named = native
            .enumerate()
            .map(|(i, step)| self.native().name(self.memory, step.ip, i == 0));
        named.take(MAX_NATIVE).collect()
    }
}
