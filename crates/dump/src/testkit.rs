//! A small writer of ELF cores for the tests of this crate.

/// `e_machine` of AMD64.
pub(crate) const X64: u16 = 62;
/// `e_machine` of AArch64.
pub(crate) const ARM64: u16 = 183;

/// Read, write and execute bits of a segment.
pub(crate) const RW: u32 = 6;
pub(crate) const RX: u32 = 5;

/// A segment to be written.
#[derive(Clone, Debug)]
pub(crate) struct Segment {
    pub(crate) addr: u64,
    pub(crate) bytes: Vec<u8>,
    /// Bytes in memory; more than `bytes` means that the rest is not dumped.
    pub(crate) size: u64,
    pub(crate) flags: u32,
}

/// A core to be written.
#[derive(Clone, Debug)]
pub(crate) struct CoreFile {
    pub(crate) machine: u16,
    pub(crate) notes: Vec<u8>,
    pub(crate) segments: Vec<Segment>,
}

impl CoreFile {
    pub(crate) fn new() -> Self {
        Self {
            machine: X64,
            notes: Vec::new(),
            segments: Vec::new(),
        }
    }

    pub(crate) fn segment(mut self, addr: u64, bytes: &[u8], flags: u32) -> Self {
        let size = bytes.len() as u64;
        self.segments.push(Segment {
            addr,
            bytes: bytes.to_vec(),
            size,
            flags,
        });
        self
    }

    /// A segment of `size` bytes that is listed and not dumped.
    pub(crate) fn hole(mut self, addr: u64, size: u64) -> Self {
        self.segments.push(Segment {
            addr,
            bytes: Vec::new(),
            size,
            flags: RW,
        });
        self
    }

    pub(crate) fn note(mut self, owner: &str, kind: u32, desc: &[u8]) -> Self {
        let name = [owner.as_bytes(), &[0]].concat();
        for number in [name.len() as u32, desc.len() as u32, kind] {
            self.notes.extend(number.to_le_bytes());
        }
        for part in [&name, desc] {
            self.notes.extend(part);
            self.notes.resize(self.notes.len().next_multiple_of(4), 0);
        }
        self
    }

    /// The file: header, count of segments if needed, segment list, notes, page-aligned bytes.
    pub(crate) fn build(&self) -> Vec<u8> {
        let count = self.segments.len() + 1;
        let extended = count >= 0xFFFF;
        let list_at = if extended { 128 } else { 64 };
        let notes_at = list_at + 56 * count;
        let mut data: Vec<u8> = Vec::new();
        let data_at = (notes_at + self.notes.len()).next_multiple_of(4096);
        let mut list = program_header(4, 0, notes_at as u64, 0, self.notes.len() as u64, 0);
        for s in &self.segments {
            let offset = (data_at + data.len()) as u64;
            list.extend(program_header(
                1,
                s.flags,
                offset,
                s.addr,
                s.bytes.len() as u64,
                s.size,
            ));
            data.extend(&s.bytes);
        }
        let mut out = self.file_header(count, extended, list_at as u64);
        out.extend(list);
        out.extend(&self.notes);
        out.resize(data_at, 0);
        out.extend(data);
        out
    }

    fn file_header(&self, count: usize, extended: bool, list_at: u64) -> Vec<u8> {
        let mut out = b"\x7fELF\x02\x01\x01".to_vec();
        out.resize(16, 0);
        out.extend([4_u16, self.machine].map(u16::to_le_bytes).concat());
        out.extend(1_u32.to_le_bytes());
        let section_at = if extended { 64 } else { 0 };
        out.extend([0, list_at, section_at].map(u64::to_le_bytes).concat());
        out.extend(0_u32.to_le_bytes());
        let number = if extended { 0xFFFF } else { count as u16 };
        let tail = [
            64,
            56,
            number,
            if extended { 64 } else { 0 },
            u16::from(extended),
            0,
        ];
        out.extend(tail.map(u16::to_le_bytes).concat());
        if extended {
            let mut section = vec![0; 64];
            section[44..48].copy_from_slice(&(count as u32).to_le_bytes());
            out.extend(section);
        }
        out
    }
}

fn program_header(kind: u32, flags: u32, offset: u64, addr: u64, filed: u64, size: u64) -> Vec<u8> {
    let mut out = [kind, flags].map(u32::to_le_bytes).concat();
    out.extend(
        [offset, addr, 0, filed, size, 4096]
            .map(u64::to_le_bytes)
            .concat(),
    );
    out
}

/// NT_PRSTATUS of thread `id`; register `i` is `first + i`, in the kernel's order.
pub(crate) fn prstatus(machine: u16, id: u32, signal: u16, first: u64) -> Vec<u8> {
    let (size, registers) = if machine == X64 { (336, 27) } else { (392, 34) };
    let mut out = vec![0; size];
    out[12..14].copy_from_slice(&signal.to_le_bytes());
    out[32..36].copy_from_slice(&id.to_le_bytes());
    for i in 0..registers {
        out[112 + 8 * i..120 + 8 * i].copy_from_slice(&(first + i as u64).to_le_bytes());
    }
    out
}

/// NT_PRPSINFO.
pub(crate) fn prpsinfo(pid: u32, name: &str, arguments: &str) -> Vec<u8> {
    let mut out = vec![0; 136];
    out[24..28].copy_from_slice(&pid.to_le_bytes());
    out[40..40 + name.len()].copy_from_slice(name.as_bytes());
    out[56..56 + arguments.len()].copy_from_slice(arguments.as_bytes());
    out
}

/// NT_FILE with entries of start, end and offset in units.
pub(crate) fn file_note(unit: u64, files: &[(u64, u64, u64, &str)]) -> Vec<u8> {
    let mut out = [files.len() as u64, unit].map(u64::to_le_bytes).concat();
    for (start, end, offset, _) in files {
        out.extend([*start, *end, *offset].map(u64::to_le_bytes).concat());
    }
    for (.., path) in files {
        out.extend(path.bytes().chain([0]));
    }
    out
}

/// createdump's own page.
pub(crate) fn diagnostics_page(exception: u64, runtime: u64) -> Vec<u8> {
    let mut out = b"DIAGINFOHEADER\0\0\x02\0\0\0\0\0\0\0".to_vec();
    out.extend([exception, runtime].map(u64::to_le_bytes).concat());
    out.resize(4096, 0);
    out
}

/// First page of an image with two segments: `text` bytes of code at 0 and, from `text` on, one page of data followed
/// by `bss` zeroed bytes.
pub(crate) fn image_page(text: u64, bss: u64) -> Vec<u8> {
    let mut out = CoreFile::new().file_header(2, false, 64);
    out.extend(program_header(1, RX, 0, 0, text, text));
    out.extend(program_header(1, RW, text, text, 4096, 4096 + bss));
    out.resize(4096, 0);
    out
}
