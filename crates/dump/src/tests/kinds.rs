use crate::testkit::*;
use crate::*;

const BASE: u64 = 0x7F00_0000_0000;
const TEXT: u64 = 0x10_000;
const BSS: u64 = 0x8000;

/// A dump of createdump that lists `text` bytes of the runtime's code and `bss` of its zeroed data.
fn createdump(text: usize, bss: usize) -> CoreFile {
    let mut image = image_page(TEXT, BSS);
    image.resize(text.max(4096), 0);
    let files = file_note(
        4096,
        &[
            (BASE, BASE + TEXT, 0, "/x/libcoreclr.so"),
            (BASE + TEXT, BASE + TEXT + 4096, 16, "/x/libcoreclr.so"),
        ],
    );
    CoreFile::new()
        .note("CORE", 3, &prpsinfo(1, "dotnet", ""))
        .note("CORE", 6, &[0; 16])
        .note("CORE", 0x4649_4C45, &files)
        .note("CORE", 1, &prstatus(X64, 1, 0, 0))
        .segment(BASE, &image, RX)
        .segment(BASE + TEXT, &[0; 4096], RW)
        .segment(BASE + TEXT + 4096, &vec![0; bss], RW)
        .segment(0x7FFF_FFF1_0000, &diagnostics_page(0, BASE), 4)
}

fn kind(core: &CoreFile) -> DumpKind {
    Dump::from_bytes(core.build()).unwrap().kind
}

#[test]
fn kinds_of_createdump_are_measured() {
    let (text, bss) = (TEXT as usize, BSS as usize);
    assert_eq!(kind(&createdump(text, bss)), DumpKind::Full);
    assert_eq!(kind(&createdump(4096, bss)), DumpKind::Heap);
    assert_eq!(kind(&createdump(4096, bss / 8)), DumpKind::Mini);
    assert_eq!(
        kind(&createdump(text * 3 / 4, bss)),
        DumpKind::Unknown,
        "between full and the others"
    );
    assert_eq!(
        kind(&createdump(4096, bss * 3 / 4)),
        DumpKind::Unknown,
        "between heap and mini"
    );
}

#[test]
fn without_the_page_the_runtime_is_found_by_name() {
    let mut core = createdump(4096, BSS as usize);
    core.segments.pop();
    assert_eq!(kind(&core), DumpKind::Heap);
}

#[test]
fn a_cut_dump_keeps_its_kind() {
    let mut file = createdump(TEXT as usize, BSS as usize).build();
    file.truncate(file.len() - 0x9000);
    let dump = Dump::from_bytes(file).unwrap();
    assert!(dump.truncated.is_some());
    assert_eq!(dump.kind, DumpKind::Full);
}

#[test]
fn other_writers_are_known_by_their_notes() {
    let info = prpsinfo(1, "dotnet", "");
    let thread = prstatus(X64, 1, 0, 0);
    let core = || CoreFile::new().segment(0x1000, &[0; 8], RW);
    assert_eq!(
        kind(&core().note("CORE", 3, &info).note("CORE", 1, &thread)),
        DumpKind::Gcore
    );
    assert_eq!(
        kind(&core().note("CORE", 1, &thread).note("CORE", 3, &info)),
        DumpKind::Kernel
    );
    assert_eq!(
        kind(&core().note("GDB", 0xFF00_0000, b"<target/>")),
        DumpKind::Gcore
    );
    assert_eq!(kind(&core().note("CORE", 1, &thread)), DumpKind::Unknown);
    assert_eq!(kind(&core()), DumpKind::Unknown);
}
