//! A small writer of ECMA-335 metadata: types, fields, and what they refer to.

/// `TypeAttributes`: public, nested public.
const PUBLIC: u32 = 1;
const NESTED_PUBLIC: u32 = 2;
/// `FieldAttributes.Public`.
const FIELD_PUBLIC: u16 = 6;

/// The declared type of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sig {
    Int32,
    Native,
    Object,
    /// A structure of another module, by row of the reference.
    Other(u32),
    /// A type variable of the generic type.
    Variable(u8),
}

impl Sig {
    fn blob(self) -> Vec<u8> {
        // rows below 32 make coded indices below 128, which take one byte
        let reference = |row: u32| {
            let coded = u8::try_from(row << 2 | 1).ok();
            coded.filter(|b| *b < 0x80).expect("few references")
        };
        let mut out = vec![0x06];
        match self {
            Self::Int32 => out.push(0x08),
            Self::Native => out.push(0x18),
            Self::Object => out.push(0x1c),
            Self::Other(row) => out.extend([0x11, reference(row)]),
            Self::Variable(number) => out.extend([0x13, number]),
        }
        out
    }
}

/// The metadata of one module.
#[derive(Debug)]
pub(crate) struct Metadata {
    assembly: u16,
    file: u16,
    strings: Vec<u8>,
    blobs: Vec<u8>,
    type_refs: Vec<u8>,
    type_defs: Vec<u8>,
    fields: Vec<u8>,
    nested: Vec<u8>,
    core_lib: Option<u16>,
    pub(crate) type_count: u32,
    pub(crate) field_count: u32,
    ref_count: u32,
}

fn two(n: u32) -> [u8; 2] {
    u16::try_from(n).expect("small tables").to_le_bytes()
}

impl Metadata {
    /// Metadata of an assembly that has nothing but `<Module>`.
    pub(crate) fn new(assembly: &str, file: &str) -> Self {
        let mut out = Self {
            assembly: 0,
            file: 0,
            strings: vec![0],
            blobs: vec![0],
            type_refs: Vec::new(),
            type_defs: Vec::new(),
            fields: Vec::new(),
            nested: Vec::new(),
            core_lib: None,
            type_count: 0,
            field_count: 0,
            ref_count: 0,
        };
        (out.assembly, out.file) = (out.string(assembly), out.string(file));
        out.type_def("", "<Module>", None, &[]);
        out
    }

    fn string(&mut self, text: &str) -> u16 {
        if text.is_empty() {
            return 0;
        }
        let at = u16::try_from(self.strings.len()).expect("a small heap");
        self.strings.extend(text.bytes().chain([0]));
        at
    }

    /// Adds a type of System.Private.CoreLib that is referred to; answers its row.
    pub(crate) fn type_ref(&mut self, namespace: &str, name: &str) -> u32 {
        if self.core_lib.is_none() {
            self.core_lib = Some(self.string("System.Private.CoreLib"));
        }
        let (namespace, name) = (self.string(namespace), self.string(name));
        // scope: row 1 of AssemblyRef
        for cell in [1 << 2 | 2, name, namespace] {
            self.type_refs.extend(cell.to_le_bytes());
        }
        self.ref_count += 1;
        self.ref_count
    }

    /// Adds a type; answers its row. Fields get the next rows in order.
    pub(crate) fn type_def(
        &mut self,
        namespace: &str,
        name: &str,
        enclosing: Option<u32>,
        fields: &[(&str, Sig)],
    ) -> u32 {
        let (namespace, name) = (self.string(namespace), self.string(name));
        self.type_count += 1;
        let flags = if enclosing.is_some() {
            NESTED_PUBLIC
        } else {
            PUBLIC
        };
        self.type_defs.extend(flags.to_le_bytes());
        for cell in [name, namespace, 0] {
            self.type_defs.extend(cell.to_le_bytes());
        }
        self.type_defs.extend(two(self.field_count + 1));
        self.type_defs.extend(two(1));
        if let Some(outer) = enclosing {
            self.nested
                .extend([two(self.type_count), two(outer)].concat());
        }
        for (name, sig) in fields {
            let name = self.string(name);
            let blob = u16::try_from(self.blobs.len()).expect("a small heap");
            let bytes = sig.blob();
            self.blobs.push(bytes.len() as u8);
            self.blobs.extend(bytes);
            for cell in [FIELD_PUBLIC, name, blob] {
                self.fields.extend(cell.to_le_bytes());
            }
            self.field_count += 1;
        }
        self.type_count
    }

    fn tables(&self) -> Vec<u8> {
        let module = [0, self.file, 1, 0, 0].map(u16::to_le_bytes).concat();
        // SHA-1, version 10.0.0.0, no flags, no key, name, no culture
        let mut assembly = 0x8004_u32.to_le_bytes().to_vec();
        assembly.extend([10_u16, 0, 0, 0].map(u16::to_le_bytes).concat());
        assembly.extend(0_u32.to_le_bytes());
        assembly.extend([0, self.assembly, 0].map(u16::to_le_bytes).concat());
        let mut assembly_ref = Vec::new();
        if let Some(name) = self.core_lib {
            assembly_ref.extend([10_u16, 0, 0, 0].map(u16::to_le_bytes).concat());
            assembly_ref.extend(0_u32.to_le_bytes());
            assembly_ref.extend([0, name, 0, 0].map(u16::to_le_bytes).concat());
        }
        // number, bytes of a row, rows
        let tables: [(u32, usize, &[u8]); 7] = [
            (0x00, 10, &module),
            (0x01, 6, &self.type_refs),
            (0x02, 14, &self.type_defs),
            (0x04, 6, &self.fields),
            (0x20, 22, &assembly),
            (0x23, 20, &assembly_ref),
            (0x29, 4, &self.nested),
        ];
        let present = || tables.iter().filter(|(.., rows)| !rows.is_empty());
        let mut out = vec![0, 0, 0, 0, 2, 0, 0, 1];
        let valid = present().fold(0_u64, |mask, (number, ..)| mask | 1 << number);
        out.extend(valid.to_le_bytes());
        out.extend([0; 8]);
        for (_, size, rows) in present() {
            out.extend(((rows.len() / size) as u32).to_le_bytes());
        }
        for (.., rows) in present() {
            out.extend(*rows);
        }
        out
    }

    /// The metadata root with its streams.
    pub(crate) fn build(&self) -> Vec<u8> {
        let streams: [(&[u8], Vec<u8>); 5] = [
            (b"#~\0\0", self.tables()),
            (b"#Strings\0\0\0\0", self.strings.clone()),
            (b"#US\0", vec![0]),
            (b"#GUID\0\0\0", vec![7; 16]),
            (b"#Blob\0\0\0", self.blobs.clone()),
        ];
        let mut out = b"BSJB\x01\0\x01\0\0\0\0\0\x0c\0\0\0v4.0.30319\0\0\0\0".to_vec();
        out.extend((streams.len() as u16).to_le_bytes());
        let headers: usize = streams.iter().map(|(name, _)| 8 + name.len()).sum();
        let mut at = out.len() + headers;
        let mut body: Vec<u8> = Vec::new();
        for (name, mut bytes) in streams {
            bytes.resize(bytes.len().next_multiple_of(4), 0);
            out.extend(
                [at as u32, bytes.len() as u32]
                    .map(u32::to_le_bytes)
                    .concat(),
            );
            out.extend(name);
            at += bytes.len();
            body.extend(bytes);
        }
        out.extend(body);
        out
    }
}
