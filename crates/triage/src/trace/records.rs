//! Every record of a file, as it stands there: what each statement of the report can be checked with.

use super::TraceError;
use asynctriage_async_trace::batch::{self, Decoded, Header, Outer, Record};
use asynctriage_async_trace::{EVENT, FrameLists, Manifest, PROVIDER, Rejected};
use asynctriage_dump::Budget;
use asynctriage_nettrace::Trace;
use asynctriage_report as report;
use std::ops::ControlFlow;

/// Gives each record, in the order of the file, until told to stop or the budget ends; batches that are not believed give one row that says
/// why.
///
/// # Errors
/// As [`trace`](super::trace()).
pub fn records(
    file: &[u8],
    budget: &Budget,
    mut each: impl FnMut(report::TraceRecord) -> ControlFlow<()>,
) -> Result<(), TraceError> {
    each_batch(file, budget, |outer, read| match read {
        Ok((header, decoded, frames)) => {
            let mut rows = decoded.records.iter().zip(0_u32..);
            rows.try_for_each(|(record, index)| each(row(outer, header, record, index, frames)))
        }
        Err(rejected) => each(report::TraceRecord {
            batch: report::Address(rejected.offset),
            index: rejected.record.unwrap_or(0),
            offset: report::Address(rejected.at),
            rejected: Some(rejected.reason.to_string()),
            ..report::TraceRecord::default()
        }),
    })
}

/// Gives each batch with its bytes, in the order of the file, until the budget ends.
///
/// # Errors
/// As [`trace`](super::trace()).
pub fn batches(
    file: &[u8],
    budget: &Budget,
    mut each: impl FnMut(report::TraceBatch, &[u8]),
) -> Result<(), TraceError> {
    each_batch(file, budget, |outer, read| {
        let batch = report::TraceBatch {
            batch: report::Address(outer.offset),
            bytes: outer.payload.len() as u64,
            ..report::TraceBatch::default()
        };
        let batch = match read {
            Ok((header, ..)) => report::TraceBatch {
                context: header.context,
                os_thread: header.os_thread,
                records: header.records,
                start: header.start,
                end: header.end,
                ..batch
            },
            Err(rejected) => report::TraceBatch {
                rejected: Some(rejected.reason.to_string()),
                ..batch
            },
        };
        each(batch, outer.payload);
        ControlFlow::Continue(())
    })
}

/// A batch as it was read, or why it is not believed.
type Read<'a> = Result<(&'a Header, &'a Decoded, &'a FrameLists<'a>), Rejected>;

fn each_batch(
    file: &[u8],
    budget: &Budget,
    mut each: impl FnMut(&Outer<'_>, Read<'_>) -> ControlFlow<()>,
) -> Result<(), TraceError> {
    let trace = Trace::open(file)?;
    let (mut manifest, mut frames) = (Manifest::default(), FrameLists::default());
    let mut decoded = Decoded::default();
    for event in budget.each("records of the recording", trace.events()) {
        if !event.kind.is(PROVIDER, EVENT) {
            continue;
        }
        let outer = Outer {
            offset: event.payload_offset,
            time: event.timestamp,
            thread: event.thread,
            payload: event.payload,
        };
        let flow = match batch::records(&outer, &manifest, &mut frames, &mut decoded) {
            Ok(header) => {
                if let Some(metadata) = decoded.metadata.first() {
                    manifest = metadata.manifest.clone();
                }
                each(&outer, Ok((&header, &decoded, &frames)))
            }
            Err(rejected) => each(&outer, Err(rejected)),
        };
        if flow.is_break() {
            break;
        }
    }
    Ok(())
}

fn row(
    outer: &Outer<'_>,
    header: &Header,
    record: &Record,
    index: u32,
    frames: &FrameLists<'_>,
) -> report::TraceRecord {
    let list = record.frames.map(|id| frames.frames(id));
    report::TraceRecord {
        batch: report::Address(outer.offset),
        index,
        offset: report::Address(outer.offset.saturating_add(record.offset.into())),
        context: header.context,
        os_thread: header.os_thread,
        ticks: record.time,
        kind: record
            .kind
            .map_or_else(|| format!("record {}", record.id), |k| k.to_string()),
        dispatcher: record.dispatcher,
        parent: record.parent,
        unwound: record.unwound,
        frames: list.map(|list| list.iter().map(|f| report::Address(f.address)).collect()),
        states: list.map_or_else(Vec::new, |list| {
            list.iter().filter_map(|f| f.state).collect()
        }),
        rejected: None,
    }
}
