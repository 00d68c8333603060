//! The rows of a block of events: a header each, written as differences from the row before, and a payload.

use crate::cursor::Cursor;

/// 16 bytes that name an activity.
pub type Guid = [u8; 16];

/// Size of the header of a block in bytes; a larger one was extended.
const BLOCK_HEADER: usize = 20;
/// Flag of a block: headers of rows are compressed.
const COMPRESSED: u16 = 1;

/// A row. What its header does not say is as in the row before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Row<'a> {
    pub(crate) offset: u64,
    pub(crate) metadata: u32,
    pub(crate) sequence: u32,
    pub(crate) capture_thread: u64,
    pub(crate) processor: u32,
    pub(crate) thread: u64,
    pub(crate) stack: u32,
    pub(crate) timestamp: u64,
    pub(crate) activity: Option<Guid>,
    pub(crate) related_activity: Option<Guid>,
    /// Version 6 only.
    pub(crate) labels: u32,
    pub(crate) sorted: bool,
    pub(crate) payload: &'a [u8],
    pub(crate) payload_offset: u64,
}

/// The forms of a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Compressed { six: bool },
    Fixed { six: bool },
}

/// Reads rows from front to back.
#[derive(Clone, Debug)]
pub(crate) struct Rows<'a> {
    cursor: Cursor<'a>,
    form: Form,
    /// The earliest and the latest time stamp of the block's rows, as its header says.
    times: Option<(u64, u64)>,
    row: Row<'a>,
    payload_size: usize,
}

impl<'a> Rows<'a> {
    /// `six`: whether the block has the form of version 6.
    pub(crate) fn open(mut body: Cursor<'a>, six: bool) -> Result<Self, &'static str> {
        const CUT: &str = "its header is cut";
        let size = usize::from(body.u16().ok_or(CUT)?);
        let flags = body.u16().ok_or(CUT)?;
        let (min, max) = (body.u64().ok_or(CUT)?, body.u64().ok_or(CUT)?);
        let extension = size
            .checked_sub(BLOCK_HEADER)
            .ok_or("its header is too short")?;
        body.take(extension).ok_or(CUT)?;
        let form = match flags & COMPRESSED {
            0 => Form::Fixed { six },
            _ => Form::Compressed { six },
        };
        Ok(Self {
            cursor: body,
            form,
            times: (min != 0 || max != 0).then_some((min, max)),
            row: Row::default(),
            payload_size: 0,
        })
    }

    /// Whether every row has its place, ends inside the block, and the last one at its end. With `timed`, whether no
    /// time stamp lies outside of what the block's header says (it was exact in all 253 blocks of events looked at,
    /// .NET 10.0.15 and 11.0.0).
    pub(crate) fn check(&self, timed: bool) -> Result<(), &'static str> {
        let mut rows = self.clone();
        while !rows.cursor.is_empty() {
            rows.step()
                .ok_or("a row reaches beyond the end of its block")?;
            let outside = |(min, max)| rows.row.timestamp < min || rows.row.timestamp > max;
            if timed && self.times.is_some_and(outside) {
                return Err("a time stamp lies outside of the times of its block");
            }
        }
        Ok(())
    }

    /// Goes to the next row; `false` at the end.
    #[inline]
    pub(crate) fn advance(&mut self) -> bool {
        !self.cursor.is_empty() && self.step().is_some()
    }

    /// The row that was gone to last.
    #[inline]
    pub(crate) fn row(&self) -> &Row<'a> {
        &self.row
    }

    #[inline]
    fn step(&mut self) -> Option<()> {
        self.row.offset = self.cursor.offset();
        match self.form {
            Form::Compressed { six } => self.compressed(six),
            Form::Fixed { six } => self.fixed(six),
        }
    }

    #[inline]
    fn compressed(&mut self, six: bool) -> Option<()> {
        let (cursor, row) = (&mut self.cursor, &mut self.row);
        let flags = cursor.u8()?;
        if flags & 0x01 != 0 {
            row.metadata = cursor.varuint32()?;
        }
        if flags & 0x02 != 0 {
            // a difference of 2^32 - 1 takes the sequence back by one
            row.sequence = row.sequence.wrapping_add(cursor.varuint32()?);
            row.capture_thread = cursor.varuint64()?;
            row.processor = cursor.varuint32()?;
            row.sequence = row.sequence.wrapping_add(1);
        } else if row.metadata != 0 {
            row.sequence = row.sequence.wrapping_add(1);
        }
        if flags & 0x04 != 0 {
            row.thread = cursor.varuint64()?;
        }
        if flags & 0x08 != 0 {
            row.stack = cursor.varuint32()?;
        }
        // with several threads in a block time goes back from one row to the next
        row.timestamp = row.timestamp.wrapping_add(cursor.varuint64()?);
        if flags & 0x10 != 0 {
            if six {
                row.labels = cursor.varuint32()?;
            } else {
                row.activity = guid(cursor)?;
            }
        }
        if flags & 0x20 != 0 && !six {
            row.related_activity = guid(cursor)?;
        }
        row.sorted = flags & 0x40 != 0;
        if flags & 0x80 != 0 {
            self.payload_size = usize::try_from(cursor.varuint32()?).ok()?;
        }
        row.payload_offset = cursor.offset();
        row.payload = cursor.take(self.payload_size)?;
        Some(())
    }

    /// A header of 80 bytes, or of 52 in version 6. No runtime is known to write it.
    fn fixed(&mut self, six: bool) -> Option<()> {
        let size = usize::try_from(self.cursor.u32()?).ok()?;
        let mut cursor = self.cursor.part(size)?;
        let row = &mut self.row;
        let metadata = cursor.u32()?;
        row.metadata = metadata & 0x7fff_ffff;
        // documents call the highest bit "sorted"; the reader of the format's authors takes the clear bit for it
        row.sorted = metadata & 0x8000_0000 == 0;
        row.sequence = cursor.u32()?;
        row.thread = cursor.u64()?;
        row.capture_thread = cursor.u64()?;
        row.processor = cursor.u32()?;
        row.stack = cursor.u32()?;
        row.timestamp = cursor.u64()?;
        if six {
            row.labels = cursor.u32()?;
        } else {
            row.activity = guid(&mut cursor)?;
            row.related_activity = guid(&mut cursor)?;
        }
        let payload = usize::try_from(cursor.u32()?).ok()?;
        row.payload_offset = cursor.offset();
        row.payload = cursor.take(payload)?;
        if six {
            return cursor.is_empty().then_some(());
        }
        // rows of version 4 are padded to a multiple of four; whether their size includes it is not said
        let padding = self.cursor.offset().wrapping_neg() & 3;
        let padding = usize::try_from(padding).ok()?.min(self.cursor.rest().len());
        self.cursor.take(padding)?;
        (cursor.rest().len() < 4).then_some(())
    }
}

/// The GUID, or that it is zero, which stands for none.
fn guid(cursor: &mut Cursor<'_>) -> Option<Option<Guid>> {
    let guid = cursor.array()?;
    Some(Some(guid).filter(|guid| *guid != Guid::default()))
}
