//! Managed modules: where their metadata is, and what they are called.

mod emitted;

use crate::absent::Absent;
use crate::runtime::Runtime;
use crate::ships::ships_with_dotnet;
use asynctriage_dump::{Addr, Memory};
use asynctriage_image::pe::{PeImage, PeLayout};
use asynctriage_metadata::{Metadata, Source, Table};
use rustc_hash::FxHashMap;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, RwLock};

/// Bit 0 of PEImageLayout.Flags: the image stands as the loader laid it out, else as in the file (8.0 to 11.0).
const LAYOUT_MAPPED: u32 = 1;
/// Bytes of metadata that have to be there for it to be tried.
const METADATA_HEAD: u32 = 16;
/// Bits of SString.Flags that say how the text is written, and the value for UTF-16 (8.0 to 11.0).
const TEXT_FORM: u32 = 7;
const WIDE: u32 = 4;
/// Longest path that is read, in bytes.
const MAX_PATH: u64 = 8192;
/// Maps that hang behind one another for one module; real ones have one or two.
const MAX_MAPS: usize = 4096;

/// Metadata inside the dump, or made from what is known of a module.
pub struct DumpSource<'d> {
    place: Place<'d>,
    len: u32,
}

/// Where metadata is.
enum Place<'d> {
    Dump(&'d dyn Memory, Addr),
    Made(Arc<[u8]>),
}

impl<'d> DumpSource<'d> {
    fn made(bytes: &Arc<[u8]>) -> Self {
        Self {
            place: Place::Made(Arc::clone(bytes)),
            len: u32::try_from(bytes.len()).unwrap_or(0),
        }
    }
}

impl std::fmt::Debug for DumpSource<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let start = match &self.place {
            Place::Dump(_, start) => Some(start),
            Place::Made(_) => None,
        };
        f.debug_struct("DumpSource")
            .field("start", &start)
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
            && match &self.place {
                Place::Dump(memory, start) => memory.read_into(*start + offset, out),
                Place::Made(bytes) => Source::read(&**bytes, offset, out),
            }
    }
}

/// A managed module.
#[derive(Debug)]
pub struct Module<'d> {
    /// Address of the native Module structure.
    pub addr: Addr,
    /// Simple name of its assembly; without metadata that of its file, and empty when that is not known either.
    pub name: String,
    /// Its metadata, when readable.
    pub metadata: Option<Metadata<DumpSource<'d>>>,
    /// Whether it comes with .NET or ASP.NET Core rather than with the program.
    pub ships_with_dotnet: bool,
    /// Load address of the image that the metadata was found in.
    pub image_base: Option<Addr>,
    /// What is missing when there is no metadata.
    pub(crate) absent: Option<Absent>,
    /// Whether a name was asked for that it does not have.
    pub(crate) unnamed: AtomicBool,
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
        let module = Arc::new(self.read_module(addr));
        if let Ok(mut all) = self.modules.by_addr.write() {
            all.insert(addr, Arc::clone(&module));
        }
        module
    }

    fn read_module(&self, addr: Addr) -> Module<'d> {
        let image = self.module_image(addr);
        let place = image.as_ref().and_then(PeImage::metadata);
        let place = place.or_else(|| self.emitted_metadata(addr));
        let metadata = place.and_then(|(start, len)| {
            let source = DumpSource {
                place: Place::Dump(self.memory, start),
                len,
            };
            Metadata::parse(source).ok()
        });
        // what the dump itself holds needs no proof
        let lent = place.is_some_and(|(start, _)| self.dump.memory.is_laid_under(start));
        let other_build = lent && metadata.as_ref().is_some_and(|m| !self.belongs(addr, m));
        let metadata = metadata.filter(|_| !other_build);
        let absent = metadata
            .is_none()
            .then(|| self.absent(addr, other_build))
            .flatten();
        let learnt = self.core_names.as_ref();
        let learnt = learnt.filter(|_| addr == self.globals.core_lib && metadata.is_none());
        let metadata = metadata.or_else(|| Metadata::parse(DumpSource::made(&learnt?.bytes)).ok());
        let name = metadata
            .as_ref()
            .and_then(|m| m.assembly_name().or_else(|| m.module_name()))
            .or_else(|| absent.as_ref().map(Absent::simple_name))
            .unwrap_or_default();
        let file = image.as_ref().and_then(|i| self.file_at(i.base));
        let assembly = self.assembly_path(addr);
        let key = metadata.as_ref().and_then(|m| m.assembly_public_key());
        let path = file.or(assembly.as_deref());
        Module {
            addr,
            ships_with_dotnet: addr == self.globals.core_lib
                || ships_with_dotnet(path, &name, key.as_deref()),
            name,
            metadata,
            image_base: image.map(|i| i.base),
            absent,
            unnamed: AtomicBool::new(false),
        }
    }

    /// Whether metadata that a file of this machine lent belongs to a module: the runtime made a table each for its
    /// types, methods and fields, with a row more than the metadata has (8.0 to 11.0).
    fn belongs(&self, module: Addr, metadata: &Metadata<DumpSource<'d>>) -> bool {
        let o = &self.offsets;
        let maps = [
            (Some(o.module.type_map), Table::TypeDef),
            (o.module.method_map, Table::MethodDef),
            (o.module.field_map, Table::Field),
        ];
        let mut counted = maps.into_iter().filter_map(|(map, table)| {
            let count = self.memory.u32(module + map? + o.lookup_map.count)?;
            Some((count, metadata.rows(table)))
        });
        counted.all(|(count, rows)| count == rows.saturating_add(1))
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

    /// The image of a module: of its copies the one whose metadata is there whole, else one whose metadata begins there.
    pub(crate) fn module_image(&self, module: Addr) -> Option<PeImage> {
        let m = self.memory;
        let copies = self.module_copies(module).into_iter();
        let mut images: Vec<PeImage> = copies
            .filter_map(|(base, layout)| PeImage::parse(m, base, layout).ok())
            .collect();
        let holds = |image: &PeImage, most: u32| {
            image
                .metadata()
                .is_some_and(|(at, len)| m.readable(at, u64::from(len.min(most))))
        };
        let best = images
            .iter()
            .position(|i| holds(i, u32::MAX))
            .or_else(|| images.iter().position(|i| holds(i, METADATA_HEAD)))?;
        Some(images.swap_remove(best))
    }

    /// Module -> PEAssembly -> PEImage -> where its loaded and its flat copy begin.
    pub(crate) fn module_copies(&self, module: Addr) -> Vec<(Addr, PeLayout)> {
        let (m, o) = (self.memory, &self.offsets);
        let Some(image) = self.pe_image(module) else {
            return Vec::new();
        };
        let slots = [Some(o.pe_image.loaded), o.pe_image.flat];
        let copies = slots.into_iter().flatten().filter_map(|slot| {
            let layout = m.ptr(image + slot)?.non_null()?;
            let mapped = m.u32(layout + o.pe_layout.flags)? & LAYOUT_MAPPED != 0;
            let base = m.ptr(layout + o.pe_layout.base)?.non_null()?;
            Some((
                base,
                if mapped {
                    PeLayout::Loaded
                } else {
                    PeLayout::Flat
                },
            ))
        });
        copies.collect()
    }

    fn pe_image(&self, module: Addr) -> Option<Addr> {
        let (m, o) = (self.memory, &self.offsets);
        let assembly = m.ptr(module + o.module.pe_assembly)?.non_null()?;
        m.ptr(assembly + o.pe_assembly.image)?.non_null()
    }

    /// Where the runtime took the assembly of a module from. For what single-file applications bundle that is no file:
    /// the folder of the program with the name of the assembly (8.0 to 10.0).
    pub(crate) fn assembly_path(&self, module: Addr) -> Option<String> {
        let (m, o) = (self.memory, &self.offsets.text);
        let text = self.pe_image(module)? + self.offsets.pe_image.path?;
        let is_wide = m.u32(text + o.flags)? & TEXT_FORM == WIDE;
        let size = m.u32(text + o.size)?;
        is_wide.then_some(())?;
        let bytes = m.bytes(m.ptr(text + o.buffer)?, size.into(), MAX_PATH)?;
        let units = bytes.as_chunks::<2>().0.iter().copied();
        let path = String::from_utf16(&units.map(u16::from_le_bytes).collect::<Vec<_>>()).ok()?;
        let path = path.trim_end_matches('\0');
        let is_text = !path.is_empty() && !path.contains(char::is_control);
        is_text.then(|| path.to_owned())
    }

    /// The MethodTable of a type of a module by the row of its definition; `None` when the process never loaded it.
    #[must_use]
    pub fn loaded_type(&self, module: Addr, rid: u32) -> Option<Addr> {
        self.mapped(module + self.offsets.module.type_map, rid)
    }

    /// What a map of a module has for a row.
    pub(crate) fn mapped(&self, map: Addr, rid: u32) -> Option<Addr> {
        self.map_entry(map, rid)?.non_null()
    }

    /// The type that a reference of a module stands for, by its module and row: `None` where the dump does not tell,
    /// `Some(None)` when the process has not resolved it, so that no object of it can be in a field declared with it.
    #[must_use]
    pub fn referred_type(&self, module: Addr, rid: u32) -> Option<Option<(Addr, u32)>> {
        let map = module + self.offsets.module.type_ref_map?;
        let Some(mt) = self.map_entry(map, rid)?.non_null() else {
            return Some(None);
        };
        let ty = self.ty(mt)?;
        Some(Some((ty.module, ty.rid)))
    }

    /// The same; null for a row that nothing has asked for yet.
    fn map_entry(&self, map: Addr, rid: u32) -> Option<Addr> {
        let (m, o) = (self.memory, &self.offsets.lookup_map);
        let (mut map, mut index) = (map, u64::from(rid));
        for _ in 0..MAX_MAPS {
            let count = u64::from(m.u32(map + o.count)?);
            if let Some(rest) = index.checked_sub(count) {
                index = rest;
                map = m.ptr(map + o.next)?.non_null()?;
                continue;
            }
            let flags = m.u64(map + o.flags)?;
            let entry = m.ptr(m.ptr(map + o.table)?.element(index, 8))?;
            return Some(entry.without(flags));
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
