use super::*;
use crate::pe::PeLayout;
use crate::test_memory::Pieces;
use proptest::prelude::*;

const BASE: u64 = 0x7ffe_0000_0000;
/// Where things are in the image.
const CLI: u32 = 0x1000;
const HEADER_AT: u32 = 0x1100;
const FUNCTIONS: u32 = 0x1200;
const DEBUG: u32 = 0x1300;
const INSTANCES: u32 = 0x1400;

fn put(bytes: &mut [u8], at: usize, values: &[u32]) {
    for (at, value) in (at..).step_by(4).zip(values) {
        bytes[at..][..4].copy_from_slice(&value.to_le_bytes());
    }
}

/// An image without sections in its header, and its ReadyToRun part.
fn image(instances: &[u8]) -> Pieces {
    let mut page = vec![0; 0x400];
    page[..2].copy_from_slice(b"MZ");
    put(&mut page, 0x3c, &[0x80]);
    page[0x80..][..4].copy_from_slice(b"PE\0\0");
    put(&mut page, 0x84, &[0x8664, 0, 0, 0, 240]);
    put(&mut page, 0x98, &[0x20b]);
    put(&mut page, 0x98 + 56, &[0x1_0000, 0x200]);
    put(&mut page, 0x98 + 108, &[16]);
    put(&mut page, 0x98 + 112 + 14 * 8, &[CLI, 72]);
    let mut code = vec![0; 0x600];
    let at = |rva: u32| usize::try_from(rva - CLI).unwrap();
    put(&mut code, at(CLI) + 64, &[HEADER_AT, 64]);
    put(&mut code, at(HEADER_AT), &[SIGNATURE, 0x0001_001a, 0, 3]);
    let sections = [
        [RUNTIME_FUNCTIONS, FUNCTIONS, 36],
        [DEBUG_INFO, DEBUG, 16],
        [INSTANCE_ENTRY_POINTS, INSTANCES, 64],
    ];
    for (i, section) in sections.iter().enumerate() {
        put(&mut code, at(HEADER_AT) + 16 + 12 * i, section);
    }
    put(
        &mut code,
        at(FUNCTIONS),
        &[0x4000, 0, 0, 0x4100, 0, 0, 0x4180, 0, 0],
    );
    // one element; its block one byte further on; a leaf; nothing to go back over
    code[at(DEBUG)..][..4].copy_from_slice(&[8, 1, 0, 0]);
    code[at(INSTANCES)..][..instances.len()].copy_from_slice(instances);
    Pieces::default()
        .with(BASE, page)
        .with(BASE + u64::from(CLI), code)
}

fn with_code<T>(memory: &Pieces, then: impl FnOnce(&ReadyToRun<'_>) -> T) -> T {
    let image = PeImage::parse(memory, Addr(BASE), PeLayout::Loaded).unwrap();
    then(&ReadyToRun::of(memory, &image).unwrap())
}

#[test]
fn a_function_is_the_last_that_begins_before() {
    with_code(&image(&[]), |code| {
        assert_eq!(code.functions(), 3);
        assert_eq!(code.function_at(0x3fff), None);
        assert_eq!(code.function_at(0x40ff), Some(0));
        assert_eq!(code.function_at(0x4100), Some(1));
        assert_eq!(code.function_at(0xffff), Some(2));
        assert_eq!(code.function_start(3), None);
    });
}

#[test]
fn debug_info_stands_behind_its_distance() {
    with_code(&image(&[]), |code| {
        let expected = Addr(BASE + u64::from(DEBUG) + 4);
        assert_eq!(code.debug_info(0), Some(expected));
        assert_eq!(code.debug_info(1), None);
    });
}

#[test]
fn instances_tell_their_method() {
    // one bucket with one entry; the suspensible form of method 0x12, from function 3 on
    let own = [0, 2, 4, 0x55, 4, 0, 0x81, 0x00, 0x12, 12];
    // the same of another module, with an instantiation over a class
    let foreign = [
        0, 2, 4, 0x55, 4, 0, 0x81, 0x84, 0x09, 0x12, 1, 0x12, 0x05, 12,
    ];
    let read = |bytes: &[u8]| with_code(&image(bytes), |code| code.instances());
    let method = |rid| InstanceMethod { function: 3, rid };
    assert_eq!(read(&own), [method(Some(0x12))]);
    assert_eq!(read(&foreign), [method(None)]);
}

proptest! {
    #[test]
    fn arbitrary_tables_do_not_panic(bytes in prop::collection::vec(any::<u8>(), 0..200), index in any::<u32>()) {
        let memory = image(&bytes);
        let image = PeImage::parse(&memory, Addr(BASE), PeLayout::Loaded).unwrap();
        let reader = native::Reader { memory: &memory, image: &image };
        reader.array_element(INSTANCES, index);
        reader.array_element(INSTANCES, index & 0xff);
        ReadyToRun::of(&memory, &image).unwrap().instances();
    }
}
