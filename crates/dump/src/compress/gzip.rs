//! `.gz`: members one after the other, each with the checksum and the length of what it held.

use std::io::Read;

use flate2::bufread::GzDecoder;
use flate2::{Crc, Decompress, FlushDecompress, Status};

use super::{StreamEnd, Unpack};

/// How a member begins.
const MAGIC: [u8; 2] = [0x1F, 0x8B];
/// Checksum and length at the end of a member.
const TRAILER: usize = 8;

/// Where the stream stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// Before a member, or behind the last.
    Between,
    /// In the data of a member.
    Inside,
    /// Nothing more can be unpacked.
    Over,
}

/// The members of a file. The decoder of the crate tells neither a missing trailer from missing data nor a wrong
/// checksum from damaged data, so members are taken apart here.
pub(super) struct GzipMembers<'a> {
    input: &'a [u8],
    inflate: Decompress,
    crc: Crc,
    place: Place,
    first: bool,
    end: StreamEnd,
}

impl<'a> GzipMembers<'a> {
    pub(super) fn new(input: &'a [u8]) -> Self {
        Self {
            input,
            inflate: Decompress::new(false),
            crc: Crc::new(),
            place: Place::Between,
            first: true,
            end: StreamEnd::Complete,
        }
    }

    fn next_member(&mut self) {
        // tapes and some copies fill the last block with zeros, which gzip itself accepts
        if !self.first && self.input.iter().all(|b| *b == 0) {
            self.place = Place::Over;
            return;
        }
        if !self.input.starts_with(&MAGIC) {
            return self.stop(StreamEnd::Trailing);
        }
        let mut header = GzDecoder::new(self.input);
        if header.header().is_none() {
            let end = match header.read(&mut [0]) {
                Err(e) if e.kind() == std::io::ErrorKind::UnexpectedEof => StreamEnd::Cut,
                _ => StreamEnd::Damaged,
            };
            return self.stop(end);
        }
        self.input = header.into_inner();
        self.inflate.reset(false);
        self.crc.reset();
        self.first = false;
        self.place = Place::Inside;
    }

    fn inflate(&mut self, into: &mut [u8]) -> usize {
        let (before_in, before_out) = (self.inflate.total_in(), self.inflate.total_out());
        let status = self
            .inflate
            .decompress(self.input, into, FlushDecompress::None);
        let moved = |total: u64, before: u64| {
            usize::try_from(total.saturating_sub(before)).unwrap_or(usize::MAX)
        };
        let used = moved(self.inflate.total_in(), before_in);
        let got = moved(self.inflate.total_out(), before_out);
        self.input = self.input.get(used..).unwrap_or_default();
        self.crc.update(into.get(..got).unwrap_or_default());
        match status {
            Ok(Status::StreamEnd) => self.finish_member(),
            Ok(_) if used > 0 || got > 0 => {}
            Ok(_) if self.input.is_empty() => self.stop(StreamEnd::Cut),
            _ => self.stop(StreamEnd::Damaged),
        }
        got
    }

    fn finish_member(&mut self) {
        self.place = Place::Between;
        let Some((trailer, rest)) = self.input.split_first_chunk::<TRAILER>() else {
            return self.stop(StreamEnd::NoTrailer);
        };
        self.input = rest;
        let [a, b, c, d, e, f, g, h] = *trailer;
        let is_right = u32::from_le_bytes([a, b, c, d]) == self.crc.sum()
            && u32::from_le_bytes([e, f, g, h]) == self.crc.amount();
        if !is_right && self.end == StreamEnd::Complete {
            // what follows may be whole
            self.end = StreamEnd::WrongChecksum;
        }
    }

    fn stop(&mut self, why: StreamEnd) {
        self.place = Place::Over;
        if self.end == StreamEnd::Complete {
            self.end = why;
        }
    }
}

impl Unpack for GzipMembers<'_> {
    fn unpack(&mut self, into: &mut [u8]) -> usize {
        loop {
            match self.place {
                Place::Over => return 0,
                Place::Between => self.next_member(),
                Place::Inside => match self.inflate(into) {
                    0 => {}
                    got => return got,
                },
            }
        }
    }

    fn end(&self) -> StreamEnd {
        self.end
    }
}
