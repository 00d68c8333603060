//! The search for awaits: arbitrary code, and the methods of a real assembly with bytes changed.

use crate::seeds::{Assembly, metadata};
use asynctriage_dump::{Addr, Memory};
use asynctriage_image::pe::{PeImage, PeLayout};
use asynctriage_metadata::il::{BODY_HEADER, body_extent, calls};
use asynctriage_metadata::{Metadata, Table};
use std::sync::OnceLock;

pub(crate) fn run(bytes: &[u8]) {
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
}

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
        let image = PeImage::parse(&Assembly, Addr::NULL, PeLayout::Flat).expect("an image");
        let metadata = Metadata::parse(metadata()).expect("metadata");
        let rows = 1..=metadata.rows(Table::MethodDef);
        let methods = rows
            .filter_map(|row| Some((row, code(&image, metadata.method(row)?.rva)?)))
            .collect();
        Seed { metadata, methods }
    })
}

fn code(image: &PeImage, rva: u32) -> Option<Vec<u8>> {
    let body = image.rva_to_addr(Some(rva).filter(|r| *r != 0)?)?;
    let head = Assembly.slice(body, BODY_HEADER as u64)?;
    let (skip, size) = body_extent(head)?;
    let code = Assembly.slice(body + u64::from(skip), size.into())?;
    Some(code.to_vec())
}
