//! Finding CoreCLR in a dump and making sure that the layouts fit before anything is believed.

use crate::code::CodeCache;
use crate::core_names::{self, CoreNames};
use crate::error::{Cause, RuntimeError, cut_note};
use crate::fitted::Fitted;
use crate::gap::{Gap, GapKind};
use crate::layout::{Layout, Offsets};
use crate::locate::{Found, locate};
use crate::modules::ModuleCache;
use crate::native::Native;
use crate::threads::Thread;
use crate::types::TypeCache;
use crate::version::{Version, VersionSource};
use asynctriage_dump::{Addr, Arch, Budget, Dump, Memory, Os, StreamEnd};
use rustc_hash::FxHashMap;
use std::fmt;
use std::sync::OnceLock;

/// Addresses of the runtime's own variables and well-known types, all checked by content.
#[derive(Clone, Copy, Debug)]
pub struct Globals {
    /// `g_dacTable` itself.
    pub dac_table: Addr,
    /// The native ThreadStore.
    pub thread_store: Addr,
    /// The GC's data table (GcDacVars).
    pub gc_vars: Addr,
    /// The only AppDomain.
    pub app_domain: Addr,
    /// MethodTable of free space in the heap.
    pub free_mt: Addr,
    /// MethodTable of System.String.
    pub string_mt: Addr,
    /// MethodTable of System.Object.
    pub object_mt: Addr,
    /// Module of System.Private.CoreLib.
    pub core_lib: Addr,
    /// EEClass that all continuation types share (.NET 11); null elsewhere.
    pub continuation_class: Addr,
    /// Top of the tree of code ranges; null when it cannot be read.
    pub code_range_map: Addr,
}

/// A .NET runtime inside a dump: the entry to everything in this crate.
pub struct Runtime<'d> {
    pub(crate) memory: &'d dyn Memory,
    pub(crate) dump: &'d Dump,
    pub(crate) offsets: Offsets,
    layout: Layout,
    /// Addresses that everything starts from.
    pub globals: Globals,
    /// Load address of the runtime's module.
    pub base: Addr,
    /// The version, when anything in the dump tells it.
    pub version: Option<Version>,
    /// How the version was learnt.
    pub version_sources: Vec<VersionSource>,
    /// Path of the runtime's module in the process.
    pub path: Option<String>,
    /// How the layouts were found and checked, a sentence each.
    pub checks: Vec<String>,
    pub(crate) types: TypeCache,
    pub(crate) modules: ModuleCache<'d>,
    pub(crate) code: CodeCache,
    /// Suspension points besides those that come with the tool.
    pub(crate) points: crate::code::PointLists,
    pub(crate) startup_gaps: Vec<Gap>,
    /// The names of CoreLib where its metadata is missing.
    pub(crate) core_names: Option<CoreNames>,
    /// Native images with their unwind tables, read when the first stack is walked.
    pub(crate) native: OnceLock<Native<'d>>,
    /// Places among the dump's threads, by the system's ids.
    pub(crate) snapshots: OnceLock<FxHashMap<u32, usize>>,
    pub(crate) all_threads: OnceLock<(Vec<Thread>, Option<Gap>)>,
}

impl Runtime<'_> {
    /// Names suspension points by these lists, too.
    #[must_use]
    pub fn with_points(mut self, points: crate::code::PointLists) -> Self {
        self.points = points;
        self
    }
}

impl fmt::Debug for Runtime<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Runtime")
            .field("base", &self.base)
            .field("version", &self.version)
            .field("layout", &self.layout.name())
            .finish_non_exhaustive()
    }
}

impl<'d> Runtime<'d> {
    /// Finds the runtime of a dump and checks that its layouts fit.
    ///
    /// # Errors
    /// When there is no runtime, none that is supported, or none that passes the checks.
    pub fn open(dump: &'d Dump) -> Result<Self, RuntimeError> {
        let memory: &dyn Memory = &dump.memory;
        let found = locate(dump)?;
        let (version, version_sources) = crate::version::find(memory, &found);
        let arch = match dump.target.arch {
            Arch::X64 => "x64",
            Arch::Arm64 => "arm64",
        };
        let os = match dump.target.os {
            Os::Linux => "linux",
            Os::Windows => "windows",
        };
        let mut candidates = Layout::built_in(os, arch);
        if candidates.is_empty() {
            return Err(RuntimeError::Unsupported {
                what: format!(".NET on {os}-{arch}"),
            });
        }
        if let Some(v) = &version {
            candidates.retain(|l| l.version() == (v.major, v.minor));
            if candidates.is_empty() {
                return Err(RuntimeError::Unsupported {
                    what: format!(".NET {v}"),
                });
            }
        }
        let mut why = String::from("no layout table fits");
        let mut best: Option<(usize, Self)> = None;
        for layout in candidates.into_iter().rev() {
            let fit = match Fitted::try_new(memory, &found, layout) {
                Ok(fit) => fit,
                Err(e) => {
                    why = e;
                    continue;
                }
            };
            let rt = Self::new(dump, &found, fit, version, version_sources.clone());
            let doubts = rt.doubts();
            if best.as_ref().is_none_or(|(least, _)| doubts.len() < *least) {
                best = Some((doubts.len(), rt.with_doubts(doubts)));
            }
        }
        best.map(|(_, rt)| rt)
            .ok_or_else(|| RuntimeError::Unreadable {
                base: found.image.base(),
                cause: Cause::of_file(dump),
                why: format!("{why}{}", cut_note(dump)),
            })
    }

    /// What contradicts the layouts: a wrong table is to be noticed, not believed. With the version known these are
    /// gaps; without, the table with the fewest is taken.
    fn doubts(&self) -> Vec<Gap> {
        let (threads, counted) = self.threads();
        let doubt = |place: &str, why: String| {
            Gap {
            kind: GapKind::Layouts,
            place: place.into(),
            why,
            remedy: "the dump may be damaged, or of a build whose layouts differ: check the figures with another dump".into(),
        }
        };
        let mut out: Vec<Gap> = counted.cloned().into_iter().collect();
        let known = |id: u32| self.dump.threads.iter().any(|t| t.id == id);
        if !self.dump.threads.is_empty() && !threads.iter().any(|t| known(t.os_id)) {
            out.push(doubt(
                "thread list",
                "no managed thread is a thread of the dump".into(),
            ));
        }
        let core_lib = self.core_lib();
        if let Some(metadata) = core_lib.metadata.as_ref() {
            let (major, _) = self.layout.version();
            let said = metadata.assembly_version().map(|v| u32::from(v.major));
            if let Some(why) = crate::version::core_lib_doubt(&core_lib.name, said, major) {
                out.push(doubt("System.Private.CoreLib", why));
            }
        } else if core_lib.absent.is_none() {
            // otherwise its file is known, and the gap about absent metadata names it
            out.push(doubt(
                "System.Private.CoreLib",
                "its metadata was not found through the module list".into(),
            ));
        }
        out
    }

    fn with_doubts(mut self, doubts: Vec<Gap>) -> Self {
        if doubts.is_empty() && self.core_lib().metadata.is_some() {
            self.checks.push("the thread list has the length that the runtime counts, its threads are those of the dump, CoreLib's metadata says the same version".into());
        }
        self.startup_gaps.extend(doubts);
        if self.version.is_none() {
            self.version = self.version_of_core_lib();
            let source = self.version.map(|version| VersionSource {
                version,
                from: "file version of System.Private.CoreLib",
            });
            self.version_sources.extend(source);
        }
        self.startup_gaps.extend(self.preview());
        self
    }

    /// The version that CoreLib states, where it is one of the layouts in use.
    fn version_of_core_lib(&self) -> Option<Version> {
        let core_lib = self.core_lib();
        let version = Version::from_core_lib(core_lib.metadata.as_ref()?)?;
        ((version.major, version.minor) == self.layout.version()).then_some(version)
    }

    /// What is to be kept in mind of a build before the release: nobody measured its layouts.
    fn preview(&self) -> Option<Gap> {
        let version = self.version.filter(|v| v.preview)?;
        Some(Gap {
            kind: GapKind::Prerelease,
            place: format!(".NET {version}"),
            why: format!(
                "a build before the release: it is read by the layouts of the release ({}), which may differ in what the checks do not cover",
                self.layout.name()
            ),
            remedy:
                "run the released version; figures that matter can be checked with another tool"
                    .into(),
        })
    }

    fn new(
        dump: &'d Dump,
        found: &Found,
        fit: Fitted,
        version: Option<Version>,
        mut sources: Vec<VersionSource>,
    ) -> Self {
        let told = fit.product_version.as_deref().and_then(Version::parse);
        if let Some(v) = told {
            sources.push(VersionSource {
                version: v,
                from: "contract descriptor",
            });
        }
        let mut checks = fit.checks;
        checks.extend(completion_text(dump));
        Self {
            memory: &dump.memory,
            dump,
            offsets: fit.offsets,
            layout: fit.layout,
            globals: fit.globals,
            base: found.image.base(),
            version: version.or(told),
            version_sources: sources,
            path: found.path().map(str::to_owned),
            checks,
            types: TypeCache::default(),
            modules: ModuleCache::default(),
            code: CodeCache::default(),
            points: crate::code::PointLists::default(),
            startup_gaps: [packing(dump), cut(dump), shape(dump)]
                .into_iter()
                .flatten()
                .collect(),
            core_names: None,
            native: OnceLock::new(),
            snapshots: OnceLock::new(),
            all_threads: OnceLock::new(),
        }
        .with_core_names()
    }

    /// Learns the names of CoreLib where its metadata is missing.
    fn with_core_names(mut self) -> Self {
        if self.core_lib().metadata.is_some() {
            return self;
        }
        if let Some(names) = core_names::learn(&self) {
            self.checks
                .push(format!("names of System.Private.CoreLib {}", names.from));
            self.core_names = Some(names);
            // what was read so far was read without names
            self.types = TypeCache::default();
            self.modules = ModuleCache::default();
            self.code = CodeCache::default();
        }
        self
    }

    /// The memory of the process.
    #[must_use]
    pub fn memory(&self) -> &'d dyn Memory {
        self.memory
    }

    /// The dump that the runtime was found in.
    #[must_use]
    pub fn dump(&self) -> &'d Dump {
        self.dump
    }

    /// What reading the dump may take.
    #[must_use]
    pub fn budget(&self) -> &'d Budget {
        &self.dump.budget
    }

    /// What was not looked at because the analysis was ended, so far.
    #[must_use]
    pub fn cut_gaps(&self) -> Vec<Gap> {
        self.budget().cuts().into_iter().map(Gap::of_cut).collect()
    }

    /// The layouts in use.
    #[must_use]
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Gaps known since the runtime was found.
    #[must_use]
    pub fn gaps(&self) -> &[Gap] {
        &self.startup_gaps
    }
}

/// What a packed file's own checks say against it.
fn packing(dump: &Dump) -> Option<Gap> {
    let packed = dump.compression?;
    let why = packed.fault()?.into();
    let remedy = match packed.end {
        StreamEnd::Ended => "give it more time, or unpack the file first".into(),
        _ => format!(
            "test it with `{}` where it was packed, and copy it again; whatever is read from it may be wrong",
            packed.tester()
        ),
    };
    Some(Gap {
        kind: GapKind::PackedFile,
        place: format!("the {} file", packed.format),
        why,
        remedy,
    })
}

/// That the file is cut.
fn cut(dump: &Dump) -> Option<Gap> {
    let lost = dump.truncated?;
    Some(Gap {
        kind: GapKind::CutFile,
        place: "the file".into(),
        why: format!(
            "it ends early: {} bytes in {} regions of memory are missing, and {} entries of the list of regions",
            lost.missing_bytes, lost.regions, lost.lost_headers
        ),
        remedy: "copy it again and compare its size; if the disk filled up while it was written, take another dump".into(),
    })
}

/// What the file's list of memory says against itself.
fn shape(dump: &Dump) -> Option<Gap> {
    dump.contradictions.any().then(|| Gap {
        kind: GapKind::MemoryList,
        place: "the list of what memory the file holds".into(),
        why: format!(
            "it contradicts itself: {}; memory may be missing, or stand at wrong addresses",
            dump.contradictions
        ),
        remedy: "the file is damaged: compare it with the original, or take another dump".into(),
    })
}

/// Which files of this machine fill what the dump lacks.
fn completion_text(dump: &Dump) -> Option<String> {
    let used = &dump.completion.used;
    let first = used.first()?;
    Some(format!(
        "{} files of this machine fill what the dump lacks, such as {}: {}",
        used.len(),
        first.file.display(),
        first.because
    ))
}
