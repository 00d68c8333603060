//! Single rows and cells, and binary search in sorted tables.

use crate::layout::TableLayout;
use crate::metadata::Metadata;
use crate::source::Source;
use crate::table::{Coded, MAX_COLUMNS, Table};
use crate::token::Token;
use std::ops::Range;

/// The cells of a row, in the order of [`Table::columns`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Row([u32; MAX_COLUMNS]);

impl Row {
    /// A 32-bit number, an offset in a heap or a row number.
    pub(crate) fn cell(&self, column: usize) -> u32 {
        self.0.get(column).copied().unwrap_or(0)
    }

    /// A 16-bit number.
    pub(crate) fn short(&self, column: usize) -> u16 {
        u16::try_from(self.cell(column) & 0xffff).unwrap_or(0)
    }

    /// A coded index; the nil token when its tag is not used.
    pub(crate) fn coded(&self, column: usize, coded: Coded) -> Token {
        Token::decode(coded, self.cell(column)).unwrap_or_default()
    }
}

impl TableLayout {
    fn row_offset(&self, rid: u32) -> Option<u64> {
        let index = rid.checked_sub(1).filter(|_| rid <= self.rows)?;
        self.offset
            .checked_add(u64::from(index).checked_mul(self.row_size.into())?)
    }
}

/// The number in two or four little-endian bytes.
fn number(bytes: &[u8]) -> u32 {
    bytes
        .iter()
        .rev()
        .fold(0, |value, byte| value << 8 | u32::from(*byte))
}

impl<S: Source> Metadata<S> {
    /// All cells of a row.
    pub(crate) fn row(&self, table: Table, rid: u32) -> Option<Row> {
        let layout = self.layout.table(table);
        let mut buffer = [0; MAX_COLUMNS * 4];
        let bytes = buffer.get_mut(..layout.row_size.into())?;
        if !self.source.read(layout.row_offset(rid)?, bytes) {
            return None;
        }
        let mut cells = [0; MAX_COLUMNS];
        let mut rest = &*bytes;
        for (cell, width) in cells.iter_mut().zip(layout.widths) {
            let (head, tail) = rest.split_at_checked(width.into())?;
            (*cell, rest) = (number(head), tail);
        }
        Some(Row(cells))
    }

    /// One cell of a row: works even when the rest of the row lies in a hole.
    pub(crate) fn cell(&self, table: Table, rid: u32, column: usize) -> Option<u32> {
        let layout = self.layout.table(table);
        let before = layout
            .widths
            .get(..column)?
            .iter()
            .map(|w| u64::from(*w))
            .sum::<u64>();
        let mut buffer = [0; 4];
        let bytes = buffer.get_mut(..usize::from(*layout.widths.get(column)?))?;
        let offset = layout.row_offset(rid)?.checked_add(before)?;
        self.source.read(offset, bytes).then(|| number(bytes))
    }

    /// The first row whose cell is at least `value`, in a table sorted by that column; one past the last row when all
    /// are below.
    pub(crate) fn lower_bound(&self, table: Table, column: usize, value: u32) -> Option<u32> {
        let (mut low, mut high) = (1, self.rows(table).saturating_add(1));
        while low < high {
            let middle = u32::midpoint(low, high);
            if self.cell(table, middle, column)? < value {
                low = middle.saturating_add(1);
            } else {
                high = middle;
            }
        }
        Some(low)
    }

    /// Rows among which all those whose cell is `value` are: just these in sorted tables, else all.
    fn candidates(&self, table: Table, column: usize, value: u32) -> Range<u32> {
        let all = 1..self.rows(table).saturating_add(1);
        if self.layout.streams.uncompressed {
            return all;
        }
        let Some(start) = self.lower_bound(table, column, value) else {
            return all;
        };
        match value
            .checked_add(1)
            .map(|next| self.lower_bound(table, column, next))
        {
            Some(Some(end)) => start..end,
            None => start..all.end,
            Some(None) => all,
        }
    }

    /// The rows whose cell is `value`. Found by binary search in `#~`, whose tables with a parent column are sorted by
    /// it (ECMA-335 II.22), and one after another in `#-` or where the search meets a hole.
    pub(crate) fn rows_where(
        &self,
        table: Table,
        column: usize,
        value: u32,
    ) -> impl Iterator<Item = u32> + '_ {
        self.candidates(table, column, value)
            .filter(move |rid| self.cell(table, *rid, column) == Some(value))
    }

    /// The members of `table` that row `rid` of `parent` owns by its list column, in order.
    pub(crate) fn list(
        &self,
        parent: Table,
        rid: u32,
        column: usize,
        table: Table,
    ) -> impl Iterator<Item = u32> + '_ {
        let pointers = self.layout.indirection(table);
        let range = self
            .list_range(parent, rid, column, pointers.unwrap_or(table))
            .unwrap_or(0..0);
        range.filter_map(move |index| match pointers {
            Some(pointers) => self
                .cell(pointers, index, 0)
                .filter(|rid| (1..=self.rows(table)).contains(rid)),
            None => Some(index),
        })
    }

    /// A list ends where that of the next row begins.
    fn list_range(
        &self,
        parent: Table,
        rid: u32,
        column: usize,
        target: Table,
    ) -> Option<Range<u32>> {
        let end_of_table = self.rows(target).saturating_add(1);
        let start = self.cell(parent, rid, column)?;
        let end = if rid < self.rows(parent) {
            self.cell(parent, rid.saturating_add(1), column)?
        } else {
            end_of_table
        };
        (start > 0).then_some(start..end.min(end_of_table))
    }
}
