use super::*;

fn with(payload: &[u8]) -> Cursor<'_> {
    Cursor::new(payload, 0)
}

fn load() -> Vec<u8> {
    let mut bytes = Vec::new();
    for number in [0x10_u64, 0x20, 0x1000] {
        bytes.extend(number.to_le_bytes());
    }
    for number in [0x40_u32, 0x0600_0001, 8] {
        bytes.extend(number.to_le_bytes());
    }
    for text in ["N.T", "M", "void ()"] {
        bytes.extend(asynctriage_dump_synth::nettrace::utf16(text));
    }
    bytes
}

#[test]
fn versions_of_methods_differ_at_the_end() {
    let mut bytes = load();
    let read = |bytes: &[u8], version| {
        let found = method(with(bytes), true, version)?;
        Some((found.start, found.size, found.name.to_string(), found.rejit))
    };
    assert_eq!(read(&bytes, 0), Some((0x1000, 0x40, "M".into(), 0)));
    assert_eq!(read(&bytes, 1), None);
    bytes.extend([9, 0]);
    assert_eq!(read(&bytes, 1), Some((0x1000, 0x40, "M".into(), 0)));
    assert_eq!(read(&bytes, 2), None);
    bytes.extend(5_u64.to_le_bytes());
    assert_eq!(read(&bytes, 2), Some((0x1000, 0x40, "M".into(), 5)));
    bytes.extend([1, 2, 3]);
    assert_eq!(read(&bytes, 9), Some((0x1000, 0x40, "M".into(), 5)));
    let short = method(with(&bytes[..36]), false, 0).unwrap();
    assert!(!short.verbose && short.name.is_empty());
}

#[test]
fn il_maps_are_pairs() {
    let mut bytes = [0x10_u64.to_le_bytes(), 2_u64.to_le_bytes()].concat();
    bytes.extend([0, 2, 0]);
    for number in [-2_i32, 7, 0, 30] {
        bytes.extend(number.to_le_bytes());
    }
    let map = il_map(with(&bytes)).unwrap();
    assert_eq!((map.method, map.rejit), (0x10, 2));
    assert_eq!(map.pairs().collect::<Vec<_>>(), [(-2, 0), (7, 30)]);
    assert!(il_map(with(&bytes[..bytes.len() - 1])).is_none());
}
