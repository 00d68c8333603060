//! Native frames of a thread: exact steps from its registers outwards, and what the code there is called.

mod compiled;
mod image;
mod note;
mod walk;

use crate::runtime::Runtime;
use crate::stack::Stack;
use crate::threads::Thread;
use asynctriage_dump::{Addr, Arch, Dump, Memory};
use asynctriage_image::unwind::Unwinder;
use compiled::CompiledImages;
use image::{Format, Image};
use rustc_hash::FxHashMap;
use std::sync::{Arc, RwLock};

pub(crate) use compiled::CompiledImage;
pub use walk::StackBreak;
pub(crate) use walk::Step;

/// Images that are looked at.
const MAX_IMAGES: usize = 4096;

/// The native images of the process, and how to walk through them.
#[derive(Debug)]
pub(crate) struct Native<'d> {
    /// Of ELF images.
    unwinder: Unwinder<'d>,
    /// By their begins.
    images: Vec<Image>,
    compiled: CompiledImages,
    sites: RwLock<FxHashMap<Addr, walk::Site>>,
    /// By thread.
    pub(crate) stacks: RwLock<FxHashMap<Addr, Arc<Stack>>>,
    budget: walk::Budget,
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
    /// The function that it lies in, by the export table or by what the file of the image names, and how far behind its
    /// begin.
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

impl<'d> Native<'d> {
    fn read(dump: &'d Dump) -> Self {
        let memory: &dyn Memory = &dump.memory;
        let first = dump.files.iter().filter(|f| f.file_offset == 0);
        let mut images: Vec<Image> = first
            .take(MAX_IMAGES)
            .filter_map(|file| Image::read(dump, file))
            .collect();
        images.sort_by_key(Image::base);
        // the begin of a small file may be mapped again for its next segment, inside of the image
        let mut free = Addr::NULL;
        images.retain(|i| {
            let apart = free <= i.base();
            free = free.max(i.end());
            apart
        });
        let is_arm64 = dump.target.arch == Arch::Arm64;
        let elf = images.iter().filter_map(|i| match &i.format {
            Format::Elf(elf) => Some(elf),
            Format::Pe(_) => None,
        });
        Self {
            unwinder: Unwinder::new(memory, is_arm64, dump.code_mask, elf),
            images,
            compiled: CompiledImages::default(),
            sites: RwLock::default(),
            stacks: RwLock::default(),
            budget: walk::Budget::default(),
        }
    }

    fn image_of(&self, ip: Addr) -> Option<&Image> {
        let behind = self.images.partition_point(|i| i.base() <= ip);
        let image = self.images.get(behind.checked_sub(1)?)?;
        image.may_execute(ip).then_some(image)
    }

    fn name(&self, memory: &dyn Memory, ip: Addr, is_innermost: bool) -> NativeFrame {
        // a call that never returns may be the last instruction of its function
        let at = if is_innermost { ip } else { ip.back(1) };
        let image = self.image_of(at);
        NativeFrame {
            ip,
            image: image.map(|i| i.name.clone()),
            offset: image.and_then(|i| ip.since(i.base())).unwrap_or(0),
            function: image.and_then(|i| i.function(memory, at, ip)),
        }
    }
}

impl<'d> Runtime<'d> {
    pub(crate) fn native(&self) -> &Native<'d> {
        self.native.get_or_init(|| Native::read(self.dump))
    }

    /// What native code at an address is called.
    pub(crate) fn native_name(&self, ip: Addr) -> NativeFrame {
        self.native().name(self.memory, ip, false)
    }

    /// The native frames of a thread, innermost first, each with the number of managed frames that lie further in: those
    /// below its innermost managed frame, and those between managed ones. Only proved steps lead to them.
    #[must_use]
    pub fn native_frames(&self, thread: &Thread) -> Vec<(usize, NativeFrame)> {
        let stack = self.stack(thread);
        let named = stack.native.iter().map(|step| {
            let name = self.native().name(self.memory, step.ip, step.is_innermost);
            (step.below, name)
        });
        named.collect()
    }
}
