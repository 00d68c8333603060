use std::io::{self, Cursor, Read, Write};

use flate2::write::GzEncoder;

use crate::testkit::*;
use crate::*;

const LEN: u64 = 1 << 20;

/// A core with bytes, a megabyte of zeros and bytes again.
fn core() -> Vec<u8> {
    CoreFile::new()
        .segment(0x10_0000, &[7; 100_000], RW)
        .segment(0x20_0000, &[0; LEN as usize], RW)
        .segment(0x40_0000, &[9; 5000], RW)
        .build()
}

fn open(from: impl Read) -> Result<Dump, OpenError> {
    Dump::from_reader(from, &OpenOptions::default())
}

/// Gives a byte or two at a time, as pipes may, and is interrupted in between.
struct Slow(Cursor<Vec<u8>>, bool);

impl Read for Slow {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        self.1 = !self.1;
        if self.1 {
            return Err(io::ErrorKind::Interrupted.into());
        }
        let len = out.len().min(4097);
        self.0.read(&mut out[..len])
    }
}

#[test]
fn a_piped_dump_is_the_same_as_one_in_a_file() {
    let (file, piped) = (
        Dump::from_bytes(core()).unwrap(),
        open(Slow(Cursor::new(core()), false)).unwrap(),
    );
    assert_eq!(piped.file_len, file.file_len);
    assert_eq!(piped.truncated, None);
    for (start, len) in file.memory.ranges() {
        assert_eq!(
            piped.memory.slice(start, len),
            file.memory.slice(start, len)
        );
    }
    assert!(file.memory.ranges().count() >= 3);
}

#[test]
fn a_packed_dump_comes_through_a_pipe() {
    let mut packer = GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packer.write_all(&core()).unwrap();
    let packed = packer.finish().unwrap();
    let dump = open(&packed[..]).unwrap();
    assert_eq!(dump.compression.unwrap().end, StreamEnd::Complete);
    assert_eq!(dump.memory.slice(Addr(0x40_0000), 5000).unwrap(), [9; 5000]);
}

#[test]
fn a_dump_that_ends_in_zeros_keeps_its_length() {
    let mut file = core();
    file.resize(file.len() + 300_000, 0);
    assert_eq!(open(&file[..]).unwrap().file_len, file.len() as u64);
}

/// Breaks after what it holds.
struct Broken(Cursor<Vec<u8>>);

impl Read for Broken {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        match self.0.read(out)? {
            0 => Err(io::ErrorKind::BrokenPipe.into()),
            got => Ok(got),
        }
    }
}

#[test]
fn what_is_no_dump_is_refused_by_its_first_bytes() {
    // whoever read on would meet the broken end
    let text = Broken(Cursor::new(vec![b'a'; 4096]));
    assert!(matches!(open(text), Err(OpenError::NotADump(Looks::Text))));
    assert!(matches!(open(&[][..]), Err(OpenError::NothingCame)));
}

#[test]
fn a_pipe_that_breaks_is_no_cut_dump() {
    let broken = Broken(Cursor::new(core()[..200_000].to_vec()));
    assert!(matches!(open(broken), Err(OpenError::Stream(_))));
}
