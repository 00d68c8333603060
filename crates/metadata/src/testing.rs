//! A small metadata writer for tests.

use crate::table::{Coded, Column, Table};
use crate::token::Token;
use std::collections::BTreeMap;

/// Collects rows and heaps, and lays them out as metadata.
#[derive(Clone)]
pub(crate) struct Builder {
    tables: BTreeMap<u8, (Table, Vec<Vec<u32>>)>,
    strings: Vec<u8>,
    blobs: Vec<u8>,
    guids: Vec<u8>,
    /// `#-` instead of `#~`.
    pub(crate) uncompressed: bool,
    /// Heap flags: 1, 2, 4 for wide strings, GUIDs and blobs; 0x40 for four more bytes behind the row counts.
    pub(crate) heap_flags: u8,
    /// Row counts of a `#Pdb` stream.
    pub(crate) referenced: Vec<(Table, u32)>,
}

impl Builder {
    pub(crate) fn new() -> Self {
        Self {
            tables: BTreeMap::new(),
            strings: vec![0],
            blobs: vec![0],
            guids: Vec::new(),
            uncompressed: false,
            heap_flags: 0,
            referenced: Vec::new(),
        }
    }

    pub(crate) fn string(&mut self, text: &str) -> u32 {
        let offset = self.strings.len() as u32;
        self.strings.extend_from_slice(text.as_bytes());
        self.strings.push(0);
        offset
    }

    /// A blob of less than 128 bytes.
    pub(crate) fn blob(&mut self, bytes: &[u8]) -> u32 {
        let offset = self.blobs.len() as u32;
        self.blobs.push(
            u8::try_from(bytes.len())
                .ok()
                .filter(|n| *n < 0x80)
                .expect("short blob"),
        );
        self.blobs.extend_from_slice(bytes);
        offset
    }

    pub(crate) fn guid(&mut self, guid: [u8; 16]) -> u32 {
        self.guids.extend_from_slice(&guid);
        self.guids.len() as u32 / 16
    }

    /// Adds a row and answers its number.
    pub(crate) fn row(&mut self, table: Table, cells: &[u32]) -> u32 {
        assert_eq!(cells.len(), table.columns().len(), "{table:?}");
        let (_, rows) = self
            .tables
            .entry(table as u8)
            .or_insert_with(|| (table, Vec::new()));
        rows.push(cells.to_vec());
        rows.len() as u32
    }

    fn rows(&self, table: Table) -> u32 {
        let own = self
            .tables
            .get(&(table as u8))
            .map_or(0, |(_, rows)| rows.len() as u32);
        self.referenced
            .iter()
            .find(|(t, _)| *t == table)
            .map_or(own, |(_, rows)| *rows)
    }

    fn is_wide(&self, column: Column) -> bool {
        match column {
            Column::U16 => false,
            Column::U32 => true,
            Column::Str => self.heap_flags & 1 != 0,
            Column::Guid => self.heap_flags & 2 != 0,
            Column::Blob => self.heap_flags & 4 != 0,
            Column::Rid(table) => self.rows(table) >= 1 << 16,
            Column::List(table) => {
                let pointers = table.pointer_table().expect("lists have pointer tables");
                self.rows(if self.rows(pointers) > 0 {
                    pointers
                } else {
                    table
                }) >= 1 << 16
            }
            Column::Coded(coded) => coded
                .tables()
                .iter()
                .flatten()
                .any(|t| self.rows(*t) >= 1 << (16 - coded.bits())),
        }
    }

    fn table_stream(&self) -> Vec<u8> {
        let mut out = vec![0, 0, 0, 0, 2, 0, self.heap_flags, 1];
        let valid = self
            .tables
            .keys()
            .fold(0_u64, |mask, number| mask | 1 << number);
        out.extend_from_slice(&valid.to_le_bytes());
        out.extend_from_slice(&[0; 8]);
        for (_, rows) in self.tables.values() {
            out.extend_from_slice(&(rows.len() as u32).to_le_bytes());
        }
        if self.heap_flags & 0x40 != 0 {
            out.extend_from_slice(&[0xee; 4]);
        }
        for (table, rows) in self.tables.values() {
            for (cell, column) in rows.iter().flat_map(|row| row.iter().zip(table.columns())) {
                let width = if self.is_wide(*column) { 4 } else { 2 };
                out.extend_from_slice(&cell.to_le_bytes()[..width]);
            }
        }
        out
    }

    fn pdb_stream(&self) -> Vec<u8> {
        let mut out = vec![0; 24];
        let mask = self
            .referenced
            .iter()
            .fold(0_u64, |mask, (table, _)| mask | 1 << *table as u8);
        out.extend_from_slice(&mask.to_le_bytes());
        for (_, rows) in &self.referenced {
            out.extend_from_slice(&rows.to_le_bytes());
        }
        out
    }

    /// The bytes of the metadata root.
    pub(crate) fn build(&self) -> Vec<u8> {
        let mut streams = vec![
            (
                if self.uncompressed { "#-" } else { "#~" },
                self.table_stream(),
            ),
            ("#Unknown", vec![1, 2, 3, 4]),
            ("#Strings", self.strings.clone()),
            ("#US", vec![0, 5, b'h', 0, b'i', 0, 0]),
            ("#GUID", self.guids.clone()),
            ("#Blob", self.blobs.clone()),
        ];
        if !self.referenced.is_empty() {
            streams.push(("#Pdb", self.pdb_stream()));
        }
        let mut out = b"BSJB\x01\0\x01\0\0\0\0\0\x0c\0\0\0v4.0.30319\0\0\0\0".to_vec();
        out.extend_from_slice(&(streams.len() as u16).to_le_bytes());
        let headers = streams
            .iter()
            .map(|(name, _)| 8 + (name.len() / 4 + 1) * 4)
            .sum::<usize>();
        let mut offset = out.len() + headers;
        let mut body = Vec::new();
        for (name, bytes) in streams {
            out.extend_from_slice(&(offset as u32).to_le_bytes());
            out.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
            let mut padded = name.as_bytes().to_vec();
            padded.resize((name.len() / 4 + 1) * 4, 0);
            out.extend_from_slice(&padded);
            offset += bytes.len();
            body.extend_from_slice(&bytes);
        }
        out.extend_from_slice(&body);
        out
    }
}

/// Cell of a coded index.
pub(crate) fn coded(coded: Coded, table: Table, rid: u32) -> u32 {
    Token::new(table, rid)
        .encode(coded)
        .expect("a table of this coded index")
}

/// An assembly with these types and members:
///
/// | row | type | fields | methods |
/// | --- | --- | --- | --- |
/// | 1 | `<Module>` | | |
/// | 2 | ``N.Outer`1<T>`` | `count` | `.ctor`, `Run` |
/// | 3 | `N.Empty` | | |
/// | 4 | ``N.Outer`1+<Run>d__0`` | `<>1__state`, `items` | `MoveNext` |
///
/// `Outer` derives from `[Lib]System.Base`, whose nested type `Inner` is type reference 2; `items` is an array of
/// ``Outer`1<string>``; `Outer` has an attribute `[Named("x", -2)]`.
pub(crate) fn sample() -> Builder {
    let mut b = Builder::new();
    let names = [
        "Sample.dll",
        "Sample",
        "N",
        "Outer`1",
        "Empty",
        "<Run>d__0",
        "<Module>",
    ];
    let [dll, sample, n, outer, empty, machine, module] = names.map(|name| b.string(name));
    let mvid = b.guid(*b"0123456789abcdef");
    b.row(Table::Module, &[0, dll, mvid, 0, 0]);
    b.row(Table::Assembly, &[0, 1, 2, 3, 4, 0, 0, sample, 0]);
    let lib = b.string("Lib");
    b.row(Table::AssemblyRef, &[9, 0, 0, 0, 0, 0, lib, 0, 0]);
    let [system, base, inner, attribute] =
        ["System", "Base", "Inner", "NamedAttribute"].map(|name| b.string(name));
    let in_lib = coded(Coded::ResolutionScope, Table::AssemblyRef, 1);
    b.row(Table::TypeRef, &[in_lib, base, system]);
    b.row(
        Table::TypeRef,
        &[coded(Coded::ResolutionScope, Table::TypeRef, 1), inner, 0],
    );
    b.row(Table::TypeRef, &[in_lib, attribute, system]);

    b.row(Table::TypeDef, &[0, module, 0, 0, 1, 1]);
    b.row(
        Table::TypeDef,
        &[
            1,
            outer,
            n,
            coded(Coded::TypeDefOrRef, Table::TypeRef, 1),
            1,
            1,
        ],
    );
    b.row(Table::TypeDef, &[0, empty, n, 0, 2, 3]);
    b.row(Table::TypeDef, &[0x103, machine, 0, 0, 2, 3]);
    b.row(Table::NestedClass, &[4, 2]);
    let t = b.string("T");
    b.row(
        Table::GenericParam,
        &[0, 0, coded(Coded::TypeOrMethodDef, Table::TypeDef, 2), t],
    );

    let int = b.blob(&[0x06, 0x08]);
    let array_of_outer = b.blob(&[0x06, 0x1d, 0x15, 0x12, 2 << 2, 1, 0x0e]);
    for (name, signature) in [
        ("count", int),
        ("<>1__state", int),
        ("items", array_of_outer),
    ] {
        let name = b.string(name);
        b.row(Table::Field, &[6, name, signature]);
    }
    let void = b.blob(&[0x20, 0, 0x01]);
    let run = b.blob(&[0x30, 1, 1, 0x1e, 0, 0x13, 0]);
    for (name, signature) in [(".ctor", void), ("Run", run), ("MoveNext", void)] {
        let name = b.string(name);
        b.row(Table::MethodDef, &[0x2050, 0, 6, name, signature, 1]);
    }
    add_attribute(&mut b);
    let spec = b.blob(&[0x15, 0x12, 2 << 2, 1, 0x12, 2 << 2 | 1]);
    b.row(Table::TypeSpec, &[spec]);
    b
}

fn add_attribute(b: &mut Builder) {
    let constructor = b.string(".ctor");
    let takes_string_and_int = b.blob(&[0x20, 2, 0x01, 0x0e, 0x08]);
    let named = coded(Coded::MemberRefParent, Table::TypeRef, 3);
    b.row(
        Table::MemberRef,
        &[named, constructor, takes_string_and_int],
    );
    let value = b.blob(&[1, 0, 1, b'x', 0xfe, 0xff, 0xff, 0xff, 0, 0]);
    let parent = coded(Coded::HasCustomAttribute, Table::TypeDef, 2);
    b.row(
        Table::CustomAttribute,
        &[
            parent,
            coded(Coded::CustomAttributeType, Table::MemberRef, 1),
            value,
        ],
    );
}
