//! Numbers that are the same for the same seed on every machine.

/// SplitMix64.
pub(super) struct Random(u64);

impl Random {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// Below `len`; 0 for 0.
    pub(super) fn index(&mut self, len: usize) -> usize {
        match len as u64 {
            0 => 0,
            len => (self.next() % len) as usize,
        }
    }

    /// One of some; they are not empty.
    pub(super) fn of<T: Copy>(&mut self, some: &[T]) -> T {
        some[self.index(some.len())]
    }

    pub(super) fn bytes(&mut self, len: usize) -> Vec<u8> {
        (0..len).map(|_| self.next() as u8).collect()
    }
}
