//! Label lists of version 6: what events share beside their payload.

use crate::cursor::Cursor;
use crate::rows::Guid;

/// A label of an event of a version 6 file.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Label {
    /// The activity that the event belongs to.
    Activity(Guid),
    /// The activity that it leads to or comes from.
    RelatedActivity(Guid),
    /// W3C trace id.
    TraceId([u8; 16]),
    /// W3C span id.
    SpanId(u64),
    /// Text by name.
    Text(String, String),
    /// A number by name.
    Number(String, i64),
    /// Instead of the metadata's opcode.
    Opcode(u8),
    /// Instead of the metadata's keywords.
    Keywords(u64),
    /// Instead of the metadata's level.
    Level(u8),
    /// Instead of the metadata's version.
    Version(u8),
}

/// Bit of the kind of the last label of a list.
const LAST: u8 = 0x80;

#[derive(Clone, Debug)]
struct Chunk {
    first: u32,
    lists: Vec<Vec<Label>>,
}

/// The lists since the last sequence point.
#[derive(Clone, Debug, Default)]
pub(crate) struct Labels {
    chunks: Vec<Chunk>,
}

impl Labels {
    /// A block of lists; taken as a whole or not at all.
    pub(crate) fn add(&mut self, mut body: Cursor<'_>) -> Result<(), &'static str> {
        let mut read = || {
            let (first, count) = (body.u32()?, body.length()?);
            let mut lists = Vec::new();
            for _ in 0..count {
                lists.push(list(&mut body)?);
            }
            body.is_empty().then_some(Chunk { first, lists })
        };
        let chunk = read().ok_or("its labels do not end at its end")?;
        self.chunks.push(chunk);
        Ok(())
    }

    pub(crate) fn clear(&mut self) {
        self.chunks.clear();
    }

    /// The labels of list `id`; none for number 0 and for what no block since the last sequence point has.
    pub(crate) fn get(&self, id: u32) -> &[Label] {
        let of_chunk = |chunk: &'_ Chunk| {
            let index = usize::try_from(id.checked_sub(chunk.first)?).ok()?;
            (index < chunk.lists.len()).then_some(index)
        };
        let found = self
            .chunks
            .iter()
            .rev()
            .find_map(|chunk| chunk.lists.get(of_chunk(chunk)?));
        found.filter(|_| id != 0).map_or(&[], Vec::as_slice)
    }
}

fn list(body: &mut Cursor<'_>) -> Option<Vec<Label>> {
    let mut labels = Vec::new();
    loop {
        let kind = body.u8()?;
        labels.push(match kind & !LAST {
            1 => Label::Activity(body.array()?),
            2 => Label::RelatedActivity(body.array()?),
            3 => Label::TraceId(body.array()?),
            4 => Label::SpanId(body.u64()?),
            5 => Label::Text(body.utf8()?, body.utf8()?),
            6 => Label::Number(body.utf8()?, body.varint64()?),
            7 => Label::Opcode(body.u8()?),
            8 => Label::Keywords(body.u64()?),
            9 => Label::Level(body.u8()?),
            10 => Label::Version(body.u8()?),
            _ => return None,
        });
        if kind & LAST != 0 {
            return Some(labels);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bit_ends_each_list() {
        let mut block = vec![5, 0, 0, 0, 2, 0, 0, 0];
        block.extend([9, 4, 0x86, 1, b'n', 3]);
        block.extend([0x80 | 3]);
        block.extend([7; 16]);
        let mut labels = Labels::default();
        labels.add(Cursor::new(&block, 0)).unwrap();
        assert_eq!(
            labels.get(5),
            [Label::Level(4), Label::Number("n".into(), -2)]
        );
        assert_eq!(labels.get(6), [Label::TraceId([7; 16])]);
        assert_eq!((labels.get(0), labels.get(7)), (&[][..], &[][..]));
        assert!(labels.add(Cursor::new(&block[..20], 0)).is_err());
        labels.clear();
        assert_eq!(labels.get(5), []);
    }
}
