//! Compressed dumps: unpacked into memory, up to a bound, as far as the file goes.

use std::io::{self, BufRead, Read};

use flate2::bufread::MultiGzDecoder;
use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};

use crate::OpenError;
use crate::sniff::{self, Looks};

/// A compression that is undone on the fly.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CompressionFormat {
    /// `.gz`
    Gzip,
    /// `.zst`
    Zstd,
}

/// How the compressed stream ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StreamEnd {
    /// Properly.
    Complete,
    /// The file ends in the middle of the stream.
    Cut,
    /// The stream turns into something that cannot be unpacked.
    Damaged,
}

/// The dump was compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Compression {
    /// How.
    pub format: CompressionFormat,
    /// Size of the compressed file in bytes.
    pub compressed_len: u64,
    /// Whether all of it could be unpacked.
    pub end: StreamEnd,
}

/// Bytes looked at before the rest is unpacked.
const HEAD: usize = 4096;
/// Bytes unpacked at a time.
const STEP: usize = 1 << 20;

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

/// Unpacks `input`; more than `max` bytes are refused, and so is other content than what it is unpacked for.
pub(crate) fn unpack(
    format: CompressionFormat,
    input: &[u8],
    content: Content,
    max: u64,
) -> Result<(Vec<u8>, Compression), OpenError> {
    let (bytes, end) = match format {
        CompressionFormat::Gzip => drain(format, &mut MultiGzDecoder::new(input), content, max)?,
        CompressionFormat::Zstd => drain(format, &mut ZstdFrames::new(input), content, max)?,
    };
    Ok((
        bytes,
        Compression {
            format,
            compressed_len: input.len() as u64,
            end,
        },
    ))
}

fn drain(
    format: CompressionFormat,
    from: &mut dyn Read,
    content: Content,
    max: u64,
) -> Result<(Vec<u8>, StreamEnd), OpenError> {
    let mut out = Vec::new();
    let mut end = take(from, HEAD, &mut out)?;
    match (sniff::looks(&out), end) {
        (Looks::ElfCore | Looks::Minidump, _) => {}
        (Looks::Empty, Some(StreamEnd::Cut | StreamEnd::Damaged)) => {
            return Err(OpenError::BadCompression { format });
        }
        _ if content == Content::Any => {}
        (inner, _) => {
            return Err(OpenError::NotADump(Looks::Compressed(
                format,
                Box::new(inner),
            )));
        }
    }
    loop {
        if out.len() as u64 > max {
            return Err(OpenError::TooLarge { limit: max });
        }
        if let Some(end) = end {
            return Ok((out, end));
        }
        end = take(from, STEP, &mut out)?;
    }
}

/// Appends up to `want` bytes; says how the stream ended when it did.
fn take(
    from: &mut dyn Read,
    want: usize,
    out: &mut Vec<u8>,
) -> Result<Option<StreamEnd>, OpenError> {
    let start = out.len();
    let full = start.saturating_add(want);
    out.try_reserve(want).map_err(|_| OpenError::OutOfMemory {
        needed: full as u64,
    })?;
    out.resize(full, 0);
    let (got, end) = fill(from, out.get_mut(start..).unwrap_or_default());
    out.truncate(start.saturating_add(got));
    Ok(end)
}

fn fill(from: &mut dyn Read, mut into: &mut [u8]) -> (usize, Option<StreamEnd>) {
    let mut got = 0_usize;
    while !into.is_empty() {
        let read = match from.read(into) {
            Ok(0) => return (got, Some(StreamEnd::Complete)),
            Ok(read) => read.min(into.len()),
            Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
            Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => {
                return (got, Some(StreamEnd::Cut));
            }
            Err(_) => return (got, Some(StreamEnd::Damaged)),
        };
        got = got.saturating_add(read);
        into = into.split_at_mut(read).1;
    }
    (got, None)
}

/// The frames of a zstd file one after the other.
struct ZstdFrames<'a> {
    input: &'a [u8],
    decoder: FrameDecoder,
    end: StreamEnd,
}

/// An empty last block and room for a checksum: ends a frame that the file does not end.
const LAST_BLOCK: &[u8] = &[1, 0, 0, 0, 0, 0, 0];

impl<'a> ZstdFrames<'a> {
    fn new(input: &'a [u8]) -> Self {
        Self {
            input,
            decoder: FrameDecoder::new(),
            end: StreamEnd::Complete,
        }
    }

    /// Begins the next frame; `false` at the end of the input.
    fn next_frame(&mut self) -> bool {
        while !self.input.is_empty() && self.end == StreamEnd::Complete {
            match self.decoder.reset(&mut self.input) {
                Ok(()) => return true,
                Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame {
                    length,
                    ..
                })) => {
                    let skip = usize::try_from(length)
                        .unwrap_or(usize::MAX)
                        .min(self.input.len());
                    self.input.consume(skip);
                }
                Err(_) => self.stop(),
            }
        }
        false
    }

    fn next_block(&mut self) {
        let one = BlockDecodingStrategy::UptoBlocks(1);
        if self.decoder.decode_blocks(&mut self.input, one).is_err() {
            self.stop();
            // what was decoded stays behind in the window until the frame ends, so end it
            let ended = self
                .decoder
                .decode_blocks(LAST_BLOCK, BlockDecodingStrategy::UptoBlocks(1));
            tracing::debug!(?ended, "the zstd frame does not end");
        }
    }

    /// The result of reading on at the end.
    fn end(&self) -> io::Result<usize> {
        match self.end {
            StreamEnd::Complete => Ok(0),
            StreamEnd::Cut => Err(io::ErrorKind::UnexpectedEof.into()),
            StreamEnd::Damaged => Err(io::ErrorKind::InvalidData.into()),
        }
    }

    fn stop(&mut self) {
        self.end = if self.input.is_empty() {
            StreamEnd::Cut
        } else {
            StreamEnd::Damaged
        };
        self.input = &[];
    }
}

impl Read for ZstdFrames<'_> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        loop {
            if self.decoder.can_collect() > 0 {
                return self.decoder.read(buf);
            }
            // before the first frame the decoder says that it is finished
            if !self.decoder.is_finished() && self.end == StreamEnd::Complete {
                self.next_block();
            } else if !self.next_frame() {
                return self.end();
            }
        }
    }
}
