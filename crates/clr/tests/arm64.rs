//! What arm64 has of its own.

use asynctriage_clr::{Runtime, StackFrame};
use asynctriage_dump::Dump;
use std::io::Read;
use std::path::Path;

fn frames(dump: &Dump) -> Vec<StackFrame> {
    let rt = Runtime::open(dump).unwrap();
    let (threads, _) = rt.threads();
    threads
        .iter()
        .flat_map(|t| rt.stack(t).frames.clone())
        .collect()
}

/// Processors with pointer authentication leave a signature in the high bits of each return address that code of a C
/// library saved. The machine that the dump is from had none, so it is put in here.
#[test]
fn signed_return_addresses_lead_through_the_same_frames() {
    let file =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdumps/chain-arm64-10.0.15.dmp.gz");
    let packed = std::fs::read(file).unwrap();
    let mut bytes = Vec::new();
    flate2::read::GzDecoder::new(&packed[..])
        .read_to_end(&mut bytes)
        .unwrap();
    let plain = frames(&Dump::from_bytes(bytes.clone()).unwrap());
    assert!(plain.len() >= 4, "{plain:?}");
    let mut signed = 0;
    for word in bytes.chunks_exact_mut(8) {
        let value = u64::from_le_bytes(word.try_into().unwrap());
        if plain.iter().any(|f| f.ip.0 == value) {
            word.copy_from_slice(&(value | 0x0055 << 48).to_le_bytes());
            signed += 1;
        }
    }
    assert!(signed >= plain.len(), "{signed} return addresses");
    assert_eq!(frames(&Dump::from_bytes(bytes).unwrap()), plain);
}
