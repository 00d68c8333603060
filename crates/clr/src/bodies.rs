//! What the image of a module says about its methods: their IL, and where the symbols are.

use crate::runtime::Runtime;
use crate::types::Type;
use asynctriage_dump::{Addr, Memory};
use asynctriage_image::pe::{CodeView, PeImage};
use asynctriage_metadata::{Metadata, Source, il};
use std::sync::Arc;

/// The longest method body that is read.
const MAX_IL: u64 = 1 << 20;
/// Sections behind a method's code.
const MAX_SECTIONS: usize = 16;
/// The longest embedded PDB that is read, packed.
const MAX_EMBEDDED: u64 = 64 << 20;

impl Runtime<'_> {
    /// The IL of a method, by its row; `None` when it has none, or when neither the dump nor a file laid under it holds
    /// it (reduced dumps lack most of it).
    #[must_use]
    pub fn method_il(&self, module: Addr, rid: u32) -> Option<Vec<u8>> {
        let known = self.module(module);
        let Some(image) = self.image_of_code(module) else {
            let body = self.emitted_body(module, rid)?;
            return body_il(self.memory, body);
        };
        method_il(self.memory, &image, known.metadata.as_ref()?, rid)
    }

    /// The image of a module, read once.
    fn image_of_code(&self, module: Addr) -> Option<Arc<PeImage>> {
        let known = &self.code.images;
        if let Some(image) = known.read().ok().and_then(|k| k.get(&module).cloned()) {
            return image;
        }
        let image = self.module_image(module).map(Arc::new);
        if let Ok(mut known) = known.write() {
            known.insert(module, image.clone());
        }
        image
    }

    /// The IL of a method with its exception handlers.
    #[must_use]
    pub fn method_body(&self, module: Addr, rid: u32) -> Option<il::Body> {
        let known = self.module(module);
        let image = self.module_image(module)?;
        let code = method_il(self.memory, &image, known.metadata.as_ref()?, rid)?;
        let rva = known.metadata.as_ref()?.method(rid)?.rva;
        let at = image.rva_to_addr(rva)?;
        let handlers = self.handlers(at, code.len() as u64);
        Some(il::Body { code, handlers })
    }

    /// The handlers behind a method's code.
    fn handlers(&self, body: Addr, code: u64) -> Vec<il::Handler> {
        let mut out = Vec::new();
        let m = self.memory;
        if !m.u8(body).is_some_and(il::has_sections) {
            return out;
        }
        // sections begin at multiples of four, as the header of twelve bytes does
        let mut at = body + il::BODY_HEADER as u64 + code.next_multiple_of(4);
        for _ in 0..MAX_SECTIONS {
            let Some(head) = m.u32(at).map(u32::to_le_bytes) else {
                break;
            };
            let (size, more) = il::section_extent(head);
            let section = m.bytes(at, size.into(), MAX_IL);
            out.extend(section.iter().flat_map(|s| il::handlers(s)));
            if !more || size == 0 {
                break;
            }
            at = at + u64::from(size).next_multiple_of(4);
        }
        out
    }

    /// The row of the `MoveNext` of a state machine.
    #[must_use]
    pub fn move_next(&self, module: Addr, state_machine: u32) -> Option<u32> {
        let known = self.module(module);
        let metadata = known.metadata.as_ref()?;
        let is_it = |name: &str| name == "MoveNext" || name.ends_with(".MoveNext");
        metadata
            .method_rids_of_type(state_machine)
            .find(|rid| metadata.method(*rid).is_some_and(|m| is_it(&m.name)))
    }

    /// The field that a state machine keeps the awaiter of one of its awaits in, as its code says; `None` without the
    /// code.
    #[must_use]
    pub fn awaiter_field(&self, state_machine: &Type, await_number: u32) -> Option<String> {
        let module = state_machine.module;
        let method = self.move_next(module, state_machine.rid)?;
        let code = self.method_il(module, method)?;
        let known = self.module(module);
        let sites = known.metadata.as_ref()?.state_machine_awaits(&code);
        let site = sites.into_iter().find(|s| s.number == await_number)?;
        site.awaiter_field
    }

    /// The record that ties a module to its symbol file; `None` when it has none or it cannot be read.
    #[must_use]
    pub fn code_view(&self, module: Addr) -> Option<CodeView> {
        self.module_image(module)?.code_view(self.memory)
    }

    /// Whether a module names no symbol file; `false` when its image or the list of what it names is not there.
    #[must_use]
    pub fn is_without_symbols(&self, module: Addr) -> bool {
        let image = self.module_image(module);
        image.is_some_and(|i| i.is_without_symbols(self.memory))
    }

    /// The packed symbol file inside a module, as [`asynctriage_metadata::pdb::unpack_embedded`] takes it.
    #[must_use]
    pub fn embedded_pdb(&self, module: Addr) -> Option<Vec<u8>> {
        let (start, len) = self.module_image(module)?.embedded_pdb(self.memory)?;
        self.memory.bytes(start, len.into(), MAX_EMBEDDED)
    }

    /// The path that the process loaded a module from.
    #[must_use]
    pub fn module_path(&self, module: Addr) -> Option<&str> {
        self.file_at(self.module(module).image_base?)
    }

    /// Path in the process of the file that is mapped at an address.
    pub(crate) fn file_at(&self, base: Addr) -> Option<&str> {
        let mut files = self.dump.files.iter();
        files
            .find(|f| f.start <= base && base < f.end)
            .map(|f| f.path.as_str())
    }
}

/// The IL of a method of an image.
pub(crate) fn method_il<S: Source>(
    memory: &dyn Memory,
    image: &PeImage,
    metadata: &Metadata<S>,
    rid: u32,
) -> Option<Vec<u8>> {
    let rva = metadata.method(rid)?.rva;
    body_il(memory, image.rva_to_addr(Some(rva).filter(|r| *r != 0)?)?)
}

/// The IL of the body at an address.
fn body_il(memory: &dyn Memory, body: Addr) -> Option<Vec<u8>> {
    let head: Vec<u8> = (0..il::BODY_HEADER as u64)
        .map_while(|i| memory.u8(body + i))
        .collect();
    let (skip, size) = il::body_extent(&head)?;
    memory.bytes(body + u64::from(skip), size.into(), MAX_IL)
}
