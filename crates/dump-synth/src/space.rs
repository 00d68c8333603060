//! The address space that is being written: stretches of bytes that grow.

/// A stretch of memory.
#[derive(Debug)]
pub(crate) struct Stretch {
    pub(crate) start: u64,
    pub(crate) bytes: Vec<u8>,
    /// `PF_R` (4), `PF_W` (2), `PF_X` (1).
    pub(crate) flags: u32,
}

/// Names a stretch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Id(usize);

/// All stretches.
#[derive(Debug, Default)]
pub(crate) struct Space {
    pub(crate) stretches: Vec<Stretch>,
}

impl Space {
    /// Adds an empty writable stretch.
    pub(crate) fn stretch(&mut self, start: u64) -> Id {
        self.filled(start, Vec::new(), 6)
    }

    /// Adds a stretch with content.
    pub(crate) fn filled(&mut self, start: u64, bytes: Vec<u8>, flags: u32) -> Id {
        self.stretches.push(Stretch {
            start,
            bytes,
            flags,
        });
        Id(self.stretches.len() - 1)
    }

    /// First address of a stretch.
    pub(crate) fn start(&self, id: Id) -> u64 {
        self.stretches[id.0].start
    }

    /// First address above a stretch.
    pub(crate) fn end(&self, id: Id) -> u64 {
        let s = &self.stretches[id.0];
        s.start + s.bytes.len() as u64
    }

    /// Takes zeroed bytes at the end of a stretch, 8-aligned.
    pub(crate) fn take(&mut self, id: Id, len: u64) -> u64 {
        let at = self.end(id).next_multiple_of(8);
        let s = &mut self.stretches[id.0];
        let end = usize::try_from(at + len - s.start).expect("it fits into memory");
        s.bytes.resize(end, 0);
        at
    }

    /// Writes bytes over what stands there.
    pub(crate) fn put(&mut self, at: u64, bytes: &[u8]) {
        // the newest stretch is the one that is written to most
        let holds = |s: &&mut Stretch| s.start <= at && at < s.start + s.bytes.len() as u64;
        let s = self.stretches.iter_mut().rev().find(holds);
        let s = s.unwrap_or_else(|| panic!("nothing is at {at:#x}"));
        let offset = usize::try_from(at - s.start).expect("it fits into memory");
        s.bytes[offset..offset + bytes.len()].copy_from_slice(bytes);
    }

    pub(crate) fn put_u16(&mut self, at: u64, value: u16) {
        self.put(at, &value.to_le_bytes());
    }

    pub(crate) fn put_u32(&mut self, at: u64, value: u32) {
        self.put(at, &value.to_le_bytes());
    }

    pub(crate) fn put_u64(&mut self, at: u64, value: u64) {
        self.put(at, &value.to_le_bytes());
    }
}
