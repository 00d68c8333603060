//! The story from one request or object inwards.

use super::page::{Page, Span};
use super::style::Role;
use super::words::several;
use super::{TextOptions, closing};
use crate::{Confidence, WhyEnd, WhyRelation, WhyReport, WhyStep};

/// Steps are indented up to this depth; a deep story goes on in one column.
const MAX_INDENT: u64 = 24;

/// Why something waits, as text.
#[must_use]
pub fn why(report: &WhyReport, options: &TextOptions) -> String {
    let mut page = Page::new(options);
    let spans = [page.span(Role::Strong, format!("Why {} waits", report.subject))];
    page.line("", "    ", &spans);
    for conclusion in &report.conclusions {
        let spans = [page.span(Role::Plain, conclusion)];
        page.line("", "  ", &spans);
    }
    page.blank();
    for step in &report.steps {
        one(&mut page, step);
    }
    if report.steps_left_out > 0 {
        let more = several(report.steps_left_out, "more branch");
        let spans = [page.span(Role::Dim, format!("{more} not told"))];
        page.line("", "", &spans);
    }
    if page.verbose() {
        closing::gaps(&mut page, &report.gaps);
    } else if !report.gaps.is_empty() {
        page.blank();
        let gaps = several(report.gaps.len() as u64, "gap");
        let spans = [page.span(Role::Dim, format!("{gaps} in what could be read: -v"))];
        page.line("", "", &spans);
    }
    page.finish()
}

fn one(page: &mut Page<'_>, step: &WhyStep) {
    let depth = usize::try_from(step.depth.min(MAX_INDENT)).unwrap_or(0);
    let indent = "  ".repeat(depth);
    let mut spans = vec![page.span(Role::Dim, format!("{} ", step.number))];
    if let Some(text) = relation(step) {
        spans.push(page.span(Role::Dim, format!("{text} ")));
    }
    spans.push(page.span(Role::Strong, &step.text));
    spans.extend(end(page, step));
    page.line(&indent, &format!("{indent}    "), &spans);
    for frame in &step.frames {
        let spans = [page.span(Role::Plain, frame)];
        page.line(&format!("{indent}    "), &format!("{indent}      "), &spans);
    }
    let evidence = Some(&step.evidence).filter(|_| page.verbose());
    for remark in [Some(&step.how), evidence].into_iter().flatten() {
        if !remark.is_empty() {
            let spans = [page.span(Role::Dim, remark)];
            page.line(&format!("{indent}    "), &format!("{indent}      "), &spans);
        }
    }
}

/// `likely completed by`.
fn relation(step: &WhyStep) -> Option<String> {
    let sure = match step.confidence {
        Some(Confidence::Likely) => "likely ",
        Some(Confidence::Possible) => "possibly ",
        _ => "",
    };
    let how = match step.relation {
        WhyRelation::Asked => return None,
        WhyRelation::WaitsFor => "waits for",
        WhyRelation::CompletedBy => "to be completed by",
        WhyRelation::HeldBy => "held by",
        WhyRelation::RunsOn => "runs on",
    };
    Some(format!("{sure}{how}"))
}

fn end(page: &Page<'_>, step: &WhyStep) -> Vec<Span> {
    let mut out = Vec::new();
    if let Some(earlier) = step.same_as {
        out.push(page.span(Role::Dim, format!("  as in step {earlier}")));
    }
    let role = match step.end {
        Some(WhyEnd::Cycle | WhyEnd::Nothing) => Role::Critical,
        Some(WhyEnd::Runs | WhyEnd::Remote) => Role::Warning,
        _ => Role::Dim,
    };
    let text = match step.end {
        None => return out,
        Some(WhyEnd::Runs) => "it runs",
        Some(WhyEnd::Remote) => "outside the process",
        Some(WhyEnd::Clock) => "a time ends it",
        Some(WhyEnd::Work) => "the next piece of work",
        Some(WhyEnd::Cycle) => "it waits for itself",
        Some(WhyEnd::Nothing) => "nothing was found that could end it",
        Some(WhyEnd::Unknown) => "who ends it is not known",
    };
    let doubt = match step.end_confidence {
        Some(Confidence::Likely) if step.end != Some(WhyEnd::Unknown) => "likely: ",
        Some(Confidence::Possible) if step.end != Some(WhyEnd::Unknown) => "possibly: ",
        _ => "",
    };
    out.push(page.span(role, format!("  ▪ {doubt}{text}")));
    out
}
