//! Strings, blobs and GUIDs.

use crate::metadata::Metadata;
use crate::root::Stream;
use crate::source::{Source, array};

/// Longest name that is read, in bytes. Compilers limit names to 1023 characters.
const MAX_STRING: u64 = 4096;
/// Longest blob that is read, in bytes. Signatures are far shorter; embedded files in PDBs are not read here.
const MAX_BLOB: u64 = 1 << 20;
/// Names are read in pieces of this size: most fit into one.
const CHUNK: usize = 64;

impl Stream {
    /// The bytes from `offset` to the end of the heap: where they begin, counted from the root, and how many.
    fn tail(self, offset: u32) -> Option<(u64, u64)> {
        let left = self
            .size
            .checked_sub(offset.into())
            .filter(|left| *left > 0)?;
        Some((self.offset.checked_add(offset.into())?, left))
    }
}

impl<S: Source> Metadata<S> {
    /// Calls `piece` with the bytes of a string until it answers `false` or the string ends. `None` when the bytes
    /// cannot be read, or the string has no end within [`MAX_STRING`] bytes.
    fn string_pieces(&self, offset: u32, mut piece: impl FnMut(&[u8]) -> bool) -> Option<()> {
        let (start, left) = self.layout.streams.strings.tail(offset)?;
        let limit = left
            .min(self.source.len().saturating_sub(start))
            .min(MAX_STRING);
        let mut buffer = [0; CHUNK];
        let mut done = 0;
        while done < limit {
            let want =
                usize::try_from(limit.saturating_sub(done)).map_or(CHUNK, |left| left.min(CHUNK));
            let whole = buffer.get_mut(..want)?;
            let at = start.checked_add(done)?;
            // A hole may begin right behind the end of the string: then it is read byte by byte.
            let got = if self.source.read(at, whole) {
                whole
            } else {
                buffer.get_mut(..1)?
            };
            if got.len() == 1 && !self.source.read(at, got) {
                return None;
            }
            if let Some(end) = got.iter().position(|byte| *byte == 0) {
                piece(got.get(..end)?);
                return Some(());
            }
            if !piece(got) {
                return Some(());
            }
            done = done.checked_add(got.len() as u64)?;
        }
        None
    }

    /// A string of `#Strings` that something has to have.
    pub(crate) fn name(&self, offset: u32) -> Option<String> {
        let name = self.string(offset).filter(|n| !n.is_empty());
        if name.is_none() && self.is_present(offset) {
            self.count_bad_name();
        }
        name
    }

    /// A string of `#Strings` that something may lack.
    pub(crate) fn namespace(&self, offset: u32) -> Option<String> {
        if offset == 0 {
            return Some(String::new());
        }
        self.name(offset)
    }

    /// Whether the first byte of a string can be read.
    fn is_present(&self, offset: u32) -> bool {
        let start = self.layout.streams.strings.tail(offset);
        start.is_none_or(|(start, _)| array::<1>(&self.source, start).is_some())
    }

    /// A string of `#Strings`.
    pub(crate) fn string(&self, offset: u32) -> Option<String> {
        if offset == 0 {
            return Some(String::new());
        }
        if u64::from(offset) >= self.layout.streams.strings.size {
            self.count_bad_name();
            return None;
        }
        let mut bytes = Vec::new();
        self.string_pieces(offset, |piece| {
            bytes.extend_from_slice(piece);
            true
        })?;
        let text = String::from_utf8(bytes).ok();
        let text = text.filter(|t| !t.contains(char::is_control));
        if text.is_none() {
            self.count_bad_name();
        }
        // what a dump was written without may stand there as zeros
        text.filter(|t| !t.is_empty())
    }

    /// Whether a string of `#Strings` is `text`, without copying it.
    pub(crate) fn string_is(&self, offset: u32, text: &str) -> bool {
        if offset == 0 {
            return text.is_empty();
        }
        let mut rest = Some(text.as_bytes());
        self.string_pieces(offset, |piece| {
            rest = rest.and_then(|text| text.strip_prefix(piece));
            rest.is_some()
        })
        .is_some()
            && rest.is_some_and(<[u8]>::is_empty)
    }

    /// The bytes of a blob, without the length in front of it (at most 1 MiB).
    #[must_use]
    pub fn blob(&self, offset: u32) -> Option<Vec<u8>> {
        self.counted(self.layout.streams.blobs, offset)
    }

    /// A literal of the program: the operand of `ldstr` without its upper byte.
    #[must_use]
    pub fn user_string(&self, offset: u32) -> Option<String> {
        let bytes = self.counted(self.layout.streams.user_strings, offset)?;
        // One more byte behind the text says whether it has unusual characters.
        let (pairs, _) = bytes.as_chunks::<2>();
        let units = pairs.iter().map(|pair| u16::from_le_bytes(*pair));
        Some(
            char::decode_utf16(units)
                .map(|c| c.unwrap_or(char::REPLACEMENT_CHARACTER))
                .collect(),
        )
    }

    /// A run of bytes with its compressed length in front.
    fn counted(&self, heap: Stream, offset: u32) -> Option<Vec<u8>> {
        let (start, left) = heap.tail(offset)?;
        let (length, prefix) = self.compressed_length(start)?;
        if length > MAX_BLOB || length > left.checked_sub(prefix)? {
            return None;
        }
        let start = start.checked_add(prefix)?;
        if start.checked_add(length)? > self.source.len() {
            return None;
        }
        let mut out = vec![0; usize::try_from(length).ok()?];
        self.source.read(start, &mut out).then_some(out)
    }

    /// The compressed number at `at`, and its own length (ECMA-335 II.23.2).
    fn compressed_length(&self, at: u64) -> Option<(u64, u64)> {
        let [first] = array(&self.source, at)?;
        if first & 0x80 == 0 {
            return Some((first.into(), 1));
        }
        if first & 0x40 == 0 {
            let value = u16::from_be_bytes(array(&self.source, at)?);
            return Some(((value & 0x3fff).into(), 2));
        }
        let value = u32::from_be_bytes(array(&self.source, at)?);
        (first & 0x20 == 0).then_some(((value & 0x1fff_ffff).into(), 4))
    }

    /// A GUID by its index, from 1.
    pub(crate) fn guid(&self, index: u32) -> Option<[u8; 16]> {
        let offset = index.checked_sub(1)?.checked_mul(16)?;
        let (start, left) = self.layout.streams.guids.tail(offset)?;
        array(&self.source, start).filter(|_| left >= 16)
    }
}
