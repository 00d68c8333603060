//! A recording joined with a dump: each chain of the dump with what was recorded of it.

use super::super::chains;
use super::super::page::{Page, Span};
use super::super::style::Role;
use super::super::words::{count, several, verb};
use super::chains::story;
use super::precise;
use crate::{ChainHistory, FrameMatch, JoinedChain, OperationHistory, TraceJoin};

/// Chains of a group whose history is told without `-v`.
const FEW: usize = 1;

pub(super) fn section(page: &mut Page<'_>, join: &TraceJoin) {
    let file = if join.dump.is_empty() {
        "a dump of the process"
    } else {
        &join.dump
    };
    page.heading("Joined with the dump", file);
    if let Some(why) = &join.refused {
        let spans = [page.span(Role::Critical, format!("not joined: {why}"))];
        page.line("  ", "    ", &spans);
        return;
    }
    figures(page, join);
    let known = join.chains.iter().filter(|c| c.joined > 0).count();
    let shown = page.options.cap(join.chains.len());
    for chain in join.chains.iter().take(shown) {
        page.blank();
        one(page, chain);
    }
    let rest = join.chains.len().saturating_sub(shown);
    if rest > 0 {
        page.blank();
        let text = format!("{} not shown: --all", several(rest as u64, "more group"));
        page.line("", "", &[page.span(Role::Dim, text)]);
    }
    if known == 0 {
        let text = "The recording knows none of the chains of the dump.";
        page.line("  ", "    ", &[page.span(Role::Warning, text)]);
    }
    contradictions(page, join);
}

fn figures(page: &mut Page<'_>, join: &TraceJoin) {
    let mut text = format!(
        "{} of the dump {} in the recording by {}.",
        several(join.joined, "waiting operation"),
        verb(join.joined, "is", "are"),
        verb(join.joined, "its number", "their numbers"),
    );
    let unlike = join.joined.saturating_sub(join.frames_equal);
    let unlike = unlike.saturating_sub(join.frames_differ);
    for (n, what) in [
        (
            join.frames_equal,
            "has equal frames in both",
            "have equal frames in both",
        ),
        (
            join.frames_differ,
            "has other frames in the recording",
            "have other frames in the recording",
        ),
        (
            unlike,
            "has no frames in the recording to compare",
            "have no frames in the recording to compare",
        ),
    ]
    .map(|(n, one, many)| (n, verb(n, one, many)))
    {
        if n > 0 {
            text.push_str(&format!(" {} {what}.", count(n)));
        }
    }
    for (n, what) in [
        (join.only_in_dump, "only in the dump"),
        (
            join.unnumbered,
            "in the dump without a number: nothing was recorded of them",
        ),
        (
            join.only_in_recording,
            "wait at the end of the recording and not in the dump",
        ),
    ] {
        if n > 0 {
            text.push_str(&format!(" {} {what}.", count(n)));
        }
    }
    page.line("  ", "  ", &[page.span(Role::Plain, text)]);
    if let Some(seconds) = join.seconds_after_recording {
        let place = if seconds < 0.0 { "before" } else { "after" };
        let text = format!(
            "The clock of the dump stands {} {place} the last record ({}).",
            precise(seconds.abs()),
            join.clock
        );
        page.line("  ", "  ", &[page.span(Role::Dim, text)]);
    }
}

fn one(page: &mut Page<'_>, chain: &JoinedChain) {
    chains::without_members(page, &chain.group);
    if chain.joined == 0 {
        let text = "not in the recording";
        page.line("    ", "      ", &[page.span(Role::Dim, text)]);
        return;
    }
    if let Some(waiting) = &chain.waiting_seconds {
        let (min, max) = (precise(waiting.min), precise(waiting.max));
        let range = if min == max {
            format!("recorded as waiting for {max}")
        } else {
            format!("recorded as waiting for {min} to {max}")
        };
        let spans = [
            page.span(Role::Plain, range),
            page.span(Role::Dim, format!(" ({})", waiting.how)),
        ];
        page.line("    ", "      ", &spans);
    }
    let shown = if page.verbose() {
        chain.histories.len()
    } else {
        FEW
    };
    for history in chain.histories.iter().take(shown) {
        tell(page, history);
    }
    let left = chain.joined.saturating_sub(shown as u64);
    if left > 0 {
        let text = format!(
            "and {} with a history of their own: -v",
            several(left, "more chain")
        );
        page.line("    ", "      ", &[page.span(Role::Dim, text)]);
    }
}

fn tell(page: &mut Page<'_>, history: &ChainHistory) {
    for operation in &history.operations {
        let mut spans = story(page, &operation.recorded);
        let object = format!("; {} in the dump", operation.object);
        spans.push(page.span(Role::Dim, object));
        spans.push(frames(page, operation));
        page.line("    ", "      ", &spans);
    }
}

fn frames(page: &Page<'_>, operation: &OperationHistory) -> Span {
    match operation.frames {
        FrameMatch::Equal => page.span(Role::Good, ", frames equal"),
        FrameMatch::Differ => page.span(Role::Warning, ", frames differ"),
        FrameMatch::NotRecorded => page.span(Role::Dim, ", frames not recorded"),
        FrameMatch::NotCompared => page.span(Role::Dim, ", frames not compared"),
    }
}

fn contradictions(page: &mut Page<'_>, join: &TraceJoin) {
    if join.contradictions.is_empty() {
        return;
    }
    page.heading("Contradictions", "between the recording and the dump");
    let shown = page.options.cap(join.contradictions.len());
    for one in join.contradictions.iter().take(shown) {
        let spans = [
            page.span(Role::Warning, format!("dispatcher {}", one.dispatcher)),
            page.span(Role::Dim, format!(" ({})", one.object)),
            page.span(Role::Plain, format!("  {}", one.text)),
        ];
        page.line("  ", "    ", &spans);
    }
    let rest = (join.contradictions.len().saturating_sub(shown) as u64)
        .saturating_add(join.contradictions_left_out);
    if rest > 0 {
        let text = format!("{} more", count(rest));
        page.line("  ", "    ", &[page.span(Role::Dim, text)]);
    }
}
