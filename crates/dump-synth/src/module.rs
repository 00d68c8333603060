//! Managed modules: the image with its metadata, and the runtime's own structures about it.

use crate::layout::module as layout;
use crate::metadata::Metadata;
use crate::space::{Id, Space};

/// Where the parts of an image stand.
const NT_HEADERS: usize = 0x80;
const CLI_HEADER: u32 = 0x1000;
const METADATA: u32 = 0x1080;
/// Bytes of the optional header of PE32+ with 16 directories.
const OPTIONAL: u16 = 240;
/// Which directory is that of the CLI header.
const CLI_DIRECTORY: usize = 14;

/// A module of the process.
#[derive(Debug)]
pub(crate) struct Module {
    pub(crate) metadata: Metadata,
    /// The native structure.
    pub(crate) at: u64,
    /// MethodTables by row of the definition.
    pub(crate) loaded: Vec<(u32, u64)>,
    image: u64,
    native: Id,
}

impl Module {
    /// A module whose image will stand at `image`.
    pub(crate) fn new(space: &mut Space, native: Id, image: u64, assembly: &str) -> Self {
        Self {
            metadata: Metadata::new(assembly, &format!("{assembly}.dll")),
            at: space.take(native, layout::SIZE),
            loaded: Vec::new(),
            image,
            native,
        }
    }

    /// Writes image and structures; answers first address and first address above of the image.
    pub(crate) fn write(&self, space: &mut Space) -> (u64, u64) {
        let image = image(&self.metadata.build());
        let end = self.image + image.len() as u64;
        let size = image.len() as u32;
        space.filled(self.image, image, 4);
        let assembly = space.take(self.native, 64);
        let pe_image = space.take(self.native, 160);
        let loaded = space.take(self.native, 64);
        space.put_u64(self.at + layout::PE_ASSEMBLY, assembly);
        space.put_u64(assembly + layout::PE_ASSEMBLY_IMAGE, pe_image);
        space.put_u64(pe_image + layout::IMAGE_LOADED, loaded);
        space.put_u64(loaded + layout::LAYOUT_BASE, self.image);
        space.put_u32(loaded + layout::LAYOUT_SIZE, size);
        space.put_u32(loaded + layout::LAYOUT_FLAGS, layout::MAPPED);
        self.write_maps(space);
        (self.image, end)
    }

    /// One table each for types, methods and fields, a row longer than those of the metadata.
    fn write_maps(&self, space: &mut Space) {
        let counts = [
            (layout::TYPE_MAP, self.metadata.type_count),
            (layout::METHOD_MAP, 0),
            (layout::FIELD_MAP, self.metadata.field_count),
        ];
        for (map, rows) in counts {
            let table = space.take(self.native, u64::from(rows + 1) * 8);
            space.put_u64(self.at + map + layout::MAP_TABLE, table);
            space.put_u32(self.at + map + layout::MAP_COUNT, rows + 1);
            if map == layout::TYPE_MAP {
                for (row, mt) in &self.loaded {
                    space.put_u64(table + u64::from(*row) * 8, *mt);
                }
            }
        }
    }
}

/// A PE32+ image as the loader lays it out: headers, CLI header, metadata.
fn image(metadata: &[u8]) -> Vec<u8> {
    let size = (METADATA as usize + metadata.len()).next_multiple_of(0x1000) as u32;
    let mut out = b"MZ".to_vec();
    out.resize(0x3c, 0);
    out.extend((NT_HEADERS as u32).to_le_bytes());
    out.resize(NT_HEADERS, 0);
    out.extend(b"PE\0\0");
    out.extend([0x8664_u16, 1].map(u16::to_le_bytes).concat());
    out.extend([0x1234_5678_u32, 0, 0].map(u32::to_le_bytes).concat());
    out.extend([OPTIONAL, 0x2022].map(u16::to_le_bytes).concat());
    out.extend(optional_header(size));
    let mut directories = vec![0_u8; 128];
    directories[8 * CLI_DIRECTORY..][..4].copy_from_slice(&CLI_HEADER.to_le_bytes());
    directories[8 * CLI_DIRECTORY + 4..][..4].copy_from_slice(&72_u32.to_le_bytes());
    out.extend(directories);
    out.extend(b".text\0\0\0");
    let body = size - CLI_HEADER;
    let section = [body, CLI_HEADER, body, CLI_HEADER, 0, 0, 0, 0x6000_0020];
    out.extend(section.map(u32::to_le_bytes).concat());
    out.resize(CLI_HEADER as usize, 0);
    let length = metadata.len() as u32;
    let cli = [72, 0x0005_0002, METADATA, length, 1, 0];
    out.extend(cli.map(u32::to_le_bytes).concat());
    out.resize(METADATA as usize, 0);
    out.extend(metadata);
    out.resize(size as usize, 0);
    out
}

fn optional_header(size_of_image: u32) -> Vec<u8> {
    let mut out = vec![0x0b, 0x02, 48, 0];
    out.extend(
        [0x200_u32, 0, 0, 0, CLI_HEADER]
            .map(u32::to_le_bytes)
            .concat(),
    );
    out.extend(0x1_8000_0000_u64.to_le_bytes());
    out.extend([0x1000_u32, 0x200].map(u32::to_le_bytes).concat());
    out.extend([4_u16, 0, 0, 0, 4, 0].map(u16::to_le_bytes).concat());
    let sizes = [0, size_of_image, 0x200, 0];
    out.extend(sizes.map(u32::to_le_bytes).concat());
    out.extend([3_u16, 0x8540].map(u16::to_le_bytes).concat());
    let stack_and_heap = [0x40_0000_u64, 0x4000, 0x10_0000, 0x2000];
    out.extend(stack_and_heap.map(u64::to_le_bytes).concat());
    out.extend([0_u32, 16].map(u32::to_le_bytes).concat());
    out
}
