//! Other files than dumps: mapped like them, so that the workspace maps files in one place.

use std::path::Path;

use crate::backing::Backing;
use crate::compress::{self, Compression, Content};
use crate::{OpenError, OpenOptions};

/// A whole file in memory, unpacked when it was packed.
#[derive(Debug)]
pub struct PlainFile {
    content: Backing,
    /// The file itself, when its content was unpacked.
    packed: Option<Backing>,
    /// How it was compressed.
    pub compression: Option<Compression>,
}

impl PlainFile {
    /// Maps a file; `.gz` and `.zst` are known by their content and unpacked as far as they go. The file must not be
    /// changed or cut meanwhile.
    ///
    /// # Errors
    /// A file that is not there, may not be read, is empty, cannot be unpacked or is larger than allowed.
    pub fn open(path: &Path, options: &OpenOptions) -> Result<Self, OpenError> {
        let backing = Backing::open(path)?;
        let Some(format) = compress::detect(&backing) else {
            return Ok(Self {
                content: backing,
                packed: None,
                compression: None,
            });
        };
        let (content, compression) = compress::unpack(format, &backing, Content::Any, options)?;
        Ok(Self {
            content,
            packed: Some(backing),
            compression: Some(compression),
        })
    }

    /// Its content.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.content
    }

    /// The file as it lies on the disk: packed when it is.
    #[must_use]
    pub fn on_disk(&self) -> &[u8] {
        self.packed.as_ref().unwrap_or(&self.content)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::StreamEnd;
    use std::fs;
    use std::io::Write;

    fn folder() -> tempfile::TempDir {
        tempfile::tempdir().unwrap()
    }

    #[test]
    fn any_file_is_mapped_and_packed_ones_are_unpacked() {
        let folder = folder();
        let text = "no dump at all\n".repeat(100);
        let plain = folder.path().join("plain");
        fs::write(&plain, &text).unwrap();
        let packed = folder.path().join("packed");
        let mut writer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        writer.write_all(text.as_bytes()).unwrap();
        let bytes = writer.finish().unwrap();
        fs::write(&packed, &bytes).unwrap();
        let cut = folder.path().join("cut");
        fs::write(&cut, &bytes[..bytes.len() - 9]).unwrap();
        let open = |path| PlainFile::open(path, &OpenOptions::default()).unwrap();
        assert_eq!(open(&plain).bytes(), text.as_bytes());
        assert_eq!(open(&plain).on_disk(), text.as_bytes());
        assert_eq!(open(&plain).compression, None);
        assert_eq!(open(&packed).bytes(), text.as_bytes());
        assert_eq!(open(&packed).on_disk(), bytes);
        assert_eq!(open(&cut).compression.unwrap().end, StreamEnd::Cut);
        let small = OpenOptions {
            max_decompressed: 10,
            ..OpenOptions::default()
        };
        let refused = PlainFile::open(&packed, &small).unwrap_err();
        assert!(matches!(refused, OpenError::TooLarge { limit: 10 }));
    }

    #[test]
    fn what_is_no_file_is_refused() {
        let folder = folder();
        let open = |path: &Path| PlainFile::open(path, &OpenOptions::default()).unwrap_err();
        assert!(matches!(open(folder.path()), OpenError::IsDirectory(_)));
        assert!(matches!(
            open(&folder.path().join("no")),
            OpenError::NotFound(_)
        ));
        let empty = folder.path().join("empty");
        fs::write(&empty, "").unwrap();
        assert!(matches!(open(&empty), OpenError::Empty));
    }
}
