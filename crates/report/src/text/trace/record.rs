//! One record in one line.

use super::super::escape::clean;
use crate::TraceRecord;
use std::fmt::Write;

/// `0x1a2b  0x1a00 #12  context 2 thread 11595  3418554000000  ResumeRuntimeAsyncContext  dispatcher=1`: where it stands,
/// batch and index, whose it is, ticks, kind, payload. Ends with a newline.
#[must_use]
pub fn trace_record(record: &TraceRecord) -> String {
    let TraceRecord {
        batch,
        index,
        offset,
        context,
        os_thread,
        ticks,
        ..
    } = record;
    let mut line = format!("0x{:x}  0x{:x} #{index}  ", offset.0, batch.0);
    // writing to a String cannot fail
    let _ = match &record.rejected {
        Some(reason) => write!(line, "REJECTED  {}", clean(reason, false)),
        None => write!(
            line,
            "context {context} thread {os_thread}  {ticks}  {}",
            clean(&record.kind, false)
        ),
    };
    if record.dispatcher != 0 {
        let _ = write!(line, "  dispatcher={}", record.dispatcher);
    }
    if record.parent != 0 {
        let _ = write!(line, "  parent={}", record.parent);
    }
    if record.unwound != 0 {
        let _ = write!(line, "  unwound={}", record.unwound);
    }
    if let Some(frames) = &record.frames {
        let frames: Vec<String> = frames
            .iter()
            .enumerate()
            .map(|(index, frame)| match record.states.get(index) {
                Some(state) => format!("{:#x}@{state}", frame.0),
                None => format!("{:#x}", frame.0),
            })
            .collect();
        let _ = write!(line, "  frames=[{}]", frames.join(", "));
    }
    line.push('\n');
    line
}
