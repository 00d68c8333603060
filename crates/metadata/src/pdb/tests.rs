//! Portable PDBs that are made up, packed and damaged.

use super::*;
use crate::testing::{Builder, coded};
use proptest::prelude::*;
use std::io::Write;

const NAMES_LINE_7_THEN_HIDDEN_THEN_5: &[u8] = &[
    0, // no signature of locals
    0, 0, 9, 7, 13, // IL 0: line 7, column 13, 9 columns
    4, 0, 0, // IL 4: hidden
    3, 1, 6, 0x7d, 0x06, // IL 7: line 7 - 2, column 13 + 3, two lines
];

/// Methods 1 (not in the source) and 2 (`Store.cs`), with steps, scopes and a local.
fn sample() -> Builder {
    let mut b = Builder::new();
    b.referenced = vec![(Table::MethodDef, 2), (Table::Module, 1)];
    let (dir, file) = (b.blob(b"src"), b.blob(b"Store.cs"));
    let name = b.blob(&[b'/', 0, dir as u8, file as u8]);
    b.row(Table::Document, &[name, 0, 0, 0]);
    let points = b.blob(NAMES_LINE_7_THEN_HIDDEN_THEN_5);
    b.row(Table::MethodDebugInformation, &[0, 0]);
    b.row(Table::MethodDebugInformation, &[1, points]);
    b.row(Table::ImportScope, &[0, 0]);
    let items = b.string("items");
    b.row(Table::LocalScope, &[2, 1, 1, 1, 0, 10]);
    b.row(Table::LocalVariable, &[0, 3, items]);
    b.row(Table::StateMachineMethod, &[2, 1]);
    add_custom(&mut b);
    b
}

fn add_custom(b: &mut Builder) {
    let kinds =
        [kind::ASYNC_STEPS, kind::HOISTED_SCOPES, kind::SOURCE_LINK].map(|guid| b.guid(guid));
    let steps = b.blob(&[0, 0, 0, 0, 0x20, 0, 0, 0, 0x30, 0, 0, 0, 2]);
    let scopes = b.blob(&[1, 0, 0, 0, 0x40, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    let link = b.blob(b"{}");
    let method = coded(Coded::HasCustomDebugInformation, Table::MethodDef, 2);
    let module = coded(Coded::HasCustomDebugInformation, Table::Module, 1);
    // sorted by parent, as the format demands
    b.row(Table::CustomDebugInformation, &[module, kinds[2], link]);
    b.row(Table::CustomDebugInformation, &[method, kinds[0], steps]);
    b.row(Table::CustomDebugInformation, &[method, kinds[1], scopes]);
}

fn open(builder: &Builder) -> PortablePdb<Vec<u8>> {
    PortablePdb::parse(builder.build()).expect("a portable PDB")
}

#[test]
fn an_offset_belongs_to_the_last_visible_point_before_it() {
    let pdb = open(&sample());
    let line = |il| pdb.location(2, il).map(|l| (l.file, l.line));
    for (il, expected) in [(0, 7), (3, 7), (4, 7), (6, 7), (7, 5), (500, 5)] {
        assert_eq!(line(il), Some(("/src/Store.cs".into(), expected)), "{il}");
    }
    assert_eq!(pdb.location(1, 0), None, "no points");
    assert_eq!(pdb.location(3, 0), None, "no row");
}

#[test]
fn what_belongs_to_a_state_machine_is_found_by_its_method() {
    let pdb = open(&sample());
    let step = AsyncStep {
        yields_at: 0x20,
        resumes_at: 0x30,
    };
    assert_eq!(pdb.async_steps(2), Some(vec![step]));
    assert_eq!(pdb.async_steps(1), None);
    assert_eq!(pdb.kickoff_method(2), Some(1));
    assert_eq!(pdb.hoisted_scopes(2), Some(vec![(1, 0x40), (0, 0)]));
    assert_eq!(pdb.locals(2, 9), [(3, "items".to_owned())]);
    assert_eq!(pdb.locals(2, 10), []);
    assert_eq!(pdb.source_link().as_deref(), Some("{}"));
}

#[test]
fn a_blob_that_breaks_off_gives_no_lines_at_all() {
    for cut in 1..NAMES_LINE_7_THEN_HIDDEN_THEN_5.len() {
        let blob = &NAMES_LINE_7_THEN_HIDDEN_THEN_5[..cut];
        let whole = points::decode(blob, 1);
        assert_eq!(whole.is_some(), matches!(cut, 1 | 6 | 9), "{cut}");
    }
}

#[test]
fn a_blob_can_change_the_file() {
    let blob = [0, 2, 0, 0, 9, 7, 13, 0, 3, 4, 0, 9, 2, 0];
    let points = points::decode(&blob, 0).unwrap();
    let seen: Vec<_> = points
        .iter()
        .map(|p| (p.il_offset, p.document, p.line))
        .collect();
    assert_eq!(seen, [(0, 2, Some(7)), (4, 3, Some(8))]);
}

#[test]
fn other_formats_are_told_apart() {
    let mut windows = WINDOWS.to_vec();
    windows.resize(64, 0);
    assert_eq!(PortablePdb::parse(windows).err(), Some(PdbError::Windows));
    let assembly = crate::testing::sample().build();
    assert_eq!(
        PortablePdb::parse(assembly).err(),
        Some(PdbError::NoIdentity)
    );
    assert!(PortablePdb::parse(Vec::new()).is_err());
}

fn packed(bytes: &[u8], said: u32) -> Vec<u8> {
    let mut out = [MAGIC_AND_SIZE, &said.to_le_bytes()].concat();
    let mut encoder = flate2::write::DeflateEncoder::new(&mut out, flate2::Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap();
    out
}

const MAGIC_AND_SIZE: &[u8] = b"MPDB";

#[test]
fn embedded_pdbs_are_unpacked_to_the_size_that_they_state() {
    let bytes = sample().build();
    let size = bytes.len() as u32;
    assert_eq!(unpack_embedded(&packed(&bytes, size)), Ok(bytes.clone()));
    for wrong in [size - 1, size + 1] {
        assert_eq!(
            unpack_embedded(&packed(&bytes, wrong)),
            Err(EmbeddedError::Damaged)
        );
    }
    assert_eq!(
        unpack_embedded(&packed(&[], u32::MAX)),
        Err(EmbeddedError::TooLarge(u32::MAX))
    );
    assert_eq!(unpack_embedded(b"MZ"), Err(EmbeddedError::NotOne));
}

/// Asks everything of whatever it was that could be parsed.
fn ask_all(bytes: Vec<u8>) {
    let Ok(pdb) = PortablePdb::parse(bytes) else {
        return;
    };
    for method in [0, 1, 2, 3, u32::MAX] {
        for il in [0, 7, u32::MAX] {
            let _ = (pdb.location(method, il), pdb.locals(method, il));
        }
        let _ = (pdb.async_steps(method), pdb.hoisted_scopes(method));
        let _ = (pdb.kickoff_method(method), pdb.document(method));
    }
    let _ = pdb.source_link();
}

proptest! {
    #[test]
    fn damage_never_panics(
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8)
    ) {
        let mut bytes = sample().build();
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        ask_all(bytes);
    }

    #[test]
    fn any_blob_of_points_is_survived(blob in proptest::collection::vec(any::<u8>(), 0..200), document: u32) {
        if let Some(points) = points::decode(&blob, document) {
            prop_assert!(points.is_sorted_by_key(|p| p.il_offset));
        }
    }

    #[test]
    fn any_packed_bytes_are_survived(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = unpack_embedded(&[MAGIC_AND_SIZE, &bytes].concat());
    }
}
