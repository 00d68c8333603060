//! From segments that may overlap to pieces that do not.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// What is known of a piece of the address space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Content {
    /// The dump file holds it, from this byte on.
    At(u64),
    /// The file of this number holds it, from this byte on, and the dump does not.
    Under(u32, u64),
    /// The process had memory there, the dump does not hold it.
    NotDumped,
    /// It would lie past the end of the file.
    Truncated,
}

/// The addresses `start..end`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) content: Content,
}

impl Piece {
    /// The part of this piece from `start` to `end`, which lie inside it.
    fn cut(&self, start: u64, end: u64) -> Self {
        let skipped = start.wrapping_sub(self.start);
        let content = match self.content {
            Content::At(offset) => Content::At(offset.wrapping_add(skipped)),
            Content::Under(file, offset) => Content::Under(file, offset.wrapping_add(skipped)),
            other => other,
        };
        Self {
            start,
            end,
            content,
        }
    }

    /// Whether `next` goes on where this piece ends, in memory and in the file.
    fn continues_in(&self, next: &Self) -> bool {
        let len = self.end.wrapping_sub(self.start);
        self.end == next.start
            && match (self.content, next.content) {
                (Content::At(a), Content::At(b)) => Some(b) == a.checked_add(len),
                (Content::Under(f, a), Content::Under(g, b)) => {
                    f == g && Some(b) == a.checked_add(len)
                }
                (a, b) => a == b,
            }
    }

    /// Which of two pieces wins an address that both claim: bytes of the dump win over those of other files, these win
    /// over holes, then the earlier header wins.
    fn rank(&self, index: usize) -> (u8, usize) {
        let class = match self.content {
            Content::At(_) => 0,
            Content::Under(..) => 1,
            Content::NotDumped | Content::Truncated => 2,
        };
        (class, index)
    }
}

/// Sorts `pieces` by address, resolves overlaps, and joins neighbours that go on in memory and in the file.
///
/// Honest dumps have no overlaps and come sorted; for them this is one pass. Any other input costs n log n.
pub(crate) fn flatten(mut pieces: Vec<Piece>) -> Vec<Piece> {
    pieces.retain(|p| p.start < p.end);
    let mut order: Vec<usize> = (0..pieces.len()).collect();
    order.sort_by_key(|i| pieces.get(*i).map(|p| p.start));
    let mut sweep = Sweep {
        pieces: &pieces,
        active: BinaryHeap::new(),
        at: 0,
        out: Vec::with_capacity(pieces.len()),
    };
    for index in order {
        let Some(piece) = pieces.get(index) else {
            continue;
        };
        sweep.advance(piece.start);
        sweep.active.push(Reverse((piece.rank(index), index)));
    }
    sweep.advance(u64::MAX);
    sweep.out
}

/// A line that moves up the address space.
struct Sweep<'a> {
    pieces: &'a [Piece],
    /// Pieces that began at or below `at`, best first.
    active: BinaryHeap<Reverse<((u8, usize), usize)>>,
    at: u64,
    out: Vec<Piece>,
}

impl Sweep<'_> {
    /// Emits the best piece for every address up to `to`.
    fn advance(&mut self, to: u64) {
        while self.at < to {
            let Some(Reverse((_, index))) = self.active.peek() else {
                break;
            };
            let Some(piece) = self.pieces.get(*index).filter(|p| p.end > self.at) else {
                self.active.pop();
                continue;
            };
            let end = piece.end.min(to);
            let part = piece.cut(self.at, end);
            self.emit(part);
            self.at = end;
        }
        self.at = to;
    }

    fn emit(&mut self, part: Piece) {
        match self.out.last_mut() {
            Some(last) if last.continues_in(&part) => last.end = part.end,
            _ => self.out.push(part),
        }
    }
}
