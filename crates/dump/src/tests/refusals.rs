use std::fmt::Write as _;
use std::io::Write as _;
use std::path::PathBuf;

use flate2::write::GzEncoder;
use ruzstd::encoding::{CompressionLevel, compress_to_vec};

use crate::testkit::*;
use crate::*;

/// Bytes of memory in the core: several blocks of any compression.
const LEN: u64 = 1 << 20;

fn core() -> Vec<u8> {
    let bytes: Vec<u8> = (0..LEN as u32)
        .map(|i| (i.wrapping_mul(2_654_435_761) >> 13) as u8)
        .collect();
    CoreFile::new().segment(0x1000, &bytes, RW).build()
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut out = GzEncoder::new(Vec::new(), flate2::Compression::fast());
    out.write_all(bytes).unwrap();
    out.finish().unwrap()
}

fn zstd(bytes: &[u8]) -> Vec<u8> {
    compress_to_vec(bytes, CompressionLevel::Fastest)
}

fn with(offset: usize, value: u8) -> Vec<u8> {
    let mut file = core();
    file[offset] = value;
    file
}

/// A file in the system's directory for temporary files, removed in the end.
struct TempFile(PathBuf);

impl TempFile {
    fn new(name: &str, bytes: &[u8]) -> Self {
        let path = std::env::temp_dir().join(format!("asynctriage-{}-{name}", std::process::id()));
        std::fs::write(&path, bytes).unwrap();
        Self(path)
    }
}

impl Drop for TempFile {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

#[test]
fn every_refusal_says_what_it_is_and_what_to_do() {
    let mut gcdump = b"\x14\0\0\0!FastSerialization.1".to_vec();
    gcdump.extend([0; 40]);
    let cases: Vec<(&str, Vec<u8>)> = vec![
        ("empty", vec![]),
        ("minidump header only", b"MDMP\x93\xa7".to_vec()),
        ("minidump header in gzip", gzip(b"MDMP\x93\xa7")),
        ("program", with(16, 3)),
        ("assembly", b"MZ\x90\0".to_vec()),
        ("32 bit", with(4, 1)),
        ("machine", with(18, 243)),
        ("xz", b"\xfd7zXZ\0\0".to_vec()),
        ("zip", b"PK\x03\x04..".to_vec()),
        ("lz4", vec![4, 0x22, 0x4D, 0x18, 0]),
        ("text", b"hello, this is a log file\n".to_vec()),
        ("text in zstd", zstd(b"hello, this is a log file\n")),
        ("zeros", vec![0; 8192]),
        ("trace", b"Nettrace\x14\0\0\0!FastSerialization.1".to_vec()),
        ("gcdump", gcdump),
        ("random", vec![0x81, 0, 7, 3, 0x99, 0xFF, 1]),
        ("header only", core()[..40].to_vec()),
        ("no memory", CoreFile::new().hole(0x1000, 4096).build()),
        ("cut before memory", core()[..4096].to_vec()),
        ("broken gzip", vec![0x1F, 0x8B, 8, 0, 0]),
        ("broken zstd", vec![0x28, 0xB5, 0x2F, 0xFD, 0xFF, 0xFF]),
    ];
    let mut seen = String::new();
    for (name, bytes) in cases {
        let error = Dump::from_bytes(bytes).expect_err(name);
        writeln!(seen, "{name}: {error}\n    -> {}", error.remedy()).unwrap();
    }
    insta::assert_snapshot!(seen);
}

#[test]
fn a_big_endian_core_is_told_from_a_program() {
    let mut file = core();
    file[5] = 2;
    file[16..18].copy_from_slice(&[0, 4]);
    assert!(matches!(Dump::from_bytes(file), Err(OpenError::BigEndian)));
}

#[test]
fn paths_that_are_no_files() {
    let options = OpenOptions::default();
    let dir = std::env::temp_dir();
    assert!(matches!(
        Dump::open(&dir, &options),
        Err(OpenError::IsDirectory(_))
    ));
    assert!(matches!(
        Dump::open(&dir.join("no/such.dmp"), &options),
        Err(OpenError::NotFound(_))
    ));
    let empty = TempFile::new("empty", &[]);
    assert!(matches!(
        Dump::open(&empty.0, &options),
        Err(OpenError::Empty)
    ));
}

#[cfg(unix)]
#[test]
fn devices_are_refused_without_reading() {
    let device = std::path::Path::new("/dev/zero");
    assert!(matches!(
        Dump::open(device, &OpenOptions::default()),
        Err(OpenError::NotAFile(_))
    ));
}

#[test]
fn packed_dumps_are_known_by_content_not_by_name() {
    for (packed, format) in [
        (gzip(&core()), CompressionFormat::Gzip),
        (zstd(&core()), CompressionFormat::Zstd),
    ] {
        let file = TempFile::new(&format!("{format}.dmp"), &packed);
        let dump = Dump::open(&file.0, &OpenOptions::default()).unwrap();
        let compressed_len = packed.len() as u64;
        assert_eq!(
            dump.compression,
            Some(Compression {
                format,
                compressed_len,
                end: StreamEnd::Complete
            })
        );
        assert_eq!(dump.file_len, core().len() as u64);
        assert_eq!(dump.truncated, None);
        assert_eq!(
            dump.memory.slice(Addr(0x1000), LEN).unwrap(),
            &core()[4096..]
        );
    }
}

#[test]
fn zstd_of_several_frames_and_skippable_ones() {
    let file = core();
    let (first, second) = file.split_at(700_000);
    let skippable = [&[0x50, 0x2A, 0x4D, 0x18, 3, 0, 0, 0][..], b"abc"].concat();
    let packed = [&skippable, &zstd(first)[..], &skippable, &zstd(second)].concat();
    let dump = Dump::from_bytes(packed).unwrap();
    assert_eq!(dump.compression.unwrap().end, StreamEnd::Complete);
    assert_eq!(dump.file_len, core().len() as u64);
}

#[test]
fn a_cut_packed_dump_is_used_as_far_as_it_goes() {
    for packed in [gzip(&core()), zstd(&core())] {
        let dump = Dump::from_bytes(packed[..packed.len() / 2].to_vec()).unwrap();
        assert_eq!(dump.compression.unwrap().end, StreamEnd::Cut);
        let got = LEN - dump.truncated.unwrap().missing_bytes;
        assert!(got > LEN / 4, "{got}");
        let start = dump.memory.slice(Addr(0x1000), got).unwrap();
        assert_eq!(start, &core()[4096..4096 + got as usize]);
    }
}

#[test]
fn bombs_stop_at_the_bound() {
    let mut bomb = CoreFile::new().segment(0x1000, &[1; 16], RW).build();
    bomb.resize(64 << 20, 0);
    let options = OpenOptions {
        max_decompressed: 1 << 20,
        ..OpenOptions::default()
    };
    for packed in [gzip(&bomb), zstd(&bomb)] {
        let refused = Dump::from_bytes_with(packed, &options);
        assert!(matches!(
            refused,
            Err(OpenError::TooLarge { limit: 0x10_0000 })
        ));
    }
}
