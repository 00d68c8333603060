//! Portable PDBs inside their assembly: packed, with a small header.

use flate2::read::DeflateDecoder;
use std::io::Read;

/// How the entry of the debug directory begins.
const MAGIC: &[u8; 4] = b"MPDB";
/// Unpacked bytes at most; the largest known PDBs have some tens of MiB.
const MAX_UNPACKED: u32 = 256 << 20;

/// Why an embedded PDB cannot be unpacked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EmbeddedError {
    /// The bytes do not begin like an embedded PDB.
    #[error("not an embedded PDB")]
    NotOne,
    /// It says that it is larger than is unpacked here.
    #[error("an embedded PDB of {0} bytes is too large")]
    TooLarge(u32),
    /// The packed bytes are damaged, or there are more or fewer than the header says.
    #[error("the embedded PDB is damaged")]
    Damaged,
}

/// Unpacks the PDB that an entry of the debug directory (type 17) holds.
///
/// # Errors
/// When the bytes are something else, damaged, or would take more than 256 MiB.
pub fn unpack_embedded(bytes: &[u8]) -> Result<Vec<u8>, EmbeddedError> {
    let rest = bytes
        .strip_prefix(MAGIC.as_slice())
        .ok_or(EmbeddedError::NotOne)?;
    let (size, packed) = rest.split_first_chunk().ok_or(EmbeddedError::Damaged)?;
    let size = u32::from_le_bytes(*size);
    if size > MAX_UNPACKED {
        return Err(EmbeddedError::TooLarge(size));
    }
    // one byte more than there should be, to notice that there is more
    let limit = u64::from(size).saturating_add(1);
    let mut out = Vec::new();
    DeflateDecoder::new(packed)
        .take(limit)
        .read_to_end(&mut out)
        .map_err(|_| EmbeddedError::Damaged)?;
    if out.len() as u64 == u64::from(size) {
        Ok(out)
    } else {
        Err(EmbeddedError::Damaged)
    }
}
