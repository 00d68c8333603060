//! Images with ReadyToRun code, by where their code range begins: also those that are no native image of the system.

use crate::runtime::Runtime;
use asynctriage_dump::{Addr, Memory};
use asynctriage_image::pe::{PeImage, PeLayout};
use asynctriage_image::r2r::ReadyToRun;
use rustc_hash::FxHashMap;
use std::sync::{Arc, RwLock};

/// An image with code that was compiled ahead of time.
#[derive(Debug)]
pub(crate) struct CompiledImage {
    pub(crate) pe: PeImage,
    /// Where the stubs begin that methods are called through.
    pub(crate) thunks: Option<Addr>,
}

/// Those that were read; `None` for what is no image.
pub(super) type CompiledImages = RwLock<FxHashMap<Addr, Option<Arc<CompiledImage>>>>;

impl CompiledImage {
    fn read(memory: &dyn Memory, base: Addr) -> Option<Self> {
        let pe = PeImage::parse(memory, base, PeLayout::Loaded).ok()?;
        let thunks = ReadyToRun::of(memory, &pe).and_then(|compiled| compiled.thunks());
        let thunks = thunks.and_then(|rva| pe.rva_to_addr(rva));
        Some(Self { pe, thunks })
    }
}

impl Runtime<'_> {
    /// The image whose code begins at an address; `None` when its header is not in the dump.
    pub(crate) fn compiled_image(&self, base: Addr) -> Option<Arc<CompiledImage>> {
        let known = &self.native().compiled;
        if let Some(found) = known.read().ok().and_then(|k| k.get(&base).cloned()) {
            return found;
        }
        let read = CompiledImage::read(self.memory, base).map(Arc::new);
        if let Ok(mut known) = known.write()
            && known.len() < super::MAX_IMAGES
        {
            known.insert(base, read.clone());
        }
        read
    }
}
