//! Which module of the process is the runtime, and what is there instead when none is.

use crate::anchor;
use crate::error::{Cause, RuntimeError, cut_note};
use crate::layout::Layout;
use crate::version::Version;
use asynctriage_dump::{Addr, Dump, MappedFile, Memory, Os};
use asynctriage_image::elf::ElfImage;
use asynctriage_image::pe::{PeImage, PeLayout};

/// Exported by CoreCLR from .NET 5 on: an array of pointers to the runtime's variables.
const DAC_TABLE: &str = "g_dacTable";
/// Exported from .NET 9 on.
const DESCRIPTOR: &str = "DotNetRuntimeContractDescriptor";
/// Exported by the host of a single-file application, which is the runtime then.
const SINGLE_FILE: &str = "DotNetRuntimeInfo";
/// Key of the program's entry point in the auxiliary vector.
const AT_ENTRY: u64 = 9;

/// The runtime's module as an image.
#[derive(Clone, Debug)]
pub(crate) enum RuntimeImage {
    Elf(ElfImage),
    Pe(PeImage),
}

impl RuntimeImage {
    /// Address of the first byte.
    pub(crate) fn base(&self) -> Addr {
        match self {
            Self::Elf(image) => image.base,
            Self::Pe(image) => image.base,
        }
    }

    /// Bytes that it takes in memory.
    fn size(&self) -> u64 {
        match self {
            Self::Elf(image) => image.size(),
            Self::Pe(image) => image.size_of_image.into(),
        }
    }

    /// Where an exported variable is.
    pub(crate) fn symbol(&self, memory: &dyn Memory, name: &str) -> Option<Addr> {
        match self {
            Self::Elf(image) => image.symbol(memory, name),
            Self::Pe(image) => image.export(memory, name),
        }
    }

    /// The record that the host of a single-file application carries.
    pub(crate) fn single_file_info(&self, memory: &dyn Memory) -> Option<Addr> {
        self.symbol(memory, SINGLE_FILE)
    }
}

/// Where `g_dacTable` is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DacTablePlace {
    /// The module exports it.
    Exported(Addr),
    /// Only its entry for the GC's data table is known; the index of that entry depends on the version.
    ByGcEntry(Addr),
}

impl DacTablePlace {
    /// The first entry, under the layouts of one version.
    pub(crate) fn start(self, layout: &Layout) -> Option<Addr> {
        match self {
            Self::Exported(at) => Some(at),
            Self::ByGcEntry(entry) => {
                let index = layout.dac_index("GcDacVars")?;
                Some(entry.back(index.saturating_mul(8)))
            }
        }
    }
}

/// The module that is the runtime.
#[derive(Clone, Debug)]
pub(crate) struct Found {
    pub(crate) image: RuntimeImage,
    pub(crate) dac_table: DacTablePlace,
    /// Header of the contract descriptor, when the version has one and the dump shows it.
    pub(crate) descriptor: Option<Addr>,
    /// What the dump says of the file.
    pub(crate) file: Option<MappedFile>,
}

impl Found {
    /// Path of the module in the process.
    pub(crate) fn path(&self) -> Option<&str> {
        self.file.as_ref().map(|f| f.path.as_str())
    }
}

/// Finds the runtime of a dump: by name first, then the program itself, which single-file applications carry it in.
pub(crate) fn locate(dump: &Dump) -> Result<Found, RuntimeError> {
    let memory: &dyn Memory = &dump.memory;
    let budget = anchor::Budget::default();
    let exporting = candidates(dump).find_map(|(base, _)| {
        let image = image(dump, base)?;
        let at = image.symbol(memory, DAC_TABLE)?;
        Some((image, DacTablePlace::Exported(at)))
    });
    // a kernel core lacks the table of symbols, and reduced minidumps may; a program may be its own runtime
    let by_content = || {
        let named = candidates(dump).filter(|(_, named)| *named);
        let bases = named.map(|(base, _)| base);
        let mut bases = bases.chain(program(dump).map(|f| f.start));
        bases.find_map(|base| {
            let image = image(dump, base)?;
            let entry = anchor::gc_entry(&dump.memory, base, image.size(), &budget)?;
            Some((image, DacTablePlace::ByGcEntry(entry)))
        })
    };
    let (image, dac_table) = exporting
        .or_else(by_content)
        .ok_or_else(|| not_found(dump, &budget))?;
    let base = image.base();
    let holds = |f: &&MappedFile| f.start <= base && base < f.end;
    Ok(Found {
        dac_table,
        descriptor: image
            .symbol(memory, DESCRIPTOR)
            .or_else(|| anchor::descriptor(&dump.memory, base, image.size())),
        file: dump.files.iter().find(holds).cloned(),
        image,
    })
}

/// Where images begin that may be the runtime, the likely ones first, and whether they are called like it.
fn candidates(dump: &Dump) -> impl Iterator<Item = (Addr, bool)> {
    let said = dump
        .process
        .runtime_base
        .into_iter()
        .map(|base| (base, true));
    let whole = || dump.files.iter().filter(|f| f.file_offset == 0);
    let named = whole().filter(|f| is_runtime(f)).map(|f| (f.start, true));
    let windows = dump.target.os == Os::Windows;
    let other = whole().filter(move |f| !is_runtime(f) && f.has_extension(".exe") == windows);
    let other = other
        .filter(|f| !f.has_extension(".dll"))
        .map(|f| (f.start, false));
    said.chain(named).chain(other)
}

fn is_runtime(file: &MappedFile) -> bool {
    let name = file.file_name();
    name == "libcoreclr.so" || name.eq_ignore_ascii_case("coreclr.dll")
}

fn image(dump: &Dump, base: Addr) -> Option<RuntimeImage> {
    let memory: &dyn Memory = &dump.memory;
    match dump.target.os {
        Os::Linux => ElfImage::parse(memory, base).ok().map(RuntimeImage::Elf),
        Os::Windows => PeImage::parse(memory, base, PeLayout::Loaded)
            .ok()
            .map(RuntimeImage::Pe),
    }
}

/// Runtimes that are not read, by the begin of the file name of their module, and what to call them.
pub(crate) const OTHER_RUNTIMES: [(&str, &str); 6] = [
    ("libmonosgen", "the Mono runtime"),
    ("libmono-", "the Mono runtime"),
    ("mono-sgen", "the Mono runtime"),
    ("mono-2.0", "the Mono runtime"),
    ("clr.dll", ".NET Framework"),
    ("mscorwks.dll", ".NET Framework"),
];

/// Names what is there instead of a CoreCLR that can be read.
fn not_found(dump: &Dump, budget: &anchor::Budget) -> RuntimeError {
    if let Some(core) = dump.files.iter().find(|f| is_runtime(f)) {
        return unreadable(dump, core, budget);
    }
    if let Some(what) = other_runtime(&dump.files) {
        return RuntimeError::Unsupported { what };
    }
    if let Some(file) = native_aot(dump) {
        return RuntimeError::Unsupported {
            what: format!("a NativeAOT program ({})", file.path),
        };
    }
    if let Some((program, sign)) = single_file(dump, budget) {
        return RuntimeError::SingleFile {
            program: program.path.clone(),
            sign,
            kind: dump.kind.to_string(),
        };
    }
    let hint = dump.files.first().map(|f| {
        format!(
            ": {} modules, none of them CoreCLR; the program is {}",
            dump.files.len(),
            f.path
        )
    });
    RuntimeError::NotFound {
        hint: hint.unwrap_or_default(),
    }
}

/// A runtime that is not CoreCLR, with its version and path.
fn other_runtime(files: &[MappedFile]) -> Option<String> {
    files.iter().find_map(|file| {
        let name = file.file_name().to_ascii_lowercase();
        let (_, what) = OTHER_RUNTIMES
            .iter()
            .find(|(begin, _)| name.starts_with(begin))?;
        let version = file.stamp.and_then(|s| s.version);
        let version = version.map_or_else(String::new, |[a, b, c, d]| format!(" {a}.{b}.{c}.{d}"));
        Some(format!("{what}{version} ({})", file.path))
    })
}

/// CoreCLR is there by name and cannot be read: because of its version, because it is Mono under the same name, or
/// because the dump lacks its variables.
fn unreadable(dump: &Dump, core: &MappedFile, budget: &anchor::Budget) -> RuntimeError {
    let memory: &dyn Memory = &dump.memory;
    let version = Version::from_path(&core.path)
        .or_else(|| core.stamp?.version.and_then(Version::from_file_version));
    if let Some(v) = version.filter(|v| !Layout::knows(v.major, v.minor)) {
        return RuntimeError::Unsupported {
            what: format!(".NET {v}"),
        };
    }
    let is_mono =
        image(dump, core.start).is_some_and(|i| i.symbol(memory, "mono_get_root_domain").is_some());
    if is_mono {
        return RuntimeError::Unsupported {
            what: format!("the Mono runtime ({})", core.path),
        };
    }
    let given_up = if budget.is_spent() {
        ", as far as it was searched: too much in it looks alike"
    } else {
        ""
    };
    RuntimeError::Unreadable {
        base: core.start,
        cause: Cause::of_dump(dump),
        why: format!(
            "the dump, of kind {}, holds neither its symbol {DAC_TABLE} nor what it points to{given_up}{}",
            dump.kind,
            cut_note(dump)
        ),
    }
}

/// A program that seems to be its own runtime although the dump lacks its tables, and what shows it. Seen in mini dumps
/// that createdump writes of single-file applications when it is not told that they are (8.0, 9.0, 10.0).
fn single_file<'d>(
    dump: &'d Dump,
    budget: &anchor::Budget,
) -> Option<(&'d MappedFile, &'static str)> {
    let program = program(dump)?;
    let image = image(dump, program.start)?;
    if anchor::has_gc_table(&dump.memory, program.start, image.size(), budget) {
        return Some((program, "the garbage collector's data table is in it"));
    }
    let RuntimeImage::Elf(elf) = image else {
        return None;
    };
    let mut parts = dump.files.iter().filter(|f| f.path == program.path);
    let bundled = parts.any(|f| f.file_offset >= elf.file_size());
    bundled.then_some((
        program,
        "it has parts of its own file mapped that are none of its segments",
    ))
}

/// Where the program begins.
fn program(dump: &Dump) -> Option<&MappedFile> {
    let begins = || dump.files.iter().filter(|f| f.file_offset == 0);
    if dump.target.os == Os::Windows {
        return begins().find(|f| f.has_extension(".exe"));
    }
    let entry = Addr(dump.process.auxiliary(AT_ENTRY)?);
    let mut files = dump.files.iter();
    let entered = files.find(|f| f.start <= entry && entry < f.end)?;
    begins().find(|f| f.path == entered.path)
}

fn native_aot(dump: &Dump) -> Option<&MappedFile> {
    let memory: &dyn Memory = &dump.memory;
    let whole = dump.files.iter().filter(|f| f.file_offset == 0);
    whole
        .filter_map(|f| Some((f, image(dump, f.start)?)))
        .find(|(_, i)| i.symbol(memory, "DotNetRuntimeDebugHeader").is_some())
        .map(|(f, _)| f)
}

#[cfg(test)]
mod tests {
    use super::*;
    use asynctriage_dump::ImageStamp;

    fn file(path: &str, version: Option<[u16; 4]>) -> MappedFile {
        MappedFile {
            path: path.into(),
            start: Addr(0x1000),
            end: Addr(0x2000),
            file_offset: 0,
            stamp: version.map(|version| ImageStamp {
                time_date_stamp: 1,
                size_of_image: 0x1000,
                version: Some(version),
            }),
        }
    }

    #[test]
    fn other_runtimes_are_refused_by_name() {
        let framework = file(
            r"C:\Windows\Microsoft.NET\Framework64\v4.0.30319\clr.dll",
            Some([4, 8, 9310, 0]),
        );
        assert_eq!(
            other_runtime(&[file(r"C:\app\App.exe", None), framework]).as_deref(),
            Some(
                r".NET Framework 4.8.9310.0 (C:\Windows\Microsoft.NET\Framework64\v4.0.30319\clr.dll)"
            )
        );
        let mono = file("/usr/lib/libmonosgen-2.0.so.1", None);
        assert_eq!(
            other_runtime(&[mono]).as_deref(),
            Some("the Mono runtime (/usr/lib/libmonosgen-2.0.so.1)")
        );
        assert_eq!(other_runtime(&[file("/usr/bin/python3", None)]), None);
    }

    #[test]
    fn the_runtime_is_known_by_the_whole_name_of_its_file() {
        let named = |path| is_runtime(&file(path, None));
        assert!(named("/usr/share/dotnet/libcoreclr.so") && named(r"D:\App\CoreCLR.DLL"));
        assert!(!named("/app/libcoreclr.so.dbg") && !named(r"C:\x\mycoreclr.dll"));
    }
}
