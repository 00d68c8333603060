//! `.zst`: frames one after the other, each of which may state the checksum and the length of what it held.

use std::io::{BufRead, Read};

use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};

use super::{StreamEnd, Unpack};

/// An empty last block and room for a checksum: ends a frame that the file does not end.
const LAST_BLOCK: &[u8] = &[1, 0, 0, 0, 0, 0, 0];

/// The frames of a file.
pub(super) struct ZstdFrames<'a> {
    input: &'a [u8],
    decoder: FrameDecoder,
    /// Bytes that the frame has given; `None` before the first frame.
    given: Option<u64>,
    /// Nothing more can be unpacked.
    is_over: bool,
    end: StreamEnd,
}

impl<'a> ZstdFrames<'a> {
    pub(super) fn new(input: &'a [u8]) -> Self {
        Self {
            input,
            decoder: FrameDecoder::new(),
            given: None,
            is_over: false,
            end: StreamEnd::Complete,
        }
    }

    /// Begins the next frame; `false` at the end of the input.
    fn next_frame(&mut self) -> bool {
        self.check();
        while !self.input.is_empty() && !self.is_over {
            match self.decoder.reset(&mut self.input) {
                Ok(()) => {
                    self.given = Some(0);
                    return true;
                }
                Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame {
                    length,
                    ..
                })) => {
                    let skip = usize::try_from(length).unwrap_or(usize::MAX);
                    if skip > self.input.len() {
                        self.stop(StreamEnd::Cut);
                    } else {
                        self.input.consume(skip);
                    }
                }
                Err(FrameDecoderError::ReadFrameHeaderError(
                    ReadFrameHeaderError::BadMagicNumber(_),
                )) if self.given.is_some() => self.stop(StreamEnd::Trailing),
                Err(_) => self.stop_by_input(),
            }
        }
        false
    }

    /// Whether the frame that has ended held what it states.
    fn check(&mut self) {
        let Some(given) = self.given.filter(|_| self.end == StreamEnd::Complete) else {
            return;
        };
        let stated = self.decoder.get_checksum_from_data();
        let is_wrong = stated.is_some() && stated != self.decoder.get_calculated_checksum();
        // 0 is what the decoder says of a frame that states no length
        let len = self.decoder.content_size();
        if is_wrong || (len > 0 && len != given) {
            // what follows may be whole
            self.end = StreamEnd::WrongChecksum;
        }
    }

    fn next_block(&mut self) {
        let one = BlockDecodingStrategy::UptoBlocks(1);
        let Err(error) = self.decoder.decode_blocks(&mut self.input, one) else {
            return;
        };
        match error {
            FrameDecoderError::FailedToReadChecksum(_) => self.stop(StreamEnd::NoTrailer),
            _ => self.stop_by_input(),
        }
        // what was decoded stays behind in the window until the frame ends, so end it
        let ended = self
            .decoder
            .decode_blocks(LAST_BLOCK, BlockDecodingStrategy::UptoBlocks(1));
        tracing::debug!(?ended, "the zstd frame does not end");
    }

    fn stop_by_input(&mut self) {
        self.stop(if self.input.is_empty() {
            StreamEnd::Cut
        } else {
            StreamEnd::Damaged
        });
    }

    fn stop(&mut self, why: StreamEnd) {
        self.is_over = true;
        self.input = &[];
        if self.end == StreamEnd::Complete {
            self.end = why;
        }
    }
}

impl Unpack for ZstdFrames<'_> {
    fn unpack(&mut self, into: &mut [u8]) -> usize {
        loop {
            if self.decoder.can_collect() > 0 {
                // reading from the window of the decoder cannot fail
                let got = self.decoder.read(into).unwrap_or(0);
                self.given = self.given.map(|given| given.saturating_add(got as u64));
                return got;
            }
            // before the first frame the decoder says that it is finished
            if !self.decoder.is_finished() && !self.is_over {
                self.next_block();
            } else if !self.next_frame() {
                return 0;
            }
        }
    }

    fn end(&self) -> StreamEnd {
        self.end
    }
}
