//! What `collect` says before and after a recording.

use super::{Ending, Outcome, Target};
use crate::args::CollectArgs;
use crate::recipe::Recipe;
use asynctriage_diagnostics::Recording;
use asynctriage_report::{TraceVerdict, printable};
use asynctriage_triage::trace::{TraceOptions, trace};
use std::fs;
use std::path::Path;
use std::time::Duration;

/// Recordings up to this size are looked into, so that an empty one is noticed while the process is still there.
const LOOKED_INTO: u64 = 64 << 20;

/// The first lines, on the standard error.
pub(super) fn opening(
    args: &CollectArgs,
    target: &Target,
    recipe: &Recipe,
    recording: &Recording,
) -> String {
    let info = &target.info;
    let name = if info.entry_assembly.is_empty() {
        String::new()
    } else {
        format!(" ({})", printable(&info.entry_assembly))
    };
    let until = match args.duration {
        Some(seconds) => format!("for {seconds} s; Ctrl-C ends it earlier"),
        None => "until Ctrl-C".into(),
    };
    let start = match target.command {
        Some(_) => " from its start",
        None => "",
    };
    let mut text = format!(
        "recording process {}{name}, .NET {},{start} into {} {until}\n",
        target.pid,
        printable(&info.version),
        printable(&args.output.display().to_string()),
    );
    for provider in recipe.providers() {
        text.push_str(&format!("  {}\n", printable(&provider.to_string())));
    }
    if let Some(warning) = recipe.warning {
        text.push_str(&format!("warning: {warning}\n"));
    }
    if recording.stacks_forced {
        text.push_str("warning: this runtime takes a stack with every event, which costs time\n");
    }
    text
}

/// Whether a recording says nothing about chains.
pub(super) fn is_empty(file: &Path) -> bool {
    let small = fs::metadata(file).is_ok_and(|m| m.len() <= LOOKED_INTO);
    let bytes = small.then(|| fs::read(file).ok()).flatten();
    let report = bytes.and_then(|bytes| trace(&bytes, &TraceOptions::default()).ok());
    report.is_some_and(|r| matches!(r.verdict, TraceVerdict::Empty | TraceVerdict::MetadataOnly))
}

/// What was recorded and how to read it, on the standard output. `goes_on` is the command's process when it still runs.
pub(super) fn closing(
    args: &CollectArgs,
    outcome: &Outcome,
    lasted: Duration,
    goes_on: Option<u32>,
    empty: bool,
) -> String {
    let file = printable(&args.output.display().to_string());
    let ending = match outcome.ending {
        Ending::Duration => "the time was over",
        Ending::Interrupted => "it was interrupted",
        Ending::Full => "the file had reached its limit (--max-mb)",
        Ending::ProcessEnded => "the process ended",
        Ending::Failed => "it broke off",
    };
    let mut text = format!(
        "{file}  {} in {:.1} s; {ending}\n",
        mebibytes(outcome.bytes),
        lasted.as_secs_f64()
    );
    text.push_str(&last_events(outcome));
    if let Some(why) = &outcome.cut {
        text.push_str(&format!(
            "the end of the file may be missing: {}\n",
            printable(why)
        ));
    }
    if let Some(pid) = goes_on {
        text.push_str(&format!("the command goes on as process {pid}\n"));
    }
    if empty && outcome.ending != Ending::ProcessEnded {
        text.push_str(
            "no chain suspended or went on meanwhile: what has waited since before is in no recording. If the process hangs, \
             take a dump of it: asynctriage runbook capture\n",
        );
    }
    text.push_str(&format!("next: asynctriage trace {file}\n"));
    text
}

/// Whether the last events of each thread are in the file.
fn last_events(outcome: &Outcome) -> String {
    if outcome.handed_over {
        return "the threads were asked for their buffers: what is proved of chains is proved as of then\n".into();
    }
    if let Some(why) = &outcome.refused {
        return format!(
            "the last events of each thread may be missing: they were not asked for ({})\n",
            printable(why)
        );
    }
    if matches!(outcome.ending, Ending::ProcessEnded | Ending::Failed) {
        return "the last events of each thread may be missing, unless the program asked for them before it ended\n".into();
    }
    String::new()
}

#[expect(clippy::cast_precision_loss, reason = "two decimals are shown")]
fn mebibytes(bytes: u64) -> String {
    format!("{:.2} MiB", bytes as f64 / f64::from(1 << 20))
}
