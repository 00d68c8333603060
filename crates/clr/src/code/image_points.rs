//! The suspension points of a ReadyToRun image, from the image itself.
//!
//! Every ResumeInfo is a pair of pointers in the image's data: to the function that resumes, and into the method.

use super::debug_info::DebugInfo;
use crate::bodies::method_il;
use asynctriage_dump::{Addr, Memory};
use asynctriage_image::pe::PeImage;
use asynctriage_image::r2r::ReadyToRun;
use asynctriage_metadata::{Metadata, Source};
use rustc_hash::FxHashMap;

/// Bytes of data that are searched in one image.
const MAX_DATA: u32 = 1 << 28;
/// Functions of one method: its own, its handlers.
const MAX_FUNCLETS: u32 = 4096;

/// A suspension point of an image; numbers are relative to the image.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ImagePoint {
    /// Its ResumeInfo.
    pub info: u32,
    /// The address inside the method that stands for the point.
    pub ip: u32,
    /// Row of the method in the image's metadata; 0 for methods of other modules.
    pub rid: u32,
    /// IL offset of the await.
    pub il_offset: Option<u32>,
    /// Which await of the method it is, from 0.
    pub await_index: Option<u32>,
}

/// Finds all suspension points of an image, by the address of their ResumeInfo. `base` is the address that the pointers
/// in its data count from: of an image file the one that it prefers.
#[must_use]
pub(super) fn image_points<S: Source>(
    memory: &dyn Memory,
    image: &PeImage,
    metadata: &Metadata<S>,
    base: Addr,
) -> Vec<ImagePoint> {
    let Some(code) = ReadyToRun::of(memory, image) else {
        return Vec::new();
    };
    let methods = code.instances().into_iter();
    let mut finder = Finder {
        memory,
        image,
        metadata,
        code,
        methods: methods.map(|m| (m.function, m.rid.unwrap_or(0))).collect(),
        sites: FxHashMap::default(),
    };
    let mut out = Vec::new();
    for section in image.sections.iter().filter(|s| s.writable) {
        let len = section.range.size.min(section.file_size).min(MAX_DATA);
        for offset in (0..len).step_by(8) {
            let info = section.range.rva.checked_add(offset);
            out.extend(info.and_then(|rva| finder.point(rva, base)));
        }
    }
    out.sort_unstable_by_key(|p| p.info);
    out
}

struct Finder<'i, S> {
    memory: &'i dyn Memory,
    image: &'i PeImage,
    metadata: &'i Metadata<S>,
    code: ReadyToRun<'i>,
    /// Rows of methods by their first function.
    methods: FxHashMap<u32, u32>,
    /// IL offsets of the awaits, by row.
    sites: FxHashMap<u32, Vec<u32>>,
}

impl<S: Source> Finder<'_, S> {
    fn point(&mut self, info: u32, base: Addr) -> Option<ImagePoint> {
        let at = self.image.rva_to_addr(info)?;
        let rva = |slot: Addr| u32::try_from(self.memory.ptr(slot)?.since(base)?).ok();
        let (resume, ip) = (rva(at)?, rva(at + 8)?);
        let (resume_function, function) =
            (self.code.function_at(resume)?, self.code.function_at(ip)?);
        let starts = self.code.function_start(resume_function)? == resume;
        let begins = self.code.function_start(function)? == ip;
        if !starts || begins {
            return None;
        }
        // handlers stand behind the function of their method
        let first = (function.saturating_sub(MAX_FUNCLETS)..=function)
            .rev()
            .find(|f| self.methods.contains_key(f))?;
        let rid = self.methods.get(&first).copied()?;
        let native = ip.checked_sub(self.code.function_start(first)?)?;
        let debug = self
            .code
            .debug_info(first)
            .and_then(|a| DebugInfo::read(self.memory, a));
        let il_offset = debug.and_then(|d| d.suspension_il(native));
        let await_index = il_offset.and_then(|il| super::resume::rank(self.sites_of(rid)?, il));
        Some(ImagePoint {
            info,
            ip,
            rid,
            il_offset,
            await_index,
        })
    }

    fn sites_of(&mut self, rid: u32) -> Option<&[u32]> {
        if !self.sites.contains_key(&rid) {
            let code = method_il(self.memory, self.image, self.metadata, rid)?;
            self.sites.insert(rid, self.metadata.await_sites(&code));
        }
        self.sites.get(&rid).map(Vec::as_slice)
    }
}
