//! The bytes of the dump file, wherever they live.

use std::fs::{self, File};
use std::io;
use std::ops::Deref;
use std::path::Path;

use memmap2::Mmap;

use crate::OpenError;

/// The whole dump, mapped from the file or held in memory.
#[derive(Debug)]
pub(crate) enum Backing {
    /// The mapped file.
    Mapped(Mmap),
    /// Handed over by the caller.
    Owned(Vec<u8>),
}

impl Backing {
    /// Maps the file at `path`: a plain file with something in it.
    pub(crate) fn open(path: &Path) -> Result<Self, OpenError> {
        let info = fs::metadata(path).map_err(|e| OpenError::from_io(path, e))?;
        if info.is_dir() {
            return Err(OpenError::IsDirectory(path.to_path_buf()));
        }
        if !info.is_file() {
            return Err(OpenError::NotAFile(path.to_path_buf()));
        }
        if info.len() == 0 {
            return Err(OpenError::Empty);
        }
        let file = File::open(path).map_err(|e| OpenError::from_io(path, e))?;
        Self::map(&file).map_err(|e| OpenError::from_io(path, e))
    }

    /// Maps `file`. The dump must not be modified or cut while it is read.
    #[expect(
        unsafe_code,
        reason = "mapping a file is unsafe by nature; this is the only place that does it"
    )]
    pub(crate) fn map(file: &File) -> io::Result<Self> {
        // SAFETY: the mapping is private to this value and read-only, and every range taken from it is checked against
        // the length it was made with. What remains is another process changing or cutting the file meanwhile; that is
        // excluded by the documented contract of `Dump::open`, as with every tool that maps its input.
        unsafe { Mmap::map(file) }.map(Self::Mapped)
    }
}

impl Deref for Backing {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        match self {
            Self::Mapped(map) => map,
            Self::Owned(bytes) => bytes,
        }
    }
}
