//! Bytes that the dump lacks and files of this machine have: laid under the memory of the process.

use std::fs::{self, File};
use std::io;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::backing::Backing;
use crate::{Addr, Dump};

/// Most parts that are laid under one dump: a hostile list of modules must not cost more memory than an honest one.
const MAX_PARTS: usize = 1 << 20;

/// A file of this machine, mapped; or bytes made from one.
#[derive(Clone, Debug)]
pub struct HostFile(Arc<Backing>);

impl HostFile {
    /// Maps a regular file. It must not be modified or cut while it is in use.
    ///
    /// # Errors
    /// When it is not a regular file or cannot be opened.
    pub fn open(path: &Path) -> io::Result<Self> {
        if !fs::metadata(path)?.is_file() {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "not a regular file",
            ));
        }
        Ok(Self(Arc::new(Backing::map(&File::open(path)?)?)))
    }
}

/// Two are equal when they are one mapping.
impl PartialEq for HostFile {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for HostFile {}

impl From<Vec<u8>> for HostFile {
    fn from(bytes: Vec<u8>) -> Self {
        Self(Arc::new(Backing::Owned(bytes)))
    }
}

impl Deref for HostFile {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

/// Bytes of a file that belong at an address of the process.
#[derive(Clone, Debug)]
pub struct Under {
    /// The first address.
    pub start: Addr,
    /// The file.
    pub file: HostFile,
    /// Where its bytes begin.
    pub offset: u64,
    /// How many there are; clipped to the file.
    pub len: u64,
}

/// Which files of this machine a dump was completed with, and which were turned away.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Completion {
    /// Files in use.
    pub used: Vec<UsedFile>,
    /// Files of the right name that are not the ones of the process.
    pub refused: Vec<RefusedFile>,
}

/// A file in use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UsedFile {
    /// Path of the module in the process.
    pub module: String,
    /// The file on this machine.
    pub file: PathBuf,
    /// What shows that it is the one of the process.
    pub because: String,
    /// Its bytes: more than the parts that are mapped.
    pub contents: HostFile,
}

/// A file that was turned away.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefusedFile {
    /// Path of the module in the process.
    pub module: String,
    /// The file on this machine.
    pub file: PathBuf,
    /// What shows that it is another one.
    pub why: String,
}

impl Dump {
    /// Makes bytes of files readable where the dump has none; what the dump holds is never replaced. Of parts that
    /// overlap the first wins.
    pub fn lay_under(&mut self, mut parts: Vec<Under>, completion: Completion) {
        parts.truncate(MAX_PARTS);
        self.memory.lay_under(parts);
        self.completion.used.extend(completion.used);
        self.completion.refused.extend(completion.refused);
    }
}
