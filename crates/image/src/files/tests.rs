use super::*;
use crate::pe::tests::{DATA, DIRECTORIES, OPTIONAL, SECTIONS, TEXT, data, header, put, text};
use crate::pe::{PeImage, PeLayout};
use asynctriage_dump::{Addr, OpenOptions};
use std::fs;

const BASE: u64 = 0x7ffe_0000_0000;
const PREFERRED: u64 = 0x1_8000_0000;
const WINDOWS_PATH: &str = r"C:\app\App.dll";

/// A folder in the system's folder for temporary files, removed in the end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("asynctriage-{}-{name}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn put(&self, path: &str, bytes: &[u8]) {
        let path = self.0.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// The file of an assembly, with one address in it that a loader changes: at the begin of the page of `TEXT`, + 0x10.
/// Both of its sections are constant.
fn assembly() -> Vec<u8> {
    let mut file = assembly_with_variables();
    put(&mut file, SECTIONS + 40 + 36, &[0x4000_0040]);
    file
}

/// The same, and the process can write to the section at `DATA`.
fn assembly_with_variables() -> Vec<u8> {
    let (mut header, mut data) = (header(), data());
    put(
        &mut header,
        OPTIONAL + 24,
        &[PREFERRED as u32, (PREFERRED >> 32) as u32],
    );
    put(&mut header, DIRECTORIES + 5 * 8, &[DATA.0 + 0xa00, 12]);
    put(&mut data, 0xa00, &[TEXT.0, 12, 0xA010]);
    [header, text(), data].concat()
}

fn bytes(numbers: &[u32]) -> Vec<u8> {
    numbers.iter().flat_map(|n| n.to_le_bytes()).collect()
}

/// A minidump with one module, of which it holds the four bytes at `DATA`.
fn minidump(stamp: u32) -> Dump {
    let name: Vec<u8> = WINDOWS_PATH
        .encode_utf16()
        .flat_map(u16::to_le_bytes)
        .collect();
    let (streams, name_at) = (32 + 3 * 12, 0x400_u32);
    let (modules, memory) = (streams + 56, streams + 56 + 112);
    let mut file = bytes(&[0x504D_444D, 0xA793, 3, 32, 0, 1, 0x4_1A25, 0]);
    file.extend(bytes(&[7, 56, streams, 4, 112, modules, 5, 20, memory]));
    file.extend(bytes(&[9, 0, 10, 0, 0, 2]));
    file.resize(modules as usize, 0);
    file.extend(bytes(&[1]));
    file.extend(BASE.to_le_bytes());
    file.extend(bytes(&[0x6000, 0, stamp, name_at]));
    file.resize(memory as usize, 0);
    file.extend(bytes(&[1]));
    file.extend((BASE + u64::from(DATA.0)).to_le_bytes());
    file.extend(bytes(&[4, 0x300]));
    file.resize(0x300, 0);
    file.extend([0xEE; 4]);
    file.resize(name_at as usize, 0);
    file.extend(bytes(&[name.len() as u32]));
    file.extend(name);
    Dump::from_bytes(file).unwrap()
}

/// A core as gdb writes it, with these files mapped: address, length and path. Of each it holds the first `held` bytes.
fn core(files: &[(u64, u64, &str)], held: &[&[u8]]) -> Dump {
    Dump::from_bytes(core_file(files, held)).unwrap()
}

fn core_file(files: &[(u64, u64, &str)], held: &[&[u8]]) -> Vec<u8> {
    let whole = files
        .iter()
        .map(|(start, len, path)| (*start, *len, 0, *path));
    core_file_of_parts(&whole.collect::<Vec<_>>(), held)
}

/// The same with the place in the file behind the length.
fn core_file_of_parts(files: &[(u64, u64, u64, &str)], held: &[&[u8]]) -> Vec<u8> {
    let mut list = [files.len() as u64, 1].map(u64::to_le_bytes).concat();
    for (start, len, offset, _) in files {
        let part = [*start, start + len, *offset];
        list.extend(part.map(u64::to_le_bytes).concat());
    }
    for (.., path) in files {
        list.extend(path.bytes().chain([0]));
    }
    let mut notes = Vec::new();
    for (owner, kind, desc) in [
        ("GDB", 0xFF00_0000, &[0; 4][..]),
        ("CORE", 0x4649_4C45, &list),
    ] {
        notes.extend(bytes(&[owner.len() as u32 + 1, desc.len() as u32, kind]));
        for part in [owner.as_bytes(), desc] {
            notes.extend(part);
            notes.extend(vec![0; if part.len() == desc.len() { 0 } else { 1 }]);
            notes.resize(notes.len().next_multiple_of(4), 0);
        }
    }
    let segment = |kind: u32, offset: usize, addr: u64, len: usize| {
        let mut out = bytes(&[kind, 4]);
        let (offset, len) = (offset as u64, len as u64);
        out.extend(
            [offset, addr, 0, len, len, 1]
                .map(u64::to_le_bytes)
                .concat(),
        );
        out
    };
    let mut out = b"\x7fELF\x02\x01\x01".to_vec();
    out.resize(16, 0);
    out.extend([4_u16, 62].map(u16::to_le_bytes).concat());
    out.extend(bytes(&[1]));
    out.extend([0_u64, 64, 0].map(u64::to_le_bytes).concat());
    out.extend(bytes(&[0]));
    out.extend(
        [64, 56, held.len() as u16 + 1, 0, 0, 0]
            .map(u16::to_le_bytes)
            .concat(),
    );
    let mut at = 64 + 56 * (held.len() + 1);
    out.extend(segment(4, at, 0, notes.len()));
    at += notes.len();
    for (bytes, (start, ..)) in held.iter().zip(files) {
        out.extend(segment(1, at, *start, bytes.len()));
        at += bytes.len();
    }
    out.extend(notes);
    held.iter().for_each(|b| out.extend(*b));
    out
}

fn read(dump: &Dump, addr: u64) -> Option<u64> {
    let memory: &dyn Memory = &dump.memory;
    memory.u64(Addr(addr))
}

#[test]
fn a_module_of_windows_is_found_by_stamp_and_laid_out_as_loaded() {
    let folder = Folder::new("stamp");
    folder.put(
        "other/app.dll",
        &[header(), text(), vec![0; 0x1000]].concat()[..0x300],
    );
    let mut stale = assembly();
    put(&mut stale, 0x88, &[0x0BAD_0BAD]);
    folder.put("stale/App.dll", &stale);
    folder.put("deep/er/APP.DLL", &assembly());
    let mut dump = minidump(0x1234_5678);
    ImageFiles::new().module_path(&folder.0).complete(&mut dump);
    assert_eq!(dump.completion.used.len(), 1, "{:?}", dump.completion);
    let image = PeImage::parse(&dump.memory, Addr(BASE), PeLayout::Loaded).unwrap();
    let export = Addr(BASE + u64::from(DATA.0) + 0x800);
    assert_eq!(image.export(&dump.memory, "bb"), Some(export));
    let word = u64::from_le_bytes(text()[0x10..0x18].try_into().unwrap());
    let moved = word.wrapping_add(BASE - PREFERRED);
    assert_eq!(read(&dump, BASE + u64::from(TEXT.0) + 0x10), Some(moved));
    let own = read(&dump, BASE + u64::from(DATA.0)).unwrap();
    assert_eq!(own as u32, 0xEEEE_EEEE, "what the dump holds stays");
}

#[test]
fn variables_are_not_taken_from_a_file() {
    let folder = Folder::new("variables");
    folder.put("App.dll", &assembly_with_variables());
    let mut dump = minidump(0x1234_5678);
    ImageFiles::new().module_path(&folder.0).complete(&mut dump);
    assert_eq!(dump.completion.used.len(), 1, "{:?}", dump.completion);
    let variables = BASE + u64::from(DATA.0);
    assert!(read(&dump, BASE + u64::from(TEXT.0) + 0x100).is_some());
    assert_eq!(dump.memory.run(Addr(variables)), 4, "the dump's own");
    assert_eq!(read(&dump, variables + 0x800), None);
}

#[test]
fn a_file_of_the_right_name_and_another_stamp_is_refused() {
    let folder = Folder::new("refused");
    folder.put("App.dll", &assembly());
    let mut dump = minidump(0xFEED_F00D);
    ImageFiles::new().module_path(&folder.0).complete(&mut dump);
    assert_eq!(dump.completion.used, []);
    let [refused] = &dump.completion.refused[..] else {
        panic!("{:?}", dump.completion);
    };
    assert_eq!(
        refused.why,
        "its time stamp and size are 12345678 6000, the process had FEEDF00D 6000"
    );
    assert!(read(&dump, BASE + u64::from(TEXT.0)).is_none());
}

#[test]
fn mapped_assemblies_have_to_have_the_right_size() {
    let folder = Folder::new("sysroot");
    folder.put("app/App.dll", &assembly());
    folder.put("app/Short.dll", &assembly()[..0x1f00]);
    let files = [
        (0x1000, 8, "/dev/shm/other"),
        (BASE, 0x3000, "/app/App.dll"),
        (BASE + 0x10_0000, 0x3000, "/app/Short.dll"),
    ];
    let mut dump = core(&files, &[&[0; 8]]);
    assert_eq!(dump.kind, DumpKind::Gcore);
    ImageFiles::new().sysroot(&folder.0).complete(&mut dump);
    assert_eq!(dump.completion.used[0].module, "/app/App.dll");
    let image = PeImage::parse(&dump.memory, Addr(BASE), PeLayout::Flat).unwrap();
    assert!(image.metadata().is_some());
    assert_eq!(dump.completion.refused[0].module, "/app/Short.dll");
    assert!(read(&dump, BASE + 0x10_0000).is_none());
}

#[cfg(unix)]
#[test]
fn files_where_the_process_had_them_can_be_left_alone() {
    let folder = Folder::new("mapped");
    folder.put("App.dll", &assembly());
    let path = folder.0.join("App.dll");
    let files = [
        (0x1000, 8, "/dev/shm/other"),
        (BASE, 0x3000, path.to_str().unwrap()),
    ];
    for (use_paths, used) in [(true, 1), (false, 0)] {
        let options = OpenOptions {
            use_paths,
            ..OpenOptions::default()
        };
        let mut dump = Dump::from_bytes_with(core_file(&files, &[&[0; 8]]), &options).unwrap();
        ImageFiles::new().complete(&mut dump);
        assert_eq!(dump.completion.used.len(), used);
    }
}

#[test]
fn libraries_are_known_by_their_build() {
    let folder = Folder::new("build");
    let library = crate::elf::tests::library(&[]);
    folder.put("lib/libx.so", &library);
    let mut other = library.clone();
    other[0xd10] ^= 1;
    folder.put("lib/liby.so", &other);
    let files = [
        (BASE, 0x3000, "/lib/libx.so"),
        (BASE + 0x10_0000, 0x3000, "/lib/liby.so"),
    ];
    let mut dump = core(&files, &[&library[..0x1000]; 2]);
    ImageFiles::new().sysroot(&folder.0).complete(&mut dump);
    assert!(dump.memory.is_laid_under(Addr(BASE + 0x1000)));
    assert!(!dump.memory.is_laid_under(Addr(BASE)));
    let variables = dump.memory.run(Addr(BASE + 0x2000));
    assert_eq!(variables, 0, "the process had changed them, or the loader");
    assert_eq!(dump.completion.refused[0].why, "its build id differs");
}

#[test]
fn a_single_file_application_is_known_by_what_it_bundles() {
    let host = crate::elf::tests::library(&[]);
    let bundled = |at| bundle::tests::bundle(&host, &[(at, 0x1F00, false)]);
    let parts = [
        (BASE, 0x3000, 0, "/app/shop"),
        (BASE + 0x10000, 0x2000, bundle::tests::HOST, "/app/shop"),
    ];
    for (name, at, used) in [("same", 0x3080, 1), ("other", 0x4080, 0)] {
        let mut dump = Dump::from_bytes(core_file_of_parts(&parts, &[&host])).unwrap();
        let folder = Folder::new(&format!("bundle-{name}"));
        folder.put("shop", &bundled(at));
        ImageFiles::new().module_path(&folder.0).complete(&mut dump);
        assert_eq!(dump.completion.used.len(), used, "{name}");
        let why = dump.completion.refused.iter().map(|r| r.why.as_str());
        assert_eq!(why.filter(|w| w.contains("bundles")).count(), 1 - used);
        assert_eq!(read(&dump, BASE + 0x10000).is_some(), used == 1);
    }
}

#[test]
fn names_near_the_end_of_the_path_decide_the_order() {
    let folder = Folder::new("order");
    for place in ["11.0.0/x.dll", "10.0.15/X.dll", "x.dll"] {
        folder.put(place, b"");
    }
    let index = Index::of(std::slice::from_ref(&folder.0));
    let first = index.named("/usr/share/dotnet/10.0.15/x.dll").remove(0);
    assert_eq!(first, folder.0.join("10.0.15/X.dll"));
    assert!(index.named("/y.dll").is_empty());
}

#[test]
fn paths_of_the_process_stay_inside_their_root() {
    let root = Path::new("/root");
    assert_eq!(
        search::inside(root, "/app/a.dll"),
        [Path::new("/root/app/a.dll")]
    );
    assert_eq!(
        search::inside(root, WINDOWS_PATH),
        [
            Path::new("/root/app/App.dll"),
            Path::new("/root/C/app/App.dll")
        ]
    );
    assert!(search::inside(root, "/app/../../etc/passwd").is_empty());
}
