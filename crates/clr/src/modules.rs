//! Managed modules: where their metadata is, and what they are called.

use crate::runtime::Runtime;
use asynctriage_dump::{Addr, Memory};
use asynctriage_image::pe::{PeImage, PeLayout};
use asynctriage_metadata::{Metadata, Source};
use rustc_hash::FxHashMap;
use std::sync::{Arc, RwLock};

/// Bit 0 of PEImageLayout.Flags: the image stands as the loader laid it out, else as in the file (8.0 to 11.0).
const LAYOUT_MAPPED: u32 = 1;
/// Maps that hang behind one another for one module; real ones have one or two.
const MAX_MAPS: usize = 4096;

/// Metadata inside the dump.
pub struct DumpSource<'d> {
    memory: &'d dyn Memory,
    start: Addr,
    len: u32,
}

impl std::fmt::Debug for DumpSource<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DumpSource")
            .field("start", &self.start)
            .field("len", &self.len)
            .finish_non_exhaustive()
    }
}

impl Source for DumpSource<'_> {
    fn len(&self) -> u64 {
        u64::from(self.len)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> bool {
        let end = offset.checked_add(out.len() as u64);
        end.is_some_and(|e| e <= u64::from(self.len))
            && self.memory.read_into(self.start + offset, out)
    }
}

/// A managed module.
#[derive(Debug)]
pub struct Module<'d> {
    /// Address of the native Module structure.
    pub addr: Addr,
    /// Simple name of its assembly; empty when the metadata is not in the dump.
    pub name: String,
    /// Its metadata, when readable.
    pub metadata: Option<Metadata<DumpSource<'d>>>,
    /// Load address of the image that the metadata was found in.
    pub image_base: Option<Addr>,
}

/// Modules by the address of their native structure.
#[derive(Default)]
pub(crate) struct ModuleCache<'d> {
    by_addr: RwLock<FxHashMap<Addr, Arc<Module<'d>>>>,
}

impl<'d> Runtime<'d> {
    /// The module whose native structure is at `addr`; without metadata when that cannot be read.
    #[must_use]
    pub fn module(&self, addr: Addr) -> Arc<Module<'d>> {
        if let Some(known) = self
            .modules
            .by_addr
            .read()
            .ok()
            .and_then(|m| m.get(&addr).cloned())
        {
            return known;
        }
        let image = self.module_image(addr);
        let metadata = image
            .as_ref()
            .and_then(|i| i.metadata())
            .and_then(|(start, len)| {
                Metadata::parse(DumpSource {
                    memory: self.memory,
                    start,
                    len,
                })
                .ok()
            });
        let name = metadata
            .as_ref()
            .and_then(|m| m.assembly_name().or_else(|| m.module_name()))
            .unwrap_or_default();
        let module = Arc::new(Module {
            addr,
            name,
            metadata,
            image_base: image.map(|i| i.base),
        });
        if let Ok(mut all) = self.modules.by_addr.write() {
            all.insert(addr, Arc::clone(&module));
        }
        module
    }

    /// The modules met so far, by address.
    #[must_use]
    pub fn modules_seen(&self) -> Vec<Arc<Module<'d>>> {
        let mut all: Vec<_> = self
            .modules
            .by_addr
            .read()
            .map(|m| m.values().cloned().collect())
            .unwrap_or_default();
        all.sort_by_key(|m| m.addr);
        all
    }

    /// System.Private.CoreLib.
    #[must_use]
    pub fn core_lib(&self) -> Arc<Module<'d>> {
        self.module(self.globals.core_lib)
    }

    /// Module -> PEAssembly -> PEImage -> the layout that is there -> image.
    pub(crate) fn module_image(&self, module: Addr) -> Option<PeImage> {
        let (m, o) = (self.memory, &self.offsets);
        let assembly = m.ptr(module + o.module.pe_assembly)?.non_null()?;
        let image = m.ptr(assembly + o.pe_assembly.image)?.non_null()?;
        let layouts = [Some(o.pe_image.loaded), o.pe_image.flat]
            .into_iter()
            .flatten();
        let candidates = layouts.filter_map(|field| m.ptr(image + field)?.non_null());
        let mut images = candidates.filter_map(|layout| {
            let flags = m.u32(layout + o.pe_layout.flags)?;
            let base = m.ptr(layout + o.pe_layout.base)?.non_null()?;
            let kind = if flags & LAYOUT_MAPPED == 0 {
                PeLayout::Flat
            } else {
                PeLayout::Loaded
            };
            let image = PeImage::parse(m, base, kind).ok()?;
            image
                .metadata()
                .is_some_and(|(at, len)| m.readable(at, u64::from(len.min(16))))
                .then_some(image)
        });
        images.next()
    }

    /// The MethodTable of a type of a module by the row of its definition; `None` when the process never loaded it.
    #[must_use]
    pub fn loaded_type(&self, module: Addr, rid: u32) -> Option<Addr> {
        let (m, o) = (self.memory, &self.offsets.lookup_map);
        let (mut map, mut index) = (module + self.offsets.module.type_map, u64::from(rid));
        for _ in 0..MAX_MAPS {
            let count = u64::from(m.u32(map + o.count)?);
            if let Some(rest) = index.checked_sub(count) {
                index = rest;
                map = m.ptr(map + o.next)?.non_null()?;
                continue;
            }
            let flags = m.u64(map + o.flags)?;
            return m
                .ptr(m.ptr(map + o.table)?.element(index, 8))?
                .without(flags)
                .non_null();
        }
        None
    }

    /// The MethodTable of a top-level type of System.Private.CoreLib.
    #[must_use]
    pub fn core_type(&self, namespace: &str, name: &str) -> Option<Addr> {
        let module = self.core_lib();
        let rid = module.metadata.as_ref()?.find_type(namespace, name)?;
        self.loaded_type(module.addr, rid)
    }
}
