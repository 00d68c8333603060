//! Whole reports of changed recordings.

use asynctriage_report::TextOptions;
use asynctriage_triage::trace::{TraceOptions, timeline, trace};

pub(crate) fn run(bytes: &[u8]) {
    let options = TraceOptions::default();
    let Ok(report) = trace(bytes, &options) else {
        return;
    };
    let _ = asynctriage_report::trace(&report, &TextOptions::default());
    let _ = timeline(bytes, &options);
}
