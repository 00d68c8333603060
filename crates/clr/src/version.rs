//! Which version of the runtime this is, and who says so.

use asynctriage_dump::Memory;
use asynctriage_image::elf::ElfImage;
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

    /// From the folder that a shared runtime is installed in: `.../Microsoft.NETCore.App/10.0.15/libcoreclr.so`.
    #[must_use]
    pub fn from_path(path: &str) -> Option<Self> {
        Self::parse(path.rsplit('/').nth(1)?)
    }
}

/// One witness of the version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VersionSource {
    /// What it says.
    pub version: Version,
    /// Who says it.
    pub from: &'static str,
}

/// All witnesses that can be read without knowing the version, the best first.
pub(crate) fn find(
    memory: &dyn Memory,
    image: &ElfImage,
    path: Option<&str>,
) -> (Option<Version>, Vec<VersionSource>) {
    let text = asynctriage_image::version_text(memory, image)
        .and_then(|t| Version::parse(&t))
        .map(|version| VersionSource {
            version,
            from: "text in libcoreclr",
        });
    let path = path
        .and_then(Version::from_path)
        .map(|version| VersionSource {
            version,
            from: "path of the runtime",
        });
    let sources: Vec<_> = text.into_iter().chain(path).collect();
    (sources.first().map(|s| s.version), sources)
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
    }
}
