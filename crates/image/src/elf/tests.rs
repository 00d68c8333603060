use super::*;
use crate::test_memory::Pieces;
use crate::version_text;
use proptest::prelude::*;

const BASE: u64 = 0x7fff_0000_0000;
const DYNAMIC: u64 = 0x400;
const SYMBOLS: u64 = 0x800;
const STRINGS: u64 = 0xa00;
const GNU_HASH: u64 = 0xb00;
const SYSV_HASH: u64 = 0xc00;
const NOTE: u64 = 0xd00;
const DATA: u64 = 0x2000;

/// Names with their values; the order is that of the symbol table, index 0 aside.
const EXPORTS: [(&str, u64); 3] = [
    ("g_dacTable", 0x2010),
    ("g_dacTables", 0x2020),
    ("DotNetRuntimeInfo", 0x2030),
];

fn put(image: &mut [u8], at: u64, bytes: &[u8]) {
    image[at as usize..][..bytes.len()].copy_from_slice(bytes);
}

fn words(values: &[u64]) -> Vec<u8> {
    values.iter().flat_map(|v| v.to_le_bytes()).collect()
}

fn halves(values: &[u32]) -> Vec<u8> {
    values.iter().flat_map(|v| v.to_le_bytes()).collect()
}

fn program_header(kind: u32, flags: u32, addr: u64, size: u64) -> Vec<u8> {
    [
        halves(&[kind, flags]),
        words(&[addr, addr, addr, size, size, 4]),
    ]
    .concat()
}

/// A library with one code and one data segment, three exports, and both hash tables of one bucket.
pub(crate) fn library(dynamic: &[(u64, u64)]) -> Vec<u8> {
    let mut image = vec![0; 0x3000];
    let headers = [
        program_header(1, 5, 0, 0x1000),
        program_header(1, 6, DATA, 0x1000),
        program_header(2, 6, DYNAMIC, 0x100),
        program_header(4, 4, NOTE, 0x24),
        program_header(0x6474_e550, 4, 0xe00, 0x80),
    ];
    put(&mut image, 0, b"\x7fELF\x02\x01\x01");
    put(&mut image, 16, &[3, 0, 62, 0]);
    put(&mut image, 32, &words(&[64]));
    put(&mut image, 54, &[56, 0, headers.len() as u8, 0]);
    put(&mut image, 64, &headers.concat());
    for (at, (tag, value)) in (DYNAMIC..).step_by(16).zip(dynamic) {
        put(&mut image, at, &words(&[*tag, *value]));
    }
    let mut name = 1;
    for (index, (text, value)) in (1..).zip(EXPORTS) {
        put(&mut image, STRINGS + name, text.as_bytes());
        put(&mut image, SYMBOLS + 24 * index, &halves(&[name as u32]));
        put(&mut image, SYMBOLS + 24 * index + 4, &[0x11, 0, 2, 0]);
        put(&mut image, SYMBOLS + 24 * index + 8, &words(&[value, 8]));
        name += text.len() as u64 + 1;
    }
    let hash = |index: usize| elf::gnu_hash(EXPORTS[index].0.as_bytes());
    put(
        &mut image,
        GNU_HASH,
        &halves(&[1, 1, 1, 0, 0, 0, 1, hash(0) & !1, hash(1) & !1, hash(2) | 1]),
    );
    put(&mut image, SYSV_HASH, &halves(&[1, 4, 3, 0, 0, 1, 2]));
    put(&mut image, NOTE, &halves(&[4, 20, 3]));
    put(&mut image, NOTE + 12, b"GNU\0");
    put(&mut image, NOTE + 16, &[0xab; 20]);
    image
}

fn tables(bias: u64, hashes: &[(u64, u64)]) -> Vec<(u64, u64)> {
    let mut all = vec![(6, SYMBOLS + bias), (5, STRINGS + bias)];
    all.extend(hashes.iter().map(|(tag, at)| (*tag, at + bias)));
    all
}

const GNU: (u64, u64) = (0x6fff_fef5, GNU_HASH);
const SYSV: (u64, u64) = (4, SYSV_HASH);

fn look_up(memory: &Pieces, name: &str) -> Option<u64> {
    let image = ElfImage::parse(memory, Addr(BASE)).unwrap();
    image.symbol(memory, name).map(|a| a.0)
}

#[test]
fn every_kind_of_table_finds_every_export_and_nothing_else() {
    // glibc relocates the dynamic section (bias BASE), musl does not (0)
    for bias in [BASE, 0] {
        for hashes in [&[GNU][..], &[SYSV], &[GNU, SYSV], &[]] {
            let memory = Pieces::default().with(BASE, library(&tables(bias, hashes)));
            for (name, value) in EXPORTS {
                assert_eq!(
                    look_up(&memory, name),
                    Some(BASE + value),
                    "{name} with {hashes:x?} and bias {bias:x}"
                );
            }
            assert_eq!(look_up(&memory, "g_dacTabl"), None);
            assert_eq!(look_up(&memory, ""), None);
        }
    }
}

#[test]
fn a_missing_hash_table_is_replaced_by_the_next_one() {
    let mut bytes = library(&tables(BASE, &[GNU, SYSV]));
    bytes[GNU_HASH as usize..][..4].fill(0);
    let memory = Pieces::default().with(BASE, bytes);
    assert_eq!(look_up(&memory, "DotNetRuntimeInfo"), Some(BASE + 0x2030));
    let bytes = library(&tables(BASE, &[(GNU.0, 0x1_0000), (SYSV.0, 0x1_0000)]));
    assert_eq!(
        look_up(&Pieces::default().with(BASE, bytes), "g_dacTables"),
        Some(BASE + 0x2020)
    );
}

#[test]
fn chains_without_an_end_end() {
    let mut bytes = library(&tables(BASE, &[SYSV]));
    put(
        &mut bytes,
        SYSV_HASH,
        &halves(&[1, u32::MAX, 2, 0, 0, 2, 2]),
    );
    assert_eq!(
        look_up(&Pieces::default().with(BASE, bytes), "absent"),
        None
    );
    let mut bytes = library(&tables(BASE, &[GNU]));
    put(&mut bytes, GNU_HASH, &halves(&[1, 9, 0, 0, 5]));
    assert_eq!(
        look_up(&Pieces::default().with(BASE, bytes), "absent"),
        None
    );
}

#[test]
fn undefined_and_thread_local_symbols_have_no_address() {
    for (info, section) in [(0x11, 0), (0x16, 2)] {
        let mut bytes = library(&tables(BASE, &[GNU]));
        put(&mut bytes, SYMBOLS + 24 + 4, &[info, 0, section, 0]);
        assert_eq!(
            look_up(&Pieces::default().with(BASE, bytes), "g_dacTable"),
            None
        );
    }
}

#[test]
fn headers_tell_segments_build_and_unwind_table() {
    let memory = Pieces::default().with(BASE, library(&[]));
    let image = ElfImage::parse(&memory, Addr(BASE)).unwrap();
    assert_eq!(
        (image.bias, image.machine, image.size()),
        (BASE, 62, 0x3000)
    );
    assert_eq!(image.build_id(&memory), Some(vec![0xab; 20]));
    assert_eq!(image.eh_frame_hdr, Some((Addr(BASE + 0xe00), 0x80)));
    let writable: Vec<_> = image.writable_segments().collect();
    assert_eq!(writable.len(), 1);
    assert!(writable[0].contains(Addr(BASE + DATA)) && !writable[0].contains(Addr(BASE + 0x3000)));
    assert!(image.segments[0].is_executable() && !image.segments[0].is_writable());
}

#[test]
fn an_executable_that_cannot_move_has_no_bias() {
    let mut bytes = library(&[]);
    put(&mut bytes, 64, &program_header(1, 5, 0x40_0000, 0x1000));
    put(&mut bytes, 64 + 8, &words(&[0]));
    let memory = Pieces::default().with(0x40_0000, bytes);
    assert_eq!(ElfImage::parse(&memory, Addr(0x40_0000)).unwrap().bias, 0);
}

#[test]
fn what_is_not_such_an_image_is_refused() {
    let parse = |bytes: Vec<u8>| {
        ElfImage::parse(&Pieces::default().with(BASE, bytes), Addr(BASE)).unwrap_err()
    };
    assert_eq!(parse(vec![0; 10]), ImageError::NotDumped(Addr(BASE)));
    assert_eq!(
        parse(vec![0; 100]),
        ImageError::WrongMagic(Addr(BASE), "ELF")
    );
    let changed = |at: usize, byte| {
        let mut bytes = library(&[]);
        bytes[at] = byte;
        parse(bytes)
    };
    assert_eq!(changed(4, 1), ImageError::Unsupported(Addr(BASE)));
    assert_eq!(changed(5, 2), ImageError::Unsupported(Addr(BASE)));
    assert!(matches!(changed(57, 2), ImageError::Malformed(..)));
    assert!(matches!(changed(56, 0), ImageError::Malformed(..)));
    assert!(matches!(changed(34, 1), ImageError::NotDumped(_)));
}

fn with_version(at: u64, text: &str) -> Option<String> {
    let mut bytes = library(&[]);
    put(&mut bytes, at, text.as_bytes());
    let memory = Pieces::default()
        .with(BASE, &bytes[..0x1000])
        .with(BASE + DATA, &bytes[DATA as usize..]);
    version_text(&memory, &ElfImage::parse(&memory, Addr(BASE)).unwrap())
}

#[test]
fn version_texts_are_decoded() {
    let text = "@(#)Version 8.0.3426.12345 @Commit: 0123";
    assert_eq!(with_version(DATA + 5, text).as_deref(), Some("8.0.34"));
    assert_eq!(
        with_version(DATA, "@(#)Version 11.0.26.5 @Commit").as_deref(),
        Some("11.0.0")
    );
    // not among the variables, not a version, and cut off
    assert_eq!(with_version(0xf00, text), None);
    assert_eq!(with_version(DATA, "@(#)Version x.y"), None);
    assert_eq!(with_version(DATA + 0xff0, "@(#)Version 8.0."), None);
    let second = "@(#)Version ?  @(#)Version 9.0.2326.1 ";
    assert_eq!(with_version(DATA, second).as_deref(), Some("9.0.23"));
}

#[test]
fn version_texts_are_found_across_chunks_and_behind_missing_pages() {
    let mut header = library(&[]);
    put(
        &mut header,
        64,
        &[
            program_header(1, 5, 0, 0x1000),
            program_header(1, 6, 0x1_0000, 0x10_0000),
        ]
        .concat(),
    );
    let text = b"@(#)Version 10.0.1526.12345 @Commit: 0123";
    // straddles the first 64 KiB of the piece, which begins behind a missing page
    let mut data = vec![0; 0x2_0000];
    put(&mut data, 0x1_0000 - 20, text);
    let memory = Pieces::default()
        .with(BASE, &header[..0x1000])
        .with(BASE + 0x1_1000, data);
    let image = ElfImage::parse(&memory, Addr(BASE)).unwrap();
    assert_eq!(version_text(&memory, &image).as_deref(), Some("10.0.15"));
}

proptest! {
    #[test]
    fn damaged_images_do_no_harm(at in 0usize..0xe00, damage in prop::collection::vec(any::<u8>(), 1..64)) {
        let mut bytes = library(&tables(BASE, &[GNU, SYSV]));
        bytes[at..][..damage.len()].copy_from_slice(&damage);
        let memory = Pieces::default().with(BASE, bytes);
        if let Ok(image) = ElfImage::parse(&memory, Addr(BASE)) {
            let _ = image.symbol(&memory, "g_dacTable");
            let _ = image.build_id(&memory);
            let _ = image.size();
            let _ = version_text(&memory, &image);
        }
    }
}
