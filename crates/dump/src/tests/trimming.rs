use crate::testkit::*;
use crate::*;

fn record() -> OpenOptions {
    OpenOptions {
        record_pages: true,
        use_paths: false,
        ..OpenOptions::default()
    }
}

/// 16 pages at 0x1_0000, the n-th filled with n + 1, then a hole, then the same pages at 0x9_0000 with 0x80 added.
fn core() -> CoreFile {
    let pages = |plus: u8| {
        (0..16_u8)
            .flat_map(|p| [p + 1 + plus; 4096])
            .collect::<Vec<_>>()
    };
    CoreFile::new()
        .note("CORE", 1, &prstatus(X64, 9, 0, 1))
        .segment(0x1_0000, &pages(0), RW)
        .hole(0x2_0000, 0x1000)
        .segment(0x9_0000, &pages(0x80), RX)
}

fn trimmed(dump: &Dump) -> Dump {
    let mut out = Vec::new();
    let len = trim(dump, &mut out).unwrap();
    assert_eq!(len, out.len() as u64);
    Dump::from_bytes(out).unwrap()
}

fn why(dump: &Dump, addr: u64) -> Option<FaultReason> {
    dump.memory.why_not(Addr(addr), 1).map(|f| f.reason)
}

#[test]
fn nothing_is_recorded_unless_asked_for() {
    let dump = Dump::from_bytes(core().build()).unwrap();
    assert_eq!(dump.memory.slice(Addr(0x1_0000), 1), Some(&[1][..]));
    assert_eq!(dump.memory.touched(), []);
    assert!(matches!(
        trim(&dump, &mut Vec::new()),
        Err(TrimError::NotRecorded)
    ));
}

#[test]
fn reads_mark_the_pages_of_the_file() {
    let dump = Dump::from_bytes_with(core().build(), &record()).unwrap();
    assert_eq!(dump.memory.touched(), []);
    assert!(dump.memory.slice(Addr(0x1_0FFF), 2).is_some());
    assert!(dump.memory.read_into(Addr(0x1_5000), &mut [0; 8]));
    assert_eq!(dump.memory.scan_pieces(Addr(0), u64::MAX).count(), 2);
    assert_eq!(dump.memory.touched(), [4096..4096 * 3, 4096 * 6..4096 * 7]);
    assert_eq!(dump.memory.iter_pieces(Addr(0), u64::MAX).count(), 2);
    assert_eq!(dump.memory.touched(), vec![4096_u64..4096 * 33; 1]);
}

#[test]
fn a_trimmed_dump_holds_what_was_read_and_lists_the_rest() {
    let dump = Dump::from_bytes_with(core().build(), &record()).unwrap();
    for addr in [0x1_3000, 0x1_4008, 0x9_F000] {
        assert!(dump.memory.slice(Addr(addr), 8).is_some());
    }
    let small = trimmed(&dump);
    let ranges: Vec<_> = small.memory.ranges().collect();
    assert_eq!(ranges, [(Addr(0x1_3000), 0x2000), (Addr(0x9_F000), 0x1000)]);
    for addr in [0x1_3000, 0x1_4000, 0x9_F000].map(Addr) {
        assert_eq!(small.memory.slice(addr, 64), dump.memory.slice(addr, 64));
        assert_eq!(
            small.memory.slice(addr + 64, 8),
            Some(&[0; 8][..]),
            "the next line was not read"
        );
    }
    assert_eq!(why(&small, 0x1_2FFF), Some(FaultReason::NotDumped));
    assert_eq!(why(&small, 0x2_0000), Some(FaultReason::NotDumped));
    assert_eq!(why(&small, 0x2_1000), Some(FaultReason::Unmapped));
    assert_eq!(
        (small.threads.clone(), small.kind, small.truncated),
        (dump.threads.clone(), dump.kind, None)
    );
    let last = small.memory.regions().last().unwrap();
    assert_eq!((last.start, last.access.execute), (Addr(0x9_F000), true));
}

#[test]
fn what_the_old_file_lacked_is_still_lacking() {
    let mut file = core().build();
    file.truncate(file.len() - 0x1800);
    let dump = Dump::from_bytes_with(file, &record()).unwrap();
    assert!(dump.memory.slice(Addr(0x9_E000), 8).is_some());
    let small = trimmed(&dump);
    assert_eq!(small.truncated, dump.truncated);
    assert_eq!(why(&small, 0x9_E7FF), None);
    assert_eq!(why(&small, 0x9_E800), Some(FaultReason::Truncated));
}

#[test]
fn every_second_page() {
    let bytes: Vec<u8> = (0..40_000_u64)
        .flat_map(|p| [p; 512])
        .flat_map(u64::to_le_bytes)
        .collect();
    let dump = Dump::from_bytes_with(
        CoreFile::new().segment(0x10_0000, &bytes, RW).build(),
        &record(),
    )
    .unwrap();
    for page in (0..40_000).step_by(2) {
        assert!(
            dump.memory
                .slice(Addr(0x10_0000 + 4096 * page), 8)
                .is_some()
        );
    }
    let small = trimmed(&dump);
    assert_eq!(small.memory.ranges().count(), 20_000);
    assert_eq!(small.memory.regions().len(), 40_000);
}

#[test]
fn more_parts_than_the_header_can_count() {
    let core = (0..66_000_u64).fold(CoreFile::new(), |core, i| {
        core.segment(0x1_0000 + 32 * i, &i.to_le_bytes(), RW)
    });
    let dump = Dump::from_bytes_with(core.build(), &record()).unwrap();
    let memory: &dyn Memory = &dump.memory;
    assert_eq!(memory.u64(Addr(0x1_0000 + 32 * 65_999)), Some(65_999));
    let small = trimmed(&dump);
    let memory: &dyn Memory = &small.memory;
    assert_eq!(memory.u64(Addr(0x1_0000 + 32 * 65_999)), Some(65_999));
    assert_eq!(why(&small, 0x1_0000), Some(FaultReason::NotDumped));
    assert!(small.memory.regions().len() >= 66_000);
}

#[test]
fn an_untouched_dump_cannot_be_opened_again_for_lack_of_memory() {
    let dump = Dump::from_bytes_with(core().build(), &record()).unwrap();
    let mut out = Vec::new();
    trim(&dump, &mut out).unwrap();
    assert!(matches!(
        Dump::from_bytes(out),
        Err(OpenError::NoMemory { truncated: false })
    ));
}
