//! Parquet files made of lines of JSON.

use crate::tables::{Cell, Field, Kind, Table};
use parquet::basic::Compression;
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use parquet::errors::{ParquetError, Result};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;
use serde_json::{Map, Value};
use std::io::Write;
use std::sync::Arc;

/// Rows of a row group, and bytes of text in it: what is held in memory at a time.
const MAX_ROWS: usize = 50_000;
const MAX_TEXT: usize = 32 << 20;

/// Writes the rows of one table into one file.
pub(crate) struct Packer<W: Write + Send> {
    writer: SerializedFileWriter<W>,
    fields: Vec<Field>,
    /// By column.
    cells: Vec<Vec<Cell>>,
    rows: usize,
    text: usize,
}

impl<W: Write + Send> Packer<W> {
    pub(crate) fn new(table: Table, out: W) -> Result<Self> {
        let fields = table.fields();
        let schema = Arc::new(parse_message_type(&message(table, &fields))?);
        let properties = WriterProperties::builder()
            .set_compression(Compression::SNAPPY)
            .set_created_by(format!("asynctriage {}", env!("CARGO_PKG_VERSION")))
            .build();
        Ok(Self {
            writer: SerializedFileWriter::new(out, schema, Arc::new(properties))?,
            cells: fields.iter().map(|_| Vec::new()).collect(),
            fields,
            rows: 0,
            text: 0,
        })
    }

    pub(crate) fn row(&mut self, row: &Map<String, Value>) -> Result<()> {
        for (field, column) in self.fields.iter().zip(&mut self.cells) {
            let cell = Cell::from_json(row.get(field.name), field.kind);
            if let Cell::Text(text) = &cell {
                self.text = self.text.saturating_add(text.len());
            }
            column.push(cell);
        }
        self.rows = self.rows.saturating_add(1);
        if self.rows >= MAX_ROWS || self.text >= MAX_TEXT {
            self.flush()?;
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<()> {
        if self.rows == 0 {
            return Ok(());
        }
        let mut group = self.writer.next_row_group()?;
        for (field, cells) in self.fields.iter().zip(&mut self.cells) {
            column(&mut group, field.kind, &std::mem::take(cells))?;
        }
        group.close()?;
        (self.rows, self.text) = (0, 0);
        Ok(())
    }

    pub(crate) fn finish(mut self) -> Result<()> {
        self.flush()?;
        self.writer.close().map(|_| ())
    }
}

/// The schema in the format's own notation; every column may be empty.
fn message(table: Table, fields: &[Field]) -> String {
    let column = |f: &Field| {
        let kind = match f.kind {
            Kind::Text => return format!("OPTIONAL BYTE_ARRAY {} (STRING);", f.name),
            Kind::Int => "INT64",
            Kind::Double => "DOUBLE",
            Kind::Bool => "BOOLEAN",
        };
        format!("OPTIONAL {kind} {};", f.name)
    };
    let columns: Vec<String> = fields.iter().map(column).collect();
    format!("message {} {{ {} }}", table.name(), columns.join(" "))
}

fn column<W: Write + Send>(
    group: &mut SerializedRowGroupWriter<'_, W>,
    kind: Kind,
    cells: &[Cell],
) -> Result<()> {
    match kind {
        Kind::Text => typed::<ByteArrayType, W>(group, cells, |c| match c {
            Cell::Text(text) => Some(ByteArray::from(text.as_str())),
            _ => None,
        }),
        Kind::Int => typed::<Int64Type, W>(group, cells, |c| match c {
            Cell::Int(number) => Some(*number),
            _ => None,
        }),
        Kind::Double => typed::<DoubleType, W>(group, cells, |c| match c {
            Cell::Double(number) => Some(*number),
            _ => None,
        }),
        Kind::Bool => typed::<BoolType, W>(group, cells, |c| match c {
            Cell::Bool(is) => Some(*is),
            _ => None,
        }),
    }
}

fn typed<T: DataType, W: Write + Send>(
    group: &mut SerializedRowGroupWriter<'_, W>,
    cells: &[Cell],
    of: impl Fn(&Cell) -> Option<T::T>,
) -> Result<()> {
    let found: Vec<Option<T::T>> = cells.iter().map(of).collect();
    let levels: Vec<i16> = found.iter().map(|v| i16::from(v.is_some())).collect();
    let values: Vec<T::T> = found.into_iter().flatten().collect();
    let mut writer = group
        .next_column()?
        .ok_or_else(|| ParquetError::General("fewer columns than fields".into()))?;
    writer
        .typed::<T>()
        .write_batch(&values, Some(&levels), None)?;
    writer.close()
}
