//! A dump: one address space, and what is known about the process around it.

use std::path::{Path, PathBuf};

use crate::backing::Backing;
use crate::compress::{self, Compression};
use crate::elf::{Core, Notes, Segments, note_ranges};
use crate::sniff::{self, Looks};
use crate::under::Completion;
use crate::{
    Addr, AddressSpace, Arch, Budget, Container, Contradictions, DumpKind, Memory, OpenError, Os,
    Registers, Target, kind, minidump,
};

/// An opened dump.
#[derive(Debug)]
#[non_exhaustive]
pub struct Dump {
    /// The memory of the process.
    pub memory: AddressSpace,
    /// The file format.
    pub container: Container,
    /// How much of the process the dump holds, told by measurement.
    pub kind: DumpKind,
    /// The machine that the process ran on.
    pub target: Target,
    /// Threads in the order of the dump: the main thread comes first in createdump's, gdb's and in minidumps, the
    /// thread that crashed in the kernel's.
    pub threads: Vec<ThreadSnapshot>,
    /// Files that the process had mapped, in the order of the dump; of a minidump, its modules.
    pub files: Vec<MappedFile>,
    /// Facts about the process.
    pub process: ProcessFacts,
    /// What is missing because the file is cut; `None` when nothing is.
    pub truncated: Option<Truncation>,
    /// What its list of memory says against itself and the file; nothing where the file is cut.
    pub contradictions: Contradictions,
    /// What cannot be read of the notes: threads and mapped files may be missing. Minidumps have none.
    pub broken_notes: BrokenNotes,
    /// How the file was compressed.
    pub compression: Option<Compression>,
    /// Size of the dump in bytes, after unpacking.
    pub file_len: u64,
    /// Files of this machine that were laid under the dump; see [`Dump::lay_under`].
    pub completion: Completion,
    /// The bits of a return address that are the address. On arm64, code that is compiled with pointer authentication
    /// (the C libraries of current distributions) keeps a signature above them in the link register and on the stack.
    pub code_mask: u64,
    /// What reading it may take.
    pub budget: Budget,
    /// See [`OpenOptions::use_paths`].
    use_paths: bool,
}

/// How to open a dump.
#[derive(Clone, Debug)]
pub struct OpenOptions {
    /// Compressed dumps that unpack to more bytes than this are refused.
    pub max_decompressed: u64,
    /// Whether to record which parts of the file are read; see [`AddressSpace::touched`] and [`trim`](crate::trim()).
    pub record_pages: bool,
    /// Whether files of this machine may be opened because the dump names their paths; see [`Dump::host_path`].
    pub use_paths: bool,
    /// What reading the file may take, from unpacking it on.
    pub budget: Budget,
}

impl Default for OpenOptions {
    /// 8 GiB, no record, paths are used, no end.
    fn default() -> Self {
        Self {
            max_decompressed: 8 << 30,
            record_pages: false,
            use_paths: true,
            budget: Budget::new(),
        }
    }
}

/// A thread at the moment of the dump.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThreadSnapshot {
    /// The id that the operating system gave it.
    pub id: u32,
    /// The signal that it was stopped by, as the dump states it; createdump's values mean nothing.
    pub signal: Option<u32>,
    /// Its registers.
    pub registers: Registers,
    /// The name that the system knows it by; minidumps from Windows 10 on.
    pub name: Option<String>,
    /// Its thread environment block (Windows).
    pub teb: Option<Addr>,
}

/// A part of a file that the process had mapped; of a minidump, a whole module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MappedFile {
    /// Path inside the process; the kernel adds ` (deleted)` to the paths of removed files.
    pub path: String,
    /// First address.
    pub start: Addr,
    /// First address above.
    pub end: Addr,
    /// Where the mapped part begins in the file, in bytes.
    pub file_offset: u64,
    /// What tells builds of the file apart, where the dump states it: minidumps do.
    pub stamp: Option<ImageStamp>,
}

impl MappedFile {
    /// The last part of the path, whatever system it comes from.
    #[must_use]
    pub fn file_name(&self) -> &str {
        self.path
            .rsplit(['/', '\\'])
            .next()
            .unwrap_or(self.path.as_str())
    }

    /// Whether the path ends like this, in capitals or not; `extension` begins with the dot.
    #[must_use]
    pub fn has_extension(&self, extension: &str) -> bool {
        let at = self.path.len().checked_sub(extension.len());
        at.and_then(|at| self.path.get(at..))
            .is_some_and(|end| end.eq_ignore_ascii_case(extension))
    }
}

/// What tells two builds of a PE image apart: symbol servers use the first two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ImageStamp {
    /// Time stamp of the header, or the hash that deterministic builds put there.
    pub time_date_stamp: u32,
    /// Bytes that the loaded image takes.
    pub size_of_image: u32,
    /// The four numbers of its version resource.
    pub version: Option<[u16; 4]>,
}

/// The exception that a dump was taken for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExceptionFacts {
    /// Id of the thread that it happened on.
    pub thread: u32,
    /// Code of the system, such as 0xC0000005; managed exceptions are 0xE0434352.
    pub code: u32,
    /// The instruction.
    pub address: Addr,
}

/// What the dump says about the process as a whole.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProcessFacts {
    /// Process id.
    pub pid: Option<u32>,
    /// Name of the program; of an ELF core at most 15 bytes.
    pub command: Option<String>,
    /// The begin of the command line, at most 80 bytes; createdump leaves it out.
    pub arguments: Option<String>,
    /// The signal that the process died of or was stopped by; createdump states it for crashes only (10 and 11 seen).
    pub signal: Option<u32>,
    /// Where the runtime (libcoreclr.so, or a single-file program) is loaded; createdump states it since 7.
    pub runtime_base: Option<Addr>,
    /// The exception that the process died of, where createdump was told.
    pub exception_record: Option<Addr>,
    /// When the dump was taken, in seconds since 1970; minidumps.
    pub taken: Option<u64>,
    /// When the process began, in seconds since 1970; minidumps.
    pub started: Option<u64>,
    /// The operating system by name and version; minidumps.
    pub system: Option<String>,
    /// The exception that the dump was taken for; minidumps of crashes, but not those that createdump writes.
    pub exception: Option<ExceptionFacts>,
    /// The auxiliary vector: pairs of key and value, without the terminator.
    pub auxv: Vec<(u64, u64)>,
}

impl ProcessFacts {
    /// The value of `key` in the auxiliary vector.
    #[must_use]
    pub fn auxiliary(&self, key: u64) -> Option<u64> {
        self.auxv
            .iter()
            .find(|(k, _)| *k == key)
            .map(|(_, value)| *value)
    }
}

/// What a cut file lacks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Truncation {
    /// Bytes of memory that the headers promise and the file does not hold; more are unknown when headers are lost.
    pub missing_bytes: u64,
    /// Regions that lack some or all of their bytes.
    pub regions: usize,
    /// Entries of the list of regions that are lost themselves.
    pub lost_headers: u64,
}

/// Notes of an ELF core that cannot be read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BrokenNotes {
    /// Lists that break off: nothing is known of the notes behind the broken one.
    pub lists: usize,
    /// Notes of threads that are too short for registers.
    pub threads: usize,
    /// Notes of the system that are of no kind it writes.
    pub kinds: usize,
    /// Entries of the list of mapped files without a name, or out of order.
    pub files: usize,
}

/// The highest address that an arm64 process gets without asking for higher ones.
const USER_SPACE: u64 = (1 << 48) - 1;
/// Bytes that are looked at to see what a file is.
const HEAD: usize = 4096;

impl Dump {
    /// Opens the dump at `path`, packed with gzip or zstd or not at all.
    ///
    /// An uncompressed dump is mapped, not read: it must not be modified or cut while it is in use.
    ///
    /// # Errors
    /// Every reason why nothing useful can be read; a cut dump is no error.
    pub fn open(path: &Path, options: &OpenOptions) -> Result<Self, OpenError> {
        Self::from_backing(Backing::open(path)?, options)
    }

    /// Opens a dump that is in memory already, packed or not.
    ///
    /// # Errors
    /// As [`Dump::open`].
    pub fn from_bytes(bytes: Vec<u8>) -> Result<Self, OpenError> {
        Self::from_bytes_with(bytes, &OpenOptions::default())
    }

    /// [`Dump::from_bytes`] with options.
    ///
    /// # Errors
    /// As [`Dump::open`].
    pub fn from_bytes_with(bytes: Vec<u8>, options: &OpenOptions) -> Result<Self, OpenError> {
        Self::from_backing(Backing::Owned(bytes), options)
    }

    /// Where the file at `path` of the process would be on this machine: the one place that decides whether a path that
    /// a dump names is opened.
    ///
    /// `None` when the dump was opened without [`OpenOptions::use_paths`], when the path is not one of this system, and
    /// when opening it would reach for the network: whoever made the dump chose it.
    #[must_use]
    pub fn host_path(&self, path: &str) -> Option<PathBuf> {
        // Windows takes either sign for the other
        let is_remote = path.chars().take_while(|c| matches!(c, '/' | '\\')).count() > 1;
        let local = PathBuf::from(path);
        (self.use_paths && !is_remote && local.is_absolute()).then_some(local)
    }

    pub(crate) fn from_backing(backing: Backing, options: &OpenOptions) -> Result<Self, OpenError> {
        let Some(format) = compress::detect(&backing) else {
            return Self::from_plain(backing, None, options);
        };
        let (unpacked, compression) =
            compress::unpack(format, &backing, compress::Content::Dump, options)?;
        Self::from_plain(unpacked, Some(compression), options)
    }

    fn from_plain(
        backing: Backing,
        compression: Option<Compression>,
        options: &OpenOptions,
    ) -> Result<Self, OpenError> {
        match sniff::looks(backing.get(..HEAD).unwrap_or(&backing)) {
            Looks::ElfCore => Self::from_core(backing, compression, options),
            Looks::Minidump => Self::from_minidump(backing, compression, options),
            Looks::Empty => Err(OpenError::Empty),
            other => Err(OpenError::NotADump(other)),
        }
    }

    fn from_core(
        backing: Backing,
        compression: Option<Compression>,
        options: &OpenOptions,
    ) -> Result<Self, OpenError> {
        let file_len = backing.len() as u64;
        let core = Core::parse(&backing)?;
        let (arch, segments) = (core.arch, Segments::read(&core, file_len));
        let mut notes = Notes::read(
            note_ranges(&core, &backing)
                .into_iter()
                .filter_map(|n| backing.get(n)),
            arch,
        );
        let truncated = (segments.lost != Truncation::default()).then_some(segments.lost);
        let memory = AddressSpace::new(
            backing,
            segments.pieces,
            segments.regions,
            options.record_pages,
        );
        if memory.ranges().next().is_none() {
            return Err(OpenError::NoMemory {
                truncated: truncated.is_some(),
            });
        }
        add_diagnostics_info(&memory, &mut notes.process);
        Ok(Self {
            kind: kind::measure(&memory, &notes),
            code_mask: code_mask(&memory, arch),
            memory,
            container: Container::ElfCore,
            target: Target {
                os: Os::Linux,
                arch,
            },
            threads: notes.threads,
            contradictions: segments.contradictions,
            broken_notes: notes.broken,
            files: notes.files,
            process: notes.process,
            truncated,
            compression,
            file_len,
            completion: Completion::default(),
            budget: options.budget.of_another_file(),
            use_paths: options.use_paths,
        })
    }

    fn from_minidump(
        backing: Backing,
        compression: Option<Compression>,
        options: &OpenOptions,
    ) -> Result<Self, OpenError> {
        let file_len = backing.len() as u64;
        let parts = minidump::read(&backing)?;
        let truncated = (parts.lost != Truncation::default()).then_some(parts.lost);
        let memory = AddressSpace::new(backing, parts.pieces, parts.regions, options.record_pages);
        if memory.ranges().next().is_none() {
            return Err(OpenError::NoMemory {
                truncated: truncated.is_some(),
            });
        }
        Ok(Self {
            code_mask: code_mask(&memory, parts.target.arch),
            memory,
            container: Container::Minidump,
            kind: parts.kind,
            target: parts.target,
            threads: parts.threads,
            files: parts.files,
            process: parts.process,
            contradictions: parts.contradictions,
            broken_notes: BrokenNotes::default(),
            truncated,
            compression,
            file_len,
            completion: Completion::default(),
            budget: options.budget.of_another_file(),
            use_paths: options.use_paths,
        })
    }
}

fn code_mask(memory: &AddressSpace, arch: Arch) -> u64 {
    if arch != Arch::Arm64 {
        return u64::MAX;
    }
    // 48 bits unless the process has asked for more, and then something lies there
    let highest = memory.regions().iter().map(|r| r.end().0).max();
    u64::MAX >> highest.unwrap_or(0).max(USER_SPACE).leading_zeros()
}

/// Where createdump puts a page of its own, which was not memory of the process (x64 and arm64, 8 to 11).
const DIAGNOSTICS_INFO: Addr = Addr(0x7FFF_FFF1_0000);
/// How that page begins.
const DIAGNOSTICS_MAGIC: &[u8] = b"DIAGINFOHEADER\0";

/// Reads createdump's page: version at 16, exception record at 24 and, since version 2, the runtime's base at 32.
fn add_diagnostics_info(memory: &AddressSpace, process: &mut ProcessFacts) {
    let is_there = memory
        .slice(DIAGNOSTICS_INFO, 40)
        .is_some_and(|page| page.starts_with(DIAGNOSTICS_MAGIC));
    if !is_there {
        return;
    }
    let memory: &dyn Memory = memory;
    process.exception_record = memory.ptr(DIAGNOSTICS_INFO + 24).and_then(Addr::non_null);
    if memory
        .u32(DIAGNOSTICS_INFO + 16)
        .is_some_and(|version| version >= 2)
    {
        process.runtime_base = memory.ptr(DIAGNOSTICS_INFO + 32).and_then(Addr::non_null);
    }
}
