use crate::testkit::*;
use crate::*;

fn open(core: &CoreFile) -> Dump {
    Dump::from_bytes(core.build()).unwrap()
}

fn fault(memory: &AddressSpace, addr: u64, len: u64) -> Option<(u64, u64, FaultReason)> {
    memory
        .why_not(Addr(addr), len)
        .map(|f| (f.addr.0, f.len, f.reason))
}

#[test]
fn memory_is_read_where_the_headers_say() {
    let dump = open(&CoreFile::new().segment(0x1000, &[1; 4096], RW).segment(
        0x8000,
        b"abcdefgh",
        RX,
    ));
    let memory: &dyn Memory = &dump.memory;
    assert_eq!(
        memory.u64(Addr(0x8000)),
        Some(u64::from_le_bytes(*b"abcdefgh"))
    );
    assert_eq!(memory.u64(Addr(0x8001)), None);
    assert_eq!(memory.run(Addr(0x1FFE)), 2);
    assert_eq!(
        dump.memory.ranges().collect::<Vec<_>>(),
        [(Addr(0x1000), 4096), (Addr(0x8000), 8)]
    );
    assert_eq!(dump.container, Container::ElfCore);
    assert_eq!(dump.truncated, None);
}

#[test]
fn regions_keep_their_access_rights() {
    let dump = open(
        &CoreFile::new()
            .segment(0x9000, &[0; 8], RX)
            .segment(0x1000, &[0; 8], RW),
    );
    let seen: Vec<_> = dump
        .memory
        .regions()
        .iter()
        .map(|r| (r.start.0, r.access.write, r.access.execute))
        .collect();
    assert_eq!(seen, [(0x1000, true, false), (0x9000, false, true)]);
}

#[test]
fn neighbours_in_memory_and_file_are_one_range() {
    let dump = open(
        &CoreFile::new()
            .segment(0x1000, &[1; 16], RW)
            .segment(0x1010, &[2; 16], RX),
    );
    assert_eq!(
        dump.memory.ranges().collect::<Vec<_>>(),
        [(Addr(0x1000), 32)]
    );
    assert_eq!(dump.memory.regions().len(), 2);
    assert_eq!(dump.memory.slice(Addr(0x100E), 4), Some(&[1, 1, 2, 2][..]));
}

#[test]
fn reads_across_pieces_are_put_together() {
    // in the file the second comes first
    let dump = open(&CoreFile::new().segment(0x1004, &[5, 6, 7, 8], RW).segment(
        0x1000,
        &[1, 2, 3, 4],
        RW,
    ));
    let memory: &dyn Memory = &dump.memory;
    assert_eq!(memory.slice(Addr(0x1000), 8), None);
    assert_eq!(memory.u64(Addr(0x1000)), Some(0x0807_0605_0403_0201));
    assert!(memory.readable(Addr(0x1000), 8));
}

#[test]
fn what_is_not_dumped_is_told_from_what_is_not_mapped() {
    let mut core = CoreFile::new()
        .segment(0x1000, &[1; 16], RW)
        .hole(0x9000, 0x1000);
    core.segments[0].size = 0x1000;
    let memory = open(&core).memory;
    assert_eq!(
        fault(&memory, 0x1008, 16),
        Some((0x1010, 8, FaultReason::NotDumped))
    );
    assert_eq!(
        fault(&memory, 0x9FFF, 1),
        Some((0x9FFF, 1, FaultReason::NotDumped))
    );
    assert_eq!(
        fault(&memory, 0xA000, 1),
        Some((0xA000, 1, FaultReason::Unmapped))
    );
    assert_eq!(
        fault(&memory, u64::MAX, 2),
        Some((u64::MAX, 2, FaultReason::Unmapped))
    );
    assert_eq!(fault(&memory, 0x1000, 0), None);
}

#[test]
fn a_cut_file_counts_what_it_lacks() {
    let mut file = CoreFile::new()
        .segment(0x1000, &[1; 4096], RW)
        .segment(0x8000, &[2; 4096], RW)
        .build();
    file.truncate(file.len() - 4096 - 96);
    let dump = Dump::from_bytes(file).unwrap();
    let lost = Truncation {
        missing_bytes: 4096 + 96,
        regions: 2,
        lost_headers: 0,
    };
    assert_eq!(dump.truncated, Some(lost));
    assert_eq!(
        fault(&dump.memory, 0x1FA0, 1),
        Some((0x1FA0, 1, FaultReason::Truncated))
    );
    assert_eq!(dump.memory.run(Addr(0x1F9F)), 1);
}

#[test]
fn the_first_of_overlapping_segments_wins_and_bytes_win_over_holes() {
    let dump = open(
        &CoreFile::new()
            .hole(0x1000, 0x100)
            .segment(0x1010, &[1; 16], RW)
            .segment(0x1008, &[2; 32], RW),
    );
    let memory: &dyn Memory = &dump.memory;
    let seen: Vec<_> = (0..4)
        .map(|i| memory.u64(Addr(0x1008 + 8 * i)).unwrap() as u8)
        .collect();
    assert_eq!(seen, [2, 1, 1, 2]);
    assert_eq!(
        fault(&dump.memory, 0x1007, 1),
        Some((0x1007, 1, FaultReason::NotDumped))
    );
    assert_eq!(
        fault(&dump.memory, 0x1028, 1),
        Some((0x1028, 1, FaultReason::NotDumped))
    );
}

#[test]
fn seventy_thousand_segments_are_counted_in_the_section() {
    let core = (0..70_000_u64).fold(CoreFile::new(), |core, i| {
        core.segment(0x1_0000 + 32 * i, &i.to_le_bytes(), RW)
    });
    let dump = open(&core);
    let memory: &dyn Memory = &dump.memory;
    assert_eq!(dump.memory.regions().len(), 70_000);
    assert_eq!(memory.u64(Addr(0x1_0000 + 32 * 69_999)), Some(69_999));
}

#[test]
fn threads_of_x64() {
    let dump = open(
        &CoreFile::new()
            .note("CORE", 1, &prstatus(X64, 77, 11, 100))
            .note("CORE", 1, &prstatus(X64, 78, 0, 200))
            .segment(0x1000, &[0; 8], RW),
    );
    let [first, second] = &dump.threads[..] else {
        panic!("{:?}", dump.threads)
    };
    assert_eq!(
        (first.id, first.signal, second.id, second.signal),
        (77, Some(11), 78, None)
    );
    let r = &first.registers;
    assert_eq!((r.pc(), r.sp(), r.fp()), (Addr(116), Addr(119), Addr(104)));
    assert_eq!(r.thread_pointer(), Some(Addr(121)));
    // rax, rcx, rdx, rbx, rsp, rbp, rsi, rdi, r8..r15
    let order = [
        110, 111, 112, 105, 119, 104, 113, 114, 109, 108, 107, 106, 103, 102, 101, 100,
    ];
    assert_eq!(r.all().collect::<Vec<_>>(), order);
    assert_eq!(dump.process.signal, Some(11));
}

#[test]
fn threads_of_arm64() {
    let mut core = CoreFile::new()
        .note("CORE", 1, &prstatus(ARM64, 5, 0, 1000))
        .note("LINUX", 0x401, &0xABCD_u64.to_le_bytes())
        .segment(0x1000, &[0; 8], RW);
    core.machine = ARM64;
    let dump = open(&core);
    let r = &dump.threads[0].registers;
    assert_eq!(
        dump.target,
        Target {
            os: Os::Linux,
            arch: Arch::Arm64
        }
    );
    assert_eq!(
        (r.pc(), r.sp(), r.fp()),
        (Addr(1032), Addr(1031), Addr(1029))
    );
    assert_eq!(r.thread_pointer(), Some(Addr(0xABCD)));
    assert_eq!(
        r.all().collect::<Vec<_>>(),
        (1000..1032).collect::<Vec<_>>()
    );
}

#[test]
fn facts_about_the_process() {
    let dump = open(
        &CoreFile::new()
            .note("CORE", 3, &prpsinfo(42, "dotnet", "dotnet app.dll  "))
            .note(
                "CORE",
                6,
                &[9_u64, 0x5555, 0, 0].map(u64::to_le_bytes).concat(),
            )
            .note("CORE", 1, &prstatus(X64, 42, 6, 0))
            .segment(0x7FFF_FFF1_0000, &diagnostics_page(0xE0, 0xB000), 4),
    );
    let process = &dump.process;
    assert_eq!(process.pid, Some(42));
    assert_eq!(process.command.as_deref(), Some("dotnet"));
    assert_eq!(process.arguments.as_deref(), Some("dotnet app.dll"));
    assert_eq!(
        (process.exception_record, process.runtime_base),
        (Some(Addr(0xE0)), Some(Addr(0xB000)))
    );
    assert_eq!(
        (process.auxiliary(9), process.auxiliary(3)),
        (Some(0x5555), None)
    );
    assert_eq!(
        process.signal, None,
        "createdump's signals of threads mean nothing"
    );
}

#[test]
fn mapped_files_count_their_offsets_in_the_stated_unit() {
    let files = [
        (0x1000, 0x2000, 3, "/lib/a.so"),
        (0x4000, 0x5000, 0, "/lib/ü.so (deleted)"),
    ];
    for unit in [1, 4096] {
        let dump = open(
            &CoreFile::new()
                .note("CORE", 0x4649_4C45, &file_note(unit, &files))
                .segment(0, &[0; 8], RW),
        );
        let seen: Vec<_> = dump
            .files
            .iter()
            .map(|f| (f.start.0, f.end.0, f.file_offset, f.path.as_str()))
            .collect();
        let wanted = files.map(|(start, end, offset, path)| (start, end, offset * unit, path));
        assert_eq!(seen, wanted);
    }
}

#[test]
fn sixty_thousand_mapped_files() {
    let files: Vec<_> = (0..60_000_u64)
        .map(|i| (i << 12, (i + 1) << 12, i, "/a"))
        .collect();
    let dump = open(
        &CoreFile::new()
            .note("CORE", 0x4649_4C45, &file_note(1, &files))
            .segment(0, &[0; 8], RW),
    );
    assert_eq!(dump.files.len(), 60_000);
}

#[test]
fn notes_of_other_owners_are_not_taken_for_ours() {
    let dump = open(
        &CoreFile::new()
            .note("XEN", 1, &prstatus(X64, 1, 0, 0))
            .segment(0x1000, &[0; 8], RW),
    );
    assert_eq!(dump.threads, []);
}

#[test]
fn a_file_note_that_promises_too_much_gives_what_is_there() {
    let mut note = file_note(1, &[(0x1000, 0x2000, 0, "/a")]);
    note[..8].copy_from_slice(&u64::MAX.to_le_bytes());
    let dump = open(
        &CoreFile::new()
            .note("CORE", 0x4649_4C45, &note)
            .segment(0x1000, &[0; 8], RW),
    );
    assert!(dump.files.len() <= 1);
}
