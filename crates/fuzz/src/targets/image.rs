//! Images of arbitrary bytes, with a hole in the middle of what is mapped.

use asynctriage_dump::{Addr, AddressSpace, Memory, X64Registers};
use asynctriage_image::elf::ElfImage;
use asynctriage_image::pe::{Covering, PeImage, PeLayout};
use asynctriage_image::unwind::{Break, Rules, Unwinder, X64Frames};
use asynctriage_image::version_text;

const BASE: u64 = 0x7f00_0000_0000;
const HOLE: u64 = 0x1000;

pub(crate) fn run(bytes: &[u8]) {
    let (low, high) = bytes.split_at(bytes.len() / 2);
    let high_at = Addr(BASE) + low.len() as u64 + HOLE;
    let memory =
        AddressSpace::from_pieces(vec![(Addr(BASE), low.to_vec()), (high_at, high.to_vec())]);
    for base in [Addr(BASE), high_at] {
        if let Ok(image) = ElfImage::parse(&memory, base) {
            let _ = image.symbol(&memory, "g_dacTable");
            let _ = image.build_id(&memory);
            let _ = version_text(&memory, &image);
        }
        for layout in [PeLayout::Loaded, PeLayout::Flat] {
            if let Ok(image) = PeImage::parse(&memory, base, layout) {
                let _ = image.metadata();
                let _ = image.code_view(&memory);
                let _ = image.export(&memory, "DotNetRuntimeInfo");
                let _ = image.writable_sections().count();
                let _ = image.named_functions(&memory);
                walk(&memory, &image);
            }
        }
    }
}

/// From every function of an image outwards, over a stack in the image itself.
fn walk(memory: &dyn Memory, image: &PeImage) {
    let Some(table) = image.functions() else {
        return;
    };
    for function in (0..table.len().min(64)).map_while(|i| table.get(memory, i)) {
        let mut registers = X64Registers {
            rip: (image.base + u64::from(function.begin.midpoint(function.end))).0,
            ..X64Registers::default()
        };
        registers.general = [image.base.0; 16];
        let rules = |ip: Addr| {
            let rva = ip.since(image.base).and_then(|d| u32::try_from(d).ok());
            let covering = rva.and_then(|rva| table.covering(memory, rva));
            match covering.ok_or(Break::NoTable)? {
                Covering::Function(function) => Ok(Rules::Codes(function)),
                Covering::Nothing => Ok(Rules::Return),
            }
        };
        let unwinder = Unwinder::new(memory, false, u64::MAX, std::iter::empty());
        let frames = X64Frames::new(&unwinder, &registers, rules);
        let _ = frames.take(256).count();
    }
}
