//! What can be read and on what evidence, told by the tables themselves.

use crate::layout::Layout;
use crate::locate;

/// A built-in table: every patch version of its minor version is read with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Supported {
    /// The table's name, as `linux-x64-10.0`.
    pub table: &'static str,
    /// Operating system and processor, as `linux-x64`.
    pub platform: String,
    /// Major and minor version, as `10.0`.
    pub version: String,
    /// Whether processes of this version carry a contract descriptor, whose offsets win over the table's.
    pub describes_itself: bool,
    /// Offsets and indices that the table holds.
    pub offsets: usize,
    /// What they rest on.
    pub evidence: Vec<String>,
}

/// What has to fit before a table is believed, in the order of the checks.
pub const SELF_CHECKS: [&str; 6] = [
    "the MethodTables of Object, String and free space have the sizes and parents that they have in every build; what servicing has moved within g_dacTable is looked for by its content",
    "the GC's data table begins like one: its version, the size of a generation, five generations",
    "the thread list has as many threads as the runtime counts",
    "some of its threads are threads of the dump",
    "the metadata of System.Private.CoreLib says the same major version",
    "every type met has a class that points back to it; heap objects whose type fails this are counted as unreadable",
];

/// All tables, by platform and version.
#[must_use]
pub fn supported() -> Vec<Supported> {
    let mut all: Vec<Layout> = Layout::all().collect();
    all.sort_by_key(|l| (l.platform(), l.version()));
    all.into_iter()
        .map(|layout| {
            let (major, minor) = layout.version();
            Supported {
                table: layout.name(),
                platform: layout.platform(),
                version: format!("{major}.{minor}"),
                describes_itself: major >= FIRST_WITH_DESCRIPTOR,
                offsets: layout.len(),
                evidence: layout.evidence().to_vec(),
            }
        })
        .collect()
}

/// The first major version with a contract descriptor.
const FIRST_WITH_DESCRIPTOR: u32 = 9;

/// What is recognised and refused by its name.
#[must_use]
pub fn refused() -> Vec<String> {
    let mut out: Vec<String> = locate::OTHER_RUNTIMES
        .iter()
        .map(|(_, what)| (*what).to_owned())
        .collect();
    out.dedup();
    out.extend(
        [
            "NativeAOT programs",
            ".NET of a version or platform without a table, such as macOS and 32-bit processes",
            "dumps without a .NET runtime: the program and the number of modules are named",
        ]
        .map(str::to_owned),
    );
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_table_is_listed_with_its_evidence() {
        let all = supported();
        assert_eq!(all.len(), Layout::known().count());
        assert!(
            all.iter()
                .all(|s| s.offsets > 100 && !s.evidence.is_empty())
        );
        let win8 = all.iter().find(|s| s.table == "win-x64-8.0").unwrap();
        assert_eq!(
            (win8.platform.as_str(), win8.describes_itself),
            ("windows-x64", false)
        );
    }

    #[test]
    fn refusals_name_each_runtime_once() {
        let all = refused();
        assert_eq!(all.iter().filter(|r| r.contains("Mono")).count(), 1);
        assert!(all.iter().any(|r| r == ".NET Framework"));
    }
}
