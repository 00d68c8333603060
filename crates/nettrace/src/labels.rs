//! Label lists of version 6: what events share beside their payload.

use rustc_hash::FxHashMap;

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
/// Labels that are kept between two sequence points. In memory one takes many times the bytes that it has in the file.
const MAX_LABELS: usize = 1 << 20;

/// A list, with what every event of it is asked for.
#[derive(Clone, Debug, Default)]
pub(crate) struct LabelList {
    pub(crate) activity: Option<Guid>,
    pub(crate) related_activity: Option<Guid>,
    labels: Vec<Label>,
}

/// The lists since the last sequence point, by their numbers.
#[derive(Clone, Debug, Default)]
pub(crate) struct Labels {
    lists: FxHashMap<u32, LabelList>,
    /// Labels in all of them.
    kept: usize,
}

impl Labels {
    /// A block of lists; taken as a whole or not at all.
    pub(crate) fn add(&mut self, mut body: Cursor<'_>) -> Result<(), &'static str> {
        const DAMAGED: &str = "its labels do not end at its end";
        let (first, count) = body.u32().zip(body.length()).ok_or(DAMAGED)?;
        let mut lists = Vec::new();
        let mut left = MAX_LABELS.saturating_sub(self.kept);
        for index in 0..count {
            let id = u32::try_from(index)
                .ok()
                .and_then(|index| first.checked_add(index));
            let list = list(&mut body).ok_or(DAMAGED)?;
            left = left
                .checked_sub(list.labels.len())
                .ok_or("more labels than are kept")?;
            lists.push((id.ok_or("the numbers of its labels do not end")?, list));
        }
        if !body.is_empty() {
            return Err(DAMAGED);
        }
        self.kept = MAX_LABELS.saturating_sub(left);
        self.lists.extend(lists);
        Ok(())
    }

    pub(crate) fn clear(&mut self) {
        self.lists.clear();
        self.kept = 0;
    }

    /// List `id`; none for number 0 and for what no block since the last sequence point has.
    pub(crate) fn list(&self, id: u32) -> Option<&LabelList> {
        self.lists.get(&id).filter(|_| id != 0)
    }

    /// The labels of list `id`.
    pub(crate) fn get(&self, id: u32) -> &[Label] {
        self.list(id).map_or(&[], |list| &list.labels)
    }
}

fn list(body: &mut Cursor<'_>) -> Option<LabelList> {
    let mut list = LabelList::default();
    loop {
        let kind = body.u8()?;
        let label = label(kind & !LAST, body)?;
        match label {
            Label::Activity(id) => list.activity = Some(id),
            Label::RelatedActivity(id) => list.related_activity = Some(id),
            _ => {}
        }
        list.labels.push(label);
        if kind & LAST != 0 {
            return Some(list);
        }
    }
}

fn label(kind: u8, body: &mut Cursor<'_>) -> Option<Label> {
    Some(match kind {
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
    })
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

    #[test]
    fn labels_beyond_the_limit_are_refused_until_the_next_sequence_point() {
        // one list of as many labels as are kept
        let mut block = vec![1, 0, 0, 0, 1, 0, 0, 0];
        block.extend([9, 4].repeat(MAX_LABELS - 1));
        block.extend([0x80 | 9, 4]);
        let one = [2, 0, 0, 0, 1, 0, 0, 0, 0x80 | 9, 4];
        let mut labels = Labels::default();
        labels.add(Cursor::new(&block, 0)).unwrap();
        assert!(labels.add(Cursor::new(&one, 0)).is_err());
        assert_eq!((labels.get(1).len(), labels.get(2).len()), (MAX_LABELS, 0));
        labels.clear();
        labels.add(Cursor::new(&one, 0)).unwrap();
        assert_eq!(labels.get(2), [Label::Level(4)]);
    }
}
