//! Which version of the runtime this is, and who says so.

use crate::locate::{Found, RuntimeImage};
use asynctriage_dump::{Addr, Memory};
use asynctriage_metadata::{AttributeArg, Metadata, Source, Table, Token};
use std::fmt;

/// A runtime version as `10.0.15`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version {
    /// Major version.
    pub major: u32,
    /// Minor version; 0 since .NET 5.
    pub minor: u32,
    /// Patch level.
    pub patch: u32,
    /// Whether the text had a suffix such as `-preview.3`.
    pub preview: bool,
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let suffix = if self.preview { "-preview" } else { "" };
        write!(f, "{}.{}.{}{suffix}", self.major, self.minor, self.patch)
    }
}

impl Version {
    /// Reads `10.0.15` or `11.0.0-rc.1.25451.107`.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (numbers, preview) = match text.split_once('-') {
            Some((n, _)) => (n, true),
            None => (text, false),
        };
        let mut parts = numbers.split('.').map(|p| p.parse::<u32>().ok());
        let version = Self {
            major: parts.next()??,
            minor: parts.next()??,
            patch: parts.next()??,
            preview,
        };
        (version.major < 100 && parts.all(|p| p.is_some())).then_some(version)
    }

    /// From the folder that a shared runtime is installed in: `.../Microsoft.NETCore.App/10.0.15/libcoreclr.so`, with
    /// slashes of either kind.
    #[must_use]
    pub fn from_path(path: &str) -> Option<Self> {
        Self::parse(path.rsplit(['/', '\\']).nth(1)?)
    }

    /// From the version resource of coreclr.dll: 10.0.1526.53008 is 10.0.15, built in 2026.
    #[must_use]
    pub fn from_file_version([major, minor, build, _]: [u16; 4]) -> Option<Self> {
        Self::from_build(major.into(), minor.into(), build.into())
    }

    /// The numbers behind the three module indices of `DotNetRuntimeInfo` (10.0; earlier versions end before them).
    fn from_single_file_info(memory: &dyn Memory, at: Addr) -> Option<Self> {
        let has_version = memory.u32(at + 20)? >= 2;
        has_version.then_some(())?;
        Self::from_build(
            memory.u32(at + 96)?,
            memory.u32(at + 100)?,
            memory.u32(at + 104)?,
        )
    }

    /// What System.Private.CoreLib says of its own file: all that tells the patch in heap dumps of programs that were
    /// published with their runtime (seen in 9.0 and 10.0; trimming keeps it).
    pub(crate) fn from_core_lib<S: Source>(metadata: &Metadata<S>) -> Option<Self> {
        let of_assembly = metadata.custom_attributes(Token::new(Table::Assembly, 1));
        let mut said = of_assembly.filter(|a| a.type_name == FILE_VERSION);
        let args = metadata.attribute_args(&said.next()?)?;
        let Some(AttributeArg::String(Some(text))) = args.first() else {
            return None;
        };
        let mut numbers = text.split('.').map_while(|n| n.parse().ok());
        let version = [
            numbers.next()?,
            numbers.next()?,
            numbers.next()?,
            numbers.next()?,
        ];
        Self::from_file_version(version)
    }

    /// The third number of a build is the patch and, in its last two digits, the year.
    fn from_build(major: u32, minor: u32, build: u32) -> Option<Self> {
        (1..100).contains(&major).then_some(Self {
            major,
            minor,
            patch: build.checked_div(100)?,
            preview: false,
        })
    }
}

/// The attribute of an assembly with the version of its file.
const FILE_VERSION: &str = "System.Reflection.AssemblyFileVersionAttribute";

/// One witness of the version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VersionSource {
    /// What it says.
    pub version: Version,
    /// Who says it.
    pub from: &'static str,
}

/// All witnesses that can be read without knowing the version, the best first.
pub(crate) fn find(memory: &dyn Memory, found: &Found) -> (Option<Version>, Vec<VersionSource>) {
    let text = match &found.image {
        RuntimeImage::Elf(image) => asynctriage_image::version_text(memory, image),
        RuntimeImage::Pe(_) => None,
    };
    let single_file = found.image.single_file_info(memory);
    let info = single_file.and_then(|at| Version::from_single_file_info(memory, at));
    // the program of a single-file application has a version of its own
    let resource = found.file.as_ref().filter(|_| single_file.is_none());
    let resource = resource.and_then(|f| f.stamp?.version);
    let path = found.path();
    let witnesses = [
        (
            text.as_deref().and_then(Version::parse),
            "text in libcoreclr",
        ),
        (
            resource.and_then(Version::from_file_version),
            "version resource of coreclr",
        ),
        (info, "runtime information of the single-file program"),
        (path.and_then(Version::from_path), "path of the runtime"),
    ];
    let sources: Vec<_> = witnesses
        .into_iter()
        .filter_map(|(version, from)| {
            Some(VersionSource {
                version: version?,
                from,
            })
        })
        .collect();
    (sources.first().map(|s| s.version), sources)
}

/// What of CoreLib's metadata does not fit the layouts of a major version.
pub(crate) fn core_lib_doubt(name: &str, said: Option<u32>, major: u32) -> Option<String> {
    match (name, said) {
        ("System.Private.CoreLib", Some(said)) if said != major => Some(format!(
            "its metadata is of version {said}, the layouts are those of {major}"
        )),
        ("System.Private.CoreLib", _) => None,
        ("", _) => Some("the name of its assembly cannot be read".to_owned()),
        _ => Some(format!("the metadata found there is that of {name}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_come_from_paths_and_texts() {
        let v = |t| Version::parse(t).map(|v| v.to_string());
        assert_eq!(v("10.0.15").as_deref(), Some("10.0.15"));
        assert_eq!(
            v("11.0.0-rc.1.25451.107").as_deref(),
            Some("11.0.0-preview")
        );
        assert_eq!(v("lib"), None);
        assert_eq!(v("10.0"), None);
        let path = "/usr/share/dotnet/shared/Microsoft.NETCore.App/8.0.34/libcoreclr.so";
        assert_eq!(Version::from_path(path).map(|v| v.patch), Some(34));
        assert_eq!(Version::from_path("libcoreclr.so"), None);
        let path = r"C:\Program Files\dotnet\shared\Microsoft.NETCore.App\9.0.22\coreclr.dll";
        assert_eq!(Version::from_path(path).map(|v| v.patch), Some(22));
    }

    #[test]
    fn versions_come_from_builds() {
        let v = |n| Version::from_file_version(n).map(|v| v.to_string());
        assert_eq!(v([10, 0, 1526, 53008]).as_deref(), Some("10.0.15"));
        assert_eq!(v([8, 0, 424, 16909]).as_deref(), Some("8.0.4"));
        assert_eq!(v([0, 0, 0, 0]), None);
    }

    #[test]
    fn core_lib_is_doubted_in_words() {
        let name = "System.Private.CoreLib";
        assert_eq!(core_lib_doubt(name, Some(10), 10), None);
        assert_eq!(core_lib_doubt(name, None, 10), None);
        let doubt = |name, said| core_lib_doubt(name, said, 10).unwrap();
        assert_eq!(
            doubt(name, Some(9)),
            "its metadata is of version 9, the layouts are those of 10"
        );
        assert_eq!(
            doubt("", Some(10)),
            "the name of its assembly cannot be read"
        );
        assert_eq!(
            doubt("Shop", None),
            "the metadata found there is that of Shop"
        );
    }
}
