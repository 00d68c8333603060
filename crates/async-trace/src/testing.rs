//! Bytes of real recordings, and an encoder for made ones.

/// The first batch of a real recording: metadata.
pub(crate) const ARTICLE_METADATA: &[u8] = &[
    0x86, 0, 0, 0, 1, 0x86, 0, 0, 0, 1, 0, 0, 0, 0x2d, 0x2d, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0x2d,
    0xce, 0xb1, 0xf1, 0x1b, 3, 0, 0, 0x73, 0xce, 0xb1, 0xf1, 0x1b, 3, 0, 0, 0x16, 0x46, 0x5d, 0,
    0x80, 0x94, 0xeb, 0xdc, 3, 0xaf, 0xf2, 0xc7, 0x8d, 0xbf, 0x63, 0xbc, 0xbd, 0xf0, 0xea, 0x8d,
    0x83, 0xe0, 0xee, 1, 0x80, 0x7e, 0x20, 0x17, 1, 1, 1, 2, 1, 1, 3, 1, 0, 4, 1, 0, 5, 1, 1, 6, 1,
    2, 7, 1, 2, 8, 1, 2, 9, 1, 0, 10, 1, 0, 11, 1, 1, 12, 1, 1, 13, 1, 0, 14, 1, 0, 15, 1, 1, 16,
    1, 2, 17, 1, 0, 18, 1, 0, 19, 1, 2, 20, 1, 0, 21, 1, 0, 22, 1, 2, 23, 1, 1,
];

/// The first batch of its main thread: reset, create, call stack of three frames.
pub(crate) const ARTICLE_FIRST: &[u8] = &[
    0x43, 0, 0, 0, 1, 0x43, 0, 0, 0, 1, 0, 0, 0, 0x2d, 0x2d, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0xd2,
    0xac, 0xb2, 0xf1, 0x1b, 3, 0, 0, 0xb6, 0x7a, 0xb3, 0xf1, 0x1b, 3, 0, 0, 0x14, 0xf0, 1, 1, 0xf4,
    0x99, 3, 2, 0, 1, 6, 0, 0x10, 0, 0, 0, 3, 0, 1, 0xa1, 0xa1, 0xad, 0xae, 0xa9, 0xfe, 0x1f, 0xe7,
    8, 0xe7, 9,
];

/// A batch of records as they stand on the wire; `duration` is the sum of their differences.
pub(crate) fn batch(context: u32, start: u64, records: &[&[u8]], duration: u64) -> Vec<u8> {
    let body = records.concat();
    let size = u32::try_from(37 + body.len()).unwrap();
    let mut out = size.to_le_bytes().to_vec();
    out.push(1);
    out.extend(size.to_le_bytes());
    out.extend(context.to_le_bytes());
    out.extend(u64::from(context + 100).to_le_bytes());
    out.extend(u32::try_from(records.len()).unwrap().to_le_bytes());
    out.extend(start.to_le_bytes());
    out.extend((start + duration).to_le_bytes());
    out.extend(body);
    out
}

/// A made recording: batches of records, with times in ticks.
#[derive(Debug, Default)]
pub(crate) struct Made {
    /// Each with the thread that handed it over, and when.
    payloads: Vec<(Vec<u8>, u64, u64)>,
}

/// Builds the records of one batch.
#[derive(Debug)]
pub(crate) struct Batch {
    context: u32,
    start: u64,
    time: u64,
    records: Vec<Vec<u8>>,
}

impl Batch {
    /// One that begins at a time.
    pub(crate) fn new(context: u32, start: u64) -> Self {
        Self {
            context,
            start,
            time: start,
            records: Vec::new(),
        }
    }

    /// A record at a time, with its payload behind its length prefix.
    pub(crate) fn add(mut self, time: u64, kind: crate::Kind, payload: &[u8]) -> Self {
        let mut bytes = vec![kind.id()];
        number(&mut bytes, time - self.time);
        self.time = time;
        match kind.prefix() {
            0 => {}
            1 => bytes.push(u8::try_from(payload.len()).unwrap()),
            _ => bytes.extend(u16::try_from(payload.len()).unwrap().to_le_bytes()),
        }
        bytes.extend(payload);
        self.records.push(bytes);
        self
    }

    fn bytes(&self) -> Vec<u8> {
        let records: Vec<&[u8]> = self.records.iter().map(Vec::as_slice).collect();
        batch(self.context, self.start, &records, self.time - self.start)
    }
}

/// A number as groups of seven bits.
pub(crate) fn number(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// The payload of a call stack of runtime-async; addresses must rise.
pub(crate) fn stack(parent: Option<u64>, dispatcher: u64, addresses: &[u64]) -> Vec<u8> {
    let mut out = vec![0, 0, u8::try_from(addresses.len()).unwrap()];
    if let Some(parent) = parent {
        number(&mut out, parent);
    }
    number(&mut out, dispatcher);
    let mut last = 0;
    for (index, address) in addresses.iter().enumerate() {
        let step = address - last;
        number(&mut out, if index == 0 { step } else { step << 1 });
        last = *address;
    }
    out
}

/// The payload of the metadata of .NET 11.0.0 with a buffer size.
pub(crate) fn metadata(buffer_size: u64) -> Vec<u8> {
    let mut out = Vec::new();
    for value in [1_000, 0, 116_444_736_000_000_000, buffer_size] {
        number(&mut out, value);
    }
    out.extend([32, 23]);
    for kind in crate::Kind::ALL {
        out.extend([kind.id(), 1, kind.prefix()]);
    }
    out
}

impl Made {
    /// One that begins with the metadata of .NET 11.0.0, at tick 10.
    pub(crate) fn new() -> Self {
        let first =
            Batch::new(1, 10).add(10, crate::Kind::AsyncProfilerMetadata, &metadata(16_128));
        Self::default().handed_over(&first, 1, 10)
    }

    pub(crate) fn batch(self, batch: &Batch) -> Self {
        self.raw(batch.bytes())
    }

    /// A batch that a thread handed over at a time.
    pub(crate) fn handed_over(mut self, batch: &Batch, context: u32, time: u64) -> Self {
        self.payloads
            .push((batch.bytes(), u64::from(context + 100), time));
        self
    }

    pub(crate) fn raw(mut self, payload: Vec<u8>) -> Self {
        self.payloads.push((payload, 0, u64::MAX));
        self
    }

    pub(crate) fn read(&self) -> crate::AsyncTrace<'_> {
        let mut recording = crate::Recording::new();
        let mut offset = 0;
        for (payload, thread, time) in &self.payloads {
            recording.push(crate::Outer {
                offset,
                time: *time,
                thread: *thread,
                payload,
            });
            offset += payload.len() as u64;
        }
        recording.finish()
    }
}
