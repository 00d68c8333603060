//! Where blocks end in a stream that is still being written, so that whoever copies it can stop between two of them.

/// Bytes of the file's header: the name, the length of the next, the name of the serialisation.
const HEADER: usize = 32;
/// Bytes of an object's beginning up to the length of its type's name: three tags, two versions, the length.
const OBJECT: usize = 15;
/// Longest name of a type.
const LONGEST_NAME: usize = 38;
/// Bytes of the description of the trace, which says no size.
const TRACE: u64 = 48;

const TAG_BEGIN: u8 = 5;
const TAG_END: u8 = 1;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// At the header of the file.
    Header,
    /// Between two objects.
    Between,
    /// At the size of a block.
    Size,
    /// Inside an object, with so many bytes to come.
    Inside(u64),
    /// It makes no sense.
    Lost,
}

/// Follows a stream in the form of version 4, which runtimes write, whatever pieces it comes in.
#[derive(Clone, Debug)]
pub struct BlockEnds {
    state: State,
    /// Bytes that were read since the last state began, when they do not suffice yet.
    kept: Vec<u8>,
    offset: u64,
}

impl Default for BlockEnds {
    fn default() -> Self {
        Self {
            state: State::Header,
            kept: Vec::new(),
            offset: 0,
        }
    }
}

impl BlockEnds {
    /// Reads the next piece. Gives how many bytes of it lie before the first end of a block at or behind `limit`, which
    /// counts from the start of the stream; where blocks are not understood, `limit` itself.
    pub fn first_end(&mut self, bytes: &[u8], limit: u64) -> Option<usize> {
        let mut at = 0_usize;
        while let Some(rest) = bytes.get(at..).filter(|rest| !rest.is_empty()) {
            let before = self.offset;
            let is_end = match self.state {
                State::Lost => {
                    let left = usize::try_from(limit.saturating_sub(before)).unwrap_or(usize::MAX);
                    self.offset = before.saturating_add(rest.len() as u64);
                    return (left <= rest.len()).then(|| at.saturating_add(left));
                }
                State::Inside(left) => self.skip(left, rest.len() as u64),
                _ => self.keep(rest),
            };
            let read = usize::try_from(self.offset.saturating_sub(before)).unwrap_or(usize::MAX);
            at = at.saturating_add(read);
            if is_end && self.offset >= limit {
                return Some(at);
            }
        }
        None
    }

    /// Skips what is left of an object, or all that there is; whether the object has ended.
    fn skip(&mut self, left: u64, most: u64) -> bool {
        let skipped = left.min(most);
        self.offset = self.offset.saturating_add(skipped);
        let left = left.saturating_sub(skipped);
        self.state = if left == 0 {
            State::Between
        } else {
            State::Inside(left)
        };
        left == 0
    }

    /// Takes a byte; whether the stream has ended with it.
    fn keep(&mut self, rest: &[u8]) -> bool {
        let Some(byte) = rest.first() else {
            return false;
        };
        self.kept.push(*byte);
        self.offset = self.offset.saturating_add(1);
        let kept = self.kept.as_slice();
        let is_end = self.state == State::Between && *kept == [TAG_END];
        let next = match self.state {
            State::Header if kept.len() < HEADER => return false,
            State::Header
                if kept.starts_with(b"Nettrace") && kept.ends_with(b"!FastSerialization.1") =>
            {
                State::Between
            }
            State::Between if is_end => State::Between,
            State::Between => match object(kept) {
                Object::TooShort => return false,
                Object::Trace => State::Inside(TRACE.saturating_add(1)),
                Object::Block => State::Size,
                Object::None => State::Lost,
            },
            State::Size => {
                let Some(size) = kept.first_chunk().map(|four| u32::from_le_bytes(*four)) else {
                    return false;
                };
                // the block begins at a multiple of four bytes and ends with a tag
                let padding = self.offset.wrapping_neg() & 3;
                State::Inside(u64::from(size).saturating_add(padding).saturating_add(1))
            }
            _ => State::Lost,
        };
        self.kept.clear();
        self.state = next;
        is_end
    }
}

enum Object {
    TooShort,
    Trace,
    Block,
    None,
}

/// What object begins.
fn object(kept: &[u8]) -> Object {
    let tags = [TAG_BEGIN, TAG_BEGIN, 1];
    if kept.iter().zip(&tags).any(|(is, want)| is != want) {
        return Object::None;
    }
    let Some(head) = kept.get(..OBJECT) else {
        return Object::TooShort;
    };
    let length = head
        .last_chunk()
        .map_or(0, |four| u32::from_le_bytes(*four));
    let length = usize::try_from(length).unwrap_or(usize::MAX);
    if length > LONGEST_NAME {
        return Object::None;
    }
    match kept.get(OBJECT..) {
        Some(name) if name.len() > length => match name.get(..length) {
            Some(b"Trace") => Object::Trace,
            _ => Object::Block,
        },
        _ => Object::TooShort,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stream() -> (Vec<u8>, Vec<u64>) {
        let mut out = b"Nettrace\x14\0\0\0!FastSerialization.1".to_vec();
        let mut ends = Vec::new();
        let head = |out: &mut Vec<u8>, name: &str| {
            out.extend([5, 5, 1, 4, 0, 0, 0, 4, 0, 0, 0]);
            out.extend(u32::try_from(name.len()).unwrap().to_le_bytes());
            out.extend(name.bytes());
            out.push(6);
        };
        head(&mut out, "Trace");
        out.extend([7; 48]);
        out.push(6);
        ends.push(out.len() as u64);
        for size in [0_u32, 5, 300] {
            head(&mut out, "EventBlock");
            out.extend(size.to_le_bytes());
            while !out.len().is_multiple_of(4) {
                out.push(0);
            }
            out.extend(vec![1; size as usize]);
            out.push(6);
            ends.push(out.len() as u64);
        }
        out.push(1);
        ends.push(out.len() as u64);
        (out, ends)
    }

    #[test]
    fn ends_are_found_whatever_the_pieces() {
        let (bytes, ends) = stream();
        for piece in [1, 2, 7, 64, bytes.len()] {
            for limit in 0..=bytes.len() as u64 {
                let want = ends.iter().find(|end| **end >= limit).copied();
                let (mut all, mut before, mut found) = (BlockEnds::default(), 0, None);
                for part in bytes.chunks(piece) {
                    if let Some(at) = all.first_end(part, limit) {
                        found = Some(before + at as u64);
                        break;
                    }
                    before += part.len() as u64;
                }
                assert_eq!(found, want, "piece {piece} limit {limit}");
            }
        }
    }

    #[test]
    fn what_is_not_understood_is_cut_at_the_limit() {
        let mut all = BlockEnds::default();
        assert_eq!(all.first_end(&[b'x'; 100], 150), None);
        assert_eq!(all.first_end(&[b'x'; 100], 150), Some(50));
        let (mut bytes, _) = stream();
        bytes[32] = 9;
        let mut all = BlockEnds::default();
        assert_eq!(all.first_end(&bytes, 40), Some(40));
    }

    proptest::proptest! {
        #[test]
        fn any_bytes_do(bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..400), at in 0_usize..300, to in 0_u8..8) {
            let (mut whole, _) = stream();
            whole[at] = to;
            let mut all = BlockEnds::default();
            let end = all.first_end(&whole, 100);
            proptest::prop_assert!(end.is_none_or(|end| end <= whole.len()));
            let _ = BlockEnds::default().first_end(&bytes, 50);
        }
    }
}
