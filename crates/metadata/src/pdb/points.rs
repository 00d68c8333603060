//! Sequence points: which IL belongs to which line.

use crate::compressed;

/// Points of one method at most: a blob of 1 MiB could hold half a million.
const MAX_POINTS: usize = 1 << 18;

/// The begin of a run of IL that belongs to one statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SequencePoint {
    /// First instruction of the run.
    pub il_offset: u32,
    /// Row of the source file.
    pub document: u32,
    /// Line from 1; `None` for code that is not in the source.
    pub line: Option<u32>,
}

/// Decodes the points of a method. `document` is that of its row, 0 when the blob names it. `None` when the blob does
/// not make sense to its end: half a table would give wrong lines.
pub(super) fn decode(blob: &[u8], document: u32) -> Option<Vec<SequencePoint>> {
    let mut rest = blob;
    compressed::unsigned(&mut rest)?;
    let document = if document == 0 {
        compressed::unsigned(&mut rest)?
    } else {
        document
    };
    let mut state = State {
        document,
        il_offset: 0,
        place: None,
        points: Vec::new(),
    };
    while !rest.is_empty() {
        state.record(&mut rest)?;
        if state.points.len() > MAX_POINTS {
            return None;
        }
    }
    Some(state.points)
}

struct State {
    document: u32,
    il_offset: u32,
    /// Line and column of the last visible point.
    place: Option<(u32, u32)>,
    points: Vec<SequencePoint>,
}

impl State {
    fn record(&mut self, rest: &mut &[u8]) -> Option<()> {
        let delta = compressed::unsigned(rest)?;
        if delta == 0 && !self.points.is_empty() {
            self.document = compressed::unsigned(rest)?;
            return Some(());
        }
        self.il_offset = self.il_offset.checked_add(delta)?;
        let lines = compressed::unsigned(rest)?;
        let columns = if lines == 0 {
            i32::try_from(compressed::unsigned(rest)?).ok()?
        } else {
            compressed::signed(rest)?
        };
        let line = if lines == 0 && columns == 0 {
            None
        } else {
            Some(self.visible(rest)?)
        };
        self.points.push(SequencePoint {
            il_offset: self.il_offset,
            document: self.document,
            line,
        });
        Some(())
    }

    /// Where a point begins: counted from the point before, of the first one from 0.
    fn visible(&mut self, rest: &mut &[u8]) -> Option<u32> {
        let place = match self.place {
            None => (compressed::unsigned(rest)?, compressed::unsigned(rest)?),
            Some((line, column)) => (
                line.checked_add_signed(compressed::signed(rest)?)?,
                column.checked_add_signed(compressed::signed(rest)?)?,
            ),
        };
        self.place = Some(place);
        Some(place.0)
    }
}
