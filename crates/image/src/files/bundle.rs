//! Single-file applications: the host, the bundled files behind it, and a list of them.
//!
//! The host of every application of one .NET version is the same, build identifier included, so what is bundled has to be
//! compared as well: assemblies that are not packed are mapped right out of the file, each from where the list says that
//! it begins. Version 6 of the list (8.0 to 10.0).

use asynctriage_dump::MappedFile;
use memchr::memmem::find;
use std::collections::BTreeSet;

/// Stands in each host, right behind the place of the list in the file: the SHA-256 of `.net core bundle\n`.
const SIGNATURE: [u8; 32] = [
    0x8b, 0x12, 0x02, 0xb9, 0x6a, 0x61, 0x20, 0x38, 0x72, 0x7b, 0x93, 0x02, 0x14, 0xd7, 0xa0, 0x32,
    0x13, 0xf5, 0xb9, 0xe6, 0xef, 0xae, 0x33, 0x18, 0xee, 0x3b, 0x2d, 0xce, 0x24, 0xb3, 0x6a, 0xae,
];
/// The version of the list that is read; 2 was .NET 5, which is not.
const VERSION: u32 = 6;
/// Bytes between the identifier of the bundle and its files: place and length of two configuration files, and flags.
const CONFIGURATION: usize = 40;
/// Most files that are believed; the largest application seen has 360.
const MAX_FILES: u32 = 1 << 16;

/// What a file of the bundle takes of the whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Part {
    offset: u64,
    size: u64,
}

/// The list of a bundle.
#[derive(Debug)]
pub(super) struct Bundle {
    /// The files that are not packed; others cannot be mapped.
    plain: Vec<Part>,
}

impl Bundle {
    /// The bundle behind a host of `host_size` bytes; `None` when the file has none, or its list is of another version.
    pub(super) fn of(file: &[u8], host_size: u64) -> Option<Self> {
        let host = file.get(..usize::try_from(host_size).ok()?)?;
        let before = host.get(..find(host, &SIGNATURE)?)?;
        let place = u64::from_le_bytes(*before.last_chunk()?);
        let mut list = Cursor(file.get(usize::try_from(place).ok()?..)?);
        let version = list.u32()?;
        let _minor = list.u32()?;
        let count = list.u32().filter(|c| *c <= MAX_FILES)?;
        (version == VERSION).then_some(())?;
        list.text()?;
        list.take(CONFIGURATION)?;
        let mut plain = Vec::new();
        for _ in 0..count {
            let (offset, size, packed) = (list.u64()?, list.u64()?, list.u64()?);
            list.take(1)?;
            list.text()?;
            if packed == 0 {
                plain.push(Part { offset, size });
            }
        }
        Some(Self { plain })
    }

    /// Whether what the process had mapped of the file behind its host are files of this bundle: from the page on which
    /// one begins, or inside one that is mapped from there, too.
    pub(super) fn has<'m>(
        &self,
        mut mapped: impl Iterator<Item = &'m MappedFile> + Clone,
        page: u64,
    ) -> bool {
        let page_of = |at: u64| Some(at.saturating_sub(at.checked_rem(page)?));
        let starts: BTreeSet<u64> = mapped.clone().map(|m| m.file_offset).collect();
        let used: Vec<(u64, u64)> = self
            .plain
            .iter()
            .filter_map(|part| {
                let end = part.offset.checked_add(part.size)?;
                Some((page_of(part.offset)?, end.checked_next_multiple_of(page)?))
            })
            .filter(|(start, _)| starts.contains(start))
            .collect();
        mapped.all(|m| {
            let len = m.end.since(m.start).unwrap_or(0);
            let end = m.file_offset.saturating_add(len);
            used.iter()
                .any(|(from, to)| *from <= m.file_offset && end <= *to)
        })
    }
}

/// What is left to read.
struct Cursor<'a>(&'a [u8]);

impl<'a> Cursor<'a> {
    fn take(&mut self, len: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(taken)
    }

    fn u32(&mut self) -> Option<u32> {
        Some(u32::from_le_bytes(*self.take(4)?.first_chunk()?))
    }

    fn u64(&mut self) -> Option<u64> {
        Some(u64::from_le_bytes(*self.take(8)?.first_chunk()?))
    }

    /// A text behind its length, which takes one or two bytes of seven bits each, the low ones first.
    fn text(&mut self) -> Option<&'a [u8]> {
        let low = *self.take(1)?.first()?;
        let high = if low & 0x80 == 0 {
            0
        } else {
            *self.take(1)?.first()?
        };
        let len = usize::from(low & 0x7F) | usize::from(high & 0x7F) << 7;
        self.take(len)
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use asynctriage_dump::Addr;
    use proptest::prelude::*;

    const PAGE: u64 = 4096;
    /// Bytes of the host that [`bundle`] makes.
    pub(crate) const HOST: u64 = 0x3000;

    /// A file of a host that begins with `host`, and bundled files of these places and sizes, packed or not.
    pub(crate) fn bundle(host: &[u8], parts: &[(u64, u64, bool)]) -> Vec<u8> {
        let end = parts
            .iter()
            .map(|(at, size, _)| at + size)
            .max()
            .unwrap_or(HOST);
        let mut file = host.to_vec();
        file.resize(usize::try_from(end).unwrap(), 0);
        let at = usize::try_from(HOST).unwrap() - 64;
        file[at..at + 8].copy_from_slice(&end.to_le_bytes());
        file[at + 8..at + 40].copy_from_slice(&SIGNATURE);
        file.extend(
            [VERSION, 0, u32::try_from(parts.len()).unwrap()]
                .map(u32::to_le_bytes)
                .concat(),
        );
        file.extend(b"\x0212");
        file.extend([0; CONFIGURATION]);
        for (offset, size, packed) in parts {
            let packed = if *packed { size - 1 } else { 0 };
            file.extend([*offset, *size, packed].map(u64::to_le_bytes).concat());
            file.push(1);
            // a name that is longer than what one byte counts
            file.extend([0x80 | 2, 1]);
            file.extend([b'n'; 130]);
        }
        file
    }

    fn mapped(offset: u64, len: u64) -> MappedFile {
        MappedFile {
            path: "/app/shop".into(),
            start: Addr(0x7000_0000),
            end: Addr(0x7000_0000 + len),
            file_offset: offset,
            stamp: None,
        }
    }

    #[test]
    fn mappings_belong_to_the_bundle_whose_files_begin_there() {
        let parts = [(0x3080, 0x2100, false), (0x5180, 0x900, false)];
        let bundle = Bundle::of(&bundle(&[], &parts), HOST).unwrap();
        let has = |all: &[MappedFile]| bundle.has(all.iter(), PAGE);
        let (first, second) = (mapped(0x3000, 0x3000), mapped(0x5000, 0x1000));
        assert!(has(&[first.clone(), second]));
        assert!(has(&[first.clone(), mapped(0x4000, 0x1000)]), "a section");
        assert!(!has(&[mapped(0x4000, 0x1000)]), "nothing begins there");
        assert!(!has(&[first, mapped(0x6000, 0x1000)]), "behind its end");
        assert!(!has(&[mapped(0x3000, 0x4000)]), "too long");
    }

    #[test]
    fn packed_files_are_not_mapped() {
        let bundle = Bundle::of(&bundle(&[], &[(0x3000, 0x1000, true)]), HOST).unwrap();
        assert!(!bundle.has([mapped(0x3000, 0x1000)].iter(), PAGE));
        assert!(bundle.has([].iter(), PAGE));
    }

    #[test]
    fn lists_of_other_versions_are_none() {
        let mut file = bundle(&[], &[(0x3000, 0x10, false)]);
        assert!(Bundle::of(&file, HOST).is_some());
        file[0x3010] = 2;
        assert!(Bundle::of(&file, HOST).is_none());
        assert!(Bundle::of(&file, HOST - 64).is_none(), "no host");
    }

    proptest! {
        #[test]
        fn hostile_lists_end(cut in 0_usize..0x3200, bytes in proptest::collection::vec(any::<u8>(), 64)) {
            let mut file = bundle(&[], &[(0x3080, 0x100, false), (0x3180, 0x9, true)]);
            let list = usize::try_from(HOST).unwrap() + 0x189;
            for (slot, byte) in file[list..].iter_mut().zip(bytes) {
                *slot = byte;
            }
            file.truncate(cut.max(0x3000));
            if let Some(found) = Bundle::of(&file, HOST) {
                found.has([mapped(0x3000, 0x1000)].iter(), PAGE);
            }
        }
    }
}
