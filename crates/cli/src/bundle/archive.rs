//! A bundle as one file. Nothing in it says who made it or when, so that equal bundles are equal files.

use super::Files;
use flate2::Compression;
use flate2::write::GzEncoder;
use ruzstd::encoding::{CompressionLevel, compress_to_vec};
use std::io::{self, Read, Write};
use std::path::Path;

/// Longest archive that is taken apart, after unpacking.
const MAX_BYTES: u64 = 8 << 30;
/// Most files in one.
const MAX_FILES: usize = 10_000;

/// How an archive is packed, by the end of its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Packing {
    Plain,
    Gzip,
    Zstd,
}

impl Packing {
    /// `None` for names that are not of archives.
    pub(crate) fn of(file: &Path) -> Option<Self> {
        let name = file.file_name()?.to_str()?.to_ascii_lowercase();
        let ends = |with: &[&str]| with.iter().any(|e| name.ends_with(e));
        if ends(&[".tar"]) {
            Some(Self::Plain)
        } else if ends(&[".tar.gz", ".tgz"]) {
            Some(Self::Gzip)
        } else if ends(&[".tar.zst", ".tzst"]) {
            Some(Self::Zstd)
        } else {
            None
        }
    }
}

/// One file of many.
pub(super) fn pack(files: &Files, packing: Packing) -> io::Result<Vec<u8>> {
    let plain = tar_of(files)?;
    Ok(match packing {
        Packing::Plain => plain,
        Packing::Gzip => {
            let mut out = GzEncoder::new(Vec::new(), Compression::default());
            out.write_all(&plain)?;
            out.finish()?
        }
        Packing::Zstd => compress_to_vec(plain.as_slice(), CompressionLevel::Fastest),
    })
}

/// The archive before it is packed; the same for equal files.
pub(super) fn tar_of(files: &Files) -> io::Result<Vec<u8>> {
    let mut out = tar::Builder::new(Vec::new());
    for (path, bytes) in files {
        let mut header = tar::Header::new_gnu();
        header.set_size(bytes.len() as u64);
        header.set_mode(0o600);
        out.append_data(&mut header, path, bytes.as_slice())?;
    }
    out.into_inner()
}

/// The files of an archive that was unpacked.
pub(super) fn files_of(plain: &[u8]) -> io::Result<Files> {
    let mut files = Files::new();
    if plain.len() as u64 > MAX_BYTES {
        return Err(io::Error::other("it is too large"));
    }
    for entry in tar::Archive::new(plain).entries()? {
        let mut entry = entry?;
        let path = entry.path()?.to_str().map(str::to_owned);
        let path = path.ok_or_else(|| io::Error::other("a path is no text"))?;
        if !entry.header().entry_type().is_file() {
            return Err(io::Error::other(format!("{path} is no file")));
        }
        let mut bytes = Vec::new();
        entry.read_to_end(&mut bytes)?;
        if files.len() >= MAX_FILES || files.insert(path.clone(), bytes).is_some() {
            return Err(io::Error::other(format!("{path} is one too many")));
        }
    }
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_packed_comes_out_again() {
        let files: Files = [("a/b.txt", "text"), ("c", "")]
            .map(|(path, text)| (path.to_owned(), text.into()))
            .into();
        let plain = tar_of(&files).unwrap();
        assert_eq!(files_of(&plain).unwrap(), files);
        assert_eq!(pack(&files, Packing::Plain).unwrap(), plain);
        let zstd = pack(&files, Packing::Zstd).unwrap();
        let mut unpacked = Vec::new();
        ruzstd::decoding::StreamingDecoder::new(zstd.as_slice())
            .unwrap()
            .read_to_end(&mut unpacked)
            .unwrap();
        assert_eq!(unpacked, plain);
    }

    #[test]
    fn archives_are_known_by_their_names() {
        let of = |name: &str| Packing::of(Path::new(name));
        assert_eq!(of("e.tar"), Some(Packing::Plain));
        assert_eq!(of("E.TAR.GZ"), Some(Packing::Gzip));
        assert_eq!(of("e.tar.zst"), Some(Packing::Zstd));
        assert_eq!(of("evidence/"), None);
    }

    #[test]
    fn links_are_no_files() {
        let mut out = tar::Builder::new(Vec::new());
        let mut header = tar::Header::new_gnu();
        header.set_entry_type(tar::EntryType::Symlink);
        header.set_size(0);
        out.append_link(&mut header, "a", "/etc/passwd").unwrap();
        files_of(&out.into_inner().unwrap()).unwrap_err();
    }
}
