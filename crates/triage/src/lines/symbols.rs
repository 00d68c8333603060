//! Symbol files: where they are looked for, and what makes sure that they are those of the module.
//!
//! A file is taken when its identifier is that of the module's debug directory, never for its name.

use super::Wanted;
use asynctriage_dump::HostFile;
use asynctriage_metadata::Source;
use asynctriage_metadata::pdb::{PdbError, PortablePdb, unpack_embedded};
use std::path::PathBuf;

/// Symbols that belong to their module.
pub(super) struct Pdb {
    pdb: PortablePdb<Bytes>,
    /// Where they come from.
    pub(super) from: String,
    /// The file, when they are not embedded in the module.
    pub(super) file: Option<PathBuf>,
}

impl std::ops::Deref for Pdb {
    type Target = PortablePdb<Bytes>;

    fn deref(&self) -> &Self::Target {
        &self.pdb
    }
}

/// A mapped or unpacked symbol file.
pub(super) struct Bytes(HostFile);

impl Source for Bytes {
    fn len(&self) -> u64 {
        Source::len(&*self.0)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> bool {
        Source::read(&*self.0, offset, out)
    }
}

/// Why there are no symbols, and what would help.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Absent {
    pub(super) why: String,
    pub(super) remedy: String,
}

/// Where symbol files are looked for, besides inside and beside their module.
#[derive(Debug, Default)]
pub(super) struct Search {
    /// Folders with symbol files side by side, or laid out as symbol stores are.
    pub(super) folders: Vec<PathBuf>,
}

impl Search {
    pub(super) fn find(&self, wanted: &Wanted) -> Result<Pdb, Absent> {
        let Some(view) = &wanted.code_view else {
            if wanted.is_without {
                return Err(Absent {
                    why: "no lines: its image names no symbol file, because it was built without symbols, or trimmed where they were not at hand".into(),
                    remedy: "publish the program with the symbols of all that it is made of; there is nothing to add to this dump".into(),
                });
            }
            return Err(Absent {
                why: "no lines: neither the dump nor a file given for it holds the debug directory, which says which symbol file belongs to it".into(),
                remedy: format!(
                    "give --module-path DIR with {0}.dll of this very build, and {0}.pdb beside it or in --symbols DIR",
                    wanted.name
                ),
            });
        };
        let mut refused = Vec::new();
        if let Some(packed) = &wanted.embedded {
            match unpack_embedded(packed) {
                Ok(bytes) => match accept(HostFile::from(bytes), &view.guid, "embedded symbols") {
                    Ok(pdb) => return Ok(pdb),
                    Err(why) => refused.push(why),
                },
                Err(error) => refused.push(error.to_string()),
            }
        }
        let name = file_name(&view.path).unwrap_or(&wanted.name);
        for path in self.candidates(name, &view.guid, &wanted.images) {
            let Ok(file) = HostFile::open(&path) else {
                continue;
            };
            match accept(file, &view.guid, &path.display().to_string()) {
                Ok(pdb) => {
                    return Ok(Pdb {
                        file: Some(path),
                        ..pdb
                    });
                }
                Err(why) => refused.push(why),
            }
        }
        let id = hex(&guid_order(&view.guid));
        let why = if refused.is_empty() {
            format!("no lines: its symbols, {name} with the identifier {id}, are not beside it")
        } else {
            format!("no lines: {}", refused.join("; "))
        };
        let form = if view.portable {
            ""
        } else {
            " (a Windows PDB, which is not read: build with DebugType=portable)"
        };
        Err(Absent {
            why,
            remedy: format!("give --symbols DIR with {name} {id}{form}"),
        })
    }

    /// Where the symbols may be, the likely places first.
    fn candidates(&self, name: &str, guid: &[u8; 16], images: &[PathBuf]) -> Vec<PathBuf> {
        let mut out: Vec<PathBuf> = images
            .iter()
            .filter_map(|i| Some(i.parent()?.join(name)))
            .collect();
        // symbol stores: the portable form has FFFFFFFF for the age
        let id = hex(&guid_order(guid));
        let key = format!("{id}FFFFFFFF");
        let small = (name.to_ascii_lowercase(), key.to_ascii_lowercase());
        for folder in &self.folders {
            out.push(folder.join(name));
            out.push(folder.join(name).join(&key).join(name));
            out.push(folder.join(&small.0).join(&small.1).join(&small.0));
        }
        out.dedup();
        out
    }
}

/// The symbols in a file, when they are those of the module.
fn accept(file: HostFile, guid: &[u8; 16], from: &str) -> Result<Pdb, String> {
    match PortablePdb::parse(Bytes(file)) {
        Ok(pdb) if pdb.guid() == *guid => Ok(Pdb {
            pdb,
            from: from.to_owned(),
            file: None,
        }),
        Ok(pdb) => Err(format!(
            "{from} is of another build ({})",
            hex(&guid_order(&pdb.guid()))
        )),
        Err(error @ PdbError::Windows) => Err(format!("{from} is {error}")),
        Err(error) => Err(format!("{from} is no symbol file: {error}")),
    }
}

/// The last part of a path of any system, when it is a plain name.
fn file_name(path: &str) -> Option<&str> {
    path.rsplit(['/', '\\'])
        .next()
        .filter(|n| !n.is_empty() && !matches!(*n, "." | "..") && !n.contains(':'))
}

/// A GUID in the order in which people write it: its first three parts are little endian in files.
fn guid_order(guid: &[u8; 16]) -> [u8; 16] {
    let [a, b, c, d, e, f, g, h, rest @ ..] = *guid;
    let [i, j, k, l, m, n, o, p] = rest;
    [d, c, b, a, f, e, h, g, i, j, k, l, m, n, o, p]
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02X}")).collect()
}

#[cfg(test)]
mod tests;
