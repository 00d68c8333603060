use std::collections::BTreeMap;
use std::io::Write as _;

use flate2::write::GzEncoder;
use proptest::collection::vec;
use proptest::prelude::*;
use ruzstd::encoding::{CompressionLevel, compress_to_vec};

use crate::testkit::*;
use crate::*;

/// A core with every note, as a base for mutations.
fn rich_core() -> Vec<u8> {
    CoreFile::new()
        .note("CORE", 3, &prpsinfo(1, "dotnet", "x"))
        .note(
            "CORE",
            6,
            &[9_u64, 0x1_0000, 0, 0].map(u64::to_le_bytes).concat(),
        )
        .note(
            "CORE",
            0x4649_4C45,
            &file_note(4096, &[(0x1_0000, 0x1_2000, 0, "/x/libcoreclr.so")]),
        )
        .note("CORE", 1, &prstatus(X64, 1, 0, 0))
        .note("CORE", 0x5349_4749, &[6; 128])
        .segment(0x1_0000, &image_page(0x1000, 0x2000), RX)
        .segment(0x1_1000, &[3; 4096], RW)
        .segment(0x7FFF_FFF1_0000, &diagnostics_page(0, 0x1_0000), 4)
        .build()
}

fn pack(bytes: &[u8], zstd: bool) -> Vec<u8> {
    if zstd {
        return compress_to_vec(bytes, CompressionLevel::Fastest);
    }
    let mut out = GzEncoder::new(Vec::new(), flate2::Compression::fast());
    out.write_all(bytes).unwrap();
    out.finish().unwrap()
}

/// Uses everything of a dump that could trip over what the file says.
fn exercise(bytes: Vec<u8>) {
    let options = OpenOptions {
        max_decompressed: 1 << 20,
        record_pages: true,
        use_paths: false,
        ..OpenOptions::default()
    };
    let Ok(dump) = Dump::from_bytes_with(bytes, &options) else {
        return;
    };
    let memory: &dyn Memory = &dump.memory;
    for addr in dump
        .memory
        .ranges()
        .flat_map(|(a, l)| [a, a + l, a.back(1), a + l / 2])
        .take(64)
    {
        let _ = (
            memory.u64(addr),
            memory.c_str(addr, 300),
            memory.why_not(addr, 5000),
            memory.bytes(addr, 99, 100),
        );
        let _ = dump
            .memory
            .iter_pieces(addr, 10_000)
            .map(|(_, b)| b.len())
            .sum::<usize>();
    }
    for thread in &dump.threads {
        let _ = (thread.registers.pc(), thread.registers.all().count());
    }
    let mut out = Vec::new();
    let _ = trim(&dump, &mut out);
    let _ = Dump::from_bytes(out);
}

proptest! {
    #[test]
    fn arbitrary_bytes_never_panic(bytes in vec(any::<u8>(), 0..2000)) {
        exercise(bytes);
    }

    #[test]
    fn arbitrary_bytes_behind_a_magic_never_panic(
        magic in prop::sample::select(vec![
            b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x04\0\x3e\0".to_vec(),
            vec![0x1F, 0x8B, 8, 0],
            vec![0x28, 0xB5, 0x2F, 0xFD],
            vec![0x50, 0x2A, 0x4D, 0x18],
        ]),
        bytes in vec(any::<u8>(), 0..2000),
    ) {
        exercise([magic, bytes].concat());
    }

    #[test]
    fn mutations_and_cuts_of_a_core_never_panic(
        changes in vec((0_usize..6000, any::<u8>()), 0..20),
        early in vec((16_usize..300, prop::sample::select(vec![0_u8, 1, 0x7F, 0x80, 0xFF])), 0..6),
        len in prop::option::of(0_usize..20_000),
    ) {
        let mut bytes = rich_core();
        for (at, value) in changes.into_iter().chain(early) {
            bytes[at] = value;
        }
        bytes.truncate(len.unwrap_or(usize::MAX));
        exercise(bytes);
    }

    #[test]
    fn mutations_of_packed_cores_never_panic(
        zstd in any::<bool>(),
        changes in vec((any::<prop::sample::Index>(), any::<u8>()), 0..6),
        len in prop::option::of(any::<prop::sample::Index>()),
    ) {
        let mut bytes = pack(&rich_core(), zstd);
        let all = bytes.len();
        for (at, value) in changes {
            bytes[at.index(all)] = value;
        }
        bytes.truncate(len.map_or(all, |l| l.index(all)));
        exercise(bytes);
    }

    #[test]
    fn reads_agree_with_a_naive_model(
        segments in vec((0_u64..200, 0_usize..40, 0_u64..30), 1..12),
        cut in 0_usize..60,
        reads in vec((0_u64..260, 1_u64..40), 1..40),
    ) {
        let core = segments.iter().zip(1_u8..).fold(CoreFile::new(), |mut core, ((addr, len, more), fill)| {
            core.segments.push(Segment { addr: *addr, bytes: vec![fill; *len], size: *len as u64 + more, flags: RW });
            core
        });
        let mut file = core.build();
        let data = core.segments.iter().map(|s| s.bytes.len()).sum::<usize>();
        let kept = data.saturating_sub(cut);
        file.truncate(file.len() - data + kept);
        let model = model(&core, kept);
        let Ok(dump) = Dump::from_bytes(file) else {
            prop_assert!(model.values().all(Result::is_err));
            return Ok(());
        };
        for (addr, len) in reads {
            let wanted: Result<Vec<u8>, (u64, FaultReason)> = (addr..addr + len)
                .map(|a| model.get(&a).copied().unwrap_or(Err(FaultReason::Unmapped)).map_err(|r| (a, r)))
                .collect();
            let memory: &dyn Memory = &dump.memory;
            let fault = memory.why_not(Addr(addr), len).map(|f| (f.addr.0, f.reason));
            prop_assert_eq!(fault, wanted.clone().err());
            prop_assert_eq!(memory.bytes(Addr(addr), len, 100), wanted.clone().ok());
            let pieces: Vec<u8> =
                dump.memory.iter_pieces(Addr(addr), len).flat_map(|(_, b)| b.to_vec()).collect();
            let all: Vec<u8> =
                (addr..addr + len).filter_map(|a| model.get(&a).and_then(|b| b.ok())).collect();
            prop_assert_eq!(pieces, all);
        }
    }

    #[test]
    fn recording_agrees_with_a_naive_model(reads in vec((0_u64..900_000, 1_u64..300_000), 0..20)) {
        let recorder = crate::record::Recorder::new(1_000_000);
        let mut pages = std::collections::BTreeSet::new();
        for (offset, len) in reads {
            let len = len.min(1_000_000 - offset);
            recorder.mark(offset, len);
            pages.extend(offset / 4096..=(offset + len - 1) / 4096);
        }
        let seen: Vec<u64> = recorder.touched().into_iter().flat_map(|r| r.start / 4096..r.end.div_ceil(4096)).collect();
        prop_assert_eq!(seen, pages.into_iter().collect::<Vec<_>>());
    }
}

/// Byte by byte: bytes win over holes, and earlier segments over later ones. `kept` bytes of the data are there.
fn model(core: &CoreFile, kept: usize) -> BTreeMap<u64, Result<u8, FaultReason>> {
    let mut out: BTreeMap<u64, Result<u8, FaultReason>> = BTreeMap::new();
    let mut position = 0;
    for segment in &core.segments {
        for i in 0..segment.size {
            let filed = (i as usize) < segment.bytes.len();
            let value = match filed {
                true if position < kept => Ok(segment.bytes[i as usize]),
                true => Err(FaultReason::Truncated),
                false => Err(FaultReason::NotDumped),
            };
            position += usize::from(filed);
            let slot = out.entry(segment.addr + i).or_insert(value);
            if slot.is_err() && value.is_ok() {
                *slot = value;
            }
        }
    }
    out
}

#[test]
fn segments_at_the_end_of_the_address_space_do_not_wrap() {
    let dump =
        Dump::from_bytes(CoreFile::new().segment(u64::MAX - 8, &[1; 64], RW).build()).unwrap();
    assert_eq!(dump.memory.slice(Addr(u64::MAX - 8), 8), Some(&[1; 8][..]));
    assert_eq!(dump.memory.slice(Addr(u64::MAX - 8), 9), None);
    assert_eq!(dump.memory.run(Addr(0)), 0);
}

#[test]
fn one_note_listed_again_and_again_is_read_once() {
    let mut core = CoreFile::new().segment(0x1000, &[0; 8], RW);
    for id in 0..200 {
        core = core.note("CORE", 1, &prstatus(X64, id, 0, 0));
    }
    core.segments.extend(vec![core.segments[0].clone(); 5000]);
    let mut file = core.build();
    let first: [u8; 56] = file[64..120].try_into().unwrap();
    for i in 2..5001 {
        file[64 + 56 * i..120 + 56 * i].copy_from_slice(&first);
    }
    let dump = Dump::from_bytes(file.clone()).unwrap();
    assert!(
        dump.threads.len() * 336 <= file.len(),
        "{}",
        dump.threads.len()
    );
}

#[test]
fn many_overlapping_segments_take_no_quadratic_time() {
    let core = (0..60_000_u64).fold(CoreFile::new(), |core, i| core.hole(i, 1 << 40));
    let dump = Dump::from_bytes(core.segment(0x100, &[7; 8], RW).build()).unwrap();
    assert_eq!(dump.memory.slice(Addr(0x100), 1), Some(&[7][..]));
    assert_eq!(
        dump.memory.why_not(Addr(1 << 30), 1).map(|f| f.reason),
        Some(FaultReason::NotDumped)
    );
}
