//! What a file is by its first bytes.

use std::fmt;

use crate::CompressionFormat;
use crate::compress::detect;

/// What a file looks like by its first bytes; names are for the user.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Looks {
    /// An ELF core of any kind.
    ElfCore,
    /// No bytes at all.
    Empty,
    /// An ELF file that is not a core.
    Elf,
    /// A Windows minidump.
    Minidump,
    /// A Windows kernel dump.
    WindowsKernelDump,
    /// A Windows program or a managed assembly.
    Pe,
    /// A macOS program or core.
    MachO,
    /// The output of a trace collector.
    NetTrace,
    /// A GC heap snapshot that holds types and sizes but no memory.
    GcDump,
    /// An archive or a compression that is not undone here, by name.
    Archive(&'static str),
    /// Compressed in a known way, with something else than a dump inside.
    Compressed(CompressionFormat, Box<Looks>),
    /// Text.
    Text,
    /// Nothing but zeros.
    Zeros,
    /// Nothing known.
    Unknown,
}

impl fmt::Display for Looks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::ElfCore => "an ELF core",
            Self::Empty => "nothing",
            Self::Elf => "an ELF program or library",
            Self::Minidump => "a Windows minidump",
            Self::WindowsKernelDump => "a Windows kernel dump",
            Self::Pe => "a Windows program or a .NET assembly",
            Self::MachO => "a macOS program or core",
            Self::NetTrace => "a .NET event trace (.nettrace)",
            Self::GcDump => "a .NET heap snapshot (.gcdump)",
            Self::Archive(name) => return write!(f, "a file packed with {name}"),
            Self::Compressed(format, inner) => return write!(f, "{inner}, packed with {format}"),
            Self::Text => "text",
            Self::Zeros => "zeros only",
            Self::Unknown => "a file of no known kind",
        })
    }
}

impl fmt::Display for CompressionFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Gzip => "gzip",
            Self::Zstd => "zstd",
        })
    }
}

/// `e_type` of a core.
const ET_CORE: u8 = 4;
/// Bytes that are looked at for text and zeros.
const SAMPLE: usize = 512;

/// What a file with these first bytes is; a few hundred bytes are enough.
pub(crate) fn looks(head: &[u8]) -> Looks {
    if let Some(format) = detect(head) {
        return Looks::Compressed(format, Box::new(Looks::Unknown));
    }
    match head {
        [] => Looks::Empty,
        [0x7F, b'E', b'L', b'F', rest @ ..] if is_core(rest) => Looks::ElfCore,
        [0x7F, b'E', b'L', b'F', ..] => Looks::Elf,
        [b'M', b'D', b'M', b'P', ..] => Looks::Minidump,
        [b'P', b'A', b'G', b'E', b'D', b'U', ..] => Looks::WindowsKernelDump,
        [b'M', b'Z', ..] => Looks::Pe,
        [0xCF, 0xFA, 0xED, 0xFE, ..] => Looks::MachO,
        [b'N', b'e', b't', b't', b'r', b'a', b'c', b'e', ..] => Looks::NetTrace,
        // a length, then the name of the serializer
        [
            _,
            0,
            0,
            0,
            b'!',
            b'F',
            b'a',
            b's',
            b't',
            b'S',
            b'e',
            b'r',
            ..,
        ] => Looks::GcDump,
        _ => archive(head).map_or_else(|| by_content(head), Looks::Archive),
    }
}

/// Whether the ELF identification without its magic goes on to a core of either byte order.
fn is_core(rest: &[u8]) -> bool {
    let big_endian = rest.get(1) == Some(&2);
    let low = if big_endian { 13 } else { 12 };
    rest.get(low) == Some(&ET_CORE)
}

fn archive(head: &[u8]) -> Option<&'static str> {
    Some(match head {
        [0xFD, b'7', b'z', b'X', b'Z', 0, ..] => "xz",
        [b'B', b'Z', b'h', ..] => "bzip2",
        [4, 0x22, 0x4D, 0x18, ..] => "lz4",
        [b'P', b'K', 3 | 5 | 7, 4 | 6 | 8, ..] => "zip",
        [b'7', b'z', 0xBC, 0xAF, 0x27, 0x1C, ..] => "7-zip",
        _ if head.get(257..262) == Some(b"ustar") => "tar",
        _ => return None,
    })
}

fn by_content(head: &[u8]) -> Looks {
    let sample = head.get(..SAMPLE).unwrap_or(head);
    let is_text = |b: &u8| matches!(b, 9 | 10 | 13 | 32..=126 | 128..);
    if sample.iter().all(|b| *b == 0) {
        Looks::Zeros
    } else if sample.iter().all(is_text)
        && sample.iter().filter(|b| b.is_ascii()).count() > sample.len() / 2
    {
        Looks::Text
    } else {
        Looks::Unknown
    }
}
