use crate::*;

const X64: u16 = 9;
const FULL: u64 = 0x6_1826;
const HEAP: u64 = 0x4_1A25;

/// A minidump to be written: streams by number, and bytes that they point to.
struct File {
    flags: u64,
    streams: Vec<(u32, Vec<u8>)>,
    /// Where `extra` will stand: streams need to know it when they are made.
    extra_at: u32,
    extra: Vec<u8>,
}

impl File {
    fn new(flags: u64, machine: u16, platform: u32) -> Self {
        let mut system = vec![0; 56];
        system[..2].copy_from_slice(&machine.to_le_bytes());
        system[8..20].copy_from_slice(&[10_u32, 0, 19045].map(u32::to_le_bytes).concat());
        system[20..24].copy_from_slice(&platform.to_le_bytes());
        Self {
            flags,
            streams: vec![(7, system)],
            extra_at: 0x2000,
            extra: Vec::new(),
        }
    }

    fn windows(flags: u64) -> Self {
        Self::new(flags, X64, 2)
    }

    /// Puts bytes behind the streams and says where they are.
    fn put(&mut self, bytes: &[u8]) -> u32 {
        let at = self.extra_at + self.extra.len() as u32;
        self.extra.extend(bytes);
        at
    }

    fn put_text(&mut self, text: &str) -> u32 {
        let units: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
        let mut bytes = (units.len() as u32).to_le_bytes().to_vec();
        bytes.extend(units);
        bytes.extend([0, 0]);
        self.put(&bytes)
    }

    fn stream(mut self, kind: u32, bytes: Vec<u8>) -> Self {
        self.streams.push((kind, bytes));
        self
    }

    /// Memory64List: its bytes must be the last ones that are put.
    fn memory64(mut self, ranges: &[(u64, &[u8])]) -> Self {
        let base = u64::from(self.extra_at) + self.extra.len() as u64;
        let mut list = [ranges.len() as u64, base].map(u64::to_le_bytes).concat();
        for (addr, bytes) in ranges {
            list.extend([*addr, bytes.len() as u64].map(u64::to_le_bytes).concat());
            self.put(bytes);
        }
        self.stream(9, list)
    }

    fn memory(mut self, ranges: &[(u64, &[u8])]) -> Self {
        let mut list = (ranges.len() as u32).to_le_bytes().to_vec();
        for (addr, bytes) in ranges {
            let at = self.put(bytes);
            list.extend(addr.to_le_bytes());
            list.extend([bytes.len() as u32, at].map(u32::to_le_bytes).concat());
        }
        self.stream(5, list)
    }

    /// MemoryInfoList with start, size, state and protection.
    fn info(self, regions: &[(u64, u64, u32, u32)]) -> Self {
        let mut list = [16_u32, 48].map(u32::to_le_bytes).concat();
        list.extend((regions.len() as u64).to_le_bytes());
        for (start, size, state, protection) in regions {
            list.extend([*start, *start, 4, *size].map(u64::to_le_bytes).concat());
            list.extend(
                [*state, *protection, 0x2_0000, 0]
                    .map(u32::to_le_bytes)
                    .concat(),
            );
        }
        self.stream(16, list)
    }

    fn build(&self) -> Vec<u8> {
        let mut out = [
            0x504D_444D,
            0xA793,
            self.streams.len() as u32,
            32,
            0,
            1_000_000,
        ]
        .map(u32::to_le_bytes)
        .concat();
        out.extend(self.flags.to_le_bytes());
        let mut at = 32 + 12 * self.streams.len() as u32;
        for (kind, bytes) in &self.streams {
            out.extend(
                [*kind, bytes.len() as u32, at]
                    .map(u32::to_le_bytes)
                    .concat(),
            );
            at += bytes.len() as u32;
        }
        for (_, bytes) in &self.streams {
            out.extend(bytes);
        }
        assert!(out.len() <= self.extra_at as usize);
        out.resize(self.extra_at as usize, 0);
        out.extend(&self.extra);
        out
    }

    fn open(&self) -> Result<Dump, OpenError> {
        Dump::from_bytes(self.build())
    }
}

fn read(dump: &Dump, addr: u64) -> Option<u64> {
    let memory: &dyn Memory = &dump.memory;
    memory.u64(Addr(addr))
}

/// `count` bytes that count up from `first`.
fn counting(first: u8, count: usize) -> Vec<u8> {
    (0..count).map(|i| first.wrapping_add(i as u8)).collect()
}

#[test]
fn both_lists_of_memory_count_and_neighbours_are_one() {
    let dump = File::windows(HEAP)
        .memory(&[
            (0x1000, &counting(1, 6)),
            (0x1006, &counting(7, 10)),
            (0x5000, &[9; 8]),
        ])
        .memory64(&[(0x5000, &counting(50, 16))])
        .open()
        .unwrap();
    assert_eq!(dump.container, Container::Minidump);
    assert_eq!(
        dump.target,
        Target {
            os: Os::Windows,
            arch: Arch::X64
        }
    );
    assert_eq!(
        read(&dump, 0x1004),
        Some(u64::from_le_bytes([5, 6, 7, 8, 9, 10, 11, 12]))
    );
    assert_eq!(read(&dump, 0x1009), None);
    // a full list wins over a reduced one
    assert_eq!(
        read(&dump, 0x5000),
        Some(u64::from_le_bytes([50, 51, 52, 53, 54, 55, 56, 57]))
    );
    assert!(dump.truncated.is_none());
}

#[test]
fn a_cut_file_is_used_as_far_as_it_goes() {
    let file =
        File::windows(FULL).memory64(&[(0x1000, &[1; 64]), (0x2000, &[2; 64]), (0x3000, &[3; 64])]);
    let mut bytes = file.build();
    bytes.truncate(bytes.len() - 96);
    let dump = Dump::from_bytes(bytes).unwrap();
    assert_eq!(dump.kind, DumpKind::Full);
    let lost = Truncation {
        missing_bytes: 96,
        regions: 2,
        lost_headers: 0,
    };
    assert_eq!(dump.truncated, Some(lost));
    assert_eq!(read(&dump, 0x2018), Some(0x0202_0202_0202_0202));
    assert_eq!(read(&dump, 0x2020), None);
    let fault = dump.memory.why_not(Addr(0x3000), 8).unwrap();
    assert_eq!(fault.reason, FaultReason::Truncated);
}

#[test]
fn regions_and_holes_come_from_the_list_of_the_process() {
    let dump = File::windows(HEAP)
        .memory(&[(0x1000, &[1; 16])])
        .info(&[
            (0x1000, 0x1000, 0x1000, 0x04),
            (0x4000, 0x1000, 0x1000, 0x20),
            (0x8000, 0x1000, 0x2000, 0),
        ])
        .open()
        .unwrap();
    let [data, code] = dump.memory.regions() else {
        panic!("{:?}", dump.memory.regions());
    };
    assert_eq!((data.dumped, data.size), (16, 0x1000));
    assert!(data.access.write && !data.access.execute && code.access.execute);
    let reason = |addr| dump.memory.why_not(Addr(addr), 1).unwrap().reason;
    assert_eq!(reason(0x4000), FaultReason::NotDumped);
    assert_eq!(
        reason(0x8000),
        FaultReason::Unmapped,
        "reserved is not mapped"
    );
}

#[test]
fn threads_and_modules_have_names_and_registers() {
    let mut file = File::windows(FULL);
    let mut context = vec![0; 1232];
    context[0x30..0x34].copy_from_slice(&0x10_001F_u32.to_le_bytes());
    context[0x98..0xA0].copy_from_slice(&0x7000_u64.to_le_bytes());
    context[0xF8..0x100].copy_from_slice(&0x1234_u64.to_le_bytes());
    let context = file.put(&context);
    let name = file.put_text("worker");
    let path = file.put_text(r"C:\app\coreclr.dll");
    let mut thread = [1_u32, 42, 0, 0, 0].map(u32::to_le_bytes).concat();
    thread.extend(0x6000_u64.to_le_bytes());
    thread.extend(0x7000_u64.to_le_bytes());
    thread.extend([0_u32, 0, 1232, context].map(u32::to_le_bytes).concat());
    let mut names = [1_u32, 42].map(u32::to_le_bytes).concat();
    names.extend(u64::from(name).to_le_bytes());
    let mut module = 1_u32.to_le_bytes().to_vec();
    module.extend(0x18_0000_0000_u64.to_le_bytes());
    module.extend([0x5000_u32, 0, 0xABCD, path].map(u32::to_le_bytes).concat());
    module.extend(
        [0xFEEF_04BD_u32, 0x1_0000, 10 << 16, 1526 << 16 | 53008]
            .map(u32::to_le_bytes)
            .concat(),
    );
    module.resize(4 + 108, 0);
    let dump = file
        .stream(3, thread)
        .stream(24, names)
        .stream(4, module)
        .memory64(&[(0x7000, &[0; 8])])
        .open()
        .unwrap();
    let thread = &dump.threads[0];
    assert_eq!((thread.id, thread.name.as_deref()), (42, Some("worker")));
    assert_eq!(
        (thread.registers.sp(), thread.registers.pc()),
        (Addr(0x7000), Addr(0x1234))
    );
    assert_eq!(thread.teb, Some(Addr(0x6000)));
    let module = &dump.files[0];
    assert_eq!(module.file_name(), "coreclr.dll");
    assert!(module.has_extension(".DLL") && !module.has_extension(".exe"));
    let stamp = ImageStamp {
        time_date_stamp: 0xABCD,
        size_of_image: 0x5000,
        version: Some([10, 0, 1526, 53008]),
    };
    assert_eq!(module.stamp, Some(stamp));
    assert_eq!(dump.process.taken, Some(1_000_000));
    assert_eq!(dump.process.system.as_deref(), Some("Windows 10.0.19045"));
}

#[test]
fn kinds_are_what_the_writer_was_asked_for() {
    let kind = |flags| {
        let file = File::windows(flags).memory(&[(0x1000, &[0; 8])]);
        file.open().unwrap().kind
    };
    assert_eq!(kind(FULL), DumpKind::Full);
    assert_eq!(kind(HEAP), DumpKind::Heap);
    assert_eq!(kind(0x1005), DumpKind::Mini);
    assert_eq!(kind(0x12_05AC), DumpKind::Triage);
}

#[test]
fn other_systems_and_processors_are_refused() {
    let open = |machine, platform| {
        File::new(FULL, machine, platform)
            .memory(&[(0x1000, &[0; 8])])
            .open()
    };
    assert!(matches!(open(0, 2), Err(OpenError::ThirtyTwoBit)));
    assert!(matches!(open(6, 2), Err(OpenError::Machine(6))));
    assert!(matches!(open(X64, 0x8201), Err(OpenError::System(0x8201))));
    assert_eq!(open(12, 2).unwrap().target.arch, Arch::Arm64);
    let nothing = File::windows(FULL).open();
    assert!(matches!(
        nothing,
        Err(OpenError::NoMemory { truncated: false })
    ));
    let headless = Dump::from_bytes(File::windows(FULL).build()[..40].to_vec());
    assert!(matches!(headless, Err(OpenError::Damaged(_))));
}

#[test]
fn a_file_that_ends_before_its_memory_is_said_to_be_cut() {
    let whole = File::windows(FULL).memory(&[(0x1000, &[7; 64])]).build();
    for len in 0..whole.len() {
        let opened = Dump::from_bytes(whole[..len].to_vec());
        let is_silent = match &opened {
            Err(OpenError::NoMemory { truncated }) => !truncated,
            Err(_) => false,
            Ok(dump) => dump.truncated.is_none(),
        };
        assert!(!is_silent, "cut at {len} of {}: {opened:?}", whole.len());
    }
}

fn record() -> OpenOptions {
    OpenOptions {
        record_pages: true,
        use_paths: false,
        ..OpenOptions::default()
    }
}

#[test]
fn a_trimmed_full_minidump_holds_what_was_read() {
    let pages = |from: u8| (from..from + 4).flat_map(|n| [n; 4096]).collect::<Vec<_>>();
    let (low, high) = (pages(1), pages(11));
    let file = File::windows(FULL)
        .info(&[(0x1_0000, 0x4000, 0x1000, 0x04)])
        .memory64(&[(0x1_0000, &low), (0x9_0000, &high)]);
    let dump = Dump::from_bytes_with(file.build(), &record()).unwrap();
    for addr in [0x1_2040, 0x9_0000] {
        assert!(dump.memory.slice(Addr(addr), 8).is_some());
    }
    let mut out = Vec::new();
    let len = trim(&dump, &mut out).unwrap();
    assert_eq!(len, out.len() as u64);
    let small = Dump::from_bytes(out).unwrap();
    assert_eq!((small.kind, small.truncated), (DumpKind::Full, None));
    assert_eq!(small.memory.slice(Addr(0x1_2040), 8), Some(&[3; 8][..]));
    assert_eq!(small.memory.slice(Addr(0x9_0000), 8), Some(&[11; 8][..]));
    assert_eq!(
        small.memory.slice(Addr(0x1_2000), 8),
        Some(&[0; 8][..]),
        "the line was not read"
    );
    let why = |addr| small.memory.why_not(Addr(addr), 1).map(|f| f.reason);
    assert_eq!(why(0x1_0000), Some(FaultReason::NotDumped));
    assert_eq!(why(0x9_3000), Some(FaultReason::Unmapped));
}

#[test]
fn other_minidumps_cannot_be_trimmed() {
    let file = File::windows(HEAP).memory(&[(0x1000, &[0; 8])]);
    let dump = Dump::from_bytes_with(file.build(), &record()).unwrap();
    assert!(matches!(
        trim(&dump, &mut Vec::new()),
        Err(TrimError::NoList)
    ));
}

proptest::proptest! {
    #[test]
    fn no_damage_makes_it_panic(at in 0_usize..0x2100, value: u8, cut in 0_usize..0x2400) {
        let mut file = File::windows(HEAP)
            .memory(&[(0x1000, &[1; 64]), (0x1040, &[2; 64])])
            .info(&[(0x1000, 0x1000, 0x1000, 0x04)])
            .memory64(&[(0x9000, &[3; 128])])
            .build();
        if let Some(byte) = file.get_mut(at) {
            *byte = value;
        }
        file.truncate(cut.max(4));
        let _ = Dump::from_bytes(file);
    }
}
