//! Modules whose metadata neither the dump nor a file has: what to bring.

use crate::gap::{Gap, GapKind};
use crate::runtime::Runtime;
use asynctriage_dump::{Addr, ImageStamp, MappedFile};
use std::collections::BTreeSet;
use std::sync::atomic::Ordering;

/// Modules that a gap names.
const MAX_NAMED: usize = 40;

/// A file that would help.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Absent {
    /// Its path in the process.
    path: String,
    /// Where the runtime took the assembly from; single-file applications bundle many in one file.
    assembly: Option<String>,
    /// What tells its builds apart, where the dump says.
    stamp: Option<ImageStamp>,
    /// Whether a file was tried that holds the metadata of another build.
    other_build: bool,
}

impl Absent {
    fn new(file: &MappedFile, assembly: Option<String>, other_build: bool) -> Self {
        Self {
            path: file.path.clone(),
            assembly,
            stamp: file.stamp,
            other_build,
        }
    }

    /// Name of the assembly's file.
    fn file_name(&self) -> &str {
        last_part(self.assembly.as_deref().unwrap_or(&self.path))
    }

    /// The name that its assembly has unless somebody renamed the file.
    pub(crate) fn simple_name(&self) -> String {
        let name = self.file_name();
        let stem = name.rsplit_once('.').map_or(name, |(stem, _)| stem);
        stem.to_owned()
    }

    /// The file with all that it takes to find it: symbol servers know it by stamp and size.
    fn wanted(&self) -> String {
        let stamp = self.stamp.map(|s| {
            let version = s.version.map(|[a, b, c, d]| format!("{a}.{b}.{c}.{d}, "));
            format!(
                " ({}{:08X}{:x})",
                version.unwrap_or_default(),
                s.time_date_stamp,
                s.size_of_image
            )
        });
        let place = if stamp.is_some() {
            last_part(&self.path)
        } else {
            &self.path
        };
        format!("{place}{}", stamp.unwrap_or_default())
    }
}

/// The file's name at the end of a path of any system.
fn last_part(path: &str) -> &str {
    path.rsplit(['/', '\\']).next().unwrap_or(path)
}

impl Runtime<'_> {
    /// Which file has the metadata of a module.
    pub(crate) fn absent(&self, module: Addr, other_build: bool) -> Option<Absent> {
        let bases = self.module_copies(module).into_iter().map(|(base, _)| base);
        let mut files = bases.filter_map(|base| {
            let holds = |f: &&MappedFile| f.start <= base && base < f.end;
            self.dump.files.iter().find(holds)
        });
        let file = files.next()?;
        Some(Absent::new(file, self.assembly_path(module), other_build))
    }

    /// What is not known for want of metadata, and which files have it. Speaks of the modules met so far.
    #[must_use]
    pub fn module_gaps(&self) -> Vec<Gap> {
        let mut gaps = self.absent_gaps();
        gaps.extend(self.unfound_gap());
        gaps.extend(self.bad_names_gap());
        gaps
    }

    fn absent_gaps(&self) -> Vec<Gap> {
        let seen = self.modules_seen();
        let absent: Vec<&Absent> = seen.iter().filter_map(|m| m.absent.as_ref()).collect();
        let Some(first) = absent.first() else {
            return Vec::new();
        };
        let wanted: BTreeSet<String> = absent.iter().map(|a| a.wanted()).collect();
        let names: Vec<&str> = wanted.iter().take(MAX_NAMED).map(String::as_str).collect();
        let more = wanted.len().saturating_sub(names.len());
        let more = if more == 0 {
            String::new()
        } else {
            format!(" and {more} more")
        };
        let tried = if absent.iter().any(|a| a.other_build) {
            "; files of the right name were found, but of another build"
        } else {
            ""
        };
        let lent = self.core_names.as_ref().map_or_else(String::new, |names| {
            format!("; the names of System.Private.CoreLib are {}", names.from)
        });
        vec![Gap {
            kind: GapKind::Metadata,
            place: match absent.len() {
                1 => first.file_name().to_owned(),
                count => format!("{count} modules, such as {}", first.file_name()),
            },
            why: format!(
                "the dump, of kind {}, holds no metadata there{tried}: types are shown as module and token, and what depends on the names of types is missing{lent}",
                self.dump.kind
            ),
            remedy: format!(
                "bring the files, with --module-path for a folder of the runtime and of the application or --sysroot for the root of its file system, or take a full dump: {}{more}",
                names.join(", ")
            ),
        }]
    }

    /// Modules of which not even the file is known.
    fn unfound_gap(&self) -> Option<Gap> {
        let seen = self.modules_seen();
        let mut unfound = seen.iter().filter(|m| {
            m.metadata.is_none() && m.absent.is_none() && m.unnamed.load(Ordering::Relaxed)
        });
        let first = unfound.next()?;
        let count = unfound.count().saturating_add(1);
        Some(Gap {
            kind: GapKind::DamagedMetadata,
            place: match count {
                1 => format!("module {}", first.addr),
                n => format!("{n} modules, such as that at {}", first.addr),
            },
            why: "neither their metadata nor the file that holds it can be found: their types are shown as module and token, and what depends on the names of types is missing".into(),
            remedy: "the dump may be damaged or cut: compare it with the original, or take another one".into(),
        })
    }

    /// Names that are none.
    fn bad_names_gap(&self) -> Option<Gap> {
        let seen = self.modules_seen();
        let bad = seen.iter().filter_map(|m| {
            let count = m.metadata.as_ref()?.bad_names();
            (count > 0).then_some((m, count))
        });
        let bad: Vec<_> = bad.collect();
        let (first, _) = bad.first()?;
        let count = bad.iter().map(|(_, n)| *n).fold(0, u64::saturating_add);
        let first = if first.name.is_empty() {
            format!("module {}", first.addr)
        } else {
            first.name.clone()
        };
        Some(Gap {
            kind: GapKind::DamagedMetadata,
            place: match bad.len() {
                1 => format!("the metadata of {first}"),
                n => format!("the metadata of {n} modules, such as {first}"),
            },
            why: format!(
                "{count} times a name was looked up that is no text: what has it is shown as module and token, and what depends on it is missing"
            ),
            remedy: "memory is damaged: take another dump, or bring the files of the modules with --module-path".into(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_named_so_that_they_can_be_found() {
        let mut absent = Absent {
            path: r"C:\app\Shop.Cart.dll".into(),
            stamp: Some(ImageStamp {
                time_date_stamp: 0x0ABC_DEF1,
                size_of_image: 0x1f000,
                version: Some([1, 2, 3, 4]),
            }),
            assembly: None,
            other_build: false,
        };
        assert_eq!(absent.simple_name(), "Shop.Cart");
        assert_eq!(absent.wanted(), "Shop.Cart.dll (1.2.3.4, 0ABCDEF11f000)");
        absent.path = "/app/Shop.dll".into();
        absent.stamp = None;
        assert_eq!(absent.wanted(), "/app/Shop.dll");
        absent.path = "/app/shop".into();
        absent.assembly = Some("/app/Shop.Cart.dll".into());
        assert_eq!(absent.wanted(), "/app/shop", "the file that bundles it");
        assert_eq!(absent.simple_name(), "Shop.Cart");
    }
}
