//! Portable PDBs: arbitrary bytes, and a real one with bytes changed.

use crate::seeds::SYMBOLS;
use asynctriage_metadata::pdb::{PortablePdb, unpack_embedded};

/// Methods and source files that are looked at; a header may promise millions.
const MAX_ROWS: u32 = 64;

pub(crate) fn run(bytes: &[u8]) {
    let _ = unpack_embedded(bytes);
    read(bytes.to_vec());
    // place and value of each changed byte
    let mut changed = SYMBOLS.to_vec();
    for change in bytes.chunks_exact(3) {
        let place = usize::from(u16::from_le_bytes([change[0], change[1]]));
        if let Some(byte) = changed.get_mut(place) {
            *byte = change[2];
        }
    }
    read(changed);
}

fn read(bytes: Vec<u8>) {
    let Ok(pdb) = PortablePdb::parse(bytes) else {
        return;
    };
    let _ = (pdb.guid(), pdb.source_link());
    for row in 1..=MAX_ROWS {
        let steps = pdb.async_steps(row).unwrap_or_default();
        let at = steps.first().map_or(row, |s| s.yields_at);
        let _ = (
            pdb.document(row),
            pdb.sequence_points(row),
            pdb.location(row, at),
            pdb.locals(row, at),
            pdb.hoisted_scopes(row),
            pdb.kickoff_method(row),
        );
    }
}
