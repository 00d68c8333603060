//! Dumps.

use super::cell::{Cell, Kind, count, double, int, opt, opt_int, text};
use super::{Column, column};
use asynctriage_report::Report;

/// Where the rows of a dump come from.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Origin {
    /// SHA-256 of the dump's file, in hexadecimal digits.
    pub id: String,
    /// The file.
    pub path: String,
    /// Its size.
    pub bytes: u64,
    /// When the file was last written to, in nanoseconds since 1970.
    pub modified: Option<i64>,
    /// What became of it.
    pub status: Status,
    /// Why it could not be read, or why the report is partial.
    pub error: Option<String>,
    /// How long reading it took, in seconds.
    pub seconds: f64,
    /// The part of the run that read it, `0/1` for the only one.
    pub shard: String,
}

/// What became of a dump.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Status {
    /// It was read.
    #[default]
    Read,
    /// Limits ended the analysis before it had looked at everything.
    Partial,
    /// It is no dump, or holds no runtime that can be read; reading it again would say the same.
    Refused,
    /// The analysis itself failed: it is tried again by the next run.
    Failed,
}

impl Status {
    /// Its word in the tables.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Partial => "partial",
            Self::Refused => "refused",
            Self::Failed => "failed",
        }
    }
}

/// The process, whichever dump shows it.
fn process(report: &Report) -> Option<String> {
    let process = &report.process;
    let host = process.container.as_ref().or(process.machine.as_ref());
    let id = report.dump.process_id?;
    Some(format!("{}/{id}", host.map_or("", |h| h)))
}

pub(super) const COLUMNS: &[Column<Report>] = &[
    column("path", Kind::Text, "The file, as it was named", |f| {
        text(&f.origin.path)
    }),
    column(
        "status",
        Kind::Text,
        "`read`; `partial`: limits ended the analysis; `refused`: no dump, or no runtime that can be read; `failed`: the analysis broke off, the next run tries again",
        |f| text(f.origin.status.as_str()),
    ),
    column(
        "error",
        Kind::Text,
        "Why it was refused, failed or is partial",
        |f| opt(f.origin.error.as_ref()),
    ),
    column("bytes", Kind::Int, "Size of the file", |f| {
        int(f.origin.bytes)
    }),
    column(
        "modified_ns",
        Kind::Int,
        "When the file was last written to, in nanoseconds since 1970",
        |f| f.origin.modified.map_or(Cell::Null, Cell::Int),
    ),
    column(
        "time",
        Kind::Text,
        "When the dump was taken, in UTC as RFC 3339",
        |f| opt(f.report.dump.time.as_ref()),
    ),
    column("time_source", Kind::Text, "What tells it", |f| {
        opt(f.report.dump.time_source.as_ref())
    }),
    column(
        "time_is_floor",
        Kind::Bool,
        "Whether it may have been taken later",
        |f| Cell::Bool(f.report.dump.time_is_floor),
    ),
    column(
        "process",
        Kind::Text,
        "Container or machine and the number of the process: equal for dumps of one process",
        |f| opt(process(f.report).as_ref()),
    ),
    column("pod", Kind::Text, "Name of the container or pod", |f| {
        opt(f.report.process.container.as_ref())
    }),
    column("machine", Kind::Text, "Name of the machine", |f| {
        opt(f.report.process.machine.as_ref())
    }),
    column("process_id", Kind::Int, "Number of the process", |f| {
        opt_int(f.report.dump.process_id)
    }),
    column(
        "executable",
        Kind::Text,
        "The file that it was started from",
        |f| opt(f.report.process.executable.as_ref()),
    ),
    column(
        "entry_assembly",
        Kind::Text,
        "The assembly with the program's Main",
        |f| opt(f.report.process.entry_assembly.as_ref()),
    ),
    column(
        "release",
        Kind::Text,
        "Informational version of that assembly",
        |f| opt(f.report.process.entry_version.as_ref()),
    ),
    column("runtime_version", Kind::Text, "Version of .NET", |f| {
        text(&f.report.runtime.version)
    }),
    column("os", Kind::Text, "`linux`, `linux-musl`, `windows`", |f| {
        text(&f.report.runtime.os)
    }),
    column("arch", Kind::Text, "`x64`, `arm64`", |f| {
        text(&f.report.runtime.arch)
    }),
    column("format", Kind::Text, "The container of the dump", |f| {
        if f.origin.status == Status::Read || f.origin.status == Status::Partial {
            text(f.report.dump.format.as_str())
        } else {
            Cell::Null
        }
    }),
    column(
        "kind",
        Kind::Text,
        "How much of the process it holds",
        |f| text(&f.report.dump.kind),
    ),
    column(
        "truncated",
        Kind::Bool,
        "Whether the file ends before its own tables say",
        |f| Cell::Bool(f.report.dump.truncated),
    ),
    column("heap_objects", Kind::Int, "Objects on the heap", |f| {
        int(f.report.heap.objects)
    }),
    column("heap_bytes", Kind::Int, "Their bytes", |f| {
        int(f.report.heap.bytes)
    }),
    column(
        "state_machines",
        Kind::Int,
        "Async methods that wait, and those that do not",
        |f| int(f.report.heap.state_machines),
    ),
    column("tasks", Kind::Int, "Tasks of any kind", |f| {
        int(f.report.heap.tasks)
    }),
    column("pool_workers", Kind::Int, "Threads of the pool", |f| {
        opt_int(f.report.pool.as_ref().and_then(|p| p.workers))
    }),
    column(
        "pool_max",
        Kind::Int,
        "Most threads that the pool makes",
        |f| opt_int(f.report.pool.as_ref().and_then(|p| p.max)),
    ),
    column(
        "pool_blocked",
        Kind::Int,
        "Threads of the pool that wait synchronously for tasks",
        |f| opt_int(f.report.pool.as_ref().and_then(|p| p.blocked)),
    ),
    column(
        "pool_queued",
        Kind::Int,
        "Work that waits for a thread of the pool",
        |f| opt_int(f.report.pool.as_ref().map(|p| p.queued.total())),
    ),
    column(
        "chains",
        Kind::Int,
        "Chains that wait, those of all groups",
        |f| {
            int(f
                .report
                .chains
                .iter()
                .fold(0, |sum: u64, g| sum.saturating_add(g.count)))
        },
    ),
    column("requests", Kind::Int, "Requests that are served", |f| {
        count(f.report.requests.len())
    }),
    column("findings", Kind::Int, "Findings", |f| {
        count(f.report.findings.len())
    }),
    column("severity", Kind::Text, "The worst of them", |f| {
        f.report
            .findings
            .iter()
            .map(|x| x.severity)
            .max()
            .map_or(Cell::Null, |s| text(s.as_str()))
    }),
    column("gaps", Kind::Int, "What could not be read", |f| {
        count(f.report.gaps.len())
    }),
    column(
        "content_gaps",
        Kind::Int,
        "Those of them that are not about names alone",
        |f| count(f.report.gaps.iter().filter(|g| !g.only_names).count()),
    ),
    column("seconds", Kind::Double, "How long reading it took", |f| {
        double(Some(f.origin.seconds))
    }),
    column(
        "shard",
        Kind::Text,
        "The part of the run that read it",
        |f| text(&f.origin.shard),
    ),
    column("tool_version", Kind::Text, "Version of asynctriage", |f| {
        text(&f.report.tool.version)
    }),
    column(
        "tables_version",
        Kind::Text,
        "Version of these tables",
        |_| text(crate::TABLES_VERSION),
    ),
];
