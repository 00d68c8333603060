//! Where each table lies and how wide its columns are (ECMA-335 II.24.2.6).

use crate::root::{MetadataError, Stream, Streams};
use crate::source::{Source, array, u32_at, u64_at};
use crate::table::{Column, MAX_COLUMNS, Table};

/// Table numbers that the header has a bit for.
const TABLES: usize = 64;
/// A row number must fit into a token.
const MAX_ROWS: u32 = 0x00ff_ffff;

/// The place and the shape of one table.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct TableLayout {
    /// First row, in bytes from the root.
    pub(crate) offset: u64,
    /// How many rows lie within the source.
    pub(crate) rows: u32,
    /// Bytes of a row.
    pub(crate) row_size: u8,
    /// Bytes of each column: 2 or 4, 0 where there is none.
    pub(crate) widths: [u8; MAX_COLUMNS],
}

/// Everything that the headers say about where things are.
#[derive(Clone, Debug)]
pub(crate) struct Layout {
    pub(crate) streams: Streams,
    tables: [TableLayout; TABLES],
}

impl Layout {
    pub(crate) fn table(&self, table: Table) -> TableLayout {
        self.tables.get(table as usize).copied().unwrap_or_default()
    }

    /// The pointer table that member lists of `table` go through here, if any.
    pub(crate) fn indirection(&self, table: Table) -> Option<Table> {
        table
            .pointer_table()
            .filter(|pointers| self.table(*pointers).rows > 0)
    }
}

/// Which index widths the headers ask for.
struct Widths {
    heap_flags: u8,
    all_large: bool,
    /// Rows of each table, of this metadata or of the module that a PDB belongs to.
    rows: [u32; TABLES],
}

impl Widths {
    fn rows(&self, table: Table) -> u32 {
        self.rows.get(table as usize).copied().unwrap_or(0)
    }

    fn of(&self, column: Column) -> u8 {
        let wide = |wide: bool| if wide { 4 } else { 2 };
        match column {
            Column::U16 => 2,
            Column::U32 => 4,
            Column::Str => wide(self.heap_flags & 1 != 0),
            Column::Guid => wide(self.heap_flags & 2 != 0),
            Column::Blob => wide(self.heap_flags & 4 != 0),
            Column::Rid(table) => wide(self.all_large || self.rows(table) > 0xffff),
            Column::List(table) => {
                let target = table
                    .pointer_table()
                    .filter(|p| self.rows(*p) > 0)
                    .unwrap_or(table);
                self.of(Column::Rid(target))
            }
            Column::Coded(coded) => {
                let most = coded
                    .tables()
                    .iter()
                    .flatten()
                    .map(|t| self.rows(*t))
                    .max()
                    .unwrap_or(0);
                wide(self.all_large || most >= 0x1_0000_u32 >> coded.bits())
            }
        }
    }
}

/// Reads the header of the tables and works out where each lies.
pub(crate) fn read_layout(source: &impl Source, streams: Streams) -> Result<Layout, MetadataError> {
    let start = streams.tables.offset;
    let header: [u8; 8] =
        array(source, start).ok_or(MetadataError::Unreadable { offset: start })?;
    let [.., heap_flags, _] = header;
    let valid_at = start.saturating_add(8);
    let valid = u64_at(source, valid_at).ok_or(MetadataError::Unreadable { offset: valid_at })?;
    let (own_rows, mut at) = read_row_counts(source, start.saturating_add(24), valid)?;
    if heap_flags & 0x40 != 0 {
        at = at.saturating_add(4);
    }
    let mut widths = Widths {
        heap_flags,
        all_large: streams.minimal_delta,
        rows: own_rows,
    };
    if let Some(pdb) = streams.pdb {
        add_referenced_rows(source, pdb, &mut widths.rows)?;
    }
    let mut layout = Layout {
        streams,
        tables: [TableLayout::default(); TABLES],
    };
    for ((number, slot), rows) in (0_u8..).zip(layout.tables.iter_mut()).zip(own_rows) {
        match Table::from_number(number) {
            Some(table) => {
                *slot = place(table, at, rows, source.len(), &widths);
                at = at.saturating_add(u64::from(rows).saturating_mul(slot.row_size.into()));
            }
            // What follows a table of unknown shape cannot be found.
            None if rows > 0 => break,
            None => {}
        }
    }
    Ok(layout)
}

/// The table of `rows` rows at `offset`; rows beyond the end of the source are not counted, so that walking over a
/// table takes no longer than the source is.
fn place(table: Table, offset: u64, rows: u32, source_len: u64, widths: &Widths) -> TableLayout {
    let mut layout = TableLayout {
        offset,
        ..TableLayout::default()
    };
    for (slot, column) in layout.widths.iter_mut().zip(table.columns()) {
        *slot = widths.of(*column);
        layout.row_size = layout.row_size.saturating_add(*slot);
    }
    let fit = source_len
        .saturating_sub(offset)
        .checked_div(layout.row_size.into())
        .unwrap_or(0);
    layout.rows = rows.min(u32::try_from(fit).unwrap_or(u32::MAX));
    layout
}

/// The row counts of the tables whose bits are set in `present`, and the offset behind them.
fn read_row_counts(
    source: &impl Source,
    at: u64,
    present: u64,
) -> Result<([u32; TABLES], u64), MetadataError> {
    let mut counts = [0; TABLES];
    let mut at = at;
    for (number, count) in (0_u8..).zip(counts.iter_mut()) {
        if present.checked_shr(number.into()).unwrap_or(0) & 1 == 0 {
            continue;
        }
        let rows = u32_at(source, at).ok_or(MetadataError::Unreadable { offset: at })?;
        if rows > MAX_ROWS {
            return Err(MetadataError::TooManyRows {
                table: number,
                rows,
            });
        }
        *count = rows;
        at = at.saturating_add(4);
    }
    Ok((counts, at))
}

/// A portable PDB has none of the module's tables, but its columns are as wide as those tables are long.
fn add_referenced_rows(
    source: &impl Source,
    pdb: Stream,
    rows: &mut [u32; TABLES],
) -> Result<(), MetadataError> {
    // The stream begins with a 20-byte identity and the token of the entry point.
    let mask_at = pdb.offset.saturating_add(24);
    let mask = u64_at(source, mask_at).ok_or(MetadataError::Unreadable { offset: mask_at })?;
    let (referenced, _) = read_row_counts(source, mask_at.saturating_add(8), mask)?;
    for (own, referenced) in rows.iter_mut().zip(referenced) {
        *own = (*own).max(referenced);
    }
    Ok(())
}
