//! Archives that are the same, byte for byte, whenever and wherever they are made.

use anyhow::Result;
use flate2::{Compression, GzBuilder};

/// A file of an archive.
pub(super) struct Entry {
    name: String,
    bytes: Vec<u8>,
    mode: u32,
}

impl Entry {
    pub(super) fn program(name: impl Into<String>, bytes: Vec<u8>) -> Self {
        Self {
            name: name.into(),
            bytes,
            mode: 0o755,
        }
    }

    pub(super) fn text(name: impl Into<String>, bytes: Vec<u8>) -> Self {
        Self {
            name: name.into(),
            bytes,
            mode: 0o644,
        }
    }
}

/// A tar of all of them under the folder `top`, gzipped: Windows unpacks it as well (since 10, `tar -xf`).
pub(super) fn pack(top: &str, mut entries: Vec<Entry>) -> Result<Vec<u8>> {
    entries.sort_by(|a, b| a.name.cmp(&b.name));
    // no name and no time in the header
    let gzip = GzBuilder::new().write(Vec::new(), Compression::best());
    let mut tar = tar::Builder::new(gzip);
    for entry in entries {
        let mut header = tar::Header::new_gnu();
        header.set_size(u64::try_from(entry.bytes.len())?);
        header.set_mode(entry.mode);
        header.set_mtime(0);
        tar.append_data(
            &mut header,
            format!("{top}/{}", entry.name),
            entry.bytes.as_slice(),
        )?;
    }
    Ok(tar.into_inner()?.finish()?)
}

#[cfg(test)]
impl Entry {
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn holds(&self, what: &[u8]) -> bool {
        self.bytes.windows(what.len()).any(|w| w == what)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read as _;

    #[test]
    fn the_order_of_the_files_does_not_matter() {
        let a = || Entry::program("a", b"one".to_vec());
        let b = || Entry::text("b/c", b"two".to_vec());
        let packed = pack("top", vec![a(), b()]).unwrap();
        assert_eq!(packed, pack("top", vec![b(), a()]).unwrap());

        let mut archive = tar::Archive::new(flate2::read::GzDecoder::new(packed.as_slice()));
        let mut found = Vec::new();
        for entry in archive.entries().unwrap() {
            let mut entry = entry.unwrap();
            let mut text = String::new();
            entry.read_to_string(&mut text).unwrap();
            let name = entry.path().unwrap().display().to_string();
            found.push((name, entry.header().mode().unwrap(), text));
        }
        let expected = [("top/a", 0o755, "one"), ("top/b/c", 0o644, "two")];
        assert_eq!(found, expected.map(|(n, m, t)| (n.into(), m, t.into())));
    }
}
