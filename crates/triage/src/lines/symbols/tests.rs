use super::*;
use asynctriage_clr::CodeView;
use std::fs;

const GUID: [u8; 16] = [
    0x33, 0x22, 0x11, 0x00, 0x55, 0x44, 0x77, 0x66, 0x88, 0x99, 0xaa, 0xbb, 0xcc, 0xdd, 0xee, 0xff,
];
const ID: &str = "00112233445566778899AABBCCDDEEFF";

/// A portable PDB without any rows.
fn pdb(guid: [u8; 16]) -> Vec<u8> {
    let mut out = b"BSJB\x01\0\x01\0\0\0\0\0\x0c\0\0\0PDB v1.0\0\0\0\0\0\0\x02\0".to_vec();
    out.extend([0x40, 0, 0, 0, 32, 0, 0, 0]);
    out.extend(b"#Pdb\0\0\0\0");
    out.extend([0x60, 0, 0, 0, 24, 0, 0, 0]);
    out.extend(b"#~\0\0");
    out.resize(0x40, 0);
    out.extend(guid);
    out.resize(0x60, 0);
    out.extend([0, 0, 0, 0, 2, 0, 0, 1]);
    out.resize(0x78, 0);
    out
}

/// A folder that is removed again.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("asynctriage-{}-{name}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn put(&self, name: &str, bytes: &[u8]) {
        let path = self.0.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }

    fn search(&self) -> Search {
        Search {
            folders: vec![self.0.clone()],
        }
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn wanted(path: &str) -> Wanted {
    Wanted {
        name: "App".into(),
        code_view: Some(CodeView {
            guid: GUID,
            age: 1,
            path: path.into(),
            portable: true,
        }),
        is_without: false,
        embedded: None,
        images: Vec::new(),
    }
}

#[test]
fn symbols_are_found_flat_in_stores_and_beside_the_image() {
    let name = format!("App.pdb/{ID}FFFFFFFF/App.pdb");
    let places = [
        "App.pdb".to_owned(),
        name.clone(),
        name.to_ascii_lowercase(),
    ];
    for (n, place) in places.iter().enumerate() {
        let folder = Folder::new(&format!("found{n}"));
        folder.put(place, &pdb(GUID));
        let found = folder.search().find(&wanted("C:\\build\\obj\\App.pdb"));
        assert!(found.is_ok_and(|p| p.from.ends_with(place.as_str())));
    }
    let folder = Folder::new("beside");
    folder.put("App.pdb", &pdb(GUID));
    let mut beside = wanted("App.pdb");
    beside.images = vec![folder.0.join("App.dll")];
    assert!(Search::default().find(&beside).is_ok());
}

#[test]
fn symbols_of_another_build_are_refused() {
    let folder = Folder::new("foreign");
    folder.put("App.pdb", &pdb([1; 16]));
    let absent = folder.search().find(&wanted("/src/App.pdb")).err().unwrap();
    assert!(absent.why.contains("of another build"), "{}", absent.why);
    assert!(absent.remedy.contains(ID), "{}", absent.remedy);
    // the right one in a store is taken all the same
    let store = Folder::new("store");
    store.put(&format!("App.pdb/{ID}FFFFFFFF/App.pdb"), &pdb(GUID));
    let both = Search {
        folders: vec![folder.0.clone(), store.0.clone()],
    };
    assert!(both.find(&wanted("/src/App.pdb")).is_ok());
}

#[test]
fn other_files_are_named_for_what_they_are() {
    let folder = Folder::new("broken");
    let why = |bytes: &[u8]| {
        folder.put("App.pdb", bytes);
        folder.search().find(&wanted("App.pdb")).err().unwrap().why
    };
    assert!(why(b"Microsoft C/C++ MSF 7.00\r\n\x1aDS").contains("a Windows PDB"));
    assert!(why(b"BSJB").contains("no symbol file"));
    assert!(why(b"").contains("no lines"));
}

#[test]
fn nothing_is_looked_for_without_an_identifier() {
    let nobody = Wanted {
        code_view: None,
        ..wanted("App.pdb")
    };
    let absent = Search::default().find(&nobody).err().unwrap();
    assert!(absent.remedy.contains("App.dll"), "{}", absent.remedy);
    let without = Wanted {
        is_without: true,
        ..nobody
    };
    let absent = Search::default().find(&without).err().unwrap();
    assert!(
        absent.why.contains("names no symbol file"),
        "{}",
        absent.why
    );
}

#[test]
fn the_name_of_a_symbol_file_does_not_climb() {
    assert_eq!(file_name("C:\\a\\b.pdb"), Some("b.pdb"));
    assert_eq!(file_name("/a/.."), None);
    assert_eq!(file_name("/a/"), None);
}
