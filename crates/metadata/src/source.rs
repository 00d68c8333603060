//! Where metadata bytes come from.

/// The bytes of a metadata root; they may have holes, such as pages that a dump does not hold.
pub trait Source {
    /// Length of the metadata in bytes, holes included.
    fn len(&self) -> u64;

    /// Fills `out` from `offset` on. `false` when any of the bytes cannot be read; `out` is unspecified then.
    fn read(&self, offset: u64, out: &mut [u8]) -> bool;

    /// Whether there are no bytes at all.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Source for [u8] {
    fn len(&self) -> u64 {
        <[u8]>::len(self) as u64
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> bool {
        let range = usize::try_from(offset)
            .ok()
            .and_then(|start| Some(start..start.checked_add(out.len())?));
        match range.and_then(|range| self.get(range)) {
            Some(bytes) => {
                out.copy_from_slice(bytes);
                true
            }
            None => false,
        }
    }
}

impl Source for Vec<u8> {
    fn len(&self) -> u64 {
        Source::len(self.as_slice())
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> bool {
        Source::read(self.as_slice(), offset, out)
    }
}

impl<S: Source + ?Sized> Source for &S {
    fn len(&self) -> u64 {
        (**self).len()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> bool {
        (**self).read(offset, out)
    }
}

/// The `N` bytes at `offset`.
pub(crate) fn array<const N: usize>(
    source: &(impl Source + ?Sized),
    offset: u64,
) -> Option<[u8; N]> {
    let mut out = [0; N];
    source.read(offset, &mut out).then_some(out)
}

/// The 16-bit number at `offset`.
pub(crate) fn u16_at(source: &(impl Source + ?Sized), offset: u64) -> Option<u16> {
    array(source, offset).map(u16::from_le_bytes)
}

/// The 32-bit number at `offset`.
pub(crate) fn u32_at(source: &(impl Source + ?Sized), offset: u64) -> Option<u32> {
    array(source, offset).map(u32::from_le_bytes)
}

/// The 64-bit number at `offset`.
pub(crate) fn u64_at(source: &(impl Source + ?Sized), offset: u64) -> Option<u64> {
    array(source, offset).map(u64::from_le_bytes)
}
