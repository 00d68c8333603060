//! Traces: the bytes of `.nettrace` files of versions 4 and 6, block by block.
//!
//! [`Nettrace`] writes what it is told, also what makes no sense; sizes, padding and the times in the headers of blocks
//! are worked out here.

/// An event. What a version does not have is not written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Row {
    /// Number of its metadata; 0 in a metadata block.
    pub metadata: u32,
    /// Number among those of its capture thread.
    pub sequence: u32,
    /// Thread that wrote it.
    pub capture_thread: u64,
    /// Processor.
    pub processor: u32,
    /// Thread that it speaks of.
    pub thread: u64,
    /// Number of its stack.
    pub stack: u32,
    /// Time in ticks.
    pub timestamp: u64,
    /// Activity, of version 4.
    pub activity: [u8; 16],
    /// Related activity, of version 4.
    pub related_activity: [u8; 16],
    /// Number of its labels, of version 6.
    pub labels: u32,
    /// Whether nothing later is older.
    pub sorted: bool,
    /// Payload.
    pub payload: Vec<u8>,
}

/// How headers of rows are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Headers {
    /// As differences from the row before, as the runtime does.
    Compressed,
    /// In full.
    Fixed,
}

/// A file in the making.
#[derive(Clone, Debug)]
pub struct Nettrace {
    bytes: Vec<u8>,
    six: bool,
}

/// Ticks at the start of every made trace.
pub const START_TICKS: u64 = 1_000;
/// Its process.
pub const PID: u32 = 4711;

impl Nettrace {
    /// A file of version 4, with 64-bit pointers and a clock of nanoseconds.
    pub fn four() -> Self {
        let mut bytes = b"Nettrace\x14\0\0\0!FastSerialization.1".to_vec();
        bytes.extend(object("Trace", 4));
        bytes.extend(start());
        for number in [8, PID, 2, 1_000_000] {
            bytes.extend(number.to_le_bytes());
        }
        bytes.push(6);
        Self { bytes, six: false }
    }

    /// A file of version 6, with 64-bit pointers and a clock of nanoseconds.
    pub fn six() -> Self {
        let mut bytes = b"Nettrace\0\0\0\0\x06\0\0\0\0\0\0\0".to_vec();
        let mut body = start();
        body.extend(8_u32.to_le_bytes());
        let properties = [
            ("ProcessId", "4711"),
            ("HardwareThreadCount", "2"),
            ("Host", "x"),
        ];
        body.extend((properties.len() as u32).to_le_bytes());
        for (key, value) in properties {
            body.extend(utf8(key));
            body.extend(utf8(value));
        }
        bytes.extend(header(1, &body));
        bytes.extend(body);
        Self { bytes, six: true }
    }

    /// Length of what is written.
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Never: there is a header at least.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// A block by its name in version 4 and its number in version 6, as it is.
    pub fn block(mut self, name: &str, number: u8, body: &[u8]) -> Self {
        if self.six {
            self.bytes.extend(header(number, body));
            self.bytes.extend(body);
            return self;
        }
        self.bytes.extend(object(name, 2));
        self.bytes.extend((body.len() as u32).to_le_bytes());
        while !self.bytes.len().is_multiple_of(4) {
            self.bytes.push(0);
        }
        self.bytes.extend(body);
        self.bytes.push(6);
        self
    }

    /// A block of events.
    pub fn events(self, headers: Headers, rows: &[Row]) -> Self {
        let at = self.body_offset("EventBlock");
        let body = rows_block(headers, self.six, at, rows);
        self.block("EventBlock", 2, &body)
    }

    /// A block of metadata; see [`metadata_4`] and [`metadata_6`].
    pub fn metadata(self, rows: &[Vec<u8>]) -> Self {
        if self.six {
            let mut body = vec![2, 0, 0xee, 0xee];
            for row in rows {
                body.extend((row.len() as u16).to_le_bytes());
                body.extend(row);
            }
            return self.block("", 3, &body);
        }
        let rows: Vec<_> = rows
            .iter()
            .map(|payload| Row {
                timestamp: START_TICKS,
                payload: payload.clone(),
                ..Row::default()
            })
            .collect();
        let at = self.body_offset("MetadataBlock");
        let body = rows_block(Headers::Compressed, false, at, &rows);
        self.block("MetadataBlock", 3, &body)
    }

    /// A block of stacks of 64-bit addresses; the first has the number `first`.
    pub fn stacks(self, first: u32, stacks: &[&[u64]]) -> Self {
        let mut body = first.to_le_bytes().to_vec();
        body.extend((stacks.len() as u32).to_le_bytes());
        for stack in stacks {
            body.extend((stack.len() as u32 * 8).to_le_bytes());
            body.extend(stack.iter().flat_map(|address| address.to_le_bytes()));
        }
        self.block("StackBlock", 5, &body)
    }

    /// A sequence point: threads and the numbers that they have reached. The flags are version 6 only.
    pub fn sequence_point(self, time: u64, flags: u32, threads: &[(u64, u32)]) -> Self {
        let mut body = time.to_le_bytes().to_vec();
        if self.six {
            body.extend(flags.to_le_bytes());
        }
        body.extend((threads.len() as u32).to_le_bytes());
        for (thread, sequence) in threads {
            if self.six {
                body.extend(varuint(*thread));
                body.extend(varuint((*sequence).into()));
            } else {
                body.extend(thread.to_le_bytes());
                body.extend(sequence.to_le_bytes());
            }
        }
        self.block("SPBlock", 4, &body)
    }

    /// Threads of version 6 by index, with their ids and names.
    pub fn threads(self, threads: &[(u64, u64, &str)]) -> Self {
        let mut body = Vec::new();
        for (index, os_id, name) in threads {
            let mut row = varuint(*index);
            row.push(3);
            row.extend(varuint(*os_id));
            row.push(1);
            row.extend(utf8(name));
            body.extend((row.len() as u16).to_le_bytes());
            body.extend(row);
        }
        self.block("", 6, &body)
    }

    /// Threads of version 6 that are no more, with the last number of each.
    pub fn remove_threads(self, threads: &[(u64, u32)]) -> Self {
        let body: Vec<_> = threads
            .iter()
            .flat_map(|(index, sequence)| [varuint(*index), varuint((*sequence).into())].concat())
            .collect();
        self.block("", 7, &body)
    }

    /// The file without a mark of its end.
    pub fn cut(self) -> Vec<u8> {
        self.bytes
    }

    /// The file.
    pub fn end(mut self) -> Vec<u8> {
        match self.six {
            true => self.bytes.extend([0; 4]),
            false => self.bytes.push(1),
        }
        self.bytes
    }

    /// Where the body of a block of version 4 will begin.
    fn body_offset(&self, name: &str) -> usize {
        (self.bytes.len() + object(name, 2).len() + 4).next_multiple_of(4)
    }
}

/// What the events of a kind are, in version 4. Fields are names and type codes; `tags` are appended as they are.
pub fn metadata_4(
    id: u32,
    provider: &str,
    event: u32,
    name: &str,
    fields: &[(&str, u32)],
    tags: &[u8],
) -> Vec<u8> {
    let mut row = id.to_le_bytes().to_vec();
    row.extend(utf16(provider));
    row.extend(event.to_le_bytes());
    row.extend(utf16(name));
    row.extend(0x0000_f000_0000_0010_u64.to_le_bytes());
    for number in [2, 4, fields.len() as u32] {
        row.extend(number.to_le_bytes());
    }
    for (name, code) in fields {
        row.extend(code.to_le_bytes());
        row.extend(utf16(name));
    }
    row.extend(tags);
    row
}

/// What the events of a kind are, in version 6. Types of fields are written as they are; so are the options.
pub fn metadata_6(
    id: u32,
    provider: &str,
    event: u32,
    name: &str,
    fields: &[(&str, &[u8])],
    options: &[u8],
) -> Vec<u8> {
    let mut row = varuint(id.into());
    row.extend(utf8(provider));
    row.extend(varuint(event.into()));
    row.extend(utf8(name));
    row.extend((fields.len() as u16).to_le_bytes());
    for (name, kind) in fields {
        let field = [utf8(name), kind.to_vec()].concat();
        row.extend((field.len() as u16).to_le_bytes());
        row.extend(field);
    }
    row.extend((options.len() as u16).to_le_bytes());
    row.extend(options);
    row
}

/// UTF-16 with a NUL.
pub fn utf16(text: &str) -> Vec<u8> {
    let units = text.encode_utf16().chain([0]);
    units.flat_map(u16::to_le_bytes).collect()
}

/// UTF-8 behind its length.
pub fn utf8(text: &str) -> Vec<u8> {
    [varuint(text.len() as u64), text.as_bytes().to_vec()].concat()
}

/// A number in groups of seven bits.
pub fn varuint(mut value: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while value > 0x7f {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
    bytes
}

/// 2026-11-29 12:00:00, the ticks of that moment, their frequency.
fn start() -> Vec<u8> {
    let mut bytes: Vec<_> = [2026_u16, 11, 0, 29, 12, 0, 0, 0]
        .into_iter()
        .flat_map(u16::to_le_bytes)
        .collect();
    bytes.extend(START_TICKS.to_le_bytes());
    bytes.extend(1_000_000_000_u64.to_le_bytes());
    bytes
}

fn object(name: &str, version: u32) -> Vec<u8> {
    let mut bytes = vec![5, 5, 1];
    for number in [version, version, name.len() as u32] {
        bytes.extend(number.to_le_bytes());
    }
    bytes.extend(name.bytes());
    bytes.push(6);
    bytes
}

fn header(number: u8, body: &[u8]) -> [u8; 4] {
    (u32::from(number) << 24 | body.len() as u32).to_le_bytes()
}

fn rows_block(headers: Headers, six: bool, offset: usize, rows: &[Row]) -> Vec<u8> {
    let times = || rows.iter().map(|row| row.timestamp);
    let mut body = 20_u16.to_le_bytes().to_vec();
    body.extend(u16::from(headers == Headers::Compressed).to_le_bytes());
    body.extend(times().min().unwrap_or_default().to_le_bytes());
    body.extend(times().max().unwrap_or_default().to_le_bytes());
    let mut previous = Row::default();
    for row in rows {
        match headers {
            Headers::Compressed => body.extend(compressed(&previous, row, six)),
            Headers::Fixed => body.extend(fixed(row, six)),
        }
        body.extend(&row.payload);
        while headers == Headers::Fixed && !six && !(offset + body.len()).is_multiple_of(4) {
            body.push(0);
        }
        previous = row.clone();
    }
    body
}

fn compressed(previous: &Row, row: &Row, six: bool) -> Vec<u8> {
    let mut flags = 0_u8;
    let mut fields = Vec::new();
    let mut field = |flag: u8, differs: bool, bytes: Vec<u8>| {
        if differs {
            flags |= flag;
            fields.extend(bytes);
        }
    };
    field(
        0x01,
        row.metadata != previous.metadata,
        varuint(row.metadata.into()),
    );
    let next = previous.sequence.wrapping_add(u32::from(row.metadata != 0));
    let by = |row: &Row| (row.capture_thread, row.processor);
    let sequence = row.sequence.wrapping_sub(previous.sequence).wrapping_sub(1);
    let capture = [
        varuint(sequence.into()),
        varuint(row.capture_thread),
        varuint(row.processor.into()),
    ];
    field(
        0x02,
        row.sequence != next || by(row) != by(previous),
        capture.concat(),
    );
    field(0x04, row.thread != previous.thread, varuint(row.thread));
    field(0x08, row.stack != previous.stack, varuint(row.stack.into()));
    field(
        0,
        true,
        varuint(row.timestamp.wrapping_sub(previous.timestamp)),
    );
    if six {
        field(
            0x10,
            row.labels != previous.labels,
            varuint(row.labels.into()),
        );
    } else {
        field(
            0x10,
            row.activity != previous.activity,
            row.activity.to_vec(),
        );
        let related = row.related_activity;
        field(0x20, related != previous.related_activity, related.to_vec());
    }
    let size = row.payload.len();
    field(0x80, size != previous.payload.len(), varuint(size as u64));
    if row.sorted {
        flags |= 0x40;
    }
    fields.insert(0, flags);
    fields
}

fn fixed(row: &Row, six: bool) -> Vec<u8> {
    let mut bytes = Vec::new();
    // the highest bit says "not sorted"
    let metadata = row.metadata | u32::from(!row.sorted) << 31;
    bytes.extend(metadata.to_le_bytes());
    bytes.extend(row.sequence.to_le_bytes());
    bytes.extend(row.thread.to_le_bytes());
    bytes.extend(row.capture_thread.to_le_bytes());
    bytes.extend(row.processor.to_le_bytes());
    bytes.extend(row.stack.to_le_bytes());
    bytes.extend(row.timestamp.to_le_bytes());
    if six {
        bytes.extend(row.labels.to_le_bytes());
    } else {
        bytes.extend(row.activity);
        bytes.extend(row.related_activity);
    }
    let payload = row.payload.len() as u32;
    bytes.extend(payload.to_le_bytes());
    let size = bytes.len() as u32 + payload;
    [size.to_le_bytes().to_vec(), bytes].concat()
}
