//! How inputs are changed.

use crate::random::Random;

/// Numbers at which readers go wrong.
pub const EXTREME: [u64; 14] = [
    0,
    1,
    3,
    8,
    0x1000,
    0x7FFF_FFFF,
    0x8000_0000,
    0xFFFF_FFFF,
    1 << 32,
    1 << 40,
    1 << 47,
    (1 << 63) - 1,
    1 << 63,
    u64::MAX,
];
/// Bytes of an input that is made from nothing.
const SMALL: usize = 512;
/// Bytes that are looked through for one that is not zero.
const NEAR: usize = 4096;

/// Changes bytes and words in place, a few of them; what is large and mostly zeros is changed where something stands.
pub(crate) fn in_place(seed: &[u8], random: &mut Random) -> Vec<u8> {
    let mut out = seed.to_vec();
    for _ in 0..random.of(&[1, 1, 2, 4, 16]) {
        let at = written(&out, random);
        match random.index(6) {
            0 => put(
                &mut out,
                at,
                &[seed.get(at).copied().unwrap_or(0) ^ 1 << random.index(8)],
            ),
            1 => put(&mut out, at, &random.bytes(1)),
            2 => put(
                &mut out,
                at & !3,
                &(random.of(&EXTREME) as u32).to_le_bytes(),
            ),
            3 => put(&mut out, at & !7, &random.of(&EXTREME).to_le_bytes()),
            4 => {
                // a reference or number of somewhere else
                let from = written(&out, random) & !7;
                let word = out.get(from..from + 8).unwrap_or_default().to_vec();
                put(&mut out, at & !7, &word);
            }
            _ => {
                let many = random.of(&[2, 4, 8, 64]);
                put(&mut out, at, &random.bytes(many));
            }
        }
    }
    if random.index(64) == 0 {
        out.truncate(random.index(out.len()));
    }
    out
}

/// Changes an input in place, cuts it, takes parts out or doubles them; sometimes makes one from nothing.
pub(crate) fn anyhow(seed: &[u8], random: &mut Random) -> Vec<u8> {
    if random.index(16) == 0 {
        let len = random.index(SMALL);
        return random.bytes(len);
    }
    let mut out = in_place(seed, random);
    for _ in 0..random.of(&[0, 0, 1, 2]) {
        let from = random.index(out.len());
        let to = (from + random.of(&[1, 2, 8, 64])).min(out.len());
        if random.index(2) == 0 {
            out.drain(from..to);
        } else {
            let part = out.get(from..to).unwrap_or_default().to_vec();
            let at = random.index(out.len());
            out.splice(at..at, part);
        }
    }
    out
}

/// Arbitrary bytes, short ones.
pub(crate) fn arbitrary(_: &[u8], random: &mut Random) -> Vec<u8> {
    let len = random.index(SMALL);
    random.bytes(len)
}

fn put(out: &mut [u8], at: usize, new: &[u8]) {
    for (old, new) in out.iter_mut().skip(at).zip(new) {
        *old = *new;
    }
}

/// A place with something in it, mostly.
fn written(bytes: &[u8], random: &mut Random) -> usize {
    let at = random.index(bytes.len());
    if random.index(8) == 0 {
        return at;
    }
    let near = bytes.iter().skip(at).take(NEAR);
    at + near.take_while(|b| **b == 0).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_keep_the_length_or_not() {
        let mut random = Random::new(1);
        let seed: Vec<u8> = (0..200).collect();
        let mut lens = Vec::new();
        for _ in 0..500 {
            assert!(in_place(&seed, &mut random).len() <= seed.len());
            lens.push(anyhow(&seed, &mut random).len());
        }
        assert!(lens.iter().any(|l| *l > 200) && lens.iter().any(|l| *l < 200));
        assert!(in_place(&[], &mut random).is_empty());
        assert!(anyhow(&[], &mut random).len() < SMALL);
    }
}
