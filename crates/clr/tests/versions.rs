//! Versions that no table was made from: patches, previews, and a version that is not the process's own.

use asynctriage_clr::{Runtime, RuntimeError};
use asynctriage_dump::Dump;
use std::io::Read;
use std::path::Path;

/// The folder of the runtime in the paths of the dump, which are all that tells the version there.
const REAL: &[u8] = b"/10.0.15/";

/// A real dump of 10.0.15 whose paths name another version, of the same length.
fn said_to_be(version: &str) -> Dump {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdumps/chain-10.0.15.dmp.gz");
    let packed = std::fs::read(file).unwrap();
    let mut bytes = Vec::new();
    flate2::read::GzDecoder::new(&packed[..])
        .read_to_end(&mut bytes)
        .unwrap();
    let folder = format!("/{version}/").into_bytes();
    assert_eq!(folder.len(), REAL.len());
    let at: Vec<usize> = bytes
        .windows(REAL.len())
        .enumerate()
        .filter_map(|(at, window)| (window == REAL).then_some(at))
        .collect();
    assert!(!at.is_empty());
    for start in at {
        bytes[start..start + REAL.len()].copy_from_slice(&folder);
    }
    Dump::from_bytes(bytes).unwrap()
}

fn gaps(rt: &Runtime<'_>) -> Vec<String> {
    let all = rt.gaps().iter();
    all.map(|g| format!("{}: {}", g.place, g.why)).collect()
}

#[test]
fn a_patch_that_was_never_seen_is_read_by_the_table_of_its_minor_version() {
    for (version, shown) in [("10.0.99", "10.0.99"), ("10.0.00", "10.0.0")] {
        let dump = said_to_be(version);
        let rt = Runtime::open(&dump).unwrap();
        assert_eq!(rt.version.unwrap().to_string(), shown);
        assert_eq!(rt.layout().name(), "linux-x64-10.0");
        assert_eq!(gaps(&rt), Vec::<String>::new());
        assert!(
            rt.checks.iter().any(|c| c.starts_with("the thread list")),
            "the table was checked: {:?}",
            rt.checks
        );
        assert_eq!(rt.walk_heap(&|_| true).objects(), 801);
    }
}

#[test]
fn a_preview_is_read_and_told() {
    let dump = said_to_be("10.0.0-");
    let rt = Runtime::open(&dump).unwrap();
    assert_eq!(rt.version.unwrap().to_string(), "10.0.0-preview");
    let gaps = gaps(&rt);
    let told = gaps.iter().filter(|g| g.contains("preview"));
    assert_eq!(told.count(), 1, "{gaps:?}");
    assert_eq!(rt.walk_heap(&|_| true).objects(), 801);
}

#[test]
fn the_table_of_another_version_is_noticed() {
    for version in ["9.0.015", "8.0.015", "11.0.00"] {
        let dump = said_to_be(version);
        match Runtime::open(&dump) {
            Ok(rt) => assert!(!gaps(&rt).is_empty(), "{version} was believed"),
            Err(error) => assert!(
                matches!(error, RuntimeError::Unreadable { .. }),
                "{version}: {error}"
            ),
        }
    }
}

#[test]
fn a_version_without_a_table_is_refused_by_name() {
    for version in ["12.0.00", "7.0.020"] {
        let dump = said_to_be(version);
        let error = Runtime::open(&dump).unwrap_err();
        assert!(matches!(error, RuntimeError::Unsupported { .. }));
        let major = version.split('.').next().unwrap();
        assert!(
            error.to_string().contains(&format!(".NET {major}.")),
            "{error}"
        );
    }
}
