//! Compressed files: unpacked into a file without a name, up to a bound, as far as the file goes, with all its checks.

mod gzip;
mod zstd;

use crate::backing::Backing;
use crate::sniff::{self, Looks};
use crate::spool::{BLOCK, Spool};
use crate::{OpenError, OpenOptions};

/// A compression that is undone on the fly.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CompressionFormat {
    /// `.gz`
    Gzip,
    /// `.zst`
    Zstd,
}

/// How the compressed stream ended. Of several faults the first is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum StreamEnd {
    /// Properly: all that the file says of its content is right.
    Complete,
    /// The file ends in the middle of the data.
    Cut,
    /// The data is all there, but the file ends before the checksum that was to follow.
    NoTrailer,
    /// The data has another checksum or another length than the file says.
    WrongChecksum,
    /// Bytes follow that belong to no stream.
    Trailing,
    /// The stream turns into something that cannot be unpacked.
    Damaged,
    /// Unpacking was ended; see [`Budget`](crate::Budget).
    Ended,
}

/// The file was compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Compression {
    /// How.
    pub format: CompressionFormat,
    /// Size of the compressed file in bytes.
    pub compressed_len: u64,
    /// Whether all of it could be unpacked, and passed its own checks.
    pub end: StreamEnd,
}

impl Compression {
    /// What is wrong with the packed file, as a sentence without a full stop; `None` when nothing is.
    #[must_use]
    pub fn fault(&self) -> Option<&'static str> {
        match self.end {
            StreamEnd::Complete => None,
            StreamEnd::Cut => Some("the packed file ends in the middle of its data"),
            StreamEnd::NoTrailer => {
                Some("the packed file ends before its checksum, so nothing confirms its data")
            }
            StreamEnd::WrongChecksum => Some(
                "what the packed file holds has another checksum or length than the file says: bytes of it are wrong",
            ),
            StreamEnd::Trailing => {
                Some("the packed file goes on behind its end with bytes that cannot be unpacked")
            }
            StreamEnd::Damaged => {
                Some("the packed file is damaged: what follows cannot be unpacked")
            }
            StreamEnd::Ended => Some("unpacking was ended before the file's end"),
        }
    }

    /// The command that tests such a file.
    #[must_use]
    pub fn tester(&self) -> &'static str {
        self.format.tester()
    }
}

impl CompressionFormat {
    pub(crate) fn tester(self) -> &'static str {
        match self {
            Self::Gzip => "gzip -t",
            Self::Zstd => "zstd -t",
        }
    }
}

/// A packed stream that is undone piece by piece.
trait Unpack {
    /// Unpacks into a part of `into` that begins with it; 0 at the end.
    fn unpack(&mut self, into: &mut [u8]) -> usize;

    /// How the stream ended; to be asked at the end.
    fn end(&self) -> StreamEnd;
}

/// The compression of a file that begins with `head`.
pub(crate) fn detect(head: &[u8]) -> Option<CompressionFormat> {
    match head {
        [0x1F, 0x8B, 8, ..] => Some(CompressionFormat::Gzip),
        // the second is a skippable frame, which parallel and seekable writers put first
        [0x28, 0xB5, 0x2F, 0xFD, ..] | [0x50..=0x5F, 0x2A, 0x4D, 0x18, ..] => {
            Some(CompressionFormat::Zstd)
        }
        _ => None,
    }
}

/// What a packed file is unpacked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Content {
    /// A dump; anything else is refused before it is unpacked whole.
    Dump,
    /// Whatever it is.
    Any,
}

/// Unpacks `input`; more than the options allow is refused, and so is other content than what it is unpacked for.
pub(crate) fn unpack(
    format: CompressionFormat,
    input: &[u8],
    content: Content,
    options: &OpenOptions,
) -> Result<(Backing, Compression), OpenError> {
    let mut from: Box<dyn Unpack + '_> = match format {
        CompressionFormat::Gzip => Box::new(gzip::GzipMembers::new(input)),
        CompressionFormat::Zstd => Box::new(zstd::ZstdFrames::new(input)),
    };
    let (unpacked, is_whole) = drain(format, &mut *from, content, options)?;
    Ok((
        unpacked,
        Compression {
            format,
            compressed_len: input.len() as u64,
            end: if is_whole {
                from.end()
            } else {
                StreamEnd::Ended
            },
        },
    ))
}

/// What was unpacked, and whether that is all.
fn drain(
    format: CompressionFormat,
    from: &mut dyn Unpack,
    content: Content,
    options: &OpenOptions,
) -> Result<(Backing, bool), OpenError> {
    let max = options.max_decompressed;
    let folder = std::env::temp_dir();
    let mut block = vec![0; BLOCK];
    let mut got = fill(from, &mut block);
    match sniff::looks(got) {
        Looks::ElfCore | Looks::Minidump => {}
        Looks::Empty if from.end() != StreamEnd::Complete => {
            return Err(OpenError::BadCompression { format });
        }
        _ if content == Content::Any => {}
        inner => {
            return Err(OpenError::NotADump(Looks::Compressed(
                format,
                Box::new(inner),
            )));
        }
    }
    let mut spool = Spool::new(&folder)?;
    loop {
        spool.add(got)?;
        if spool.len() > max {
            return Err(OpenError::TooLarge { limit: max });
        }
        if got.len() < BLOCK {
            return Ok((spool.finish()?, true));
        }
        if options.budget.leaves("blocks of the packed file", || None) {
            return Ok((spool.finish()?, false));
        }
        got = fill(from, &mut block);
    }
}

/// Unpacks until `into` is full or the stream ends; what was unpacked.
fn fill<'b>(from: &mut dyn Unpack, into: &'b mut [u8]) -> &'b [u8] {
    let mut got = 0_usize;
    while let Some(rest) = into.get_mut(got..).filter(|r| !r.is_empty()) {
        match from.unpack(rest) {
            0 => break,
            more => got = got.saturating_add(more),
        }
    }
    into.get(..got).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::write::GzEncoder;
    use ruzstd::encoding::{CompressionLevel, compress_to_vec};
    use std::io::Write as _;

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut out = GzEncoder::new(Vec::new(), flate2::Compression::fast());
        out.write_all(bytes).unwrap();
        out.finish().unwrap()
    }

    fn zstd(bytes: &[u8]) -> Vec<u8> {
        compress_to_vec(bytes, CompressionLevel::Fastest)
    }

    fn text() -> Vec<u8> {
        b"one line of many that is packed\n".repeat(10_000)
    }

    fn unpacked(packed: &[u8]) -> (Backing, StreamEnd) {
        let format = detect(packed).unwrap();
        let options = OpenOptions::default();
        let (bytes, compression) = unpack(format, packed, Content::Any, &options).unwrap();
        (bytes, compression.end)
    }

    #[test]
    fn what_is_unpacked_lies_in_a_mapped_file() {
        for packed in [gzip(&text()), zstd(&text())] {
            let (bytes, end) = unpacked(&packed);
            assert!(matches!(bytes, Backing::Mapped(_)));
            assert_eq!((&bytes[..], end), (&text()[..], StreamEnd::Complete));
        }
    }

    #[test]
    fn unpacking_may_be_ended() {
        let options = OpenOptions::default();
        options.budget.end_for_good(crate::Ended::Time);
        for packed in [gzip(&text()), zstd(&text())] {
            let format = detect(&packed).unwrap();
            let (bytes, compression) = unpack(format, &packed, Content::Any, &options).unwrap();
            assert_eq!(compression.end, StreamEnd::Ended);
            assert_eq!(bytes[..], text()[..BLOCK]);
        }
        assert!(options.budget.is_cut());
    }

    #[test]
    fn a_wrong_checksum_is_told_and_the_data_kept() {
        let [mut crc, mut length, mut zst] = [gzip(&text()), gzip(&text()), zstd(&text())];
        let n = crc.len();
        crc[n - 8] ^= 1;
        length[n - 1] ^= 1;
        let last = zst.len() - 1;
        zst[last] ^= 0x80;
        for packed in [crc, length, zst] {
            let (bytes, end) = unpacked(&packed);
            assert_eq!((&bytes[..], end), (&text()[..], StreamEnd::WrongChecksum));
        }
    }

    #[test]
    fn a_missing_trailer_is_told_from_missing_data() {
        let (gz, zst) = (gzip(&text()), zstd(&text()));
        for (packed, trailer) in [(&gz, 8), (&zst, 4)] {
            for lost in 1..=trailer {
                let (bytes, end) = unpacked(&packed[..packed.len() - lost]);
                assert_eq!((&bytes[..], end), (&text()[..], StreamEnd::NoTrailer));
            }
            let (bytes, end) = unpacked(&packed[..packed.len() / 2]);
            assert_eq!(end, StreamEnd::Cut);
            assert!(text().starts_with(&bytes));
        }
    }

    #[test]
    fn what_follows_the_stream_is_told_but_for_padding_of_gzip() {
        for packed in [gzip(&text()), zstd(&text())] {
            let (bytes, end) = unpacked(&[&packed[..], b"and more"].concat());
            assert_eq!((&bytes[..], end), (&text()[..], StreamEnd::Trailing));
        }
        let (bytes, end) = unpacked(&[gzip(&text()), vec![0; 1000]].concat());
        assert_eq!((&bytes[..], end), (&text()[..], StreamEnd::Complete));
    }

    #[test]
    fn all_streams_of_a_file_are_checked() {
        for pack in [gzip, zstd] {
            let (mut first, second) = (pack(b"first, "), pack(b"second"));
            let (bytes, end) = unpacked(&[&first[..], &second].concat());
            assert_eq!(
                (&bytes[..], end),
                (&b"first, second"[..], StreamEnd::Complete)
            );
            let n = first.len();
            first[n - 1] ^= 1;
            let (bytes, end) = unpacked(&[first, second].concat());
            assert_eq!(
                (&bytes[..], end),
                (&b"first, second"[..], StreamEnd::WrongChecksum)
            );
        }
    }

    #[test]
    fn damaged_data_is_used_up_to_the_damage() {
        let noise: Vec<u8> = (0..400_000_u32)
            .map(|i| (i.wrapping_mul(2_654_435_761) >> 13) as u8)
            .collect();
        for mut packed in [gzip(&noise), zstd(&noise)] {
            let middle = packed.len() / 2;
            packed[middle..middle + 64].fill(0xFF);
            let (bytes, end) = unpacked(&packed);
            assert_ne!(end, StreamEnd::Complete);
            assert!(bytes.len() > 100_000, "{}", bytes.len());
            assert_eq!(bytes[..100_000], noise[..100_000]);
        }
    }
}
