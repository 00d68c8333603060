//! The search for awaits: arbitrary code, and the methods of a real assembly with bytes changed.
#![no_main]

use asynctriage_dump::{Addr, Fault, Memory};
use asynctriage_image::pe::{PeImage, PeLayout};
use asynctriage_metadata::il::{BODY_HEADER, body_extent, calls};
use asynctriage_metadata::{Metadata, Table};
use libfuzzer_sys::fuzz_target;
use std::sync::OnceLock;

const REAL: &[u8] = include_bytes!("../seeds/awaits.dll");

fuzz_target!(|bytes: &[u8]| {
    let seed = seed();
    let _ = body_extent(bytes);
    search(seed, 1, bytes);
    let Some((first, changes)) = bytes.split_first() else {
        return;
    };
    let (row, code) = &seed.methods[usize::from(*first) % seed.methods.len()];
    // place and value of each changed byte
    let mut changed = code.clone();
    for change in changes.chunks_exact(3) {
        let place = usize::from(u16::from_le_bytes([change[0], change[1]]));
        if let Some(byte) = changed.get_mut(place) {
            *byte = change[2];
        }
    }
    search(seed, *row, &changed);
});

struct Seed {
    metadata: Metadata<Vec<u8>>,
    /// Row and code.
    methods: Vec<(u32, Vec<u8>)>,
}

fn search(seed: &Seed, row: u32, code: &[u8]) {
    let sites = seed.metadata.state_machine_awaits(code);
    assert!(sites.is_sorted_by(|a, b| a.number < b.number));
    let sites = seed.metadata.runtime_async_awaits(row, code);
    assert!(sites.len() <= seed.metadata.await_sites(code).len());
    let _ = calls(code).count();
}

fn seed() -> &'static Seed {
    static SEED: OnceLock<Seed> = OnceLock::new();
    SEED.get_or_init(|| {
        let file = File;
        let image = PeImage::parse(&file, Addr::NULL, PeLayout::Flat).expect("an image");
        let (at, len) = image.metadata().expect("an assembly");
        let bytes = file.slice(at, len.into()).expect("the whole file");
        let metadata = Metadata::parse(bytes.to_vec()).expect("metadata");
        let rows = 1..=metadata.rows(Table::MethodDef);
        let methods = rows
            .filter_map(|row| Some((row, code(&image, metadata.method(row)?.rva)?)))
            .collect();
        Seed { metadata, methods }
    })
}

fn code(image: &PeImage, rva: u32) -> Option<Vec<u8>> {
    let body = image.rva_to_addr(Some(rva).filter(|r| *r != 0)?)?;
    let head = File.slice(body, BODY_HEADER as u64)?;
    let (skip, size) = body_extent(head)?;
    let code = File.slice(body + u64::from(skip), size.into())?;
    Some(code.to_vec())
}

/// The file as memory from address 0 on.
struct File;

impl Memory for File {
    fn slice(&self, addr: Addr, len: u64) -> Option<&[u8]> {
        REAL.get(addr.0 as usize..)?.get(..len as usize)
    }

    fn run(&self, addr: Addr) -> u64 {
        (REAL.len() as u64).saturating_sub(addr.0)
    }

    fn why_not(&self, _: Addr, _: u64) -> Option<Fault> {
        None
    }
}
