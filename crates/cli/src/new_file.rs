//! New files: what is in a dump is in a report, so each is for its user alone, whole or not there, and never written
//! through a link or into a pipe.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::Path;
use tempfile::{Builder, NamedTempFile};

/// What is at a path before it is written to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Present {
    Nothing,
    File,
    Folder,
    /// A symbolic link, wherever it leads.
    Link,
    /// A character device such as `/dev/null`.
    Device,
    /// A pipe, a socket or a block device: opening it could wait for ever, or do harm.
    Other,
}

/// What is at `path`, without following a link or opening anything.
pub(crate) fn present(path: &Path) -> Present {
    match fs::symlink_metadata(path) {
        Err(_) => Present::Nothing,
        Ok(there) if there.is_symlink() => Present::Link,
        Ok(there) if there.is_dir() => Present::Folder,
        Ok(there) if there.is_file() => Present::File,
        Ok(there) if is_character_device(&there) => Present::Device,
        Ok(_) => Present::Other,
    }
}

/// Whether a file that is there is replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Existing {
    Keep,
    Replace,
}

/// Writes a file for its user alone. Until all of it is written it has another name in the same folder, so what has this
/// name is whole at any time.
pub(crate) fn write(
    path: &Path,
    existing: Existing,
    fill: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> io::Result<()> {
    match present(path) {
        Present::Device => return fill(&mut open_device(path)?),
        Present::Nothing => {}
        Present::File if existing == Existing::Replace => {}
        Present::File => return Err(io::ErrorKind::AlreadyExists.into()),
        Present::Folder => return Err(io::ErrorKind::IsADirectory.into()),
        Present::Link | Present::Other => {
            return Err(io::Error::other("neither a new nor a regular file"));
        }
    }
    let mut out = BufWriter::new(beside(path)?);
    fill(&mut out)?;
    let file = out.into_inner().map_err(io::IntoInnerError::into_error)?;
    file.as_file().sync_all()?;
    let named = match existing {
        Existing::Keep => file.persist_noclobber(path),
        Existing::Replace => file.persist(path),
    };
    named.map(drop).map_err(|e| e.error)
}

/// An empty file for its user alone that did not exist. It has its name from the start: a recording that breaks off is
/// still worth something.
pub(crate) fn create(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

/// A file in the same folder that is removed unless it gets its name; its mode is 0600.
fn beside(path: &Path) -> io::Result<NamedTempFile> {
    let folder = path.parent().filter(|p| !p.as_os_str().is_empty());
    Builder::new()
        .prefix(".asynctriage-")
        .suffix(".tmp")
        .tempfile_in(folder.unwrap_or(Path::new(".")))
}

#[cfg(unix)]
fn is_character_device(there: &fs::Metadata) -> bool {
    use std::os::unix::fs::FileTypeExt;
    there.file_type().is_char_device()
}

#[cfg(not(unix))]
fn is_character_device(_: &fs::Metadata) -> bool {
    false
}

/// Opens what was a device a moment ago; what has taken its place since is neither followed nor waited for.
fn open_device(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true);
    #[cfg(unix)]
    {
        use rustix::fs::OFlags;
        let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
        let flags = i32::try_from(flags.bits()).unwrap_or_default();
        std::os::unix::fs::OpenOptionsExt::custom_flags(&mut options, flags);
    }
    options.open(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(out: &mut dyn Write) -> io::Result<()> {
        out.write_all(b"new")
    }

    #[test]
    fn a_file_is_kept_or_replaced_whole() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("report");
        write(&file, Existing::Keep, text).unwrap();
        let kept = write(&file, Existing::Keep, text).unwrap_err();
        assert_eq!(kept.kind(), io::ErrorKind::AlreadyExists);
        fs::write(&file, "old").unwrap();
        let failing = |out: &mut dyn Write| text(out).and(Err(io::ErrorKind::StorageFull.into()));
        write(&file, Existing::Replace, failing).unwrap_err();
        assert_eq!(fs::read(&file).unwrap(), b"old");
        write(&file, Existing::Replace, text).unwrap();
        assert_eq!(fs::read(&file).unwrap(), b"new");
        let left: Vec<_> = fs::read_dir(folder.path()).unwrap().collect();
        assert_eq!(left.len(), 1, "{left:?}");
    }

    #[cfg(unix)]
    #[test]
    fn it_is_for_its_user_alone() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let mode = |file: &Path| fs::metadata(file).unwrap().permissions().mode() & 0o777;
        let (report, recording) = (folder.path().join("r"), folder.path().join("n"));
        write(&report, Existing::Keep, text).unwrap();
        drop(create(&recording).unwrap());
        assert_eq!((mode(&report), mode(&recording)), (0o600, 0o600));
        // a file that was open to others is not after it was replaced
        fs::set_permissions(&report, fs::Permissions::from_mode(0o644)).unwrap();
        write(&report, Existing::Replace, text).unwrap();
        assert_eq!(mode(&report), 0o600);
        let again = create(&recording).unwrap_err();
        assert_eq!(again.kind(), io::ErrorKind::AlreadyExists);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn links_are_not_followed_and_pipes_not_opened() {
        let folder = tempfile::tempdir().unwrap();
        let (target, link) = (folder.path().join("target"), folder.path().join("link"));
        fs::write(&target, "old").unwrap();
        std::os::unix::fs::symlink(&target, &link).unwrap();
        let dangling = folder.path().join("dangling");
        std::os::unix::fs::symlink(folder.path().join("none"), &dangling).unwrap();
        let pipe = folder.path().join("pipe");
        let mode = rustix::fs::Mode::from_raw_mode(0o600);
        rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, mode).unwrap();
        for path in [&link, &dangling, &pipe] {
            for existing in [Existing::Keep, Existing::Replace] {
                write(path, existing, text).unwrap_err();
            }
            create(path).unwrap_err();
        }
        assert_eq!(fs::read(&target).unwrap(), b"old");
        assert!(!folder.path().join("none").exists());
        // what took the place of a device between two looks
        open_device(&pipe).unwrap_err();
        open_device(&link).unwrap_err();
        write(Path::new("/dev/null"), Existing::Keep, text).unwrap();
    }
}
