//! Exception handlers of a method body (ECMA-335 II.25.4.5 and II.25.4.6).

/// First byte of a header that says that sections follow the code.
const MORE_SECTIONS: u8 = 0x8;
/// First byte of a section: it lists handlers, its clauses are of 24 bytes, another section follows.
const HANDLERS: u8 = 0x1;
const FAT: u8 = 0x40;
const MORE: u8 = 0x80;
/// Handlers of one method at most.
const MAX_HANDLERS: usize = 4096;

/// What a handler handles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HandlerKind {
    /// Exceptions: `catch`, with or without a filter.
    Catch,
    /// The end of the block, however it comes: `finally`.
    Finally,
    /// The end of the block by an exception.
    Fault,
}

/// A block and what handles its end; offsets are those of the method's code, ends excluded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Handler {
    /// What it handles.
    pub kind: HandlerKind,
    /// The block.
    pub block: (u32, u32),
    /// The handler's own code.
    pub code: (u32, u32),
}

/// A method's code with its handlers, the innermost first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Body {
    /// The instructions.
    pub code: Vec<u8>,
    /// The handlers, in the order of the file: inner ones stand before those around them.
    pub handlers: Vec<Handler>,
}

/// Whether sections stand behind the code, from the first byte of a body.
#[must_use]
pub fn has_sections(first: u8) -> bool {
    first & 3 == super::FAT && first & MORE_SECTIONS != 0
}

/// The size of a section from its first four bytes, and whether another follows.
#[must_use]
pub fn section_extent(head: [u8; 4]) -> (u32, bool) {
    let [kind, low, middle, high] = head;
    let size = if kind & FAT != 0 {
        u32::from_le_bytes([low, middle, high, 0])
    } else {
        low.into()
    };
    (size, kind & MORE != 0)
}

/// The handlers that a section lists; none when it is of another kind.
#[must_use]
pub fn handlers(section: &[u8]) -> Vec<Handler> {
    let Some(kind) = section.first().copied().filter(|k| k & HANDLERS != 0) else {
        return Vec::new();
    };
    let clauses = section.get(4..).unwrap_or_default();
    let found: Vec<Option<Handler>> = if kind & FAT != 0 {
        let all = clauses.as_chunks::<24>().0.iter();
        all.take(MAX_HANDLERS).map(fat).collect()
    } else {
        let all = clauses.as_chunks::<12>().0.iter();
        all.take(MAX_HANDLERS).map(small).collect()
    };
    found.into_iter().flatten().collect()
}

fn fat(clause: &[u8; 24]) -> Option<Handler> {
    let (words, _) = clause.as_chunks::<4>();
    let word = |i: usize| words.get(i).map(|w| u32::from_le_bytes(*w));
    handler(word(0)?, (word(1)?, word(2)?), (word(3)?, word(4)?))
}

fn small(clause: &[u8; 12]) -> Option<Handler> {
    let [f0, f1, t0, t1, t2, h0, h1, h2, ..] = *clause;
    let of = |low, high| u32::from(u16::from_le_bytes([low, high]));
    handler(of(f0, f1), (of(t0, t1), t2.into()), (of(h0, h1), h2.into()))
}

/// From begins and lengths.
fn handler(flags: u32, block: (u32, u32), code: (u32, u32)) -> Option<Handler> {
    let kind = match flags {
        0 | 1 => HandlerKind::Catch,
        2 => HandlerKind::Finally,
        4 => HandlerKind::Fault,
        _ => return None,
    };
    let range = |(start, length): (u32, u32)| Some((start, start.checked_add(length)?));
    Some(Handler {
        kind,
        block: range(block)?,
        code: range(code)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_of_clauses_tell_the_same() {
        let small = [1, 16, 0, 0, 2, 0, 5, 0, 9, 14, 0, 3, 0, 0, 0, 0];
        let mut fat = vec![0x41, 28, 0, 0];
        for word in [2_u32, 5, 9, 14, 3, 0] {
            fat.extend(word.to_le_bytes());
        }
        let wanted = Handler {
            kind: HandlerKind::Finally,
            block: (5, 14),
            code: (14, 17),
        };
        assert_eq!(handlers(&small), [wanted]);
        assert_eq!(handlers(&fat), [wanted]);
        assert_eq!(section_extent([1, 16, 0, 0]), (16, false));
        assert_eq!(section_extent([0xc1, 28, 1, 0]), (284, true));
        assert!(handlers(&[2, 16, 0, 0]).is_empty());
        assert!(has_sections(0x1b) && !has_sections(0x13) && !has_sections(0x2a));
    }
}
