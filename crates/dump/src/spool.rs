//! What comes through a pipe or is unpacked: kept in a file without a name, which is gone when the process ends, however it
//! ends. Memory of the process would be taken from the host, which may be the one that hangs.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;

use crate::backing::Backing;
use crate::sniff::{self, Looks};
use crate::{Dump, OpenError, OpenOptions};

/// Bytes looked at before the rest is kept.
const HEAD: usize = 4096;
/// Bytes read at a time; blocks of zeros become holes in the file, as they mostly were in the original.
pub(crate) const BLOCK: usize = 64 << 10;
/// Bytes between two looks at the space that is left.
const BETWEEN_LOOKS: u64 = 64 << 20;
/// Bytes of the disk that are left to the other programs of the machine: the one that hangs may need them.
const RESERVE: u64 = 32 << 20;

impl Dump {
    /// Opens a dump that is read from a stream, packed or not: a pipe, or a file inside an archive.
    ///
    /// It is kept in a file without a name in the system's folder for temporary files (`TMPDIR` where that is set), up
    /// to 32 MiB below the free space there. What does not begin like a dump is refused before it is kept.
    ///
    /// # Errors
    /// As [`Dump::open`], and when the folder has no room.
    pub fn from_reader(mut from: impl Read, options: &OpenOptions) -> Result<Self, OpenError> {
        let mut head = vec![0; HEAD];
        let got = fill(&mut from, &mut head).map_err(OpenError::Stream)?;
        head.truncate(got);
        match sniff::looks(&head) {
            Looks::ElfCore | Looks::Minidump | Looks::Compressed(..) => {}
            Looks::Empty => return Err(OpenError::NothingCame),
            other => return Err(OpenError::NotADump(other)),
        }
        let folder = std::env::temp_dir();
        let mut spool = Spool::new(&folder)?;
        spool.add(&head)?;
        let mut block = vec![0; BLOCK];
        loop {
            let got = fill(&mut from, &mut block).map_err(OpenError::Stream)?;
            spool.add(block.get(..got).unwrap_or_default())?;
            let is_ended = || options.budget.leaves("blocks of the stream", || None);
            if got < block.len() || is_ended() {
                return Self::from_backing(spool.finish()?, options);
            }
        }
    }
}

/// Reads until `into` is full or the stream ends.
fn fill(from: &mut impl Read, into: &mut [u8]) -> io::Result<usize> {
    let mut got = 0_usize;
    while let Some(rest) = into.get_mut(got..).filter(|r| !r.is_empty()) {
        match from.read(rest) {
            Ok(0) => break,
            Ok(more) => got = got.saturating_add(more),
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(got)
}

/// A file without a name that grows.
pub(crate) struct Spool<'f> {
    folder: &'f Path,
    file: File,
    len: u64,
    /// Bytes that may be written before the free space is looked at again.
    room: u64,
}

impl<'f> Spool<'f> {
    pub(crate) fn new(folder: &'f Path) -> Result<Self, OpenError> {
        let file = tempfile::tempfile_in(folder).map_err(|e| no_room(folder, 0, e))?;
        Ok(Self {
            folder,
            file,
            len: 0,
            room: 0,
        })
    }

    pub(crate) fn add(&mut self, bytes: &[u8]) -> Result<(), OpenError> {
        let len = bytes.len() as u64;
        let written = if bytes.iter().all(|b| *b == 0) {
            self.file
                .seek(SeekFrom::Current(bytes.len() as i64))
                .map(drop)
        } else {
            self.take_room(len)
                .and_then(|()| self.file.write_all(bytes))
        };
        written.map_err(|e| no_room(self.folder, self.len, e))?;
        self.len = self.len.saturating_add(len);
        Ok(())
    }

    /// Makes sure that so many bytes can be written and the reserve stays.
    fn take_room(&mut self, len: u64) -> io::Result<()> {
        if self.room < len {
            // a folder that does not tell its space has to show it by writing
            let free = fs4::available_space(self.folder).unwrap_or(u64::MAX);
            self.room = free.saturating_sub(RESERVE).min(BETWEEN_LOOKS);
        }
        match self.room.checked_sub(len) {
            Some(rest) => {
                self.room = rest;
                Ok(())
            }
            None => Err(io::ErrorKind::StorageFull.into()),
        }
    }

    /// Bytes so far.
    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    pub(crate) fn finish(self) -> Result<Backing, OpenError> {
        self.file
            .set_len(self.len)
            .and_then(|()| Backing::map(&self.file))
            .map_err(|e| no_room(self.folder, self.len, e))
    }
}

fn no_room(folder: &Path, kept: u64, source: io::Error) -> OpenError {
    OpenError::NoRoom {
        folder: folder.to_path_buf(),
        kept,
        source,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_that_takes_nothing_is_named_with_what_to_do() {
        let folder = std::env::temp_dir().join("no/such/folder");
        let error = Spool::new(&folder).map(drop).unwrap_err();
        assert!(error.to_string().contains("no/such/folder"), "{error}");
        assert!(error.remedy().contains("TMPDIR"));
    }

    #[test]
    fn writing_stops_before_the_disk_is_full() {
        let folder = std::env::temp_dir();
        let mut spool = Spool::new(&folder).unwrap();
        spool.add(&[1; 100]).unwrap();
        assert!(spool.room < BETWEEN_LOOKS);
        // as if a look had found the reserve and no more
        let free = fs4::available_space(&folder).unwrap();
        let refused = spool.take_room(free.saturating_add(1)).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::StorageFull);
    }
}
