//! The last lines: the heap, what was rejected, what could not be seen and what would help.

use super::page::Page;
use super::style::Role;
use super::words::{bytes, count, several};
use crate::{CollectionStage, Gap, Heap, Report};

/// Rejected objects listed with `-v`.
const LISTED: usize = 20;

pub(super) fn heap(page: &mut Page<'_>, report: &Report) {
    let heap = &report.heap;
    let mut parts = vec![several(heap.objects, "object"), bytes(heap.bytes)];
    parts.extend((heap.free_bytes > 0).then(|| format!("{} free", bytes(heap.free_bytes))));
    parts.extend(
        (heap.invalid_objects > 0)
            .then(|| format!("{} unreadable", several(heap.invalid_objects, "place"))),
    );
    parts
        .extend((heap.skipped_bytes > 0).then(|| format!("{} skipped", bytes(heap.skipped_bytes))));
    parts.extend(during(heap));
    page.blank();
    let spans = [page.span(Role::Dim, format!("heap: {}", parts.join(", ")))];
    page.line("", "  ", &spans);
    if page.verbose() {
        for (name, n) in &report.statistics {
            let spans = [page.span(Role::Dim, format!("{name}: {}", count(*n)))];
            page.line("  ", "    ", &spans);
        }
    }
}

/// The garbage collection that the dump was taken in, in words.
fn during(heap: &Heap) -> Option<String> {
    let Some(collection) = &heap.collection else {
        return heap
            .gc_in_progress
            .then(|| "taken during a garbage collection".to_owned());
    };
    let extent = collection.extent.as_ref();
    let extent = extent.map_or_else(String::new, |e| format!(" of {e} at least"));
    let thread = collection.thread;
    let thread = thread.map_or_else(String::new, |id| format!(", for thread {id}"));
    Some(match collection.stage {
        CollectionStage::BackgroundMarking => {
            "taken while a background garbage collection marked objects".to_owned()
        }
        CollectionStage::BackgroundSweeping => {
            "taken while a background garbage collection swept free space".to_owned()
        }
        CollectionStage::Marking => format!(
            "taken while a garbage collection{extent} marked objects, which were where they had been{thread}"
        ),
        CollectionStage::Moving => {
            format!("taken while a garbage collection{extent} moved objects{thread}")
        }
    })
}

/// By reason; the first ones by address with `-v`.
pub(super) fn rejected(page: &mut Page<'_>, report: &Report) {
    let total = report
        .rejected_by_reason
        .values()
        .copied()
        .fold(0, u64::saturating_add)
        .max(report.rejected.len() as u64);
    if total == 0 {
        return;
    }
    let reasons: Vec<String> = report
        .rejected_by_reason
        .iter()
        .map(|(reason, n)| format!("{} {reason}", count(*n)))
        .collect();
    let reasons = if reasons.is_empty() {
        "-v shows them".to_owned()
    } else {
        reasons.join(", ")
    };
    let spans = [page.span(
        Role::Dim,
        format!(
            "not shown, since they only look like async methods: {} ({reasons})",
            count(total)
        ),
    )];
    page.line("", "  ", &spans);
    if page.verbose() {
        for object in report
            .rejected
            .iter()
            .take(page.options.rows.map_or(usize::MAX, |_| LISTED))
        {
            let spans = [page.span(
                Role::Dim,
                format!(
                    "{}  {}: {}",
                    object.address, object.type_name, object.reason
                ),
            )];
            page.line("  ", "    ", &spans);
        }
    }
}

pub(super) fn gaps(page: &mut Page<'_>, gaps: &[Gap]) {
    if gaps.is_empty() {
        return;
    }
    page.heading("Gaps", "what this report cannot say");
    for gap in gaps {
        let section = if gap.section.is_empty() {
            String::new()
        } else {
            format!("{}: ", gap.section)
        };
        let place = if gap.place.is_empty() {
            String::new()
        } else {
            format!("  {}", gap.place)
        };
        let spans = [
            page.span(Role::Warning, section),
            page.span(Role::Plain, &gap.why),
            page.span(Role::Dim, format!("{place}  [{}]", gap.id)),
        ];
        page.line("", "    ", &spans);
        if !gap.remedy.is_empty() {
            let spans = [page.span(Role::Strong, format!("→ {}", gap.remedy))];
            page.line("    ", "      ", &spans);
        }
    }
}

pub(super) fn left_out(page: &mut Page<'_>, report: &Report) {
    let left = &report.left_out;
    let mut parts = Vec::new();
    if left.groups > 0 {
        let groups = several(left.groups, "group");
        let chains = several(left.chains, "chain");
        // filters of the command line stand among the reasons
        parts.push(if left.why.is_empty() {
            format!("{groups} of {chains} of idle framework parts: --all lists them")
        } else {
            format!("{groups} of {chains} by the filters or as idle framework parts")
        });
    }
    parts.extend((left.requests > 0).then(|| several(left.requests, "request")));
    parts.extend((left.rejected > 0).then(|| several(left.rejected, "rejected object")));
    parts.extend(left.why.iter().cloned());
    if !parts.is_empty() {
        page.blank();
        let spans = [page.span(Role::Dim, format!("left out: {}", parts.join("; ")))];
        page.line("", "  ", &spans);
    }
}

pub(super) fn timings(page: &mut Page<'_>, report: &Report) {
    if report.timings.is_empty() {
        return;
    }
    page.heading("Timings", "");
    for timing in &report.timings {
        let spans = [page.span(
            Role::Plain,
            format!("{:>10.1} ms  {}", timing.milliseconds, timing.phase),
        )];
        page.line("", "    ", &spans);
    }
}
