//! Tables with aligned columns; what does not fit a column goes on below, in the same column.

use super::page::{Page, Span};
use super::style::Role;

/// Columns between two columns.
const GAP: usize = 2;
/// Fewest columns of a flexible column.
const NARROWEST: usize = 12;

/// How a column is laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fit {
    /// As wide as its widest cell, numbers to the right.
    Right,
    /// As wide as its widest cell.
    Left,
    /// As wide as its widest cell when there is room, else wrapped.
    Flexible,
}

/// A column and its title.
#[derive(Clone, Debug)]
pub(crate) struct Column {
    title: &'static str,
    fit: Fit,
}

impl Column {
    pub(crate) const fn right(title: &'static str) -> Self {
        Self {
            title,
            fit: Fit::Right,
        }
    }

    pub(crate) const fn left(title: &'static str) -> Self {
        Self {
            title,
            fit: Fit::Left,
        }
    }

    pub(crate) const fn flexible(title: &'static str) -> Self {
        Self {
            title,
            fit: Fit::Flexible,
        }
    }
}

/// Rows of cells; columns that are empty in all rows are not shown.
#[derive(Debug)]
pub(crate) struct Table {
    columns: Vec<Column>,
    rows: Vec<Vec<String>>,
}

impl Table {
    pub(crate) fn new(columns: Vec<Column>) -> Self {
        Self {
            columns,
            rows: Vec::new(),
        }
    }

    /// One cell for each column.
    pub(crate) fn row(&mut self, cells: Vec<String>) {
        self.rows.push(cells);
    }

    pub(crate) fn write(&self, page: &mut Page<'_>, indent: &str) {
        let used: Vec<usize> = (0..self.columns.len())
            .filter(|c| self.cells(*c).any(|cell| !cell.is_empty()))
            .collect();
        let widths = self.widths(page, &used, indent.len());
        let titles: Vec<&str> = self.columns.iter().map(|c| c.title).collect();
        self.write_row(page, indent, &used, &widths, &titles, Role::Dim);
        for row in &self.rows {
            let cells: Vec<&str> = row.iter().map(String::as_str).collect();
            self.write_row(page, indent, &used, &widths, &cells, Role::Plain);
        }
    }

    fn cells(&self, column: usize) -> impl Iterator<Item = &str> {
        self.rows
            .iter()
            .filter_map(move |row| row.get(column))
            .map(String::as_str)
    }

    fn widths(&self, page: &Page<'_>, used: &[usize], indent: usize) -> Vec<usize> {
        let widest = |c: usize| {
            let title = self.columns.get(c).map_or(0, |column| column.title.len());
            self.cells(c)
                .map(|cell| page.span(Role::Plain, cell).width())
                .fold(title, usize::max)
        };
        let mut widths: Vec<usize> = used.iter().map(|c| widest(*c)).collect();
        let gaps = used
            .len()
            .saturating_sub(1)
            .saturating_mul(GAP)
            .saturating_add(indent);
        let is_flexible = |c: &usize| {
            self.columns
                .get(*c)
                .is_some_and(|column| column.fit == Fit::Flexible)
        };
        let fixed: usize = used
            .iter()
            .zip(&widths)
            .filter(|(c, _)| !is_flexible(c))
            .map(|(_, w)| *w)
            .fold(gaps, usize::saturating_add);
        let mut room = page.width().saturating_sub(fixed);
        // the narrow ones first: what they do not need is left for the wide ones
        let mut flexible: Vec<usize> = (0..used.len())
            .filter(|i| used.get(*i).is_some_and(is_flexible))
            .collect();
        flexible.sort_by_key(|i| widths.get(*i).copied());
        let mut left = flexible.len();
        for i in flexible {
            let share = room.checked_div(left).unwrap_or(0).max(NARROWEST);
            left = left.saturating_sub(1);
            if let Some(width) = widths.get_mut(i) {
                *width = (*width).min(share);
                room = room.saturating_sub(*width);
            }
        }
        widths
    }

    fn write_row(
        &self,
        page: &mut Page<'_>,
        indent: &str,
        used: &[usize],
        widths: &[usize],
        cells: &[&str],
        role: Role,
    ) {
        let wrapped: Vec<Vec<Vec<Span>>> = used
            .iter()
            .zip(widths)
            .map(|(c, width)| {
                let span = page.span(role, cells.get(*c).copied().unwrap_or_default());
                page.wrap((*width).max(1), &[span])
            })
            .collect();
        let height = wrapped.iter().map(Vec::len).max().unwrap_or(0);
        for y in 0..height {
            page.put_padded(&[], indent.len(), false);
            for (x, (lines, width)) in wrapped.iter().zip(widths).enumerate() {
                let right = used
                    .get(x)
                    .and_then(|c| self.columns.get(*c))
                    .is_some_and(|column| column.fit == Fit::Right);
                page.put_padded(&[], if x == 0 { 0 } else { GAP }, false);
                page.put_padded(
                    lines.get(y).map(Vec::as_slice).unwrap_or_default(),
                    *width,
                    right,
                );
            }
            page.end_line();
        }
    }
}
