//! Programs that are their own runtime, as their dumps are without parts that other kinds of dumps lack.

use asynctriage_clr::{Runtime, RuntimeError};
use asynctriage_dump::Dump;
use std::io::Read;
use std::path::Path;

/// What the runtime is found by first.
const SYMBOL: &[u8] = b"\0g_dacTable\0";
/// How the garbage collector's data table begins in 10.0: version 2.4, then 256 bytes for each of five generations.
const GC_TABLE: [u64; 3] = [0x0402, 0x100, 5];

/// A real dump of a trimmed single-file program, with these bytes in all places made zero.
fn without(removed: &[&[u8]]) -> Dump {
    let file = Path::new(env!("CARGO_MANIFEST_DIR"));
    let file = file.join("../../testdumps/bundled-trimmed-10.0.11.dmp.gz");
    let packed = std::fs::read(file).unwrap();
    let mut bytes = Vec::new();
    let mut unpacker = flate2::read::GzDecoder::new(&packed[..]);
    unpacker.read_to_end(&mut bytes).unwrap();
    for removed in removed {
        let places = bytes.windows(removed.len()).enumerate();
        let places = places.filter(|(_, window)| window == removed);
        let places: Vec<usize> = places.map(|(at, _)| at).collect();
        assert!(!places.is_empty(), "{removed:?} is not there");
        for at in places {
            bytes[at..at + removed.len()].fill(0);
        }
    }
    Dump::from_bytes(bytes).unwrap()
}

#[test]
fn without_its_symbols_the_runtime_inside_a_program_is_found_by_content() {
    let (whole, bare) = (without(&[]), without(&[SYMBOL]));
    let (whole, bare) = (
        Runtime::open(&whole).unwrap().globals.dac_table,
        Runtime::open(&bare).unwrap().globals.dac_table,
    );
    assert_eq!(bare, whole);
}

#[test]
fn a_program_without_the_tables_of_its_runtime_is_called_what_it_seems_to_be() {
    let table = GC_TABLE.map(u64::to_le_bytes).concat();
    let dump = without(&[SYMBOL, &table]);
    let error = Runtime::open(&dump).unwrap_err();
    assert!(
        matches!(&error, RuntimeError::SingleFile { program, .. } if program.ends_with("/Bundled")),
        "{error}"
    );
    assert!(error.remedy().contains("full dump"), "{}", error.remedy());
}
