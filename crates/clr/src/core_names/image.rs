//! Names as metadata: what was learnt about a module, written so that the usual reader reads it.
//!
//! Only rows and names are written: no signatures, no attributes, no code. Rows without a name keep one that says which
//! row it is.

use super::Known;
use std::collections::BTreeMap;

/// Heap flags: offsets of texts, blobs and identities take four bytes.
const WIDE_HEAPS: u8 = 7;
const NESTED_PUBLIC: u32 = 2;
const PUBLIC: u32 = 1;
const STATIC: u16 = 0x10;

/// A module whose types have these names.
#[derive(Debug)]
pub(super) struct Image {
    /// Simple name of the assembly.
    pub(super) assembly: &'static str,
    /// Its version.
    pub(super) major: u16,
    /// Identity of the build, zero when it is not known.
    pub(super) mvid: [u8; 16],
    /// Rows of types, methods and fields.
    pub(super) rows: [u32; 3],
    /// What is known of the types, by row.
    pub(super) types: BTreeMap<u32, Known>,
}

impl Image {
    /// The metadata.
    pub(super) fn write(&self) -> Vec<u8> {
        let mut texts = Texts::new();
        let tables = self.tables(&mut texts);
        // the last stream makes all numbers of rows four bytes wide
        let streams: [(&[u8], &[u8]); 5] = [
            (b"#~\0\0", &tables),
            (b"#Strings\0\0\0\0", &texts.0),
            (b"#GUID\0\0\0", &self.mvid),
            (b"#Blob\0\0\0", &[0]),
            (b"#JTD\0\0\0\0", &[]),
        ];
        let mut out = b"BSJB\x01\0\x01\0\0\0\0\0\x0c\0\0\0v4.0.30319\0\0\0\0".to_vec();
        out.extend(5_u16.to_le_bytes());
        let headers = streams.iter().map(|(name, _)| name.len().saturating_add(8));
        let mut at = headers.fold(out.len(), usize::saturating_add);
        for (name, bytes) in streams {
            out.extend(number(at).to_le_bytes());
            out.extend(number(bytes.len()).to_le_bytes());
            out.extend(name);
            at = at.saturating_add(bytes.len().next_multiple_of(4));
        }
        for (_, bytes) in streams {
            out.extend(bytes);
            out.resize(out.len().next_multiple_of(4), 0);
        }
        out
    }

    fn tables(&self, texts: &mut Texts) -> Vec<u8> {
        let [types, methods, fields] = self.rows;
        let nested: Vec<(u32, u32)> = self
            .types
            .iter()
            .filter(|(_, k)| k.enclosing != 0)
            .map(|(rid, k)| (*rid, k.enclosing))
            .collect();
        let mut out = vec![0, 0, 0, 0, 2, 0, WIDE_HEAPS, 1];
        let present = [0x00, 0x02, 0x04, 0x06, 0x20, 0x29];
        let valid = present.iter().fold(0_u64, |mask, bit| mask | 1 << bit);
        out.extend(valid.to_le_bytes());
        out.extend([0; 8]);
        for rows in [1, types, fields, methods, 1, number(nested.len())] {
            out.extend(rows.to_le_bytes());
        }
        // Module: generation, name, MVID, two more
        out.extend([0; 2]);
        let name = texts.add(&format!("{}.dll", self.assembly));
        out.extend([name, 1, 0, 0].map(u32::to_le_bytes).concat());
        self.type_rows(texts, &mut out);
        self.field_rows(texts, &mut out);
        self.method_rows(texts, &mut out);
        // Assembly: SHA-1, version, flags, key, name, culture
        out.extend(0x8004_u32.to_le_bytes());
        out.extend([self.major, 0, 0, 0].map(u16::to_le_bytes).concat());
        let name = texts.add(self.assembly);
        out.extend([0, 0, name, 0].map(u32::to_le_bytes).concat());
        for (inner, outer) in nested {
            out.extend([inner, outer].map(u32::to_le_bytes).concat());
        }
        out
    }

    fn type_rows(&self, texts: &mut Texts, out: &mut Vec<u8>) {
        let [types, ..] = self.rows;
        let (mut field, mut method) = (1_u32, 1_u32);
        for rid in 1..=types {
            let known = self.types.get(&rid);
            if let Some(at) = known.and_then(|k| k.first_field) {
                field = field.max(at);
            }
            if let Some(at) = known.and_then(|k| k.first_method) {
                method = method.max(at);
            }
            let (flags, namespace, name) = match known {
                Some(k) if k.enclosing != 0 => (NESTED_PUBLIC, 0, texts.add(&k.name)),
                Some(k) => (PUBLIC, texts.add(&k.namespace), texts.add(&k.name)),
                None => {
                    let name = format!("{}!0x02{rid:06x}", self.assembly);
                    (PUBLIC, 0, texts.add(&name))
                }
            };
            // flags, name, namespace, base class, fields, methods
            let cells = [flags, name, namespace, 0, field, method];
            out.extend(cells.map(u32::to_le_bytes).concat());
            // members that belong to nobody known are those of the types in between
            field = field.saturating_add(known.map_or(0, |k| number(k.fields.len())));
            method = method.saturating_add(known.map_or(0, |k| number(k.methods.len())));
        }
    }

    fn field_rows(&self, texts: &mut Texts, out: &mut Vec<u8>) {
        let [.., fields] = self.rows;
        let named = self.types.values().filter_map(|k| {
            let first = k.first_field?;
            Some((first..).zip(&k.fields))
        });
        let named: BTreeMap<u32, _> = named.flatten().collect();
        for rid in 1..=fields {
            let known = named.get(&rid).filter(|(name, _)| !name.is_empty());
            let (flags, name) = match known {
                Some((name, is_static)) => (if *is_static { STATIC } else { 0 }, texts.add(name)),
                None => (0, texts.add(&format!("0x04{rid:06x}"))),
            };
            out.extend(flags.to_le_bytes());
            out.extend([name, 0].map(u32::to_le_bytes).concat());
        }
    }

    fn method_rows(&self, texts: &mut Texts, out: &mut Vec<u8>) {
        let [_, methods, _] = self.rows;
        let named = self.types.values().filter_map(|k| {
            let first = k.first_method?;
            Some((first..).zip(&k.methods))
        });
        let named: BTreeMap<u32, _> = named.flatten().collect();
        for rid in 1..=methods {
            let known = named.get(&rid).filter(|name| !name.is_empty());
            let name = match known {
                Some(name) => texts.add(name),
                None => texts.add(&format!("0x06{rid:06x}")),
            };
            // where its code is, flags, name, signature, parameters
            out.extend([0; 8]);
            out.extend([name, 0, 1].map(u32::to_le_bytes).concat());
        }
    }
}

/// A heap of texts; its first byte is the empty one.
struct Texts(Vec<u8>);

impl Texts {
    fn new() -> Self {
        Self(vec![0])
    }

    fn add(&mut self, text: &str) -> u32 {
        if text.is_empty() {
            return 0;
        }
        let at = number(self.0.len());
        self.0.extend_from_slice(text.as_bytes());
        self.0.push(0);
        at
    }
}

fn number(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use asynctriage_metadata::{Metadata, Table};
    use std::sync::Arc;

    #[test]
    fn the_usual_reader_reads_what_is_written() {
        let task = Known {
            namespace: "System.Threading".into(),
            name: "Task".into(),
            enclosing: 0,
            first_field: Some(3),
            fields: vec![("m_state".into(), false), ("s_count".into(), true)],
            first_method: Some(2),
            methods: vec!["Wait".into(), Arc::default()],
        };
        let nested = Known {
            namespace: Arc::default(),
            name: "Inner`1".into(),
            enclosing: 2,
            first_field: None,
            ..task.clone()
        };
        let image = Image {
            assembly: "System.Private.CoreLib",
            major: 10,
            mvid: [9; 16],
            rows: [5, 6, 7],
            types: BTreeMap::from([
                (2, task),
                (
                    4,
                    Known {
                        fields: Vec::new(),
                        methods: Vec::new(),
                        first_method: None,
                        ..nested
                    },
                ),
            ]),
        };
        let metadata = Metadata::parse(image.write()).unwrap();
        let rows = [Table::TypeDef, Table::MethodDef, Table::Field].map(|t| metadata.rows(t));
        assert_eq!(rows, image.rows);
        assert_eq!(metadata.mvid(), Some([9; 16]));
        assert_eq!(metadata.assembly_version().unwrap().major, 10);
        assert_eq!(
            metadata.assembly_name().as_deref(),
            Some("System.Private.CoreLib")
        );
        assert_eq!(
            metadata.full_name(2).as_deref(),
            Some("System.Threading.Task")
        );
        assert_eq!(
            metadata.full_name(4).as_deref(),
            Some("System.Threading.Task+Inner`1")
        );
        assert_eq!(
            metadata.full_name(5).as_deref(),
            Some("System.Private.CoreLib!0x02000005")
        );
        assert_eq!(metadata.find_type("System.Threading", "Task"), Some(2));
        assert_eq!(metadata.field(3).unwrap().name, "m_state");
        assert!(metadata.field(4).unwrap().is_static());
        assert_eq!(metadata.field(5).unwrap().name, "0x04000005");
        assert_eq!(metadata.field_rids_of_type(2).collect::<Vec<_>>(), [3, 4]);
        assert_eq!(metadata.method(2).unwrap().name, "Wait");
        assert_eq!(metadata.method(3).unwrap().name, "0x06000003");
        assert_eq!(metadata.method_owner(2), Some(2));
        assert_eq!(metadata.method_owner(5), Some(5));
    }
}
