use std::io::ErrorKind;

use crate::testkit::*;
use crate::*;

fn under(start: u64, file: &HostFile, offset: u64, len: u64) -> Under {
    Under {
        start: Addr(start),
        file: file.clone(),
        offset,
        len,
    }
}

fn dump() -> Dump {
    let core = CoreFile::new()
        .segment(0x1000, &[1; 16], RW)
        .hole(0x1010, 0xFF0)
        .segment(0x3000, &[3; 16], RW);
    Dump::from_bytes(core.build()).unwrap()
}

fn read(dump: &Dump, addr: u64, len: u64) -> Option<Vec<u8>> {
    let memory: &dyn Memory = &dump.memory;
    memory.bytes(Addr(addr), len, 1 << 20)
}

#[test]
fn files_fill_holes_and_never_replace_what_the_dump_holds() {
    let mut dump = dump();
    let file = HostFile::from(vec![9; 0x3000]);
    dump.lay_under(vec![under(0x800, &file, 0, 0x2808)], Completion::default());
    assert_eq!(read(&dump, 0xFFE, 4), Some(vec![9, 9, 1, 1]));
    assert_eq!(read(&dump, 0x100F, 3), Some(vec![1, 9, 9]));
    let laid = |addr| dump.memory.is_laid_under(Addr(addr));
    assert!(laid(0xFFF) && !laid(0x1000) && laid(0x1010) && !laid(0x9000));
    assert_eq!(read(&dump, 0x2FFF, 2), Some(vec![9, 3]));
    assert_eq!(read(&dump, 0x300F, 2), None, "the part ends below");
}

#[test]
fn the_first_file_wins_and_parts_end_with_their_file() {
    let mut dump = dump();
    let (short, long) = (HostFile::from(vec![7; 8]), HostFile::from(vec![8; 64]));
    let completion = Completion {
        used: vec![UsedFile {
            module: "a".into(),
            file: "b".into(),
            because: "c".into(),
            contents: short.clone(),
        }],
        ..Completion::default()
    };
    let parts = vec![under(0x5000, &short, 4, 64), under(0x5000, &long, 0, 16)];
    dump.lay_under(parts, completion.clone());
    assert_eq!(read(&dump, 0x5000, 6), Some(vec![7, 7, 7, 7, 8, 8]));
    assert_eq!(dump.completion, completion);
    // laying under again keeps what is there
    dump.lay_under(vec![under(0x5000, &long, 0, 32)], Completion::default());
    assert_eq!(read(&dump, 0x5003, 2), Some(vec![7, 8]));
    assert_eq!(read(&dump, 0x501F, 1), Some(vec![8]));
    let gone = dump.memory.why_not(Addr(0x1010), 1).map(|f| f.reason);
    assert_eq!(gone, Some(FaultReason::NotDumped));
}

#[test]
fn reads_of_other_files_are_not_recorded() {
    let core = CoreFile::new().segment(0x1000, &[1; 16], RW).build();
    let options = OpenOptions {
        record_pages: true,
        ..OpenOptions::default()
    };
    let mut dump = Dump::from_bytes_with(core, &options).unwrap();
    let file = HostFile::from(vec![9; 64]);
    dump.lay_under(vec![under(0x5000, &file, 0, 64)], Completion::default());
    assert!(read(&dump, 0x5000, 64).is_some());
    assert!(dump.memory.touched().is_empty());
    assert!(read(&dump, 0x1000, 8).is_some());
    assert!(!dump.memory.touched().is_empty());
}

#[test]
fn only_regular_files_are_opened() {
    let error = HostFile::open(&std::env::temp_dir()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
}

#[cfg(unix)]
#[test]
fn paths_of_the_dump_are_opened_when_allowed_and_never_over_the_network() {
    let open = |use_paths| {
        let options = OpenOptions {
            use_paths,
            ..OpenOptions::default()
        };
        let core = CoreFile::new().segment(0x1000, &[1; 16], RW).build();
        Dump::from_bytes_with(core, &options).unwrap()
    };
    let allowed = open(true);
    let path = std::path::PathBuf::from("/app/App.dll");
    assert_eq!(allowed.host_path("/app/App.dll"), Some(path));
    assert_eq!(open(false).host_path("/app/App.dll"), None);
    for elsewhere in [
        "//server/share/App.dll",
        r"\\server\share\App.dll",
        r"\/server\share\App.dll",
        r"/\server\share\App.dll",
        "App.dll",
        "",
    ] {
        assert_eq!(allowed.host_path(elsewhere), None, "{elsewhere}");
    }
}
