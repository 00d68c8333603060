//! How a time line is drawn.

use super::{Timeline, TimelineOperation, TimelineSpan};
use crate::text::printable;
use std::fmt::Write;

/// Height of a row, in the units of the figures and in pixels; the style sheet has it, too.
const ROW: usize = 18;
/// Width of the figures in their units. Small: browsers draw lines wrongly whose coordinates reach 2^25.
const WIDTH: u64 = 1_000_000;
/// Distance of a bar from the row's edges.
const MARGIN: usize = 4;

/// A whole page: works from a file, fetches nothing, and shows all of its facts without scripts, too.
#[must_use]
pub fn timeline_html(line: &Timeline) -> String {
    let mut out = String::new();
    let file = escaped(&line.file);
    let end = line.end.max(1);
    let _ = write!(
        out,
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'\">\n\
         <title>{file}: time line</title>\n<style>\n{}</style>\n</head>\n<body data-end=\"{end}\">\n\
         <h1>{file}</h1>\n<p>{}</p>\n<p>{}</p>\n<div id=\"scale\">0 to {}</div>\n",
        include_str!("page.css"),
        escaped(&line.verdict),
        escaped(&left_out(line)),
        milliseconds(end),
    );
    threads(&mut out, line, end);
    operations(&mut out, line, end);
    let _ = write!(
        out,
        "<h2>Details</h2>\n<div id=\"detail\">click a bar; the wheel zooms, dragging moves</div>\n<script>\n{}</script>\n</body>\n</html>\n",
        include_str!("page.js")
    );
    out
}

fn left_out(line: &Timeline) -> String {
    let mut text = format!(
        "{} threads, {} operations, {} activations. A bar is a time between a resumption and the next suspension or end \
         as the records tell it, not time on a processor.",
        line.threads.len(),
        line.operations.len(),
        line.spans.len()
    );
    if line.spans_left_out > 0 || line.operations_left_out > 0 {
        let _ = write!(
            text,
            " Left out: {} activations and {} operations.",
            line.spans_left_out, line.operations_left_out
        );
    }
    text
}

fn threads(out: &mut String, line: &Timeline, end: u64) {
    out.push_str("<h2>Threads</h2>\n<div class=\"rows\">\n<ol>\n");
    for thread in &line.threads {
        let _ = writeln!(out, "<li>thread {thread}</li>");
    }
    out.push_str("</ol>\n");
    open_figure(out, line.threads.len());
    for span in &line.spans {
        let operation = span.operation.and_then(|i| line.operations.get(i));
        let name = operation.map_or("an operation that is not listed", |o| o.name.as_str());
        bar(out, span.thread, span, end, name);
    }
    out.push_str("</svg>\n</div>\n");
}

fn operations(out: &mut String, line: &Timeline, end: u64) {
    out.push_str("<h2>Operations</h2>\n<div class=\"rows\">\n<ol>\n");
    for operation in &line.operations {
        let class = if operation.open {
            " class=\"open\""
        } else {
            ""
        };
        let text = escaped(&label(operation));
        let _ = writeln!(out, "<li{class} title=\"{text}\">{text}</li>");
    }
    out.push_str("</ol>\n");
    open_figure(out, line.operations.len());
    for (row, operation) in line.operations.iter().enumerate() {
        life(out, row, operation, end);
    }
    for span in &line.spans {
        if let Some((row, operation)) = span
            .operation
            .and_then(|i| Some((i, line.operations.get(i)?)))
        {
            bar(out, row, span, end, &operation.name);
        }
    }
    out.push_str("</svg>\n</div>\n");
}

fn open_figure(out: &mut String, rows: usize) {
    let height = rows.max(1).saturating_mul(ROW);
    let _ = writeln!(
        out,
        "<svg viewBox=\"0 0 {WIDTH} {height}\" preserveAspectRatio=\"none\" style=\"height:{height}px\">"
    );
}

/// A time as a place in a figure, exact to a thousandth of a unit.
fn place(at: u64, end: u64) -> String {
    let thousandths = u128::from(at.min(end))
        .saturating_mul(u128::from(WIDTH).saturating_mul(1000))
        .checked_div(end.into())
        .unwrap_or(0);
    format!("{}.{:03}", thousandths / 1000, thousandths % 1000)
}

fn label(operation: &TimelineOperation) -> String {
    let mut text = format!("{} {}", operation.name, operation.state);
    if !operation.frames.is_empty() {
        let _ = write!(text, ": {}", operation.frames.join(" < "));
    }
    text
}

/// The line from an operation's creation to its end.
fn life(out: &mut String, row: usize, operation: &TimelineOperation, end: u64) {
    let from = operation.from.min(end);
    let to = operation.ended.unwrap_or(end).clamp(from, end);
    let middle = row.saturating_mul(ROW).saturating_add(ROW / 2);
    let how = if operation.is_created {
        "created"
    } else {
        "first seen"
    };
    let created = format!("{how} at {}", milliseconds(operation.from));
    let ended = match operation.ended {
        Some(at) => format!("ended at {}", milliseconds(at)),
        None => "not ended in the recording".to_owned(),
    };
    let title = escaped(&format!("{}; {created}; {ended}", label(operation)));
    let (from, to) = (place(from, end), place(to, end));
    let _ = writeln!(
        out,
        "<line x1=\"{from}\" x2=\"{to}\" y1=\"{middle}\" y2=\"{middle}\"><title>{title}</title></line>"
    );
}

/// An activation's bar; one without an end reaches to the end of the recording.
fn bar(out: &mut String, row: usize, span: &TimelineSpan, end: u64, name: &str) {
    let from = span.from.min(end);
    let width = span.to.unwrap_or(end).clamp(from, end).saturating_sub(from);
    let top = row.saturating_mul(ROW).saturating_add(MARGIN);
    let height = ROW.saturating_sub(MARGIN.saturating_mul(2));
    let class = if span.to.is_none() {
        " class=\"open\""
    } else {
        ""
    };
    let until = span
        .to
        .map_or_else(|| "an end that is not recorded".to_owned(), milliseconds);
    let title = escaped(&format!(
        "{name}: {} to {until}, {}; {}",
        milliseconds(span.from),
        span.outcome,
        span.evidence
    ));
    let (from, width) = (place(from, end), place(width, end));
    let _ = writeln!(
        out,
        "<rect{class} x=\"{from}\" y=\"{top}\" width=\"{width}\" height=\"{height}\"><title>{title}</title></rect>"
    );
}

fn milliseconds(ns: u64) -> String {
    let (whole, rest) = (ns / 1_000_000, ns % 1_000_000 / 1_000);
    format!("{whole}.{rest:03} ms")
}

/// Text of the trace, harmless inside elements and quoted attributes.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in printable(text).chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            _ => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Timeline {
        Timeline {
            file: "a<b>.nettrace".into(),
            verdict: "BOUNDED".into(),
            end: 2_000_000,
            threads: vec![77],
            operations: vec![TimelineOperation {
                name: "runtime-async 3".into(),
                frames: vec!["0x0".into(), "A.B<\"&'>".into()],
                state: "suspended".into(),
                open: true,
                from: 500_000,
                is_created: true,
                ended: None,
            }],
            spans: vec![
                TimelineSpan {
                    thread: 0,
                    operation: Some(0),
                    from: 600_000,
                    to: Some(700_000),
                    outcome: "suspended".into(),
                    evidence: "records 1:2 to 1:5".into(),
                },
                TimelineSpan {
                    thread: 0,
                    operation: None,
                    from: 1_900_000,
                    ..TimelineSpan::default()
                },
            ],
            spans_left_out: 4,
            operations_left_out: 2,
        }
    }

    #[test]
    fn a_page_has_a_row_for_each_and_a_bar_for_each_activation_in_both_figures() {
        let page = timeline_html(&sample());
        assert_eq!(page.matches("<rect").count(), 3);
        assert_eq!(page.matches("<line x1").count(), 1);
        assert!(page.contains(r#"<rect x="300000.000" y="4" width="50000.000" height="10">"#));
        assert!(page.contains(r#"<rect class="open" x="950000.000" y="4" width="50000.000""#));
        assert!(page.contains("Left out: 4 activations and 2 operations."));
        assert!(
            page.contains("runtime-async 3: 0.600 ms to 0.700 ms, suspended; records 1:2 to 1:5")
        );
    }

    #[test]
    fn names_of_the_trace_stay_text() {
        let mut line = sample();
        line.file = "</title><script>alert(1)</script>".into();
        let page = timeline_html(&line);
        assert_eq!(page.matches("<script>").count(), 1);
        assert!(page.contains("A.B&lt;&quot;&amp;&#39;&gt;"));
    }

    #[test]
    fn times_beyond_the_end_stay_inside_the_figure() {
        let mut line = sample();
        line.end = 0;
        let page = timeline_html(&line);
        assert!(page.contains(r#"x="1000000.000" y="4" width="0.000""#));
    }
}
