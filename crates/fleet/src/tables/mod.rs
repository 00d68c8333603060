//! The tables: their columns, and the rows that a report makes.

mod cell;
mod chains;
mod dumps;
mod findings;
mod requests;
mod waits;

pub use cell::{Cell, Field, Kind};
pub use dumps::{Origin, Status};

use crate::TABLES_VERSION;
use asynctriage_report::{Report, Request};
use serde_json::{Map, Value, json};

/// A table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Table {
    /// One row for each dump, those that could not be read, too.
    Dumps,
    /// One row for each group of chains.
    Chains,
    /// One row for each finding.
    Findings,
    /// One row for each request that is served.
    Requests,
    /// One row for each call to another server that a request waits for.
    Calls,
    /// One row for each thread that waits synchronously.
    Waits,
}

impl Table {
    /// All of them; the one that says that a dump is done comes last.
    pub const ALL: &'static [Self] = &[
        Self::Chains,
        Self::Findings,
        Self::Requests,
        Self::Calls,
        Self::Waits,
        Self::Dumps,
    ];

    /// Its name: that of its folder.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Dumps => "dumps",
            Self::Chains => "chains",
            Self::Findings => "findings",
            Self::Requests => "requests",
            Self::Calls => "calls",
            Self::Waits => "waits",
        }
    }

    const fn about(self) -> &'static str {
        match self {
            Self::Dumps => "One row for each dump, those that could not be read, too.",
            Self::Chains => "One row for each group of equal chains that wait.",
            Self::Findings => "One row for each finding.",
            Self::Requests => "One row for each request that the process serves.",
            Self::Calls => {
                "One row for each call to another server that a request waits for. Its `span_id` is the `parent_span_id` of \
                 the request that it becomes there."
            }
            Self::Waits => "One row for each thread that waits synchronously.",
        }
    }

    /// Its columns, in the order of the rows' cells.
    #[must_use]
    pub fn fields(self) -> Vec<Field> {
        let own: Vec<Field> = match self {
            Self::Dumps => fields(dumps::COLUMNS),
            Self::Chains => fields(chains::COLUMNS),
            Self::Findings => fields(findings::COLUMNS),
            Self::Requests => fields(requests::COLUMNS),
            Self::Calls => fields(requests::CALLS),
            Self::Waits => fields(waits::COLUMNS),
        };
        let mut all = vec![DUMP_ID];
        all.extend(own);
        all
    }
}

const DUMP_ID: Field = Field {
    name: "dump_id",
    kind: Kind::Text,
    about: "SHA-256 of the dump's file: joins the tables",
};

fn fields<T>(columns: &[Column<T>]) -> Vec<Field> {
    columns.iter().map(|c| c.field).collect()
}

/// What a cell is made of.
struct Of<'a, T> {
    origin: &'a Origin,
    report: &'a Report,
    /// The request that a call belongs to.
    request: Option<&'a Request>,
    item: &'a T,
}

/// A column, and what stands in it.
struct Column<T> {
    field: Field,
    of: fn(&Of<'_, T>) -> Cell,
}

const fn column<T>(
    name: &'static str,
    kind: Kind,
    about: &'static str,
    of: fn(&Of<'_, T>) -> Cell,
) -> Column<T> {
    Column {
        field: Field { name, kind, about },
        of,
    }
}

/// The cells of one row.
pub type Row = Vec<Cell>;

/// The rows of one dump.
#[derive(Clone, Debug, Default)]
pub struct Rows {
    tables: Vec<(Table, Vec<Row>)>,
}

impl Rows {
    /// By table, in the order of [`Table::ALL`].
    pub fn iter(&self) -> impl Iterator<Item = (Table, &[Row])> {
        self.tables.iter().map(|(t, rows)| (*t, rows.as_slice()))
    }

    fn add<'a, T: 'a>(
        &mut self,
        table: Table,
        columns: &[Column<T>],
        items: impl Iterator<Item = Of<'a, T>>,
    ) {
        let row = |of: Of<'a, T>| {
            let id = Cell::Text(of.origin.id.clone());
            let own = columns.iter().map(|c| (c.of)(&of));
            std::iter::once(id).chain(own).collect()
        };
        self.tables.push((table, items.map(row).collect()));
    }
}

/// The rows of a dump. Of one that could not be read, `report` says nothing and `origin` says why.
#[must_use]
pub fn rows(origin: &Origin, report: &Report) -> Rows {
    let mut out = Rows::default();
    let of = |item| Of {
        origin,
        report,
        request: None,
        item,
    };
    out.add(Table::Chains, chains::COLUMNS, report.chains.iter().map(of));
    let findings = report.findings.iter().map(|item| Of {
        origin,
        report,
        request: None,
        item,
    });
    out.add(Table::Findings, findings::COLUMNS, findings);
    let requests = report.requests.iter().map(|item| Of {
        origin,
        report,
        request: None,
        item,
    });
    out.add(Table::Requests, requests::COLUMNS, requests);
    let calls = report.requests.iter().flat_map(|request| {
        request.calls.iter().map(move |item| Of {
            origin,
            report,
            request: Some(request),
            item,
        })
    });
    out.add(Table::Calls, requests::CALLS, calls);
    let waits = report.threads.iter().filter(|t| t.waits_on.is_some());
    let waits = waits.map(|item| Of {
        origin,
        report,
        request: None,
        item,
    });
    out.add(Table::Waits, waits::COLUMNS, waits);
    let dump = std::iter::once(Of {
        origin,
        report,
        request: None,
        item: report,
    });
    out.add(Table::Dumps, dumps::COLUMNS, dump);
    out
}

/// All tables with their columns, as the store keeps it beside the rows.
#[must_use]
pub fn schema() -> Value {
    let columns = |table: Table| {
        let columns = table
            .fields()
            .into_iter()
            .map(|f| json!({ "name": f.name, "type": f.kind.as_str(), "about": f.about }));
        json!({ "about": table.about(), "columns": columns.collect::<Vec<_>>() })
    };
    let tables: Map<String, Value> = Table::ALL
        .iter()
        .map(|t| (t.name().to_owned(), columns(*t)))
        .collect();
    json!({ "version": TABLES_VERSION, "partitions": ["day", "service"], "tables": tables })
}
