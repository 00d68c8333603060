//! The blocks that a file consists of, in their order.

use crate::cursor::Cursor;
use crate::damage::Damage;

/// What a block holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BlockKind {
    Trace,
    Event,
    Metadata,
    SequencePoint,
    Stack,
    Thread,
    RemoveThread,
    LabelList,
    /// A kind that this crate does not know; the format asks readers to skip it.
    Other,
}

impl BlockKind {
    /// The name that version 4 writes; version 6 only has numbers, its blocks are called alike.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Trace => "Trace",
            Self::Event => "EventBlock",
            Self::Metadata => "MetadataBlock",
            Self::SequencePoint => "SPBlock",
            Self::Stack => "StackBlock",
            Self::Thread => "ThreadBlock",
            Self::RemoveThread => "RemoveThreadBlock",
            Self::LabelList => "LabelListBlock",
            Self::Other => "other",
        }
    }

    fn of_name(name: &[u8]) -> Self {
        match name {
            b"Trace" => Self::Trace,
            b"EventBlock" => Self::Event,
            b"MetadataBlock" => Self::Metadata,
            b"SPBlock" => Self::SequencePoint,
            b"StackBlock" => Self::Stack,
            _ => Self::Other,
        }
    }

    /// `None` for the end of the stream.
    fn of_number(number: u8) -> Option<Self> {
        Some(match number {
            0 => return None,
            1 => Self::Trace,
            2 => Self::Event,
            3 => Self::Metadata,
            4 => Self::SequencePoint,
            5 => Self::Stack,
            6 => Self::Thread,
            7 => Self::RemoveThread,
            8 => Self::LabelList,
            _ => Self::Other,
        })
    }
}

/// A whole block; what is inside has not been looked at.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Block<'a> {
    pub(crate) kind: BlockKind,
    /// Where in the file it begins, with its frame.
    pub(crate) offset: u64,
    /// Its length in the file, with its frame.
    pub(crate) len: u64,
    pub(crate) body: Cursor<'a>,
}

/// The file ends before the trace does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Truncation {
    /// Where the block begins that is not whole; the length of the file when it ends between two blocks.
    pub offset: u64,
    /// Bytes of that block that are there. None of its content is used: only the end of a block proves where its
    /// events begin.
    pub bytes: u64,
}

/// What comes next in a file.
#[derive(Debug)]
pub(crate) enum Step<'a> {
    Block(Block<'a>),
    /// Bytes that were skipped.
    Damaged(Damage),
    /// The mark of the end.
    End,
    Cut(Truncation),
}

/// Whether blocks are framed as serialised objects (versions 4 and 5) or have a header of four bytes (version 6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Framing {
    Objects,
    Headers,
}

/// How an object of versions 4 and 5 begins: two tags and the tag of its type's type.
const OBJECT: [u8; 3] = [5, 5, 1];
const END_OF_OBJECT: u8 = 6;
const END_OF_STREAM: u8 = 1;
/// Longest name of a type; "MetadataBlock" is the longest that is known.
const MAX_NAME: usize = 38;
/// The version of blocks that this crate reads.
const BLOCK_VERSION: i32 = 2;
/// Places after damage at which a whole object is looked for.
const MAX_TRIES: usize = 64;

/// Reads the file block by block.
#[derive(Clone, Debug)]
pub(crate) struct Blocks<'a> {
    file: &'a [u8],
    /// The next block; always inside the file or at its end.
    at: usize,
    framing: Framing,
    ended: bool,
}

/// Why there is no block.
enum NoBlock {
    /// The file ends inside it.
    Cut,
    Damaged(&'static str),
}

impl<'a> Blocks<'a> {
    /// `at` is behind the header of the trace.
    pub(crate) fn new(file: &'a [u8], at: u64, framing: Framing) -> Self {
        let at = usize::try_from(at).map_or(file.len(), |at| at.min(file.len()));
        Self {
            file,
            at,
            framing,
            ended: false,
        }
    }

    pub(crate) fn framing(&self) -> Framing {
        self.framing
    }

    /// The next block; `None` after the end was told.
    pub(crate) fn step(&mut self) -> Option<Step<'a>> {
        if self.ended {
            return None;
        }
        let step = match self.framing {
            Framing::Objects => self.object(),
            Framing::Headers => self.headed(),
        };
        self.ended = matches!(step, Step::End | Step::Cut(_));
        Some(step)
    }

    fn rest(&self) -> &'a [u8] {
        self.file.get(self.at..).unwrap_or_default()
    }

    fn cursor(&self) -> Cursor<'a> {
        Cursor::new(self.rest(), self.at as u64)
    }

    /// Moves to `offset` in the file.
    fn go_to(&mut self, offset: u64) {
        self.at = usize::try_from(offset).map_or(self.file.len(), |at| at.min(self.file.len()));
    }

    fn cut(&self) -> Step<'a> {
        Step::Cut(Truncation {
            offset: self.at as u64,
            bytes: self.rest().len() as u64,
        })
    }

    fn object(&mut self) -> Step<'a> {
        if self.rest().first() == Some(&END_OF_STREAM) {
            return Step::End;
        }
        let why = match object(self.cursor()) {
            Ok(block) => {
                self.go_to(block.offset.saturating_add(block.len));
                return Step::Block(block);
            }
            Err(NoBlock::Cut) => "its size reaches beyond the end of the file",
            Err(NoBlock::Damaged(why)) => why,
        };
        let cut = self.cut();
        let Some(next) = self.next_whole_object() else {
            return cut;
        };
        let offset = self.at as u64;
        self.go_to(next);
        Step::Damaged(Damage {
            offset,
            bytes: next.saturating_sub(offset),
            block: BlockKind::Other.name(),
            what: why,
        })
    }

    /// Where the file goes on behind what is broken here: a whole object, and behind it objects only, up to the end of
    /// the file. Anything less could be a piece of some event that holds a trace.
    fn next_whole_object(&self) -> Option<u64> {
        let behind = self.rest().get(1..)?;
        let starts = behind
            .windows(OBJECT.len())
            .enumerate()
            .filter(|(_, bytes)| **bytes == OBJECT)
            .map(|(index, _)| self.at.saturating_add(index).saturating_add(1));
        let is_whole = |at: &usize| object(self.moved(*at).cursor()).is_ok();
        starts
            .filter(is_whole)
            .take(MAX_TRIES)
            .find(|at| self.reaches_the_end(*at))
            .map(|at| at as u64)
    }

    fn moved(&self, at: usize) -> Self {
        Self { at, ..self.clone() }
    }

    fn reaches_the_end(&self, at: usize) -> bool {
        let mut probe = self.moved(at);
        loop {
            match object(probe.cursor()) {
                Ok(block) => probe.go_to(block.offset.saturating_add(block.len)),
                Err(_) => return probe.rest() == [END_OF_STREAM],
            }
        }
    }

    fn headed(&mut self) -> Step<'a> {
        let mut cursor = self.cursor();
        let Some(header) = cursor.u32() else {
            return self.cut();
        };
        let (len, [.., number]) = ((header & 0x00ff_ffff) as usize, header.to_le_bytes());
        let Some(kind) = BlockKind::of_number(number) else {
            return Step::End;
        };
        let Some(body) = cursor.part(len) else {
            return self.cut();
        };
        let offset = self.at as u64;
        self.go_to(cursor.offset());
        Step::Block(Block {
            kind,
            offset,
            len: cursor.offset().saturating_sub(offset),
            body,
        })
    }
}

/// An object of versions 4 and 5, up to its end tag.
fn object(mut cursor: Cursor<'_>) -> Result<Block<'_>, NoBlock> {
    let offset = cursor.offset();
    let tags = cursor.array().ok_or(NoBlock::Cut)?;
    if tags != OBJECT {
        return Err(NoBlock::Damaged("no object begins where one should"));
    }
    let version = cursor.i32().ok_or(NoBlock::Cut)?;
    let min_reader = cursor.i32().ok_or(NoBlock::Cut)?;
    let len = cursor.i32().ok_or(NoBlock::Cut)?;
    let len = usize::try_from(len)
        .ok()
        .filter(|len| *len <= MAX_NAME)
        .ok_or(NoBlock::Damaged("the name of its type is too long"))?;
    let kind = BlockKind::of_name(cursor.take(len).ok_or(NoBlock::Cut)?);
    if cursor.u8().ok_or(NoBlock::Cut)? != END_OF_OBJECT {
        return Err(NoBlock::Damaged("its type does not end where it should"));
    }
    if kind == BlockKind::Trace {
        return Err(NoBlock::Damaged("a second description of the trace"));
    }
    if version < BLOCK_VERSION || min_reader > BLOCK_VERSION {
        return Err(NoBlock::Damaged("a block of an unknown version"));
    }
    let size = cursor.i32().ok_or(NoBlock::Cut)?;
    let size = usize::try_from(size).map_err(|_| NoBlock::Damaged("its size is negative"))?;
    let padding = cursor.offset().wrapping_neg() & 3;
    cursor.take(padding as usize).ok_or(NoBlock::Cut)?;
    let body = cursor.part(size).ok_or(NoBlock::Cut)?;
    if cursor.u8().ok_or(NoBlock::Cut)? != END_OF_OBJECT {
        return Err(NoBlock::Damaged("it does not end where its size says"));
    }
    let len = cursor.offset().saturating_sub(offset);
    Ok(Block {
        kind,
        offset,
        len,
        body,
    })
}
