//! The built-in list of builds, packed.
//!
//! Made by `cargo xtask core-names`. All texts first, each once; then the builds. Numbers are of variable length with
//! seven bits in a byte; a text is named by the distance from the one named before, so that builds that differ little
//! cost little.

use super::listed::{CoreLibBuild, ListedField, ListedType, Shape};
use flate2::Compression;
use flate2::read::ZlibDecoder;
use flate2::write::ZlibEncoder;
use rustc_hash::FxHashMap;
use std::io::{self, Read, Write};
use std::sync::{Arc, OnceLock};

const PACKED: &[u8] = include_bytes!("../../tables/core-names.bin");
/// Unpacked bytes.
const MAX_BYTES: u64 = 64 << 20;

/// The builds that come with the tool.
pub(super) fn built_in() -> &'static [CoreLibBuild] {
    static LIST: OnceLock<Vec<CoreLibBuild>> = OnceLock::new();
    LIST.get_or_init(|| unpack(PACKED).unwrap_or_default())
}

/// The list as it comes with the tool.
///
/// # Errors
/// Never in practice: it is written to memory.
pub fn pack_core_names(builds: &[CoreLibBuild]) -> io::Result<Vec<u8>> {
    let mut out = Writer::default();
    out.number(builds.len());
    for build in builds {
        out.text(&build.label);
        out.number(build.major as usize);
        out.bytes.extend_from_slice(&build.mvid);
        out.number(build.types.len());
        for ty in &build.types {
            out.ty(ty);
        }
    }
    let mut all = Vec::new();
    put(&mut all, out.texts.len());
    for text in &out.texts {
        put(&mut all, text.len());
        all.extend_from_slice(text.as_bytes());
    }
    all.extend(out.bytes);
    let mut packer = ZlibEncoder::new(Vec::new(), Compression::best());
    packer.write_all(&all)?;
    packer.finish()
}

fn put(bytes: &mut Vec<u8>, mut value: usize) {
    while value >= 0x80 {
        bytes.push(value.to_le_bytes()[0] | 0x80);
        value >>= 7;
    }
    bytes.push(value.to_le_bytes()[0]);
}

/// Writes builds, and gives each text a number.
#[derive(Default)]
struct Writer {
    bytes: Vec<u8>,
    texts: Vec<Arc<str>>,
    numbers: FxHashMap<Arc<str>, usize>,
    last: usize,
}

impl Writer {
    fn number(&mut self, value: usize) {
        put(&mut self.bytes, value);
    }

    fn text(&mut self, text: &Arc<str>) {
        let next = self.texts.len();
        let number = *self.numbers.entry(Arc::clone(text)).or_insert(next);
        if number == next {
            self.texts.push(Arc::clone(text));
        }
        let distance = (number as i64).wrapping_sub(self.last as i64);
        self.number((distance.wrapping_shl(1) ^ (distance >> 63)).cast_unsigned() as usize);
        self.last = number;
    }

    fn ty(&mut self, ty: &ListedType) {
        self.text(&ty.namespace);
        self.text(&ty.name);
        self.number(ty.enclosing as usize);
        self.number(ty.parent as usize);
        self.number(ty.fields.len());
        for field in &ty.fields {
            self.bytes.push(code(field));
            self.text(&field.name);
        }
        self.number(ty.methods.len());
        // most types keep no names of methods
        let kept = ty.methods.iter().any(|m| !m.is_empty());
        self.number(usize::from(kept));
        for method in ty.methods.iter().filter(|_| kept) {
            self.text(method);
        }
    }
}

const STATIC: u8 = 0x80;

fn code(field: &ListedField) -> u8 {
    let shape = match field.shape {
        Shape::Literal => 16,
        Shape::Any => 17,
        Shape::Reference => 18,
        Shape::Value => 19,
        Shape::Native => 20,
        Shape::Primitive(size) => size & 15,
    };
    if field.is_static {
        shape | STATIC
    } else {
        shape
    }
}

fn decode(code: u8) -> Option<(bool, Shape)> {
    let shape = match code & !STATIC {
        16 => Shape::Literal,
        17 => Shape::Any,
        18 => Shape::Reference,
        19 => Shape::Value,
        20 => Shape::Native,
        size @ 0..16 => Shape::Primitive(size),
        _ => return None,
    };
    Some((code & STATIC != 0, shape))
}

fn unpack(packed: &[u8]) -> Option<Vec<CoreLibBuild>> {
    let mut bytes = Vec::new();
    let unpacker = ZlibDecoder::new(packed);
    unpacker.take(MAX_BYTES).read_to_end(&mut bytes).ok()?;
    let mut reader = Reader {
        rest: &bytes,
        texts: Vec::new(),
        last: 0,
    };
    for _ in 0..reader.number()? {
        let len = reader.number()?;
        let text = std::str::from_utf8(reader.take(len)?).ok()?.into();
        reader.texts.push(text);
    }
    let count = reader.number()?;
    (0..count).map(|_| reader.build()).collect()
}

struct Reader<'b> {
    rest: &'b [u8],
    texts: Vec<Arc<str>>,
    last: usize,
}

impl<'b> Reader<'b> {
    fn take(&mut self, len: usize) -> Option<&'b [u8]> {
        let (taken, rest) = self.rest.split_at_checked(len)?;
        self.rest = rest;
        Some(taken)
    }

    fn byte(&mut self) -> Option<u8> {
        self.take(1)?.first().copied()
    }

    fn number(&mut self) -> Option<usize> {
        let mut value = 0_usize;
        for shift in (0..usize::BITS).step_by(7) {
            let byte = self.byte()?;
            value |= usize::from(byte & 0x7f).checked_shl(shift)?;
            if byte & 0x80 == 0 {
                return Some(value);
            }
        }
        None
    }

    fn row(&mut self) -> Option<u32> {
        u32::try_from(self.number()?).ok()
    }

    fn text(&mut self) -> Option<Arc<str>> {
        let value = self.number()?;
        let distance = (value >> 1).cast_signed() ^ (value & 1).cast_signed().wrapping_neg();
        self.last = self.last.wrapping_add_signed(distance);
        self.texts.get(self.last).cloned()
    }

    fn build(&mut self) -> Option<CoreLibBuild> {
        let label = self.text()?;
        let major = self.row()?;
        let mvid = self.take(16)?.try_into().ok()?;
        let count = self.number()?;
        Some(CoreLibBuild {
            label,
            major,
            mvid,
            types: (0..count).map(|_| self.ty()).collect::<Option<_>>()?,
        })
    }

    fn ty(&mut self) -> Option<ListedType> {
        let (namespace, name) = (self.text()?, self.text()?);
        let (enclosing, parent) = (self.row()?, self.row()?);
        let fields = self.number()?;
        let fields = (0..fields).map(|_| {
            let (is_static, shape) = decode(self.byte()?)?;
            Some(ListedField {
                name: self.text()?,
                is_static,
                shape,
            })
        });
        let fields = fields.collect::<Option<_>>()?;
        let methods = self.number()?;
        let kept = self.number()? != 0;
        let methods = (0..methods).map(|_| {
            if kept {
                self.text()
            } else {
                Some(Arc::default())
            }
        });
        Some(ListedType {
            namespace,
            name,
            enclosing,
            parent,
            fields,
            methods: methods.collect::<Option<_>>()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn build(label: &str) -> CoreLibBuild {
        let field = |name: &str, is_static, shape| ListedField {
            name: name.into(),
            is_static,
            shape,
        };
        CoreLibBuild {
            label: label.into(),
            major: 10,
            mvid: [7; 16],
            types: vec![
                ListedType {
                    name: "<Module>".into(),
                    methods: vec![Arc::default(); 3],
                    ..ListedType::default()
                },
                ListedType {
                    namespace: "System".into(),
                    name: "Task`1".into(),
                    enclosing: 300,
                    parent: 1,
                    fields: vec![
                        field("MAX", true, Shape::Literal),
                        field("m_state", false, Shape::Primitive(4)),
                        field("m_result", false, Shape::Any),
                        field("", true, Shape::Reference),
                        field("m_handle", false, Shape::Native),
                        field("m_value", false, Shape::Value),
                    ],
                    methods: vec!["Wait".into(), "Run".into()],
                },
            ],
        }
    }

    #[test]
    fn what_is_packed_comes_out() {
        let builds = [build("10.0.1 linux-x64"), build("10.0.1 windows-x64")];
        let packed = pack_core_names(&builds).unwrap();
        assert_eq!(unpack(&packed).unwrap(), builds);
        assert!(unpack(&packed[..packed.len() - 9]).is_none());
        assert!(unpack(&[1, 2, 3]).is_none());
    }

    #[test]
    fn the_list_that_comes_with_the_tool_knows_every_major_version() {
        for major in [8, 9, 10, 11] {
            let build = built_in().iter().find(|b| b.major == major).unwrap();
            let named = |name: &str| build.types.iter().find(|t| &*t.name == name).unwrap();
            let task = named("Task");
            assert_eq!(&*task.namespace, "System.Threading.Tasks");
            assert!(task.fields.iter().any(|f| &*f.name == "m_stateFlags"));
            assert!(named("Monitor").methods.iter().any(|m| &**m == "Enter"));
        }
    }
}
