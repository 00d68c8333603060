//! Whole-metadata tests over made-up assemblies.

use crate::table::Coded;
use crate::testing::{Builder, coded, sample};
use crate::*;
use proptest::prelude::*;

fn open(builder: &Builder) -> Metadata<Vec<u8>> {
    Metadata::parse(builder.build()).expect("well-formed metadata")
}

/// Everything that the sample is known to hold, asked of one way to write it.
fn check_sample(m: &Metadata<Vec<u8>>) {
    assert_eq!(m.module_name().as_deref(), Some("Sample.dll"));
    assert_eq!(m.assembly_name().as_deref(), Some("Sample"));
    assert_eq!(
        m.assembly_version().map(|v| v.to_string()).as_deref(),
        Some("1.2.3.4")
    );
    assert_eq!(m.mvid(), Some(*b"0123456789abcdef"));
    assert_eq!(m.user_string(1).as_deref(), Some("hi"));
    let names = (1..=m.rows(Table::TypeDef))
        .map(|rid| m.full_name(rid).unwrap())
        .collect::<Vec<_>>();
    assert_eq!(
        names,
        ["<Module>", "N.Outer`1", "N.Empty", "N.Outer`1+<Run>d__0"]
    );
    assert_eq!(m.enclosing(4), Some(2));
    assert_eq!(m.enclosing(3), None);
    assert_eq!(m.find_type("N", "Empty"), Some(3));
    assert_eq!(m.find_type("", "<Run>d__0"), None, "not at top level");
    assert_eq!(m.find_nested_type(2, "<Run>d__0"), Some(4));
    assert_eq!(m.type_index().get("N.Outer`1+<Run>d__0"), Some(4));
    assert_eq!(m.type_index().len(), 4);
    let generic = m
        .generic_params(Token::new(Table::TypeDef, 2))
        .collect::<Vec<_>>();
    assert_eq!(
        generic,
        [GenericParam {
            number: 0,
            name: "T".into()
        }]
    );
    assert_eq!(
        m.type_def(2).unwrap().extends,
        Token::new(Table::TypeRef, 1)
    );
    assert_eq!(
        m.token_name(Token::new(Table::TypeRef, 2)).as_deref(),
        Some("System.Base+Inner")
    );
    assert_eq!(m.type_ref_assembly(2).as_deref(), Some("Lib"));
    assert_eq!(
        m.token_name(Token::new(Table::TypeSpec, 1)).as_deref(),
        Some("N.Outer`1<System.Base+Inner>")
    );
    check_attribute(m);
}

fn check_attribute(m: &Metadata<Vec<u8>>) {
    let attributes = m
        .custom_attributes(Token::new(Table::TypeDef, 2))
        .collect::<Vec<_>>();
    assert_eq!(
        attributes
            .iter()
            .map(|a| a.type_name.as_str())
            .collect::<Vec<_>>(),
        ["System.NamedAttribute"]
    );
    let args = m.attribute_args(&attributes[0]).unwrap();
    assert_eq!(
        args,
        [
            AttributeArg::String(Some("x".into())),
            AttributeArg::Int(-2)
        ]
    );
    assert_eq!(
        m.custom_attributes(Token::new(Table::TypeDef, 1)).count(),
        0
    );
}

fn member_names(m: &Metadata<Vec<u8>>, type_rid: u32) -> Vec<String> {
    let fields = m
        .field_rids_of_type(type_rid)
        .map(|rid| m.field(rid).unwrap().name);
    fields
        .chain(
            m.method_rids_of_type(type_rid)
                .map(|rid| m.method(rid).unwrap().name),
        )
        .collect()
}

fn check_members(m: &Metadata<Vec<u8>>) {
    let names = (1..=4).map(|rid| member_names(m, rid)).collect::<Vec<_>>();
    let expected: [&[&str]; 4] = [
        &[],
        &["count", ".ctor", "Run"],
        &[],
        &["<>1__state", "items", "MoveNext"],
    ];
    assert_eq!(names, expected);
    for type_rid in 1..=4 {
        assert!(
            m.method_rids_of_type(type_rid)
                .all(|rid| m.method_owner(rid) == Some(type_rid))
        );
        assert!(
            m.field_rids_of_type(type_rid)
                .all(|rid| m.field_owner(rid) == Some(type_rid))
        );
    }
    assert_eq!(m.method_owner(4), None);
}

#[test]
fn answers_the_same_however_wide_the_heaps_are() {
    for heap_flags in [0, 1, 2, 4, 7, 0x40, 0x47] {
        let mut builder = sample();
        builder.heap_flags = heap_flags;
        check_sample(&open(&builder));
        check_members(&open(&builder));
    }
}

#[test]
fn answers_the_same_when_row_numbers_take_four_bytes() {
    let mut builder = sample();
    for _ in 0..0x1_0000 {
        builder.row(Table::TypeRef, &[0, 0, 0]);
        builder.row(Table::AssemblyRef, &[0; 9]);
        builder.row(Table::GenericParamConstraint, &[0, 0]);
        builder.row(Table::Param, &[0; 3]);
    }
    let m = open(&builder);
    assert_eq!(m.rows(Table::AssemblyRef), 0x1_0001);
    check_sample(&m);
    check_members(&m);
}

#[test]
fn decodes_signatures_of_members() {
    let m = open(&sample());
    assert_eq!(m.field_type(2), Some(SigType::Primitive(Primitive::Int32)));
    assert_eq!(
        m.type_text(&m.field_type(3).unwrap()),
        "N.Outer`1<System.String>[]"
    );
    let run = m.method_signature(2).unwrap();
    assert!(run.has_this());
    assert_eq!(
        (run.generic_params, &run.return_type),
        (1, &SigType::MVar(0))
    );
    assert_eq!(run.params, [SigType::Var(0)]);
}

#[test]
fn follows_pointer_tables_of_uncompressed_metadata() {
    let mut builder = sample();
    builder.uncompressed = true;
    // The last method and the first field change places with others.
    for rid in [3, 2, 1] {
        builder.row(Table::FieldPtr, &[rid]);
        builder.row(Table::MethodPtr, &[rid]);
    }
    let m = open(&builder);
    check_sample(&m);
    assert_eq!(member_names(&m, 2), ["items", "MoveNext", "Run"]);
    assert_eq!(member_names(&m, 4), ["<>1__state", "count", ".ctor"]);
    assert_eq!(
        [1, 2, 3].map(|rid| m.method_owner(rid)),
        [Some(4), Some(2), Some(2)]
    );
    assert_eq!(
        [1, 2, 3].map(|rid| m.field_owner(rid)),
        [Some(4), Some(4), Some(2)]
    );
}

#[test]
fn finds_unsorted_rows_of_uncompressed_metadata() {
    let mut builder = sample();
    builder.row(Table::NestedClass, &[3, 2]);
    builder.uncompressed = true;
    let m = open(&builder);
    assert_eq!((m.enclosing(3), m.enclosing(4)), (Some(2), Some(2)));
    assert_eq!(m.nested_types(2).collect::<Vec<_>>(), [4, 3]);
}

#[test]
fn reads_tables_of_a_portable_pdb() {
    let mut builder = Builder::new();
    builder.referenced = vec![(Table::TypeDef, 12), (Table::MethodDef, 0x2_0000)];
    builder.row(Table::StateMachineMethod, &[0x1_2345, 7]);
    let m = open(&builder);
    assert_eq!(m.rows(Table::MethodDef), 0, "the methods are in the module");
    assert_eq!(m.cell(Table::StateMachineMethod, 1, 0), Some(0x1_2345));
    assert_eq!(m.cell(Table::StateMachineMethod, 1, 1), Some(7));
}

#[test]
fn nesting_in_a_circle_has_no_name() {
    let mut builder = sample();
    let name = builder.string("Loop");
    builder.row(Table::TypeDef, &[2, name, 0, 0, 4, 4]);
    builder.row(Table::NestedClass, &[5, 5]);
    let m = open(&builder);
    assert_eq!(m.type_path(5), None);
    assert_eq!(m.type_index().len(), 4);
}

#[test]
fn types_that_contain_themselves_print_to_an_end() {
    let mut builder = Builder::new();
    // Two type specifications, each of them a generic type of the other one, twice.
    let this = coded(Coded::TypeDefOrRef, Table::TypeSpec, 1) as u8;
    let blob = builder.blob(&[0x15, 0x12, this, 2, 0x12, this, 0x12, this]);
    builder.row(Table::TypeSpec, &[blob]);
    let text = open(&builder)
        .token_name(Token::new(Table::TypeSpec, 1))
        .unwrap();
    assert!(
        text.contains("...") && text.len() < 64 << 10,
        "{} bytes",
        text.len()
    );
}

#[test]
fn says_why_bytes_are_not_metadata() {
    let good = sample().build();
    let with = |at: usize, byte: u8| {
        let mut bytes = good.clone();
        bytes[at] = byte;
        Metadata::parse(bytes).map(|_| ()).unwrap_err()
    };
    assert!(matches!(with(0, b'X'), MetadataError::BadSignature { .. }));
    assert!(matches!(
        with(12, 13),
        MetadataError::BadVersion { length: 13 }
    ));
    let name = good.windows(2).position(|w| w == b"#~").unwrap();
    assert_eq!(with(name + 1, b'!'), MetadataError::NoTables);
    assert_eq!(
        Metadata::parse(&good[..20]).map(|_| ()),
        Err(MetadataError::Unreadable { offset: 30 })
    );
    let tables = u32::from_le_bytes(good[name - 8..name - 4].try_into().unwrap()) as usize;
    assert!(matches!(
        with(tables + 27, 1),
        MetadataError::TooManyRows { table: 0, .. }
    ));
}

/// Metadata in which some bytes cannot be read.
struct Holes {
    bytes: Vec<u8>,
    hole: std::ops::Range<u64>,
}

impl Source for Holes {
    fn len(&self) -> u64 {
        self.bytes.len() as u64
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> bool {
        let end = offset + out.len() as u64;
        (end <= self.hole.start || offset >= self.hole.end)
            && Source::read(&self.bytes, offset, out)
    }
}

#[test]
fn a_hole_hides_only_what_lies_in_it() {
    let bytes = sample().build();
    let after = bytes.windows(7).position(|w| w == b"<Run>d_").unwrap() as u64;
    let m = Metadata::parse(Holes {
        hole: after..after + 20,
        bytes,
    })
    .unwrap();
    assert_eq!(m.full_name(4), None);
    assert_eq!(
        m.full_name(3).as_deref(),
        Some("N.Empty"),
        "its end lies right before the hole"
    );
    assert_eq!(m.type_index().len(), 2, "<Module> lies in the hole, too");
    assert_eq!(m.module_name().as_deref(), Some("Sample.dll"));
}

#[test]
fn rows_beyond_the_end_do_not_count() {
    let mut builder = Builder::new();
    builder.row(Table::TypeDef, &[0; 6]);
    let mut bytes = builder.build();
    let at = bytes.windows(2).position(|w| w == b"#~").unwrap() - 8;
    let rows = u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap()) as usize + 24;
    bytes[rows + 2] = 0xff;
    let m = Metadata::parse(bytes).unwrap();
    assert!(m.rows(Table::TypeDef) < 20);
}

/// Asks everything of every row of every table.
fn ask_all<S: Source>(m: &Metadata<S>) {
    let _ = (
        m.module_name(),
        m.mvid(),
        m.assembly_name(),
        m.assembly_version(),
        m.type_index().len(),
    );
    let _ = m.find_type("N", "Nowhere");
    for number in 0..64 {
        let Some(table) = Table::from_number(number) else {
            continue;
        };
        for rid in (0..=m.rows(table).min(50)).chain([m.rows(table), u32::MAX]) {
            let token = Token::new(table, rid);
            let _ = (
                m.row(table, rid).is_some(),
                m.token_name(token),
                m.generic_params(token).count(),
            );
            for attribute in m.custom_attributes(token) {
                let _ = m.attribute_args(&attribute);
            }
        }
    }
    for rid in (0..50).chain([u32::MAX]) {
        let _ = (
            m.type_def(rid),
            m.enclosing(rid),
            m.type_path(rid),
            m.nested_types(rid).count(),
        );
        let _ = (
            m.field_rids_of_type(rid).count(),
            m.method_rids_of_type(rid).count(),
        );
        let _ = (m.field(rid), m.field_type(rid), m.field_owner(rid));
        let _ = (m.method(rid), m.method_signature(rid), m.method_owner(rid));
        let _ = (
            m.type_ref(rid),
            m.type_ref_assembly(rid),
            m.member_ref(rid),
            m.assembly_ref_name(rid),
        );
        let _ = (m.blob(rid), m.user_string(rid));
    }
}

proptest! {
    #[test]
    fn arbitrary_bytes_do_not_panic(bytes in prop::collection::vec(any::<u8>(), 0..2000)) {
        let mut bytes = bytes;
        if bytes.len() > 20 {
            bytes[..16].copy_from_slice(b"BSJB\x01\0\x01\0\0\0\0\0\0\0\0\0");
        }
        if let Ok(m) = Metadata::parse(bytes) {
            ask_all(&m);
        }
    }

    #[test]
    fn damaged_metadata_does_not_panic(
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..12),
        uncompressed: bool,
        end in any::<prop::sample::Index>(),
    ) {
        let mut builder = sample();
        builder.uncompressed = uncompressed;
        let mut bytes = builder.build();
        for (at, byte) in damage {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        let cut = bytes.len() - end.index(bytes.len()) / 4;
        if let Ok(m) = Metadata::parse(&bytes[..cut]) {
            ask_all(&m);
        }
    }
}
