//! The folder of rows.
//!
//! ```text
//! out/schema.json                                               the tables and their version
//! out/ndjson/TABLE/day=2026-03-14/service=Shop/ID.ndjson         the rows of one dump
//! out/parquet/TABLE/day=2026-03-14/service=Shop/part-0-of-1.parquet  the rows of all dumps of a day and service
//! ```

use crate::TABLES_VERSION;
use crate::common::Common;
use crate::pack::Packer;
use crate::tables::{self, Origin, Row, Status, Table};
use asynctriage_report::{FleetReport, Report};
use serde_json::{Map, Value};
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::SystemTime;
use tempfile::NamedTempFile;

/// What a day or service is called that is not known.
const UNKNOWN: &str = "unknown";
/// The longest name of a service in a path.
const MAX_NAME: usize = 100;
/// The longest line of a file of rows.
const MAX_LINE: u64 = 64 << 20;

/// Why rows could not be kept.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// A file could not be read or written.
    #[error("{0}")]
    Io(PathBuf, #[source] io::Error),
    /// A file of rows holds something else.
    #[error("{0} holds something else than rows; remove it, and its dump is read again")]
    Damaged(PathBuf),
    /// The folder is of another version.
    #[error("{0} holds tables of version {1}, this is version {TABLES_VERSION}")]
    Version(PathBuf, String),
    /// A Parquet file could not be made.
    #[error("{0}")]
    Parquet(PathBuf, #[source] parquet::errors::ParquetError),
}

impl StoreError {
    fn io(path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |e| Self::Io(path, e)
    }
}

/// A dump whose rows are kept.
#[derive(Clone, Debug)]
pub struct Done {
    /// SHA-256 of the file.
    pub id: String,
    /// The file, as it was named.
    pub path: String,
    /// Its size.
    pub bytes: u64,
    /// When it was last written to, in nanoseconds since 1970.
    pub modified: Option<i64>,
    /// Whether the analysis had failed, so that the next run tries again.
    pub failed: bool,
    file: PathBuf,
}

/// A folder of rows, and the part of a run that writes to it.
#[derive(Debug)]
pub struct Store {
    root: PathBuf,
    /// Number of this part, and of all parts.
    shard: (u32, u32),
}

impl Store {
    /// Opens or makes the folder for part `shard.0` of `shard.1`.
    ///
    /// # Errors
    /// When it cannot be written to, or holds tables of another version.
    pub fn open(root: &Path, shard: (u32, u32)) -> Result<Self, StoreError> {
        let schema = root.join("schema.json");
        if let Ok(text) = fs::read_to_string(&schema) {
            let known: Value = serde_json::from_str(&text).unwrap_or_default();
            let version = known.get("version").and_then(Value::as_str);
            let version = version.unwrap_or_default();
            if version.split('.').next() != TABLES_VERSION.split('.').next() {
                return Err(StoreError::Version(root.to_owned(), version.to_owned()));
            }
        }
        let store = Self {
            root: root.to_owned(),
            shard,
        };
        let text = format!("{:#}\n", tables::schema());
        store.write(&schema, true, |out| out.write_all(text.as_bytes()))?;
        Ok(store)
    }

    /// The part as rows name it.
    #[must_use]
    pub fn shard(&self) -> String {
        format!("{}/{}", self.shard.0, self.shard.1)
    }

    /// The dumps whose rows are kept.
    ///
    /// # Errors
    /// When a folder cannot be read.
    pub fn done(&self) -> Result<Vec<Done>, StoreError> {
        let mut out = Vec::new();
        for partition in self.partitions()? {
            for file in files(&self.lines(Table::Dumps, &partition))? {
                // a row that was cut by a power failure is no row: the dump is read again
                let mut first = None;
                let read = rows_of(&file, &mut |row| {
                    first.get_or_insert(row);
                    Ok(())
                });
                if let (Ok(()), Some(row)) = (read, first) {
                    out.push(done(&row, file));
                }
            }
        }
        Ok(out)
    }

    /// Keeps the rows of a dump; those of a try that had failed go. When two parts had the same dump, the first one's rows
    /// stay.
    ///
    /// # Errors
    /// When they cannot be written.
    pub fn put(
        &self,
        origin: &Origin,
        report: &Report,
        failed_before: Option<&Done>,
    ) -> Result<(), StoreError> {
        if let Some(done) = failed_before {
            fs::remove_file(&done.file).map_err(StoreError::io(&done.file))?;
        }
        let partition = partition(report);
        for (table, rows) in tables::rows(origin, report).iter() {
            if rows.is_empty() {
                continue;
            }
            let folder = self.lines(table, &partition);
            let file = folder.join(format!("{}.ndjson", origin.id));
            let replaces = table != Table::Dumps;
            self.write(&file, replaces, |out| lines(out, table, rows))?;
        }
        Ok(())
    }

    /// Makes the Parquet files of this part anew where rows came or went since; the only part makes those of all.
    ///
    /// # Errors
    /// When a file cannot be read or written.
    pub fn pack(&self) -> Result<(), StoreError> {
        for partition in self.partitions()? {
            let dumps = self.lines(Table::Dumps, &partition);
            let part = self.part(Table::Dumps, &partition);
            if changed(&part).is_some_and(|made| changed(&dumps).is_some_and(|at| at < made)) {
                continue;
            }
            let ids = self.own(&dumps)?;
            for table in Table::ALL {
                self.pack_table(*table, &partition, &ids)?;
            }
        }
        Ok(())
    }

    /// The dumps of a folder that belong to this part.
    fn own(&self, dumps: &Path) -> Result<Vec<String>, StoreError> {
        let mut ids = Vec::new();
        let shard = self.shard();
        for file in files(dumps)? {
            rows_of(&file, &mut |row| {
                let text = |name: &str| row.get(name).and_then(Value::as_str).unwrap_or_default();
                if self.shard.1 == 1 || text("shard") == shard {
                    ids.push(text("dump_id").to_owned());
                }
                Ok(())
            })?;
        }
        Ok(ids)
    }

    fn pack_table(&self, table: Table, partition: &str, ids: &[String]) -> Result<(), StoreError> {
        let part = self.part(table, partition);
        let from = self.lines(table, partition);
        let from = ids.iter().map(|id| from.join(format!("{id}.ndjson")));
        if ids.is_empty() {
            remove(&part)?;
        } else {
            // without rows it holds the columns: a query over all tables finds each of them

            let failed = |e| StoreError::Parquet(part.clone(), e);
            let out = self.beside(&part)?;
            let mut packer = Packer::new(table, BufWriter::new(out.as_file())).map_err(failed)?;
            for file in from.filter(|f| f.exists()) {
                rows_of(&file, &mut |row| packer.row(&row).map_err(failed))?;
            }
            packer.finish().map_err(failed)?;
            out.persist(&part)
                .map_err(|e| StoreError::Io(part.clone(), e.error))?;
        }
        if self.shard.1 == 1 {
            // the parts of a run in several hold rows that are now in this one
            let folder = part.parent().unwrap_or(&self.root);
            for other in files(folder)?.iter().filter(|f| **f != part) {
                remove(other)?;
            }
        }
        Ok(())
    }

    /// Adds up what all dumps of the folder have in common, those of other parts and runs, too.
    ///
    /// # Errors
    /// When a file cannot be read.
    pub fn common(&self) -> Result<FleetReport, StoreError> {
        let mut common = Common::default();
        let partitions = self.partitions()?;
        for partition in &partitions {
            for file in files(&self.lines(Table::Dumps, partition))? {
                rows_of(&file, &mut |row| {
                    common.dump(&row);
                    Ok(())
                })?;
            }
        }
        for partition in &partitions {
            for file in files(&self.lines(Table::Findings, partition))? {
                rows_of(&file, &mut |row| {
                    common.finding(&row);
                    Ok(())
                })?;
            }
        }
        Ok(common.finish())
    }

    /// `day=…/service=…` of all dumps.
    fn partitions(&self) -> Result<Vec<String>, StoreError> {
        let top = self.root.join("ndjson").join(Table::Dumps.name());
        let mut out = Vec::new();
        for day in names(&top)? {
            for service in names(&top.join(&day))? {
                out.push(format!("{day}/{service}"));
            }
        }
        Ok(out)
    }

    fn lines(&self, table: Table, partition: &str) -> PathBuf {
        self.root.join("ndjson").join(table.name()).join(partition)
    }

    fn part(&self, table: Table, partition: &str) -> PathBuf {
        let folder = self.root.join("parquet").join(table.name()).join(partition);
        folder.join(format!("part-{}-of-{}.parquet", self.shard.0, self.shard.1))
    }

    /// A new file beside another that takes its place when it is complete; engines pass over names that begin with a dot.
    fn beside(&self, file: &Path) -> Result<NamedTempFile, StoreError> {
        let folder = file.parent().unwrap_or(&self.root);
        fs::create_dir_all(folder).map_err(StoreError::io(folder))?;
        let mut builder = tempfile::Builder::new();
        builder.prefix(".").suffix(".tmp");
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            // those that the user's umask leaves: a fleet's folder is shared
            builder.permissions(fs::Permissions::from_mode(0o666));
        }
        builder.tempfile_in(folder).map_err(StoreError::io(folder))
    }

    fn write(
        &self,
        file: &Path,
        replaces: bool,
        fill: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> Result<(), StoreError> {
        let new = self.beside(file)?;
        let mut out = BufWriter::new(new.as_file());
        fill(&mut out)
            .and_then(|()| out.flush())
            .map_err(StoreError::io(file))?;
        drop(out);
        let kept = if replaces {
            new.persist(file)
        } else {
            new.persist_noclobber(file)
        };
        match kept {
            Ok(_) => Ok(()),
            Err(e) if !replaces && e.error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            Err(e) => Err(StoreError::Io(file.to_owned(), e.error)),
        }
    }
}

fn done(row: &Map<String, Value>, file: PathBuf) -> Done {
    let text = |name: &str| row.get(name).and_then(Value::as_str).unwrap_or_default();
    Done {
        id: text("dump_id").to_owned(),
        path: text("path").to_owned(),
        bytes: row.get("bytes").and_then(Value::as_u64).unwrap_or_default(),
        modified: row.get("modified_ns").and_then(Value::as_i64),
        failed: text("status") == Status::Failed.as_str(),
        file,
    }
}

/// Where the rows of a dump lie: by the day that it was taken, and the program.
fn partition(report: &Report) -> String {
    let day = report.dump.time.as_deref().and_then(|t| t.get(..10));
    let process = &report.process;
    let service = process
        .entry_assembly
        .as_ref()
        .or(process.executable.as_ref());
    format!(
        "day={}/service={}",
        escaped(day.unwrap_or(UNKNOWN)),
        escaped(service.map_or(UNKNOWN, |s| s))
    )
}

/// As engines write values of partitions: what is no letter, digit, dot, dash or underscore as `%2F`.
fn escaped(value: &str) -> String {
    let mut out = String::new();
    for byte in value.bytes().take(MAX_NAME) {
        let plain = byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_');
        if plain {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}

fn lines(out: &mut dyn Write, table: Table, rows: &[Row]) -> io::Result<()> {
    let fields = table.fields();
    for row in rows {
        let cells = fields.iter().zip(row);
        let line: Map<String, Value> = cells
            .map(|(field, cell)| (field.name.to_owned(), cell.to_json()))
            .collect();
        serde_json::to_writer(&mut *out, &line)?;
        out.write_all(b"\n")?;
    }
    Ok(())
}

/// The rows of a file one by one.
fn rows_of(
    file: &Path,
    each: &mut dyn FnMut(Map<String, Value>) -> Result<(), StoreError>,
) -> Result<(), StoreError> {
    let open = File::open(file).map_err(StoreError::io(file))?;
    let mut reader = BufReader::new(open);
    let mut line = Vec::new();
    loop {
        line.clear();
        let mut limited = io::Read::take(&mut reader, MAX_LINE);
        let read = limited
            .read_until(b'\n', &mut line)
            .map_err(StoreError::io(file))?;
        if read == 0 {
            return Ok(());
        }
        let row = serde_json::from_slice(&line);
        each(row.map_err(|_| StoreError::Damaged(file.to_owned()))?)?;
    }
}

/// The names in a folder, sorted; none when there is no such folder.
fn names(folder: &Path) -> Result<Vec<String>, StoreError> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(e) => return Err(StoreError::Io(folder.to_owned(), e)),
    };
    let mut out = Vec::new();
    for entry in entries {
        let entry = entry.map_err(StoreError::io(folder))?;
        let name = entry.file_name().to_string_lossy().into_owned();
        // files that are being written
        if !name.starts_with('.') {
            out.push(name);
        }
    }
    out.sort();
    Ok(out)
}

fn files(folder: &Path) -> Result<Vec<PathBuf>, StoreError> {
    let names = names(folder)?.into_iter();
    Ok(names.map(|n| folder.join(n)).collect())
}

fn changed(path: &Path) -> Option<SystemTime> {
    fs::metadata(path).and_then(|m| m.modified()).ok()
}

fn remove(file: &Path) -> Result<(), StoreError> {
    match fs::remove_file(file) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => Err(StoreError::Io(file.to_owned(), e)),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests;
