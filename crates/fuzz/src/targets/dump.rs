//! A dump of arbitrary bytes: opened, read from, and never a panic.

use asynctriage_dump::{Dump, Memory};

pub(crate) fn run(bytes: &[u8]) {
    let Ok(dump) = Dump::from_bytes(bytes.to_vec()) else {
        return;
    };
    let memory: &dyn Memory = &dump.memory;
    for (start, len) in dump.memory.ranges().take(64) {
        for addr in [start, start + len / 2, start + len] {
            assert_eq!(memory.u64(addr).is_some(), memory.readable(addr, 8));
            let _ = memory.c_str(addr, 256);
        }
        let _ = dump.memory.iter_pieces(start, len).take(64).count();
    }
}
